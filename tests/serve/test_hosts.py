import pytest


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
