"""Benchmarks that run on your own machine: `regard bench`."""
