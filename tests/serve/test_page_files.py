import pytest

from setrnn.serve.page_files import page_paths


@pytest.mark.parametrize("path", sorted(page_paths()))
def test_files_of_the_page_may_load_nothing_from_elsewhere(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    policy = dict(
        each.split(" ", 1) for each in answer.headers["Content-Security-Policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-cache"


def test_a_file_that_has_not_changed_is_not_sent_again(client):
    first = client.get("/")
    assert first.headers["Content-Type"].startswith("text/html")
    again = client.get("/", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304
    assert again.content == b""
    assert client.get("/", headers={"If-None-Match": '"other"'}).status_code == 200
