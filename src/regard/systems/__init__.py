"""Complete systems: a config, the parts assembled, saving and loading, and the verb."""
