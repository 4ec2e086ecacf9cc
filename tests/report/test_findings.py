"""Each finding of the paper where it is true, where the contrary is, and where nothing is shown."""

from dataclasses import replace

import numpy as np
import pytest

from made_comparison import made_comparison
from setrnn.comparison.statistics import Difference, Entry
from setrnn.report.findings import (
    ENTROPY_ORDER,
    FAILS,
    HOLDS,
    PAPERS_FINDINGS,
    UNDECIDED,
    find,
    findings_table,
    judge,
)
from setrnn.report.study import Study

GOOD, POOR = 0.05, 0.6  # the share of labels that are wrong
DRAWS = 399
SETS = {"set": GOOD, "sequence": POOR}
SEQUENCES = {"set": POOR, "sequence": GOOD}
FIRST = ("set-rnn", "seq2seq-rnn", "vinyals-max")
BEHIND = ("br", "pcc", "set-rnn", "sgm")


def compared(errors, n_documents=200, n_seeds=1, entropies=None):
    """Return a comparison and records; errors by system, or by system and rule.

    Systems and rules of the same error predict the same: nothing tells them apart.
    """
    comparison, records = made_comparison(tuple(errors), n_seeds, n_documents)
    changed = []
    for record in records:
        wanted = errors[record.method]
        by_rule = (
            wanted if isinstance(wanted, dict) else dict.fromkeys(record.test.predicted, wanted)
        )
        predicted = {
            rule: flipped(comparison, by_rule.get(rule, GOOD)) for rule in record.test.predicted
        }
        test = replace(record.test, predicted=predicted)
        if entropies is not None:
            spread = entropies_near(entropies[record.method], predicted["set"])
            test = replace(test, order_entropy=spread)
        changed.append(replace(record, test=test))
    return comparison, changed


def flipped(comparison, share):
    """Flip labels of the true sets, the same ones for the same share."""
    random = np.random.default_rng(7)
    is_wrong = random.random((len(comparison.truth), comparison.n_labels)) < share / 3
    return [
        sorted(set(row) ^ set(np.flatnonzero(wrong).tolist()))
        for row, wrong in zip(comparison.truth, is_wrong, strict=True)
    ]


def entropies_near(mean, sets):
    random = np.random.default_rng(3)
    values = np.clip(mean + random.normal(0, 0.05, len(sets)), 0, 1)
    return [float(each) if len(row) > 1 else None for each, row in zip(values, sets, strict=True)]


def verdicts(comparison, records):
    """Return the verdicts by name of the finding."""
    found = {}
    for each in find(Study.of(comparison, records, DRAWS)):
        found.setdefault(each.name, []).append(each.verdict)
    return found


@pytest.mark.parametrize(
    ("name", "true", "contrary", "equal"),
    [
        ("set-rnn-first", *(dict(zip(FIRST, each, strict=True)) for each in (
            (GOOD, POOR, POOR), (POOR, POOR, GOOD), (POOR, POOR, POOR)))),
        ("recurrent-ahead", *(dict(zip(BEHIND, each, strict=True)) for each in (
            (POOR, POOR, GOOD, GOOD), (POOR, GOOD, POOR, POOR), (POOR, POOR, POOR, POOR)))),
        ("max-needs-a-start", *({"vinyals-max": one, "vinyals-max-direct": other} for one, other in
            ((GOOD, POOR), (POOR, GOOD), (POOR, POOR)))),
        ("set-helps-set-rnn", *({"set-rnn": each} for each in (SETS, SEQUENCES, GOOD))),
        ("set-helps-vinyals-uniform",
            *({"vinyals-uniform": each} for each in (SETS, SEQUENCES, GOOD))),
        ("rare-labels", *({"set-rnn": one, "seq2seq-rnn": other} for one, other in
            ((GOOD, POOR), (POOR, GOOD), (POOR, POOR)))),
    ],
)  # fmt: skip
def test_a_claim_is_judged_by_the_numbers(name, true, contrary, equal):
    for errors, verdict in ((true, HOLDS), (contrary, FAILS), (equal, UNDECIDED)):
        assert set(verdicts(*compared(errors))[name]) == {verdict}, errors


