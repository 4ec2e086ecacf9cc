"""What the members of a mixture say about documents: all that the weights are fitted to."""

# n documents, m of a batch, I members, K sets, L labels, F folds, E pairs of a document and a
# label, M labels that matter to a document, Z sizes of sets, S labels of the largest set

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setrnn.data.batches import even_rows
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError
from setrnn.metrics import indicator_matrices
from setrnn.progress import OnProgress, count_up, ignore_progress
from setrnn.systems.candidates import (
    Bools,
    Floats,
    Floats32,
    Ids,
    Ints,
    LabelSizeProbs,
    pack_labels,
)
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.mixture_candidates import AlignedTables, MixtureCandidates
from setrnn.systems.rules import MANY_SETS
from setrnn.tagging.documents import Batch
from setrnn.tagging.tagger import Tagger

if TYPE_CHECKING:
    from setrnn.metrics import Indicator

N_FOLDS = 5
LEAST_TO_FIT = 20  # documents
MOST_TO_FIT = 5_000  # documents: the outputs of all members for them are in memory
# Pairs of a document and a label that no member gives this much are predicted by no threshold,
# and are in no set of highest expected F1.
LEAST_MARGINAL, LEAST_IN_SET = 0.001, 0.01


@dataclass(frozen=True)
class Outputs:
    """What the members say about documents, and the truth."""

    fold: Ints  # (n,) the fold of each document
    truth: Any  # (n, L + labels that the members do not have) of 0 and 1, sparse
    n_labels: int
    true_log_probs: Floats  # (I, n) log p(true set); NaN if a member lacks one of its labels
    sets: Ids  # (n, K, S)
    set_log_probs: Floats  # (I, n, K)
    pairs: Pairs
    tables: LabelSizeProbs  # (I, n, M, Z) and empty (I, n)

    @property
    def n_members(self) -> int:
        """The number of members, I."""
        return len(self.true_log_probs)


@dataclass(frozen=True)
class Pairs:
    """Marginals: the pairs of a document and a label that a rule may predict, and the true ones."""

    document: Ints  # (E,)
    label: Ints  # (E,)
    probs: Sequence[Any]  # I times (E,)
    is_true: Bools  # (E,)
    rest: Floats  # (I, F, L) the sum of the marginals of all other pairs

    def kept(self, is_kept: Bools) -> Pairs:
        """Return some of the pairs."""
        return Pairs(
            self.document[is_kept],
            self.label[is_kept],
            [each[is_kept] for each in self.probs],
            self.is_true[is_kept],
            self.rest,
        )


def collect(
    mixture: Tagger, batches: Sequence[Batch], on_progress: OnProgress = ignore_progress
) -> Outputs:
    """Run all members on documents with labels, once, and keep what the weights are fitted to."""
    tokens = Ragged.concatenate(batch.tokens for batch in batches)
    label_sets = [labels for batch in batches for labels in batch.labels]
    if len(label_sets) < LEAST_TO_FIT or not any(label_sets):
        raise DataError(
            f"The weights of a mixture need {LEAST_TO_FIT} documents with labels or more, got "
            f"{sum(map(bool, label_sets)):,}. Give documents that no member was trained on, with "
            "all their labels."
        )
    rows = even_rows(len(tokens), MOST_TO_FIT)
    fold = np.random.default_rng(0).permutation(len(rows)) % N_FOLDS
    count = count_up("mixing", on_progress, len(rows))
    parts = []
    at_once = mixture.batch_size
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        names = [label_sets[row] for row in some]
        parts.append(_Part.of(mixture, tokens.take(some), names, fold[start : start + at_once]))
        count(len(some))
    truth = indicator_matrices(
        [label_sets[row] for row in rows], [()] * len(rows), mixture.labels.names
    ).truth
    return _Part.join(parts, fold, truth, len(mixture.labels))


