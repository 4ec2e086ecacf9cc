"""Models with a hierarchy of their labels, of every kind."""

import json
from dataclasses import replace

import pytest

from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read import ReadOptions, read_hierarchy, write_examples
from setrnn.data.source import Source
from setrnn.errors import ConfigError, DataError, ModelError
from setrnn.models.card import describe_model, write_readme
from setrnn.systems.limits import Limits
from setrnn.tagging.evaluate import evaluate
from setrnn.tagging.learn.mix import join
from setrnn.tagging.learn.train import train
from setrnn.tagging.learn.update import update
from setrnn.tagging.tagger import load
from small_taggers import with_thresholds

NEWSROOM = read_hierarchy("newsroom")
KINDS = ("br", "br-support", "set-rnn", "set-rnn-exact", "mixture")
# Labels of other branches as parents: hardly any set is closed by itself.
STRANGE = {"weather": ["sport", "economy"], "velmara": "sport", "economy": "politics"}


@pytest.mark.parametrize("kind", KINDS)
def test_all_predictions_by_all_rules_are_closed(taggers, kind, test_texts):
    closing = with_thresholds(taggers[kind]).with_hierarchy(STRANGE)
    tree = closing.hierarchy
    for rule in closing.rules:
        found = closing.tag(test_texts[:5], rule=rule, top=3)
        assert all(tree.is_closed(each.labels) for each in found)
        assert all(tree.is_closed(other.labels) for each in found for other in each.alternatives)


@pytest.mark.parametrize("kind", KINDS)
def test_completions_are_closed_and_agree_with_what_is_known(taggers, kind, test_texts):
    closing = taggers[kind].with_hierarchy(STRANGE)
    tree = closing.hierarchy
    known = closing.complete(test_texts[:3], [["weather"]] * 3, [["velmara"]] * 3)
    for each in known:
        assert {"weather", "sport", "economy", "politics"} <= set(each.labels)
        assert "velmara" not in each.labels
        assert tree.is_closed(each.labels)
        assert all(tree.is_closed(other.labels) for other in each.alternatives)
        sets = [each.labels, *(other.labels for other in each.alternatives)]
        assert len(set(sets)) == len(sets)
    without = closing.complete(test_texts[0], absent=["sport"])
    assert not {"sport", "weather", "velmara"} & set(without.labels)


def test_a_present_label_below_an_absent_one_is_refused(taggers, test_texts):
    closing = taggers["br"].with_hierarchy(STRANGE)
    with pytest.raises(DataError, match=r"'weather' is present.*'politics'.*absent"):
        closing.complete(test_texts[0], present=["weather"], absent=["politics"])


def test_limits_may_open_and_close_the_sets(taggers, test_texts):
    br = taggers["br"]
    closing = br.with_hierarchy(STRANGE)
    opened = closing.tag(test_texts, limits=Limits(closed=False))
    assert [each.labels for each in opened] == [each.labels for each in br.tag(test_texts)]
    loose = br.with_hierarchy(STRANGE, keeps_closed=False)
    closed = loose.tag(test_texts, limits=Limits(closed=True))
    assert [each.labels for each in closed] == [each.labels for each in closing.tag(test_texts)]
    with pytest.raises(ConfigError, match="--hierarchy"):
        br.tag(test_texts, limits=Limits(closed=True))
    with pytest.raises(ConfigError, match=r"'weather' is required.*'sport'"):
        closing.tag(test_texts, limits=Limits(required=["weather"], forbidden=["sport"]))
    with pytest.raises(ConfigError, match="those above them are 4"):
        closing.tag(test_texts, limits=Limits(required=["weather"], max_labels=3))


