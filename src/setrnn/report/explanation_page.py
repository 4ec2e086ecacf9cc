"""The explanation of one prediction as one HTML file: it needs no network, and prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from setrnn.data.reading import AS_NUMBER, AS_UNKNOWN, CUT
from setrnn.report.templates import render

if TYPE_CHECKING:
    from setrnn.tagging.explanation import Explanation, WeightedWord

WORDS_SHOWN, LEAST_SHARE = 10, 0.001  # per step
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
        words_shown=WORDS_SHOWN,
        least_share=LEAST_SHARE,
        describe=_describe_word,
        held=sum(each.probability for each in explanation.sequences),
        has_bounds=not all(each.is_exact for each in explanation.sets),
        weights=[[round(weight, 5) for weight in step.weights] for step in explanation.steps],
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
    return " ".join(remarks + ["unknown"] * word.is_unknown + ["feature"] * word.is_feature)
