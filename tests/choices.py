"""Choices for rules to make, and every set of a few labels."""

import numpy as np

from brute_force import all_sets
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import SetCandidates, pack_labels
from setrnn.systems.limits import Limits, no_limits
from setrnn.systems.rules import find_rule
from setrnn.systems.rules.choice import Choice

NAMES = ("a", "b", "c", "d", "e")


def padded_sets(sets, n_labels):
    rows = np.full((len(sets), n_labels), -1, dtype=np.int32)
    for row, members in zip(rows, sets, strict=True):
        row[: len(members)] = members
    return rows


def whole_distribution(probs):
    """Candidates that are all sets, of these probabilities (n, 2^L), in the order of all_sets."""
    n, n_sets = probs.shape
    n_labels = n_sets.bit_length() - 1
    labels = np.broadcast_to(padded_sets(all_sets(n_labels), n_labels), (n, n_sets, n_labels))
    order = np.argsort(-probs, axis=1, kind="stable")
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.take_along_axis(probs, order, axis=1))
    return SetCandidates(np.take_along_axis(labels, order[:, :, None], axis=1), log_probs)


def asked_of(probs):
    """A system that knows the probability of every set."""
    n_labels = probs.shape[1].bit_length() - 1
    place = {members: column for column, members in enumerate(all_sets(n_labels))}

    def set_log_probs(rows, label_sets):
        columns = [
            [place[tuple(sorted(s[s >= 0].tolist()))] for s in of_document]
            for of_document in label_sets
        ]
        with np.errstate(divide="ignore"):
            return np.log(probs[rows[:, None], np.array(columns)])

    return set_log_probs


def known(limits, n_labels=5, seen=None):
    labels = LabelVocabulary(NAMES[:n_labels], tuple(range(n_labels, 0, -1)))
    return limits.for_labels(labels, None if seen is None else Ragged.from_lists(seen))


def choice_of(probs, limits=None, n_sets=None, thresholds=None):
    """A choice from the best candidates of a distribution over all sets."""
    n_labels = probs.shape[1].bit_length() - 1
    candidates = whole_distribution(probs)
    if n_sets is not None:
        candidates = SetCandidates(candidates.labels[:, :n_sets], candidates.log_probs[:, :n_sets])
    limits = no_limits(n_labels) if limits is None else limits
    if isinstance(limits, Limits):
        limits = known(limits, n_labels)
    return Choice(candidates, limits, asked_of(probs), thresholds)


def choose_sets(rule, choice):
    """The sets that a rule chooses, packed, and their log p."""
    labels = pack_labels(find_rule(rule).choose(choice))
    return labels, choice.log_probs_of(labels[:, None])[:, 0]


def random_distributions(seed, n=40, n_labels=4, sharpness=3.0):
    """Probabilities of all sets, some documents with sets that cannot be."""
    random = np.random.default_rng(seed)
    probs = np.exp(sharpness * random.standard_normal((n, 2**n_labels)))
    probs[::3] *= random.random((len(probs[::3]), 2**n_labels)) < 0.4
    probs[:, 1] += 1e-9
    return probs / probs.sum(axis=1, keepdims=True)


def f1(first, second):
    if not first and not second:
        return 1.0
    return 2 * len(set(first) & set(second)) / (len(first) + len(second))


def expected_f1(probs, chosen):
    """Expected F1 of a set under one document's distribution over all sets."""
    n_labels = len(probs).bit_length() - 1
    return sum(p * f1(chosen, s) for p, s in zip(probs, all_sets(n_labels), strict=True))


def as_sets(labels):
    return [tuple(row[row >= 0].tolist()) for row in labels]
