"""The requests that the service refuses: each in one form, with a reason and without the text."""

import json
import time

import pytest

from setrnn.serve.json_route import count_nested
from setrnn.serve.settings import ApiKeys, ServeSettings

TAG, COMPLETE, EXPLAIN = "/v1/tag", "/v1/complete", "/v1/explain"
MANY = 500_000
KEY = "0123456789abcdef-one"


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
    "some fields": (TAG, {f"f{n}": 1 for n in range(5_000)}, 422, "invalid", "5000 more"),
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


def test_every_place_that_is_wrong_is_named(client):
    answer = client.post("/v1/tag", json={"texts": ["x", 2], "top": 0, "tops": 1}).json()
    places = {each["pointer"] for each in answer["errors"]}
    assert places == {"#/texts/1", "#/top", "#/tops"}


def test_limits_of_the_service_can_be_set(client_of):
    client = client_of(settings=ServeSettings(max_texts=70, max_words=5))
    for texts, status in (
        (["x"] * 70, 200),
        (["x"] * 71, 422),
        (["a b c d e"], 200),
        (["x", "a b c d e f"], 422),
    ):
        assert client.post("/v1/tag", json={"texts": texts}).status_code == status
    texts = client.get("/openapi.json").json()["components"]["schemas"]["TagRequest"]
    assert texts["properties"]["texts"]["maxItems"] == 70


@pytest.mark.parametrize(
    ("value", "n_nested"),
    [
        ({"a": [1, "[{,:", {"b": None}], "c": 'x"]:, \\'}, 6),
        (["\\", '\\"', '"[', "\\\\["] * 100, 1),
        ('\\",[' * 1_000, 0),
    ],
)
def test_fields_and_lists_are_counted_without_those_in_strings(value, n_nested):
    assert count_nested(json.dumps(value).encode()) == n_nested


@pytest.fixture
def closed(client_of, tmp_path):
    (tmp_path / "keys").write_text(KEY)
    return client_of(keys=ApiKeys(tmp_path / "keys"))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": KEY},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": "Bearer "},
        {"X-API-Key": ""},
        {"X-API-Key": KEY[:-1]},
        {"X-API-Key": KEY + "x"},
    ],
)
@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/nothing", "/page", "//page/x"])
def test_without_a_key_it_stays_closed(closed, headers, path):
    answer = closed.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["type"] == "urn:setrnn:problem:unauthorized"


def test_a_body_without_a_key_is_not_looked_at(closed):
    assert closed.post("/v1/tag", content=b"no JSON").status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil"]
)
@pytest.mark.parametrize("path", ["/v1/models", "/", "/healthz"])
def test_a_name_that_another_site_led_here_is_refused(client_of, host, path):
    client = client_of(hosts=["tags.example"])
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 421
    assert answer.json()["type"] == "urn:setrnn:problem:other-host"
