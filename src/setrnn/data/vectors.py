"""Word vectors: words, features and labels in one space, kept in the prepared folder.

They are learned from the training documents: by factorizing the co-occurrence counts (`ppmi`), or
by skip-gram with features and labels placed between the words (`word2vec`). Or those of words are
read from a text file (word2vec, GloVe, fastText), and those of features and labels are composed of
them.
"""

# D dimensions, R rows: one row per token id, then one per label

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
import scipy  # scipy.sparse is imported where it is first used
from threadpoolctl import threadpool_limits

from setrnn.config import VectorSettings, settings_hash, to_dict
from setrnn.data.disk import locked, was_left, whole_file
from setrnn.data.prepared import UNLABELLED, Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.read.lines import numbered_lines
from setrnn.data.text.words import SPECIAL_TOKENS, UNKNOWN, split_words
from setrnn.errors import ConfigError, DataError, MissingExtraError
from setrnn.progress import OnProgress, ignore_progress, log, show_step

FORMAT = 6  # raised when the same settings give other vectors
DOCUMENTS_AT_ONCE = 5_000
NAME_WEIGHT = 5  # the name of a label counts as much as this many documents

SMOOTHING = 0.75  # the power of the counts of contexts
DISCOUNT = 10  # a pair that is counted so often has half of its information
TAG_WEIGHT = 3  # of features and labels beside words
MAX_PAIRS = 50_000_000  # in memory; the rarest are dropped
POWER_ITERATIONS = 2
SPREAD = 0.1  # the standard deviation of factorized vectors

NEGATIVE_SAMPLES = 5
# Drops occurrences of frequent words, and most of labels, which follow every word.
SUBSAMPLING = 1e-4

UNKNOWN_IN_FILES = "<unk>"  # in those of GloVe
MAX_LINE_BYTES = 1 << 20  # of a file of vectors

Vectors: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.bool_]


def word_vectors(
    prepared: Prepared, settings: VectorSettings, on_progress: OnProgress = ignore_progress
) -> Vectors:
    """Return the vectors of a prepared folder: (R, D). Make them if the folder lacks them.

    The vector of the padding is zero. A folder with stored vectors does not need gensim.
    """
    if settings.source == "none":
        raise ConfigError("vectors.source is 'none': there are no word vectors to make.")
    file = vectors_file(prepared, settings)
    if not file.is_file() or was_left(file):
        with locked(file):
            if not file.is_file():  # another process may have made them meanwhile
                with show_step("word vectors", Path(settings.source).name, on_progress, ""):
                    vectors = SOURCES.get(settings.source, _read)(prepared, settings)
                with whole_file(file) as stream:
                    np.savez(stream, vectors=vectors)
    try:
        with np.load(file, allow_pickle=False) as arrays:  # compares the checksum
            found = arrays["vectors"]
    except (OSError, ValueError, EOFError, LookupError, RuntimeError, zipfile.BadZipFile) as error:
        raise DataError(f"{file} is damaged. Delete it: it will be made again.") from error
    if found.shape != (_n_rows(prepared), settings.dimensions):
        raise DataError(f"{file} belongs to other data. Delete it: it will be made again.")
    return cast(Vectors, found)


def vectors_file(prepared: Prepared, settings: VectorSettings) -> Path:
    """Return where the vectors of these settings are kept; they may not exist yet."""
    made_from = to_dict(settings)
    if settings.source not in SOURCES:
        source = Path(settings.source).expanduser()
        if not source.is_file():
            raise DataError(
                f"There is no file {source}. vectors.source is 'ppmi', 'word2vec', 'none' or a "
                "file of vectors."
            )
        found = source.stat()
        made_from["source"] = [str(source.resolve()), found.st_size, found.st_mtime_ns]
    return prepared.folder / f"word_vectors-{settings_hash(FORMAT, made_from)}.npz"


def _n_rows(prepared: Prepared) -> int:
    return prepared.encoder.n_tokens + len(prepared.labels)


def _words_and_tags(prepared: Prepared) -> Iterator[tuple[Ragged, Ragged]]:
    """Stream the training documents: rows of words, and rows of features and labels.

    Texts without labels follow, if there are any.
    """
    n_tokens, n_words = prepared.encoder.n_tokens, prepared.encoder.n_words
    parts = [prepared.split(name) for name in ("train", UNLABELLED) if name in prepared.splits]
    places = [(part, start) for part in parts for start in range(0, len(part), DOCUMENTS_AT_ONCE)]
    for part, start in places:
        stop = min(start + DOCUMENTS_AT_ONCE, len(part))
        tokens, labels = part.tokens.rows(start, stop), part.labels.rows(start, stop)
        tokens = Ragged(tokens.values.astype(np.int32), tokens.offsets)
        is_word = tokens.values < n_words
        features = tokens.keep(~is_word)
        yield (
            tokens.keep(is_word),
            features.append(Ragged(labels.values + n_tokens, labels.offsets)),
        )


