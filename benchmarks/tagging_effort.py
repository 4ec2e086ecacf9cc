"""Count the actions of a person who tags documents on the page, by hand and with the model.

    python benchmarks/tagging_effort.py DATA MODEL [--documents N] [--device auto] [--seed 0]

A simulated person knows the true set of each test document and reaches it by hand, by mending
the predicted set, and with completion: the set predicted again after every decision, and a label
asked about under `y` and `n`. Counts keys and clicks as the page takes them, and labels touched,
however many keys each took. These are not times: nobody reads or thinks here. DATA must be what
the model was trained on, or a folder prepared from it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from setrnn.data.batches import take_rows
from setrnn.data.cache import Source, open_prepared
from setrnn.data.example import KnownLabels
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError
from setrnn.serve.registry import ServedModel
from setrnn.systems.candidates import ScoredSet
from setrnn.systems.rules import count_candidates
from setrnn.tagging.loading import load
from setrnn.tagging.prediction import complete_tokens, encode_known
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trained_model import BATCH

MOST_ROUNDS = 200  # of decisions about one document; the rest is done by hand
N_LOOKED_AT = 10  # rows of "Every label" that a person looks through; the page shows 12
PATIENCE = 5  # answers in a row that mend nothing, before a person stops to answer
N_FOUND = 8  # rows that the page's search shows
N_ASKED = 50  # labels that a search can find
N_SETS = 6  # that the page asks for: the one shown, and others
LEAST_LISTED, MOST_LISTED = 0.001, 50  # of "Every label"
DRAWS, AT_ONCE = 5_000, 250

Floats = npt.NDArray[np.float64]
Row = tuple[str, float]  # a label and its probability


def most_probable(rows: Sequence[Row]) -> str:
    """Ask about the label that is the most probable of those not decided about."""
    return rows[0][0]


def least_certain(rows: Sequence[Row]) -> str:
    """Ask about the label whose probability is nearest to 1/2."""
    return min(rows, key=lambda row: abs(row[1] - 0.5))[0]


Ask = Callable[[Sequence[Row]], str]
ASKS: dict[str, Ask] = {"most-probable": most_probable, "least-certain": least_certain}


@dataclass(frozen=True)
class Answer:
    """What the page shows for a document: a set, every label by probability, other sets."""

    labels: tuple[str, ...]
    rows: Sequence[Row] = ()
    others: Collection[frozenset[str]] = ()


class Model(Protocol):
    """What answers for some documents, by their numbers."""

    labels: Collection[str]
    max_labels: int | None  # that can be known to be present

    def predict(self) -> list[Answer]:
        """Predict the set of each document."""

    def complete(self, documents: Sequence[int], known: Sequence[KnownLabels]) -> list[Answer]:
        """Predict again, given what is known of some of the documents."""


class TokenModel:
    """A tagger before the token ids of its documents, asked in batches."""

    def __init__(self, tagger: Tagger, tokens: Ragged) -> None:
        self.tagger, self.tokens, self.max_labels = tagger, tokens, tagger.max_labels
        self.labels: Collection[str] = tagger.labels.index

    def predict(self) -> list[Answer]:
        """Predict by the method's own rule, as the page does first."""
        answers = []
        for first in range(0, len(self.tokens), BATCH):
            tokens = self.tokens.rows(first, min(first + BATCH, len(self.tokens)))
            candidates = self.tagger.system.candidates(tokens, count_candidates())
            marginals = self.tagger.system.marginals(tokens, candidates)
            predictions = self.tagger.tag_tokens(tokens, top=N_SETS)
            for prediction, row in zip(predictions, marginals, strict=True):
                order = np.argsort(-row, kind="stable")[:MOST_LISTED]
                names = self.tagger.labels.names
                listed = likely((names[label], float(row[label])) for label in order)
                answers.append(Answer(prediction.labels, listed, _sets(prediction.alternatives)))
        return answers

    def complete(self, documents: Sequence[int], known: Sequence[KnownLabels]) -> list[Answer]:
        """Predict again, given the decisions."""
        answers: list[Answer] = []
        labels = self.tagger.labels
        for first in range(0, len(documents), BATCH):
            rows = known[first : first + BATCH]
            tokens = take_rows(self.tokens, np.array(documents[first : first + BATCH]))
            ids = encode_known(labels, rows, self.max_labels)
            completions = complete_tokens(self.tagger.system, labels, tokens, rows, ids, N_SETS)
            answers.extend(
                Answer(
                    found.labels,
                    likely(found.suggestions[:MOST_LISTED]),
                    _sets(found.alternatives),
                )
                for found in completions
            )
        return answers


