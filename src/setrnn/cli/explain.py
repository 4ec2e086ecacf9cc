"""`setrnn explain`: show the words, sequences and sets behind one prediction."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from setrnn.cli.console import labels_text, note, stdout, write_json
from setrnn.cli.options import Device, JsonFile, Model, Rule
from setrnn.cli.progress import load_model
from setrnn.data.folders import check_file_place, whole_file
from setrnn.errors import ConfigError

if TYPE_CHECKING:
    from setrnn.tagging.explanation import Explanation, LinearScore, WeightedWord

WORDS_SHOWN, LEAST_SHARE = 4, 0.005  # of the attention of each step
WORDS_FOR, WORDS_AGAINST = 4, 2  # of each label
LEAST_WEIGHT = 0.1  # of the strongest word of the label
SCORE_HINT = "score (log-odds) = bias + what all words, pairs and earlier labels add"


def explain(
    model: Model,
    text: Annotated[str, typer.Option(help="The text to explain; - reads standard input.")],
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B", help="The features of the text, separated by commas; may be repeated."
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Also write the explanation as an HTML page.", show_default=False),
    ] = None,
    json: JsonFile = None,
    top: Annotated[
        int, typer.Option(help="How many to list; of sequences, at most the beam width.")
    ] = 12,
    rule: Rule = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL",
            help="A label of a set to explain instead of the predicted one; may be repeated.",
        ),
    ] = None,
    no_label: Annotated[
        bool, typer.Option("--no-label", help="Explain the empty set instead of the predicted one.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Explain how a model tags a text, or how it scores a given set.

    Shows the words for each label and against it, and the most probable
    sets. If the model emits labels one by one, also shows the sequences
    of labels and the words attended to at each step.
    """
    if label and no_label:
        raise ConfigError("--no-label means the empty set. Omit it, or omit --label.")
    for place in filter(None, (html, json)):
        check_file_place(place)
    names = [name.strip() for each in features or [] for name in each.split(",") if name.strip()]
    tagger = load_model(model, device)
    content = sys.stdin.read() if text == "-" else text
    given = [] if no_label else label or None
    explanation = tagger.explain(content, names, top, rule, given)
    if html is not None:
        from setrnn.report.explanation_page import render_page

        with whole_file(html) as file:
            file.write(render_page(explanation).encode())
    if json is not None:
        write_json(json, explanation.to_dict())
    _show(explanation)
    for place in filter(None, (html, json)):
        note(f"Wrote {place}")


def _show(explanation: Explanation) -> None:
    predicted = explanation.predicted
    stdout.print()
    stdout.print(
        Text.assemble(
            "The given set " if explanation.is_given else f"{explanation.method} predicts ",
            (labels_text(predicted.labels), "bold green"),
            f": set A below, p {set_prob(predicted.probability, predicted.is_exact)}",
            f" by its member {explanation.member}" if explanation.member else "",
        )
    )
    if explanation.label_words:
        _print("The words for each label (+) and against it (-).")
        stdout.print(_label_words(explanation))
        if explanation.has_scores:
            stdout.print(Text(SCORE_HINT), style="dim")
    if explanation.sequences:
        _show_sequences(explanation)
    else:
        _show_sets(explanation, "The most probable sets")
    if explanation.steps:
        _print(f"The best order of set A, p {_prob(explanation.order_probability)}, step by step.")
        stdout.print(_steps(explanation))
    _print("What was read")
    for each in explanation.reading_notes():
        stdout.print(Text(f"- {each}"))


def _show_sequences(explanation: Explanation) -> None:
    rows = [(each.probability, each.set_name, each.labels) for each in explanation.sequences]
    if explanation.is_given:
        _print("Its most probable orders.")
    else:
        _print("The most probable sequences; those of the predicted set are bold.")
    stdout.print(sequences_table(rows, explanation.predicted.name))
    _show_sets(explanation, "Their sets")
    if not all(each.is_exact for each in explanation.sets):
        stdout.print(
            Text(f"≥ a lower bound: more orders than the beam holds ({explanation.beam_width})"),
            style="dim",
        )


