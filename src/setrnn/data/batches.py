"""Batches: padded tensors of documents with similar lengths."""

# B documents of n, T words of the longest document, S labels of the largest set, G target sets of
# a document, N label sets of a batch

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from setrnn.data.labels import Incomplete
from setrnn.data.ragged import Ragged

PADDING = 0  # a token id
BATCHES_IN_POOL = 64  # documents are sorted by length within a pool of this many batches
LARGE_SHARE = 0.1  # at most this share of documents counts as having large sets
FEW_WORDS = 16  # documents with no more words are not worth a batch of their own
BATCHES_PER_LARGE_ONE = 4  # one batch of this many takes all documents with large sets


@dataclass(frozen=True)
class Batch:
    """Documents with their label sets: one per document, unless `documents` says otherwise."""

    rows: npt.NDArray[np.int64]  # (B,) the row of each document in its split
    tokens: Tensor  # (B, T)
    lengths: Tensor  # (B,) at least 1
    labels: Tensor  # (N, S) ascending ids: descending frequency; padded with -1
    set_sizes: Tensor  # (N,) always on the CPU
    documents: Tensor | None = None  # (N,) the document of each set; None for one per document
    weights: Tensor | None = None  # (N,) the weight of each set; None for 1
    # (B, L) see `Incomplete.log_weights`; None if all labels are known
    log_weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> Batch:
        """Return consecutive documents with their sets, as wide as the longest of them."""
        own = slice(start, stop)
        width = int(self.lengths[own].max())  # waits for the device
        sets: slice | Tensor = own
        documents = self.documents
        if documents is not None:
            sets = ((documents >= start) & (documents < stop)).nonzero()[:, 0]
            documents = documents[sets] - start
        return replace(
            self,
            rows=self.rows[own],
            tokens=self.tokens[own, :width],
            lengths=self.lengths[own],
            labels=self.labels[sets],
            set_sizes=self.set_sizes[sets.cpu() if isinstance(sets, Tensor) else sets],
            documents=documents,
            weights=None if self.weights is None else self.weights[sets],
            log_weights=None if self.log_weights is None else self.log_weights[own],
        )

    def to(self, device: torch.device) -> Batch:
        """Move the tensors, without waiting for the copy."""
        if device.type == "cpu":
            return self
        sent: dict[str, Any] = {
            name: send(each, device)
            for name, each in vars(self).items()
            if isinstance(each, Tensor) and name != "set_sizes"
        }
        return replace(self, **sent)


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor from the CPU to a device, on a CUDA GPU without waiting for the copy."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)  # other memory waits for other work


@dataclass(frozen=True)
class TargetSets:
    """Several label sets per document, with weights: what a student is trained on."""

    labels: npt.NDArray[np.int32]  # (n, G, S) ascending ids, padded with -1
    weights: npt.NDArray[np.float32]  # (n, G) 0 where a document has fewer sets

    def of(self, batch: Batch) -> Batch:
        """Return the batch with the sets of its documents."""
        weights = self.weights[batch.rows]  # (B, G)
        document, rank = np.nonzero(weights)
        labels = self.labels[batch.rows[document], rank].astype(np.int64)  # (N, S)
        sizes = (labels >= 0).sum(axis=1)
        return replace(
            batch,
            labels=torch.from_numpy(labels[:, : int(sizes.max(initial=0))]),
            set_sizes=torch.from_numpy(sizes),
            documents=torch.from_numpy(document),
            weights=torch.from_numpy(weights[document, rank]),
        )


@dataclass(frozen=True)
class TrainingDocuments:
    """What a network is trained on: documents with their own label sets, or with target sets."""

    tokens: Ragged
    labels: Ragged | None = None  # None if there are targets
    targets: TargetSets | None = None
    incomplete: Incomplete | None = None  # of documents with their own label sets

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def set_sizes(self) -> npt.NDArray[np.int64]:
        """The number of labels of the largest set of each document: (n,)."""
        if self.targets is not None:
            return np.asarray((self.targets.labels >= 0).sum(axis=2).max(axis=1, initial=0))
        assert self.labels is not None
        return self.labels.lengths

    def batch(self, rows: npt.NDArray[np.int64]) -> Batch:
        """Collect the documents of some rows."""
        batch = make_batch(self.tokens, self.labels, rows)
        if self.incomplete is not None:
            part = self.incomplete.rows(rows)
            if len(part.unknown.values):
                batch = replace(batch, log_weights=torch.from_numpy(part.log_weights()))
        return batch if self.targets is None else self.targets.of(batch)


def make_batch(tokens: Ragged, labels: Ragged | None, rows: npt.NDArray[np.int64]) -> Batch:
    """Collect the documents of some rows of a split, padded."""
    lengths = np.asarray(tokens.offsets[rows + 1]) - np.asarray(tokens.offsets[rows])
    if labels is None:
        labels = Ragged.from_lists([[]] * (int(rows.max(initial=0)) + 1))
    last = np.iinfo(np.int32).max  # sorts behind every label
    label_rows = np.sort(labels.padded(last, rows=rows, dtype=np.int64), axis=1)
    label_rows[label_rows == last] = -1
    token_rows = tokens.padded(PADDING, rows=rows, min_width=1, dtype=np.int64)
    return Batch(
        rows=rows,
        tokens=torch.from_numpy(token_rows),
        lengths=torch.from_numpy(np.maximum(lengths, 1)),
        labels=torch.from_numpy(label_rows),
        set_sizes=torch.from_numpy((label_rows >= 0).sum(axis=1)),
    )


def training_batches(
    lengths: npt.NDArray[np.int64],
    set_sizes: npt.NDArray[np.int64],
    batch_size: int,
    random: np.random.Generator,
) -> list[npt.NDArray[np.int64]]:
    """Shuffle documents into batches of similar length; return the rows of each batch.

    A pool of shuffled documents is sorted by length and cut into batches, and the batches are
    shuffled. A search takes as many steps as the largest set of its batch has labels, so the few
    documents with the largest sets share every fourth batch. Otherwise set sizes are mixed: in
    batches of one size, all documents push STOP in the same direction, and models learn worse.
    """
    order = random.permutation(len(lengths))
    is_large = set_sizes > np.quantile(set_sizes, 1 - LARGE_SHARE) if len(order) else set_sizes > 0
    batches: list[npt.NDArray[np.int64]] = []
    for start in range(0, len(order), batch_size * BATCHES_IN_POOL):
        pool = order[start : start + batch_size * BATCHES_IN_POOL]
        run = np.arange(len(pool)) // (batch_size * BATCHES_PER_LARGE_ONE)
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        pool = pool[np.lexsort((~is_large[pool], run))]
        batches += [pool[first : first + batch_size] for first in range(0, len(pool), batch_size)]
    return [batches[number] for number in random.permutation(len(batches))]


def prediction_batches(
    lengths: npt.NDArray[np.int64], max_documents: int, max_words: int, least_share: float = 0.0
) -> list[npt.NDArray[np.int64]]:
    """Cut documents into batches of similar length within both limits, the longest first.

    With a least share, a batch has no document with a smaller share of the words of its longest:
    short documents do not wait for a long one. Documents of few words count as equally long.
    """
    order = np.argsort(-lengths, kind="stable")
    descending = lengths[order]
    batches, start = [], 0
    while start < len(order):
        longest = max(int(descending[start]), 1)
        size = max(1, min(max_documents, max_words // longest))
        if longest > FEW_WORDS:
            n_long = int(np.searchsorted(-descending, -least_share * longest, side="right"))
            size = min(size, n_long - start)
        batches.append(order[start : start + size])
        start += size
    return batches