@dataclass(frozen=True)
class _Part:
    """The outputs of the members for one batch of documents."""

    true_log_probs: Floats  # (I, m)
    sets: Ids  # (m, K, S)
    set_log_probs: Floats  # (I, m, K)
    pairs: Pairs
    tables: LabelSizeProbs

    @classmethod
    def of(
        cls, mixture: Tagger, tokens: Ragged, names: Sequence[tuple[str, ...]], fold: Ints
    ) -> _Part:
        system, labels = mixture.system, mixture.labels
        assert isinstance(system, MixtureSystem)
        found = system.candidates(tokens, MANY_SETS)
        assert isinstance(found, MixtureCandidates)
        truth = labels.encode(names)
        is_known = truth.lengths == np.array([len(set(each)) for each in names])
        true_sets = pack_labels(truth.padded(min_width=1))[:, None]
        true_log_probs = system.member_log_probs(tokens, true_sets)[:, :, 0]
        true_log_probs = np.where(is_known, true_log_probs, np.nan)
        is_true = np.zeros((len(names), len(labels)), dtype=bool)
        is_true[truth.row_numbers, truth.values] = True
        marginals = [each.marginals(len(labels)) for each in found.pool.found]
        pairs = _list_pairs(marginals, is_true, fold)
        tables = _list_tables([each.label_size_probs(len(labels)) for each in found.pool.found])
        return cls(true_log_probs, found.pool.labels, found.pool.log_probs, pairs, tables)

    @staticmethod
    def join(parts: Sequence[_Part], fold: Ints, truth: Indicator, n_labels: int) -> Outputs:
        """Join the outputs of all batches."""
        starts = np.cumsum([0, *(len(each.sets) for each in parts)])
        pairs = [each.pairs for each in parts]
        I = len(parts[0].true_log_probs)  # noqa: E741 (the number of members)
        return Outputs(
            fold,
            truth,
            n_labels,
            np.concatenate([each.true_log_probs for each in parts], axis=1),
            _stack([each.sets for each in parts], -1),
            np.stack(
                [_stack([each.set_log_probs[i] for each in parts], -np.inf) for i in range(I)]
            ),
            Pairs(
                np.concatenate([each.document + n for each, n in zip(pairs, starts, strict=False)]),
                np.concatenate([each.label for each in pairs]),
                [np.concatenate([each.probs[i] for each in pairs]) for i in range(I)],
                np.concatenate([each.is_true for each in pairs]),
                np.sum([each.rest for each in pairs], axis=0),
            ),
            LabelSizeProbs(
                _stack([each.tables.labels for each in parts], -1),
                np.stack([_stack([each.tables.probs[i] for each in parts], 0) for i in range(I)]),
                np.concatenate([each.tables.empty for each in parts], axis=1),
            ),
        )


def _stack(arrays: Sequence[npt.NDArray[Any]], fill: float) -> npt.NDArray[Any]:
    """Join arrays along the first axis, padded with `fill` along the others."""
    shape = np.max([each.shape[1:] for each in arrays], axis=0)
    padded = [
        np.pad(
            each,
            [(0, 0), *((0, most - own) for most, own in zip(shape, each.shape[1:], strict=True))],
            constant_values=fill,
        )
        for each in arrays
    ]
    return np.concatenate(padded)


def _list_pairs(marginals: Sequence[Floats32], is_true: Bools, fold: Ints) -> Pairs:
    is_kept = is_true | (np.maximum.reduce(list(marginals)) >= LEAST_MARGINAL)
    document, label = np.nonzero(is_kept)
    rest = np.zeros((len(marginals), N_FOLDS, is_true.shape[1]))
    for number, each in enumerate(marginals):
        np.add.at(rest[number], fold, np.where(is_kept, 0.0, each))
    return Pairs(document, label, [each[is_kept] for each in marginals], is_true[is_kept], rest)


def _list_tables(tables: Sequence[LabelSizeProbs]) -> LabelSizeProbs:
    """Return the tables of all members with the same labels: (I, m, M, Z) and empty (I, m).

    Labels that no member finds likely are left out.
    """
    aligned = AlignedTables(tables)
    labels = aligned.labels
    probs = np.zeros((len(tables), *labels.shape, aligned.n_sizes))
    for number in range(len(tables)):
        aligned.add(number, probs[number])
    is_kept = (labels >= 0) & (probs.sum(axis=3).max(axis=0) >= LEAST_IN_SET)
    M = max(int(is_kept.sum(axis=1).max(initial=0)), 1)
    places = np.argsort(~is_kept, axis=1, kind="stable")[:, :M]
    is_kept = np.take_along_axis(is_kept, places, axis=1)
    labels = np.where(is_kept, np.take_along_axis(labels, places, axis=1), -1)
    probs = np.take_along_axis(probs, places[None, :, :, None], axis=2)
    probs = np.where(is_kept[None, :, :, None], probs, 0.0)
    return LabelSizeProbs(labels, probs, np.stack([each.empty for each in tables]))