def _show_sets(explanation: Explanation, title: str) -> None:
    if explanation.rule is None:
        return
    how = {"set": "the most probable set", "sequence": "the set of the best sequence"}
    chosen_by = how.get(explanation.rule, f"the best set by rule {explanation.rule}")
    _print(f"{title}; the predicted one is {chosen_by}.")
    stdout.print(
        sets_table(
            (set_prob(each.probability, each.is_exact), each.name, each.labels)
            for each in explanation.sets
        )
    )


def _print(title: str) -> None:
    stdout.print()
    stdout.print(Text(title), style="bold")


def sequences_table(rows: Iterable[tuple[float, str, Sequence[str]]], predicted: str) -> Table:
    """Lay out sequences, each with its probability, the name of its set and its labels.

    Those of the predicted set are bold.
    """
    table = _scored_table("sequence")
    for probability, name, labels in rows:
        style = "bold green" if name == predicted else ""
        table.add_row(
            _prob(probability), name, Text(" → ".join(labels) or "(no label)"), style=style
        )
    return table


def sets_table(rows: Iterable[tuple[str, str, Sequence[str]]]) -> Table:
    """Lay out sets, each with its probability, name and labels; the predicted one is first."""
    table = _scored_table("labels")
    for probability, name, labels in rows:
        style = "" if table.rows else "bold green"
        table.add_row(probability, name, Text(labels_text(labels)), style=style)
    return table


def _scored_table(what: str) -> Table:
    table = _table()
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("set", justify="center", no_wrap=True)
    table.add_column(what)
    return table


def _label_words(explanation: Explanation) -> Table:
    """Lay out the words for and against each label; labels that are not in the set are dim."""
    table = _table()
    table.add_column("label")
    table.add_column("p", justify="right", no_wrap=True)
    has_scores = explanation.has_scores
    for name in ("score", "bias") if has_scores else ():
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("words", overflow="fold")
    for each in explanation.label_words:
        found = [
            *explanation.words_for(each, WORDS_FOR),
            *explanation.words_against(each, WORDS_AGAINST),
        ]
        least = LEAST_WEIGHT * max((abs(word.weight) for word in found), default=0.0)
        words = [_word(word, "+.2f") for word in found if abs(word.weight) >= max(least, 0.005)]
        label = Text(each.label) if each.is_in_set else Text.assemble(each.label, " (left out)")
        table.add_row(
            label,
            _prob(each.probability),
            *_score(each.score) if has_scores else (),
            Text(" · ").join(words) if words else Text("(no word stands out)", "dim"),
            style="" if each.is_in_set else "dim",
        )
    return table


def _score(score: LinearScore | None) -> tuple[str, str]:
    return ("", "") if score is None else (f"{score.total:+.2f}", f"{score.bias:+.2f}")


def _steps(explanation: Explanation) -> Table:
    table = _table()
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("label")
    table.add_column("p", justify="right", no_wrap=True)
    table.add_column("words attended to, with their shares")
    for number, step in enumerate(explanation.steps, 1):
        attended = explanation.attended(step, WORDS_SHOWN)
        words = [_word(each, ".2f") for each in attended if each.weight >= LEAST_SHARE]
        table.add_row(
            str(number),
            Text("STOP" if step.label is None else step.label, "dim" if step.label is None else ""),
            _prob(step.probability),
            Text(" · ").join(words) if attended else Text("(no words)", "dim"),
        )
    return table


def _word(word: WeightedWord, number: str) -> Text:
    times = f" x{word.n_times}" if word.n_times > 1 else ""
    kind = f" ({word.remark})" if word.remark else ""
    return Text.assemble(f"{word.text}{times}", (kind, "dim"), (f" {word.weight:{number}}", "cyan"))


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)


def set_prob(probability: float, is_exact: bool) -> str:
    """Write the probability of a set, which is a lower bound unless it is exact."""
    return ("" if is_exact else "≥ ") + _prob(probability)


def _prob(probability: float) -> str:
    return f"{probability:.4f}" if probability >= 0.001 else f"{probability:.1e}"
