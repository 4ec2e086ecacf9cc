"""The explanation of one prediction as one HTML file: it needs no network, and prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from setrnn.data.text.alignment import AS_NUMBER, AS_UNKNOWN, CUT
from setrnn.report.templates import render
from setrnn.tagging.explain.render import WordsRow, list_label_rows, list_step_rows

if TYPE_CHECKING:
    from setrnn.tagging.explain.explain import Explanation
    from setrnn.tagging.explain.words import WeightedWord

WORDS_SHOWN, MIN_SHARE = 10, 0.001  # per step
WORDS_FOR, WORDS_AGAINST, MIN_WEIGHT = 8, 4, 0.02  # per label; of its strongest word
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
        labels=[
            _label_choice(each)
            for each in list_label_rows(explanation, WORDS_FOR, WORDS_AGAINST, MIN_WEIGHT)
        ],
        steps=[
            _step_choice(number, each)
            for number, each in enumerate(list_step_rows(explanation, WORDS_SHOWN, MIN_SHARE), 1)
        ],
        held=sum(each.probability for each in explanation.sequences),
        has_bounds=not all(each.is_exact for each in explanation.sets),
    )


def _label_choice(row: WordsRow) -> dict[str, Any]:
    """Return a label that can be chosen: its words are highlighted and listed."""
    left_out = ", which was left out" if row.is_left_out else ""
    largest = max((abs(word.weight) for word in row.words), default=1.0)
    score = row.score
    total = "" if score is None else f"score {score.total:+.2f} = bias {score.bias:+.2f}"
    return {
        "name": row.name,
        "title": f"{row.name}{left_out}: words that speak for it (+) and against it (-)",
        "total": f"{total} + what follows" if total else "",
        **_choice(row, largest, "+.2f"),
    }


def _step_choice(number: int, row: WordsRow) -> dict[str, Any]:
    """Return a step that can be chosen."""
    title = f"Step {number}, {row.name}: words with the most attention"
    name = f"{number}. {row.name}"
    return {"name": name, "title": title, "total": "", **_choice(row, 1.0, ".1%")}


def _choice(row: WordsRow, largest: float, number: str) -> dict[str, Any]:
    words = [
        {
            "text": word.text,
            "remark": _describe_word(word),
            "share": abs(word.weight) / largest,
            "number": f"{word.weight:{number}}",
            "is_against": word.weight < 0,
        }
        for word in row.words
    ]
    return {
        "probability": row.probability,
        "words": words,
        "weights": [round(weight, 5) for weight in row.weights],
        "is_left_out": row.is_left_out,
    }


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
