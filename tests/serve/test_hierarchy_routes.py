import pytest
from fastapi.testclient import TestClient

from setrnn.data.read import read_hierarchy
from setrnn.serve.app import make_app
from setrnn.serve.registry import Registry, ServedModel

STRANGE = {"weather": ["sport", "economy"], "velmara": "sport"}


@pytest.fixture(scope="module")
def trees(taggers):
    models = (
        ServedModel("tree", "1", taggers["br"].with_hierarchy("newsroom")),
        ServedModel("strange", "2", taggers["br"].with_hierarchy(STRANGE)),
        ServedModel("plain", "3", taggers["br"]),
    )
    with TestClient(make_app(Registry.of(*models))) as client:
        yield client


def test_models_say_whether_they_have_a_hierarchy(trees):
    cards = {each["name"]: each["hierarchy"] for each in trees.get("/v1/models").json()["models"]}
    assert cards["plain"] is None
    assert cards["strange"] == {"keeps_closed": True, "n_below": 2}


def test_the_tree_has_every_label_with_its_parents(trees):
    answer = trees.get("/v1/hierarchy")
    assert answer.headers["X-Model-Version"] == "1"
    found = answer.json()
    parents = read_hierarchy("newsroom").parents
    for each in found["labels"]:
        assert tuple(each["parents"]) == parents.get(each["label"], ())
    assert len(found["labels"]) == found["n_labels"]
    counts = [each["count"] for each in found["labels"]]
    assert counts == sorted(counts, reverse=True)
    few = trees.get("/v1/hierarchy?limit=2&model=strange").json()
    assert few["labels"] == trees.get("/v1/hierarchy?model=strange").json()["labels"][:2]
    assert not any(
        each["parents"] for each in trees.get("/v1/hierarchy?model=plain").json()["labels"]
    )


def test_sets_are_closed_unless_asked_otherwise(trees, test_texts):
    body = {"texts": test_texts[:20], "model": "strange"}
    closed = trees.post("/v1/tag", json=body).json()["predictions"]
    opened = trees.post("/v1/tag", json={**body, "closed": False}).json()["predictions"]
    plain = trees.post("/v1/tag", json={**body, "model": "plain"}).json()["predictions"]
    assert [each["labels"] for each in opened] == [each["labels"] for each in plain]
    assert any(a["labels"] != b["labels"] for a, b in zip(opened, closed, strict=True))
    assert all("sport" in each["labels"] for each in closed if "velmara" in each["labels"])
    assert trees.post("/v1/tag", json={**body, "model": "plain", "closed": True}).status_code == 422


def test_a_completion_is_closed_and_a_contradiction_refused(trees):
    body = {"text": "Rain", "model": "strange", "present": ["weather"]}
    found = trees.post("/v1/complete", json=body).json()
    assert {"weather", "sport", "economy"} <= set(found["labels"])
    answer = trees.post("/v1/complete", json={**body, "absent": ["sport"]})
    assert answer.status_code == 422
    assert "above it in the hierarchy" in answer.json()["detail"]
