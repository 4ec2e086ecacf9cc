"""Turn data into a prepared folder, by this process or by several workers: `prepare`."""

from __future__ import annotations

import shutil
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import numpy as np

import setrnn
from setrnn.config import WORDS, Config, TextSettings
from setrnn.data.cache import Source, open_prepared
from setrnn.data.counting import Counts, find_highest_hash, read_id_hashes
from setrnn.data.encoding import SplitWriter
from setrnn.data.formats import EMBEDDED, BadRows
from setrnn.data.formats.several import expand_places
from setrnn.data.pieces import CountedPiece, Piece, PieceHands
from setrnn.data.prepared import Prepared
from setrnn.data.preparing import VOCABULARY_SPLITS, Encoded, smallest_dtype
from setrnn.data.tokenizing import TextEncoder
from setrnn.errors import SetRNNError
from setrnn.progress import Note, OnProgress, ignore_progress
from setrnn.scale.crew import Crew, hire
from setrnn.scale.prepare_worker import IdsTask, PieceResult, PieceTask, PrepareWork, WordsTask
from setrnn.scale.workers import Outcome, Workers
from setrnn.tagging.opening import (
    Data,
    Settings,
    choose_config,
    list_overrides,
    make_source,
    make_vectors,
    note_cut_documents,
    warn_of_skipped_rows,
)

MOST_DEATHS = 3  # of the workers of one piece
TICK = 1.0


