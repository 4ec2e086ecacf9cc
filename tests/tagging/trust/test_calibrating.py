import errno
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

import setrnn
from setrnn.data import newsroom
from setrnn.data.read import write_examples
from setrnn.errors import DataError
from setrnn.systems.rules import RULES
from setrnn.tagging.documents import open_documents
from setrnn.tagging.trust import Calibration
from setrnn.tagging.trust.acceptance import Acceptance
from setrnn.tagging.trust.calibrate import (
    MIN_DOCUMENTS,
    calibrate,
    calibrate_or_warn,
    find_calibration,
    fit_calibration,
)


@pytest.fixture(scope="module")
def valid():
    """Documents that no tagger was trained on."""
    return list(islice(newsroom.examples("valid"), 120))


@pytest.fixture(scope="module")
def many():
    return list(islice(newsroom.examples("valid"), 700))


@pytest.fixture(scope="module")
def calibrated(taggers, many):
    """A BR tagger that accepts some of its predictions."""
    tagger = taggers["br"]
    found = calibrate(tagger, many, target=0.5)
    return replace(tagger, calibration=found.calibration), found


def texts_of(examples):
    return [each.text for each in examples], [each.features for each in examples]


def test_a_scaling_is_fitted_for_each_way_to_search(tagger, valid):
    found = fit_calibration(tagger, valid)
    emits_sequences = tagger.system.emits_sequences
    expected = {"sets", "sequences"} if emits_sequences else {"sets"}
    expected |= {"f1"} if tagger.method == "mixture" else set()  # it has weights of its own
    assert set(found.scalings) == expected
    assert found.n_documents == len(valid)
    assert found.thresholds.by_label.shape == (len(tagger.labels),)
    assert not found.acceptance


def test_each_document_is_searched_once(taggers, valid, monkeypatch):
    system = type(taggers["br"].system)
    searched, search = [], system.candidates

    def candidates(self, tokens, *arguments, **options):
        searched.append(len(tokens))
        return search(self, tokens, *arguments, **options)

    monkeypatch.setattr(system, "candidates", candidates)
    calibrate(taggers["br"], valid)
    assert sum(searched) == len(valid)


def test_the_sets_stay_and_their_probabilities_are_calibrated(tagger, valid):
    """Whatever is asked for besides: the number of sets, or the model's own probabilities."""
    calibration = fit_calibration(tagger, valid)
    after = replace(tagger, calibration=calibration)
    texts, features = texts_of(valid[:30])
    for name, rule in RULES.items():
        is_by_sequence = rule.source == "sequences"
        if rule.needs_thresholds or (is_by_sequence and not tagger.system.emits_sequences):
            continue
        found = after.tag(texts, name, 3, features)
        raw = after.tag(texts, name, 3, features, calibrated=False)
        assert [each.labels for each in tagger.tag(texts, name, 3, features)] == [
            each.labels for each in raw
        ]
        for one, own in zip(found, raw, strict=True):
            assert one.labels == own.labels
            assert [each.labels for each in one.alternatives] == [
                each.labels for each in own.alternatives
            ]
            probs = [one.probability, *(each.probability for each in one.alternatives)]
            assert 0 < sum(probs) <= 1 + 1e-9
            assert one.accepted is None
        alone = after.tag(texts, name, 1, features)
        assert [each.probability for each in alone] == [each.probability for each in found]


def test_what_is_said_of_acceptance_is_what_tagging_does(calibrated, many):
    tagger, found = calibrated
    predictions = tagger.tag(*[texts_of(many)[0], None, 1, texts_of(many)[1]])
    is_accepted = np.array([each.accepted for each in predictions])
    pairs = zip(predictions, many, strict=True)
    is_right = np.array([set(each.labels) == set(truth.labels) for each, truth in pairs])
    assert 0 < is_accepted.sum() == found.acceptance.n_accepted < len(many)
    assert is_right[is_accepted].mean() == pytest.approx(found.acceptance.accuracy)
    assert is_right.mean() == pytest.approx(found.accuracy)
    own = tagger.tag(*[texts_of(many)[0], None, 1, texts_of(many)[1]], calibrated=False)
    assert [each.accepted for each in own] == [each.accepted for each in predictions]


