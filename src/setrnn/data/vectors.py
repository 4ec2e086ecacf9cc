"""Word vectors: words, features and labels in one space, kept in the prepared folder.

Learned (skip-gram over the training documents, with their features and labels woven in among
the words), or read from a file of word vectors, in which case a feature or label takes the
vectors of the words in its name, or else of the words typical of its documents.
"""

# D dimensions, R rows: a row for each token id, then one for each label

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from setrnn.config import VectorSettings, settings_hash, to_dict
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.tokenizing import FEATURE_PREFIX, NUMBER, SPECIAL_TOKENS, UNKNOWN, TextEncoder
from setrnn.errors import ConfigError, DataError

Vectors: TypeAlias = npt.NDArray[np.float32]
# Told what is being done, and which share of it is done.
Progress: TypeAlias = Callable[[str, float], None]
# The number of a line, its word, and its numbers as they stand in the file.
Row: TypeAlias = tuple[int, bytes, bytes]

FORMAT = 1  # raised when the same settings come to mean other vectors
NEGATIVE_SAMPLES = 5
# Thins out frequent words, and labels most of all: a label stands beside every second word.
SUBSAMPLING = 1e-4
DOCUMENTS_AT_ONCE = 20_000
BYTES_AT_ONCE = 1 << 20
ROWS_BETWEEN_REPORTS = 50_000


def word_vectors(
    prepared: Prepared,
    settings: VectorSettings,
    on_progress: Progress = lambda message, share: None,
) -> Vectors:
    """Return the vectors of a prepared folder, memory-mapped, made the first time: (R, D).

    Padding is zero. A file of vectors is read again when it is newer than what was kept; a
    folder that holds the vectors needs neither the file nor gensim.
    """
    if settings.source == "none":
        raise ConfigError("vectors.source is 'none': there are no word vectors to make.")
    kept = prepared.folder / f"word_vectors-{settings_hash(FORMAT, to_dict(settings))}.npy"
    if not _is_up_to_date(kept, settings):
        try:
            _make(kept, prepared, settings, on_progress)
        except OSError as error:
            raise DataError(f"{kept} cannot be written: {error.strerror}.") from error
    return _open(kept, (_n_rows(prepared), settings.dimensions))


def _is_up_to_date(kept: Path, settings: VectorSettings) -> bool:
    if not kept.is_file():
        return False
    source = _source_file(settings)
    if settings.source == "word2vec" or not source.is_file():
        return True
    return source.stat().st_mtime_ns <= kept.stat().st_mtime_ns


def _make(kept: Path, prepared: Prepared, settings: VectorSettings, on_progress: Progress) -> None:
    with tempfile.TemporaryDirectory(prefix=".word_vectors-", dir=kept.parent) as temporary:
        if settings.source == "word2vec":
            vectors = _learn(prepared, settings, Path(temporary), on_progress)
        else:
            vectors = _read(prepared, settings, on_progress)
        with (Path(temporary) / kept.name).open("wb") as file:
            np.save(file, vectors)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, kept)


