"""PCC: a chain of classifiers, each reading the labels before it; prediction by beam search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # scipy.sparse is imported where it is first used

from setrnn.config import MAX_BEAM_WIDTH
from setrnn.data.labels import Incomplete
from setrnn.systems.candidates import (
    Bools,
    Floats,
    Floats32,
    Ids,
    SetCandidates,
    log_sigmoid,
    pack_labels,
)
from setrnn.systems.classical.features import Tfidf, indicator
from setrnn.systems.classical.system import (
    ClassicalSystem,
    LinearWeights,
    TrainingData,
    fit_linear,
    fit_regressions,
    ignore_labels,
)
from setrnn.systems.known import Known, make_completions
from setrnn.systems.products import log_empty_of, log_total, shift_candidates, shift_log_probs
from setrnn.systems.system import Arrays

# n documents, K beams, L labels, G given sets, S labels of a beam

LEAST_GUESS = 0.05  # smaller probabilities of unknown labels are taken as 0


@dataclass(frozen=True)
class ClassifierChain(ClassicalSystem):
    """p(set) = product over l of p(y_l | x, y_1 .. y_{l-1}), frequent labels first."""

    chain: Floats32  # (L, L) what label i adds to the log-odds of label j > i
    beam_width: int

    @classmethod
    def fit(cls, tfidf: Tfidf, data: TrainingData) -> ClassifierChain:
        """Fit all classifiers at once: in training the earlier labels are known.

        The labels are further columns beside the features; each classifier may use the columns
        of the labels before its own. Such a column is the probability that BR gives the label in
        documents where it is not known.
        """
        n_features = data.features.shape[1]

        def earlier(labels: slice) -> Bools:
            columns = np.arange(labels.start, labels.stop)
            is_earlier = np.arange(data.n_labels)[:, None] < columns
            return np.concatenate([np.ones((n_features, len(columns)), dtype=bool), is_earlier])

        values = indicator(data.label_sets, data.n_labels)
        if data.incomplete is not None:
            values = values + _guess_unknown(data, data.incomplete)
        columns = scipy.sparse.hstack([data.features, values], "csr")
        weights, intercepts = fit_regressions(replace(data, features=columns), earlier)
        linear = LinearWeights(weights[:n_features], intercepts)
        return cls(tfidf, linear, weights[n_features:], data.settings.beam_width)

    def find_sets(self, logits: Floats32, n_sets: int, known: Known | None = None) -> SetCandidates:
        """Search the chain with a beam, for all documents at once.

        The probabilities are exact; sets outside the beam are missed. The whole beam and the empty
        set are returned, whatever `n_sets` is. All beams follow the known labels.
        """
        n, n_labels = logits.shape
        closed = None if known is None else _close(known, n_labels)
        beams = Beams.empty(n)
        label_probs = np.zeros((n, n_labels), dtype=np.float32)
        for label in range(n_labels):
            log_odds = beams.log_odds(logits[:, label], self.chain[:, label])
            label_probs[:, label] = beams.mean_prob(log_odds)
            closed_now = None if closed is None else closed[:, :, label]
            beams = beams.extend(label, log_odds, self.beam_width, closed_now)
        # without labels before it, a label has the log-odds of the features alone
        log_empty = log_empty_of(logits)
        labels, log_probs = shift_candidates(
            beams.labels, beams.log_probs, log_empty, self.empty_shift, known
        )
        if known is not None:
            return make_completions(SetCandidates(labels, log_probs), known)
        total = np.exp(log_total(log_empty, self.empty_shift))[:, None]
        label_probs = np.minimum(label_probs / total, 1.0).astype(np.float32)
        return SetCandidates(pack_labels(labels), log_probs, label_probs=label_probs)

    def score_sets(self, logits: Floats32, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1.

        All decisions of a given set are known, and with them all log-odds.
        """
        n, G, S = label_sets.shape
        log_probs = np.zeros((n, G))
        is_in = np.zeros((n, G, logits.shape[1] + 1), dtype=bool)
        np.put_along_axis(is_in, label_sets, True, axis=2)  # -1 writes the last column
        for label in range(logits.shape[1]):
            log_odds = np.repeat(logits[:, label, None], G, axis=1)
            for held in np.moveaxis(label_sets, -1, 0):
                # later labels and the label itself have weight 0; -1 reads the last label, also 0
                log_odds += self.chain[held, label]
            log_probs += log_sigmoid(np.where(is_in[:, :, label], log_odds, -log_odds))
        return shift_log_probs(log_probs, label_sets, log_empty_of(logits), self.empty_shift)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the weights of features and of labels."""
        own = {"chain": self.chain, "beam_width": np.array([self.beam_width])}
        return {**super().arrays(), **own}

    @classmethod
    def _read_own(cls, arrays: Arrays, n_labels: int) -> dict[str, Any]:
        chain, beam_width = arrays["chain"], int(arrays["beam_width"][0])
        if chain.shape != (n_labels, n_labels) or np.tril(chain).any():
            raise ValueError(f"chain {chain.shape} does not fit {n_labels:,} labels")
        if not 1 <= beam_width <= MAX_BEAM_WIDTH:
            raise ValueError(f"beam_width is {beam_width:,}")
        return {"chain": chain, "beam_width": beam_width}


@dataclass(frozen=True)
class Beams:
    """The best assignments of the labels so far: the labels of each, and its log p."""

    labels: Ids  # (n, K, S), padded with -1
    log_probs: Floats  # (n, K), descending

    @classmethod
    def empty(cls, n: int) -> Beams:
        """Start with one empty assignment per document."""
        return cls(np.full((n, 1, 1), -1, dtype=np.int32), np.zeros((n, 1)))

    def extend(
        self,
        label: int,
        log_odds: Floats32,
        width: int,
        closed: Floats | None = None,
    ) -> Beams:
        """Extend every beam with and without one more label; keep the best.

        `closed`, documents x (without, with), is -inf for what contradicts the known.
        """
        without = self.log_probs + log_sigmoid(-log_odds)
        with_it = self.log_probs + log_sigmoid(log_odds)
        if closed is not None:
            without, with_it = without + closed[:, :1], with_it + closed[:, 1:]
        n_beams = self.log_probs.shape[1]
        both = np.concatenate([without, with_it], axis=1)  # (n, 2K)
        order = np.argsort(-both, axis=1, kind="stable")[:, :width]
        parent, is_with = order % n_beams, order >= n_beams
        labels = np.take_along_axis(self.labels, parent[:, :, None], axis=1)
        if is_with.any():
            if (labels[..., -1] >= 0).any():
                labels = np.concatenate([labels, np.full_like(labels[..., :1], -1)], axis=-1)
            labels[..., -1] = np.where(is_with, label, -1)
            labels = -np.sort(-labels, axis=-1)  # -1 last, so that the free column is found again
        return Beams(labels, np.take_along_axis(both, order, axis=1))

    def mean_prob(self, log_odds: Floats32) -> Floats:
        """Return p(label), (n,), from its log-odds after each beam, (n, K).

        The beams stand for the assignments that were pruned.
        """
        best = np.maximum(self.log_probs.max(axis=1, keepdims=True), -1e300)
        weights = np.exp(self.log_probs - best)
        total = np.maximum(weights.sum(axis=1), 1e-300)
        return np.asarray((weights * scipy.special.expit(log_odds)).sum(axis=1) / total)

    def log_odds(self, logits: Floats32, chain: Floats32) -> Floats32:
        """Return the log-odds of one more label after each beam, (n, K).

        Index -1 reads the last element of `chain`, which is 0: the weight of the last label for
        itself.
        """
        log_odds = np.repeat(logits[:, None], self.labels.shape[1], axis=1)
        for held in np.moveaxis(self.labels, -1, 0):  # one by one: padding changes no bit
            log_odds += chain[held]
        return log_odds


def _guess_unknown(data: TrainingData, incomplete: Incomplete) -> scipy.sparse.csr_matrix:
    """Return p(label | document, what is known) by BR where it is not known and likely: (n, L)."""
    linear = fit_linear(replace(data, on_labels_done=ignore_labels))
    logits = linear.logits(data.features)
    posterior = scipy.special.expit(logits + incomplete.open_weights(slice(0, data.n_labels)))
    return scipy.sparse.csr_matrix(np.where(posterior < LEAST_GUESS, 0, posterior))


def _close(known: Known, n_labels: int) -> Floats:
    """Return -inf for what contradicts the known, else 0: documents x (without, with) x labels."""
    is_closed = np.stack((known.is_present(n_labels), known.is_absent(n_labels)), axis=1)
    return np.where(is_closed, -np.inf, 0.0)
