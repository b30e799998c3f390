"""The frame of the workbench and its home page: models, navigation, light and dark, phone, errors."""

from browser.accessibility import serious_faults

PAGES = ["Translate", "Caption", "Document", "Read", "Tape", "Glimpse", "Convolution"]


def test_the_home_page_lists_every_model_with_what_it_is_and_how_good(visit, workbench):
    page = visit("/")
    page.locator(".card").first.wait_for()
    models = page.request.get(f"{workbench}/v1/models").json()["models"]
    assert page.locator(".card h2").all_text_contents() == PAGES
    for model in models:
        line = page.locator(".modellist li", has=page.get_by_role("link", name=model["name"], exact=True))
        assert model["summary"] in line.text_content()
        assert model["headline"] in line.text_content()
    took = page.evaluate("() => performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert took < 10_000, f"loaded in {took:.0f} ms"


def test_axe_finds_no_serious_fault_and_a_phone_needs_no_sideways_scrolling(visit):
    for scheme in ("light", "dark"):
        page = visit("/", width=360, scheme=scheme)
        page.locator(".card").first.wait_for()
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
        assert serious_faults(page) == []


def test_the_switch_changes_light_to_dark_and_is_remembered(visit):
    page = visit("/")
    paper = "() => getComputedStyle(document.querySelector('.top')).backgroundColor"
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(paper) == "rgb(22, 25, 31)"
    page.reload()
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
