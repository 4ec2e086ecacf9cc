import re
from dataclasses import replace

import numpy as np
import pytest
from known_answers import DRAWS, GOOD, POOR, compared, flipped, found

from made_comparison import made_comparison
from setrnn.comparison.statistics import Difference, Entry, bootstrap
from setrnn.report.evidence import FAILS, HOLDS, IN_PART, MIXED, UNDECIDED, Evidence, Finding
from setrnn.report.figures import FIGURES
from setrnn.report.findings import _discount_negligible, _require_negligible
from setrnn.report.systems import group_by_system

SETS = {"set": GOOD, "sequence": POOR}
SEQUENCES = {"set": POOR, "sequence": GOOD}
FIRST = ("set-rnn", "seq2seq-rnn", "vinyals-max")

# By claim: a comparison in which it is true, one in which the contrary is, one that cannot tell.
KNOWN = {
    "set-rnn-first": (
        dict(zip(FIRST, (GOOD, POOR, POOR), strict=True)),
        dict(zip(FIRST, (POOR, POOR, GOOD), strict=True)),
        dict.fromkeys(FIRST, POOR),
    ),
    "recurrent-ahead": (
        {"br": POOR, "pcc": POOR, "set-rnn": GOOD, "sgm": GOOD},
        {"br": POOR, "pcc": GOOD, "set-rnn": POOR, "sgm": POOR},
        {"br": POOR, "pcc": POOR, "set-rnn": POOR, "sgm": POOR},
    ),
    "max-needs-a-start": (
        {"vinyals-max": GOOD, "vinyals-max-direct": POOR},
        {"vinyals-max": POOR, "vinyals-max-direct": GOOD},
        {"vinyals-max": POOR, "vinyals-max-direct": POOR},
    ),
    "set-helps-set-rnn": ({"set-rnn": SETS}, {"set-rnn": SEQUENCES}, {"set-rnn": GOOD}),
    "set-helps-vinyals-uniform": (
        {"vinyals-uniform": SETS},
        {"vinyals-uniform": SEQUENCES},
        {"vinyals-uniform": GOOD},
    ),
    "rare-labels": (
        {"set-rnn": GOOD, "seq2seq-rnn": POOR},
        {"set-rnn": POOR, "seq2seq-rnn": GOOD},
        {"set-rnn": POOR, "seq2seq-rnn": POOR},
    ),
    "exact-ahead": (
        {"set-rnn-exact": GOOD, "set-rnn": POOR},
        {"set-rnn-exact": POOR, "set-rnn": GOOD},
        {"set-rnn-exact": GOOD, "set-rnn": GOOD},
    ),
    "rule-f1": (
        {"br": {"f1": GOOD, "set": POOR}},
        {"br": {"f1": POOR, "set": GOOD}},
        {"br": GOOD},
    ),
}
ENTROPY = ("seq2seq-rnn", "vinyals-max", "set-rnn", "vinyals-uniform")


@pytest.mark.parametrize("name", KNOWN)
def test_a_claim_is_judged_by_the_numbers(name):
    for errors, verdict in zip(KNOWN[name], (HOLDS, FAILS, UNDECIDED), strict=True):
        by_name, _ = found(*compared(errors))
        assert by_name[name].verdict == verdict, errors


@pytest.mark.parametrize(
    ("entropies", "verdict"),
    [
        ((0.1, 0.3, 0.5, 0.9), HOLDS),
        ((0.1, 0.5, 0.3, 0.9), MIXED),
        ((0.9, 0.5, 0.3, 0.1), FAILS),
        ((0.1, 0.3, 0.3, 0.3), IN_PART),
        ((0.3, 0.3, 0.3, 0.3), UNDECIDED),
    ],
)
def test_the_order_of_entropies_is_judged_pair_by_pair(entropies, verdict):
    comparison, records = compared(
        dict.fromkeys(ENTROPY, GOOD), entropies=dict(zip(ENTROPY, entropies, strict=True))
    )
    assert found(comparison, records)[0]["entropy-order"].verdict == verdict


