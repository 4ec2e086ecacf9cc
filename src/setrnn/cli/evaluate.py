"""`setrnn evaluate`: measure a model on documents whose labels are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

import setrnn
from setrnn.cli.console import hierarchical_table, scores_table, stdout, warn, write_json
from setrnn.cli.options import (
    AllowTrainingDocuments,
    BeamWidth,
    Data,
    Device,
    JsonFile,
    Model,
    Rule,
    TreeReading,
    with_reading,
)
from setrnn.cli.predict import LimitOptions, with_limits
from setrnn.cli.progress import load_model, terminal_progress
from setrnn.data.disk import check_file_place
from setrnn.errors import printable
from setrnn.metrics import MEASURES
from setrnn.models.hub import name_place

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from setrnn.tagging.evaluate import AcceptedScores, Evaluation, LabelScores


@with_reading
@with_limits
def evaluate(
    model: Model,
    data: Data,
    reading: TreeReading,
    limits: LimitOptions,
    rule: Rule = None,
    split: Annotated[
        str | None,
        typer.Option(
            "--split", help="The part of DATA to measure on.", show_default="test, or the only one"
        ),
    ] = None,
    labels: Annotated[
        int,
        typer.Option(
            "--labels", min=0, help="How many labels to show, the most frequent first; 0 for none."
        ),
    ] = 10,
    json: JsonFile = None,
    device: Device = "auto",
    beam_width: BeamWidth = None,
    allow_training_documents: AllowTrainingDocuments = False,
) -> None:
    """Measure a model on documents whose labels are known.

    Without --rule, the first table compares all prediction rules; the rest is by the model's own.
    The table says if the model was trained on the documents.
    """
    from setrnn.tagging.documents import find_hierarchy  # it loads torch: the help needs none

    if json is not None:
        check_file_place(json)
    wanted = limits.limits()
    tagger = load_model(model, device)
    if beam_width is not None:
        tagger = tagger.with_beam_width(beam_width)
    own = tagger.rule_or_own(rule)
    rules = tagger.rules if rule is None else [own]
    tagger.known_limits(wanted)
    source = reading.source(data)
    documents = setrnn.open_documents(source, split)
    with terminal_progress() as show:
        found = setrnn.evaluate_rules(
            tagger,
            documents,
            rules,
            limits=wanted,
            hierarchy=find_hierarchy(source),
            allow_training_documents=allow_training_documents,
            on_progress=show,
        )
    evaluation = found[own]
    values = {
        "model": name_place(model),
        "method": tagger.method,
        "data": str(source),
        "split": documents.split,
        **evaluation.as_dict(),
        "labels": [each.as_dict() for each in evaluation.labels],
        "rules": {name: each.as_dict() for name, each in found.items()},
    }
    are_files = all(Path(place).is_file() for place in source.places)
    where = str(source) if are_files else f"{documents.split} of {source}"
    stdout.print(
        f"{name_place(model)} ({tagger.method}), rule {evaluation.rule}, on {where}: "
        f"{evaluation.scores.n_documents:,} documents",
        markup=False,
        highlight=False,
        soft_wrap=True,  # a table would wrap a long path to its own width
    )
    name = name_place(model)
    table = _rules_table(found, own) if rule is None else scores_table("", {name: values})
    if evaluation.is_seen and not allow_training_documents:
        _mark_seen(table, evaluation.share_trained_on)
    stdout.print(table)
    if rule is None:
        for text in filter(None, (_describe_rules(list(found), own), _describe_missing(found))):
            stdout.print(text, highlight=False, markup=False, soft_wrap=True)
    if evaluation.hierarchical is not None:
        names = [own, *(each for each in found if each != own)]
        stdout.print(hierarchical_table({name: found[name].as_dict() for name in names}))
    stdout.print(_ranking_table(values))
    for describe in (_describe_probabilities, _describe_calibration, _describe_labels):
        stdout.print(describe(evaluation), highlight=False, soft_wrap=True)
    if evaluation.accepted is not None:
        assert tagger.calibration is not None
        target = tagger.calibration.acceptance[evaluation.rule].target
        stdout.print(_accepted_table(evaluation.accepted, target))
        if evaluation.accepted.accuracy_accepted_high < target and evaluation.accepted.n_accepted:
            warn(
                f"Fewer accepted predictions are right than the target {target:g} says. Were the "
                "documents of the calibration like these, and not trained on? Calibrate again: "
                "setrnn calibrate"
            )
    if labels and evaluation.labels:
        stdout.print(_labels_table(evaluation.labels, labels))
    if evaluation.scores.n_unseen_labels:
        warn(
            f"{evaluation.scores.n_unseen_labels:,} labels that the model never saw occur "
            f"{evaluation.scores.n_unseen_label_occurrences:,} times: each counts as missed."
        )
    if json is not None:
        write_json(json, values)


def _rules_table(found: Mapping[str, Evaluation], own: str) -> Table:
    """Show the measures by each rule, the model's own first; the best of each column is bold."""
    names = [own, *(name for name in found if name != own)]
    rows = {
        f"{name} (own)" if name == own else name: found[name].scores.as_dict() for name in names
    }
    return scores_table("The measures by each prediction rule", rows)


