"""What one worker of `prepare` does: count pieces of the data, then turn them into ids.

Results are files of a folder that the driver sees too. Each try writes under a name of its own, so
that a worker that is killed or believed dead disturbs nobody.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from setrnn.config import TextSettings
from setrnn.data.cache import Source
from setrnn.data.counting import count_saved_words
from setrnn.data.encoding import SplitWriter, encode_documents
from setrnn.data.folders import explain_failed_write
from setrnn.data.formats import BadRows
from setrnn.data.labels import LabelVocabulary
from setrnn.data.pieces import Piece, PieceHands
from setrnn.data.preparing import smallest_dtype
from setrnn.data.subwords import load_text_encoder
from setrnn.data.tokenizing import TextEncoder
from setrnn.scale.workers import OnDocuments, check_seen, check_version


@dataclass(frozen=True)
class PieceTask:
    """A piece to count."""

    piece: Piece

    @property
    def name(self) -> str:
        """The file of the piece, for messages."""
        return self.piece.stamps[0][0] if self.piece.stamps else self.piece.split

    @property
    def n_bytes(self) -> int:
        """The size of its files."""
        return sum(size for _, size, _ in self.piece.stamps)


@dataclass(frozen=True)
class WordsTask(PieceTask):
    """A piece whose words to count: those of the sample up to a hash."""

    counts: Path
    most: int


@dataclass(frozen=True)
class IdsTask(PieceTask):
    """A piece to turn into ids."""

    prefix: str  # of the ids of its documents


@dataclass(frozen=True)
class PieceResult:
    """A piece that is done: what it has, and where its files are."""

    place: Path
    n_documents: int = 0
    bad_rows: BadRows = field(default_factory=BadRows)
    unseen_labels: tuple[str, ...] = ()
    n_windows: Mapping[int, int] = field(default_factory=dict)  # see `SplitWriter`


@dataclass(frozen=True)
class PrepareWork:
    """How to read the data; it is sent to every worker."""

    source: Source
    settings: TextSettings
    folder: Path
    setrnn_version: str

    def start(self) -> PieceWorker:
        """Find the data; raise ConfigError if it or the folder cannot be seen."""
        return PieceWorker(self)


class PieceWorker:
    """Counts pieces, and turns them into ids."""

    def __init__(self, work: PrepareWork) -> None:
        check_version(work.setrnn_version)
        check_seen((work.folder, *map(Path, work.source.places)))
        self.settings, self.folder = work.settings, work.folder
        self.hands = PieceHands(
            work.source.open(), (), work.settings, work.source.on_bad_row, lambda step, n: None
        )

    def __call__(self, task: PieceTask, on_documents: OnDocuments) -> PieceResult:
        """Do a task."""
        with explain_failed_write(self.folder.parents[1]):
            if isinstance(task, IdsTask):
                return self._encode(task.piece, task.prefix, on_documents)
            if isinstance(task, WordsTask):
                place = self._make_place(task.piece, "words")
                count_saved_words(task.counts, task.most, place, self.settings.language)
                return PieceResult(place)
            counts, bad_rows = self.hands.count_piece(task.piece, on_documents)
            place = self._make_place(task.piece, "counts")
            counts.save(place)
            return PieceResult(place, counts.n_documents, bad_rows)

    def _make_place(self, piece: Piece, kind: str) -> Path:
        return self.folder / f"{kind}-{piece.split}-{piece.number}-{secrets.token_hex(4)}"

    def _encode(self, piece: Piece, prefix: str, on_documents: OnDocuments) -> PieceResult:
        place = self._make_place(piece, "ids")
        examples, bad_rows = self.hands.read(piece, prefix)
        label_ids = dict(self._labels.index)
        with SplitWriter(place, smallest_dtype(self._encoder.n_tokens)) as writer:
            n_labels = len(self._labels)
            encode_documents(examples, writer, self._encoder, label_ids, n_labels, on_documents)
        unseen = tuple(label_ids)[len(self._labels) :]
        return PieceResult(place, writer.n_documents, bad_rows, unseen, dict(writer.n_windows))

    @cached_property
    def _encoder(self) -> TextEncoder:
        return load_text_encoder(self.folder.parent / "tokenizer.json", self.settings)

    @cached_property
    def _labels(self) -> LabelVocabulary:
        return LabelVocabulary.load(self.folder.parent / "labels.json")
