"""Batch jobs: whole files of inputs, answered by several workers, resumable, each input exactly once.

`job.run` does it. It knows no system: what the workers do is a `Predictor`, which says how lines become lines.
"""
