"""The requests that Label Studio sends, as its connector writes them, and the answers it reads."""

import asyncio
import json
import time
from html import escape

import pytest
from asgi import asked as raw_asked
from asgi import part
from fastapi.testclient import TestClient

from setrnn.errors import DataError
from setrnn.serve.label_studio import choose_tag
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.server import make_app
from setrnn.serve.settings import ApiKeys, ServeSettings
from setrnn.systems.limits import Limits

TEXT = "The draft budget: raining clubs matched the police budget's film."
KEY = "0123456789abcdef"
SETTINGS = ServeSettings(label_studio=True, max_texts=80)


def config_of(labels, choice="multiple", name="topics", value="$body"):
    tags = "".join(f'<Choice value="{escape(each)}"/>' for each in labels)
    return (
        f'<View><Header value="Tag it"/><Text name="text" value="{value}"/>'
        f'<Choices name="{name}" toName="text" choice="{choice}" showInline="true">{tags}'
        "</Choices></View>"
    )


def asked(config, *texts, field="body"):
    """A request as the connector of Label Studio makes it."""
    return {
        "tasks": [
            {
                "id": number,
                "data": {field: text, "source": "a.csv"},
                "annotations": [],
                "predictions": [],
            }
            for number, text in enumerate(texts, 1)
        ],
        "model_version": "undefined",
        "project": "7.1718754346",
        "label_config": config,
        "params": {"login": None},
    }


@pytest.fixture(scope="module")
def tagger(taggers):
    return taggers["br"]


@pytest.fixture(scope="module")
def backend(tagger):
    registry = Registry.of(ServedModel("news", "version", tagger))
    with TestClient(make_app(registry, SETTINGS)) as client:
        yield client


def test_setup_health_and_versions_name_the_model(backend, tagger):
    assert backend.get("/health").json()["status"] == "UP"
    body = {
        "project": "7.1718754346",
        "schema": config_of(tagger.labels.names),
        "hostname": "http://localhost:8080",
        "access_token": "secret",
        "extra_params": None,
    }
    assert backend.post("/setup", json=body).json() == {"model_version": "news-version"}
    assert backend.post("/setup", json={"project": "1"}).status_code == 200
    assert backend.post("/versions", json={}).json() == {"versions": ["news-version"]}


def test_predictions_are_choices_with_the_probability_of_the_set(backend, tagger, test_texts):
    texts = (TEXT, "", *test_texts[:8])
    answer = backend.post("/predict", json=asked(config_of(tagger.labels.names), *texts))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["model_version"] == "news-version"
    for each, wanted in zip(found["results"], tagger.tag(texts), strict=True):
        assert each["score"] == pytest.approx(wanted.probability, rel=1e-4)
        assert each["model_version"] == "news-version"
        if not wanted.labels:
            assert each["result"] == []
            continue
        (result,) = each["result"]
        assert result == {
            "from_name": "topics",
            "to_name": "text",
            "type": "choices",
            "value": {"choices": list(wanted.labels)},
        }


@pytest.mark.parametrize("choice", ["multiple", "single", "single-radio"])
def test_only_choices_of_the_project_are_proposed(backend, tagger, choice, test_texts):
    names = tagger.labels.names[:6]
    texts = test_texts[:6]
    found = backend.post("/predict", json=asked(config_of([*names, "new"], choice), *texts)).json()
    limits = Limits(
        max_labels=None if choice == "multiple" else 1, forbidden=tagger.labels.names[6:]
    )
    wanted = tagger.tag(texts, limits=limits)
    for each, own in zip(found["results"], wanted, strict=True):
        chosen = each["result"][0]["value"]["choices"] if each["result"] else []
        assert chosen == list(own.labels)


def test_many_tasks_with_many_fields_are_read(backend, tagger):
    body = asked(config_of(tagger.labels.names), *[TEXT * 20] * 80)
    assert backend.post("/predict", json=body).status_code == 200
    body = asked(config_of(tagger.labels.names), *[TEXT] * 81)
    answer = backend.post("/predict", json=body)
    assert (answer.status_code, "80 texts" in answer.json()["detail"]) == (422, True)