def test_a_saved_model_keeps_its_hierarchy_in_its_files(taggers, tmp_path, test_texts):
    closing = taggers["br"].with_hierarchy("newsroom")
    closing.save(tmp_path / "model")
    again = load(tmp_path / "model", "cpu")
    assert again.hierarchy == replace(NEWSROOM, keeps_closed=True)
    assert "hierarchy" in json.loads((tmp_path / "model" / "config.json").read_text())
    assert [p.labels for p in again.tag(test_texts)] == [p.labels for p in closing.tag(test_texts)]
    card = describe_model(again)["hierarchy"]
    assert card["parents"]["copper"] == ["commodities"]
    assert card["keeps_closed"]
    assert "bring their ancestors" in write_readme(again)
    assert describe_model(taggers["br"])["hierarchy"] is None


def test_a_damaged_hierarchy_is_refused(taggers, tmp_path):
    broken = taggers["br"].with_hierarchy("newsroom")
    object.__setattr__(broken.hierarchy, "parents", {"a": ["b"], "b": ["a"]})
    broken.save(tmp_path / "model")
    with pytest.raises(ModelError, match="damaged"):
        load(tmp_path / "model", "cpu")


def test_a_mixture_has_the_hierarchy_of_its_members(taggers):
    br, pcc = (taggers[name].with_hierarchy("newsroom") for name in ("br", "pcc"))
    assert join([br, pcc]).hierarchy == br.hierarchy
    assert join([br, taggers["pcc"]]).hierarchy == br.hierarchy
    with pytest.raises(ConfigError, match="different hierarchies"):
        join([br, taggers["pcc"].with_hierarchy(STRANGE)])


@pytest.fixture
def open_corpus(small_examples, tmp_path):
    """Items that have lost the tag sport, which is above football."""
    for split, examples in small_examples.items():
        cut = (
            replace(each, labels=tuple(name for name in each.labels if name != "sport"))
            if "football" in each.labels
            else each
            for each in examples
        )
        write_examples(cut, tmp_path / "open" / f"{split}.jsonl")
    return tmp_path / "open"


def test_the_training_labels_decide_whether_predictions_are_closed(
    open_corpus, small_examples, notes
):
    loose = train(open_corpus, "br", hierarchy=NEWSROOM)
    assert not loose.keeps_closed
    assert any("without" in text and "--close-labels" in text for text in notes.texts)
    closing = train(open_corpus, "br", hierarchy=NEWSROOM, close_labels=True)
    assert closing.keeps_closed
    # The true labels are closed too, and so equal to those of the whole corpus.
    scores = [evaluate(closing, data) for data in (open_corpus, small_examples["test"])]
    assert scores[0].scores == scores[1].scores
    assert scores[0].hierarchical is not None


def test_measures_in_a_hierarchy_need_no_model_with_one(taggers, small_examples, tmp_path):
    test = small_examples["test"]
    plain = evaluate(taggers["br"], test)
    assert plain.hierarchical is None
    assert "hierarchical_f1" not in plain.as_dict()
    write_examples(test, tmp_path / "test.jsonl")
    source = Source(str(tmp_path / "test.jsonl"), ReadOptions(hierarchy=NEWSROOM))
    found = evaluate(taggers["br"], source)
    assert found.scores == plain.scores
    predicted = taggers["br"].tag([each.text for each in test], features=[e.features for e in test])
    closed = [set(NEWSROOM.close(each.labels)) for each in predicted]
    truth = [set(each.labels) for each in test]  # closed already
    n_both = sum(len(a & b) for a, b in zip(closed, truth, strict=True))
    precision = n_both / sum(map(len, closed))
    assert found.as_dict()["hierarchical_precision"] == pytest.approx(precision)


def test_an_updated_model_stays_closed(taggers, small_examples, tmp_path):
    write_examples(small_examples["train"], tmp_path / "old.jsonl")
    new = replace(small_examples["test"][0], id="new", text="A new cup", labels=("harbour-cup",))
    write_examples([new], tmp_path / "new.jsonl")
    before = taggers["br"].with_hierarchy("newsroom")
    after = update(before, tmp_path / "new.jsonl", data=tmp_path / "old.jsonl")
    assert after.keeps_closed
    assert after.hierarchy.parents == Hierarchy(NEWSROOM.parents).parents
