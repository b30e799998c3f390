"""Encoders: from an input to the states that a decoder attends to."""
