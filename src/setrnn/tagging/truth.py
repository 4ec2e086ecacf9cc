"""The true labels of documents that are measured, and which of their labels are not known."""

# n documents, L labels

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported where it is first used

from setrnn.systems.candidates import Bools
from setrnn.tagging.documents import Batch


class Truth:
    """The true labels of all documents, collected batch by batch."""

    def __init__(self) -> None:
        self.labels: list[tuple[str, ...]] = []
        self._unknown: list[Any] = []  # sparse, one per batch
        self._is_complete: list[Bools] = []

    def add(self, batch: Batch) -> None:
        """Add the documents of a batch."""
        self.labels.extend(batch.labels)
        self._is_complete.append(batch.is_complete)
        self._unknown.append(
            None if batch.unknown is None else scipy.sparse.csr_array(batch.unknown)
        )

    @property
    def is_complete(self) -> Bools:
        """Whether all labels of each document are known: (n,)."""
        return np.concatenate(self._is_complete)

    def unknown(self, n_labels: int) -> Any:  # noqa: ANN401 (sparse)
        """Mark the labels that are not known, (n, L); None if all are."""
        if all(each is None for each in self._unknown):
            return None
        pairs = zip(self._unknown, self._is_complete, strict=True)
        shapes = [((len(rows), n_labels), each) for each, rows in pairs]
        parts = [
            scipy.sparse.csr_array(shape, dtype=bool) if each is None else each
            for shape, each in shapes
        ]
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts))
