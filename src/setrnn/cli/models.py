"""Predict, evaluate, and list the methods."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import asdict
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from setrnn.cli.calibrate import accepted_table, calibration_note
from setrnn.cli.completion import (
    AbsentField,
    PresentField,
    completion_rows,
    row_values,
    with_known_fields,
)
from setrnn.cli.console import note, scores_table, stdout, warn, write_json
from setrnn.cli.data import refuse_own_input, report_skipped
from setrnn.cli.limit_options import LimitOptions, with_limits
from setrnn.cli.options import (
    BeamWidth,
    Data,
    Device,
    JsonFile,
    Model,
    Reading,
    Rule,
    with_reading,
)
from setrnn.cli.progress import documents_progress
from setrnn.data.folders import check_file_place, whole_file
from setrnn.errors import ConfigError

if TYPE_CHECKING:
    from setrnn.systems.rules import Limits
    from setrnn.tagging.evaluation import Evaluation
    from setrnn.tagging.prediction import Prediction
    from setrnn.tagging.tagger import Tagger

SplitName = Annotated[
    str | None,
    typer.Option("--split", help="Which part of DATA.", show_default="test, or the only one"),
]


@with_reading
@with_limits
def predict(
    model: Model,
    data: Annotated[
        str, typer.Argument(metavar="INPUT", help="The documents; labels are not needed.")
    ],
    out: Annotated[Path, typer.Option(help="The JSON Lines file to write; - for the terminal.")],
    reading: Reading,
    limits: LimitOptions,
    rule: Rule = None,
    top: Annotated[
        int,
        typer.Option(help="Sets to give; pcc and most networks: at most the beam width."),
    ] = 1,
    split: SplitName = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="The model's own probabilities, not calibrated ones.")
    ] = False,
    device: Device = "auto",
    beam_width: BeamWidth = None,
    present_field: PresentField = None,
    absent_field: AbsentField = None,
) -> None:
    """Tag documents: one JSON line each, in input order."""
    from setrnn.data.formats import BadRows
    from setrnn.systems.rules import Limits
    from setrnn.tagging.loading import load

    check_file_place(out)
    refuse_own_input(data, out)
    wanted = limits.limits()
    tagger = load(model, device)
    if beam_width is not None:
        tagger = tagger.with_beam_width(beam_width)
    tagger.rule_or_own(rule)
    tagger.known_limits(wanted)
    source = reading.source(data, require_labels=False)
    has_known = present_field is not None or absent_field is not None
    if has_known:
        if wanted != Limits():
            raise ConfigError(
                "--present-field and --absent-field do not go with limits on the sets. Write "
                "required labels into the one field and forbidden ones into the other."
            )
        source = with_known_fields(source, tagger, present_field, absent_field, rule)
    bad_rows = BadRows(source.on_bad_row)
    dataset = source.open()
    stream = dataset.require(split or default_split(list(dataset.splits))).read(bad_rows)
    if has_known:
        rows = completion_rows(tagger, stream, top)
    else:
        examples, for_ids = tee(stream)
        documents = ((example.text, example.features) for example in examples)
        predictions = tagger.tag_stream(documents, rule, top, wanted, calibrated=not raw)
        rows = (_row(each.id, found) for each, found in zip(for_ids, predictions, strict=True))
    if str(out) == "-":
        for row in rows:
            sys.stdout.write(row)
    else:
        with whole_file(out) as file, documents_progress() as advance:
            for row in rows:
                file.write(row.encode())
                advance("tagging", 1)
        note(f"Wrote {out}")
    report_skipped(bad_rows)


def _row(example_id: str, prediction: Prediction) -> str:
    values = row_values(example_id, prediction)
    if prediction.accepted is not None:
        values["accepted"] = prediction.accepted
    if prediction.certificate is not None:
        values["certificate"] = asdict(prediction.certificate)
    return json_format.dumps(values, ensure_ascii=False) + "\n"


@with_reading
@with_limits
def evaluate(
    model: Model,
    data: Data,
    reading: Reading,
    limits: LimitOptions,
    rule: Rule = None,
    split: SplitName = None,
    json: JsonFile = None,
    device: Device = "auto",
    beam_width: BeamWidth = None,
) -> None:
    """Measure a model on documents whose labels are known."""
    from setrnn.tagging.loading import load

    if json is not None:
        check_file_place(json)
    wanted = limits.limits()
    tagger = load(model, device)
    if beam_width is not None:
        tagger = tagger.with_beam_width(beam_width)
    tagger.rule_or_own(rule)
    tagger.known_limits(wanted)
    evaluation, part = _measure(tagger, reading, data, rule, split, wanted)
    values = {
        "model": model.name,
        "method": tagger.method,
        "data": data,
        "split": part,
        **evaluation.as_dict(),
    }
    title = (
        f"{tagger.method}, rule {evaluation.rule}, on {part} of {data}: "
        f"{evaluation.scores.n_documents:,} documents"
    )
    stdout.print(scores_table(title, {model.name: values}))
    stdout.print(_ranking_table(values))
    stdout.print(_probability_line(evaluation))
    stdout.print(calibration_note(evaluation), highlight=False, soft_wrap=True)
    if evaluation.accepted is not None:
        stdout.print(accepted_table(evaluation.accepted))
    if evaluation.scores.n_unseen_labels:
        warn(
            f"{evaluation.scores.n_unseen_labels:,} labels that the model never saw occur "
            f"{evaluation.scores.n_unseen_label_occurrences:,} times: each counts as missed."
        )
    if json is not None:
        write_json(json, values)


def _measure(
    tagger: Tagger,
    reading: Reading,
    data: str,
    rule: str | None,
    split: str | None,
    limits: Limits,
) -> tuple[Evaluation, str]:
    from setrnn.data.formats import BadRows
    from setrnn.data.prepared import Prepared, is_prepared
    from setrnn.tagging.evaluation import evaluate, evaluate_prepared

    if is_prepared(Path(data)):
        prepared = Prepared(Path(data))
        part = split or default_split(prepared.splits)
        with documents_progress() as advance:
            found = evaluate_prepared(
                tagger, prepared, part, rule, lambda n: advance("tagging", n), limits
            )
        return found, part
    source = reading.source(data)
    dataset = source.open()
    part = split or default_split(list(dataset.splits))
    bad_rows = BadRows(source.on_bad_row)
    with documents_progress() as advance:
        stream = dataset.require(part).read(bad_rows)
        found = evaluate(tagger, stream, rule, lambda n: advance("tagging", n), limits)
    report_skipped(bad_rows)
    return found, part


def default_split(splits: list[str]) -> str:
    """Return the only part, or test."""
    return splits[0] if len(splits) == 1 else "test"


def _ranking_table(values: dict[str, object]) -> Table:
    table = Table(title="Ranking by marginals", title_justify="left")
    names = [name for name in values if name.startswith(("precision@", "ndcg@"))]
    for name in names:
        table.add_column(name.replace("ndcg", "nDCG"), justify="right")
    table.add_row(*(f"{values[name]:.3f}" for name in names))
    return table


def _probability_line(evaluation: Evaluation) -> str:
    """Say how probable the true sets are, and what the marginals do not rest on."""
    found = evaluation.set_log_likelihood
    truth = "" if found.mean is None else f"log p(true set) {found.mean:.3f} a document"
    if found.n_impossible_sets:
        truth += f" ({found.n_impossible_sets:,} true sets have less than 1e-12)"
    missing = f"sets not found have {evaluation.missing_mass:.1%} of the probability"
    searched = ""
    if evaluation.certificates is not None:
        certificates = evaluation.certificates
        searched = (
            f"{certificates.share_proved:.1%} of the predictions are proved, the search pruned "
            f"{certificates.pruned_mass:.1%}"
        )
    return "; ".join(each for each in (truth, missing, searched) if each)


def methods() -> None:
    """List the systems: what each maximises in training, and how it predicts."""
    from setrnn.methods import METHODS

    table = Table(title="Systems", title_justify="left", show_lines=True)
    for column in ("method", "training objective", "prediction objective"):
        table.add_column(column)
    for method in METHODS.values():
        table.add_row(method.name, method.training, method.prediction)
    stdout.print(table)
