from dataclasses import replace

import pytest

from setrnn.data.example import KnownLabels
from setrnn.data.text.notes import EMPTY, NOTHING_READ
from setrnn.errors import ConfigError, DataError
from setrnn.tagging import trained_model
from setrnn.tagging.prediction import Prediction, add_notes


@pytest.fixture(scope="module")
def known(small_examples):
    """Of every second document a true label, of every third a wrong one."""
    names = sorted({label for example in small_examples["train"] for label in example.labels})
    rows = []
    for number, example in enumerate(small_examples["test"]):
        true = [label for label in example.labels if label in names]
        present = true[:1] if number % 2 else []
        wrong = next(name for name in names if name not in example.labels)
        rows.append((present, [wrong] if number % 3 == 0 else []))
    return [present for present, _ in rows], [absent for _, absent in rows]


def test_completions_contain_what_is_present_and_nothing_absent(tagger, test_texts, known):
    completions = tagger.complete(test_texts, *known, top=3)
    assert len(completions) == len(test_texts)
    for found, present, absent in zip(completions, *known, strict=True):
        assert (found.present, found.absent) == (tuple(present), tuple(absent))
        assert set(found.labels) == set(present) | set(found.added)
        assert not set(found.added) & set(present)
        sets = [found, *found.alternatives]
        for each in sets:
            assert set(present) <= set(each.labels)
            assert not set(absent) & set(each.labels)
        probabilities = [each.probability for each in sets]
        assert probabilities == sorted(probabilities, reverse=True)
        assert 0 < sum(probabilities) <= 1 + 1e-6
        assert 0 < found.known_probability <= 1


def test_suggestions_are_the_labels_not_known_in_descending_order(tagger, test_texts, known):
    for found, present, absent in zip(tagger.complete(test_texts, *known), *known, strict=True):
        names = [name for name, _ in found.suggestions]
        assert len(set(names)) == len(names)
        assert not set(names) & {*present, *absent}
        assert set(found.added) <= set(names)
        chances = [chance for _, chance in found.suggestions]
        assert chances == sorted(chances, reverse=True)
        assert all(0 < chance <= 1 for chance in chances)
        assert found.suggestion == (names[0] if names else None)


def test_knowing_nothing_gives_the_most_probable_set(tagger, test_texts):
    assert tagger.complete([]) == []
    completions = tagger.complete(test_texts, top=1)
    predictions = tagger.tag(test_texts, rule="set")
    assert [each.labels for each in completions] == [each.labels for each in predictions]
    for found, prediction in zip(completions, predictions, strict=True):
        probability = found.probability * found.known_probability
        assert probability == pytest.approx(prediction.probability, rel=1e-4)


def test_one_text_is_completed_as_in_a_list(tagger, test_texts, test_features, known):
    for row in (0, 1, 3):
        text, features, given = test_texts[row], test_features[row], [each[row] for each in known]
        in_a_list = tagger.complete([text], *([each] for each in given), features=[features])
        assert [tagger.complete(text, *map(set, given), features=features)] == in_a_list


def test_labels_never_seen_together_leave_br_support_without_a_set(taggers, test_texts):
    tagger = taggers["br-support"]
    every = tagger.labels.names
    found = tagger.complete(test_texts[0], every)
    assert set(found.labels) == set(every)
    assert (found.added, found.alternatives, found.suggestion) == ((), (), None)
    assert (found.probability, found.known_probability) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("present", "absent", "said"),
    [
        ([["markets", "footbal"]], [[]], "Text 0: the model has no label 'footbal'. Did you mean"),
        ([[]], [["zzzz"]], "Text 0: the model has no label 'zzzz'. Its labels.json lists"),
        ([[]], [[3]], "absent[0] must be a collection of strings, got [3], with 3 in it"),
        ([["football"]], [["football"]], "Text 0: 'football' is both present and absent"),
        (["football"], [[]], "present[0] must be a collection of strings, got 'football'. Write ["),
        ({"football"}, [[]], "present must be a list with a collection of strings for each text"),
        ([[], []], [[]], "present must have a row for each text: there are 1 texts, 2 rows"),
        ("football", [], "present must be a list with a collection of strings for each text"),
    ],
)
def test_bad_known_labels_are_one_line(taggers, present, absent, said):
    tagger = taggers["br"]
    assert {"markets", "football"} <= set(tagger.labels.names)
    with pytest.raises(DataError) as error:
        tagger.complete(["a text"], present, absent)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_wrong_is_found_by_its_place_among_all_texts(taggers, monkeypatch):
    monkeypatch.setattr(trained_model, "BATCH", 2)
    with pytest.raises(DataError, match="Text 3: the model has no label"):
        taggers["br"].complete(["a"] * 5, [[], [], [], ["nonsense"], []])
    with pytest.raises(DataError, match="Text 3"):
        list(taggers["br"].tag_stream((each, ()) for each in ["a", "b", "c", None, "e"]))


def test_more_present_labels_than_a_network_can_emit_are_refused(taggers):
    tagger = taggers["set-rnn"]
    limit = tagger.system.max_labels
    model = replace(tagger.config.model, max_labels=2)
    system = replace(tagger.system, config=replace(tagger.config, model=model))
    tagger = replace(tagger, system=system)
    with pytest.raises(DataError, match=r"3 labels are present, but .* at most 2"):
        tagger.complete("a text", tagger.labels.names[:3])
    assert limit == 50
    assert taggers["br"].system.max_labels is None


def test_known_labels_for_too_few_documents_are_refused(taggers):
    with pytest.raises(DataError, match="fewer documents"):
        list(taggers["br"].complete_stream([("a", ()), ("b", ())], [KnownLabels()]))
    with pytest.raises(ConfigError, match="top"):
        taggers["br"].complete("a", top=0)


@pytest.mark.parametrize("note", [EMPTY, NOTHING_READ, "6 of 6 words are unknown to the model."])
def test_what_was_not_read_is_not_accepted(note):
    found = Prediction(("a",), 0.9, accepted=True, accepted_labels=("a",))
    noted = add_notes(found, (note,))
    assert (noted.accepted, noted.accepted_labels) == (False, ())
    assert add_notes(Prediction(("a",), 0.9), (note,)).accepted is None
    cut = add_notes(found, ("The text was cut: the model read 5 of its 9 words.",))
    assert cut.accepted


def test_a_set_of_probability_0_says_why(taggers, test_texts):
    """br-support by rule f1 may choose a set that no training document has."""
    found = taggers["br-support"].tag(test_texts, rule="f1", top=4)
    assert any(each.probability == 0 for each in found)
    for each in found:
        assert any("probability of this set is 0" in note for note in each.notes) == (
            each.probability == 0
        )
        assert all(other.probability > 0 for other in each.alternatives)
