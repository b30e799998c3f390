"""From a Trace or a measure to something to look at: pages, figures, animations and the terminal.

    regard.view(trace).save("map.html")
    regard.viewing.save(regard.viewing.matrix.figure(trace, title="A title"), "map.png")

`matrix`, `heads` and `lines` draw any trace. Nothing is imported before it is used; matplotlib is imported by the first
figure.
"""

from lazy_loader import attach_stub

# The names of __init__.pyi, each imported when it is first used.
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
