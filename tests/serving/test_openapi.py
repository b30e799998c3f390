"""What the OpenAPI document says holds: requests made from it are answered as it describes."""

import pytest
from hypothesis import HealthCheck, given, settings

from regard.serving import limits
from regard.serving.app import create_app
from regard.serving.settings import ServerSettings

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install -e '.[dev]'")
# Rules between options and the content of images are no matter of a schema: what breaks them is answered with 422.
positive_data_acceptance = pytest.importorskip("schemathesis.specs.openapi.checks").positive_data_acceptance
# Small enough that any request is answered at once.
SMALL = dict.fromkeys(limits.LARGEST, 4) | {"max_length": 6, "min_length": 6, "slots": 200, "per_length": 1}


@pytest.fixture(scope="module")
def document():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "LARGEST", SMALL)
        patch.setattr(limits, "LONGEST", dict.fromkeys(limits.LONGEST, 24))
        server = ServerSettings(host="0.0.0.0", open_to_all=True, max_characters=24, max_inputs=2)  # noqa: S104
        app = create_app(server)
    return schemathesis.openapi.from_asgi("/openapi.json", app)


OPERATIONS = {
    (path, method): operation
    for path, route in create_app().openapi()["paths"].items()
    for method, operation in route.items()
    if path.startswith("/v1/")
}


def test_the_complete_example_of_every_request_is_answered(client):
    parts = client.get("/openapi.json").json()["components"]["schemas"]
    for path, operation in [(path, each) for (path, method), each in OPERATIONS.items() if method == "post"]:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        for each in schema.get("oneOf", [schema]):
            (body,) = parts[each["$ref"].rpartition("/")[2]]["examples"]
            answer = client.post(path, json=body)
            assert answer.status_code == 200, (path, body, answer.text)


@pytest.mark.filterwarnings("ignore::regard.errors.RegardWarning")  # of letters that a model cannot spell
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_a_route_answers_as_it_is_documented(document, path, method, monkeypatch):
    operation = document[path][method]

    @settings(
        max_examples=12 if method == "post" else 1,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case):
        case.call_and_validate(excluded_checks=[positive_data_acceptance], timeout=600)

    check()
