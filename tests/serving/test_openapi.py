"""What the OpenAPI document says holds: requests made from it are answered as it describes."""

import pytest
from hypothesis import HealthCheck, given, settings
from starlette.testclient import TestClient

from regard.serving import schemas
from regard.serving.app import create_app
from regard.serving.settings import ServerSettings

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install -e '.[dev]'")
# Rules between options and the content of images are no matter of a schema: what breaks them is answered with 422.
positive_data_acceptance = pytest.importorskip("schemathesis.specs.openapi.checks").positive_data_acceptance
# Small enough that any request is answered at once.
SMALL = {name: min(most, 4) for name, most in schemas.CEILINGS.items()} | {
    "max_length": 6,
    "min_length": 6,
    "slots": 200,
}


@pytest.fixture(scope="module")
def document():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schemas, "CEILINGS", SMALL)
        server = ServerSettings(host="0.0.0.0", open_to_all=True, max_characters=24, max_inputs=2)  # noqa: S104
        app = create_app(server)
    return schemathesis.openapi.from_asgi("/openapi.json", app)


ROUTES = ["translate", "caption", "recognize", "glimpse", "classify", "read", "tape", "align", "trust", "models"]
ROUTES += [f"translate/inspect{name}" for name in ("", "/beam", "/compare", "/gold")]
ROUTES += ["classify/without", "read/expected"]
ROUTES += [
    "glimpse/at",
    "tape/random",
    "tape/lengths",
    "convolution/table",
    "convolution/maps",
    "caption/hide",
    "caption/look",
]


def example_of(schema, parts):
    """A value that a schema gives as an example, fields that have a default left out; None where it gives none."""
    if "$ref" in schema:
        return example_of(parts[schema["$ref"].rpartition("/")[2]], parts)
    if "examples" in schema:
        return schema["examples"][0]
    for each in schema.get("anyOf", schema.get("oneOf", ())):
        if (found := example_of(each, parts)) is not None:
            return found
    if "properties" in schema:
        needed = [name for name in schema["properties"] if name in schema.get("required", ())]
        return {name: example_of(schema["properties"][name], parts) for name in needed}
    if schema.get("type") == "array":
        return [example_of(schema["items"], parts)]
    return schema.get("const")


def test_the_example_of_every_request_is_answered():
    with TestClient(create_app(), base_url="http://localhost") as client:
        found = client.get("/openapi.json").json()
        parts = found["components"]["schemas"]
        posted = {path: route["post"] for path, route in found["paths"].items() if "post" in route}
        assert len(posted) >= len(ROUTES) - 1
        for name in ("RandomTapeRequest", "LengthsRequest", "TableRequest"):
            assert any("examples" in each for each in parts[name]["properties"].values()), name
        for path, route in posted.items():
            body = example_of(route["requestBody"]["content"]["application/json"]["schema"], parts)
            answer = client.post(path, json=body)
            assert answer.status_code == 200, (path, body, answer.text)


@pytest.mark.filterwarnings("ignore::regard.errors.RegardWarning")  # of letters that a model cannot spell
@pytest.mark.parametrize("route", ROUTES)
def test_a_route_answers_as_it_is_documented(document, route):
    method = "GET" if route == "models" else "POST"
    operation = document[f"/v1/{route}"][method]

    @settings(max_examples=12, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def check(case):
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    check()
