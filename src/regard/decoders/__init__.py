"""From the states of an input to an output, token by token."""