@pytest.mark.parametrize("path", ["/train", "/webhook"])
def test_training_and_events_are_ignored_politely(backend, path):
    event = {"action": "ANNOTATION_CREATED", "project": {"id": 7}, "annotation": {"result": []}}
    answer = backend.post(path, json=event)
    assert (answer.status_code, answer.json()["status"]) == (200, "ignored")
    assert "setrnn update" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label_config": "<View>"}, "not XML"),
        ({"label_config": '<!DOCTYPE x [<!ENTITY a "b">]><View>&a;</View>'}, "document type"),
        ({"label_config": '<!DOCTYPE x SYSTEM "file:///etc/passwd"><View/>'}, "document type"),
        ({"label_config": "<View/>"}, "Choices"),
        ({"label_config": config_of(["other"])}, "label of the model"),
        ({"label_config": config_of(["sport"], value="$title")}, "data/title"),
        ({"label_config": None}, "label_config"),
        ({"tasks": []}, "tasks"),
        ({"tasks": None}, "tasks"),
        ({"tasks": [{"id": 3}]}, "tasks/0/data"),
        ({"tasks": [{"data": {"body": 5}}]}, "tasks/0/data/body"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_reason(backend, change, said):
    body = {**asked(config_of(["sport"]), TEXT), **change}
    answer = backend.post("/predict", json=body)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert "budget" not in answer.text
    if isinstance(config := change.get("label_config"), str) and "title" not in config:
        assert backend.post("/setup", json={"schema": config}).json() == answer.json()


def test_the_interface_of_the_model_can_be_asked_for(backend, tagger):
    found = backend.get("/label-config")
    tag = choose_tag(found.text, ())
    assert tuple(tag.choices) == tagger.labels.names
    assert (tag.text_field, tag.is_single) == ("text", False)
    body = asked(found.text, TEXT, field="text")
    assert backend.post("/predict", json=body).status_code == 200


def test_the_tag_with_the_labels_of_the_model_is_answered():
    config = (
        '<View><Text name="a" value="$title"/><Text name="b" value="$u" valueType="url"/>'
        '<Choices name="mood" toName="a"><Choice value="good"/></Choices>'
        '<Choices name="far" toName="b"><Choice value="sport"/></Choices>'
        '<Choices name="topics" toName="a" choice="multiple">'
        '<Choice value="Sport!" alias="sport"/><Choice value="x"/></Choices></View>'
    )
    tag = choose_tag(config, {"sport"})
    assert (tag.name, tag.text_field, tag.choices) == ("topics", "title", ["sport", "x"])
    assert choose_tag(config, {"other"}).name == "mood"


@pytest.mark.parametrize("path", ["/setup", "/predict"])
def test_a_large_interface_takes_linear_time_while_others_are_answered(tagger, path):
    tags = '<Choices name="c" toName="t"/>' * 50_000
    config = f'<View><Text name="t" value="$body"/>{tags}</View>'
    app = make_app(Registry.of(ServedModel("news", "version", tagger)), SETTINGS)

    async def run():
        body = json.dumps({"schema": config, **asked(config, TEXT)}).encode()
        reading = asyncio.create_task(raw_asked(app, [part(body)], path=path))
        n_answers = 0
        while not reading.done():
            await raw_asked(app, [], path="/healthz", method="GET")
            await asyncio.sleep(0.001)
            n_answers += 1
        assert (await reading)[0] == 200
        await app.state.service.batchers["news"].close()
        return n_answers

    start = time.process_time()
    assert asyncio.run(run()) > 3  # one or two, if the event loop were busy
    assert time.process_time() - start < 5


@pytest.mark.parametrize("config", ["<View>" * 100_000, "x" * 3_000_000], ids=["deep", "long"])
def test_the_size_and_depth_of_an_interface_are_bounded(config):
    with pytest.raises(DataError, match="has more than"):
        choose_tag(config, ())


def test_the_guards_of_the_service_apply(tagger, tmp_path):
    (tmp_path / "keys").write_text(KEY)
    registry = Registry.of(ServedModel("news", "version", tagger))
    body = asked(config_of(["sport"]), TEXT)
    with TestClient(make_app(registry, SETTINGS, ApiKeys(tmp_path / "keys"))) as client:
        assert client.get("/health").status_code == 200
        for path in ("/predict", "/setup", "/train", "/webhook", "/versions"):
            assert client.post(path, json=body).status_code == 401
        assert client.get("/label-config").status_code == 401
        headers = {"X-API-Key": KEY}
        assert client.post("/predict", json=body, headers=headers).status_code == 200
        assert client.post("/predict", content=b"x", headers=headers).status_code == 415


def test_without_the_option_there_are_no_such_routes(tagger):
    with TestClient(make_app(Registry.of(ServedModel("news", "version", tagger)))) as client:
        for path in ("/health", "/label-config"):
            assert client.get(path).status_code == 404
        assert client.post("/predict", json={}).status_code == 404
        assert "/predict" not in client.get("/openapi.json").json()["paths"]


@pytest.mark.parametrize("choice", ["multiple", "single"])
def test_choices_whose_parents_the_project_lacks_are_proposed(tagger, test_texts, choice):
    labels = tagger.labels.names
    tree = tagger.with_hierarchy({label: [labels[0]] for label in labels[1:]})
    assert tree.keeps_closed
    asks = asked(config_of(labels[choice == "multiple" :], choice), *test_texts[:20])
    with TestClient(make_app(Registry.of(ServedModel("tree", "1", tree)), SETTINGS)) as client:
        results = client.post("/predict", json=asks).json()["results"]
    chosen = {label for each in results if each["result"] for label in choices_of(each)}
    assert chosen & set(labels[1:])


def choices_of(prediction):
    return prediction["result"][0]["value"]["choices"]


def test_an_empty_cell_is_an_empty_text_and_a_missing_field_is_refused(backend, tagger):
    config = config_of(tagger.labels.names)
    answers = [backend.post("/predict", json=asked(config, text)).json() for text in (None, "")]
    assert answers[0] == answers[1]
    assert backend.post("/predict", json=asked(config, TEXT, field="other")).status_code == 422
