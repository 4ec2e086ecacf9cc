"""`setrnn explain`: show the words, sequences and sets behind one prediction."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich import box
from rich.table import Table
from rich.text import Text

from setrnn.cli.options import Device, JsonFile, Model, Rule, option
from setrnn.cli.progress import load_model
from setrnn.cli.tables import labels_text
from setrnn.cli.terminal import note, stdout, write_json
from setrnn.data.disk import check_file_place, whole_file
from setrnn.errors import ConfigError
from setrnn.report.wording import format_probability

if TYPE_CHECKING:
    from setrnn.tagging.explanation import Explanation, LabelWords, NamedSet, Step

WORDS_FOR, WORDS_AGAINST = 4, 2  # of each label or step
MIN_WEIGHT = 0.1  # of the strongest word of the label or step
NUMBERS = ("", "p")  # columns


def explain(
    model: Model,
    text: Annotated[str, option("The text to explain; - reads standard input.")],
    features: Annotated[
        list[str] | None,
        option("The features of the text, separated by commas; may be repeated.", "A,B"),
    ] = None,
    html: Annotated[Path | None, option("Also write the explanation as an HTML page.")] = None,
    json: JsonFile = None,
    top: Annotated[int, option("How many to list; of sequences, at most the beam width.")] = 12,
    rule: Rule = None,
    label: Annotated[
        list[str] | None,
        option(
            "A label of a set to explain instead of the predicted one; may be repeated.", "LABEL"
        ),
    ] = None,
    no_label: Annotated[
        bool, option("Explain the empty set instead of the predicted one.", None, "--no-label")
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
    """Print the explained set, its words, sequences, sets and steps."""
    predicted = explanation.predicted
    stdout.print()
    stdout.print(
        Text.assemble(
            "The given set " if explanation.is_given else f"{explanation.method} predicts ",
            (labels_text(predicted.labels), "bold green"),
            f": set A below, p {_set_prob(predicted)}",
        )
    )
    if explanation.label_words:
        _print("The words for each label (+) and against it (-).", _label_table(explanation))
    by_member = f", by its member {explanation.member}" if explanation.member else ""
    if explanation.sequences:
        title = (
            f"Its most probable orders{by_member}."
            if explanation.is_given
            else f"The most probable sequences{by_member}; those of the predicted set are bold."
        )
        _print(title, _sequences_table(explanation))
    if not explanation.is_given:
        is_of_sequences = explanation.sequences and not explanation.member
        title = "Their sets" if is_of_sequences else "The most probable sets"
        how = {"set": "the most probable set", "sequence": "the set of the best sequence"}
        by = how.get(str(explanation.rule), f"the best set by rule {explanation.rule}")
        _print(f"{title}; the predicted one is {by}.", _sets_table(explanation))
    if explanation.sequences and not all(each.is_exact for each in explanation.sets):
        text = f"≥ a lower bound: more orders than the beam holds ({explanation.beam_width})"
        stdout.print(Text(text), style="dim")
    if explanation.steps:
        probability = format_probability(explanation.order_probability)
        title = f"The best order of set A{by_member}, p {probability}, step by step."
        _print(title, _step_table(explanation))
    _print("What was read", *(Text(f"- {each}") for each in explanation.reading_notes()))


def _print(title: str, *contents: Table | Text) -> None:
    stdout.print()
    stdout.print(Text(title), style="bold")
    for each in contents:
        stdout.print(each)


def _table(*columns: str) -> Table:
    """Return a table; numbers are to the right and not wrapped."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in columns:
        is_number = name in NUMBERS
        table.add_column(
            name,
            justify="right" if is_number else "center" if name == "set" else "left",
            no_wrap=is_number or name == "set",
            overflow="fold" if name == "words" else "ellipsis",
        )
    return table


def _sequences_table(explanation: Explanation) -> Table:
    """Lay out the sequences; those of the predicted set are bold."""
    table = _table("p", "set", "sequence")
    for each in explanation.sequences:
        style = "bold green" if each.set == explanation.predicted.name else ""
        text = Text(" → ".join(each.labels) or "(no label)")
        table.add_row(format_probability(each.probability), each.set, text, style=style)
    return table


def _sets_table(explanation: Explanation) -> Table:
    """Lay out the sets; the predicted one is first."""
    table = _table("p", "set", "labels")
    for each in explanation.sets:
        style, text = "" if table.rows else "bold green", Text(labels_text(each.labels))
        table.add_row(_set_prob(each), each.name, text, style=style)
    return table


def _label_table(explanation: Explanation) -> Table:
    """Lay out the words for and against each label; labels that are not in the set are dim."""
    table = _table("label", "p", "words")
    for each in explanation.label_words:
        table.add_row(
            Text(each.label + ("" if each.is_in_set else " (left out)")),
            format_probability(each.probability),
            _join_words(explanation, each, "+.2f"),
            style="" if each.is_in_set else "dim",
        )
    return table


def _step_table(explanation: Explanation) -> Table:
    table = _table("", "label", "p", "words attended to, with their shares")
    for number, each in enumerate(explanation.steps, 1):
        name = Text("STOP", "dim") if each.label is None else Text(each.label)
        words = _join_words(explanation, each, ".2f")
        table.add_row(str(number), name, format_probability(each.probability), words)
    return table


def _join_words(explanation: Explanation, row: LabelWords | Step, number: str) -> Text:
    """Join words with how often they were read, what they are and their weights."""
    words = explanation.strongest(row, WORDS_FOR, WORDS_AGAINST, MIN_WEIGHT)
    if not words:
        return Text("(no word stands out)", "dim")
    parts = [
        Text.assemble(
            word.text + (f" x{word.n_times}" if word.n_times > 1 else ""),
            (f" ({word.remark})" if word.remark else "", "dim"),
            (f" {word.weight:{number}}", "cyan"),
        )
        for word in words
    ]
    return Text(" · ").join(parts)


def _set_prob(found: NamedSet) -> str:
    """Write the probability of a set, which is a lower bound unless it is exact."""
    return ("" if found.is_exact else "≥ ") + format_probability(found.probability)
