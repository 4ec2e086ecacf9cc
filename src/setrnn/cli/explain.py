"""`setrnn explain`: show the words, sequences and sets behind one prediction."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

import setrnn
from setrnn.cli import options
from setrnn.cli.options import new_file, option
from setrnn.cli.tables import Row, labels_text, show_table
from setrnn.cli.terminal import note, show, stdout, write_json
from setrnn.data.disk import whole_file
from setrnn.errors import ConfigError
from setrnn.report.wording import format_probability

if TYPE_CHECKING:
    from setrnn.tagging.explanation import Explanation, LabelWords, NamedSet, Step

WORDS_FOR, WORDS_AGAINST = 4, 2  # of each label or step
MIN_WEIGHT = 0.1  # of the strongest word of the label or step


def explain(
    model: options.Model,
    limits: options.LimitOptions,
    text: Annotated[str, option("The text to explain; - reads standard input.")],
    features: Annotated[
        list[str] | None,
        option("The features of the text, separated by commas. May be repeated.", "A,B"),
    ] = None,
    html: Annotated[Path | None, new_file("Also write the explanation to this HTML page.")] = None,
    json: options.JsonFile = None,
    top: Annotated[int, option("How many sets and how many sequences to list at most.")] = 12,
    rule: options.Rule = None,
    label: Annotated[
        list[str] | None,
        option(
            "A label of the set to explain, if not the predicted set. May be repeated.",
            "LABEL",
        ),
    ] = None,
    no_label: Annotated[bool, option("Explain the empty set.")] = False,
    device: options.Device = "auto",
) -> None:
    """Explain how a model tags a text, or how it scores a given set.

    Shows the words for and against each label, and the most probable sets. If the model emits
    labels one by one, also shows the sequences of labels and the words attended to at each step.
    """
    if label and no_label:
        raise ConfigError("--no-label means the empty set. Omit it, or omit --label.")
    names = [name.strip() for each in features or [] for name in each.split(",") if name.strip()]
    tagger = setrnn.load(model, device)
    content = sys.stdin.read() if text == "-" else text
    given = [] if no_label else label or None
    explanation = tagger.explain(content, names, top, rule, given, limits.limits())
    if html is not None:
        from setrnn.report.html import render_explanation

        with whole_file(html) as file:
            file.write(render_explanation(explanation).encode())
    if json is not None:
        write_json(json, explanation.to_dict())
    _show(explanation)
    for place in filter(None, (html, json)):
        note(f"Wrote {place}")


def _show(explanation: Explanation) -> None:
    """Print the explained set, its words, sequences, sets and steps."""
    predicted = explanation.predicted
    stdout.print(
        Text.assemble(
            "The given set " if explanation.is_given else f"{explanation.method} predicts ",
            (labels_text(predicted.labels), "bold green"),
            f": set A below, p {_set_prob(predicted)}",
        )
    )
    if explanation.label_words:
        labels = [
            (Text(each.label) if each.is_in_set else Text(f"{each.label} (left out)", "dim"), each)
            for each in explanation.label_words
        ]
        title = "The words for each label (+) and against it (-)."
        show_words(explanation, title, labels, "+.2f")
    if explanation.left_out:
        show(explanation.left_out)
    if explanation.sequences:
        _show_sequences(explanation)
    if not explanation.is_given:
        _show_sets(explanation)
    if explanation.sequences and explanation.has_bounds:
        show(f"≥ a lower bound: more orders than the beam holds ({explanation.beam_width})")
    if explanation.steps:
        steps = [
            (Text("STOP", "dim") if each.label is None else Text(each.label), each)
            for each in explanation.steps
        ]
        order = f"The best order of set A{explanation.by_member}"
        probability = format_probability(explanation.order_probability)
        title = f"{order}, p {probability}: the words attended to."
        show_words(explanation, title, steps, ".2f")
    stdout.print(Text("\nWhat was read", "bold"))
    for each in explanation.reading_notes():
        show(f"- {each}")


def show_words(
    explanation: Explanation,
    title: str,
    named: Sequence[tuple[Text, LabelWords | Step]],
    number: str,
) -> None:
    """Print the strongest words of labels or steps, with their weights in a format."""
    rows: list[Row] = [
        [name, format_probability(each.probability), _join_words(explanation, each, number)]
        for name, each in named
    ]
    show_table(title, ["label", "p", "words"], rows, words=["words"])


def _show_sequences(explanation: Explanation) -> None:
    """Print the sequences; those of the predicted set are bold."""
    title = "The most probable sequences{}; those of the predicted set are bold."
    if explanation.is_given:
        title = "Its most probable orders{}."
    rows: list[Row] = []
    for each in explanation.sequences:
        style = "bold green" if each.set == explanation.predicted.name else ""
        sequence = Text(" → ".join(each.labels) or "(no label)", style)
        rows.append([each.set, format_probability(each.probability), sequence])
    title = title.format(explanation.by_member)
    show_table(title, ["set", "p", "sequence"], rows, words=["sequence"])


def _show_sets(explanation: Explanation) -> None:
    """Print the sets; the predicted one is first."""
    is_of_sequences = explanation.sequences and not explanation.member
    title = "Their sets" if is_of_sequences else "The most probable sets"
    rows: list[Row] = []
    for each in explanation.sets:
        style = "" if rows else "bold green"
        rows.append([each.name, _set_prob(each), Text(labels_text(each.labels), style)])
    title = f"{title}; the predicted one is {explanation.chosen_by}."
    show_table(title, ["set", "p", "labels"], rows, words=["labels"])


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
