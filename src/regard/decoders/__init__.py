"""Decoders: predict an output token by token from the states of an input."""
