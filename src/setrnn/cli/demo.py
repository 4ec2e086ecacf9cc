"""`setrnn demo`: the embedded corpus, start to finish."""

from __future__ import annotations

import json
import shlex
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
from setrnn.cli.explain import sequences_table, sets_table

if TYPE_CHECKING:
    from setrnn.data.example import Example
    from setrnn.explanation import Explanation
    from setrnn.prediction import Prediction
    from setrnn.tagger import Tagger

METHODS = ("br", "br-support", "pcc", "seq2seq-rnn", "set-rnn")
EXPLAINED = "set-rnn"
# A small network that two cores train in a minute or two; chosen on the valid part of newsroom.
SETTINGS = {
    "vectors.dimensions": 100,
    "model.encoder_units": 96,
    "model.decoder_units": 96,
    "model.decoder_layers": 1,
    "model.dropout": 0.2,
    "model.word_dropout": 0.0,
    "search.beam_width": 6,
    "training.epochs": 8,
    "training.batch_size": 64,
    "training.learning_rate": 4e-3,
}
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
    """Train and compare systems on newsroom, the embedded corpus of synthetic news.

    Three classical systems and two recurrent ones, small enough for two cores and two minutes.
    """
    import torch

    from setrnn.cli.train import train_tagger
    from setrnn.config import load_config
    from setrnn.datasets import newsroom
    from setrnn.datasets.cache import Source, open_prepared
    from setrnn.evaluation import evaluate_prepared

    # Where other work shares the cores, several threads mostly wait for each other.
    torch.set_num_threads(1)
    note(newsroom.DESCRIPTION)
    config = load_config(overrides=[f"{name}={value}" for name, value in SETTINGS.items()])
    with documents_progress() as advance:
        prepared = open_prepared(Source("newsroom"), config.text, out / "prepared", advance)
    taggers: dict[str, Tagger] = {}
    results: dict[str, dict[str, Any]] = {}
    for number, method in enumerate(METHODS, 1):
        note(f"System {number} of {len(METHODS)}: {method}")
        taggers[method] = train_tagger(prepared, method, config)
        taggers[method].save(out / "models" / method)
        results[method] = evaluate_prepared(taggers[method], prepared, "test").as_dict()
    about = {"data": "newsroom (synthetic)", "split": "test", "settings": SETTINGS}
    write_json(out / "results.json", {**about, **results})
    stdout.print()
    stdout.print(scores_table("Results on the test part of newsroom (synthetic)", results))
    stdout.print("One run each, 600 documents: a difference of .01 may be chance.", style="dim")
    examples = list(newsroom.examples("test"))
    _show_documents(examples, taggers)
    _show_explanation(examples, taggers[EXPLAINED])
    _show_what_next(out)


def _show_documents(examples: list[Example], taggers: dict[str, Tagger]) -> None:
    """Show an easy document, one that tells the systems apart, and one that none gets right."""
    found = {method: _tag(tagger, examples) for method, tagger in taggers.items()}
    for wanted, subtitle in KINDS.items():
        for index, example in enumerate(examples):
            predictions = {method: each[index] for method, each in found.items()}
            is_right = [_is_right(each, example) for each in predictions.values()]
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
        is_right = _is_right(prediction, example)
        sets.add_row(
            method,
            Text(labels_text(sorted(prediction.labels))),
            f"p = {prediction.probability:.2f}{' ✓' if is_right else ''}",
            style="green" if is_right else "",
        )
    return Panel(Group(Text(example.text), "", sets), title=example.id, subtitle=subtitle)


def _show_explanation(examples: list[Example], tagger: Tagger) -> None:
    """Show the sequences and sets of a document whose best sequence is not of its best set."""
    by_set, by_sequence = _tag(tagger, examples, "set"), _tag(tagger, examples, "sequence")
    pairs = list(zip(by_set, by_sequence, strict=True))
    differing = [row for row, (one, other) in enumerate(pairs) if one.labels != other.labels]
    right = [row for row in differing if _is_right(by_set[row], examples[row])]
    if differing:
        row = min(right or differing, key=lambda row: len(by_set[row].labels))  # fits a screen
        what = "the best sequence belongs to another set than the most probable one"
    else:
        row, what = 0, "the best sequence belongs to the most probable set"
    example = examples[row]
    explanation = tagger.explain(example.text, example.features)
    stdout.print(Padding(_explanation_panel(example, explanation, what), (1, 0, 0, 0)))


def _explanation_panel(example: Example, explanation: Explanation, what: str) -> Panel:
    """Lay out a document with its true set, its sequences and their sets."""
    truth = Table.grid(padding=(0, 2))
    truth.add_row("truth", Text(labels_text(sorted(example.labels))))
    parts = (
        Text(example.text),
        "",
        truth,
        "",
        sequences_table(explanation),
        "",
        sets_table(explanation),
    )
    title = f"{explanation.method} explains {example.id}"
    return Panel(Group(*parts), title=title, subtitle=what)


def _show_what_next(out: Path) -> None:
    note(f"Wrote {out.resolve()}: models/, prepared/ and results.json. Try one on your own text:")
    program = "python -m setrnn" if sys.argv[0].endswith("__main__.py") else sys.argv[0]
    model = shlex.quote(str(out / "models" / EXPLAINED))
    line = json.dumps({"text": "The cup final in ..."})
    note(f"  echo '{line}' > my.jsonl")
    note(f"  {program} predict {model} my.jsonl --out - --top 3")
    note(f"  {program} explain {model} --text 'The cup final in ...' --html why.html")


def _tag(tagger: Tagger, examples: list[Example], rule: str | None = None) -> list[Prediction]:
    texts = [example.text for example in examples]
    return tagger.tag(texts, rule, features=[example.features for example in examples])


def _is_right(prediction: Prediction, example: Example) -> bool:
    return set(prediction.labels) == set(example.labels)