@pytest.mark.parametrize(
    ("is_hit", "verdict"),
    [
        (lambda row: len(row) >= 3, HOLDS),
        (lambda row: len(row) <= 1, FAILS),
        (lambda row: False, UNDECIDED),
    ],
    ids=["large sets gain", "small sets gain", "none gains"],
)
def test_gains_are_held_against_set_sizes(is_hit, verdict):
    comparison, records = compared({"set-rnn": GOOD})
    wrong = flipped(comparison, 1.5)
    changed = []
    for record in records:
        right = record.test.predicted["set"]
        sequences = [
            bad if is_hit(true) else good
            for good, bad, true in zip(right, wrong, comparison.truth, strict=True)
        ]
        predicted = {**record.test.predicted, "sequence": sequences}
        changed.append(replace(record, test=replace(record.test, predicted=predicted)))
    assert found(comparison, changed)[0]["gain-grows-with-size"].verdict == verdict


@pytest.mark.parametrize(
    ("errors", "n_documents", "verdict"),
    [
        (GOOD, 200, HOLDS),  # the same sets: surely no gain
        ({"set": GOOD, "sequence": POOR}, 200, FAILS),
        ({"set": POOR, "sequence": POOR + 0.02}, 40, UNDECIDED),  # a gain not shown is not none
    ],
)
def test_no_gain_holds_only_where_a_gain_is_ruled_out(errors, n_documents, verdict):
    by_name, _ = found(*compared({"seq2seq-rnn": errors}, n_documents))
    assert by_name["set-does-not-help-seq2seq-rnn"].verdict == verdict


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        ((HOLDS, HOLDS), HOLDS),
        ((HOLDS, UNDECIDED), IN_PART),
        ((HOLDS, FAILS), MIXED),
        ((HOLDS, UNDECIDED, FAILS), MIXED),
        ((UNDECIDED, FAILS), FAILS),
        ((UNDECIDED, UNDECIDED), UNDECIDED),
        ((None,), None),
    ],
)
def test_a_finding_is_no_stronger_than_its_evidence(verdicts, verdict):
    assert Finding("", "", tuple(Evidence("", each) for each in verdicts)).verdict == verdict


def test_ahead_in_one_measure_and_behind_in_the_other_is_mixed_with_the_counts():
    """The recurrent systems are right more often, but never predict the rare labels."""
    comparison, records = compared({"br": GOOD, "set-rnn": GOOD, "sgm": GOOD}, n_documents=400)
    frequent = [[x for x in row if x in (0, 2, 4)] for row in comparison.truth]
    rare = [[x for x in row if x not in (0, 2, 4)] for row in comparison.truth]
    changed = [
        replace(
            record,
            test=replace(
                record.test,
                predicted=dict.fromkeys(record.rules, rare if record.method == "br" else frequent),
            ),
        )
        for record in records
    ]
    finding = found(comparison, changed)[0]["recurrent-ahead"]
    assert [each.verdict for each in finding.evidence] == [HOLDS, FAILS]
    assert finding.verdict == MIXED
    assert "2 of 2 ahead" in finding.evidence[0].text
    assert "0 of 2 ahead" in finding.evidence[1].text
    assert "2 of 2 behind" in finding.evidence[1].text


def test_the_best_is_said_to_stand_only_if_it_does():
    errors = {"set-rnn": GOOD, "br": POOR, "sigmoid": POOR}
    _, findings = found(*compared(errors))
    assert len(findings.best) == 5
    assert all("set-rnn" in each and "better than every other" in each for each in findings.best)
    _, findings = found(*compared(dict.fromkeys(errors, POOR)))
    assert all("not significantly different" in each for each in findings.best)


def test_measures_that_point_in_different_directions_make_a_finding_mixed():
    shown = Evidence("instance-F1 up", HOLDS, direction=1)
    for direction, verdict in ((-1, MIXED), (0, IN_PART), (1, IN_PART), (None, IN_PART)):
        other = Evidence("label-F1", UNDECIDED, direction=direction)
        assert Finding("x", "claim", (shown, other)).verdict == verdict
    contrary = Evidence("instance-F1 down", FAILS, direction=-1)
    assert Finding("x", "claim", (contrary, replace(shown, verdict=UNDECIDED))).verdict == MIXED
    # Where nothing is significant, the direction alone shows nothing.
    neither = (replace(shown, verdict=UNDECIDED), replace(contrary, verdict=UNDECIDED))
    assert Finding("x", "claim", neither).verdict == UNDECIDED


def test_systems_that_lead_by_different_measures_are_said_to_be_mixed():
    comparison, records = compared({"br": GOOD, "pcc": GOOD})
    label = int(np.argmin(comparison.label_counts))
    without = [[each for each in row if each != label] for row in comparison.truth]
    predicted = dict.fromkeys(records[0].rules, without)
    changed = [replace(records[0], test=replace(records[0].test, predicted=predicted)), records[1]]
    means = found(comparison, changed)[1].best
    leaders = {each.split(": ")[1].split(",")[0] for each in means[:5]}
    assert (len(leaders) > 1) == any(each.startswith("All measures: mixed") for each in means)
    assert len(leaders) > 1


