"""Statistics of worlds explain each of their numbers."""

import pytest

from regard.worlds import babel, scenes


@pytest.mark.parametrize("measured", [babel.statistics("en", "fr", count=3), scenes.statistics(count=3)])
def test_every_number_has_a_name_and_a_description(measured):
    rows = measured.rows()
    assert [row.name for row in rows] == list(vars(measured))
    assert [row.value for row in rows] == list(vars(measured).values())
    assert all(len(row.description.split()) > 2 for row in rows)
