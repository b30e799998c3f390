"""A thousand by a thousand weights: drawn as far as they are visible, with a map of the whole, without a pause."""

import pytest
from browser.showing import settle, show, shown_numbers
from helpers.traces import large

LONGEST_TASK_MS = 200
SCROLL = """async (box) => {
    const tasks = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((each) => each.duration)))
        .observe({ type: "longtask" });
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const [right, bottom] = [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight];
    for (let step = 0; step <= 60; step++) {
        box.scrollTo((right * step) / 60, (bottom * step) / 60);
        await frame();
    }
    await new Promise((done) => setTimeout(done, 100));
    return { tasks, at: [box.scrollLeft, box.scrollTop], end: [right, bottom] };
}"""


def test_a_large_map_scrolls_without_a_pause(open_page):
    page = show(open_page, "matrix", large())
    scroller = page.locator("attention-matrix .scroller")
    done = scroller.evaluate(SCROLL)
    assert done["at"] == pytest.approx(done["end"], abs=1), "it reached the end"
    assert min(done["end"]) > 10_000
    assert max(done["tasks"], default=0) < LONGEST_TASK_MS
    size = page.locator("attention-matrix .scroller canvas").evaluate("(canvas) => [canvas.width, canvas.height]")
    assert max(size) < 3000, "the canvas has the size of the window, not of the map"


def test_a_large_map_tells_its_numbers_and_follows_the_keys_and_the_minimap(open_page):
    trace = large()
    page = show(open_page, "matrix", trace)
    page.locator("attention-matrix .picture").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    settle(page)
    assert page.locator("attention-matrix .detail b").text_content() == "out999"
    scrolled = page.locator("attention-matrix .scroller").evaluate("(box) => [box.scrollLeft, box.scrollTop]")
    assert min(scrolled) > 10_000, "the window follows"
    assert shown_numbers(page, "matrix")["in999"] == pytest.approx(float(trace.weights[999, 999]), rel=1e-5)
    minimap = page.locator("attention-matrix .minimap")
    box = minimap.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 4)
    settle(page)
    left, top = page.locator("attention-matrix .scroller").evaluate("(box) => [box.scrollLeft, box.scrollTop]")
    assert left == pytest.approx(500 * 16, abs=800)
    assert top == pytest.approx(250 * 16, abs=800)


@pytest.mark.parametrize("name", ["lines", "reading"])
def test_long_texts_are_drawn_as_far_as_they_are_visible(open_page, name):
    from regard.trace import Axis, Map, Trace

    words = tuple(f"word{i}" for i in range(1000))
    weights = [[1.0 if j == max(0, i - 1) else 0.0 for j in range(1000)] for i in range(1000)]
    trace = Trace("reading", (Axis("words", "words", words),), (Map("reading", "words", "words", weights),))
    page = show(open_page, name, trace)
    nodes = page.locator(f"attention-{name} .picture svg *").count()
    assert nodes < 4000
    done = page.locator(f"attention-{name} .picture").evaluate(SCROLL)
    assert max(done["tasks"], default=0) < LONGEST_TASK_MS
    settle(page)
    shown = page.locator(f"attention-{name} .picture svg text").all_text_contents()
    assert "word999" in shown
    if done["end"][1] > 3000:
        assert "word0" not in shown