def _sets(others: Iterable[ScoredSet]) -> list[frozenset[str]]:
    return [frozenset(each.labels) for each in others]


def likely(rows: Iterable[Row]) -> list[Row]:
    """Leave out the labels that the page does not list."""
    return [row for row in rows if row[1] >= LEAST_LISTED]


class Search:
    """The field that finds a label: which keys it takes from there to a label."""

    def __init__(self, tagger: Tagger) -> None:
        self._model = ServedModel("", "", tagger)
        self._index = tagger.labels.index
        self._offered = cache(self._listed)
        self.n_keys = cache(self._n_keys)

    def _n_keys(self, label: str) -> int:
        """Count what is typed, the arrows and Enter.

        Typed until the label is the first row, from its own beginning or from that of one of its
        words, whichever is shorter. One the model does not know is typed to its end.
        """
        if label not in self._index:
            n_arrows = 1 if self._offered(label) else 0  # up, to the last row
            return len(label) + n_arrows + 1
        return min(self._n_typed(label[start:], label) for start in word_starts(label)) + 1

    def _n_typed(self, beginning: str, label: str) -> int:
        place = N_FOUND
        for length in range(1, len(beginning) + 1):
            offered = self._offered(beginning[:length].strip())
            place = offered.index(label) if label in offered else N_ASKED
            if place == 0:
                return length
        return len(beginning) + min(place, N_FOUND)  # down, to its row

    def _listed(self, typed: str) -> list[str]:
        """List labels as the page does: those that end with what was typed come first."""
        names = self._model.tagger.labels.names
        found = [names[label] for label in self._model.find_labels(typed)[:N_ASKED]]
        return sorted(found, key=lambda name: not name.lower().endswith(typed.lower()))


def word_starts(label: str) -> list[int]:
    """Return where the label and its words begin."""
    return [
        place
        for place, character in enumerate(label)
        if place == 0 or (character.isalnum() and not label[place - 1].isalnum())
    ]


@dataclass
class Person:
    """The actions of a person on one document."""

    keys: int = 0
    clicks: int = 0
    touched: int = 0  # labels
    _is_typing: bool = False

    def answer(self) -> None:
        """Press `y` or `n`."""
        self._press()
        self.touched += 1

    def click(self) -> None:
        """Click a label, or its cross."""
        self.clicks += 1
        self.touched += 1
        self._is_typing = False

    def find(self, n_keys: int) -> None:
        """Search for a label, with `/` before it where the field has not the focus."""
        self.keys += n_keys + (not self._is_typing)
        self.touched += 1
        self._is_typing = True

    def done(self) -> None:
        """Press `d`."""
        self._press()

    def _press(self) -> None:
        """Press a key of the page, after Escape where it would be typed into the field."""
        self.keys += 1 + self._is_typing
        self._is_typing = False


def mend(
    person: Person,
    truth: frozenset[str],
    shown: Collection[str],
    search: Search,
    rows: Sequence[Row] = (),
) -> None:
    """Correct the shown set without another prediction, and accept it.

    Wrong labels are clicked away, and missing ones that `rows` list clicked; others are searched.
    """
    wrong, missing = frozenset(shown) - truth, truth - frozenset(shown)
    listed = missing.intersection(label for label, _ in rows[:N_LOOKED_AT])
    for _ in (*wrong, *listed):
        person.click()
    for label in missing - listed:
        person.find(search.n_keys(label))
    person.done()


@dataclass
class Desk:
    """A document, what the model says of it now, and what the person decided."""

    truth: frozenset[str]
    answer: Answer
    person: Person = field(default_factory=Person)
    present: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    n_idle: int = 0  # answers in a row that mended nothing

    @property
    def shown(self) -> list[str]:
        """The set as it is shown."""
        fitting = [label for label in self.answer.labels if label not in self.absent]
        return list(dict.fromkeys([*fitting, *self.present]))

    @property
    def rows(self) -> list[Row]:
        """The rows of "Every label" that are not decided about."""
        decided = {*self.present, *self.absent}
        return [row for row in self.answer.rows if row[0] not in decided]

    @property
    def is_wrong_about(self) -> frozenset[str]:
        """The labels that are missing in the shown set, or wrong."""
        return self.truth.symmetric_difference(self.shown)

    def decide(self, label: str) -> None:
        """Decide about a label as the truth has it."""
        (self.present if label in self.truth else self.absent).append(label)

    def known(self, labels: Collection[str]) -> KnownLabels:
        """Return the decisions about labels that the model has."""
        return KnownLabels(
            tuple(label for label in self.present if label in labels),
            tuple(label for label in self.absent if label in labels),
        )


