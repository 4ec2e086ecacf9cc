"""What one worker of `prepare` does: count pieces of the data, then turn them into ids.

Results are files of a folder that the driver sees too. Each try writes under a name of its own, so
that a worker that is killed or believed dead disturbs nobody.
"""

from __future__ import annotations

import platform
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from setrnn.config import TextSettings
from setrnn.data.cache import Source
from setrnn.data.encoding import SplitWriter, encode_documents
from setrnn.data.folders import explain_failed_write
from setrnn.data.formats import BadRows
from setrnn.data.labels import LabelVocabulary
from setrnn.data.pieces import Piece, PieceHands
from setrnn.data.prepared import smallest_dtype
from setrnn.data.subwords import load_text_encoder
from setrnn.data.tokenizing import TextEncoder
from setrnn.errors import ConfigError
from setrnn.scale.workers import OnDocuments, check_version


@dataclass(frozen=True)
class PieceTask:
    """A piece to count; or to turn into ids, if its prefix is known."""

    piece: Piece
    prefix: str | None = None

    @property
    def name(self) -> str:
        """The file of the piece, for messages."""
        return self.piece.stamps[0][0] if self.piece.stamps else self.piece.split

    @property
    def n_bytes(self) -> int:
        """The size of its files."""
        return sum(size for _, size, _ in self.piece.stamps)


@dataclass(frozen=True)
class PieceResult:
    """A piece that is done: what it has, and where its files are."""

    place: Path
    n_documents: int
    bad_rows: BadRows
    unseen_labels: tuple[str, ...] = ()


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
        paths = (Path(each) for each in work.source.places if each.startswith("/"))
        for path in (work.folder.parent, *paths):
            if not path.exists():
                raise ConfigError(
                    f"{platform.node()} does not see {path}. With --ray, the data and --out must "
                    "be on a disk that all machines share."
                )
        self.settings, self.folder = work.settings, work.folder
        self.hands = PieceHands(
            work.source.open(), (), work.settings, work.source.on_bad_row, lambda step, n: None
        )

    def __call__(self, task: PieceTask, on_documents: OnDocuments) -> PieceResult:
        """Do a task."""
        kind = "counts" if task.prefix is None else "ids"
        piece = task.piece
        place = self.folder / f"{kind}-{piece.split}-{piece.number}-{secrets.token_hex(4)}"
        with explain_failed_write(self.folder.parents[1]):
            if task.prefix is not None:
                return self._encode(piece, task.prefix, place, on_documents)
            counts, bad_rows = self.hands.count_piece(piece, on_documents)
            counts.save(place)
            return PieceResult(place, counts.n_documents, bad_rows)

    def _encode(
        self, piece: Piece, prefix: str, place: Path, on_documents: OnDocuments
    ) -> PieceResult:
        examples, bad_rows = self.hands.read(piece, prefix)
        label_ids = dict(self._labels.index)
        with SplitWriter(place, smallest_dtype(self._encoder.n_tokens)) as writer:
            encode_documents(examples, writer, self._encoder, label_ids, on_documents)
        unseen = tuple(label_ids)[len(self._labels) :]
        return PieceResult(place, writer.n_documents, bad_rows, unseen)

    @cached_property
    def _encoder(self) -> TextEncoder:
        return load_text_encoder(self.folder.parent / "tokenizer.json", self.settings)

    @cached_property
    def _labels(self) -> LabelVocabulary:
        return LabelVocabulary.load(self.folder.parent / "labels.json")
