import asyncio
import json
import threading
from pathlib import Path

import pytest
from asgi import asked, leaving, part, tag_body, until
from prometheus_client import generate_latest

from setrnn.serve import batching
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.server import PAGE, make_app
from setrnn.serve.settings import ServeSettings

MARKER = "zebrafish"  # a name, so that no source line in a traceback holds it


@pytest.fixture
def held(monkeypatch):
    """Hold up all tagging until `opened` is set; collect what is tagged."""

    class Held:
        begun, opened, texts = threading.Event(), threading.Event(), []

    tag = ServedModel.tag

    def wait(model, documents, *arguments):
        Held.begun.set()
        assert Held.opened.wait(10)
        Held.texts.extend(text for text, _ in documents)
        return tag(model, documents, *arguments)

    monkeypatch.setattr(ServedModel, "tag", wait)
    return Held


def queue_of(app):
    return app.state.service.batchers["recurrent"]


async def held_up(app, held):
    """Ask for a first text, which is under way and held up: what follows has to wait."""
    first = asyncio.create_task(asked(app, [part(tag_body("first"))]))
    await until(held.begun.is_set)
    return first


@pytest.mark.anyio
async def test_a_full_queue_answers_503_and_when_to_come_back(served, held):
    app = make_app(Registry.of(*served), ServeSettings(queue=2, batch_ms=0, workers=1))
    first = await held_up(app, held)
    waiting = asyncio.create_task(asked(app, [part(tag_body("a", "b"))]))
    await until(lambda: queue_of(app).n_waiting == 2)
    status, headers, body = await asked(app, [part(tag_body("c"))])
    assert status == 503
    assert 1 <= int(headers["retry-after"]) <= 30
    assert json.loads(body)["type"] == "urn:setrnn:problem:queue-full"
    held.opened.set()
    assert {status for status, _, _ in await asyncio.gather(first, waiting)} == {200}
    await queue_of(app).close()


@pytest.mark.anyio
async def test_a_request_whose_client_left_is_not_worked_on(served, held):
    app = make_app(Registry.of(*served), ServeSettings(batch_ms=0, workers=1))
    first = await held_up(app, held)
    await asked(app, [part(tag_body("gone")), leaving(after=0.05)])
    assert queue_of(app).n_waiting == 0
    held.opened.set()
    assert (await first)[0] == 200
    await queue_of(app).close()
    assert held.texts == ["first"]


def test_requests_at_once_share_a_batch_and_get_their_own_answers(
    served, held, test_texts, monkeypatch
):
    # The first text takes long, as it is held up: that must not make the next batch smaller.
    monkeypatch.setattr(batching, "BATCH_SECONDS", 1e9)
    app = make_app(Registry.of(*served), ServeSettings(batch_ms=0, workers=1))
    wanted = served[0].tagger.tag(test_texts[:12])

    async def run():
        first = await held_up(app, held)
        others = [
            asyncio.create_task(asked(app, [part(tag_body(each))])) for each in test_texts[:12]
        ]
        await until(lambda: queue_of(app).n_waiting == 12)
        held.opened.set()
        await first
        found = await asyncio.gather(*others)
        await queue_of(app).close()
        return [json.loads(body)["predictions"][0]["labels"] for _, _, body in found]

    assert asyncio.run(run()) == [list(each.labels) for each in wanted]
    page = generate_latest(app.state.service.metrics.registry).decode()
    assert 'setrnn_batch_documents_count{model="recurrent"} 2.0' in page
    assert 'setrnn_batch_documents_sum{model="recurrent"} 13.0' in page


@pytest.mark.anyio
async def test_what_fails_here_is_answered_500_without_a_word_of_it(
    served, monkeypatch, caplog, capfd
):
    def fail(model, documents, *arguments):
        raise RuntimeError(f"cannot tag {documents}")

    monkeypatch.setattr(ServedModel, "tag", fail)
    app = make_app(Registry.of(*served))
    status, _, body = await asked(app, [part(tag_body(MARKER))])
    await queue_of(app).close()
    assert status == 500
    assert json.loads(body)["type"] == "urn:setrnn:problem:internal"
    assert "failed: RuntimeError at test_app.py" in caplog.text
    out, err = capfd.readouterr()
    assert MARKER not in body.decode() + out + err + caplog.text


@pytest.mark.anyio
async def test_until_models_are_loaded_it_is_alive_but_not_ready():
    app = make_app(Registry({"later": Path("later")}))
    for path, wanted in (("/healthz", 200), ("/readyz", 503), ("/v1/models", 503)):
        status, headers, _ = await asked(app, [], path=path, method="GET")
        assert status == wanted
        assert ("retry-after" in headers) == (wanted == 503)
    status, headers, body = await asked(app, [part(tag_body("x"))])
    assert status == 503
    assert int(headers["retry-after"]) >= 1
    assert json.loads(body)["type"] == "urn:setrnn:problem:not-ready"


def test_metrics_name_routes_and_never_what_was_sent(client):
    client.get(f"/{MARKER}?query={MARKER}")
    client.get(f"/v1/labels?prefix={MARKER}")
    client.post("/v1/tag", json={"texts": [MARKER]})
    client.post("/v1/tag", json={"texts": ["x"], "model": MARKER})
    page = client.get("/metrics")
    assert page.headers["Content-Type"].startswith("text/plain")
    assert 'setrnn_requests_total{route="/v1/tag",status="200"}' in page.text
    assert 'setrnn_requests_total{route="other",status="404"}' in page.text
    assert 'setrnn_queue_documents{model="recurrent"} 0.0' in page.text
    assert 'setrnn_request_seconds_count{route="/v1/tag"}' in page.text
    assert MARKER not in page.text


def test_files_of_the_page_may_load_nothing_from_elsewhere(client):
    for path in ("/", *(f"/page/{file.name}" for file in PAGE.iterdir())):
        answer = client.get(path)
        assert answer.status_code == 200, path
        policy = dict(
            each.split(" ", 1) for each in answer.headers["Content-Security-Policy"].split("; ")
        )
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-cache"
