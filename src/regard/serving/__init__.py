"""Serving models over HTTP: `regard serve`. One route for each verb, requests of all clients in shared batches."""

from lazy_loader import attach_stub

# The names of __init__.pyi, each imported when it is first used.
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
