"""Show predictions and tables of scores as HTML, for notebooks.

All that comes from users or data is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from setrnn.errors import printable

if TYPE_CHECKING:
    from setrnn.tagging.prediction import Prediction

MAX_ROWS = 20
CHIP = "display:inline-block;border:1px solid #8888;border-radius:.7em;padding:0 .5em;margin:.1em"


def write_text(text: str) -> str:
    """Escape a text for HTML."""
    return escape(printable(text))


def write_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table; the columns are texts, the cells are HTML."""
    head = "".join(f"<th style='text-align:left'>{write_text(each)}</th>" for each in columns)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def write_set(labels: Sequence[str]) -> str:
    """Write a label set."""
    chips = (f"<span style='{CHIP}'>{write_text(each)}</span>" for each in labels)
    return " ".join(chips) or "<i>no labels</i>"


def write_prediction(found: Prediction) -> str:
    """Write a prediction: its labels with their probabilities, and the other sets."""
    probs, accepted = found.label_probabilities or {}, found.accepted_labels or ()
    chips = " ".join(
        f"<span style='{CHIP}'>{write_text(label)}"
        + (f" <small>{probs[label]:.2f}</small>" if label in probs else "")
        + (" ✓" if label in accepted else "")
        + "</span>"
        for label in found.labels
    )
    state = {None: "", True: ", <b>accepted</b>", False: ", to be reviewed"}[found.accepted]
    text = f"<div>{chips or '<i>no labels</i>'} p = {found.probability:.3f}{state}</div>"
    if found.notes:
        text += f"<div><small>{write_text('; '.join(found.notes))}</small></div>"
    if not found.alternatives:
        return text
    rows = ((f"{each.probability:.3f}", write_set(each.labels)) for each in found.alternatives)
    return text + write_table(["p", "another set"], rows)


def write_predictions(found: Sequence[Prediction]) -> str:
    """Write the first predictions as one table."""
    has_accepted = any(each.accepted is not None for each in found)
    columns = ["", "labels", "p", *(["accepted"] if has_accepted else [])]

    def rows() -> Iterator[list[str]]:
        for number, each in enumerate(found[:MAX_ROWS]):
            state = {None: "", True: "yes", False: "no"}[each.accepted]
            cells = [str(number), write_set(each.labels), f"{each.probability:.3f}"]
            yield [*cells, *([state] if has_accepted else [])]

    more = len(found) - MAX_ROWS
    return write_table(columns, rows()) + (f"<p>and {more:,} more</p>" if more > 0 else "")
