"""Parts with weights, smaller than an encoder."""
