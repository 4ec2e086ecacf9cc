"""A comparison made up for tests: systems of known quality, no model behind them."""

from functools import cache

import numpy as np

from setrnn.comparison.records import Comparison, Costs, Record, SetSums, TestResults
from setrnn.methods import METHODS
from setrnn.metrics import evaluate_sets, indicator_matrix
from setrnn.systems.registry import find_system

N_DOCUMENTS, LABELS = (
    300,
    ("sport", "football", "economy", "oil", "markets", "weather", "storm", "arts"),
)
# The share of labels each system of "all" gets wrong, a way to tell them apart.
ERRORS = {
    "br": 0.30,
    "br-support": 0.27,
    "pcc": 0.27,
    "seq2seq-rnn": 0.22,
    "vinyals-uniform": 0.24,
    "vinyals-sample": 0.21,
    "vinyals-max": 0.21,
    "vinyals-max-direct": 0.25,
    "sgm": 0.22,
    "set-rnn": 0.15,
    "set-rnn-exact": 0.15,
    "sigmoid": 0.20,
    "mixture": 0.13,
}
NASTY = "<img src=x onerror=alert(1)>"  # a name that does harm where it is not escaped
RULES = ("set", "f1", "hamming", "micro-f1", "label-f1")


def made_comparison(methods=tuple(ERRORS), n_seeds=3, n_documents=N_DOCUMENTS, seed=0):
    """Return a comparison and a list of its records, made once per arguments."""
    comparison, records = _make(tuple(methods), n_seeds, n_documents, seed)
    return comparison, list(records)


@cache
def _make(methods, n_seeds, n_documents, seed):
    random = np.random.default_rng(seed)
    truth = _sets(random, n_documents)
    counts = np.bincount(np.concatenate([row for row in truth if row]), minlength=len(LABELS))
    comparison = Comparison(
        data="made-up",
        data_hash="0123456789ab",
        synthetic=True,
        n_documents={"train": 10 * n_documents, "valid": n_documents, "test": n_documents},
        valid_is_cut=False,
        labels=LABELS,
        label_counts=tuple(int(each) for each in counts * 10),
        ids=tuple(f"doc-{number}" for number in range(n_documents)),
        truth=truth,
        commands=("setrnn compare made-up --out made-up",),
        unseen_sets=tuple(range(0, n_documents, 5)),
        mean_words={"train": 43.8, "valid": 43.1, "test": 42.9},
    )
    records = [
        made_record(comparison, method, number, ERRORS.get(method, 0.2), random)
        for method in methods
        for number in range(1 if METHODS[method].family == "classical" else n_seeds)
    ]
    return comparison, records


def made_record(comparison, method, seed, error, random):
    """Return a record of a system that gets a share of the labels wrong."""
    known = METHODS[method]
    rules = (*RULES, "sequence") if find_system(known).emits_sequences else RULES
    base = _with_errors(comparison.truth, error, random)
    predicted = {rule: _with_errors(base, 0.02, random) for rule in rules}
    scores = {
        rule: {
            **evaluate_sets(
                indicator_matrix(comparison.truth, comparison.n_labels),
                indicator_matrix(sets, comparison.n_labels),
            ).as_dict(),
            "rule": rule,
            "mean_probability": 0.7,
            "calibration_error": 0.04,
            "calibration_error_raw": 0.08,
            "set_log_likelihood": -1.5,
            "documents_per_second": 1000.0,
        }
        for rule, sets in predicted.items()
    }
    n = len(comparison.truth)
    is_right = np.array(
        [
            set(row) == set(true)
            for row, true in zip(predicted["set"], comparison.truth, strict=True)
        ]
    )
    sure = np.clip(0.4 + 0.4 * is_right + random.normal(0, 0.15, n), 0.01, 0.99)
    entropy = {"seq2seq-rnn": 0.02, "vinyals-uniform": 0.9, "set-rnn": 0.5}.get(method, 0.3)
    seconds = 60.0 if known.is_network else 5.0
    return Record(
        method=method,
        seed=seed,
        data_hash=comparison.data_hash,
        own_rule=known.rule,
        config={"seed": seed},
        treatment={"preset": "default", "settings": [], "budget_minutes": None},
        environment={"python": "3.11", "torch": "2.13.0", "device": "cpu", "setrnn": "0"},
        costs=Costs(seconds, 1000.0, 2000.0, seconds + 5, 10**9, None, 10**6, 1),
        epochs=[{"epoch": 1, "loss": 2.0, "instance_f1": 0.5}] if known.is_network else [],
        best_epoch=1 if known.is_network else None,
        scores={"valid": scores, "test": scores},
        test=TestResults(
            predicted=predicted,
            probability={rule: [round(float(each), 5) for each in sure] for rule in rules},
            order_entropy=[
                float(np.clip(random.normal(entropy, 0.1), 0, 1)) if len(row) > 1 else None
                for row in predicted["set"]
            ]
            if find_system(known).emits_sequences
            else None,
            true_log_probs=_log_probs(is_right, seed),
            set_sums=_set_sums(comparison, seed) if _sums(method) else None,
        ),
        cases=[made_case(comparison, number, predicted) for number in (0, 1)]
        if find_system(known).emits_sequences
        else [],
    )


def _sums(method):
    return find_system(METHODS[method]).emits_sequences and method != "set-rnn-exact"


def _log_probs(is_right, seed):
    """Return log p of the true sets: higher where the prediction is right."""
    noise = np.random.default_rng(seed).normal(0, 0.3, len(is_right))
    return [round(float(each), 5) for each in np.minimum(is_right + noise - 1.5, 0)]


def _set_sums(comparison, seed):
    """Return sums that miss more of larger sets, and less by a wider search."""
    sizes = np.array([len(row) for row in comparison.truth])
    chosen = np.flatnonzero((sizes > 1) & (sizes < 6))[:40]
    exact = np.random.default_rng(seed).normal(-2, 0.5, len(chosen))
    widths = (1, 12)
    found = [(exact - sizes[chosen] / (4 * width)).tolist() for width in widths]
    return SetSums(chosen.tolist(), list(widths), found, exact.tolist())


def made_case(comparison, document, predicted):
    """Return a document whose best sequence is not of its most probable set."""
    names = [comparison.labels[label] for label in predicted["set"][document]] or ["sport"]
    others = [*names, "arts"] if "arts" not in names else names[:-1]
    sequences = ((others, 0.3, 0.3), (names, 0.25, 0.45), (names[::-1], 0.2, 0.45))
    return {
        "id": comparison.ids[document],
        "truth": [comparison.labels[label] for label in comparison.truth[document]],
        "sequences": [
            {"labels": labels, "probability": p, "set_probability": of_set, "is_exact": True}
            for labels, p, of_set in sequences
        ],
    }


def _sets(random, n):
    """Draw label sets: frequent labels first, some of which go together."""
    chances = np.array([0.5, 0.35, 0.4, 0.2, 0.2, 0.15, 0.1, 0.08])
    drawn = random.random((n, len(chances))) < chances
    drawn[:, 1] &= drawn[:, 0]
    return [np.flatnonzero(row).tolist() for row in drawn]


def _with_errors(sets, share, random):
    """Flip labels, so that about this share of them is wrong."""
    is_flipped = random.random((len(sets), len(LABELS))) < share / 3
    return [
        sorted(set(row) ^ set(np.flatnonzero(flipped).tolist())) if flipped.any() else row
        for row, flipped in zip(sets, is_flipped, strict=True)
    ]
