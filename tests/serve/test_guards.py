"""What a request must pass: its form and limits, the host name, and the API key."""

import asyncio
import base64
import json
import time

import pytest
from asgi import asked, leaving, part, tag_body, until
from fastapi.testclient import TestClient

from setrnn.errors import ConfigError
from setrnn.serve.guard import OPEN_PATHS
from setrnn.serve.registry import Registry
from setrnn.serve.server import make_app
from setrnn.serve.settings import ApiKeys, ServeSettings

KEY, OTHER = "0123456789abcdef-one", "0123456789abcdef-two"
BODY = tag_body("x" * 60)
TAG, COMPLETE, EXPLAIN = "/v1/tag", "/v1/complete", "/v1/explain"
MANY = 500_000


def tag(**changes):
    return {"texts": ["x"], **changes}


# The path, the body, the status, the kind of problem, and what its detail says.
REFUSED = {
    "no JSON": (TAG, b"{", 400, "bad-json", ""),
    "not UTF-8": (TAG, b'{"texts": ["\xff"]}', 400, "", ""),
    "no body": (TAG, b"", 400, "bad-json", ""),
    "no object": (TAG, b"[1]", 422, "invalid", ""),
    "deep": (TAG, b"[" * 10_000, 400, "", ""),
    "very deep": (TAG, b"[" * 100_000, 422, "invalid", "10,064 fields, lists and objects"),
    "long number": (TAG, b'{"top": ' + b"1" * 5_000 + b"}", 400, "", ""),
    "no texts": (TAG, {"texts": []}, 422, "invalid", "#/texts"),
    "a text": (TAG, {"texts": "marker"}, 422, "invalid", "#/texts"),
    "a number": (TAG, {"texts": [1]}, 422, "invalid", "#/texts/0"),
    "a string for a number": (TAG, tag(top="1"), 422, "invalid", "#/top"),
    "true for a number": (TAG, tag(top=True), 422, "invalid", "#/top"),
    "no top": (TAG, tag(top=0), 422, "invalid", "#/top"),
    "a large top": (TAG, tag(top=51), 422, "invalid", "#/top"),
    "no such field": (TAG, tag(marker=1), 422, "invalid", "#/marker"),
    "no such model": (TAG, tag(model="marker"), 422, "invalid", "No model"),
    "a model nearly": (TAG, tag(model="recurent"), 422, "invalid", "Did you mean 'recurrent'?"),
    "a rule nearly": (TAG, tag(rule="sequenc"), 422, "invalid", "Did you mean 'sequence'?"),
    "required nearly": (TAG, tag(require=["footbal"]), 422, "invalid", "mean 'football'?"),
    "forbidden nearly": (TAG, tag(forbid=["footbal"]), 422, "invalid", "mean 'football'?"),
    "features of no text": (TAG, tag(features=[]), 422, "invalid", "0 rows of features"),
    "no possible set": (TAG, tag(min_labels=3, max_labels=2), 422, "invalid", ""),
    "many texts": (TAG, {"texts": ["x"] * 65}, 422, "invalid", "may have 64 texts, got 65"),
    "a long text": (COMPLETE, {"text": "marker " * 10_001}, 422, "invalid", "10,001"),
    "a long word": (COMPLETE, {"text": "\u6587" * 330_000}, 422, "invalid", "10,312"),
    "present nearly": (COMPLETE, {"text": "x", "present": ["footbal"]}, 422, "invalid", "football"),
    "present and absent": (
        COMPLETE,
        {"text": "x", "present": ["sport"], "absent": ["sport"]},
        422,
        "invalid",
        "both",
    ),
    "a set and a rule": (EXPLAIN, {"text": "x", "labels": [], "rule": "set"}, 422, "invalid", ""),
    "no list": (EXPLAIN, {"text": "x", "labels": "football"}, 422, "invalid", "#/labels"),
    "explained nearly": (EXPLAIN, {"text": "x", "labels": ["footbal"]}, 422, "invalid", "football"),
    # Too much of something is refused without a look at each.
    "many numbers": (TAG, {"texts": [1] * MANY}, 422, "invalid", "#/texts/0"),
    "many empty texts": (TAG, {"texts": [""] * MANY}, 422, "invalid", "64 texts, got 500,000."),
    "many accents": (TAG, {"texts": ["é"] * 250_000}, 422, "invalid", "64 texts, got 250,000."),
    "many features": (TAG, tag(features=[[1] * 1_000] * 500), 422, "invalid", "#/features/0/0"),
    "many rows": (TAG, tag(features=[["a"] * 1_000] * 500), 422, "invalid", "500 rows"),
    "a long row": (TAG, tag(features=[[1] * 10_000] * 50), 422, "invalid", "#/features/0"),
    "much required": (TAG, tag(require=[1] * MANY), 422, "invalid", "#/require"),
    "many fields": (TAG, {f"field {n}": 1 for n in range(50_000)}, 422, "invalid", "10,064 fields"),
    "some fields": (TAG, {f"f{n}": 1 for n in range(5_000)}, 422, "invalid", "5,000 more errors"),
    "many lists": (TAG, b'{"x": [' + b"[]," * 30_000 + b"[]]}", 422, "invalid", "10,064 fields"),
    "many values": (TAG, b'{"texts": [' + b"1," * 700_000 + b"1]}", 422, "invalid", "#/texts/0"),
    "a large body": (TAG, b" " * (5 << 20), 413, "body-too-large", "4,194,304 bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_requests_are_refused_in_one_form(client, name):
    path, body, status, kind, said = REFUSED[name]
    content = body if isinstance(body, bytes) else json.dumps(body)
    start = time.process_time()
    answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert time.process_time() - start < 1
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["title"]
    assert problem["type"].startswith(f"urn:setrnn:problem:{kind}")
    assert problem["detail"]
    assert said in problem["detail"]
    assert "marker" not in problem["detail"].replace("#/marker", "")
    assert len(answer.content) < 2_500


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "kind"),
    [
        ("GET", "/nothing", {}, 404, "not-found"),
        ("GET", "/v1/tag/", {}, 404, "not-found"),
        ("GET", "/page/../../app.py", {}, 404, "not-found"),
        ("GET", "/page/%2e%2e/app.py", {}, 404, "not-found"),
        ("GET", "/v1/tag", {}, 405, "method-not-allowed"),
        ("TRACE", "/v1/tag", {}, 405, "method-not-allowed"),
        ("POST", "/v1/tag", {"Content-Type": "text/plain"}, 415, "not-json-type"),
        ("POST", "/v1/tag", {"Content-Encoding": "gzip"}, 415, "not-json-type"),
        ("GET", "/v1/labels?limit=0", {}, 422, "invalid"),
    ],
)
def test_bad_heads_are_refused_in_one_form(client, method, path, headers, status, kind):
    headers = {"Content-Type": "application/json", **headers}
    answer = client.request(method, path, content=b'{"texts": ["x"]}', headers=headers)
    assert answer.status_code == status
    assert answer.json()["type"] == f"urn:setrnn:problem:{kind}"
    assert (answer.headers.get("Allow") == "POST") == (status == 405)


