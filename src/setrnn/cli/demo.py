"""`setrnn demo`: the embedded corpus, start to finish."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from setrnn.cli.console import (
    documents_progress,
    labels_text,
    note,
    scores_table,
    stdout,
    write_json,
)

if TYPE_CHECKING:
    from setrnn.data.example import Example
    from setrnn.tagger import Prediction, Tagger

METHODS = ("br", "br-support", "pcc")
MIN_LABELS_SHOWN = 4
# The first document of each kind is shown.
KINDS = {
    "all": "every system finds the set",
    "some": "here the systems differ",
    "none": "no system finds the set",
}


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write models and results to.")] = Path(
        "demo"
    ),
) -> None:
    """Train and compare systems on newsroom, the embedded corpus of synthetic news."""
    from setrnn.cli.models import train_tagger
    from setrnn.config import Config
    from setrnn.datasets import newsroom
    from setrnn.datasets.cache import Source, open_prepared
    from setrnn.evaluation import evaluate_prepared

    note(newsroom.DESCRIPTION)
    config = Config()
    with documents_progress() as advance:
        prepared = open_prepared(Source("newsroom"), config.text, out / "prepared", advance)
    taggers: dict[str, Tagger] = {}
    results: dict[str, dict[str, Any]] = {}
    for method in METHODS:
        taggers[method] = train_tagger(prepared, method, config)
        taggers[method].save(out / "models" / method)
        results[method] = evaluate_prepared(taggers[method], prepared, "test").as_dict()
    write_json(out / "results.json", {"data": "newsroom (synthetic)", "split": "test", **results})
    stdout.print()
    stdout.print(scores_table("Results on the test part of newsroom (synthetic)", results))
    _show_documents(list(newsroom.examples("test")), taggers)
    note(f"Wrote {out.resolve()}: models/, prepared/ and results.json. Try one on your own text:")
    line = json.dumps({"text": "The cup final in ..."})
    note(f"  echo '{line}' > my.jsonl")
    note(f"  {sys.argv[0]} predict {out}/models/pcc my.jsonl --out - --top 3")


def _show_documents(examples: list[Example], taggers: dict[str, Tagger]) -> None:
    """Show an easy document, one that tells the systems apart, and one that none gets right."""
    found = {
        method: tagger.tag(
            [example.text for example in examples],
            top=3,
            features=[example.features for example in examples],
        )
        for method, tagger in taggers.items()
    }
    for wanted, subtitle in KINDS.items():
        for index, example in enumerate(examples):
            predictions = {method: each[index] for method, each in found.items()}
            is_right = [set(each.labels) == set(example.labels) for each in predictions.values()]
            kind = "all" if all(is_right) else "some" if any(is_right) else "none"
            if kind == wanted and len(example.labels) >= MIN_LABELS_SHOWN:
                panel = _panel(example, predictions, subtitle)
                stdout.print(Padding(panel, (1, 0, 0, 0)))
                break


def _panel(example: Example, predictions: dict[str, Prediction], subtitle: str) -> Panel:
    """Lay out a document with its true set and each system's, with its probability."""
    sets = Table.grid(padding=(0, 2))
    sets.add_row("truth", Text(labels_text(sorted(example.labels))), "")
    for method, prediction in predictions.items():
        is_right = set(prediction.labels) == set(example.labels)
        sets.add_row(
            method,
            Text(labels_text(sorted(prediction.labels))),
            f"p = {prediction.probability:.2f}{' ✓' if is_right else ''}",
            style="green" if is_right else "",
        )
    return Panel(Group(Text(example.text), "", sets), title=example.id, subtitle=subtitle)
