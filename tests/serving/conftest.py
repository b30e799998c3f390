"""A server with its default settings."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from regard.serving.app import create_app


@pytest.fixture(scope="session")
def client() -> Iterator[TestClient]:
    """A client of one server for all tests, whose models are loaded once."""
    with TestClient(create_app(), base_url="http://localhost") as made:
        yield made
