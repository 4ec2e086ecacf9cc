"""`setrnn evaluate`: measure a model on documents whose labels are known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import setrnn
from setrnn.cli import options
from setrnn.cli.options import option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import show_measures, show_table
from setrnn.cli.terminal import note, show, warn, write_json
from setrnn.data.hierarchy import HIERARCHICAL_MEASURES
from setrnn.data.read import read_thresholds
from setrnn.errors import printable
from setrnn.metrics import MEASURES
from setrnn.models.hub import name_place

if TYPE_CHECKING:
    from setrnn.tagging.evaluate import AcceptedScores, Evaluation, LabelScores


def evaluate(
    model: options.Model,
    data: options.Data,
    reading: options.TreeReading,
    limits: options.LimitOptions,
    rule: options.Rule = None,
    thresholds: options.Thresholds = None,
    split: options.TestPart = None,
    labels: Annotated[int, option("How many of the most frequent labels to show.", min=0)] = 10,
    details: Annotated[
        bool,
        option("Also show the measures by each rule, of each label, and of the probabilities."),
    ] = False,
    json: options.JsonFile = None,
    device: options.Device = "auto",
    beam_width: options.BeamWidth = None,
    allow_training_documents: options.AllowTrainingDocuments = False,
) -> None:
    """Measure a model on documents whose labels are known.

    Predictions are by the model's own rule, or by --rule. The table shows the most frequent labels:
    where they are accepted, and how often that was right. Without --rule, --details compares all
    prediction rules.
    """
    tagger = setrnn.load(model, device)
    if beam_width is not None:
        tagger = tagger.with_beam_width(beam_width)
    if thresholds is not None:
        tagger = tagger.with_thresholds(read_thresholds(thresholds, reading.encoding))
    rule = options.rule_of(thresholds, rule)
    own = tagger.rule_or_own(rule)
    source = reading.source(data, model=model)
    documents = setrnn.open_documents(source, split)
    with terminal_progress() as on_progress:
        found = setrnn.evaluate_rules(
            tagger,
            documents,
            None if rule is None else [rule],
            limits=limits.limits(),
            allow_training_documents=allow_training_documents,
            on_progress=on_progress,
        )
    evaluation, name = found[own], name_place(model)
    are_files = all(Path(place).is_file() for place in source.places)
    where = str(source) if are_files else f"{documents.split} of {source}"
    show(f"{name} ({tagger.method}), on {where}: {evaluation.scores.n_documents:,} documents")
    if evaluation.is_seen and not allow_training_documents:
        show(
            f"NOT ON NEW DOCUMENTS: the model was trained on about "
            f"{evaluation.share_trained_on:.0%} of these. It will do worse on others."
        )
    show(f"{evaluation.scores.describe()} (Predicted by rule {own}.)")
    if evaluation.accepted is not None:
        show_accepted(evaluation.accepted, tagger.fitted.acceptance[own].target)
    if evaluation.shown_recall is not None:
        show(
            f"Shown beside each prediction: {evaluation.n_shown:.1f} labels per document, which "
            f"have {evaluation.shown_recall:.3f} of the true labels."
        )
    if labels and evaluation.labels:
        _show_labels(evaluation.labels, labels, details)
    if details:
        _show_rules(found, own)
        if rule is None:
            show(_describe_rules(found, own))
        show(_describe_probabilities(evaluation))
    else:
        note("The measures by each rule, of each label and of the probabilities: --details")
    if evaluation.scores.n_unseen_labels:
        warn(
            f"{evaluation.scores.n_unseen_labels:,} labels that the model never saw occur "
            f"{evaluation.scores.n_unseen_label_occurrences:,} times: each counts as missed."
        )
    if json is not None:
        values = {
            "model": name,
            "method": tagger.method,
            "data": str(source),
            "split": documents.split,
            **evaluation.as_dict(),
            "labels": list(map(asdict, evaluation.labels)),
            "rules": {name: each.as_dict() for name, each in found.items()},
        }
        write_json(json, values)


def _show_rules(found: Mapping[str, Evaluation], own: str) -> None:
    """Print the measures by each rule; the model's own rule comes first."""
    rows = {f"{own} (own)": found[own].as_dict()}
    rows |= {rule: each.as_dict() for rule, each in found.items() if rule != own}
    show_measures("The measures by each prediction rule", rows)
    if found[own].hierarchical is not None:
        show_measures("With the labels above, in the hierarchy", rows, HIERARCHICAL_MEASURES)