def test_limits_of_the_service_can_be_set(served):
    settings = ServeSettings(max_texts=70, max_words=5)
    with TestClient(make_app(Registry.of(*served), settings)) as client:
        for texts, status in (
            (["x"] * 70, 200),
            (["x"] * 71, 422),
            (["a b c d e"], 200),
            (["x", "a b c d e f"], 422),
        ):
            assert client.post("/v1/tag", json={"texts": texts}).status_code == status


def answered(served, *messages, headers=()):
    app = make_app(Registry.of(*served), ServeSettings(max_body_bytes=100))

    async def run():
        found = await asked(app, messages, headers)
        await app.state.service.batchers["recurrent"].close()
        return found

    status, _, body = asyncio.run(run())
    assert app.state.service.n_held == 0
    return status, body


def test_a_body_in_parts_is_read(served):
    status, body = answered(served, part(BODY[:9], True), part(BODY[9:50], True), part(BODY[50:]))
    assert status == 200
    assert len(json.loads(body)["predictions"]) == 1


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("content-type", "text/plain", 415),
        ("content-encoding", "gzip", 415),
        ("content-length", "101", 413),
    ],
)
def test_a_body_that_its_head_rules_out_is_not_read(served, name, value, status):
    headers = [(name.encode(), value.encode())]
    assert answered(served, part(b"", after=3600), headers=headers)[0] == status


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"1")], [(b"content-length", b"x")]])
def test_a_body_that_turns_out_too_large_is_read_no_further(served, headers):
    parts = [part(b"a" * 60, True), part(b"b" * 41, True), part(b"", after=3600)]
    assert answered(served, *parts, headers=headers)[0] == 413


def test_a_client_that_leaves_costs_nothing(served):
    assert answered(served, part(b"a", True), leaving()) == (499, b"")  # nobody receives it


