import json
from dataclasses import replace

import numpy as np
import pytest
from fastapi.testclient import TestClient

from setrnn.data.groups import Group
from setrnn.data.read import read_hierarchy
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.server import make_app
from setrnn.systems.limits import Limits
from setrnn.tagging.trust import Calibration
from small_taggers import accepting_labels

STRANGE = {"weather": ["sport", "economy"], "velmara": "sport"}
TEXT = "The draft budget of Velmara for 2,500 clubs"


@pytest.fixture(scope="session")
def tagger(served):
    return served[0].tagger


def set_of(prediction):
    return {"labels": list(prediction.labels), "probability": prediction.probability}


def close(found, wanted):
    """Whether two JSON values are the same, but for the rounding of probabilities."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(close(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(close, found, wanted))
    return (
        found == pytest.approx(wanted, abs=1e-5) if isinstance(wanted, float) else found == wanted
    )


@pytest.mark.parametrize("rule", ["set", "sequence", "f1", "hamming", "micro-f1", "label-f1"])
def test_tags_are_those_of_the_library(client, tagger, test_texts, rule):
    answer = client.post("/v1/tag", json={"texts": test_texts[:20], "rule": rule, "top": 3})
    assert answer.status_code == 200, answer.text
    assert answer.json()["model"] == {
        "name": "recurrent",
        "version": "version-one",
        "method": "set-rnn",
    }
    assert answer.json()["rule"] == rule
    wanted = tagger.tag(test_texts[:20], rule, 3)
    for found, each in zip(answer.json()["predictions"], wanted, strict=True):
        assert close(found["alternatives"], list(map(set_of, each.alternatives)))
        assert close({key: found[key] for key in ("labels", "probability")}, set_of(each))
        assert found["accepted"] == each.accepted
        assert found["certificate"] is None
        assert found["marginals"] is None
        assert found["missing_mass"] is None


@pytest.mark.parametrize("with_marginals", [True, False])
def test_answers_say_what_the_model_did_not_read(client, tagger, with_marginals):
    texts = ["", "zqxj wqw", TEXT]
    asked = {"texts": texts, "marginals": with_marginals}
    found = [each["notes"] for each in client.post("/v1/tag", json=asked).json()["predictions"]]
    assert found == [list(each.notes) for each in tagger.tag(texts)]
    assert "empty" in found[0][0]
    assert "unknown" in found[1][0]
    completed = client.post("/v1/complete", json={"text": texts[1]}).json()
    assert completed["notes"] == found[1]


def test_limits_features_and_own_probabilities_are_passed_on(
    client, tagger, test_texts, test_features
):
    labels = tagger.labels.names
    answer = client.post(
        "/v1/tag",
        json={
            "texts": test_texts[:8],
            "features": [list(each) for each in test_features[:8]],
            "require": [labels[7]],
            "forbid": [labels[0]],
            "min_labels": 2,
            "max_labels": 3,
            "groups": [{"labels": labels[1:4], "n": 1, "exactly": True, "name": "kind"}],
            "calibrated": False,
        },
    )
    groups = [Group(labels[1:4], 1, exactly=True)]
    limits = Limits(2, 3, False, [labels[7]], [labels[0]], groups=groups)
    wanted = tagger.tag(test_texts[:8], None, 1, test_features[:8], limits=limits, calibrated=False)
    assert answer.status_code == 200, answer.text
    for found, each in zip(answer.json()["predictions"], wanted, strict=True):
        assert labels[7] in found["labels"]
        assert 2 <= len(found["labels"]) <= 3
        assert len({*labels[1:4]} & {*found["labels"]}) == 1
        assert close({key: found[key] for key in ("labels", "probability")}, set_of(each))


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        ("recurrent", "set"),
        ("recurrent", "sequence"),
        ("recurrent", "f1"),
        ("classical", "set"),
        ("classical", "f1"),
    ],
)
def test_marginals_are_those_of_the_library(client, served, test_texts, model, rule):
    tagger = next(each for each in served if each.name == model).tagger
    asked = {"texts": test_texts[:9], "marginals": True, "rule": rule, "model": model}
    answer = client.post("/v1/tag", json=asked)
    assert answer.json()["model"]["name"] == model
    wanted, plain = tagger.marginals(test_texts[:9]), tagger.tag(test_texts[:9], rule)
    for row, missing, predicted, found in zip(
        wanted.probs, wanted.missing_mass, plain, answer.json()["predictions"], strict=True
    ):
        given = {each["label"]: each["probability"] for each in found["marginals"]}
        assert list(given.values()) == sorted(given.values(), reverse=True)
        likely = [label for label in np.argsort(-row) if row[label] >= 0.001][:50]
        assert set(given) == {tagger.labels.names[label] for label in likely}
        for name, prob in given.items():
            assert prob == pytest.approx(row[tagger.labels.index[name]], abs=1e-4)
        assert found["missing_mass"] == pytest.approx(missing, abs=1e-4)
        assert found["labels"] == list(predicted.labels)


def test_marginals_say_from_where_a_label_is_accepted(served, test_texts):
    tagger = accepting_labels(served[0].tagger)
    asked = {"texts": test_texts[:1], "marginals": True, "rule": "f1"}
    with TestClient(make_app(Registry.of(ServedModel("careful", "v1", tagger)))) as client:
        (found,) = client.post("/v1/tag", json=asked).json()["predictions"]
        (raw,) = client.post("/v1/tag", json={**asked, "calibrated": False}).json()["predictions"]
    given = {each["label"]: each["accepted_from"] for each in found["marginals"]}
    assert set(given.values()) == {0.3, None}
    assert all(given[label] == 0.3 for label in found["accepted_labels"])
    assert {each["accepted_from"] for each in raw["marginals"]} == {None}


def test_completions_are_those_of_the_library(client, tagger, test_texts):
    labels = tagger.labels.names
    known = {"present": [labels[5]], "absent": [labels[0], labels[1]]}
    answer = client.post("/v1/complete", json={"text": test_texts[0], "top": 2, **known})
    assert answer.status_code == 200, answer.text
    wanted = tagger.complete(test_texts[0], *known.values(), 2)
    found = answer.json()
    assert found["present"] == known["present"]
    assert found["absent"] == known["absent"]
    assert close({key: found[key] for key in ("labels", "probability")}, set_of(wanted))
    assert close(found["alternatives"], list(map(set_of, wanted.alternatives)))
    assert found["known_probability"] == pytest.approx(wanted.known_probability, abs=1e-5)
    assert [label for label, _ in found["suggestions"]] == [
        label for label, _ in wanted.suggestions[:50]
    ]
    assert labels[5] in found["labels"]


@pytest.mark.parametrize("method", ["set-rnn", "pcc"])
@pytest.mark.parametrize("n_labels", [None, 0, 1, 3])
def test_explanations_are_those_of_the_library(taggers, method, n_labels):
    tagger = taggers[method]
    labels = None if n_labels is None else list(tagger.labels.names[5 : 5 + n_labels])
    with TestClient(make_app(Registry.of(ServedModel("it", "one", tagger)))) as client:
        answer = client.post("/v1/explain", json={"text": TEXT, "labels": labels})
    assert answer.status_code == 200, answer.text
    found, wanted = answer.json(), tagger.explain(TEXT, labels=labels)
    assert found.pop("model")["method"] == method
    assert close(found, json.loads(json.dumps(wanted.to_dict())))


def test_a_set_within_groups_is_explained_as_it_is_tagged(client, tagger):
    groups = [{"labels": tagger.labels.names[1:4], "n": 1, "exactly": True, "name": "kind"}]
    tagged = client.post("/v1/tag", json={"texts": [TEXT], "groups": groups}).json()
    answer = client.post("/v1/explain", json={"text": TEXT, "groups": groups})
    assert answer.status_code == 200, answer.text
    labels = answer.json()["sets"][0]["labels"]
    assert set(labels) == {*tagged["predictions"][0]["labels"]}
    assert len({*labels} & {*groups[0]["labels"]}) == 1
    given = {"text": TEXT, "groups": groups, "labels": labels}
    refused = client.post("/v1/explain", json=given)
    assert refused.status_code == 422
    assert "Leave them out, or the labels" in refused.json()["detail"]


def test_half_an_emoji_is_read_as_a_question_mark(client):
    body = b'{"text": "\\ud83d budget"}'
    headers = {"Content-Type": "application/json"}
    answer = client.post("/v1/explain", content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.json()["text"] == "? budget"


def test_models_are_listed_the_default_one_first(client, served):
    first, second = client.get("/v1/models").json()["models"]
    assert first["name"] == "recurrent"
    assert first["can_explain"]
    assert {"target": 0.9, "threshold": 0.4}.items() <= first["accepts"]["set"].items()
    assert first["label_target"] is None
    assert first["n_labels"] == len(served[0].tagger.labels)
    assert first["rules"] == ["set", "sequence", "f1", "hamming", "micro-f1", "label-f1"]
    assert second["name"] == "classical"
    assert second["can_explain"]
    assert second["rules"] == ["set", "f1", "hamming"]
    assert second["data"] == "newsroom, synthetic"
    assert first["warnings"] == second["warnings"] == []


def test_what_training_warned_of_is_said_with_the_model(taggers):
    notes = {**taggers["br"].notes, "warnings": ["It has learned little."]}
    tagger = replace(taggers["br"], notes=notes, calibration=Calibration(100, share_trained_on=0.4))
    learned, seen = ServedModel("a", "1", tagger).describe().warnings
    assert learned == "It has learned little."
    assert "40%" in seen
    damaged = replace(taggers["br"], notes={"warnings": 3})
    assert ServedModel("a", "1", damaged).describe().warnings == ()


def test_labels_are_found_by_prefix(client, tagger):
    everything = client.get("/v1/labels?limit=1000").json()
    assert [each["label"] for each in everything["labels"]] == list(tagger.labels.names)
    counts = [each["count"] for each in everything["labels"]]
    assert counts == list(tagger.labels.counts) == sorted(counts, reverse=True)
    found = client.get("/v1/labels", params={"prefix": "CU"}).json()
    names = [each["label"] for each in found["labels"]]
    assert {"culture", "harbour-cup", "crown-cup"} <= set(names)
    assert found["n_matching"] == len(names)
    one = client.get("/v1/labels", params={"prefix": "CU", "limit": 1}).json()
    assert one == {"labels": found["labels"][:1], "n_matching": len(names)}
    assert client.get("/v1/labels?prefix=ulture").json() == {"labels": [], "n_matching": 0}


@pytest.fixture(scope="module")
def trees(taggers):
    models = (
        ServedModel("tree", "1", taggers["br"].with_hierarchy("newsroom")),
        ServedModel("strange", "2", taggers["br"].with_hierarchy(STRANGE)),
        ServedModel("plain", "3", taggers["br"]),
    )
    with TestClient(make_app(Registry.of(*models))) as client:
        yield client


def test_labels_are_listed_with_their_parents(trees):
    parents = read_hierarchy("newsroom").parents
    for each in trees.get("/v1/labels?limit=1000").json()["labels"]:
        assert tuple(each["parents"]) == parents.get(each["label"], ())
    plain = trees.get("/v1/labels?limit=1000&model=plain").json()["labels"]
    assert not any(each["parents"] for each in plain)
    cards = trees.get("/v1/models").json()["models"]
    assert [each["keeps_closed"] for each in cards] == [True, True, None]


def test_sets_are_closed_unless_asked_otherwise(trees, test_texts):
    body = {"texts": test_texts[:20], "model": "strange"}
    closed = trees.post("/v1/tag", json=body).json()["predictions"]
    opened = trees.post("/v1/tag", json={**body, "closed": False}).json()["predictions"]
    plain = trees.post("/v1/tag", json={**body, "model": "plain"}).json()["predictions"]
    assert [each["labels"] for each in opened] == [each["labels"] for each in plain]
    assert any(a["labels"] != b["labels"] for a, b in zip(opened, closed, strict=True))
    assert all("sport" in each["labels"] for each in closed if "velmara" in each["labels"])
    assert trees.post("/v1/tag", json={**body, "model": "plain", "closed": True}).status_code == 422
