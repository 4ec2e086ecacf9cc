"""The requests of docs/serve.md and docs/label-studio.md are answered."""

import re

import pytest
from doc_pages import ROOT, list_blocks, posted
from fastapi.testclient import TestClient

from setrnn.cli.app import load_command
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.server import make_app
from setrnn.serve.settings import ServeSettings

PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
ASKED = re.findall(r"`GET (/[^`]+)`", PAGE)
CURLS = [
    words
    for page in ("docs/serve.md", "docs/label-studio.md")
    for block in list_blocks(page)
    for _, words in block.commands
    if words[0] == "curl" and any(each.startswith("localhost:8000/") for each in words)
]


@pytest.fixture(scope="module")
def client(taggers):
    registry = Registry.of(ServedModel("set-rnn-0", "version", taggers["set-rnn"]))
    app = make_app(registry, ServeSettings(label_studio=True))
    with TestClient(app, "http://localhost") as client:
        yield client


@pytest.mark.parametrize("curl", CURLS, ids=lambda words: posted(words)["url"])
def test_examples_of_curl_are_answered(client, curl):
    answer = client.request(**posted(curl))
    assert answer.status_code == 200, answer.text
    if answer.request.url.path == "/predict":  # only what is a choice of the project
        for tag in answer.json()["results"][0]["result"]:
            assert {*tag["value"]["choices"]} <= {"sport", "weather"}


@pytest.mark.parametrize("path", ASKED)
def test_paths_of_the_table_are_answered(client, path):
    answer = client.get(path)
    assert answer.status_code == 200, answer.text


def test_every_option_is_on_the_page():
    options = {name for each in load_command("serve").params for name in each.opts}
    assert [each for each in options if each.startswith("--") and f"`{each}" not in PAGE] == []
