"""Public data sets: what they are, how to get them, and how to prepare their files."""
