"""Requests to an ASGI application from clients that are slow or disconnect."""

import asyncio
import json


def scope_of(path, method, headers):
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [*{b"content-type": b"application/json", **dict(headers)}.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


async def asked(app, messages, headers=(), path="/v1/tag", method="POST"):
    """Send messages, each after seconds or an event; return the status, headers and body."""
    sent, pending = [], list(messages)

    async def receive():
        if not pending:
            await asyncio.Event().wait()  # for ever
        after, message = pending.pop(0)
        await (after.wait() if isinstance(after, asyncio.Event) else asyncio.sleep(after))
        return message

    async def send(message):
        sent.append(message)

    await app(scope_of(path, method, headers), receive, send)
    if not sent:
        return None, {}, b""
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent[1:])


def part(body, more=False, after=0.0):
    return after, {"type": "http.request", "body": body, "more_body": more}


def leaving(after=0.0):
    return after, {"type": "http.disconnect"}


def tag_body(*texts):
    return json.dumps({"texts": texts or ["x"]}).encode()


async def until(claim):
    """Wait until a claim is true."""
    for _ in range(1000):
        if claim():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came true")
