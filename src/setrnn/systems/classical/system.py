"""What the classical systems share: from token ids to tf-idf to label sets, one model per label."""

# n documents, d features, L labels, G given sets, S labels of the largest set

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy  # scipy.sparse is imported where it is first used

from setrnn.config import ClassicalSettings, Config
from setrnn.data.labels import Incomplete
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.methods import Method
from setrnn.progress import OnProgress, count_up, ignore_progress
from setrnn.systems.candidates import Bools, Floats, Floats32, Ids, Ints, SetCandidates
from setrnn.systems.classical.features import Tfidf, indicator
from setrnn.systems.kept import KeptTokens
from setrnn.systems.known import Known
from setrnn.systems.products import EMPTY_SHIFT, pack_shift, unpack_shift
from setrnn.systems.system import Arrays, System
from setrnn.systems.true_marginals import MANY_LABELS

if TYPE_CHECKING:
    from typing_extensions import Self

SPARSE_BELOW = 0.25  # the share of weights that are not 0; an L1 penalty leaves about .02

OnLabelsDone = Callable[[int], None]


def ignore_labels(n_labels: int) -> None:
    """Do nothing with the number of labels that are done."""


@dataclass(frozen=True)
class TrainingData:
    """The documents that a classical system is fitted on, and how it is fitted."""

    features: scipy.sparse.csr_matrix  # (n, d) tf-idf
    label_sets: Ragged  # ids below n_labels
    n_labels: int
    settings: ClassicalSettings = field(default_factory=ClassicalSettings)
    incomplete: Incomplete | None = None  # None if all labels are known
    on_labels_done: OnLabelsDone = ignore_labels  # called with the number of labels that are done

    @classmethod
    def of(
        cls, prepared: Prepared, config: Config, on_labels_done: OnLabelsDone = ignore_labels
    ) -> tuple[Tfidf, TrainingData]:
        """Return the tf-idf vectors of the train part, with what computes them."""
        train, n_labels, settings = prepared.split("train"), len(prepared.labels), config.classical
        tfidf, features = Tfidf.fit(train.tokens, prepared.encoder.n_tokens, settings.max_pairs)
        incomplete = Incomplete.of(train, n_labels, config.training.forgotten)
        data = cls(features, train.labels, n_labels, settings, incomplete, on_labels_done)
        return tfidf, data

    def take(self, rows: Ints) -> TrainingData:
        """Return some of the documents."""
        return replace(
            self,
            features=self.features[rows],
            label_sets=self.label_sets.take(rows),
            incomplete=None if self.incomplete is None else self.incomplete.rows(rows),
        )