def test_most_recurrent_systems_are_ahead_only_if_more_than_half_are():
    errors = {"br": 0.3, "set-rnn": GOOD, "sgm": GOOD, "vinyals-max": POOR, "seq2seq-rnn": POOR}
    assert HOLDS not in verdicts(*compared(errors))["recurrent-ahead"]
    more = {**errors, "vinyals-max": GOOD}
    assert set(verdicts(*compared(more))["recurrent-ahead"]) == {HOLDS}


@pytest.mark.parametrize(
    ("entropies", "expected"),
    [
        ((0.1, 0.3, 0.5, 0.9), [HOLDS, HOLDS, HOLDS]),
        ((0.1, 0.5, 0.3, 0.9), [HOLDS, FAILS, HOLDS]),
        ((0.1, 0.3, 0.3, 0.3), [HOLDS, UNDECIDED, UNDECIDED]),
    ],
)
def test_the_order_of_entropies_is_judged_pair_by_pair(entropies, expected):
    by_system = dict(zip(ENTROPY_ORDER, entropies, strict=True))
    made = compared(dict.fromkeys(ENTROPY_ORDER, GOOD), entropies=by_system)
    assert verdicts(*made)["entropy-order"] == expected


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
    comparison, (record,) = compared({"set-rnn": GOOD})
    rows = zip(
        record.test.predicted["set"], flipped(comparison, 1.5), comparison.truth, strict=True
    )
    sequences = [bad if is_hit(true) else good for good, bad, true in rows]
    predicted = {**record.test.predicted, "sequence": sequences}
    changed = replace(record, test=replace(record.test, predicted=predicted))
    assert verdicts(comparison, [changed])["gain-grows-with-size"] == [verdict]


@pytest.mark.parametrize(
    ("errors", "n_documents", "verdict"),
    [
        (GOOD, 200, HOLDS),  # the same sets: surely no gain
        (SETS, 200, FAILS),
        ({"set": POOR, "sequence": POOR + 0.02}, 40, UNDECIDED),  # a gain not shown is not none
    ],
)
def test_no_gain_holds_only_where_a_gain_is_ruled_out(errors, n_documents, verdict):
    found = verdicts(*compared({"seq2seq-rnn": errors}, n_documents))
    assert set(found["set-does-not-help-seq2seq-rnn"]) == {verdict}


@pytest.mark.parametrize(
    ("low", "mean", "high", "p", "gain", "no_gain"),
    [
        (-0.001, 0.001, 0.003, 0.4, UNDECIDED, HOLDS),
        (0.001, 0.002, 0.003, 0.001, UNDECIDED, HOLDS),  # surely negligible
        (0.0004, 0.002, 0.006, 0.02, HOLDS, UNDECIDED),
        (0.006, 0.01, 0.02, 0.001, HOLDS, FAILS),
        (-0.01, 0.006, 0.02, 0.3, UNDECIDED, UNDECIDED),
        (-0.02, -0.01, -0.005, 0.001, FAILS, HOLDS),
    ],
)
def test_the_verdict_follows_from_the_difference(low, mean, high, p, gain, no_gain):
    found = Difference(mean, low, high, p)
    assert (judge(found), judge(found, is_gain_denied=True)) == (gain, no_gain)


def test_the_table_has_the_differences_of_the_statistics():
    comparison, records = compared({"set-rnn": GOOD, "seq2seq-rnn": POOR}, n_seeds=2)
    study = Study.of(comparison, records, DRAWS)
    table = findings_table(find(study))
    expected = study.draws.difference(
        Entry("set-rnn", "set"), Entry("seq2seq-rnn", "sequence"), "instance_f1"
    )
    _, compared_systems, measure, difference, p, _ = (values[0] for values in table.values.values())
    assert (compared_systems, measure) == ("set-rnn minus seq2seq-rnn", "instance-F1")
    found = difference.value, difference.low, difference.high
    assert found == (expected.mean, expected.low, expected.high)
    assert p == 2 * expected.p  # corrected for two measures


def test_claims_whose_systems_are_missing_are_left_out():
    assert verdicts(*compared({"br": GOOD, "pcc": POOR})) == {}
    comparison, records = made_comparison(("br", "set-rnn"), 1, 30)
    assert verdicts(comparison, [replace(record, test=None) for record in records]) == {}
    systems = ("br", "vinyals-max-direct", *ENTROPY_ORDER)
    assert set(verdicts(*made_comparison(systems, 2, 60))) == set(PAPERS_FINDINGS)