Step = Callable[[Desk, Search, Ask], "str | None"]  # the label decided about; None: done


def cheapest_step(desk: Desk, search: Search, ask: Ask) -> str | None:
    """Do what mends the set with the fewest actions: `y` or `n`, a click, or a search."""
    mistakes = desk.is_wrong_about
    if not mistakes or _is_taken(desk):
        desk.person.done()
        return None
    return _one_action(desk, mistakes, ask) or _found(desk, mistakes, search)


def adding_step(desk: Desk, search: Search, ask: Ask) -> str | None:
    """Add what is missing first, also by a search; reject what is still wrong then."""
    mistakes = desk.is_wrong_about
    if not mistakes or _is_taken(desk):
        desk.person.done()
        return None
    missing = mistakes & desk.truth
    if not missing:
        return _one_action(desk, mistakes, ask)
    return _one_action(desk, missing, ask) or _found(desk, missing, search)


def _is_taken(desk: Desk) -> bool:
    """Take the true set by a click, if it is one of the other sets."""
    if desk.truth not in desk.answer.others:
        return False
    desk.person.click()
    return True


def _one_action(desk: Desk, wanted: Collection[str], ask: Ask) -> str | None:
    """Decide about one of these labels by a key or else a click, where that can be."""
    rows = desk.rows
    if rows and (asked := ask(rows)) in wanted:
        desk.person.answer()
        return asked
    listed = [label for label, _ in rows[:N_LOOKED_AT]]
    for label in [*desk.shown, *listed]:  # a wrong one, by its cross, before a missing one
        if label in wanted:
            desk.person.click()
            return label
    return None


def _found(desk: Desk, missing: Collection[str], search: Search) -> str:
    label = min(sorted(missing), key=search.n_keys)
    desk.person.find(search.n_keys(label))
    return label


def answering_step(desk: Desk, search: Search, ask: Ask) -> str | None:
    """Answer what is asked, mistake or not, while that helps; then do the rest by hand."""
    mistakes = desk.is_wrong_about
    rows = desk.rows
    if not mistakes or not rows or desk.n_idle == PATIENCE:
        mend(desk.person, desk.truth, desk.shown, search)
        return None
    asked = ask(rows)
    desk.person.answer()
    desk.n_idle = 0 if asked in mistakes else desk.n_idle + 1
    return asked


STEPS: dict[str, Step] = {
    "completion": cheapest_step,
    "adding first": adding_step,
    "answers only": answering_step,
}


def with_completion(
    model: Model,
    predicted: Sequence[Answer],
    truths: Sequence[frozenset[str]],
    step: Step,
    ask: Ask,
    search: Search,
) -> list[Person]:
    """Let all documents take a step and predict them again, until each has its true set."""
    desks = [Desk(truth, answer) for truth, answer in zip(truths, predicted, strict=True)]
    left = list(range(len(desks)))
    for _ in range(MOST_ROUNDS):
        left = [n for n in left if _goes_on(desks[n], step(desks[n], search, ask))]
        known = {n: desks[n].known(model.labels) for n in left}
        asked = [n for n in left if _can_be_asked(model, known[n])]  # else the last answer stays
        if asked:
            answers = model.complete(asked, [known[n] for n in asked])
            for document, answer in zip(asked, answers, strict=True):
                desks[document].answer = answer
    for document in left:
        desk = desks[document]
        mend(desk.person, desk.truth, desk.shown, search)
    return [desk.person for desk in desks]


def _goes_on(desk: Desk, decided: str | None) -> bool:
    if decided is not None:
        desk.decide(decided)
    return decided is not None


def _can_be_asked(model: Model, known: KnownLabels) -> bool:
    """Return whether some labels are known, but not more than a set of the model may have."""
    is_too_much = model.max_labels is not None and len(known.present) > model.max_labels
    return known != KnownLabels() and not is_too_much


def measure(
    model: Model, truths: Sequence[frozenset[str]], search: Search, asks: Sequence[str]
) -> dict[str, list[Person]]:
    """Tag all documents in each way."""
    predicted = model.predict()
    starts = {
        "by hand": [Answer(())] * len(truths),
        "predicted set": [Answer(answer.labels) for answer in predicted],
        "predicted set and list": predicted,
    }
    ways: dict[str, list[Person]] = {}
    for name, answers in starts.items():
        ways[name] = [Person() for _ in truths]
        for person, truth, start in zip(ways[name], truths, answers, strict=True):
            mend(person, truth, start.labels, search, start.rows)
    for name, step in STEPS.items():
        for ask in asks:
            people = with_completion(model, predicted, truths, step, ASKS[ask], search)
            ways[f"{name}, {ask}"] = people
    return ways