def test_the_shares_of_other_targets_are_what_a_calibration_to_them_accepts(
    calibrated, taggers, many
):
    _, found = calibrated
    assert [each.target for each in found.shares] == [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    assert found.shares[0].sets == found.acceptance.share
    for name in ("sets", "labels"):
        shares = [getattr(each, name) for each in found.shares]
        assert shares == sorted(shares, reverse=True)
        assert 0 < shares[0] <= 1
    other = calibrate(taggers["br"], many, target=0.7)
    assert other.shares == found.shares
    assert other.acceptance.share == found.shares[2].sets


def test_what_is_worse_than_before_is_not_used_and_named(calibrated, many, monkeypatch):
    tagger, found = calibrated
    assert found.kept == ()
    monkeypatch.setattr("setrnn.tagging.trust.sets._held_out_loss", lambda *_: 1e9)
    again = calibrate(tagger, many[:300], target=0.5)
    assert "sets" in again.kept
    assert again.calibration.scalings["sets"] == tagger.calibration.scalings["sets"]


def test_shown_labels_are_those_that_reach_the_threshold_and_the_target_is_kept(
    taggers, many, tmp_path
):
    calibrate(taggers["br"], many, target_recall=0.9).tagger.save(tmp_path / "model")
    tagger = setrnn.load(tmp_path / "model")
    shown = tagger.fitted.shown
    texts, features = texts_of(many)
    for calibrated in (True, False):
        found = tagger.tag(texts, None, 1, features, calibrated=calibrated)
        own = tagger.marginals(texts, features, calibrated=False).probs
        probs = tagger.marginals(texts, features, calibrated=calibrated).probs
        for each, of_labels, row in zip(found, own, probs, strict=True):
            names = np.array(tagger.labels.names)[of_labels >= shown.threshold]
            assert {*each.shown_labels} == {*names}
            values = [row[tagger.labels.index[name]] for name in each.shown_labels]
            assert list(each.shown_labels.values()) == pytest.approx(values, abs=1e-5)
            assert values == sorted(values, reverse=True)
    evaluation = setrnn.evaluate(tagger, many, allow_training_documents=True)
    assert evaluation.shown_recall == pytest.approx(shown.recall)
    assert evaluation.n_shown == pytest.approx(shown.n_labels)
    assert 0.9 <= shown.recall < 0.91
    assert calibrate(tagger, many).calibration.shown == shown
    assert fit_calibration(tagger, many, before=tagger.calibration).shown == shown


def test_unseen_documents_are_better_calibrated(calibrated, taggers):
    from setrnn.tagging.evaluate import evaluate

    unseen = list(islice(newsroom.examples("test"), 700))
    tagger, found = calibrated
    evaluation = evaluate(tagger, unseen)
    plain = evaluate(taggers["br"], unseen)
    assert plain.calibration_error == plain.calibration_error_raw
    assert evaluation.calibration_error_raw == plain.calibration_error_raw
    assert evaluation.calibration_error < plain.calibration_error * 0.7
    assert found.after.error < found.before.error * 0.6
    accuracy = evaluation.scores.subset_accuracy
    assert abs(evaluation.mean_probability - accuracy) < abs(plain.mean_probability - accuracy)
    assert evaluation.scores == plain.scores
    accepted = evaluation.accepted
    assert plain.accepted is None
    assert accepted.accuracy_accepted_low < accepted.accuracy_accepted
    assert accepted.accuracy_accepted_high > found.acceptance.target
    assert accepted.share_accepted == accepted.n_accepted / len(unseen)


def test_other_rules_keep_their_targets(taggers, valid):
    tagger = taggers["seq2seq-rnn"]
    first = calibrate(tagger, valid, "sequence", 0.3, 0.8).calibration
    tagger = replace(tagger, calibration=first)
    both = calibrate(tagger, valid, "set", 0.4, 0.7).calibration
    kept = {name: (each.target, each.confidence) for name, each in both.acceptance.items()}
    assert kept == {"sequence": (0.3, 0.8), "set": (0.4, 0.7)}
    assert both.acceptance["sequence"] == first.acceptance["sequence"]


@pytest.mark.parametrize(
    ("labels", "n", "message"),
    [
        (None, MIN_DOCUMENTS - 1, f"99 documents are too few .* at least {MIN_DOCUMENTS}"),
        (None, 0, "0 documents are too few"),
        ((), 120, "No document has a label"),
        (("nonesuch", "other"), 120, r"The model knows 0 of the documents' .* --labels-field"),
    ],
)
def test_documents_that_cannot_be_calibrated_on_are_refused(taggers, valid, labels, n, message):
    documents = [each if labels is None else replace(each, labels=labels) for each in valid[:n]]
    with pytest.raises(DataError, match=message):
        fit_calibration(taggers["br"], documents)


TARGET = 0.35


def write_news(folder, n_valid):
    for split, size in {"train": 200, "valid": n_valid}.items():
        write_examples(islice(newsroom.examples(split), size), folder / f"{split}.jsonl")
    return folder


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    return write_news(tmp_path_factory.mktemp("news"), 150)


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """The same, with too few valid documents to calibrate on."""
    return write_news(tmp_path_factory.mktemp("few"), 30)


@pytest.fixture(scope="module")
def accepting(news, tmp_path_factory):
    """A model with an acceptance, and its folder; it is trained again in place."""
    out = tmp_path_factory.mktemp("model") / "model"
    tagger = setrnn.train(news, "br", out=out)
    found = setrnn.calibrate(tagger, news, target=TARGET, confidence=0.8)
    found.tagger.save_calibration(out)
    return out


def test_training_into_the_same_folder_keeps_the_target(accepting, news, few, notes):
    before = setrnn.load(accepting).calibration.acceptance["f1"]
    tagger = setrnn.train(news, "br-support", out=accepting)
    for each in (tagger, setrnn.load(accepting)):
        kept = each.calibration.acceptance["f1"]
        assert (kept.target, kept.confidence) == (before.target, before.confidence) == (TARGET, 0.8)
        assert kept.threshold not in (None, before.threshold)
        assert each.calibration.label_acceptance.target == TARGET
    assert not any("target accuracy" in each for each in notes.warnings)
    again = setrnn.calibrate(tagger, news, target=TARGET, confidence=0.8)
    assert again.acceptance == kept, "as if it was calibrated by hand"

    # Nothing can be fitted: nothing is accepted, and the user is told.
    tagger = setrnn.train(few, "br", out=accepting)
    assert any("accepts nothing by it" in each for each in notes.warnings)
    assert not setrnn.load(accepting).is_calibrated
    setrnn.calibrate(tagger, news, target=TARGET, confidence=0.8).tagger.save_calibration(accepting)


def test_a_mixture_and_the_best_model_keep_the_target(accepting, news):
    members = [setrnn.train(news, method) for method in ("br", "br-support")]
    mixed = setrnn.mix(members, news, out=accepting)
    assert mixed.calibration.acceptance["f1"].target == TARGET
    quick = ["classical.max_steps=5", "training.epochs=1", "classical.max_pairs=0"]
    tagger = setrnn.train(news, out=accepting, budget=0.01, device="cpu", settings=quick)
    assert tagger.method == "mixture"
    assert setrnn.load(accepting).calibration.acceptance["f1"].target == TARGET


def test_an_acceptance_by_a_rule_that_the_new_model_cannot_use_is_dropped(taggers, valid, notes):
    acceptance = Acceptance("sequence", 0.9, 0.9, 0.5, 0.4, 0.95, 40)
    before = Calibration(100, acceptance={"sequence": acceptance})
    documents = replace(open_documents(valid), n_documents=len(valid))
    tagger = calibrate_or_warn(taggers["br"], documents, before=before)
    assert not tagger.calibration.acceptance
    assert any("rule sequence" in each for each in notes.warnings)
    kept = fit_calibration(taggers["seq2seq-rnn"], valid, before=before).acceptance["sequence"]
    assert (kept.target, kept.confidence) == (0.9, 0.9)


def test_a_calibration_that_cannot_be_written_is_an_error(taggers, valid, tmp_path, monkeypatch):
    """As a run of a comparison, it must be done again: with a warning, it would count as done."""

    def fail(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    tagger = taggers["br"].saved_to(tmp_path / "model")
    documents = replace(open_documents(valid), n_documents=len(valid))
    with monkeypatch.context() as patch:
        patch.setattr("setrnn.models.folder.seal_file", fail)
        with pytest.raises(DataError, match=r"model cannot .* No space .* setrnn calibrate\."):
            calibrate_or_warn(tagger, documents, tmp_path / "model")
    assert not setrnn.load(tmp_path / "model").is_calibrated


def test_a_folder_without_a_sound_calibration_has_no_targets(taggers, tmp_path):
    assert find_calibration(None) is find_calibration(tmp_path) is None
    folder = tmp_path / "model"
    replace(taggers["br"], calibration=Calibration(100)).save(folder)
    assert find_calibration(folder).n_documents == 100
    (folder / "calibration.json").write_text("{")
    assert find_calibration(folder) is None
