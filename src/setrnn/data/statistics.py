"""Statistics of a dataset to look at before training, from one pass over each split."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from typing import NamedTuple

import numpy as np

from setrnn.data.example import Example, Hashes, sampling_rank, string_hash, text_hash
from setrnn.data.text.languages import MAX_CHARACTERS, MAX_TEXTS, FoundLanguage, detect_language
from setrnn.errors import count_of, list_some

N_NAMES_SHOWN = 8  # labels in a warning
MIN_SPELT = 7  # letters of a name that may be misspelt
TIMES_RARER = 5  # than the name that is meant
TRAIN = "train"

_WORD = re.compile(r"[^\W_]+[+#]*")  # C, C++ and C# are three
_POSSESSIVE = re.compile(r"['\u2019]s\b")


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
    """Counts of one split, and what it has beside train and the splits before it.

    `n_repeated_texts` and `n_repeated_ids` count documents that follow another document of the
    split with the same text or id. Texts are compared without case and white space; empty texts
    are not compared.
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
    n_incomplete: int = 0  # documents with labels that are not known
    # The share of documents whose label set train lacks, and how often each label occurs that
    # train lacks; None and empty for train itself, or if there is no train.
    unseen_share: float | None = None
    unseen_labels: dict[str, int] = field(default_factory=dict)
    # The number of documents whose text an earlier split has too, by its name.
    n_shared_texts: dict[str, int] = field(default_factory=dict)

    def warnings(self, name: str) -> list[str]:
        """Return what a user should correct before training, one sentence each."""
        found = [
            f"{name} repeats {first} in {count_of(n, 'document')}: its scores will be too good. "
            "Remove them from one of the two."
            for first, n in self.n_shared_texts.items()
            if n
        ]
        if self.unseen_labels:
            found.append(
                f"{name} has {count_of(len(self.unseen_labels), 'label')} that training lacks "
                f"({count_of(sum(self.unseen_labels.values()), 'occurrence')}), which cannot be "
                f"predicted: {list_some([*self.unseen_labels], N_NAMES_SHOWN)}."
            )
        if self.n_documents == 0:
            found.append(f"{name} has no documents.")
        unlabelled = (
            "has {} without labels: --unlabelled-rows says what empty cells are, skip (not "
            "labelled yet) or empty (no label applies, as a list [] says)."
        )
        counts = {
            "has {} without text, from which nothing can be learned.": self.n_empty_texts,
            unlabelled: self.n_empty_label_sets,
            "repeats its own texts in {}: --merge-duplicates joins them.": self.n_repeated_texts,
            "repeats its own ids in {}.": self.n_repeated_ids,
        }
        said = [text.format(count_of(n, "document")) for text, n in counts.items() if n]
        return [*found, *(f"{name} {text}" for text in said)]


@dataclass(frozen=True)
class DatasetStatistics:
    """Counts of each split.

    `twins` are labels that are probably spellings of another, each with the other. The language is
    that of train, or of the first split.
    """

    splits: dict[str, SplitStatistics]
    twins: dict[str, str]
    language: FoundLanguage

    def warnings(self) -> list[str]:
        """Return what a user should correct before training, one sentence each."""
        return [each for name, split in self.splits.items() for each in split.warnings(name)]


def dataset_statistics(splits: Mapping[str, Iterable[Example]]) -> DatasetStatistics:
    """Return the statistics of splits; each stream is read once.

    Keeps 32 bytes per document, the label names and 1,000 texts of each split in memory. Without
    train, nothing is reported as unseen.

    Example:
        >>> train = [Example("1", "Rates rise", ("economy",))]
        >>> found = dataset_statistics({"train": train, "test": train})
        >>> found.splits["train"].n_labels, found.splits["test"].n_shared_texts
        (1, {'train': 1})
    """
    counted = {name: _count_split(examples) for name, examples in splits.items()}
    found, counts = dict[str, SplitStatistics](), Counter[str]()
    for name, (statistics, texts, label_sets, _) in counted.items():
        frequencies = statistics.label_frequencies
        counts.update(frequencies)
        shared = {each: int(np.isin(texts, counted[each].texts).sum()) for each in found}
        statistics = replace(statistics, n_shared_texts=shared)
        if name != TRAIN and TRAIN in counted:
            train = counted[TRAIN]
            known = train.statistics.label_frequencies
            n_unseen = int((~np.isin(label_sets, train.label_sets)).sum())
            statistics = replace(
                statistics,
                unseen_share=n_unseen / max(len(label_sets), 1),
                unseen_labels={each: n for each, n in frequencies.items() if each not in known},
            )
        found[name] = statistics
    first = counted.get(TRAIN) or next(iter(counted.values()), None)
    language = detect_language([] if first is None else first.sample)
    return DatasetStatistics(found, find_twins(counts), language)


