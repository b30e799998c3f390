"""axe-core, which finds faults of accessibility."""

from pathlib import Path
from typing import Any

import axe_playwright_python

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")


def serious_faults(page: Any) -> list[tuple[str, str]]:
    """What axe-core finds serious or critical in a page: the rule, and the first element that breaks it."""
    page.evaluate(AXE)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]
