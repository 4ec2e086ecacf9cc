"""Word vectors: words, features and labels in one space, kept in the prepared folder.

They are learned by skip-gram from the training documents, with features and labels placed between
the words; or they are pretrained, from a file of word vectors or of token vectors; or the sum of
both. The pretrained vectors of features and labels are composed of those of the words typical of
their documents and of the words of their names.
"""

# D dimensions, R rows: one row per token id, then one per label

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import scipy  # scipy.sparse is imported where it is first used

from setrnn.config import VectorSettings
from setrnn.data.folders import (
    explain_failed_write,
    locked_after,
    remove_stale_lock,
    temporary_folder,
)
from setrnn.data.kept_vectors import LEARNED, KeptVectors, find_vectors, look_of
from setrnn.data.prepared import UNLABELLED, Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.token_vectors import list_files, read_token_vectors
from setrnn.data.tokenizing import FEATURE_PREFIX, NUMBER, PAD, SPECIAL_TOKENS, UNKNOWN, TextEncoder
from setrnn.data.vector_files import Mask, Progress, Vectors, read_vectors
from setrnn.errors import ConfigError, DataError

NEGATIVE_SAMPLES = 5
# Drops occurrences of frequent words, and most of labels, which follow every word.
SUBSAMPLING = 1e-4
# Words of vector files that stand for our special tokens.
UNKNOWN_IN_FILES = ("<unk>",)
DIGITS = tuple("0123456789")
NAME_WEIGHT = 5  # the name of a label counts as much as this many documents
DOCUMENTS_AT_ONCE = 20_000


def word_vectors(
    prepared: Prepared,
    settings: VectorSettings,
    on_progress: Progress = lambda message, share: None,
) -> Vectors:
    """Return the vectors of a prepared folder, memory-mapped: (R, D). Make them if needed.

    The vector of the padding is zero. Other vectors are made if the content of a file of vectors
    has changed. A folder with stored vectors needs neither the file nor gensim. Pretrained vectors
    are added to learned ones in memory.
    """
    if settings.source == "none":
        raise ConfigError("vectors.source is 'none': there are no word vectors to make.")
    if settings.pretrained != "none":
        own = replace(settings, pretrained="none")
        added = replace(own, source=settings.pretrained)
        return _add(*(_open_or_make(prepared, each, on_progress) for each in (own, added)))
    return _open_or_make(prepared, settings, on_progress)


def _add(learned: Vectors, pretrained: Vectors) -> Vectors:
    """Add vectors in equal parts; the sum varies as much as the learned ones."""
    sizes = [max(float(each.std()), 1e-9) for each in (learned, pretrained)]
    total = learned + pretrained * np.float32(sizes[0] / sizes[1])
    return cast(Vectors, total / np.float32(np.sqrt(2)))


def _open_or_make(prepared: Prepared, settings: VectorSettings, on_progress: Progress) -> Vectors:
    """Map the vectors of one source into memory; make them if the folder does not have them."""
    kept = find_vectors(prepared.folder, settings, on_progress)
    if not kept.exist:
        with locked_after(kept.file, lambda busy: on_progress(busy, 0.0)):
            if not kept.exist:  # another process may have made them meanwhile
                kept.save(_make(prepared, settings, kept, on_progress))
    else:
        remove_stale_lock(kept.file)
    kept.note_source()
    return kept.load((_n_rows(prepared), settings.dimensions))


def _make(
    prepared: Prepared, settings: VectorSettings, kept: KeptVectors, on_progress: Progress
) -> Vectors:
    """Learn or read vectors; refuse a file that is written while it is read."""
    if settings.source == LEARNED:
        with temporary_folder(kept.file) as folder, explain_failed_write(kept.file):
            return _learn(prepared, settings, folder / "sentences.txt", on_progress)
    vectors = _read(prepared, settings, on_progress)
    if kept.sources[settings.source] != look_of(list_files(settings.source)):
        raise DataError(f"{settings.source} was changed while it was read. Try again.")
    return vectors


def _n_rows(prepared: Prepared) -> int:
    return prepared.encoder.n_tokens + len(prepared.labels)


def _n_words(encoder: TextEncoder) -> int:
    """Return the number of ids below the first feature."""
    is_feature = (token.startswith(FEATURE_PREFIX) for token in encoder.tokens)
    return next((i for i, found in enumerate(is_feature) if found), encoder.n_tokens)


def _words_and_tags(prepared: Prepared) -> Iterator[tuple[Ragged, Ragged]]:
    """Stream the training documents: rows of words, and rows of features and labels.

    Texts without labels follow, if there are any.
    """
    n_tokens, n_words = prepared.encoder.n_tokens, _n_words(prepared.encoder)
    parts = [prepared.split(name) for name in ("train", UNLABELLED) if name in prepared.splits]
    places = [(part, start) for part in parts for start in range(0, len(part), DOCUMENTS_AT_ONCE)]
    for part, start in places:
        stop = min(start + DOCUMENTS_AT_ONCE, len(part))
        tokens = part.tokens.rows(start, stop)
        labels = part.labels.rows(start, stop)
        is_word = np.asarray(tokens.values < n_words)
        features = tokens.keep(~is_word)
        features = Ragged(features.values.astype(np.int32), features.offsets)
        yield (
            tokens.keep(is_word),
            features.append(Ragged(labels.values + n_tokens, labels.offsets)),
        )


