"""Benchmarks that run on your own machine with `regard bench`."""
