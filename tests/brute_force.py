"""Slow and plain: every set of a few labels, and its probability."""

from itertools import chain, combinations

import numpy as np


def all_sets(n_labels):
    """Every subset of the labels, as ascending tuples."""
    return list(chain.from_iterable(combinations(range(n_labels), k) for k in range(n_labels + 1)))


def sigmoid(logit):
    return 1 / (1 + np.exp(-np.float64(logit)))


def product_probability(logits, labels):
    """The product over all labels of one document."""
    return float(
        np.prod([sigmoid(z) if label in labels else sigmoid(-z) for label, z in enumerate(logits)])
    )


def found_sets(candidates, document):
    """The candidates of one document as {set: probability}, in their order."""
    log_probs = candidates.log_probs[document]
    found = [
        (tuple(candidates.set_at(document, rank)), float(np.exp(log_prob)))
        for rank, log_prob in enumerate(log_probs)
        if log_prob > -np.inf
    ]
    assert len(dict(found)) == len(found), "a set was found twice"
    is_found = log_probs > -np.inf
    assert (np.diff(log_probs[is_found]) <= 1e-12).all(), "probabilities must fall"
    assert is_found[: len(found)].all(), "what was not found comes last"
    return dict(found)