def _mark_seen(table: Table, share: float) -> None:
    """Say in the table itself that its measures are too good."""
    table.caption = (
        f"NOT ON NEW DOCUMENTS: the model was trained on about {share:.0%} of these. It will do "
        "worse on others."
    )
    table.caption_style, table.caption_justify = "bold yellow", "left"


def _describe_rules(names: Sequence[str], own: str) -> str:
    """Describe in one sentence which rule is for what, and how to choose another."""
    from setrnn.systems.rules import RULES  # it loads scipy, which the help does not need

    ways = [
        f"{name} for {MEASURES[measure]} ({RULES[name].purpose})"
        if (measure := RULES[name].measure)
        else f"{name} for {RULES[name].purpose or 'nothing that is measured here'}"
        for name in names
    ]
    return (
        f"Which rule is for what: {', '.join(ways)}. The model predicts by {own}; --rule chooses "
        "another, and train --measure another default."
    )


def _describe_missing(names: Collection[str]) -> str:
    """Say in one line which rules are not shown, and why."""
    from setrnn.systems.rules import RULES
    from setrnn.tagging.trust.saved import MIN_DOCUMENTS

    missing = [name for name, rule in RULES.items() if rule.needs_thresholds and name not in names]
    return (
        f"Not shown: {' and '.join(missing)} need a calibration, for their thresholds. This model "
        f"has none: train makes one if the valid part has {MIN_DOCUMENTS} documents or more, and "
        "so does setrnn calibrate."
        if missing
        else ""
    )


def _ranking_table(values: dict[str, object]) -> Table:
    table = Table(title="Labels ranked by probability", title_justify="left")
    names = [name for name in values if name.startswith(("precision@", "ndcg@"))]
    for name in names:
        table.add_column(name.replace("ndcg", "nDCG"), justify="right")
    table.add_row(*(f"{values[name]:.3f}" for name in names))
    return table


def _describe_probabilities(evaluation: Evaluation) -> str:
    """Describe in one line how probable the true sets are, and what the search did not find."""
    found, sentences = evaluation.set_log_likelihood, []
    if found.mean is not None:
        floor = f" ({found.n_impossible_sets:,} below 1e-12)" if found.n_impossible_sets else ""
        sentences.append(f"Mean log p(true set) {found.mean:.3f}{floor}.")
    sentences.append(f"Sets not found have {evaluation.missing_mass:.1%} of the probability.")
    if evaluation.certificates is not None:
        proved, pruned = evaluation.certificates.share_proved, evaluation.certificates.pruned_mass
        sentences.append(
            f"{proved:.1%} of the predictions are proved; the search pruned {pruned:.1%} of the "
            "probability."
        )
    return " ".join(sentences)


def _describe_calibration(evaluation: Evaluation) -> str:
    """Describe in one line how far the probabilities are from the accuracy."""
    return (
        f"Mean probability of the predicted sets {evaluation.mean_probability:.3f}; expected "
        f"calibration error {evaluation.calibration_error:.3f} "
        f"({evaluation.calibration_error_raw:.3f} with the model's own probabilities)."
    )


def _describe_labels(evaluation: Evaluation) -> str:
    """Describe in one line how far the probabilities of labels can be trusted."""
    found = evaluation.label_probabilities
    sure = (
        ""
        if found.sure_labels_right is None
        else f" Of the {found.n_sure_labels:,} at 0.95 or more, {found.sure_labels_right:.3f} are "
        "right."
    )
    return (
        f"Label probabilities above 0.05: expected calibration error "
        f"{found.label_calibration_error:.3f} ({found.label_calibration_error_raw:.3f} with the "
        f"model's own).{sure}"
    )


def _labels_table(labels: Sequence[LabelScores], n_shown: int) -> Table:
    """Show the most frequent labels, and what they are accepted from."""
    shown = labels[:n_shown]
    title = f"The {len(shown)} most frequent of {len(labels):,} labels"
    table = Table(title=title, title_justify="left")
    table.add_column("label", overflow="fold")
    with_accepted = any(each.accepted_share is not None for each in labels)
    columns = ["support", "precision", "recall", "F1"]
    for column in [*columns, *(["accepted\nfrom", "accepted\nshare"] if with_accepted else [])]:
        table.add_column(column, justify="right")

    def cell(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    for each in shown:
        cells = [f"{each.support:,}", cell(each.precision), cell(each.recall), cell(each.f1)]
        if with_accepted:
            cells += [cell(each.threshold), cell(each.accepted_share)]
        table.add_row(escape(printable(each.label)), *cells)
    return table


def _accepted_table(accepted: AcceptedScores, target: float) -> Table:
    table = Table(title="Accepted predictions", title_justify="left")
    for column in ("documents", "share", "accuracy", "95% interval", "target"):
        table.add_column(column, justify="right")
    accuracy = accepted.accuracy_accepted
    low, high = accepted.accuracy_accepted_low, accepted.accuracy_accepted_high
    table.add_row(
        f"{accepted.n_accepted:,}",
        f"{accepted.share_accepted:.1%}",
        "-" if accuracy is None else f"{accuracy:.3f}",
        "-" if accuracy is None else f"{low:.3f} to {high:.3f}",
        f"{target:g}",
    )
    return table
