"""The explanation of one prediction as one HTML file: it needs no network, and prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from setrnn.data.reading import AS_NUMBER, AS_UNKNOWN, CUT
from setrnn.report.templates import render

if TYPE_CHECKING:
    from setrnn.tagging.explanation import Explanation, LabelWords, Step, WeightedWord

WORDS_SHOWN, LEAST_SHARE = 10, 0.001  # per step
WORDS_FOR, WORDS_AGAINST, LEAST_WEIGHT = 8, 4, 0.02  # per label; of its strongest word
LONG_TEXT = 2_500  # characters; longer texts scroll in their frame
_NOTES = {AS_UNKNOWN: "unknown to the model", AS_NUMBER: "read as a number"}
_RULES = {
    None: "given, not predicted",
    "set": "the most probable set",
    "sequence": "the set of the most probable sequence",
}


@dataclass(frozen=True)
class Piece:
    """A piece of the text: a word that was read, or what was not read."""

    text: str
    look: str = ""  # the class of its element; "" for text between words
    place: int | None = None  # among the words read
    note: str = ""


@dataclass(frozen=True)
class ListedWord:
    """A word of a list: its weight as a bar and in writing."""

    text: str
    remark: str
    share: float  # of the bar
    number: str
    is_against: bool = False


@dataclass(frozen=True)
class Choice:
    """A label or a step that can be chosen: its words are highlighted and listed."""

    name: str
    probability: float
    title: str
    words: tuple[ListedWord, ...]
    weights: list[float]  # of all words and features
    is_left_out: bool = False
    total: str = ""  # of a classical system: its log-odds as a sum


def render_page(explanation: Explanation) -> str:
    """Return the whole page.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.load("model")  # doctest: +SKIP
        >>> page = render_page(tagger.explain("The striker scored twice."))  # doctest: +SKIP
    """
    labels = ", ".join(explanation.predicted.labels) or "no label"
    n_words = len(explanation.read) - len(explanation.features)
    return render(
        "explanation.html",
        title=f"{labels}: {explanation.method}",
        explanation=explanation,
        chosen_by=_RULES.get(explanation.rule, explanation.rule),
        is_long=len(explanation.text) > LONG_TEXT,
        pieces=[piece for piece in _split_text(explanation) if piece.text],
        features=[
            Piece(name, place=n_words + number) for number, name in enumerate(explanation.features)
        ],
        labels=[_label_choice(explanation, each) for each in explanation.label_words],
        steps=[_step_choice(explanation, *each) for each in enumerate(explanation.steps, 1)],
        held=sum(each.probability for each in explanation.sequences),
        has_bounds=not all(each.is_exact for each in explanation.sets),
    )


def _label_choice(explanation: Explanation, label: LabelWords) -> Choice:
    found = [
        *explanation.words_for(label, WORDS_FOR),
        *explanation.words_against(label, WORDS_AGAINST),
    ]
    most = max((abs(word.weight) for word in found), default=0.0)
    words = [
        ListedWord(
            word.text,
            _describe_word(word),
            abs(word.weight) / most,
            f"{word.weight:+.2f}",
            word.weight < 0,
        )
        for word in found
        if abs(word.weight) >= LEAST_WEIGHT * most
    ]
    left_out = "" if label.is_in_set else ", which was left out"
    score = label.score
    total = (
        "" if score is None else f"score {score.total:+.2f} = bias {score.bias:+.2f} + what follows"
    )
    return Choice(
        label.label,
        label.probability,
        f"{label.label}{left_out}: words that speak for it (+) and against it (-)",
        tuple(words),
        [round(weight, 5) for weight in label.weights],
        not label.is_in_set,
        total,
    )


def _step_choice(explanation: Explanation, number: int, step: Step) -> Choice:
    name = "STOP" if step.label is None else step.label
    words = [
        ListedWord(word.text, _describe_word(word), word.weight, f"{word.weight:.1%}")
        for word in explanation.attended(step, WORDS_SHOWN)
        if word.weight >= LEAST_SHARE
    ]
    return Choice(
        f"{number}. {name}",
        step.probability,
        f"Step {number}, {name}: words with the most attention",
        tuple(words),
        [round(weight, 5) for weight in step.weights],
    )


def _split_text(explanation: Explanation) -> Iterator[Piece]:
    """Split the text into the words that were read and the text between them."""
    text, end = explanation.text, 0
    cut = explanation.with_fate(CUT)
    for word in explanation.words:
        if word.fate == CUT:
            break
        yield _between_words(text[end : word.start])
        end = word.stop
        if word.place is None:
            yield Piece(word.text, "unread", note="a stop word, left out")
        else:
            look = "unknown" if word.fate == AS_UNKNOWN else ""
            yield Piece(word.text, look, word.place, _NOTES.get(word.fate, ""))
    if cut:
        yield _between_words(text[end : cut[0].start])
        end = cut[-1].stop
        yield Piece(text[cut[0].start : end], "cut", note="not read")
    yield _between_words(text[end:])


def _between_words(text: str) -> Piece:
    return Piece(text, "unread" if text.strip() else "")


def _describe_word(word: WeightedWord) -> str:
    remarks = [f"{word.n_times} times"] * (word.n_times > 1)
    return " ".join(remarks + [word.remark] * bool(word.remark))