def _learn(
    prepared: Prepared, settings: VectorSettings, corpus: Path, on_progress: Progress
) -> Vectors:
    """Train skip-gram with negative sampling on the training documents, written to `corpus`.

    It uses one thread: two took a third less time, but the result then differs between runs.
    """
    try:
        from gensim.models import Word2Vec
        from gensim.models.callbacks import CallbackAny2Vec
    except ImportError as error:
        raise ConfigError(
            "Learning word vectors needs gensim, which is not installed. Prepare the data on a "
            "machine that has it (the prepared folder keeps the vectors), or set "
            "vectors.source=none."
        ) from error

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
    epoch_numbers = count(1)

    def report(_: object) -> None:
        n_done = next(epoch_numbers)
        on_progress(f"word2vec: {n_done} of {settings.epochs} epochs", n_done / settings.epochs)

    epochs = CallbackAny2Vec()
    epochs.on_epoch_end = report
    on_progress("writing sentences", 0.0)
    counts = _write_sentences(prepared, corpus, random)
    seen = np.flatnonzero(counts)
    if not len(seen):
        return vectors
    model.build_vocab_from_freq({str(row): int(counts[row]) for row in seen})
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
    """Write each document as a line of row numbers; return the count of each row."""
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
        words.values.astype(np.int32),
        words.offsets[document] + n_words_before,
        shuffled[tags.offsets[document] + slot % n_tags[document]],
    )
    return Ragged.from_lengths(values, n_words + n_slots)


def _read(prepared: Prepared, settings: VectorSettings, on_progress: Progress) -> Vectors:
    """Read the vectors of the vocabulary; compose those of features and labels from them.

    Vectors that the file lacks are drawn from the distribution of those that it has.
    """
    encoder = prepared.encoder
    n_words, first_word = _n_words(encoder), len(SPECIAL_TOKENS)
    features = [token[len(FEATURE_PREFIX) :] for token in encoder.tokens[n_words:]]
    names = [_name_words(encoder, name) for name in (*features, *prepared.labels.names)]
    rows = {word: row for row, word in enumerate(encoder.tokens[first_word:n_words], first_word)}
    for word in chain(UNKNOWN_IN_FILES, DIGITS, *names):  # not all are in the vocabulary
        rows.setdefault(word, first_word + len(rows))

    read, is_found = _read_rows(settings, rows, on_progress)
    is_known = is_found[:n_words]
    place = settings.source
    if not is_known.any():
        raise DataError(
            f"{place} and {prepared.name} have no word in common. Give a file in the same language."
        )
    n_known = int(is_known.sum())
    name = Path(place).name
    on_progress(f"{n_known:,} of {n_words - first_word:,} words found in {name}", 1.0)

    known = read[:n_words][is_known]
    random = np.random.default_rng(settings.seed)
    shape = (_n_rows(prepared), settings.dimensions)
    vectors = random.normal(known.mean(0), known.std(0), shape).astype(np.float32)
    vectors[:n_words][is_known] = known
    vectors[SPECIAL_TOKENS.index(PAD)] = 0
    vectors[SPECIAL_TOKENS.index(UNKNOWN)] = known.mean(0)
    for token, words in ((UNKNOWN, UNKNOWN_IN_FILES), (NUMBER, DIGITS)):
        found = [rows[word] for word in words if is_found[rows[word]]]
        if found:
            vectors[SPECIAL_TOKENS.index(token)] = read[found].mean(0)
    name_rows = Ragged.from_lists([[rows[word] for word in words] for words in names])
    tags, is_composed = _compose_tags(prepared, name_rows, read, is_found)
    vectors[n_words:][is_composed] = tags[is_composed]
    return vectors


def _read_rows(
    settings: VectorSettings, rows: Mapping[str, int], on_progress: Progress
) -> tuple[Vectors, Mask]:
    """Read the vectors of words from a file of them, or compose them of those of tokens."""
    files = list_files(settings.source)
    if len(files) == 1:
        return read_vectors(files[0], rows, settings.dimensions, on_progress)
    arrays, tokenizer = files
    own = {word: row for word, row in rows.items() if word not in UNKNOWN_IN_FILES}
    vectors, is_found = read_token_vectors(arrays, tokenizer, own, settings.dimensions)
    n_missing = max(rows.values()) + 1 - len(vectors)
    return np.pad(vectors, ((0, n_missing), (0, 0))), np.pad(is_found, (0, n_missing))


def _name_words(encoder: TextEncoder, name: str) -> list[str]:
    """Split the name of a feature or label ("game::strategy") like a text, without stop words."""
    tokenizer = encoder.tokenizer
    assert tokenizer.normalizer is not None
    assert tokenizer.pre_tokenizer is not None
    pieces = tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(name))
    return [word for word, _ in pieces if (tokenizer.token_to_id(word) or 0) < encoder.n_tokens]