def prepare(
    data: Data,
    *,
    out: str | Path | None = None,
    valid: str | Path | None = None,
    preset: str = "default",
    config: Config | str | Path | None = None,
    settings: Settings = (),
    vectors: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Prepared:
    """Turn data into a memory-mapped folder for training, or find the folder made before.

    The prepared folder is made in `out`, or in the cache if that is None. With `vectors`, it also
    gets the word vectors that networks start from. With `workers`, so many processes read the files
    of the data side by side; with `ray`, workers on the Ray cluster at this address ("auto" for
    that of this machine). Any number of them makes the same folder. The other arguments are those
    of `train`.

    Example:
        >>> import setrnn
        >>> prepared = setrnn.prepare("newsroom")
        >>> prepared.description["n_documents"]["train"]
        4800
        >>> tagger = setrnn.train(prepared, "br")
    """
    full = choose_config(preset, config, list_overrides(settings))
    source = make_source(data, valid)
    folder = None if out is None else Path(out)
    if workers is None and ray is None:
        prepared = open_prepared(source, full.text, folder, on_progress)
    else:
        prepared = _open_by_crew(source, full.text, folder, Crew(workers, ray), on_progress)
    warn_of_skipped_rows(prepared, on_progress)
    note_cut_documents(prepared, on_progress)
    if vectors:
        make_vectors(prepared, full, on_progress)
    return prepared


def _open_by_crew(
    source: Source, settings: TextSettings, folder: Path | None, crew: Crew, on_progress: OnProgress
) -> Prepared:
    """Return the prepared form of data; let workers make it if it does not exist."""
    if crew.ray is not None:
        from setrnn.scale.ray_workers import connect

        connect(crew.ray)  # before the data is read, since there may be no cluster
    source = _with_absolute_places(source)
    with ExitStack() as stack:

        def gather(hands: PieceHands) -> CrewHands:
            n_files = len(hands.pieces)
            if crew.workers is not None and crew.workers > n_files:
                on_progress(Note(f"There is work for {n_files} workers: one per file."))
            return stack.enter_context(closing(CrewHands(hands, source, crew)))

        return open_prepared(source, settings, folder, on_progress, gather)


def _with_absolute_places(source: Source) -> Source:
    """Name all files and folders, so that every machine finds the same ones."""
    if source.prepared_folder is not None:
        return source
    places = (
        str(Path(each).absolute()) if each != EMBEDDED and Path(each).exists() else str(each)
        for each in expand_places(source.places)
    )
    return replace(
        source,
        data=tuple(places),
        valid=None if source.valid is None else source.valid.absolute(),
        unlabelled=tuple(each.absolute() for each in source.unlabelled),
    )


class CrewHands(PieceHands):
    """Gives the pieces of a dataset to workers, and joins what they write."""

    def __init__(self, hands: PieceHands, source: Source, crew: Crew) -> None:
        super().__init__(
            hands.dataset, hands.pieces, hands.settings, hands.on_bad_row, hands.on_documents
        )
        self._source, self._crew = source, crew
        self._workers: Workers[PieceTask, PieceResult] | None = None

    def close(self) -> None:
        """End the workers."""
        if self._workers is not None:
            self._workers.close()

    def count_pieces(
        self, pieces: Sequence[Piece], folder: Path, total: Counts
    ) -> Iterator[tuple[Piece, CountedPiece]]:
        """Let workers count pieces, and add those of the vocabulary to the total."""
        place = folder / "pieces"
        place.mkdir()
        work = PrepareWork(self._source, self.settings, place, setrnn.__version__)
        self._workers = hire(work, self._crew, len(self.pieces))
        places: dict[Piece, Path] = {}  # of pieces of the vocabulary
        for task, found in self._run([PieceTask(piece) for piece in pieces], "vocabulary"):
            if task.piece.split in VOCABULARY_SPLITS:
                total.add_saved(found.place)
                places[task.piece] = found.place
            hashes = read_id_hashes(found.place)
            yield task.piece, CountedPiece(found.n_documents, hashes, found.bad_rows)
        if self.settings.tokenizer == WORDS:
            self._count_words(places, total)

    def _count_words(self, places: Mapping[Piece, Path], total: Counts) -> None:
        """Let workers count the words of the documents that belong to the sample of all."""
        most = find_highest_hash(places.values(), self.settings.vocabulary_documents)
        tasks = [WordsTask(piece, place, most) for piece, place in places.items()]
        for _, found in self._run(tasks, "vocabulary"):
            total.add_saved_words(found.place)

    def encode_pieces(
        self, folder: Path, encoder: TextEncoder, found: Encoded
    ) -> dict[Piece, BadRows]:
        """Let workers turn pieces into ids, and join these."""
        all_rows, done, n_labels = {}, dict[Piece, PieceResult](), len(found.label_ids)
        tasks = [IdsTask(piece, self.prefix_of(piece)) for piece in self.pieces]
        results = self._run(tasks, "encoding")
        for name in self.dataset.splits:
            with SplitWriter(folder / name, smallest_dtype(encoder.n_tokens)) as writer:
                for piece in self.pieces:
                    if piece.split != name:
                        continue
                    while piece not in done:
                        task, result = next(results)
                        done[task.piece] = result
                    result = done.pop(piece)
                    _join(result, writer, found.label_ids, n_labels)
                    all_rows[piece] = result.bad_rows
            found.n_documents[name] = writer.n_documents
            found.n_windows[name] = writer.n_windows
        shutil.rmtree(folder / "pieces")
        return all_rows

    def _run(
        self, tasks: Sequence[PieceTask], step: str
    ) -> Iterator[tuple[PieceTask, PieceResult]]:
        """Let workers do tasks, the largest first; yield each when it is done."""
        assert self._workers is not None
        queue = deque(sorted(tasks, key=lambda task: -task.n_bytes))
        n_open, n_done, n_told = 0, 0, 0
        deaths = Counter[PieceTask]()
        while queue or n_open:
            while queue and self._workers.has_room():
                self._workers.submit(queue.popleft())
                n_open += 1
            ended = []
            for outcome in self._workers.wait(TICK):
                n_open -= 1
                if outcome.result is not None:
                    n_done += outcome.result.n_documents
                    ended.append((outcome.task, outcome.result))
                    continue
                deaths[outcome.task] += bool(outcome.death)
                _check_mendable(outcome, deaths[outcome.task])
                queue.append(outcome.task)
            n_now = n_done + self._workers.n_documents()
            if n_now > n_told:
                self.on_documents(step, n_now - n_told)
                n_told = n_now
            yield from ended


def _check_mendable(outcome: Outcome[PieceTask, PieceResult], n_deaths: int) -> None:
    """Raise what went wrong with a piece, unless another worker may succeed."""
    if outcome.failure is not None and not outcome.failure.is_lack:
        raise outcome.failure.error()
    if n_deaths == MOST_DEATHS:
        raise SetRNNError(
            f"{outcome.task.name} could not be prepared: {n_deaths} workers were lost, the last "
            f"one: {outcome.death}"
        )


def _join(
    piece: PieceResult, writer: SplitWriter, label_ids: dict[str, int], n_labels: int
) -> None:
    """Add the files of a piece to those of its split; labels that train lacks get common ids."""
    unseen = [label_ids.setdefault(label, len(label_ids)) for label in piece.unseen_labels]
    writer.append_piece(piece.place, np.array([*range(n_labels), *unseen], dtype=np.int32))
    writer.n_windows.update(piece.n_windows)
    shutil.rmtree(piece.place)
