import asyncio
import json

import pytest
from asgi import asked, leaving, part, until

from setrnn.errors import ConfigError
from setrnn.serve.guards import ApiKeys, ReadBodies, count_values
from setrnn.serve.settings import ServeSettings

KEY, OTHER = "0123456789abcdef-one", "0123456789abcdef-two"
SETTINGS = ServeSettings(max_body_bytes=100, body_seconds=1)


class Echo:
    """An application that gives the body back, and remembers that it was asked."""

    def __init__(self):
        self.bodies = []

    async def __call__(self, scope, receive, send):
        message = await receive()
        assert not message["more_body"]
        self.bodies.append(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": message["body"]})


def answered(messages, headers=(), settings=SETTINGS):
    echo = Echo()
    limited = ReadBodies(echo, settings)
    status, found, body = asyncio.run(asked(limited, messages, headers))
    assert limited.n_held == 0
    return status, found, body, echo.bodies


def test_a_body_comes_in_one_piece():
    status, _, body, bodies = answered([part(b"a" * 60, True), part(b"b" * 40)])
    assert status == 200
    assert body == b"a" * 60 + b"b" * 40
    assert bodies == [body]


def test_a_body_that_is_not_json_is_not_read():
    async def run():
        echo = Echo()
        others = [(b"content-type", b"text/plain")]
        for headers in (others, [(b"content-encoding", b"gzip")]):
            found = await asked(ReadBodies(echo, SETTINGS), [part(b"", after=3600)], headers)
            assert found[0] == 415
        assert echo.bodies == []

    asyncio.run(run())


def test_a_body_that_says_it_is_too_large_is_not_read():
    status, headers, body, bodies = answered([part(b"", after=3600)], [(b"content-length", b"101")])
    assert status == 413
    assert headers["content-type"] == "application/problem+json"
    assert json.loads(body)["type"] == "urn:setrnn:problem:body-too-large"
    assert bodies == []


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"1")], [(b"content-length", b"x")]])
def test_a_body_that_turns_out_too_large_is_read_no_further(headers):
    parts = [part(b"a" * 60, True), part(b"b" * 41, True), part(b"", after=3600)]
    status, _, _, bodies = answered(parts, headers)
    assert status == 413
    assert bodies == []


def test_a_silent_client_is_not_waited_for():
    settings = ServeSettings(body_seconds=0.05)
    status, _, body, bodies = answered(
        [part(b"a", True), part(b"b", after=3600)], settings=settings
    )
    assert status == 408
    assert json.loads(body)["type"] == "urn:setrnn:problem:too-slow"
    assert bodies == []


def test_a_client_that_drips_is_not_waited_for_either():
    settings = ServeSettings(body_seconds=0.05)
    parts = [part(b"a", True, after=0.04) for _ in range(50)]
    status, _, _, bodies = answered(parts, settings=settings)
    assert status == 408
    assert bodies == []


def test_a_body_that_comes_too_slowly_is_not_waited_for_in_all():
    settings = ServeSettings(body_seconds=0.2)
    parts = [part(b"a", True, after=0.03) for _ in range(20)]
    status, _, _, bodies = answered([*parts, part(b"a")], settings=settings)
    assert status == 408
    assert bodies == []


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        ({"a": [1, "[{,:", {"b": None}], "c": 'x"]:, \\'}, (3, 3, 7)),
        (["\\", '\\"', '"[', "\\\\["] * 100, (0, 1, 401)),
        ('\\",[' * 1_000, (0, 0, 1)),
    ],
)
def test_values_are_counted_without_those_in_strings(value, counts):
    assert count_values(json.dumps(value).encode()) == counts


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'"x": [' + b"[]," * 30_000 + b"[]]", "10,064 lists and objects"),
        (b'"x": [' + b"[[[[[]]]]]," * 6_000 + b"[]]", "10,064 lists and objects"),
        (b'"x": {' + b",".join(b'"%d": 1' % each for each in range(9_000)) + b"}", "100 fields"),
        (b'"x": [' + b"1," * 700_000 + b"1]", "600,000 values"),
    ],
)
def test_a_body_of_many_small_values_is_not_parsed(content, said):
    body = b'{"texts": ["a"], ' + content + b"}"
    status, _, answer, bodies = answered([part(body)], settings=ServeSettings())
    assert status == 422
    assert f"A request may have {said}" in json.loads(answer)["detail"]
    assert bodies == []


def test_a_client_that_leaves_costs_nothing():
    status, _, _, bodies = answered([part(b"a", True), leaving()])
    assert status is None
    assert bodies == []


def test_all_bodies_together_are_bounded():
    async def run():
        echo = Echo()
        limited = ReadBodies(echo, SETTINGS)
        release = asyncio.Event()
        slow = [part(b"a" * 99, True), part(b"", after=release)]
        holding = [asyncio.create_task(asked(limited, slow)) for _ in range(16)]
        await until(lambda: limited.n_held == 16 * 99)
        status, headers, _ = await asked(limited, [part(b"a" * 50)])
        assert status == 503
        assert int(headers["retry-after"]) >= 1
        release.set()
        assert {status for status, _, _ in await asyncio.gather(*holding)} == {200}
        status, _, _ = await asked(limited, [part(b"a" * 50)])
        assert status == 200

    asyncio.run(run())


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
    assert closed.get("/v1/models", headers=headers).status_code == 200
    assert closed.post("/v1/tag", json={"texts": ["x"]}, headers=headers).status_code == 200
    assert closed.get("/metrics", headers=headers).status_code == 200


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
        {"X-API-Key": f"{KEY}\n{OTHER}".replace("\n", " ")},
    ],
)
@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/labels", "/metrics", "/nothing", "/page", "//page/x"]
)
def test_without_a_key_it_stays_closed(closed, headers, path):
    answer = closed.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["type"] == "urn:setrnn:problem:unauthorized"


def test_a_body_without_a_key_is_not_looked_at(closed):
    assert closed.post("/v1/tag", content=b"no JSON").status_code == 401


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
        ("", "has no API key"),
        (" \n ", "has no API key"),
        ("short", "fewer than 16"),
        (f"{KEY} short{OTHER}", "not an API key"),
        (f"short{KEY}\N{SNOWMAN}", "not an API key"),
    ],
)
def test_a_file_without_good_keys_is_refused(tmp_path, content, said):
    (tmp_path / "keys").write_text(content)
    with pytest.raises(ConfigError, match=said) as refused:
        ApiKeys(tmp_path / "keys")
    assert "short" not in str(refused.value)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n\n", "  \n"])
def test_files_of_other_editors_are_read(tmp_path, ends):
    (tmp_path / "keys").write_bytes(f"\ufeff{KEY}{ends}{OTHER}{ends}".encode())
    keys = ApiKeys(tmp_path / "keys")
    assert keys.hold(KEY.encode())
    assert keys.hold(OTHER.encode())


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        ApiKeys(tmp_path / "none")


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8000",
        "localhost.",
        "127.0.0.1",
        "127.0.0.1:80",
        "[::1]:80",
        "tags.example",
    ],
)
def test_own_names_and_addresses_are_answered(client_of, host):
    client = client_of(hosts=["Tags.example"])
    assert client.get("/v1/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil"]
)
@pytest.mark.parametrize("path", ["/v1/models", "/", "/healthz"])
def test_a_name_that_another_site_led_here_is_refused(client_of, host, path):
    client = client_of(hosts=["tags.example"])
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 421
    assert answer.json()["type"] == "urn:setrnn:problem:other-host"


def test_names_are_nothing_to_it_unless_told(client):
    assert client.get("/healthz", headers={"Host": "anything.example"}).status_code == 200
