"""One file for each kind of trace that is not drawn as heat maps: `VIEW` is the class that draws it."""
