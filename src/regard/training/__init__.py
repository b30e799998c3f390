"""Training with Lightning: recipes, tasks, checkpoints, resuming."""
