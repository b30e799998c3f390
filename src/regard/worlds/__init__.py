"""Worlds: generated corpora that come with the attention that a right model should have."""
