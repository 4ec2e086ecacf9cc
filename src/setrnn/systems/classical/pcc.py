"""PCC: a chain of classifiers, each seeing the labels before it; prediction by beam search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from setrnn.config import ClassicalSettings
from setrnn.systems.candidates import SetCandidates, log_sigmoid, pack_labels
from setrnn.systems.classical.features import indicator
from setrnn.systems.classical.linear import Arrays, LinearWeights, TrainingData
from setrnn.systems.classical.logistic import Penalties, fit_logistic
from setrnn.systems.known import Known, completed

# n documents, K beams, L labels, S labels held by a beam


@dataclass(frozen=True)
class ClassifierChain:
    """p(set) = product over l of p(y_l | x, y_1 .. y_{l-1}), labels by falling frequency."""

    linear: LinearWeights
    chain: npt.NDArray[np.float32]  # (L, L): what an earlier label adds to a later one's log-odds
    beam_width: int

    @classmethod
    def fit(
        cls,
        data: TrainingData,
        settings: ClassicalSettings,
        on_labels_done: Callable[[int], None] = lambda n_labels: None,
    ) -> ClassifierChain:
        """Fit all the classifiers at once: in training the earlier labels are known.

        The labels stand beside the features as columns; each classifier may use those
        of the labels before it.
        """
        n_features = data.features.shape[1]
        targets = indicator(data.label_sets, data.n_labels)

        def earlier(labels: slice) -> Tensor:
            columns = torch.arange(labels.start, labels.stop)
            is_earlier = torch.arange(data.n_labels)[:, None] < columns
            return torch.cat([torch.ones(n_features, len(columns)), is_earlier.float()])

        weights, intercepts = fit_logistic(
            sp.hstack([data.features, targets], "csr"),
            targets,
            Penalties(settings.l1, settings.l2),
            allowed=earlier,
            max_steps=settings.max_steps,
            tolerance=settings.tolerance,
            on_labels_done=on_labels_done,
        )
        return cls(
            LinearWeights(weights[:n_features], intercepts),
            weights[n_features:],
            settings.beam_width,
        )

    def candidates(
        self, features: sp.csr_matrix, n_sets: int, known: Known | None = None
    ) -> SetCandidates:
        """Search the chain with a beam over all documents at once.

        The probabilities are exact; sets outside the beam are missed. All of the beam is given,
        however few are asked for. Where a label is known, all beams decide it so.
        """
        logits = self.linear.logits(features)
        n, n_labels = logits.shape
        closed = None if known is None else _closed(known, n_labels)
        beams = Beams.empty(n)
        for label in range(n_labels):
            beams = beams.extend(
                label,
                logits[:, label],
                self.chain[:, label],
                self.beam_width,
                None if closed is None else closed[:, :, label],
            )
        if known is not None:
            return completed(beams.labels, beams.log_probs, known)
        return SetCandidates(pack_labels(beams.labels), beams.log_probs)

    def set_log_probs(
        self, features: sp.csr_matrix, label_sets: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.float64]:
        """Return log p of given sets of each document, (n, G, S) that -1 fills up: (n, G).

        Of a given set all decisions are known, and so all log-odds.
        """
        logits = self.linear.logits(features)
        n, G, S = label_sets.shape
        log_probs = np.zeros((n, G))
        is_in = np.zeros((n, G, logits.shape[1] + 1), dtype=bool)
        np.put_along_axis(is_in, label_sets, True, axis=2)  # -1 falls in the last column
        for label in range(logits.shape[1]):
            log_odds = np.repeat(logits[:, label, None], G, axis=1)
            for held in np.moveaxis(label_sets, -1, 0):
                # later labels, and the label itself, have no weight here; -1 reads the last's 0
                log_odds += self.chain[held, label]
            log_probs += log_sigmoid(np.where(is_in[:, :, label], log_odds, -log_odds))
        return log_probs

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.linear.intercepts)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the weights of words and of labels."""
        return {
            "weights": self.linear.weights,
            "intercepts": self.linear.intercepts,
            "chain": self.chain,
            "beam_width": np.array([self.beam_width]),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> ClassifierChain:
        """Build from the weights."""
        linear = LinearWeights(arrays["weights"], arrays["intercepts"])
        return cls(linear, arrays["chain"], int(arrays["beam_width"][0]))


@dataclass(frozen=True)
class Beams:
    """The best assignments of the labels so far: which labels each holds, and its log p."""

    labels: npt.NDArray[np.int32]  # (n, K, S); -1 fills up
    log_probs: npt.NDArray[np.float64]  # (n, K), falling

    @classmethod
    def empty(cls, n: int) -> Beams:
        """Start with one empty assignment a document."""
        return cls(np.full((n, 1, 1), -1, dtype=np.int32), np.zeros((n, 1)))

    def extend(
        self,
        label: int,
        logits: npt.NDArray[np.float32],
        chain: npt.NDArray[np.float32],
        width: int,
        closed: npt.NDArray[np.float64] | None = None,
    ) -> Beams:
        """Decide one more label: every beam with it and without it; keep the best.

        `chain` ends in nothing for -1: index -1 must read 0, which the last label's own
        weight is (no label comes before itself). `closed`, documents x (without, with), is
        -inf for what may not be decided.
        """
        log_odds = np.repeat(logits[:, None], self.labels.shape[1], axis=1)  # (n, K)
        for held in np.moveaxis(self.labels, -1, 0):  # in a fixed order: padding changes no bit
            log_odds += chain[held]
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
            labels = _with_room(labels)
            labels[..., -1] = np.where(is_with, label, -1)
            labels = -np.sort(-labels, axis=-1)  # -1 last, so that the room is found again
        return Beams(labels, np.take_along_axis(both, order, axis=1))


def _closed(known: Known, n_labels: int) -> npt.NDArray[np.float64]:
    """Return -inf for what contradicts the known, else 0: documents x (without, with) x labels."""
    is_closed = np.stack((known.is_present(n_labels), known.is_absent(n_labels)), axis=1)
    return np.where(is_closed, -np.inf, 0.0)


def _with_room(labels: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return the sets with a free last column."""
    if (labels[..., -1] < 0).all():
        return labels
    return np.concatenate([labels, np.full_like(labels[..., :1], -1)], axis=-1)
