"""HTML pages from templates, and the page that explains one prediction."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from setrnn.data.text.alignment import AS_NUMBER, AS_UNKNOWN, CUT
from setrnn.report.wording import format_probability

if TYPE_CHECKING:
    from setrnn.tagging.explanation import Explanation

TEMPLATES = files("setrnn.report") / "templates"
LONG_TEXT = 2_500  # characters; longer texts scroll in their frame
_NOTES = {AS_UNKNOWN: "unknown to the model", AS_NUMBER: "read as a number"}

# A piece of the text: the text, the class of its element, its place among the words read, a note.
Piece = tuple[str, str, int | None, str]


def render(template: str, **values: object) -> str:
    """Render a template; every value is escaped unless it is `Markup`.

    The page contains its styles and scripts, and its policy forbids loading anything else.
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("setrnn.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters["probability"] = format_probability
    environment.globals["asset"] = _read_asset
    return environment


def _read_asset(name: str) -> Markup:
    """Return a style or a script, to be inserted as it is."""
    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def render_explanation(explanation: Explanation) -> str:
    """Return the explanation of one prediction as one file: it needs no network, and prints.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.load("model")  # doctest: +SKIP
        >>> page = render_explanation(tagger.explain("The striker scored twice."))  # doctest: +SKIP
    """
    labels = ", ".join(explanation.predicted.labels) or "no label"
    n_words = len(explanation.read) - len(explanation.features)
    return render(
        "explanation.html",
        title=f"{labels}: {explanation.method}",
        explanation=explanation,
        is_long=len(explanation.text) > LONG_TEXT,
        pieces=[piece for piece in _split_text(explanation) if piece[0]],
        features=[(name, "", n_words + n, "") for n, name in enumerate(explanation.features)],
        held=sum(each.probability for each in explanation.sequences),
    )


def _split_text(explanation: Explanation) -> Iterator[Piece]:
    """Split the text into the words that were read and the text between them."""
    text, end = explanation.text, 0

    def between(start: int, stop: int | None = None) -> Piece:
        found = text[start:stop]
        return found, "unread" if found.strip() else "", None, ""

    cut = explanation.with_fate(CUT)
    for word in explanation.words:
        if word.fate == CUT:
            break
        yield between(end, word.start)
        end = word.stop
        if word.place is None:
            yield word.text, "unread", None, "a stop word, left out"
        else:
            look = "unknown" if word.fate == AS_UNKNOWN else ""
            yield word.text, look, word.place, _NOTES.get(word.fate, "")
    if cut:
        yield between(end, cut[0].start)
        end = cut[-1].stop
        yield text[cut[0].start : end], "cut", None, "not read"
    yield between(end)
