"""Prepare documents: make their prepared folder in two passes over streams, in bounded memory.

The first pass counts labels and features, and samples texts for the vocabulary: by their hashes, so
that the sample does not depend on their order. The second pass writes token ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from itertools import chain
from pathlib import Path
from typing import Any

from tokenizers import Encoding

from setrnn.config import WORDS, TextSettings, to_dict
from setrnn.data.disk import whole_folder
from setrnn.data.example import Example, name_example, sampling_rank
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary, encode_unknown
from setrnn.data.prepared import (
    HIERARCHY,
    UNLABELLED,
    EncodedBatch,
    Prepared,
    is_prepared,
    write_description,
    write_split,
)
from setrnn.data.ragged import Ragged
from setrnn.data.streaming import batched, prefetch
from setrnn.data.text.languages import settle_language
from setrnn.data.text.subwords import pretrained_encoder
from setrnn.data.text.words import TextEncoder, extend_tokenizer, learn_tokenizer, rank_words
from setrnn.errors import DataError
from setrnn.progress import OnProgress, ignore_progress, watch

BATCH = 4096

Stream = Callable[[], Iterable[Example]]


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
    if "train" not in splits:
        raise DataError(f"{name} has no 'train' part: found {', '.join(splits) or 'nothing'}.")
    if target.exists() and not is_prepared(target) and any(target.iterdir()):
        raise DataError(
            f"{target} exists and is not a prepared folder. Remove it, or name another."
        )
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
    examples: Iterable[Example],
    settings: TextSettings,
    known: Vocabulary | None,
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
