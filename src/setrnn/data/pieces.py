"""The pieces of a dataset: its files, which one process or several read, each twice.

The prepared folder is the same, however many processes there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setrnn.config import TextSettings
from setrnn.data.counting import Counts, count_documents, find_shared_id
from setrnn.data.encoding import SplitWriter, encode_documents
from setrnn.data.example import Example
from setrnn.data.formats import BadRows, Dataset
from setrnn.data.formats.label_map import note_unused
from setrnn.data.formats.reader import OnBadRow, file_errors, no_documents
from setrnn.data.formats.several import add_prefix, note_shared_id
from setrnn.data.labels import LabelVocabulary
from setrnn.data.preparing import VOCABULARY_SPLITS, Encoded, OnDocuments, smallest_dtype
from setrnn.data.tokenizing import TextEncoder
from setrnn.errors import DataError


@dataclass(frozen=True)
class Piece:
    """One file of a split, or the whole split if it cannot be read file by file."""

    split: str
    number: int
    stamps: tuple[tuple[str, int, int], ...]  # the path, size and time of its files
    keeps_ids: bool  # whether its ids are compared with those of other pieces

    @property
    def is_counted(self) -> bool:
        """Whether the first pass reads it."""
        return self.split in VOCABULARY_SPLITS or self.keeps_ids


@dataclass(frozen=True)
class CountedPiece:
    """What is kept of a piece after the first pass, beside the counts."""

    n_documents: int
    id_hashes: npt.NDArray[np.uint64]
    bad_rows: BadRows


def list_pieces(dataset: Dataset) -> list[Piece]:
    """Return the pieces of all splits, in their order."""
    return [
        Piece(name, number, _stamp(each.files), split.id_prefix == "auto")
        for name, split in dataset.splits.items()
        for number, each in enumerate(split.pieces)
    ]


def read_piece(
    dataset: Dataset, piece: Piece, bad_rows: BadRows, prefix: str = ""
) -> Iterator[Example]:
    """Stream the documents of a piece; raise DataError if its files have changed."""
    pieces = dataset.require(piece.split).pieces
    files = pieces[piece.number].files if piece.number < len(pieces) else ()
    _check_unchanged(piece, files)
    yield from add_prefix(pieces[piece.number].read(bad_rows), prefix)
    _check_unchanged(piece, files)


def _stamp(files: Iterable[Path]) -> tuple[tuple[str, int, int], ...]:
    stamps = []
    for file in files:
        with file_errors(file):
            found = file.stat()
        stamps.append((str(file.absolute()), found.st_size, found.st_mtime_ns))
    return tuple(stamps)


def _check_unchanged(piece: Piece, files: Iterable[Path]) -> None:
    now = _stamp(files)
    if now != piece.stamps:
        before, found = dict.fromkeys(piece.stamps), dict.fromkeys(now)
        changed = next(
            each for each in (*before, *found) if each not in before or each not in found
        )
        raise DataError(
            f"{changed[0]} has changed while it was being prepared. Run the same command again."
        )


class PieceHands:
    """Reads the pieces of a dataset in this process; others read them elsewhere."""

    def __init__(
        self,
        dataset: Dataset,
        pieces: Sequence[Piece],
        settings: TextSettings,
        on_bad_row: OnBadRow,
        on_documents: OnDocuments,
    ) -> None:
        self.dataset, self.pieces, self.settings = dataset, pieces, settings
        self.on_bad_row, self.on_documents = on_bad_row, on_documents
        self.bad_rows: dict[str, BadRows] = {}  # by split
        self._has_prefix = {
            name: split.id_prefix == "file" for name, split in dataset.splits.items()
        }
        self._shared_ids: dict[str, tuple[str, str]] = {}

    def count(self, folder: Path) -> Counts:
        """Count all pieces, and settle whether their ids need prefixes."""
        total = Counts(self.settings)
        pieces = [piece for piece in self.pieces if piece.is_counted]
        found = dict(self.count_pieces(pieces, folder, total))
        for name in dict.fromkeys(piece.split for piece in pieces):
            own = [found[piece] for piece in pieces if piece.split == name]
            bad_rows = _join(each.bad_rows for each in own)
            self._refuse_empty(name, sum(each.n_documents for each in own), bad_rows)
            shared = find_shared_id([each.id_hashes for each in own])
            if shared is not None:
                self._has_prefix[name] = True
                self._shared_ids[name] = self._name_shared_id(name, *shared)
        return total

    def encode(self, folder: Path, encoder: TextEncoder, labels: LabelVocabulary) -> Encoded:
        """Write all splits, and keep their bad rows."""
        found = Encoded(label_ids=dict(labels.index))
        all_rows = self.encode_pieces(folder, encoder, found)
        for name in self.dataset.splits:
            rows = [all_rows[piece] for piece in self.pieces if piece.split == name]
            bad_rows = self.bad_rows[name] = _join(rows)
            self._refuse_empty(name, found.n_documents[name], bad_rows)
            if name in self._shared_ids:
                note_shared_id(*self._shared_ids[name], bad_rows)
            note_unused(bad_rows.unused, bad_rows)
            found.n_skipped[name] = bad_rows.n_skipped
        return found

    def count_pieces(
        self, pieces: Sequence[Piece], folder: Path, total: Counts
    ) -> Iterator[tuple[Piece, CountedPiece]]:
        """Count pieces, and add those of the vocabulary to the total."""
        report = partial(self.on_documents, "vocabulary")
        for piece in pieces:
            counts, bad_rows = self.count_piece(piece, report)
            if piece.split in VOCABULARY_SPLITS:
                total.add(counts)
            hashes = np.array(counts.id_hashes, dtype=np.uint64)
            yield piece, CountedPiece(counts.n_documents, hashes, bad_rows)

    def encode_pieces(
        self, folder: Path, encoder: TextEncoder, found: Encoded
    ) -> dict[Piece, BadRows]:
        """Write all splits into a folder; return the bad rows of each piece."""
        all_rows, n_labels = {}, len(found.label_ids)
        for name in self.dataset.splits:
            report = partial(self.on_documents, name)
            with SplitWriter(folder / name, smallest_dtype(encoder.n_tokens)) as writer:
                for piece in self.pieces:
                    if piece.split == name:
                        examples, all_rows[piece] = self.read(piece, self.prefix_of(piece))
                        encode_documents(
                            examples, writer, encoder, found.label_ids, n_labels, report
                        )
            found.n_documents[name] = writer.n_documents
            found.n_windows[name] = writer.n_windows
        return all_rows

    def count_piece(
        self, piece: Piece, on_documents: Callable[[int], None]
    ) -> tuple[Counts, BadRows]:
        """Count one piece."""
        examples, bad_rows = self.read(piece)
        return count_documents(examples, self.settings, on_documents, piece.keeps_ids), bad_rows

    def read(self, piece: Piece, prefix: str = "") -> tuple[Iterator[Example], BadRows]:
        """Return a stream of the documents of a piece, and the bad rows that it will find."""
        bad_rows = BadRows(self.on_bad_row)
        return read_piece(self.dataset, piece, bad_rows, prefix), bad_rows

    def prefix_of(self, piece: Piece) -> str:
        """Return the prefix of the ids of a piece, after all are counted."""
        if not self._has_prefix[piece.split] or not self.dataset.splits[piece.split].joined:
            return ""
        return self.dataset.splits[piece.split].joined[piece.number][0]

    def _name_shared_id(self, name: str, number: int, place: int) -> tuple[str, str]:
        """Return an id that two pieces share, and the prefix of the second."""
        piece = next(each for each in self.pieces if (each.split, each.number) == (name, number))
        examples = read_piece(self.dataset, piece, BadRows("skip"))
        return next(islice(examples, place, None)).id, self.prefix_of(piece)

    def _refuse_empty(self, name: str, n_documents: int, bad_rows: BadRows) -> None:
        if not n_documents:
            split, place = self.dataset.splits[name], self.dataset.place
            what = f"The '{name}' part of {place}"
            raise no_documents(split, what, bad_rows.n_skipped, bad_rows.first)


def _join(all_rows: Iterable[BadRows]) -> BadRows:
    joined = BadRows()
    for each in all_rows:
        joined.join(each)
    return joined
