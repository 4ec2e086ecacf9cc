"""Statistics of a dataset to look at before training, from one pass over each split."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from setrnn.config import TextSettings
from setrnn.data.example import Example
from setrnn.data.labels import find_twins
from setrnn.data.sketch import Hashes, string_hash, words_hash
from setrnn.data.streaming import batched
from setrnn.data.text.words import TextEncoder, learn_tokenizer

N_NAMES_SHOWN = 8  # labels in a warning
DOCUMENTS_AT_ONCE = 4_096


@dataclass(frozen=True)
class LengthStatistics:
    """Lengths of texts in words, separated by white space.

    Median and percentile are lengths that occur: the smallest that 50% or 95% do not exceed.
    """

    mean: float
    median: int
    percentile_95: int
    max: int


@dataclass(frozen=True)
class SplitStatistics:
    """Counts of one split.

    `n_repeated_texts` and `n_repeated_ids` count documents that follow another document of the
    split with the same text or id. Texts are compared without case and white space; empty texts
    are not compared. `n_windows` counts documents by the number of windows (`text.max_words` words)
    that their text fills.
    """

    n_documents: int
    n_labels: int
    n_label_sets: int
    mean_set_size: float
    max_set_size: int
    set_sizes: dict[int, int]
    lengths: LengthStatistics
    label_frequencies: dict[str, int]
    n_empty_texts: int
    n_empty_label_sets: int
    n_documents_with_features: int
    n_repeated_texts: int
    n_repeated_ids: int
    n_windows: dict[int, int]
    n_incomplete: int = 0  # documents with labels that are not known


@dataclass(frozen=True)
class UnseenStatistics:
    """Label sets and labels of one split that the training split lacks.

    `share` is the share of documents whose label set does not occur in training; `labels` counts
    the occurrences of labels that do not occur in training.
    """

    split: str
    n_documents: int
    n_label_sets: int
    share: float
    labels: dict[str, int]


@dataclass(frozen=True)
class SharedTexts:
    """Texts that occur in two splits, and the number of documents of the second with them."""

    first: str
    second: str
    n_texts: int
    n_documents: int


@dataclass(frozen=True)
class DatasetStatistics:
    """Counts of each split, and how the splits differ and overlap.

    `twins` are labels that are probably spellings of another, each with the other.
    """

    training_split: str | None
    splits: dict[str, SplitStatistics]
    unseen: tuple[UnseenStatistics, ...]
    shared_texts: tuple[SharedTexts, ...]
    n_shared_texts: int
    twins: dict[str, str]

    def warnings(self) -> list[str]:
        """Return what a user should correct before training, one sentence each."""
        shared = [
            f"{shared.second} repeats {shared.first} in {_count(shared.n_documents, 'document')}: "
            "its scores will be too good. Remove them from one of the two."
            for shared in self.shared_texts
            if shared.n_documents
        ]
        unseen = [
            f"{unseen.split} has {_count(len(unseen.labels), 'label')} that training lacks "
            f"({_count(sum(unseen.labels.values()), 'occurrence')}), which cannot be predicted: "
            f"{_join_some(unseen.labels)}."
            for unseen in self.unseen
            if unseen.labels
        ]
        of_splits = [_warnings_of_split(name, split) for name, split in self.splits.items()]
        return [*shared, *unseen, *chain.from_iterable(of_splits)]


def dataset_statistics(
    splits: Mapping[str, Iterable[Example]], training_split: str = "train"
) -> DatasetStatistics:
    """Return the statistics of splits; each stream is read once.

    Keeps 32 bytes per document and the label names in memory, but no texts. Without a training
    split, nothing is reported as unseen.

    Example:
        >>> train = [Example("1", "Rates rise", ("economy",))]
        >>> found = dataset_statistics({"train": train, "test": train})
        >>> found.splits["train"].n_labels, found.n_shared_texts
        (1, 1)
    """
    counted = {name: _count_split(examples) for name, examples in splits.items()}
    training = counted.get(training_split)
    shared_texts = []
    for first, second in combinations(counted, 2):
        hashes = counted[second].texts
        shared = hashes[np.isin(hashes, counted[first].texts)]
        shared_texts.append(SharedTexts(first, second, len(np.unique(shared)), len(shared)))
    distinct = [np.unique(split.texts) for split in counted.values()]
    _, n_splits = np.unique(np.concatenate([np.empty(0, np.uint64), *distinct]), return_counts=True)
    counts = sum(
        (Counter(e.statistics.label_frequencies) for e in counted.values()), Counter[str]()
    )
    return DatasetStatistics(
        training_split=training_split if training is not None else None,
        splits={name: split.statistics for name, split in counted.items()},
        unseen=tuple(
            _unseen(name, split, training)
            for name, split in counted.items()
            if training is not None and name != training_split
        ),
        shared_texts=tuple(shared_texts),
        n_shared_texts=int(np.count_nonzero(n_splits > 1)),
        twins=find_twins(counts),
    )


class _Counted(NamedTuple):
    """The statistics of a split, with a hash per text and label set to compare splits by."""

    statistics: SplitStatistics
    texts: Hashes
    label_sets: Hashes


def _count_split(examples: Iterable[Example]) -> _Counted:
    settings = TextSettings()
    encoder = TextEncoder(learn_tokenizer((), (), settings), settings.max_words)
    set_sizes, n_windows, label_frequencies = Counter[int](), Counter[int](), Counter[str]()
    lengths = array("q")
    texts, label_sets, ids = bytearray(), bytearray(), bytearray()  # hashes of 8 bytes each
    n_with_features = n_incomplete = n_empty = 0
    for batch in batched(examples, DOCUMENTS_AT_ONCE):
        n_windows.update(encoder.count_windows(encoder.tokenize([each.text for each in batch])))
        for example in batch:
            words = example.text.split()
            lengths.append(len(words))
            if words:
                texts += words_hash(words)
            set_sizes[len(example.labels)] += 1
            label_frequencies.update(example.labels)
            label_sets += string_hash("\0".join(sorted(example.labels)))
            ids += string_hash(example.id)
            n_with_features += bool(example.features)
            n_incomplete += example.is_incomplete
            n_empty += not (example.labels or example.is_incomplete)
    n_words, n_documents = np.array(lengths), len(lengths)
    by_frequency = sorted(label_frequencies.items(), key=lambda item: (-item[1], item[0]))
    text_hashes, set_hashes, id_hashes = (
        np.frombuffer(each, dtype=np.uint64) for each in (texts, label_sets, ids)
    )
    statistics = SplitStatistics(
        n_documents=n_documents,
        n_labels=len(label_frequencies),
        n_label_sets=len(np.unique(set_hashes)),
        mean_set_size=label_frequencies.total() / max(n_documents, 1),
        max_set_size=max(set_sizes, default=0),
        set_sizes=dict(sorted(set_sizes.items())),
        lengths=_describe_lengths(n_words),
        label_frequencies=dict(by_frequency),
        n_empty_texts=int((n_words == 0).sum()),
        n_empty_label_sets=n_empty,
        n_documents_with_features=n_with_features,
        n_repeated_texts=len(text_hashes) - len(np.unique(text_hashes)),
        n_repeated_ids=len(id_hashes) - len(np.unique(id_hashes)),
        n_windows=dict(sorted(n_windows.items())),
        n_incomplete=n_incomplete,
    )
    return _Counted(statistics, text_hashes, set_hashes)


def _describe_lengths(n_words: npt.NDArray[np.int64]) -> LengthStatistics:
    if not len(n_words):
        return LengthStatistics(mean=0.0, median=0, percentile_95=0, max=0)
    median, most = np.percentile(n_words, [50, 95], method="inverted_cdf")
    return LengthStatistics(float(n_words.mean()), int(median), int(most), int(n_words.max()))


def _unseen(name: str, split: _Counted, training: _Counted) -> UnseenStatistics:
    hashes = split.label_sets
    unseen_sets = hashes[~np.isin(hashes, training.label_sets)]
    known = training.statistics.label_frequencies
    frequencies = split.statistics.label_frequencies
    return UnseenStatistics(
        split=name,
        n_documents=len(unseen_sets),
        n_label_sets=len(np.unique(unseen_sets)),
        share=len(unseen_sets) / max(len(hashes), 1),
        labels={label: n for label, n in frequencies.items() if label not in known},
    )


def _warnings_of_split(name: str, split: SplitStatistics) -> list[str]:
    if split.n_documents == 0:
        return [f"{name} has no documents."]
    found = [
        ("has", split.n_empty_texts, " without text, from which nothing can be learned"),
        (
            "has",
            split.n_empty_label_sets,
            " without labels, which means that no label applies. Remove documents that are only "
            "unlabelled",
        ),
        ("repeats its own texts in", split.n_repeated_texts, ""),
        ("repeats its own ids in", split.n_repeated_ids, ""),
    ]
    return [f"{name} {verb} {_count(n, 'document')}{rest}." for verb, n, rest in found if n]


def _join_some(names: Collection[str]) -> str:
    shown = ", ".join(islice(names, N_NAMES_SHOWN))
    n_more = len(names) - N_NAMES_SHOWN
    return f"{shown} and {n_more:,} more" if n_more > 0 else shown


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
