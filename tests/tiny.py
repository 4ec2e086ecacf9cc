"""Tiny SYNTHETIC corpora whose true distribution over label sets is known, for tests."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, product

from setrnn.data.example import Example

LabelSet = frozenset[str]
Distribution = dict[LabelSet, float]


@dataclass(frozen=True)
class TinyCorpus:
    """A handful of texts, each with p(set | text) for every set that is possible."""

    labels: tuple[str, ...]
    truth: dict[str, Distribution]

    def marginals(self, text: str) -> dict[str, float]:
        """Compute p(label | text), all that a model of single labels can ever learn."""
        return {
            label: sum(p for labels, p in self.truth[text].items() if label in labels)
            for label in self.labels
        }

    def sample(self, n: int, seed: int) -> list[Example]:
        """Draw n documents: the text uniformly, its label set from the truth."""
        uniform = random.Random(seed).random
        texts = list(self.truth)
        drawn = []
        for i in range(n):
            text = texts[int(uniform() * len(texts))]
            labels = _draw(self.truth[text], uniform())
            ordered = tuple(label for label in self.labels if label in labels)
            drawn.append(Example(f"synthetic-{i:06d}", text, ordered))
        return drawn


def independent() -> TinyCorpus:
    """Labels are independent given the text.

    The product of marginals is the truth: binary relevance is exactly right, and a model
    of whole sets must do as well, though it has 2^4 sets to tell apart.
    """
    chances = {
        "market day": {"trade": 0.9, "crowd": 0.8, "music": 0.3, "rain": 0.2},
        "harbour fair": {"trade": 0.6, "crowd": 0.7, "music": 0.9, "rain": 0.4},
        "quiet sunday": {"trade": 0.1, "crowd": 0.2, "music": 0.25, "rain": 0.3},
        "wet march": {"trade": 0.4, "crowd": 0.1, "music": 0.2, "rain": 0.95},
    }
    labels = ("trade", "crowd", "music", "rain")
    return TinyCorpus(labels, {text: _product(chance) for text, chance in chances.items()})


def exclusive() -> TinyCorpus:
    """Whole sets exclude each other, and their mixtures never occur.

    The labels with p > 1/2, and so the product of marginals, give a set of
    probability 0 for every text here. Two sets alone could not do that: the likelier one
    has p > 1/2, and so have its labels.
    """
    labels = ("work", "strike", "sport", "football", "storm", "power")
    truth = {
        "late strike": _sets(("work strike", 0.45), ("sport football", 0.35), ("storm power", 0.2)),
        "long night": _sets(("storm power", 0.4), ("sport football", 0.35), ("work", 0.25)),
        "two of three": _sets(("work power", 0.36), ("power storm", 0.33), ("work storm", 0.31)),
        "all or one": _sets(
            ("work strike storm power", 0.4), ("work sport", 0.3), ("strike sport", 0.3)
        ),
        "no report": _sets(("", 0.4), ("sport football", 0.3), ("sport work", 0.3)),
    }
    return TinyCorpus(labels, truth)


def ordered() -> TinyCorpus:
    """A frequent label is easy only after a rare one.

    Snow falls when it is wet and cold; the sky is grey when it is one of the two. The
    same holds for a rush (early and full) and a queue (one of the two). `grey` is an
    exclusive-or of words, which no log-linear step can express, unless `snow` is known:
    grey = wet + cold - 2 snow. Rare first, every step is log-linear; in descending
    frequency, no model of that capacity is right. The set is certain given the text.
    """
    truth = {}
    for wet, cold, early, full in product((True, False), repeat=4):
        words = (
            "wet" if wet else "dry",
            "cold" if cold else "warm",
            "early" if early else "late",
            "full" if full else "empty",
        )
        holds = {
            "grey": wet != cold,
            "queue": early != full,
            "snow": wet and cold,
            "rush": early and full,
        }
        truth[" ".join(words)] = {frozenset(label for label in holds if holds[label]): 1.0}
    return TinyCorpus(("grey", "queue", "snow", "rush"), truth)


def _sets(*chances: tuple[str, float]) -> Distribution:
    return {frozenset(labels.split()): probability for labels, probability in chances}


def _product(chances: Mapping[str, float]) -> Distribution:
    """Multiply the chances of the labels into a distribution over all their sets."""
    distribution: Distribution = {frozenset(): 1.0}
    for label, chance in chances.items():
        without = {labels: p * (1 - chance) for labels, p in distribution.items()}
        with_label = {labels | {label}: p * chance for labels, p in distribution.items()}
        distribution = without | with_label
    return distribution


def _draw(distribution: Distribution, uniform: float) -> LabelSet:
    for labels, below in zip(distribution, accumulate(distribution.values()), strict=True):
        if uniform < below:
            return labels
    return labels  # the sum may stop a rounding error short of 1


TINY: dict[str, TinyCorpus] = {
    "independent": independent(),
    "exclusive": exclusive(),
    "ordered": ordered(),
}
