"""A table of a report as HTML: it sorts by its headers, and scrolls within its frame."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from setrnn.report.forms import full_headers
from setrnn.report.parts import Cell, Row, Table

LONG_TEXT = 30  # characters; longer ones wrap


def render_table(table: Table) -> str:
    """Return the table with its caption; columns without any content are left out."""
    shown = {
        column: any(row.cells[column].value is not None for row in table.rows)
        for column in range(len(table.headers))
        if any(row.cells[column].text for row in table.rows)
    }  # whether it holds numbers
    names = full_headers(table)
    headers = "".join(_header(names[each], shown[each]) for each in shown)
    rows = "\n".join(_row(row, shown) for row in table.rows)
    notes = " has-notes" if any(cell.note for row in table.rows for cell in row.cells) else ""
    return f"""<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">
<table class="data{notes}" id="table-{escape(table.name)}">
<caption><span>{escape(table.caption)}</span></caption>
<thead><tr>{_header(table.row_header, is_number=False)}{headers}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>"""


def _header(text: str, is_number: bool) -> str:
    look = ' class="number"' if is_number else ""
    words = " ".join(f"<span>{escape(word)}</span>" for word in text.split())
    return f'<th scope="col"{look}><button type="button">{words}</button></th>'


def _row(row: Row, shown: Mapping[int, bool]) -> str:
    cells = "".join(_cell(row.cells[column], is_number) for column, is_number in shown.items())
    return f'<tr><th scope="row">{escape(row.name)}</th>{cells}</tr>'


def _cell(cell: Cell, is_number: bool) -> str:
    value = "" if cell.value is None else f' data-value="{cell.value!r}"'
    looks = ["number"] if is_number else []
    if len(cell.text) > LONG_TEXT:
        looks.append("is-long")
    text, hint = escape(cell.text) or "–", ""  # noqa: RUF001 (a dash)
    if cell.is_best:
        looks.append("is-best")
        hint = '<span class="unseen"> (best)</span>'
    elif cell.is_tied:
        looks.append("is-tied")
        hint = '<span class="unseen"> (not told apart from the best)</span>'
    notes = "".join(f"<small>{escape(part)}</small>" for part in cell.note.split("; ") if part)
    look = f' class="{" ".join(looks)}"' if looks else ""
    return f"<td{look}{value}><span>{text}</span>{hint}{notes}</td>"
