"""Run code as if only what regard requires were installed, and what one extra brings: `only.py EXTRA CODE`."""

import sys
import tomllib
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def required(lines: list[str]) -> set[str]:
    """The names of the distributions that these requirements bring, and of those that these bring in turn."""
    names: set[str] = set()
    waiting = [(Requirement(line), "") for line in lines]
    while waiting:
        requirement, extra = waiting.pop()
        name = requirement.name.lower().replace("_", "-")
        if name in names or (requirement.marker and not requirement.marker.evaluate({"extra": extra})):
            continue
        names.add(name)
        try:
            brought = requires(name) or []
        except PackageNotFoundError:  # for another platform
            continue
        waiting += [(Requirement(line), each) for line in brought for each in requirement.extras or ("",)]
    return names


def allow(extra: str) -> None:
    """Hide all packages that neither regard nor the extra brings from every import that follows."""
    names = required([*PROJECT["dependencies"], *PROJECT["optional-dependencies"].get(extra, [])]) | {"regard"}
    hidden = {
        package
        for package, brought_by in packages_distributions().items()
        if not names & {each.lower().replace("_", "-") for each in brought_by}
    }

    class Finder(PathFinder):
        @classmethod
        def find_spec(cls, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
            return None if path is None and fullname in hidden else PathFinder.find_spec(fullname, path, target)

    sys.meta_path[:] = [Finder if each is PathFinder else each for each in sys.meta_path]
    for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
        del sys.modules[name]


if __name__ == "__main__":
    allow(sys.argv[1])
    exec(sys.argv[2])  # noqa: S102
