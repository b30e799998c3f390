"""Worlds: synthetic data sets that come with the attention that a correct model should have."""