def _factorize(prepared: Prepared, settings: VectorSettings) -> Vectors:
    """Return U sqrt(S) of the positive pointwise mutual information of words and tags.

    The information of rare pairs is discounted: it is mostly chance.
    """
    from sklearn.utils.extmath import randomized_svd

    counts = _count_pairs(prepared, settings.window)
    row_totals = np.asarray(counts.sum(1), dtype=np.float32)
    contexts = np.asarray(counts.sum(0), dtype=np.float32) ** SMOOTHING
    contexts /= max(contexts.sum(), 1e-12)
    weights = np.ones(len(row_totals), dtype=np.float32)
    weights[prepared.encoder.n_words :] = TAG_WEIGHT
    row_of = np.repeat(np.arange(len(row_totals), dtype=np.int32), np.diff(counts.indptr))
    discounts = counts.data / (counts.data + np.float32(DISCOUNT))
    counts.data /= row_totals[row_of] * contexts[counts.indices]
    counts.data = np.log(np.maximum(counts.data, 1))
    counts.data *= discounts * weights[row_of] * weights[counts.indices]
    del row_of, discounts
    counts.eliminate_zeros()

    random = np.random.default_rng(settings.seed)
    vectors = random.normal(0, SPREAD, (len(row_totals), settings.dimensions)).astype(np.float32)
    is_seen = np.diff(counts.indptr) > 0
    n_found = min(settings.dimensions, len(row_totals))
    if is_seen.any():
        with threadpool_limits(1):  # one order of sums, hence one result
            U, S, _ = randomized_svd(
                counts, n_found, n_iter=POWER_ITERATIONS, random_state=settings.seed % 2**32
            )
        found = (U * np.sqrt(S))[is_seen]
        vectors[is_seen] = 0
        vectors[is_seen, :n_found] = found * (SPREAD / max(float(found.std()), 1e-12))
    vectors[0] = 0
    # The longest vectors are those of frequent labels: a decoder, whose scores of labels are
    # products with them, would have to unlearn that.
    labels = vectors[prepared.encoder.n_tokens :]
    lengths = np.linalg.norm(labels, axis=1, keepdims=True)
    labels *= SPREAD * np.sqrt(settings.dimensions) / np.maximum(lengths, 1e-12)
    return vectors


def _count_pairs(prepared: Prepared, window: int) -> scipy.sparse.csr_array:
    """Count how often words stand near each other, and tags with words and with each other.

    The weight of two words falls linearly with their distance. A document's tags share the weight
    of one neighbour of each of its words.
    """
    shape = (_n_rows(prepared), _n_rows(prepared))
    total = scipy.sparse.csr_array(shape, dtype=np.float32)
    threshold = 0.0
    for words, tags in _words_and_tags(prepared):
        document = words.row_numbers
        pairs = [np.flatnonzero(document[d:] == document[:-d]) for d in range(1, window + 1)]
        first = np.concatenate(pairs)
        second = first + np.repeat(np.arange(1, window + 1), [len(each) for each in pairs])
        weights = 1 - (second - first - 1) / np.float32(window)
        values = (weights, (words.values[first], words.values[second]))
        near = scipy.sparse.coo_array(values, shape=shape).tocsr()

        shares = scipy.sparse.diags_array(1 / np.maximum(tags.lengths, 1).astype(np.float32))
        tag_matrix = shares @ _count_matrix(tags, shape[1])
        with_words = tag_matrix.T @ _count_matrix(words, shape[1])
        with_tags = scipy.sparse.triu(tag_matrix.T @ tag_matrix, 1)
        total = total + near + with_words + with_tags
        while total.nnz > MAX_PAIRS:
            threshold += 1
            total.data[total.data <= threshold] = 0
            total.eliminate_zeros()
    return scipy.sparse.csr_array(total + total.T)


