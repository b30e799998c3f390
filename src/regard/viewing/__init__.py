"""From a Trace or a measure to something to look at: the terminal and pictures."""
