"""Bodies that would take long to look at."""

import json
import time

import pytest

MANY = 500_000


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"texts": [1] * MANY}, "#/texts: At most 64 items, got 500,000."),
        ({"texts": [""] * MANY}, "#/texts: At most 64 items, got 500,000."),
        ({"texts": ["x"], "features": [[1] * 1_000] * 500}, "#/features: At most 64 items"),
        ({"texts": ["x"], "features": [[1] * 10_000] * 50}, "#/features/0"),
        ({"texts": ["x"], "require": [1] * MANY}, "#/require"),
        ({f"field {number}": 1 for number in range(MANY // 10)}, "may have 100 fields"),
    ],
)
def test_what_is_too_much_is_refused_without_a_look_at_each(client, body, said):
    content = json.dumps(body)
    start = time.process_time()
    answer = client.post("/v1/tag", content=content, headers={"Content-Type": "application/json"})
    assert time.process_time() - start < 1
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert len(answer.content) < 2_000


def test_a_compressed_body_is_refused_as_such(client):
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = client.post("/v1/tag", content=b"\x1f\x8b", headers=headers)
    assert answer.status_code == 415
    assert answer.json()["type"] == "urn:setrnn:problem:not-json-type"