def _open(kept: Path, shape: tuple[int, int]) -> Vectors:
    try:
        vectors = np.load(kept, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{kept} is cut short. Delete it, and it will be made again.") from error
    if vectors.shape != shape or vectors.dtype != np.float32:
        raise DataError(f"{kept} belongs to other data. Delete it, and it will be made again.")
    return cast(Vectors, vectors)


def _source_file(settings: VectorSettings) -> Path:
    return Path(settings.source).expanduser()


def _n_rows(prepared: Prepared) -> int:
    return prepared.encoder.n_tokens + len(prepared.labels)


def _n_words(encoder: TextEncoder) -> int:
    """Count the ids below the first feature's."""
    is_feature = (token.startswith(FEATURE_PREFIX) for token in encoder.tokens)
    return next((i for i, found in enumerate(is_feature) if found), encoder.n_tokens)


def _words_and_tags(prepared: Prepared) -> Iterator[tuple[Ragged, Ragged]]:
    """Stream the training documents: their words, and their features and labels, as rows."""
    train = prepared.split("train")
    n_tokens, n_words = prepared.encoder.n_tokens, _n_words(prepared.encoder)
    for start in range(0, len(train), DOCUMENTS_AT_ONCE):
        stop = min(start + DOCUMENTS_AT_ONCE, len(train))
        tokens = train.tokens.rows(start, stop)
        labels = train.labels.rows(start, stop)
        is_word = np.asarray(tokens.values < n_words)
        features = tokens.keep(~is_word)
        features = Ragged(features.values.astype(np.int32), features.offsets)
        yield (
            tokens.keep(is_word),
            features.append(Ragged(labels.values + n_tokens, labels.offsets)),
        )


# Learned vectors


def _learn(
    prepared: Prepared, settings: VectorSettings, folder: Path, on_progress: Progress
) -> Vectors:
    """Train skip-gram with negative sampling on the training documents.

    One thread: with two, the bytes differ from run to run.
    """
    try:
        from gensim.models import Word2Vec
        from gensim.models.callbacks import CallbackAny2Vec
    except ImportError as error:
        raise ConfigError(
            "Learning word vectors needs gensim, which is not installed. Prepare the data where "
            "it is (the vectors stay in the prepared folder), or set vectors.source=none."
        ) from error

    random = np.random.default_rng(settings.seed)
    shape = (_n_rows(prepared), settings.dimensions)
    vectors = random.uniform(-1 / shape[1], 1 / shape[1], shape).astype(np.float32)
    vectors[0] = 0
    on_progress("writing sentences", 0.0)
    corpus = folder / "sentences.txt"
    counts = _write_sentences(prepared, corpus, random)
    seen = np.flatnonzero(counts)
    if not len(seen):
        return vectors

    model = Word2Vec(
        vector_size=settings.dimensions,
        window=settings.window,
        sg=1,
        negative=NEGATIVE_SAMPLES,
        sample=SUBSAMPLING,
        min_count=1,
        sorted_vocab=0,
        seed=settings.seed % 2**32,
        workers=1,
    )
    model.build_vocab_from_freq({str(row): int(counts[row]) for row in seen})
    model.wv.vectors[:] = vectors[seen]
    n_done = 0

    def report(_: object) -> None:
        nonlocal n_done
        n_done += 1
        on_progress(f"word2vec: {n_done} of {settings.epochs} epochs", n_done / settings.epochs)

    epochs = CallbackAny2Vec()
    epochs.on_epoch_end = report
    model.train(
        corpus_file=str(corpus),
        total_words=int(counts.sum()),
        epochs=settings.epochs,
        callbacks=[epochs],
    )
    vectors[seen] = model.wv.vectors
    return vectors


def _write_sentences(
    prepared: Prepared, file: Path, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Write each document as a line of rows; return how often each row occurs."""
    counts = np.zeros(_n_rows(prepared), dtype=np.int64)
    names = [str(row) for row in range(len(counts))]
    with file.open("w", encoding="ascii") as lines:
        for words, tags in _words_and_tags(prepared):
            sentences = weave(words, tags, random)
            counts += np.bincount(sentences.values, minlength=len(counts))
            for sentence in sentences:
                lines.write(" ".join([names[row] for row in sentence.tolist()]) + "\n")
    return counts


def weave(words: Ragged, tags: Ragged, random: np.random.Generator) -> Ragged:
    """Put a tag behind each word, going round the document's tags in a random order.

    Every tag occurs. With more tags than words they spread evenly; a document without tags
    is left as it is.
    """
    n_words, n_tags = words.lengths, tags.lengths
    shuffled = tags.values[np.lexsort((random.random(len(tags.values)), tags.row_numbers))]
    n_slots = np.where(n_tags > 0, np.maximum(n_words, n_tags), 0)
    lengths = n_words + n_slots
    result = Ragged.from_lengths(np.empty(int(lengths.sum()), dtype=np.int32), lengths)

    slots = Ragged.from_lengths(np.empty(int(n_slots.sum()), dtype=np.int8), n_slots)
    document = slots.row_numbers
    slot = np.arange(len(document)) - slots.offsets[document]
    n_words_before = -(-(slot + 1) * n_words[document] // n_slots[document])  # rounded up
    place = result.offsets[document] + slot + n_words_before
    is_word = np.ones(len(result.values), dtype=np.bool_)
    is_word[place] = False
    result.values[place] = shuffled[tags.offsets[document] + slot % n_tags[document]]
    result.values[is_word] = words.values
    return result


# Vectors from a file


def _read(prepared: Prepared, settings: VectorSettings, on_progress: Progress) -> Vectors:
    """Read the vectors of our words; compose those of features and labels.

    What the file lacks is drawn from the distribution of what it has.
    """
    encoder = prepared.encoder
    n_rows, n_words = _n_rows(prepared), _n_words(encoder)
    tags = [token[len(FEATURE_PREFIX) :] for token in encoder.tokens[n_words:]]
    tags += prepared.labels.names
    names = [_words_of_name(encoder, name) for name in tags]
    first_word = len(SPECIAL_TOKENS)
    rows = {word: row for row, word in enumerate(encoder.tokens[first_word:n_words], first_word)}
    digits = [str(digit) for digit in range(10)]
    for word in (*digits, *(word for name in names for word in name)):
        rows.setdefault(word, n_rows + len(rows))  # read, but not returned
    rows = _numbered_densely(rows, n_rows)

    file = _source_file(settings)
    read, is_found = read_vector_file(file, rows, settings.dimensions, on_progress)
    if not is_found.any():
        raise DataError(
            f"{file} and {prepared.name} have no word in common. Is the file of the same language?"
        )
    n_found = int(is_found[:n_words].sum())
    message = f"{n_found:,} of {n_words - first_word:,} words found in {file.name}"
    on_progress(message, 1.0)

    known = read[is_found]
    random = np.random.default_rng(settings.seed)
    vectors = random.normal(known.mean(0), known.std(0), (n_rows, settings.dimensions))
    vectors[:n_words][is_found[:n_words]] = read[:n_words][is_found[:n_words]]
    vectors[0] = 0
    return vectors.astype(np.float32)