class _Counted(NamedTuple):
    """The statistics of a split, with a hash per text and label set to compare splits by."""

    statistics: SplitStatistics
    texts: Hashes
    label_sets: Hashes
    sample: list[str]  # texts, to find their language


def _count_split(examples: Iterable[Example]) -> _Counted:
    set_sizes, label_frequencies = Counter[int](), Counter[str]()
    lengths = array("q")
    texts, label_sets, ids = bytearray(), bytearray(), bytearray()  # hashes of 8 bytes each
    n_with_features = n_incomplete = n_empty = 0

    def count() -> Iterator[tuple[int, str]]:
        nonlocal texts, label_sets, ids, n_with_features, n_incomplete, n_empty
        for example in examples:
            words = example.text.split()
            lengths.append(len(words))
            if words:
                texts += text_hash(example.text)
            set_sizes[len(example.labels)] += 1
            label_frequencies.update(example.labels)
            label_sets += string_hash("\0".join(sorted(example.labels)))
            ids += string_hash(example.id)
            n_with_features += bool(example.features)
            n_incomplete += example.is_incomplete
            n_empty += not (example.labels or example.is_incomplete)
            yield sampling_rank(example.id, example.text), example.text[:MAX_CHARACTERS]

    sample = [text for _, text in nsmallest(MAX_TEXTS, count())]
    n_words, n_documents = np.array(lengths), len(lengths)
    some = n_words if n_documents else np.zeros(1, dtype=np.int64)
    median, most = np.percentile(some, [50, 95], method="inverted_cdf")
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
        lengths=LengthStatistics(float(some.mean()), int(median), int(most), int(some.max())),
        label_frequencies=dict(by_frequency),
        n_empty_texts=int((n_words == 0).sum()),
        n_empty_label_sets=n_empty,
        n_documents_with_features=n_with_features,
        n_repeated_texts=len(text_hashes) - len(np.unique(text_hashes)),
        n_repeated_ids=len(id_hashes) - len(np.unique(id_hashes)),
        n_incomplete=n_incomplete,
    )
    return _Counted(statistics, text_hashes, set_hashes, sample)


def find_twins(label_counts: Mapping[str, int]) -> dict[str, str]:
    """Return labels that are probably spellings of another: a map to the most frequent of them.

    Case, accents, punctuation, spaces, plural endings and the 's of Children's are not compared;
    the signs of C++ and C# are. So is a long name that differs by one letter, or by two that are
    swapped, from one at least five times as frequent.

    Example:
        >>> find_twins({"Drama": 40, "Dramas": 90, "drama ": 1, "TV Shows": 3, "Sci-Fi": 1})
        {'Drama': 'Dramas', 'drama ': 'Dramas'}
        >>> find_twins({"Documentaries": 90, "Documentries": 2})
        {'Documentries': 'Documentaries'}
    """
    groups: dict[str, list[str]] = {}
    for label in sorted(label_counts, key=lambda label: (-label_counts[label], label)):
        groups.setdefault(_plain(label), []).append(label)
    totals = {plain: sum(label_counts[each] for each in group) for plain, group in groups.items()}
    near: dict[str, list[str]] = {}  # frequent names, by what is left of each without a letter
    for plain in sorted(groups, key=lambda plain: -totals[plain]):
        if len(plain) < MIN_SPELT or not plain.isalpha():
            continue
        parts = {plain, *(plain[:at] + plain[at + 1 :] for at in range(len(plain)))}
        frequent = (
            each
            for part in parts
            for each in near.get(part, ())
            if totals[each] >= TIMES_RARER * totals[plain] and _is_misspelt(plain, each)
        )
        if meant := next(frequent, None):
            groups[meant] += groups.pop(plain)
            continue
        for part in parts:
            near.setdefault(part, []).append(plain)
    return {other: kept for kept, *others in groups.values() for other in others}


def _is_misspelt(one: str, other: str) -> bool:
    """Return whether names, equal but for a letter in each, differ by one letter or a swap."""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    if len(one) != len(other):
        return True
    is_swapped = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
    return is_swapped or one[at + 1 :] == other[at + 1 :]


def _plain(label: str) -> str:
    """Return what spellings of one label share."""
    plain = unicodedata.normalize("NFKD", label.casefold().replace("&", " and "))
    letters = "".join(each for each in plain if not unicodedata.combining(each))
    words = _WORD.findall(_POSSESSIVE.sub("", letters))
    joined = "".join(_singular(word) for word in words if word != "and")
    # Short names and names with digits are often codes, of which each letter counts.
    return joined if joined.isalpha() and len(joined) > 3 else label.strip()


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    # Comedies and comedy, movies and movie.
    return f"{word[:-2]}y" if len(word) > 3 and word.endswith("ie") else word
