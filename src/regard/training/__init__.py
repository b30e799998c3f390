"""Training: recipes, tasks, checkpoints, resuming."""

from lazy_loader import attach_stub

# The names of __init__.pyi, each imported when it is first used.
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