def test_each_p_has_its_family_and_level_systems_the_documents_that_would_separate_them():
    by_name, findings = found(*compared({"set-rnn": GOOD, "sgm": GOOD, "br": POOR}, n_seeds=2))
    assert all("Holm, 2 tests" in each for each in findings.best if " p" in each)
    assert any("To separate them would take" in each for each in findings.best)
    for finding in by_name.values():
        for each in finding.evidence:
            assert each.p is None or "test)" in each.text or "tests" in each.text


def test_the_sentences_have_the_numbers():
    comparison, records = compared({"set-rnn": GOOD, "seq2seq-rnn": POOR}, n_seeds=2)
    by_name, _ = found(comparison, records)
    draws = bootstrap(comparison, records, draws=DRAWS)
    ours = draws.mean(Entry("set-rnn", "set"), "instance_f1")
    theirs = draws.mean(Entry("seq2seq-rnn", "sequence"), "instance_f1")
    text = by_name["set-rnn-first"].evidence[0].text
    assert f"set-rnn {ours:.3f}, seq2seq-rnn {theirs:.3f}".replace(" 0.", " .") in text
    assert f"+{ours - theirs:.3f}".replace("0.", ".") in text
    assert "p = .005" in text  # 2 / 400: the least that 399 draws can give


def test_claims_whose_systems_are_missing_are_named_not_judged():
    by_name, findings = found(*compared({"br": GOOD, "pcc": POOR}))
    assert set(by_name) == {"rule-f1", "frontier", "acceptance"}
    assert len(findings.untested) == 9


def test_one_system_is_best_of_nothing():
    _, findings = found(*compared({"br": GOOD}))
    assert all("no other system" in each for each in findings.best)


def test_without_any_success_nothing_is_found():
    comparison, records = made_comparison(("br", "set-rnn"), 1, 30)
    failed = [replace(record, test=None) for record in records]
    by_name, findings = found(comparison, failed)
    assert by_name == {}
    assert findings.best == ()


def test_the_frontier_has_whom_none_beats_in_both():
    comparison, records = compared(
        {"br": {"f1": POOR, "set": 1.2}, "pcc": 1.5, "set-rnn": {"f1": POOR, "set": GOOD}}
    )
    training, prediction = found(comparison, records)[0]["frontier"].evidence
    assert "br by rule f1 (" in training.text
    assert "set-rnn by rule set (" in training.text
    assert "pcc" not in training.text  # as fast as br, and worse
    assert "br" not in prediction.text  # as fast as set-rnn, and worse


def test_the_frontier_is_that_of_the_figure():
    comparison, records = made_comparison(n_seeds=1, n_documents=60)
    told = found(comparison, records)[0]["frontier"].evidence
    systems = group_by_system(comparison, records)
    for each, name in zip(told, ("training-time", "prediction-speed"), strict=True):
        named = re.findall(r"([\w-]+) by rule ([\w-]+)", each.text)
        assert named
        assert named == re.findall(r"([\w-]+) by rule ([\w-]+)", FIGURES[name](systems).alt)


@pytest.mark.parametrize(
    ("low", "mean", "high", "p", "verdict"),
    [
        (-0.001, 0.001, 0.003, 0.4, "holds"),
        (0.0004, 0.002, 0.006, 0.02, "not shown"),  # a gain, but hardly one that counts
        (0.006, 0.01, 0.02, 0.001, "does not hold"),
        (-0.01, 0.006, 0.02, 0.3, "not shown"),
    ],
)
def test_a_gain_is_no_help_only_where_it_is_surely_negligible(low, mean, high, p, verdict):
    found = Evidence("gain", None, Difference(mean, low, high, p), p)
    assert _require_negligible(found).verdict == verdict


def test_a_gain_that_hardly_counts_is_no_help():
    tiny, clear = Difference(0.002, 0.001, 0.003, 0.001), Difference(0.01, 0.004, 0.02, 0.001)
    assert _discount_negligible(Evidence("gain", HOLDS, tiny, 0.001)).verdict == UNDECIDED
    assert _discount_negligible(Evidence("gain", HOLDS, clear, 0.001)).verdict == HOLDS
