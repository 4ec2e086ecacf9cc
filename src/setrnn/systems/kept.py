"""Documents that systems read once: for the search, and for all scores that follow."""

# n documents

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import split_rows
from setrnn.systems.candidates import Ints

MAX_BYTES = 2**28  # of what is kept per batch of documents, besides log-odds


@dataclass(frozen=True)
class KeptTokens(Ragged):
    """The token ids of some documents of a batch, and what systems keep of the whole batch.

    Example:
        >>> tokens = KeptTokens.of(Ragged.from_lists([[3, 1], [], [2]]))
        >>> tokens.once("lengths", lambda whole: whole.lengths).tolist()
        [2, 0, 1]
        >>> tokens.take(np.array([2])).once("lengths", len).tolist()  # not computed again
        [1]
    """

    whole: Ragged
    places: Ints  # (n,) the row of each document in the whole batch
    kept: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, tokens: Ragged) -> KeptTokens:
        """Return the documents, with nothing kept of them if they are plain rows."""
        if isinstance(tokens, KeptTokens):
            return tokens
        return cls(tokens.values, tokens.offsets, tokens, np.arange(len(tokens)))

    def take(self, rows: Ints) -> Ragged:
        """Return some of the documents; what is kept goes with them if no row is repeated."""
        some, places = super().take(rows), self.places[rows]
        if len(np.unique(places)) < len(places):
            return some
        return KeptTokens(some.values, some.offsets, self.whole, places, self.kept)

    def once(self, key: object, compute: Callable[[Ragged], Any]) -> Any:  # noqa: ANN401
        """Return an array of these documents, which is computed once for the whole batch."""
        if key not in self.kept:
            self.kept[key] = compute(self.whole)
        return self.kept[key][self.places]

    def store(self, key: object, value: object, n_bytes: int) -> None:
        """Keep a value if there is room."""
        n_kept = self.kept.get("n_bytes", 0) + n_bytes
        if key not in self.kept and n_kept <= MAX_BYTES:
            self.kept.update({key: value, "n_bytes": n_kept})

    def split(self, n_parts: int) -> list[Ragged]:
        """Return the rows of each tokenizer: see `split_rows`."""
        if n_parts == 1:
            return [self]
        if n_parts not in self.kept:
            self.kept[n_parts] = [KeptTokens.of(each) for each in split_rows(self.whole, n_parts)]
        return [each.take(self.places) for each in self.kept[n_parts]]
