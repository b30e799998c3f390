"""Attention: score how well keys match a query, align the scores into a focus, read the values there."""
