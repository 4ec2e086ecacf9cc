"""Draws of the test documents and of the runs, and the measures of each draw."""

# N documents, R runs, D draws, L labels that occur in some document

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from setrnn.comparison.records import Comparison, LabelSets
from setrnn.metrics import MEASURES, document_f1, evaluate_sets, indicator_matrix

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    from setrnn.metrics import Sparse

    Floats: TypeAlias = NDArray[np.float32]
    Values: TypeAlias = NDArray[np.float64]

_BLOCK_DRAWS = 128  # measured at once: their counts fit into the processor's cache
_KEPT_WEIGHTS = 1 << 28  # documents x draws kept in memory: 1 GB
LABEL_F1 = "label_f1"


class Documents:
    """The test documents, and how often each is in each draw.

    Documents are sorted by id, so that the draws do not depend on the order of the records.
    """

    def __init__(self, comparison: Comparison, n_draws: int, seed: int) -> None:
        self.n_draws, self.n_documents = n_draws, len(comparison.truth)
        self._seed = seed
        self._n_labels = comparison.n_labels
        self._order = sorted(range(len(comparison.ids)), key=comparison.ids.__getitem__)
        self._given = comparison.truth
        self._truth = self._matrix(comparison.truth)
        n = self.n_documents
        counts = np.bincount(self._truth.indices, minlength=self._n_labels)
        self._occurring = np.flatnonzero(counts)
        # A draw may miss all documents of a rare label, whose F1 is then 0. Weight labels by 1 /
        # the chance to be drawn: otherwise draws would be below the score of rare labels.
        chances = 1 - (1 - counts[self._occurring] / n) ** n
        self._label_shares = (1 / (chances * self._n_labels)).astype(np.float32)  # (L,)
        self._kept: list[tuple[Floats, Floats]] | None = None

    def scores(self, predicted: LabelSets) -> dict[str, float]:
        """Measure a run on all documents."""
        scores = evaluate_sets(
            *(indicator_matrix(sets, self._n_labels) for sets in (self._given, predicted))
        )
        return {name: getattr(scores, name) for name in MEASURES}

    def draw(self, runs: Sequence[LabelSets]) -> dict[str, Values]:
        """Measure the runs of an entry on each draw, (R, D) per measure, except label-F1."""
        columns = np.concatenate([self._count(predicted) for predicted in runs])  # (4 R, N)
        drawn: dict[str, list[NDArray[Any]]] = {name: [] for name in MEASURES if name != LABEL_F1}
        for weights, _ in self._blocks():
            sums = (columns @ weights).reshape(len(runs), 4, -1)
            f1, n_exact, n_correct, n_both = sums.transpose(1, 0, 2)  # each (R, D)
            n = np.float32(weights.shape[0])
            drawn["instance_f1"].append(f1 / n)
            drawn["subset_accuracy"].append(n_exact / n)
            is_empty = n_both == 0
            drawn["micro_f1"].append(np.where(is_empty, 1, 2 * n_correct / (n_both + is_empty)))
            drawn["hamming_loss"].append((n_both - 2 * n_correct) / (n * self._n_labels))
        return {name: _join(each) for name, each in drawn.items()}

    def draw_label_f1(self, runs: Sequence[LabelSets]) -> Values:
        """Measure the label-F1 of the runs of an entry on each draw: (R, D). It takes longest."""
        counted = [self._count_by_label(predicted) for predicted in runs]
        return _join(
            [
                np.stack([self._label_f1(*counts, weights, twice_true) for counts in counted])
                for weights, twice_true in self._blocks()
            ]
        )

    def draw_means(self, values: Values) -> Values:
        """Average values of documents (R, N) over each draw, (R, D); NaN where one is not known."""
        ordered = values[:, self._order]
        is_known = np.isfinite(ordered)
        columns = np.where(is_known, ordered, 0).astype(np.float32)
        known = is_known.astype(np.float32)
        drawn = [
            (columns @ weights) / np.maximum(known @ weights, 1) for weights, _ in self._blocks()
        ]
        return _join(drawn)

    def _count(self, predicted: LabelSets) -> Floats:
        """Return F1, is exact, n correct labels, n true + n predicted labels: (4, N)."""
        sets = self._matrix(predicted)
        n_correct = np.diff(self._truth.multiply(sets).tocsr().indptr)
        n_both = np.diff(self._truth.indptr) + np.diff(sets.indptr)
        f1, is_exact = document_f1(self._truth, sets), n_both == 2 * n_correct
        return np.stack([f1, is_exact, n_correct, n_both]).astype(np.float32)

    def _count_by_label(self, predicted: LabelSets) -> tuple[Sparse, Sparse]:
        """Return the documents in which each label was missed, and wrong: (L, N) each."""
        sets = self._matrix(predicted)
        correct = self._truth.multiply(sets).tocsr()
        return self._by_label(self._truth, correct), self._by_label(sets, correct)

    def _label_f1(
        self, missed: Sparse, wrong: Sparse, weights: Floats, twice_true: Floats
    ) -> Floats:
        """Measure label-F1 on a block of draws, in place."""
        n_missed = missed @ weights  # (L, D)
        n_either = wrong @ weights
        n_either -= n_missed
        n_either += twice_true
        twice_correct = n_missed
        twice_correct *= -2
        twice_correct += twice_true
        f1 = np.divide(twice_correct, np.maximum(n_either, 1, out=n_either), out=twice_correct)
        label_f1: Floats = self._label_shares @ f1
        return label_f1

    def draw_runs(self, system: str, n_runs: int) -> Values:
        """Return the share of each run of a system in each draw, (R, D)."""
        random = np.random.default_rng([self._seed, 1, zlib.crc32(system.encode())])
        n_taken = max(1, n_runs - 1)
        counts: Values = random.multinomial(n_taken, [1 / n_runs] * n_runs, self.n_draws).T
        return counts / n_taken

    def _blocks(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield blocks of weights, (N, D), and twice the true documents of each label, (L, D).

        Blocks are kept in memory where they are small enough, otherwise computed again per entry.
        """
        if self._kept is not None:
            yield from self._kept
            return
        n = self._truth.shape[0]
        kept: list[tuple[Floats, Floats]] = []
        truth = self._by_label(self._truth, None)
        random = np.random.default_rng([self._seed, 0])
        for start in range(0, self.n_draws, _BLOCK_DRAWS):
            weights = np.empty((n, min(_BLOCK_DRAWS, self.n_draws - start)), dtype=np.float32)
            for draw in range(weights.shape[1]):
                weights[:, draw] = np.bincount(random.integers(n, size=n), minlength=n)
            block = weights, 2 * (truth @ weights)
            if n * self.n_draws <= _KEPT_WEIGHTS:
                kept.append(block)
            yield block
        self._kept = kept or None

    def _matrix(self, sets: LabelSets) -> Sparse:
        return indicator_matrix([sets[document] for document in self._order], self._n_labels)

    def _by_label(self, sets: Sparse, without: Sparse | None) -> Sparse:
        """Return (L, N) counts of the sets, minus those of other sets."""
        counts = sets.astype(np.float32)
        if without is not None:
            counts = (counts - without.astype(np.float32)).tocsr()
        by_label: Sparse = counts.T.tocsr()[self._occurring]
        by_label.eliminate_zeros()
        return by_label


def _join(blocks: Sequence[NDArray[Any]]) -> Values:
    """Join blocks of draws (R, D)."""
    return np.concatenate(blocks, axis=1).astype(np.float64)
