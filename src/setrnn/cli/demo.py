"""`setrnn demo`: compare systems on the embedded corpus, from start to finish."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import setrnn
from setrnn.cli.compare import given_command, show_results, write_report
from setrnn.cli.console import labels_text, note, stdout
from setrnn.cli.explain import sequences_table, set_prob, sets_table
from setrnn.cli.progress import terminal_progress
from setrnn.comparison.records import MODELS, Comparison, Record, run_name
from setrnn.data import newsroom
from setrnn.data.example import Example

METHODS = ("br", "br-support", "pcc", "seq2seq-rnn", "set-rnn", "set-rnn-exact")
EXPLAINED = "set-rnn"
MIN_LABELS_SHOWN = 4
# The first document of each kind is shown.
KINDS = {
    "all": "every system finds the set",
    "some": "here the systems differ",
    "none": "no system finds the set",
}


def demo(
    out: Annotated[
        Path, typer.Option(help="The folder of the demo; a demo already there is continued.")
    ] = Path("demo"),
) -> None:
    """Train and compare systems on newsroom, the embedded corpus of synthetic news.

    Three classical systems and three networks, small enough for two cores and three minutes.
    """
    note(newsroom.DESCRIPTION)
    with terminal_progress() as show:
        result = setrnn.compare(
            "newsroom",
            METHODS,
            out=out,
            hierarchy="newsroom",
            quick=True,
            prepared_in=out / "prepared",
            command=given_command(),
            on_progress=show,
        )
    page = write_report(result)
    show_results(result)
    stdout.print("One run each, 600 documents: a difference of .01 may be chance.", style="dim")
    examples = list(newsroom.examples("test"))
    records = {
        record.method: record
        for record in result.records
        if record.method in METHODS and record.failure is None
    }
    _show_documents(examples, result.comparison, records)
    if EXPLAINED in records:
        _show_explanation(examples, records[EXPLAINED])
    _show_what_next(out, page)


def _show_documents(
    examples: Sequence[Example], comparison: Comparison, records: Mapping[str, Record]
) -> None:
    """Show an easy document, one where the systems differ, and one that none gets right."""
    for wanted, subtitle in KINDS.items():
        for document, truth in enumerate(comparison.truth):
            is_right = [set(_predicted(each, document)) == set(truth) for each in records.values()]
            kind = "all" if all(is_right) else "some" if any(is_right) else "none"
            if kind == wanted and len(truth) >= MIN_LABELS_SHOWN:
                panel = _panel(examples[document], document, comparison, records, subtitle)
                stdout.print(Padding(panel, (1, 0, 0, 0)))
                break


def _panel(
    example: Example,
    document: int,
    comparison: Comparison,
    records: Mapping[str, Record],
    subtitle: str,
) -> Panel:
    """Lay out a document with its true set, and the set and probability of each system."""
    sets = Table.grid(padding=(0, 2))
    sets.add_row("truth", Text(labels_text(sorted(example.labels))), "")
    for method, record in records.items():
        assert record.test is not None
        predicted = _predicted(record, document)
        is_right = set(predicted) == set(comparison.truth[document])
        probability = record.test.probability[record.own_rule][document]
        sets.add_row(
            method,
            Text(labels_text(sorted(comparison.labels[label] for label in predicted))),
            f"p = {probability:.2f}{' ✓' if is_right else ''}",
            style="green" if is_right else "",
        )
    return Panel(Group(Text(example.text), "", sets), title=example.id, subtitle=subtitle)


def _predicted(record: Record, document: int) -> Sequence[int]:
    assert record.test is not None
    return record.test.predicted[record.own_rule][document]


def _show_explanation(examples: Sequence[Example], record: Record) -> None:
    """Show a document whose best sequence is not a sequence of its most probable set."""
    if not record.cases:
        return
    differing = [case for case in record.cases if case["differs"]]
    right = [case for case in differing if set(case["sets"][0]["labels"]) == set(case["truth"])]
    if differing:
        # a small set fits a screen
        case = min(right or differing, key=lambda case: len(case["sets"][0]["labels"]))
        what = "the best sequence belongs to another set than the most probable one"
    else:
        case, what = record.cases[0], "the best sequence belongs to the most probable set"
    panel = _explanation_panel(record.method, examples[case["document"]], case, what)
    stdout.print(Padding(panel, (1, 0, 0, 0)))


def _explanation_panel(method: str, example: Example, case: Mapping[str, Any], what: str) -> Panel:
    """Lay out a document with its true set, its sequences and their sets."""
    truth = Table.grid(padding=(0, 2))
    truth.add_row("truth", Text(labels_text(sorted(example.labels))))
    sequences = [(each["probability"], each["set"], each["labels"]) for each in case["sequences"]]
    sets = [
        (set_prob(each["probability"], each["is_exact"]), each["name"], each["labels"])
        for each in case["sets"]
    ]
    parts = (
        Text(example.text),
        "",
        truth,
        "",
        sequences_table(sequences, case["sets"][0]["name"]),
        "",
        sets_table(sets),
    )
    return Panel(Group(*parts), title=f"{method} explains {example.id}", subtitle=what)


def _show_what_next(out: Path, page: Path) -> None:
    program = "python -m setrnn" if sys.argv[0].endswith("__main__.py") else sys.argv[0]
    model = shlex.quote(str(out / MODELS / run_name(EXPLAINED, 0)))
    line = json.dumps({"text": "The cup final in ..."})
    note(f"The models are in {out.resolve() / MODELS}. Try one on your own text:")
    note(f"  echo '{line}' > my.jsonl")
    note(f"  {program} predict {model} my.jsonl --out - --top 3")
    note(f"  {program} explain {model} --text 'The cup final in ...' --html why.html")
    note(f"All results, with figures and statistics: {page.resolve()}")