def _compose_tags(
    prepared: Prepared, names: Ragged, read: Vectors, is_found: Mask
) -> tuple[Vectors, Mask]:
    """Return a vector per feature and label, and whether it could be composed.

    A vector is the mean of the words typical of its documents and of the words of its name, which
    count as much as a few documents, minus the mean of all words. In the documents, the weight of
    a word is its count there times the share of its occurrences that are there; in the name, it
    is one over the number of names with the word ("game::").
    """
    n_words, n_tags = _n_words(prepared.encoder), len(names)
    counts = np.zeros(n_words)
    n_documents = np.zeros(n_tags)
    together = scipy.sparse.csr_array((n_tags, n_words), dtype=np.float32)
    for words, tags in _words_and_tags(prepared):
        tags = Ragged(tags.values - n_words, tags.offsets)
        together = together + _count_matrix(tags, n_tags).T @ _count_matrix(words, n_words)
        counts += np.bincount(words.values, minlength=n_words)
        n_documents += np.bincount(tags.values, minlength=n_tags)
    is_known = is_found[:n_words]
    typical = together.power(2) @ scipy.sparse.diags_array(is_known / np.maximum(counts, 1))
    by_documents, has_documents = _weighted_means(typical, read[:n_words])

    in_names = _count_matrix(names, len(read))
    n_names = np.bincount(names.values, minlength=len(read))
    telling = in_names @ scipy.sparse.diags_array(is_found / np.maximum(n_names, 1))
    by_name, has_name = _weighted_means(telling, read)

    document_weight = (n_documents * has_documents)[:, None]
    name_weight = (NAME_WEIGHT * has_name)[:, None]
    total = np.maximum(document_weight + name_weight, 1)
    vectors = (document_weight * by_documents + name_weight * by_name) / total
    vectors -= read[:n_words][is_known].mean(0)
    return vectors.astype(np.float32), has_documents | has_name


def compose_vectors(prepared: Prepared, words: Vectors, is_new: Mask) -> Vectors:
    """Return vectors (R, D), of which those of words that are not new are known: (n_tokens, D).

    Those of new words come from the words typical of their documents; those of all features and
    labels from these and from the words of their names.
    """
    encoder = prepared.encoder
    n_words = _n_words(encoder)
    known, is_old = np.array(words[:n_words]), ~is_new[:n_words]
    is_old[: len(SPECIAL_TOKENS)] = False
    known[is_new[:n_words]] = _compose_words(prepared, known, is_old)[is_new[:n_words]]
    rows = {word: row for row, word in enumerate(encoder.tokens[:n_words])}
    features = [token[len(FEATURE_PREFIX) :] for token in encoder.tokens[n_words:]]
    names = [
        [rows[word] for word in _name_words(encoder, name) if word in rows]
        for name in (*features, *prepared.labels.names)
    ]
    is_word = np.arange(n_words) >= len(SPECIAL_TOKENS)
    tags, _ = _compose_tags(prepared, Ragged.from_lists(names), known, is_word)
    return np.concatenate([known, tags])


def _compose_words(prepared: Prepared, words: Vectors, is_old: Mask) -> Vectors:
    """Return a vector for each word that is not old, as varied as the others: (n_words, D)."""
    n_words = len(words)
    others = np.flatnonzero(~is_old)
    counts = np.zeros(n_words)
    together = scipy.sparse.csr_array((len(others), n_words), dtype=np.float32)
    for rows, _ in _words_and_tags(prepared):
        matrix = _count_matrix(rows, n_words)
        together = together + matrix[:, others].T @ matrix
        counts += np.bincount(rows.values, minlength=n_words)
    typical = together.power(2) @ scipy.sparse.diags_array(is_old / np.maximum(counts, 1))
    found, has_any = _weighted_means(typical, words)
    centre, spread = words[is_old].mean(0), words[is_old].std()
    found -= centre
    found *= spread / max(float(found[has_any].std()) if has_any.any() else 0.0, 1e-9)
    vectors = np.array(words)
    vectors[others] = np.where(has_any[:, None], found + centre, centre)
    return vectors


def _weighted_means(
    weights: scipy.sparse.csr_array, vectors: Vectors
) -> tuple[npt.NDArray[np.float64], Mask]:
    """Return the weighted mean for each row of weights, and whether the row has any weight."""
    totals = np.asarray(weights @ np.ones(len(vectors)))
    means = (weights @ vectors) / np.where(totals > 0, totals, 1)[:, None]
    return means, totals > 0


def _count_matrix(rows: Ragged, width: int) -> scipy.sparse.csr_array:
    """Return the count of each value in each row."""
    ones = np.ones(len(rows.values), dtype=np.float32)
    indices = rows.values.astype(np.int32)
    return scipy.sparse.csr_array((ones, indices, rows.offsets), shape=(len(rows), width))
