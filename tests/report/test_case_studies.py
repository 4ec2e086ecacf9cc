from dataclasses import replace

import pytest

from made_comparison import made_comparison
from setrnn.report.case_studies import Reading, choose_pair_case, choose_spread_case


def case(document, truth, steps, sequences=None, sets=None):
    return {
        "document": document,
        "id": f"doc-{document}",
        "truth": truth,
        "words": ["cup", "<final>"],
        "differs": sequences is not None,
        "sequences": sequences or [{"labels": steps, "probability": 0.5, "set": "A"}],
        "sets": sets or [{"name": "A", "labels": steps, "probability": 0.6, "is_exact": True}],
        "steps": [
            {"label": label, "probability": 0.9, "attended": [["cup", 0.7], ["<final>", 0.2]]}
            for label in [*steps, None]
        ],
    }


SPREAD = {
    "sequences": [
        {"labels": ["a"], "probability": 0.3, "set": "B"},
        {"labels": ["a", "b"], "probability": 0.25, "set": "A"},
        {"labels": ["b", "a"], "probability": 0.2, "set": "A"},
    ],
    "sets": [
        {"name": "A", "labels": ["a", "b"], "probability": 0.46, "is_exact": False},
        {"name": "B", "labels": ["a"], "probability": 0.3, "is_exact": True},
    ],
}


@pytest.fixture
def records():
    _, made = made_comparison(("seq2seq-rnn", "set-rnn"), 2, 20)
    return {record.name: replace(record, cases=[]) for record in made}


def with_cases(records, **cases):
    named = {name.replace("_", "-"): found for name, found in cases.items()}
    return [replace(record, cases=named.get(name, [])) for name, record in records.items()]


def test_a_right_set_unlike_the_best_sequence_is_chosen(records):
    wrong = case(1, ["c"], ["a", "b"], **SPREAD)
    right = case(2, ["a", "b"], ["a", "b"], **SPREAD)
    same = case(3, ["a"], ["a"])
    chosen = choose_spread_case(with_cases(records, set_rnn_0=[same, wrong, right]))
    assert chosen.case is right
    chosen = choose_spread_case(with_cases(records, set_rnn_0=[wrong], seq2seq_rnn_0=[right]))
    assert chosen.system == "set-rnn"
    assert choose_spread_case(with_cases(records, set_rnn_0=[same])) is None


def test_a_pair_is_one_document_that_only_the_second_gets_right(records):
    right, wrong = case(5, ["a", "b"], ["b", "a"]), case(5, ["a", "b"], ["a"])
    chosen = choose_pair_case(with_cases(records, set_rnn_0=[right], seq2seq_rnn_0=[wrong]))
    assert chosen.first == Reading("seq2seq-rnn", wrong)
    assert chosen.second == Reading("set-rnn", right)
    better = case(7, ["a", "b"], ["a", "b", "c"])
    worse = case(7, ["a", "b"], ["c"])
    more = with_cases(records, set_rnn_0=[better, right], seq2seq_rnn_0=[worse, wrong])
    assert choose_pair_case(more).second == Reading("set-rnn", right)  # right before better
    only = with_cases(records, set_rnn_0=[better], seq2seq_rnn_0=[worse])
    assert choose_pair_case(only).second == Reading("set-rnn", better)
    for ours, theirs in ((wrong, right), (right, right), (wrong, wrong)):
        found = with_cases(records, set_rnn_0=[ours], seq2seq_rnn_0=[theirs])
        assert choose_pair_case(found) is None
    other = case(6, ["a", "b"], ["a"])
    assert choose_pair_case(with_cases(records, set_rnn_0=[right], seq2seq_rnn_0=[other])) is None
    # of another seed is another pair of models
    found = with_cases(records, set_rnn_0=[right], seq2seq_rnn_1=[wrong])
    assert choose_pair_case(found) is None
