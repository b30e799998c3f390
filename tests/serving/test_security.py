"""Who may ask the server, from where, and how much."""

import pytest
from starlette.testclient import TestClient

from regard.errors import OptionError
from regard.serving.app import create_app
from regard.serving.settings import ServerSettings


@pytest.fixture(scope="module")
def client():
    settings = ServerSettings(token="a-secret", max_body=1)  # noqa: S106
    with TestClient(create_app(settings), base_url="http://localhost") as made:
        yield made


ALLOWED = {"authorization": "Bearer a-secret"}


@pytest.mark.parametrize("given", [None, "Bearer wrong", "a-secret", "Basic a-secret", "Bearer ", "bearer a-secretx"])
def test_a_request_without_the_token_is_refused(client, given):
    answer = client.get("/v1/models", headers={} if given is None else {"authorization": given})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "models" not in answer.json()


def test_the_token_opens_every_route_and_health_is_open(client):
    assert client.get("/v1/models", headers=ALLOWED).status_code == 200
    assert client.get("/health").status_code == 200
    assert client.get("/metrics").status_code == 401


def test_only_local_names_reach_a_local_server(client):
    for host in ("localhost", "127.0.0.1:8017", "[::1]:8017"):
        assert client.get("/health", headers={"host": host}).status_code == 200
    for host in ("evil.test", "localhost.evil.test", "evil.test:8017", ""):
        assert client.get("/health", headers={"host": host}).status_code == 403


def test_pages_of_other_origins_are_refused(client):
    assert client.get("/v1/models", headers={**ALLOWED, "origin": "http://localhost"}).status_code == 200
    for origin in ("http://evil.test", "null", "http://localhost:9999", "http://[::1", "localhost", ""):
        answer = client.get("/v1/models", headers={**ALLOWED, "origin": origin})
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers


def test_large_bodies_are_refused_with_and_without_a_length(client):
    def chunks():
        for _ in range(40):
            yield b" " * 2**15

    assert client.post("/v1/translate", content=b" " * 2**21, headers=ALLOWED).status_code == 413
    assert client.post("/v1/translate", content=chunks(), headers=ALLOWED).status_code == 413


def test_every_answer_has_security_headers(client):
    for answer in (client.get("/health"), client.get("/v1/models"), client.get("/web/index.js", headers=ALLOWED)):
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get("/v1/models", headers=ALLOWED).headers["cache-control"] == "no-store"
    assert client.get("/docs", headers=ALLOWED).status_code == 404, "its page would load scripts from elsewhere"


def test_pages_and_their_files_need_no_token_and_nothing_else_is_open(client):
    for path in ("/", "/translate", "/pages/main.js", "/pages/pages.css", "/web/index.js"):
        assert client.get(path).status_code == 200, path
    for path in ("/openapi.json", "/pages", "/translate/", "/v1/models", "/webs/index.js", "//v1/models"):
        assert client.get(path).status_code == 401, path


def test_files_outside_of_the_workbench_are_not_served(client):
    for path in (
        "/web/../pages.py",
        "/web/%2e%2e/pages.py",
        "/web/..%2fpages.py",
        "/pages/../app.py",
        "/pages/..%2fapp.py",
    ):
        assert client.get(path, headers=ALLOWED).status_code == 404


def test_an_address_that_others_reach_needs_a_token():
    with pytest.raises(OptionError, match="other machines reach the server: set --token"):
        ServerSettings(host="0.0.0.0")  # noqa: S104
    assert not ServerSettings(host="0.0.0.0", token="x").is_local  # noqa: S104, S106
    assert not ServerSettings(host="0.0.0.0", open_to_all=True).is_local  # noqa: S104
    for host in ("localhost", "127.0.0.1", "::1"):
        assert ServerSettings(host=host).is_local
    with pytest.raises(OptionError, match="one word"):
        ServerSettings(token="two words")  # noqa: S106


@pytest.mark.parametrize("cors", ["https://a.test", "*"])
def test_pages_of_chosen_origins_may_use_the_server(cors):
    settings = ServerSettings(token="a-secret", cors=(cors,))  # noqa: S106
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        asked = {"origin": "https://a.test", "access-control-request-method": "POST"}
        allowed = client.options("/v1/translate", headers=asked | {"access-control-request-headers": "authorization"})
        assert allowed.status_code == 200
        for headers, status in ((ALLOWED, 200), ({}, 401)):
            answer = client.get("/v1/models", headers={**headers, "origin": "https://a.test"})
            assert answer.status_code == status
            assert answer.headers["access-control-allow-origin"] == cors
        other = client.get("/v1/models", headers={**ALLOWED, "origin": "https://b.test"})
        assert other.status_code == (200 if cors == "*" else 403)


@pytest.mark.parametrize("origin", ["a.test", "https://a.test/", "https://*.test", "", "null"])
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises(OptionError, match=r"--cors takes an origin such as https://example.org"):
        ServerSettings(cors=(origin,))


def test_the_token_is_read_from_a_file_or_from_the_environment(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("a-secret\n")
    assert ServerSettings(token_file=str(tmp_path / "token")).secret == "a-secret"  # noqa: S105
    monkeypatch.setenv("REGARD_TOKEN", "of-the-environment")
    settings = ServerSettings(host="0.0.0.0")  # noqa: S104
    assert settings.secret == "of-the-environment"  # noqa: S105
    with TestClient(create_app(settings)) as client:
        assert client.get("/v1/models").status_code == 401
        assert client.get("/v1/models", headers={"authorization": "Bearer of-the-environment"}).status_code == 200


@pytest.mark.parametrize(("content", "says"), [(None, "cannot be read from"), ("\n", "is empty"), ("a b", "one word")])
def test_a_file_without_a_token_is_explained(content, says, tmp_path):
    if content is not None:
        (tmp_path / "token").write_text(content)
    with pytest.raises(OptionError, match=says):
        ServerSettings(token_file=str(tmp_path / "token"))
    with pytest.raises(OptionError, match="not both"):
        ServerSettings(token="a", token_file=str(tmp_path / "token"))  # noqa: S106
