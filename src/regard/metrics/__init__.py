"""Measures of results and of attention: pure functions on lists and arrays, without a model."""
