"""Search: find likely outputs of a decoder."""
