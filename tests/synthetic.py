"""Set distributions whose true temperature is known."""

import numpy as np
from scipy.special import log_softmax


def candidates(n, n_candidates=5, seed=0):
    """Log-probabilities of candidates in descending order; their sum is less than 1."""
    rng = np.random.default_rng(seed)
    outcomes = log_softmax(rng.normal(scale=2, size=(n, n_candidates + 1)), axis=1)
    return -np.sort(-outcomes[:, :-1], axis=1)


def outcomes_of(log_probs):
    missing = 1 - np.exp(log_probs).sum(1, keepdims=True)
    return np.concatenate([log_probs, np.log(missing)], axis=1)


def draw(log_probs, temperature=1.0, seed=0):
    """Draw the rank of each document's true set by p_T; -1 for another set."""
    probs = np.exp(log_softmax(outcomes_of(log_probs) / temperature, axis=1))
    chance = np.random.default_rng(seed).random((len(probs), 1))
    rank = np.minimum((chance > probs.cumsum(1)).sum(1), log_probs.shape[1])
    return np.where(rank == log_probs.shape[1], -1, rank)
