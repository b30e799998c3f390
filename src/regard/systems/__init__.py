"""Complete systems, one folder each: a model with its verb, its experiment, its evaluation and its commands."""
