"""BR: each label by itself; p(set) is the product over all labels.

BR-support restricts the product to the label sets seen in training.
"""

# n documents, G seen or given sets, L labels

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy  # scipy.sparse is imported where it is first used

from setrnn.data.labels import distinct_sets
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError
from setrnn.systems.candidates import (
    Bools,
    Floats,
    Floats32,
    Ids,
    LabelSizeProbs,
    SetCandidates,
    pack_labels,
    rank_sets,
)
from setrnn.systems.classical.features import Tfidf
from setrnn.systems.classical.system import ClassicalSystem, TrainingData, fit_linear
from setrnn.systems.independent import list_likely_labels
from setrnn.systems.known import Known, make_completions
from setrnn.systems.limits import SeenSets, set_keys
from setrnn.systems.products import most_probable_products, product_log_probs
from setrnn.systems.system import Arrays

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class BinaryRelevance(ClassicalSystem):
    """Independent logistic regressions."""

    @classmethod
    def fit(cls, tfidf: Tfidf, data: TrainingData) -> Self:
        """Fit one regression per label."""
        return cls(tfidf, fit_linear(data))

    def find_sets(self, logits: Floats32, n_sets: int, known: Known | None = None) -> SetCandidates:
        """Return the most probable sets under the product, exactly."""
        return most_probable_products(logits, n_sets, known, self.empty_shift)

    def score_sets(self, logits: Floats32, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        return product_log_probs(logits, label_sets, self.empty_shift)


@dataclass(frozen=True)
class SupportCandidates(SetCandidates):
    """The best sets seen in training, and the probabilities of all seen sets."""

    of_documents = (*SetCandidates.of_documents, "support_log_probs", "logits")
    seen: SeenSets
    support_log_probs: Floats  # (n, G)
    logits: Floats32  # (n, L) of BR

    def marginals(self, n_labels: int) -> Floats32:
        """Return p(label | document), (n, L): that of BR, or of the seen sets if it is larger.

        BR alone does not know which labels occur together. The seen sets give hardly anything to
        a label that they combine with others. Of both and their means, the larger one was the
        best on valid: docs/rules.md.
        """
        return self._marginals

    @cached_property
    def _marginals(self) -> Floats32:
        of_seen = np.asarray((self.seen.members.T @ np.exp(self.support_log_probs).T).T)
        larger = np.maximum(of_seen, scipy.special.expit(self.logits))
        return np.asarray(np.minimum(larger, 1.0), dtype=np.float32)

    def missing_mass(self) -> Floats:
        """Return 0: all other sets have probability 0."""
        return np.zeros(len(self))

    def log_probs_of(self, label_sets: Ids) -> Floats:
        """Return log p of given sets, (n, G, S): (n, G); -inf for sets not seen."""
        keys = self.seen.keys
        order = np.argsort(keys)
        asked = set_keys(label_sets, self.seen.n_labels)
        place = order[np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)]
        found = np.take_along_axis(self.support_log_probs, place, axis=1)
        return np.where(keys[place] == asked, found, -np.inf)

    def label_size_probs(self, n_labels: int, also: Sequence[int] = ()) -> LabelSizeProbs:
        """Sum the probabilities of the seen sets of each size that contain each label."""
        probs = np.exp(self.support_log_probs)
        marginals = np.asarray((self.seen.members.T @ probs.T).T)
        labels = list_likely_labels(marginals, also)
        sizes = self.seen.sizes
        found = np.zeros((*labels.shape, max(int(sizes.max(initial=0)), 1)))
        for size in range(1, found.shape[2] + 1):
            is_of_size = sizes == size
            summed = np.asarray((self.seen.members[is_of_size].T @ probs[:, is_of_size].T).T)
            found[:, :, size - 1] = np.take_along_axis(summed, labels, axis=1)
        return LabelSizeProbs(labels, found, probs[:, sizes == 0].sum(axis=1))


@dataclass(frozen=True)
class SupportInference(ClassicalSystem):
    """BR, restricted in prediction to the label sets seen in training.

    The probability of a set is BR's product, divided by the sum over all seen sets. The shift of
    the empty set matters if that was seen.
    """

    support: Ragged  # the distinct label sets of training

    @classmethod
    def fit(cls, tfidf: Tfidf, data: TrainingData) -> Self:
        """Fit BR and collect the label sets of the complete documents."""
        label_sets = data.label_sets
        if data.incomplete is not None:
            label_sets = label_sets.take(np.flatnonzero(data.incomplete.is_complete))
        if not len(label_sets):
            raise DataError(
                "br-support predicts label sets of complete documents, and no training document is "
                "complete. Train br instead, or add complete documents."
            )
        support, _ = distinct_sets(label_sets)
        return cls(tfidf, fit_linear(data), support)

    def _seen_log_probs(self, logits: Floats32) -> Floats:
        """Return log p of each seen set, documents x sets, from BR's log-odds.

        The log of the product over all L labels is, up to a constant per document, the sum of
        the log-odds of the labels of the set: one sparse product for all sets.
        """
        scores = np.asarray((self._seen.members @ logits.astype(np.float64).T).T)
        scores[:, self.support.lengths == 0] += self.empty_shift
        return np.asarray(scores - scipy.special.logsumexp(scores, axis=1, keepdims=True))

    def find_sets(self, logits: Floats32, n_sets: int, known: Known | None = None) -> SetCandidates:
        """Return the most probable seen sets.

        If no seen set fits what is known, the candidate is the set of present labels, with
        probability 0.
        """
        log_probs = self._seen_log_probs(logits)
        if known is not None:
            log_probs = np.where(self._fits(known), log_probs, -np.inf)
        n_sets = min(n_sets, len(self.support))
        best = np.argpartition(-log_probs, n_sets - 1, axis=1)[:, :n_sets]
        best_log_probs = np.take_along_axis(log_probs, best, axis=1)
        labels, best_log_probs = rank_sets(self._seen.labels[best], best_log_probs)
        if known is not None:
            return make_completions(SetCandidates(labels, best_log_probs), known)
        labels = pack_labels(labels)
        return SupportCandidates(labels, best_log_probs, self._seen, log_probs, logits)

    def _fits(self, known: Known) -> Bools:
        """Mark the seen sets with all present and no absent labels: documents x sets."""
        is_present, is_absent = known.is_present(self.n_labels), known.is_absent(self.n_labels)
        n_present = self._seen.members @ is_present.T.astype(np.float32)  # (sets, n)
        n_absent = self._seen.members @ is_absent.T.astype(np.float32)
        return np.asarray(((n_present == is_present.sum(1)) & (n_absent == 0)).T)

    @cached_property
    def _seen(self) -> SeenSets:
        return SeenSets(self.support.padded(min_width=1), self.n_labels)

    def score_sets(self, logits: Floats32, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S); -inf for sets not seen in training."""
        return self.find_sets(logits, 1).log_probs_of(label_sets)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return BR's arrays and the seen sets."""
        return {
            **super().arrays(),
            "support": np.asarray(self.support.values, dtype=np.int32),
            "support_offsets": self.support.offsets,
        }

    @classmethod
    def _read_own(cls, arrays: Arrays, n_labels: int) -> dict[str, Any]:
        support = Ragged(arrays["support"], arrays["support_offsets"])
        support.check_ids(n_labels)
        if not len(support):
            raise ValueError("there is no label set")
        return {"support": support}
