"""Serving models over HTTP: `regard serve`. One route for each verb, requests of all clients in shared batches."""