@dataclass(frozen=True)
class LinearWeights:
    """One linear function per label. Weights that are mostly 0 are kept as a sparse matrix."""

    weights: Floats32 | scipy.sparse.csr_matrix  # (d, L)
    intercepts: Floats32  # (L,)

    def __post_init__(self) -> None:
        """Raise ValueError if the shapes do not fit."""
        w, b = self.weights, self.intercepts
        if w.ndim != 2 or b.shape != w.shape[1:] or not w.dtype.kind == b.dtype.kind == "f":
            raise ValueError(f"weights {w.shape} and intercepts {b.shape} do not fit")
        if not scipy.sparse.issparse(w) and np.count_nonzero(w) < SPARSE_BELOW * w.size:
            object.__setattr__(self, "weights", scipy.sparse.csr_matrix(w))

    def times(self, features: scipy.sparse.csr_matrix) -> Floats32:
        """Return the products of features (n, d) and weights, (n, L).

        The products of sparse and of dense weights have the same bits.
        """
        found = features @ self.weights
        return np.asarray(found.toarray() if scipy.sparse.issparse(found) else found)

    def logits(self, features: scipy.sparse.csr_matrix) -> Floats32:
        """Return the log-odds of each label, (n, L)."""
        return self.times(features) + self.intercepts

    def take(self, labels: Sequence[int]) -> LinearWeights:
        """Return the functions of some labels."""
        return LinearWeights(self.weights[:, labels], self.intercepts[labels])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the weights, dense or as three arrays, and the intercepts."""
        w = self.weights
        if not scipy.sparse.issparse(w):
            return {"weights": w, "intercepts": self.intercepts}
        return {
            "weights": w.data,
            "weight_labels": w.indices,
            "weight_offsets": w.indptr.astype(np.int64),
            "intercepts": self.intercepts,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> LinearWeights:
        """Build from the arrays."""
        weights, intercepts = arrays["weights"], arrays["intercepts"]
        if weights.ndim != 1:
            return cls(weights, intercepts)
        rows = Ragged(arrays["weight_labels"], arrays["weight_offsets"])
        n_labels = intercepts.size
        rows.check_ids(n_labels)
        if len(weights) != len(rows.values):
            raise ValueError(f"{len(weights):,} weights have {len(rows.values):,} labels")
        csr = (weights, rows.values, rows.offsets)
        return cls(scipy.sparse.csr_matrix(csr, shape=(len(rows), n_labels)), intercepts)


def fit_regressions(
    data: TrainingData, allowed: Callable[[slice], Bools] | None = None
) -> tuple[Floats32 | scipy.sparse.csr_matrix, Floats32]:
    """Fit one regression per label, on the documents for which the label is known.

    Return the weights (d, L) and the intercepts (L,). `allowed` returns the features that each of
    some labels may use, (d, labels); without it they use all.
    """
    # They load torch, which takes longer than to predict with what is fitted.
    from setrnn.systems.classical.active_features import fit_sparse_logistic
    from setrnn.systems.classical.logistic import fit_logistic

    targets = indicator(data.label_sets, data.n_labels)
    if allowed is None and data.incomplete is None and data.n_labels >= MANY_LABELS:
        return fit_sparse_logistic(data.features, targets, data.settings, data.on_labels_done)
    open_weights = None if data.incomplete is None else data.incomplete.open_weights
    return fit_logistic(
        data.features, targets, data.settings, allowed, open_weights, data.on_labels_done
    )


def fit_linear(data: TrainingData) -> LinearWeights:
    """Fit one regression per label."""
    return LinearWeights(*fit_regressions(data))


@dataclass(frozen=True)
class ClassicalSystem(System):
    """Linear functions of tf-idf, one per label; a subclass fits them and finds sets with them.

    Example:
        >>> from setrnn.systems.registry import SYSTEMS
        >>> [name for name, each in SYSTEMS.items() if issubclass(each, ClassicalSystem)]
        ['br', 'br-support', 'pcc']
    """

    shifts_empty_set: ClassVar[bool] = True
    tfidf: Tfidf
    linear: LinearWeights
    empty_shift: float = field(default=0.0, kw_only=True)  # added to the log-odds of the empty set

    @classmethod
    @abstractmethod
    def fit(cls, tfidf: Tfidf, data: TrainingData) -> Self:
        """Fit on documents and their label sets."""

    @abstractmethod
    def find_sets(self, logits: Floats32, n_sets: int, known: Known | None = None) -> SetCandidates:
        """Find the most probable sets that fit what is known, from the log-odds of labels (n, L).

        Returns `n_sets` or more. Their marginals do not depend on `n_sets`.
        """

    @abstractmethod
    def score_sets(self, logits: Floats32, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""

    @classmethod
    def train(
        cls,
        prepared: Prepared,
        config: Config,
        on_progress: OnProgress = ignore_progress,
        rows: Ints | None = None,
    ) -> Self:
        """Fit on the train part of prepared data, or on some rows of it."""
        count = count_up("training", on_progress, len(prepared.labels), "labels")
        tfidf, data = TrainingData.of(prepared, config, count)
        return cls.fit(tfidf, data if rows is None else data.take(rows))

    def candidates(
        self, tokens: Ragged, n_sets: int, source: str = "sets", known: Known | None = None
    ) -> SetCandidates:
        """Find the most probable sets of each document that fit what is known of it."""
        return self.find_sets(self.logits(tokens), n_sets, known)

    def set_log_probs(self, tokens: Ragged, label_sets: Ids) -> Floats:
        """Return log p (n, G) of given sets (n, G, S), padded with -1."""
        return self.score_sets(self.logits(tokens), label_sets)

    def logits(self, tokens: Ragged) -> Floats32:
        """Return the log-odds of each label from the features alone, (n, L)."""
        if isinstance(tokens, KeptTokens):
            return np.asarray(tokens.once(id(self), self.logits))
        return self.linear.logits(self.tfidf.transform(tokens))

    def marginals(self, tokens: Ragged, candidates: SetCandidates | None = None) -> Floats32:
        """Return p(label | document), (n, L). Candidates found before save time."""
        found = self.candidates(tokens, 1) if candidates is None else candidates
        return found.marginals(self.n_labels)

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return len(self.linear.intercepts)

    def weigh_tokens(self, tokens: Ragged, labels: Sequence[int]) -> Floats32:
        """Return what each token of one document adds to the log-odds of some labels: (T, N)."""
        return self.linear.take(labels).times(self.tfidf.spread(tokens))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all learned weights by name."""
        shift = {EMPTY_SHIFT: pack_shift(self.empty_shift)}
        return {**self.tfidf.arrays(), **self.linear.arrays(), **shift}

    @classmethod
    def from_arrays(cls, arrays: Arrays, method: Method, config: Config, device: str) -> Self:
        """Rebuild the system from its arrays. It always computes on the CPU."""
        linear = LinearWeights.from_arrays(arrays)
        own = cls._read_own(arrays, len(linear.intercepts))
        shift = unpack_shift(arrays[EMPTY_SHIFT])
        return cls(Tfidf.from_arrays(arrays), linear, **own, empty_shift=shift)

    @classmethod
    def _read_own(cls, arrays: Arrays, n_labels: int) -> dict[str, Any]:
        """Return the fields of a subclass from its arrays."""
        return {}

    def with_empty_shift(self, shift: float) -> Self:
        """Return the same system with the log-odds of the empty set shifted."""
        return replace(self, empty_shift=shift)

    def check_sizes(self, n_tokens: int, n_labels: int) -> None:
        """Raise ValueError if the weights are for other words, features or labels."""
        for what, found, wanted in (
            ("labels, but the list has", self.n_labels, n_labels),
            ("words, but the tokenizer has", self.tfidf.n_tokens, n_tokens),
            ("features, but there are", self.linear.weights.shape[0], len(self.tfidf.idf)),
        ):
            if found != wanted:
                raise ValueError(f"they are for {found:,} {what} {wanted:,}")
