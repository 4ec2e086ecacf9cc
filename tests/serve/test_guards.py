"""Bodies, keys and host names; what is refused is in test_refused.py."""

import asyncio
import json

import pytest
from asgi import asked, leaving, part, tag_body, until

from setrnn.errors import ConfigError
from setrnn.serve.app import make_app
from setrnn.serve.registry import Registry
from setrnn.serve.settings import ApiKeys, ServeSettings

KEY, OTHER = "0123456789abcdef-one", "0123456789abcdef-two"
BODY = tag_body("x" * 60)


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


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n{OTHER}\n")
    return file


@pytest.fixture
def closed(client_of, file):
    return client_of(keys=ApiKeys(file))


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {KEY}"},
        {"Authorization": f"bearer {KEY}"},
        {"X-API-Key": KEY},
        {"X-API-Key": OTHER},
    ],
)
def test_a_key_opens(closed, headers):
    assert closed.post("/v1/tag", json={"texts": ["x"]}, headers=headers).status_code == 200
    assert closed.get("/metrics", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/healthz", "/readyz", "/openapi.json"])
def test_the_page_and_health_stay_open(closed, path):
    assert closed.get(path).status_code == 200


def test_the_description_says_which_paths_need_a_key(closed, client):
    described = closed.get("/openapi.json").json()
    assert set(described["components"]["securitySchemes"]) == {"bearer", "header"}
    assert described["paths"]["/v1/tag"]["post"]["security"]
    assert "401" in described["paths"]["/v1/tag"]["post"]["responses"]
    assert "security" not in described["paths"]["/healthz"]["get"]
    assert "securitySchemes" not in client.get("/openapi.json").json()["components"]


def test_keys_are_reloaded_or_stay(file):
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
        (f"{KEY} short{OTHER}", "not an API key"),
        (f"short{KEY}\N{SNOWMAN}", "not an API key"),
    ],
)
def test_a_file_without_good_keys_is_refused(tmp_path, content, said):
    if content is not None:
        (tmp_path / "keys").write_text(content)
    with pytest.raises(ConfigError, match=said) as refused:
        ApiKeys(tmp_path / "keys")
    assert "short" not in str(refused.value)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "  \n"])
def test_files_of_other_editors_are_read(tmp_path, ends):
    (tmp_path / "keys").write_bytes(f"\ufeff{KEY}{ends}{OTHER}{ends}".encode())
    keys = ApiKeys(tmp_path / "keys")
    assert keys.hold(KEY.encode())
    assert keys.hold(OTHER.encode())


@pytest.mark.parametrize(
    "host", ["", "LOCALHOST:8000", "localhost.", "127.0.0.1:80", "[::1]:80", "tags.example"]
)
def test_own_names_and_addresses_are_answered(client_of, host):
    client = client_of(hosts=["Tags.example"])
    assert client.get("/v1/models", headers={"Host": host}).status_code == 200


def test_any_name_is_answered_unless_names_are_given(client):
    assert client.get("/healthz", headers={"Host": "anything.example"}).status_code == 200
