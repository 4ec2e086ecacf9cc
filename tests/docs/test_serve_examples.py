import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from setrnn.serve.app import make_app
from setrnn.serve.registry import Registry, ServedModel

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
POSTED = re.findall(r"localhost:8000(/v1/\w+) -H '([^']+)'[\s\\]+-d '([^']+)'", PAGE)
ASKED = re.findall(r"`GET (/[^`]+)`", PAGE)


@pytest.fixture(scope="module")
def client(taggers):
    model = ServedModel("set-rnn-0", "version", taggers["set-rnn"])
    with TestClient(make_app(Registry.of(model))) as client:
        yield client


@pytest.mark.parametrize(("path", "header", "body"), POSTED, ids=lambda value: value[:12])
def test_posted_examples_are_answered(client, path, header, body):
    name, value = header.split(": ")
    answer = client.post(path, content=json.dumps(json.loads(body)), headers={name: value})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", ASKED)
def test_asked_examples_are_answered(client, path):
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
