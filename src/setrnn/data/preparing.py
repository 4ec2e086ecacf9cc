"""Prepare a dataset: make its prepared folder in two passes and bounded memory.

The first pass learns the vocabulary (`counting`), the second writes token ids (`encoding`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from setrnn.config import TextSettings, to_dict
from setrnn.data.counting import Counts, count_documents
from setrnn.data.encoding import SplitWriter, encode_documents
from setrnn.data.example import Example
from setrnn.data.folders import whole_folder
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary
from setrnn.data.languages import settle_language
from setrnn.data.prepared import HIERARCHY, UNLABELLED, Prepared, is_prepared, write_description
from setrnn.data.tokenizing import TextEncoder
from setrnn.data.vocabulary import Vocabulary, learn_vocabulary
from setrnn.errors import DataError

VOCABULARY_SPLITS = ("train", UNLABELLED)

Stream = Callable[[], Iterable[Example]]
OnDocuments = Callable[[str, int], None]


class Hands(Protocol):
    """Who reads the documents, twice: one process, or several with a piece of the data each."""

    def count(self, folder: Path) -> Counts:
        """Return the counts of train and of texts without labels; files in `folder` may help."""

    def encode(self, folder: Path, encoder: TextEncoder, labels: LabelVocabulary) -> Encoded:
        """Write the files of all splits into `folder`; that holds the vocabulary already."""


@dataclass
class Encoded:
    """What the second pass over the documents has found."""

    n_documents: dict[str, int] = field(default_factory=dict)  # by split
    n_skipped: dict[str, int] = field(default_factory=dict)
    n_windows: dict[str, Mapping[int, int]] = field(default_factory=dict)  # see `SplitWriter`
    label_ids: dict[str, int] = field(default_factory=dict)  # also of labels that train lacks


@dataclass(frozen=True)
class OneProcess:
    """Reads streams one after the other; the tokenizer uses all cores."""

    splits: Mapping[str, Stream]
    settings: TextSettings
    on_documents: OnDocuments

    def count(self, folder: Path) -> Counts:
        """Count the documents of train and those without labels."""
        documents = chain.from_iterable(
            self.splits[name]() for name in VOCABULARY_SPLITS if name in self.splits
        )
        return count_documents(documents, self.settings, partial(self.on_documents, "vocabulary"))

    def encode(self, folder: Path, encoder: TextEncoder, labels: LabelVocabulary) -> Encoded:
        """Write one split after the other."""
        found, n_labels = Encoded(label_ids=dict(labels.index)), len(labels)
        for name, stream in self.splits.items():
            with SplitWriter(folder / name, smallest_dtype(encoder.n_tokens)) as writer:
                report = partial(self.on_documents, name)
                encode_documents(stream(), writer, encoder, found.label_ids, n_labels, report)
            found.n_documents[name] = writer.n_documents
            found.n_windows[name] = writer.n_windows
        return found


def smallest_dtype(n_values: int) -> np.dtype[Any]:
    """Return the smallest of our types that can hold ids below `n_values`."""
    return np.dtype(np.uint16 if n_values <= 2**16 else np.int32)


def prepare(
    splits: Mapping[str, Stream],
    target: Path,
    name: str,
    settings: TextSettings,
    source: Mapping[str, Any],
    on_documents: OnDocuments = lambda step, n_documents: None,
    known: Vocabulary | None = None,
    hierarchy: Hierarchy | None = None,
) -> Prepared:
    """Write the prepared form of documents to `target`, completely or not at all.

    Args:
        splits: a function per split that streams it, any number of times; train is required.
        target: the folder to write.
        name: the name of the dataset.
        settings: how texts become words.
        source: where the data came from, kept in the description.
        on_documents: called with the step and the number of documents processed since the last
            call.
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
    about = {"name": name, "source": dict(source), **describe_hierarchy(hierarchy)}
    if known is None:
        settings, look = settle_language((each.text for each in splits["train"]()), settings)
        about["language"] = look.describe()
    hands = OneProcess(splits, settings, on_documents)
    return prepare_by(hands, target, settings, about, known)


def describe_hierarchy(hierarchy: Hierarchy | None) -> dict[str, Any]:
    """Return what a description has of a hierarchy."""
    return {} if hierarchy is None else {HIERARCHY: hierarchy.as_dict()}


def prepare_by(
    hands: Hands,
    target: Path,
    settings: TextSettings,
    about: Mapping[str, Any],
    known: Vocabulary | None = None,
) -> Prepared:
    """Write a prepared folder, completely or not at all; `about` is kept in the description."""
    if target.exists() and not is_prepared(target) and any(target.iterdir()):
        raise DataError(
            f"{target} exists and is not a prepared folder. Remove it, or name another."
        )
    with whole_folder(target) as folder:
        counts = hands.count(folder)
        extend = learn_vocabulary if known is None else known.extend
        encoder, labels = extend(
            counts.labels, counts.frequent_words, counts.frequent_features(), settings
        )
        encoder.save(folder / "tokenizer.json")
        labels.save(folder / "labels.json")
        del counts
        found = hands.encode(folder, encoder, labels)
        description = {
            **about,
            "text": to_dict(settings),
            "n_documents": found.n_documents,
            "n_skipped_rows": found.n_skipped,
            "n_windows": {
                name: {str(n): each[n] for n in sorted(each)}
                for name, each in found.n_windows.items()
            },
            "n_tokens": encoder.n_tokens,
            "n_labels": len(labels),
            "unseen_labels": list(found.label_ids)[len(labels) :],
            "token_dtype": smallest_dtype(encoder.n_tokens).name,
        }
        write_description(folder, description)
    return Prepared(target)