def _learn(prepared: Prepared, settings: VectorSettings) -> Vectors:
    """Train skip-gram with negative sampling on the training documents.

    It uses one thread: two took a third less time, but the result then differs between runs.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise MissingExtraError("gensim", "word2vec", "vectors.source=word2vec") from error

    random = np.random.default_rng(settings.seed)
    shape = (_n_rows(prepared), settings.dimensions)
    vectors = random.uniform(-1 / shape[1], 1 / shape[1], shape).astype(np.float32)
    vectors[0] = 0
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
    names = list(map(str, range(shape[0])))
    sentences = [
        [names[row] for row in sentence]
        for words, tags in _words_and_tags(prepared)
        for sentence in weave(words, tags, random)
    ]
    if any(sentences):
        model.build_vocab(sentences)
        model.train(sentences, total_examples=len(sentences), epochs=settings.epochs)
        vectors[list(map(int, model.wv.index_to_key))] = model.wv.vectors
    return vectors


def weave(words: Ragged, tags: Ragged, random: np.random.Generator) -> Ragged:
    """Put a tag after each word, cycling through the tags of the document in a random order.

    Every tag occurs. If there are more tags than words, they are spread evenly. A document
    without tags is unchanged.
    """
    n_words, n_tags = words.lengths, tags.lengths
    shuffled = tags.values[np.lexsort((random.random(len(tags.values)), tags.row_numbers))]
    n_slots = np.where(n_tags > 0, np.maximum(n_words, n_tags), 0)
    document = np.repeat(np.arange(len(n_slots)), n_slots)
    slot = np.arange(len(document)) - np.repeat(n_slots.cumsum() - n_slots, n_slots)
    n_words_before = -(-(slot + 1) * n_words[document] // n_slots[document])  # rounded up
    values = np.insert(
        words.values,
        words.offsets[document] + n_words_before,
        shuffled[tags.offsets[document] + slot % n_tags[document]],
    )
    return Ragged.from_lengths(values, n_words + n_slots)


# What learns vectors from the documents; any other source is a file.
SOURCES: dict[str, Callable[[Prepared, VectorSettings], Vectors]] = {
    "ppmi": _factorize,
    "word2vec": _learn,
}


def _read(prepared: Prepared, settings: VectorSettings) -> Vectors:
    """Read the vectors of words from a file; compose those that it lacks."""
    encoder, n_special = prepared.encoder, len(SPECIAL_TOKENS)
    rows = {word: row for row, word in enumerate(encoder.tokens[: encoder.n_words])}
    file = Path(settings.source).expanduser()
    vectors, is_found = _read_file(file, rows, settings.dimensions)
    is_word = is_found[n_special:]
    if not is_word.any():
        raise DataError(
            f"{file} and {prepared.name} have no word in common. Give a file in the same language."
        )
    log.info(f"{is_word.sum():,} of {len(is_word):,} words found in {file.name}")
    # The unknown word and numbers, unless the file has them.
    vectors[:n_special][~is_found[:n_special]] = vectors[n_special:][is_word].mean(0)
    vectors[0] = 0
    is_found[:n_special] = True
    return compose_vectors(prepared, vectors, ~is_found)


def _read_file(file: Path, rows: Mapping[str, int], dimensions: int) -> tuple[Vectors, Mask]:
    """Read the vectors of the words in `rows`; return them and whether each row was found.

    Each line has a word and its numbers; words with spaces, of which GloVe has a few, are left
    out. The file may have the header of word2vec, and may be compressed (.gz). A word gets the
    first of its vectors, in small letters or capitals: files have frequent words first.
    """
    vectors = np.zeros((len(rows), dimensions), dtype=np.float32)
    is_found = np.zeros(len(rows), dtype=np.bool_)
    n_expected = n_lines = 0
    for number, line in numbered_lines(file, MAX_LINE_BYTES):
        fields = line.split()
        if number == 1 and (n_expected := _read_header(file, fields, dimensions)):
            continue
        n_lines += bool(fields)
        if 0 < len(fields) <= dimensions:
            raise DataError(
                f"{file} line {number}: {dimensions} numbers were expected after the word, found "
                f"{len(fields) - 1}. Correct or remove the line."
            )
        if len(fields) != dimensions + 1:
            continue
        word = fields[0].decode(errors="replace")
        word = UNKNOWN if word == UNKNOWN_IN_FILES else word
        row = rows.get(word, rows.get(word.lower()))
        if row is None or is_found[row]:
            continue
        try:
            vectors[row] = np.array(fields[1:], dtype=np.float32)
        except ValueError as error:
            raise DataError(
                f"{file} line {number}: {error}. Expected a word and its numbers."
            ) from error
        if not np.isfinite(vectors[row]).all():
            raise DataError(f"{file} line {number}: a vector must hold finite numbers.")
        is_found[row] = True
    if not n_lines or n_lines < n_expected:
        raise DataError(f"{file} is cut short: {n_lines:,} vectors instead of {n_expected:,}.")
    return vectors, is_found


def _read_header(file: Path, fields: Sequence[bytes], dimensions: int) -> int:
    """Return the number of vectors that the first line announces; 0 if it is a vector itself.

    Raise ConfigError if the file has vectors of other dimensions.
    """
    is_header = len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit()
    n_expected, width = map(int, fields) if is_header else (0, len(fields) - 1)
    if width != dimensions:
        raise ConfigError(
            f"{file} holds vectors of {width} dimensions, but vectors.dimensions is {dimensions}. "
            f"Set vectors.dimensions={width}, or give another file: text with a word and its "
            "numbers per line."
        )
    return n_expected


def compose_vectors(prepared: Prepared, words: Vectors, is_new: Mask) -> Vectors:
    """Return vectors (R, D), of which those of words that are not new are known.

    Those of new words are means of the words typical of their documents, scaled to vary as much
    as the others. Those of features and labels are means of these and of the words of their
    names, which count as much as a few documents, minus the mean of all words.
    """
    n_words = prepared.encoder.n_words
    vectors, is_new = np.array(words[:n_words]), is_new[:n_words]
    is_word = np.arange(n_words) >= len(SPECIAL_TOKENS)
    is_old = is_word & ~is_new
    if is_new.any():
        found, n_documents = _describe(prepared, np.flatnonzero(is_new), vectors, is_old)
        centre, spread = vectors[is_old].mean(0), float(vectors[is_old].std())
        has_any = n_documents > 0
        found -= centre
        found *= spread / max(float(found[has_any].std()) if has_any.any() else 0.0, 1e-9)
        vectors[is_new] = np.where(has_any[:, None], found + centre, centre)

    tags = np.arange(n_words, _n_rows(prepared))
    by_documents, n_documents = _describe(prepared, tags, vectors, is_word)
    names = _count_matrix(_name_words(prepared, n_words), n_words)
    # One over the number of names with the word: "game::" tells little.
    telling = names @ scipy.sparse.diags_array(is_word / np.maximum(names.sum(0), 1))
    by_name, has_name = _weighted_means(telling, vectors)
    document_weight, name_weight = n_documents[:, None], NAME_WEIGHT * has_name[:, None]
    composed = document_weight * by_documents + name_weight * by_name
    composed /= np.maximum(document_weight + name_weight, 1)
    composed -= vectors[is_word].mean(0)
    return np.concatenate([vectors, composed.astype(np.float32)])


def _describe(
    prepared: Prepared, rows: npt.NDArray[np.int64], vectors: Vectors, is_known: Mask
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean of the known words typical of the documents of each row, and their number.

    The weight of a word is its count there times the share of its occurrences that are there.
    The number of documents is zero if they have no known word.
    """
    n_words = len(vectors)
    counts, n_documents = np.zeros(n_words), np.zeros(len(rows))
    together = scipy.sparse.csr_array((len(rows), n_words), dtype=np.float32)
    for words, tags in _words_and_tags(prepared):
        in_words = _count_matrix(words, n_words)
        present = _count_matrix(words.append(tags), _n_rows(prepared))[:, rows]
        together = together + present.T @ in_words
        counts += in_words.sum(0)
        n_documents += (present > 0).sum(0)
    typical = together.power(2) @ scipy.sparse.diags_array(is_known / np.maximum(counts, 1))
    means, has_any = _weighted_means(typical, vectors)
    return means, n_documents * has_any


def _name_words(prepared: Prepared, n_words: int) -> Ragged:
    """Split the names of features and labels ("game::strategy") into words of the vocabulary."""
    tokens, language = prepared.encoder.tokens, prepared.text_settings.language
    rows = {word: row for row, word in enumerate(tokens[:n_words])}
    all_names = (*prepared.encoder.feature_ids, *prepared.labels.names)
    names = (split_words(name, language) for name in all_names)
    return Ragged.from_lists([[rows[word] for word in each if word in rows] for each in names])


def _weighted_means(
    weights: scipy.sparse.csr_array, vectors: Vectors
) -> tuple[npt.NDArray[np.float64], Mask]:
    """Return the weighted mean for each row of weights, and whether the row has any weight."""
    totals = np.asarray(weights.sum(1))
    means = (weights @ vectors) / np.where(totals > 0, totals, 1)[:, None]
    return means, totals > 0


def _count_matrix(rows: Ragged, width: int) -> scipy.sparse.csr_array:
    """Return the count of each value in each row."""
    ones = np.ones(len(rows.values), dtype=np.float32)
    return scipy.sparse.csr_array((ones, rows.values, rows.offsets), shape=(len(rows), width))