def ratio(first: Floats, second: Floats, seed: int) -> str:
    """Divide the means of two counts, with the 95% interval of a bootstrap over documents."""
    random, n = np.random.default_rng(seed), len(first)
    draws = []
    for _ in range(DRAWS // AT_ONCE):
        weights = random.multinomial(n, np.full(n, 1 / n), size=AT_ONCE)
        draws.append((weights @ first) / (weights @ second))
    low, high = np.quantile(np.concatenate(draws), (0.025, 0.975))
    return f"{first.sum() / second.sum():.2f} ({low:.2f}-{high:.2f})"


@dataclass(frozen=True)
class Counts:
    """What was done to each document in one way."""

    keys: Floats
    clicks: Floats
    touched: Floats

    @classmethod
    def of(cls, people: Sequence[Person]) -> Counts:
        """Count what people did."""
        rows = [(each.keys, each.clicks, each.touched) for each in people]
        return cls(*np.array(rows, dtype=np.float64).T)

    @property
    def actions(self) -> Floats:
        """Keys and clicks."""
        return self.keys + self.clicks

    @property
    def steps(self) -> Floats:
        """Labels touched, and `d`."""
        return self.touched + 1


def table(ways: dict[str, list[Person]], seed: int) -> list[str]:
    """Lay the counts out in Markdown; ratios are to the first way."""
    lines = [
        "| a document | keys | clicks | actions | median | actions, x fewer | labels touched "
        "| steps, x fewer | one key only |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    counts = {name: Counts.of(people) for name, people in ways.items()}
    by_hand = next(iter(counts.values()))
    for name, each in counts.items():
        is_first = each is by_hand
        lines.append(
            f"| {name} | {each.keys.mean():.2f} | {each.clicks.mean():.2f} "
            f"| {each.actions.mean():.2f} | {np.median(each.actions):g} "
            f"| {1 if is_first else ratio(by_hand.actions, each.actions, seed)} "
            f"| {each.touched.mean():.2f} "
            f"| {1 if is_first else ratio(by_hand.steps, each.steps, seed)} "
            f"| {(each.actions == 1).mean():.0%} |"
        )
    return lines


def asks_compared(ways: dict[str, list[Person]], asks: Sequence[str], seed: int) -> list[str]:
    """Return how many more actions the first way of asking takes than each other way."""
    lines = []
    for way in STEPS:
        for other in asks[1:]:
            first, second = (Counts.of(ways[f"{way}, {ask}"]) for ask in (asks[0], other))
            found = ratio(first.actions, second.actions, seed)
            lines.append(f"{way}: actions, {asks[0]} / {other}: {found}")
    return lines


def true_sets(prepared: Prepared, rows: npt.NDArray[np.int64]) -> list[frozenset[str]]:
    """Name the labels of test documents, also those that train never had."""
    names = [*prepared.labels.names, *prepared.unseen_labels]
    labels = take_rows(prepared.split("test").labels, rows)
    return [frozenset(names[label] for label in row) for row in labels]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("model", type=Path)
    parser.add_argument("--documents", type=int, help="so many, drawn from test; all if not given")
    parser.add_argument("--ask", nargs="+", choices=ASKS, default=list(ASKS), help="what is asked")
    parser.add_argument("--seed", type=int, default=0, help="draws documents and intervals")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    tagger = load(arguments.model, arguments.device)
    prepared = open_prepared(Source(arguments.data), tagger.config.text)
    if prepared.encoder.tokenizer.to_str() != tagger.encoder.tokenizer.to_str():
        raise DataError(f"{prepared.folder} was prepared with another vocabulary than the model's.")
    test = prepared.split("test")
    n_documents = min(arguments.documents or len(test), len(test))
    random = np.random.default_rng(arguments.seed)
    rows = np.sort(random.choice(len(test), n_documents, replace=False))
    truths = true_sets(prepared, rows)
    model, search = TokenModel(tagger, take_rows(test.tokens, rows)), Search(tagger)
    ways = measure(model, truths, search, arguments.ask)
    n_labels = np.mean([len(truth) for truth in truths])
    print(
        f"{prepared.name}, {tagger.method}: {n_documents:,} documents of {n_labels:.2f} labels, "
        f"{len(tagger.labels)} labels in all\n"
    )
    print("\n".join([*table(ways, arguments.seed), ""]))
    print("\n".join(asks_compared(ways, arguments.ask, arguments.seed)))


if __name__ == "__main__":
    main()
