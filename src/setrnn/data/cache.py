"""Find the prepared form of any data by a hash of its content and settings, or make it.

Documents are prepared in two passes over streams, in bounded memory. The first pass counts labels
and features, and samples texts for the vocabulary: by their hashes, so that the sample does not
depend on their order. The second pass writes token ids.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from itertools import chain
from pathlib import Path
from typing import Any

from tokenizers import Encoding

from setrnn.config import WORDS, TextSettings, settings_hash, to_dict
from setrnn.data.disk import (
    explain_failed_write,
    file_hash,
    locked,
    recovered,
    remove_folder,
    remove_leftovers,
    temporary_folder,
    was_left,
    whole_folder,
)
from setrnn.data.example import Example, name_example, sampling_rank
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary, encode_unknown
from setrnn.data.prepared import (
    FORMAT,
    HIERARCHY,
    UNLABELLED,
    EncodedBatch,
    Prepared,
    is_prepared,
    write_description,
    write_split,
)
from setrnn.data.ragged import Ragged
from setrnn.data.read import EMBEDDED, BadRows, Dataset, Split
from setrnn.data.read.lines import file_errors
from setrnn.data.source import Source
from setrnn.data.splits import MAX_SHARE, MIN_VALID, SEED, VALID_SHARE, with_valid
from setrnn.data.streaming import batched, prefetch
from setrnn.data.text.languages import read_stop_words, settle_language
from setrnn.data.text.subwords import pretrained_encoder
from setrnn.data.text.words import TextEncoder, extend_tokenizer, learn_tokenizer, rank_words
from setrnn.errors import BusyError, DataError
from setrnn.progress import OnProgress, ignore_progress, log, watch

CACHE_VARIABLE = "SETRNN_CACHE"
BATCH = 4096

Stream = Callable[[], Iterable[Example]]


def open_prepared(
    source: Source,
    settings: TextSettings,
    folder: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Prepared:
    """Return the prepared form of a DATA argument; make it in `folder` if it does not exist.

    Without `folder`, that is the cache. If another process is making it, wait and open what that
    process made: a folder that is complete is never replaced, since others may be reading it.
    """
    place = source.prepared_folder
    if place is not None:
        hierarchy = source.options.hierarchy
        given = {"valid": source.valid, "unlabelled": source.unlabelled, "hierarchy": hierarchy}
        for name, value in given.items():
            if value:
                raise DataError(f"{place} is prepared already: give --{name} with the data itself.")
        return Prepared(place)
    dataset = replace(source, cut_valid=False).open()
    dataset.require("train")
    target = prepared_path(source, dataset, settings, folder)
    if not is_prepared(recovered(target)) or was_left(target):
        with locked(target):
            remove_leftovers(target.parent)  # copies of texts
            if not is_prepared(recovered(target)):
                return _prepare(source, dataset, settings, target, on_progress)
    with suppress(OSError):  # it may be read-only
        os.utime(target)  # the last use, for list_cache
    return Prepared(target)


def _prepare(
    source: Source,
    dataset: Dataset,
    settings: TextSettings,
    target: Path,
    on_progress: OnProgress,
) -> Prepared:
    """Read the data once, into files beside `target`, and prepare these."""
    bad_rows = BadRows(source.on_bad_row)
    with temporary_folder(target, is_private=True) as folder:
        copies = dict[str, Split]()
        for name, split in dataset.splits.items():
            examples = watch(split.read(bad_rows), f"reading {name}", on_progress)
            copies[name] = _copy(examples, folder / name)
        copied = replace(dataset, splits=copies)
        is_cut = source.cut_valid and "valid" not in copies
        splits = (with_valid(copied) if is_cut else copied).splits
        prepared = prepare(
            {name: partial(split.read, BadRows()) for name, split in splits.items()},
            target,
            dataset.name,
            settings,
            {
                "n_skipped_rows": bad_rows.n_skipped,
                "synthetic": source.places == (EMBEDDED,),
                "valid_is_cut": is_cut,
                **({"columns": source.columns} if source.columns else {}),
            },
            on_progress,
            hierarchy=source.options.hierarchy,
        )
    for text in bad_rows.notes:
        log.info(text)
    return prepared


def _copy(examples: Iterable[Example], file: Path) -> Split:
    """Write documents to a file; return a split that reads them again, without checking them."""
    with explain_failed_write(file), file.open("w", encoding="utf-8") as stream:
        for each in examples:
            row = (each.id, each.text, each.labels, each.features, each.unknown, each.complete)
            stream.write(f"{json.dumps(row)}\n")

    def read(_: BadRows) -> Iterator[Example]:
        with file.open(encoding="utf-8") as stream:
            for line in stream:
                id_, text, labels, features, unknown, complete = json.loads(line)
                yield Example(id_, text, labels, features, unknown=unknown, complete=complete)

    return Split((file,), read)


def prepared_path(
    source: Source,
    dataset: Dataset,
    settings: TextSettings,
    folder: Path | None = None,
) -> Path:
    """Return the folder of the prepared form: its name has a hash of content and settings."""
    content: dict[str, list[list[str]]] = {}
    for name, split in dataset.splits.items():
        content[name] = [] if split.files else [list(source.places)]
        for file in split.files:
            with file_errors(file):
                content[name].append([file.name, file_hash(file)])
    options = replace(source.options, check_known=None)  # a function has no hash
    reading: list[object] = [to_dict(options), source.reader, source.on_bad_row, source.columns]
    if source.cut_valid and "valid" not in dataset.splits:
        reading += [VALID_SHARE, MIN_VALID, MAX_SHARE, SEED]
    # The content of a list of stop words or a tokenizer counts, not the name of its file.
    stop_words = sorted(read_stop_words(settings.stop_words, settings.language))
    if settings.tokenizer != WORDS:
        tokenizer = pretrained_encoder(settings).tokenizer.to_str()
        settings = replace(settings, tokenizer=settings_hash(tokenizer))
    digest = settings_hash(FORMAT, content, reading, to_dict(settings), stop_words)
    return (folder or cache_folder()) / f"{dataset.name}-{digest}"


def cache_folder() -> Path:
    """Return the folder of prepared data: $SETRNN_CACHE, or the cache folder of the user."""
    if chosen := os.environ.get(CACHE_VARIABLE):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "setrnn"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "setrnn"


@dataclass(frozen=True)
class Vocabulary:
    """The words and labels of a model, which keep their places when others are added."""

    encoder: TextEncoder
    labels: LabelVocabulary
    adds_words: bool = True


def prepare(
    splits: Mapping[str, Stream],
    target: Path,
    name: str,
    settings: TextSettings,
    about: Mapping[str, Any],
    on_progress: OnProgress = ignore_progress,
    known: Vocabulary | None = None,
    hierarchy: Hierarchy | None = None,
) -> Prepared:
    """Write the prepared form of documents to `target`, completely or not at all.

    Args:
        splits: a function per split that streams it, any number of times; train is required.
        target: the folder to write.
        name: the name of the dataset.
        settings: how texts become words.
        about: what else is known of the documents, such as the number of rows that were skipped:
            kept in the description.
        on_progress: called with the number of documents that are done.
        known: the vocabulary of a model, to which that of the data is added.
        hierarchy: the parents of labels. Labels of the documents are not changed.

    Example:
        >>> import tempfile
        >>> examples = [Example("1", "Rates rise", ("economy",)), Example("2", "A late goal")]
        >>> target = Path(tempfile.mkdtemp()) / "news"
        >>> prepared = prepare({"train": lambda: examples}, target, "news", TextSettings(), {})
        >>> prepared.labels.names, len(prepared.split("train"))
        (('economy',), 2)
    """
    with whole_folder(target) as folder:
        counted = (splits[each]() for each in ("train", UNLABELLED) if each in splits)
        examples = watch(chain.from_iterable(counted), "vocabulary", on_progress)
        vocabulary, settings, language_note = _learn_vocabulary(examples, settings, known)
        encoder, labels = vocabulary.encoder, vocabulary.labels
        encoder.save(folder / "tokenizer.json")
        labels.save(folder / "labels.json")
        label_ids, n_documents, n_windows = dict(labels.index), {}, {}
        for split, stream in splits.items():
            windows, examples = Counter[int](), watch(stream(), split, on_progress)
            batches = _encode(examples, vocabulary, label_ids, windows)
            n_documents[split] = write_split(folder / split, encoder.n_tokens, batches)
            n_windows[split] = {str(n): windows[n] for n in sorted(windows)}
        description = {
            "name": name,
            **about,
            **({} if hierarchy is None else {HIERARCHY: hierarchy.as_dict()}),
            "language": language_note,
            "text": to_dict(settings),
            "n_documents": n_documents,
            "n_windows": n_windows,
            "n_tokens": encoder.n_tokens,
            "n_labels": len(labels),
            "unseen_labels": list(label_ids)[len(labels) :],
        }
        write_description(folder, description)
    return Prepared(target)


def _learn_vocabulary(
    examples: Iterable[Example], settings: TextSettings, known: Vocabulary | None
) -> tuple[Vocabulary, TextSettings, str]:
    """Find the words and the labels of documents; a model's own come first.

    Also return the settings with the language of the texts, and a note on it.
    """
    label_counts, feature_counts = Counter[str](), Counter[str]()
    n_characters = 20 * settings.max_words * settings.windows  # that are read of a text

    def count() -> Iterator[tuple[int, str]]:
        for each in examples:
            label_counts.update(each.labels)
            feature_counts.update(each.features)
            yield sampling_rank(each.id, each.text), each.text[:n_characters]

    # The documents with the lowest hashes are an even sample that does not depend on their order.
    texts = [text for _, text in nsmallest(settings.vocabulary_documents, count())]
    ranked = sorted(feature_counts.items(), key=lambda item: (-item[1], item[0]))
    frequent = [name for name, n in ranked if n >= settings.min_count][: settings.max_features]
    if known is not None:
        encoder = known.encoder
        if known.adds_words and type(encoder) is TextEncoder:  # those of a transformer are fixed
            words = rank_words(texts, settings.min_count, settings.language)
            tokenizer = extend_tokenizer(encoder, words, frequent, settings)
            encoder = replace(encoder, tokenizer=tokenizer)
        labels = known.labels.extend(label_counts, keeps_counts=not known.adds_words)
        return Vocabulary(encoder, labels), settings, ""
    settings, language = settle_language(texts, settings)
    if settings.tokenizer == WORDS:
        tokenizer = learn_tokenizer(texts, frequent, settings)
        encoder = TextEncoder(tokenizer, settings.max_words, settings.windows)
    else:
        encoder = pretrained_encoder(settings)
    labels = LabelVocabulary.from_counts(label_counts)
    return Vocabulary(encoder, labels), settings, language.describe()


def _encode(
    examples: Iterable[Example],
    vocabulary: Vocabulary,
    label_ids: dict[str, int],
    windows: Counter[int],
) -> Iterator[EncodedBatch]:
    """Yield batches of documents with their ids, and count the windows that their texts fill.

    The tokenizer runs in a thread of its own. Labels without an id get the next one.
    """
    encoder = vocabulary.encoder

    def tokenize(batch: list[Example]) -> tuple[list[Example], list[Encoding]]:
        texts = [example.text for example in batch]
        return batch, encoder.tokenize(texts, partial(name_example, batch))

    for batch, encodings in prefetch(tokenize, batched(examples, BATCH), n_ahead=2):
        windows.update(encoder.count_windows(encodings))
        tokens = encoder.pack(encodings, [example.features for example in batch])
        labels = Ragged.from_lists(
            [
                sorted(label_ids.setdefault(label, len(label_ids)) for label in example.labels)
                for example in batch
            ]
        )
        yield batch, tokens, labels, encode_unknown(batch, vocabulary.labels.index)


@dataclass(frozen=True)
class CachedData:
    """Prepared data in the cache, with the word vectors learned from it."""

    folder: Path
    n_documents: int | None  # None if it is damaged, or of another version
    n_vectors: int  # files of word vectors
    n_bytes: int  # of all files
    last_used: float  # seconds since 1970


def list_cache() -> list[CachedData]:
    """List the prepared data in the cache, what was used last first.

    Example:
        >>> import setrnn
        >>> prepared = setrnn.prepare("newsroom")
        >>> cached = setrnn.list_cache()[0]
        >>> cached.folder == prepared.folder, cached.n_documents
        (True, 6000)
    """
    found = []
    for folder in cache_folder().glob("[!.]*"):  # others are being written or removed
        if is_prepared(folder):
            n_documents = None
            with suppress(DataError):
                n_documents = sum(Prepared(folder).description["n_documents"].values())
            n_vectors = len([*folder.glob("*.npz")])
            n_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            last_used = folder.stat().st_mtime
            found.append(CachedData(folder, n_documents, n_vectors, n_bytes, last_used))
    return sorted(found, key=lambda each: -each.last_used)


def clear_cache() -> list[CachedData]:
    """Remove the prepared data in the cache, and return what was removed.

    What another process is writing stays. Nothing else in the folder is touched.
    """
    removed = []
    for each in list_cache():
        try:
            with locked(each.folder, wait=False):
                remove_folder(each.folder)
            removed.append(each)
        except BusyError as busy:
            log.info(f"{busy} It is kept.")
    return removed
