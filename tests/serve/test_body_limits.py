import asyncio
import json

import pytest
from asgi import asked, leaving, part

from setrnn.serve.limits import LimitBodies
from setrnn.serve.settings import ServeSettings

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
    limited = LimitBodies(echo, settings)
    status, found, body = asyncio.run(asked(limited, messages, headers))
    assert limited.n_held == 0
    return status, found, body, echo.bodies


def test_a_body_comes_in_one_piece():
    status, _, body, bodies = answered([part(b"a" * 60, True), part(b"b" * 40)])
    assert status == 200
    assert body == b"a" * 60 + b"b" * 40
    assert bodies == [body]


def test_a_body_that_says_it_is_too_large_is_not_read():
    status, headers, body, bodies = answered([part(b"", after=3600)], [(b"content-length", b"101")])
    assert status == 413
    assert headers["content-type"] == "application/problem+json"
    assert headers["connection"] == "close"
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


def test_a_client_that_leaves_costs_nothing():
    status, _, _, bodies = answered([part(b"a", True), leaving()])
    assert status is None
    assert bodies == []


def test_all_bodies_together_are_bounded():
    async def run():
        echo = Echo()
        limited = LimitBodies(echo, SETTINGS)
        slow = [part(b"a" * 99, True), part(b"", after=0.5)]
        holding = [asyncio.create_task(asked(limited, slow)) for _ in range(16)]
        await asyncio.sleep(0.1)
        status, headers, _ = await asked(limited, [part(b"a" * 50)])
        assert status == 503
        assert int(headers["retry-after"]) >= 1
        assert {status for status, _, _ in await asyncio.gather(*holding)} == {200}
        status, _, _ = await asked(limited, [part(b"a" * 50)])
        assert status == 200

    asyncio.run(run())