def show_accepted(accepted: AcceptedScores, target: float) -> None:
    """Print how many predictions are accepted; warn if fewer of them are right than promised."""
    text = f"Accepted predictions: {accepted.n_accepted:,} ({accepted.share_accepted:.1%})"
    low, high = accepted.accuracy_accepted_low, accepted.accuracy_accepted_high
    if accepted.accuracy_accepted is not None:
        text += f", of which {accepted.accuracy_accepted:.3f} are right"
        text += f" (95% interval {low:.3f} to {high:.3f}; target {target:g})"
    show(f"{text}.")
    if accepted.n_accepted and high < target:
        warn(
            f"Fewer accepted predictions are right than the target {target:g} says. Were the "
            "documents of the calibration like these, and not trained on? Calibrate again: "
            "setrnn calibrate"
        )


def _describe_rules(names: Collection[str], own: str) -> str:
    """Describe which rule is for what, how to choose another, and which are missing and why."""
    from setrnn.systems.rules import RULES  # it loads scipy, which the help does not need
    from setrnn.tagging.trust.calibrate import MIN_DOCUMENTS

    ways = [
        f"{name} for {MEASURES.get(RULES[name].measure or '', RULES[name].purpose)}"
        for name in names
    ]
    text = (
        f"Which rule is for what: {', '.join(ways)}. The model predicts by {own}, among the sets "
        "that it finds plausible (any set: --free); --rule chooses another, and train --measure "
        "another default."
    )
    missing = [name for name, rule in RULES.items() if rule.needs_thresholds and name not in names]
    if missing:
        text += (
            f"\nNot shown: {' and '.join(missing)} need the thresholds of a calibration. train "
            f"makes one if the valid part has {MIN_DOCUMENTS} documents or more, and so does "
            "setrnn calibrate."
        )
    return text


def _describe_probabilities(evaluation: Evaluation) -> str:
    """Describe how probable the true sets are, and how far probabilities are from accuracy."""
    text = f"Sets not found have {evaluation.missing_mass:.1%} of the probability."
    if evaluation.set_log_likelihood is not None:
        n = evaluation.n_impossible_sets
        below = f" ({n:,} below 1e-12)" if n else ""
        text = f"Mean log p(true set) {evaluation.set_log_likelihood:.3f}{below}. {text}"
    return (
        f"{text}\nMean probability of the predicted sets {evaluation.mean_probability:.3f}; "
        f"expected calibration error {evaluation.calibration_error:.3f}, of labels "
        f"{evaluation.label_calibration_error:.3f} (with the model's own probabilities "
        f"{evaluation.calibration_error_raw:.3f} and {evaluation.label_calibration_error_raw:.3f})."
    )


def _show_labels(labels: Sequence[LabelScores], n_shown: int, has_details: bool) -> None:
    """Print where the most frequent labels are accepted, and how often that was right.

    With details, or in a model that accepts no labels, print their measures.
    """
    shown = labels[:n_shown]

    def write(values: Iterable[float | None]) -> list[str]:
        return ["-" if value is None else f"{value:.3f}" for value in values]

    columns = {
        "label": [printable(each.label) for each in shown],
        "documents": [f"{each.support:,}" for each in shown],
    }
    if has_accepted := any(each.n_accepted is not None for each in labels):
        columns["proposed"] = [f"{each.n_predicted:,}" for each in shown]
        columns["accepted"] = [f"{each.n_accepted or 0:,}" for each in shown]
        columns["of these\nright"] = write(each.accepted_accuracy for each in shown)
        columns["accepted\nfrom"] = write(each.threshold for each in shown)
    if has_details or not has_accepted:
        columns["precision"] = write(each.precision for each in shown)
        columns["recall"] = write(each.recall for each in shown)
        columns["F1"] = write(each.f1 for each in shown)
    title = f"The {len(shown)} most frequent of {len(labels):,} labels"
    show_table(title, list(columns), zip(*columns.values(), strict=True))