@pytest.mark.anyio
async def test_all_bodies_together_are_bounded(served):
    app = make_app(Registry.of(*served), ServeSettings(max_body_bytes=100))
    release = asyncio.Event()
    slow = [part(b" " * (99 - len(BODY)), True), part(BODY, True), part(b"", after=release)]
    holding = [asyncio.create_task(asked(app, slow)) for _ in range(16)]
    await until(lambda: app.state.service.n_held == 16 * 99)
    status, headers, _ = await asked(app, [part(BODY)])
    assert status == 503
    assert int(headers["retry-after"]) >= 1
    release.set()
    assert {status for status, _, _ in await asyncio.gather(*holding)} == {200}
    assert (await asked(app, [part(BODY)]))[0] == 200
    await app.state.service.batchers["recurrent"].close()


def basic(key):
    return f"Basic {base64.b64encode(f'anyone:{key}'.encode()).decode()}"


def write_keys(folder):
    (folder / "keys").write_text(f"{KEY}\n{OTHER}\n")
    return folder / "keys"


@pytest.fixture(scope="module")
def closed(served, tmp_path_factory):
    """A client of an application that asks for a key."""
    keys = ApiKeys(write_keys(tmp_path_factory.mktemp("keys")))
    with TestClient(make_app(Registry.of(*served), keys=keys)) as client:
        yield client


@pytest.fixture(scope="module")
def local(served):
    """A client of an application for this machine and one other name."""
    with TestClient(make_app(Registry.of(*served), hosts=["Tags.example"])) as client:
        yield client


@pytest.mark.parametrize(
    ("headers", "is_open"),
    [
        ({"Authorization": f"Bearer {KEY}"}, True),
        ({"Authorization": f"bearer {KEY}"}, True),
        ({"X-API-Key": KEY}, True),
        ({"X-API-Key": OTHER}, True),
        ({}, False),
        ({"Authorization": KEY}, False),
        ({"Authorization": basic(KEY)}, True),  # Label Studio has no other way
        ({"Authorization": basic("wrong")}, False),
        ({"Authorization": f"Basic {KEY}"}, False),
        ({"Authorization": "Basic %%%"}, False),
        ({"Authorization": "Bearer "}, False),
        ({"X-API-Key": ""}, False),
        ({"X-API-Key": KEY[:-1]}, False),
        ({"X-API-Key": KEY + "x"}, False),
    ],
)
@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/nothing", "/page", "//page/x"])
def test_only_a_key_opens(closed, headers, is_open, path):
    answer = closed.get(path, headers=headers)
    assert (answer.status_code != 401) == is_open
    if not is_open:
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.json()["type"] == "urn:setrnn:problem:unauthorized"


def test_without_a_key_the_page_and_health_are_open_and_no_body_is_read(closed):
    for path in ("/", "/page/page.js", *OPEN_PATHS):
        assert closed.get(path).status_code == 200
    assert closed.post("/v1/tag", content=b"no JSON").status_code == 401


def test_the_description_says_which_paths_need_a_key(closed, client):
    described = closed.get("/openapi.json").json()
    assert set(described["components"]["securitySchemes"]) == {"bearer", "header"}
    assert described["paths"]["/v1/tag"]["post"]["security"]
    assert "security" not in described["paths"]["/healthz"]["get"]
    assert "securitySchemes" not in client.get("/openapi.json").json()["components"]


def test_keys_are_reloaded_or_stay(tmp_path):
    file = write_keys(tmp_path)
    keys = ApiKeys(file)
    file.write_text(OTHER)
    keys.load()
    assert not keys.hold(KEY.encode())
    assert keys.hold(OTHER.encode())
    file.write_text("")
    with pytest.raises(ConfigError):
        keys.load()
    assert keys.hold(OTHER.encode())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("", "has no API key"),
        (" \n ", "has no API key"),
        ("short", "fewer than 16"),
        (f"{KEY} short", "fewer than 16"),
        (f"short{KEY}\N{SNOWMAN}", "not of ASCII"),
    ],
)
def test_a_file_without_good_keys_is_refused(tmp_path, content, said):
    if content is not None:
        (tmp_path / "keys").write_text(content)
    with pytest.raises(ConfigError, match=said) as refused:
        ApiKeys(tmp_path / "keys")
    assert "short" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("", 200),
        ("LOCALHOST:8000", 200),
        ("localhost.", 200),
        ("127.0.0.1:80", 200),
        ("[::1]:80", 200),
        ("tags.example", 200),
        ("evil.example", 421),
        ("evil.example:8000", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil", 421),
    ],
)
@pytest.mark.parametrize("path", ["/v1/models", "/", "/healthz"])
def test_a_name_that_another_site_led_here_is_refused(local, host, status, path):
    answer = local.get(path, headers={"Host": host})
    assert answer.status_code == status
    assert status == 200 or answer.json()["type"] == "urn:setrnn:problem:other-host"
