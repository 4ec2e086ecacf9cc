"""Case studies: two test documents in detail, as in the paper's Table 4 and Figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from setrnn.comparison.records import Record

MOST_SEQUENCES, MOST_WORDS, MOST_ATTENDED = 12, 150, 5

Case = Mapping[str, Any]


@dataclass(frozen=True)
class SpreadCase:
    """A document whose most probable set is not the set of the best sequence (Table 4)."""

    system: str
    seed: int
    case: Case
    most_words: int = MOST_WORDS

    @property
    def best_set(self) -> Mapping[str, Any]:
        """The most probable set."""
        best: Mapping[str, Any] = max(self.case["sets"], key=lambda each: each["probability"])
        return best

    @property
    def sequences(self) -> Sequence[Mapping[str, Any]]:
        """The most probable sequences."""
        return list(self.case["sequences"])[:MOST_SEQUENCES]

    @property
    def orders(self) -> Sequence[Mapping[str, Any]]:
        """The sequences that are orders of the most probable set."""
        return [each for each in self.sequences if self.is_best(each)]

    def is_best(self, found: Mapping[str, Any]) -> bool:
        """Return whether a set or a sequence has the labels of the most probable set."""
        return set(found["labels"]) == set(self.best_set["labels"])

    def is_true(self, found: Mapping[str, Any]) -> bool:
        """Return whether a set or a sequence has exactly the true labels."""
        return set(found["labels"]) == set(self.case["truth"])


@dataclass(frozen=True)
class Reading:
    """One document read by one system, step by step."""

    system: str
    case: Case
    most_words: int = MOST_ATTENDED

    @property
    def predicted(self) -> set[str]:
        """The labels of all steps."""
        return {step["label"] for step in self.case["steps"] if step["label"] is not None}

    @property
    def missed(self) -> list[str]:
        """The true labels that are not predicted."""
        return [label for label in self.case["truth"] if label not in self.predicted]

    @property
    def verdict(self) -> str:
        """Whether the predicted set is exactly the true set: "right" or "wrong"."""
        return "right" if self.predicted == set(self.case["truth"]) else "wrong"

    @property
    def f1(self) -> float:
        """The F1 of the predicted set."""
        truth = set(self.case["truth"])
        n_both = len(self.predicted) + len(truth)
        return 2 * len(self.predicted & truth) / n_both if n_both else 1.0


@dataclass(frozen=True)
class PairCase:
    """One document read by two systems (Figure 3)."""

    first: Reading
    second: Reading
    most_words: int = MOST_WORDS


@dataclass(frozen=True)
class CaseStudies:
    """Both case studies, as far as the records have fitting documents."""

    has_any: bool  # whether any document is explained in the records
    spread: SpreadCase | None
    pair: PairCase | None

    @classmethod
    def choose(cls, records: Sequence[Record]) -> CaseStudies:
        """Choose the documents of both case studies."""
        has_any = any(record.cases for record in records)
        return cls(has_any, choose_spread_case(records), choose_pair_case(records))


def choose_spread_case(records: Sequence[Record]) -> SpreadCase | None:
    """Choose a document of set-rnn that it predicts right, if there is one, as in the paper."""
    found = [
        SpreadCase(record.method, record.seed, case)
        for record in records
        for case in record.cases
        if case["sequences"] and case["sets"]
    ]
    return max(
        (each for each in found if not each.is_best(each.sequences[0])),
        key=lambda each: (
            each.system == "set-rnn",
            each.is_true(each.best_set),
            len(each.best_set["labels"]),
        ),
        default=None,
    )


def choose_pair_case(
    records: Sequence[Record], first: str = "seq2seq-rnn", second: str = "set-rnn"
) -> PairCase | None:
    """Choose a document that the second system predicts right, and the first does not.

    Where there is none, choose one on which the second system has the higher F1. Both runs have the
    same seed.
    """
    theirs = {
        (record.seed, case["document"]): Reading(first, case)
        for record in records
        if record.method == first
        for case in record.cases
    }
    pairs = [
        PairCase(theirs[record.seed, case["document"]], Reading(second, case))
        for record in records
        if record.method == second
        for case in record.cases
        if (record.seed, case["document"]) in theirs
    ]
    return max(
        (pair for pair in pairs if pair.second.f1 > pair.first.f1),
        key=lambda pair: (pair.second.f1, len(pair.second.case["truth"])),
        default=None,
    )
