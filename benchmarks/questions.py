"""What the page should ask: key presses until the set is right, by which label is asked about.

    python benchmarks/questions.py DATA MODEL... [--documents 600]

A person who knows the truth looks at the set that is shown. Where it is right, `d` takes it: one
press. Where it is not, and the answer to the question mends it, `y` or `n` does: one press.
Otherwise a label is added or rejected by hand, for three. The rest is then predicted anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from setrnn.datasets import BadRows, open_dataset
from setrnn.loading import load
from setrnn.tagger import Tagger

BY_HAND = 3  # presses
MOST_ROUNDS = 50
UNLIKELY = 0.001  # labels below it are not shown
QUESTIONS: dict[str, Callable[[float], float]] = {
    "most probable": lambda probability: probability,
    "least certain": lambda probability: -abs(probability - 0.5),
}
Chances = dict[str, float]


class Desk:
    """One document with its truth, what is shown of it, and what was decided."""

    def __init__(self, text: str, truth: frozenset[str]) -> None:
        self.text, self.truth = text, truth
        self.present: set[str] = set()
        self.absent: set[str] = set()
        self.n_presses = 0

    def show(self, labels: Iterable[str], chances: Iterable[tuple[str, float]]) -> None:
        """Show a set, and the labels that may be asked about."""
        decided = self.present | self.absent
        self.shown = (set(labels) | self.present) - self.absent
        self.chances = {
            label: chance
            for label, chance in chances
            if chance >= UNLIKELY and label not in decided
        }

    def work(self, worth: Callable[[float], float]) -> bool:
        """Take the set or mend a label of it; tell whether there is more to do."""
        wrong = self.shown ^ self.truth
        if not wrong:
            self.n_presses += 1
            return False
        asked = max(self.chances, key=lambda label: worth(self.chances[label]), default=None)
        if asked in wrong:
            self.n_presses += 1
        else:
            asked = min(wrong)
            self.n_presses += BY_HAND
        (self.present if asked in self.truth else self.absent).add(asked)
        return True


def presses(tagger: Tagger, desks: Sequence[Desk], worth: Callable[[float], float]) -> float:
    """Return how many keys are pressed a document."""
    texts = [desk.text for desk in desks]
    marginals = tagger.marginals(texts).probs.tolist()
    for desk, found, row in zip(desks, tagger.tag(texts), marginals, strict=True):
        desk.show(found.labels, zip(tagger.labels.names, row, strict=True))
    left = list(desks)
    for _ in range(MOST_ROUNDS):
        left = [desk for desk in left if desk.work(worth)]
        if not left:
            break
        completions = tagger.complete(
            [desk.text for desk in left],
            present=[desk.present for desk in left],
            absent=[desk.absent for desk in left],
        )
        for desk, completion in zip(left, completions, strict=True):
            desk.show(completion.labels, completion.suggestions)
    return sum(desk.n_presses for desk in desks) / len(desks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--documents", type=int, default=600)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    test = open_dataset(arguments.data).require("test").read(BadRows())
    examples = list(islice(test, arguments.documents))
    print(f"{'':24} " + " ".join(f"{name:>14}" for name in QUESTIONS))
    for model in arguments.models:
        tagger = load(model, arguments.device)
        known = set(tagger.labels.names)
        of_model = [each for each in examples if known.issuperset(each.labels)]
        means = [
            presses(tagger, [Desk(each.text, frozenset(each.labels)) for each in of_model], worth)
            for worth in QUESTIONS.values()
        ]
        print(f"{model.name:24} " + " ".join(f"{mean:14.2f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
