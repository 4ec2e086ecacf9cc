"""`setrnn evaluate`: measure a model on documents whose labels are known."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import setrnn
from setrnn.cli.options import (
    AllowTrainingDocuments,
    BeamWidth,
    Data,
    Device,
    JsonFile,
    LimitOptions,
    Model,
    Rule,
    TreeReading,
    option,
)
from setrnn.cli.progress import load_model, terminal_progress
from setrnn.cli.tables import (
    accepted_table,
    hierarchical_table,
    label_scores_table,
    measures_table,
)
from setrnn.cli.terminal import show, stdout, warn, write_json
from setrnn.data.disk import check_file_place
from setrnn.metrics import MEASURES
from setrnn.models.hub import name_place

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from setrnn.tagging.measures import AcceptedScores, Evaluation


def evaluate(
    model: Model,
    data: Data,
    reading: TreeReading,
    limits: LimitOptions,
    rule: Rule = None,
    split: Annotated[
        str | None, option("The part of DATA to measure on.", default="test, or the only one")
    ] = None,
    labels: Annotated[
        int, option("How many labels to show, the most frequent first; 0 for none.", min=0)
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
    if json is not None:
        check_file_place(json)
    tagger = load_model(model, device)
    if beam_width is not None:
        tagger = tagger.with_beam_width(beam_width)
    own = tagger.rule_or_own(rule)
    source = reading.source(data)
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
    n_documents = evaluation.scores.n_documents
    show(f"{name} ({tagger.method}), rule {own}, on {where}: {n_documents:,} documents")
    _show_measures(found, own, "" if rule is None else name, allow_training_documents)
    show(_describe_probabilities(evaluation))
    if evaluation.accepted is not None:
        _show_accepted(evaluation.accepted, tagger.fitted.acceptance[own].target)
    if labels and evaluation.labels:
        stdout.print(label_scores_table(evaluation.labels, labels))
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


def _show_measures(
    found: Mapping[str, Evaluation], own: str, model: str, allow_training_documents: bool
) -> None:
    """Print the measures by all rules, or by the one that a model was asked to predict by."""
    evaluation, rows = found[own], {own: found[own].as_dict()}
    rows |= {rule: each.as_dict() for rule, each in found.items() if rule != own}
    if model:
        table = measures_table("", {model: rows[own]})
    else:
        marked = {f"{rule} (own)" if rule == own else rule: row for rule, row in rows.items()}
        table = measures_table("The measures by each prediction rule", marked)
    if evaluation.is_seen and not allow_training_documents:
        table.caption = (
            f"NOT ON NEW DOCUMENTS: the model was trained on about "
            f"{evaluation.share_trained_on:.0%} of these. It will do worse on others."
        )
        table.caption_style = "bold yellow"
    stdout.print(table)
    if not model:
        show(_describe_rules(rows, own))
    if evaluation.hierarchical is not None:
        stdout.print(hierarchical_table(rows))


def _show_accepted(accepted: AcceptedScores, target: float) -> None:
    """Print what is accepted; warn if fewer of it is right than was promised."""
    stdout.print(accepted_table(accepted, target))
    if accepted.n_accepted and accepted.accuracy_accepted_high < target:
        warn(
            f"Fewer accepted predictions are right than the target {target:g} says. Were the "
            "documents of the calibration like these, and not trained on? Calibrate again: "
            "setrnn calibrate"
        )


def _describe_rules(names: Collection[str], own: str) -> str:
    """Describe which rule is for what, how to choose another, and which are missing and why."""
    from setrnn.systems.rules import RULES  # it loads scipy, which the help does not need
    from setrnn.tagging.trust.saved import MIN_DOCUMENTS

    ways = [
        f"{name} for {MEASURES[measure]} ({RULES[name].purpose})"
        if (measure := RULES[name].measure)
        else f"{name} for {RULES[name].purpose or 'no measure of this table'}"
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
            f"\nNot shown: {' and '.join(missing)} need a calibration, for their thresholds. This "
            "model has none: train makes one if the valid part has "
            f"{MIN_DOCUMENTS} documents or more, and so does setrnn calibrate."
        )
    return text


def _describe_probabilities(evaluation: Evaluation) -> str:
    """Describe how probable the true sets are, and how far probabilities are from accuracy."""
    text = f"Sets not found have {evaluation.missing_mass:.1%} of the probability."
    if evaluation.set_log_likelihood is not None:
        n = evaluation.n_impossible_sets
        below = f" ({n:,} below 1e-12)" if n else ""
        text = f"Mean log p(true set) {evaluation.set_log_likelihood:.3f}{below}. {text}"
    lines = [
        text,
        f"Mean probability of the predicted sets {evaluation.mean_probability:.3f}; expected "
        f"calibration error {evaluation.calibration_error:.3f} "
        f"({evaluation.calibration_error_raw:.3f} with the model's own probabilities).",
        f"Label probabilities above 0.05: expected calibration error "
        f"{evaluation.label_calibration_error:.3f} "
        f"({evaluation.label_calibration_error_raw:.3f} with the model's own).",
    ]
    return "\n".join(lines)
