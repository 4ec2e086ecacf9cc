import pytest

from setrnn.errors import ConfigError
from setrnn.serve.keys import ApiKeys

KEY, OTHER = "0123456789abcdef-one", "0123456789abcdef-two"


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
@pytest.mark.parametrize("path", ["/v1/models", "/v1/labels", "/metrics", "/nothing"])
def test_without_a_key_it_stays_closed(closed, headers, path):
    answer = closed.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["type"] == "urn:setrnn:problem:unauthorized"


def test_a_body_without_a_key_is_not_looked_at(closed):
    assert closed.post("/v1/tag", content=b"no JSON").status_code == 401


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/openapi.json"])
def test_the_page_and_health_stay_open(closed, path):
    assert closed.get(path).status_code == 200


def test_the_description_says_which_paths_need_a_key(closed, client):
    described = closed.get("/openapi.json").json()
    assert set(described["components"]["securitySchemes"]) == {"bearer", "header"}
    assert described["paths"]["/v1/tag"]["post"]["security"]
    assert "401" in described["paths"]["/v1/tag"]["post"]["responses"]
    assert "security" not in described["paths"]["/healthz"]["get"]
    assert "securitySchemes" not in client.get("/openapi.json").json()["components"]


def test_keys_are_read_anew_or_stay(file):
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
        (f"{KEY} short{OTHER}", "no API key"),
        (f"short{KEY}\N{SNOWMAN}", "no API key"),
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
