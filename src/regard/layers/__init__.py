"""Layers: parts with parameters that encoders and decoders are built from."""
