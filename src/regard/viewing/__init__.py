"""From a Trace to something to look at: the terminal and pictures."""
