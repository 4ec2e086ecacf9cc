"""Train, predict, evaluate, and list the methods."""

from __future__ import annotations

import json as json_format
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from setrnn.cli.calibrate import accepted_table, calibrated_on_valid, calibration_note
from setrnn.cli.completion import (
    AbsentField,
    PresentField,
    completion_rows,
    with_known_fields,
)
from setrnn.cli.console import (
    counted_progress,
    documents_progress,
    note,
    scores_table,
    stdout,
    warn,
    write_json,
)
from setrnn.cli.data import refuse_own_input, report_skipped, report_skipped_count
from setrnn.cli.limit_options import LimitOptions, with_limits
from setrnn.cli.options import (
    BeamWidth,
    ConfigFile,
    Data,
    Device,
    JsonFile,
    Model,
    Preset,
    Reading,
    Rule,
    SetOption,
    with_reading,
)
from setrnn.data.folders import check_file_place, whole_file
from setrnn.errors import ConfigError, DataError, StoppedError

if TYPE_CHECKING:
    from setrnn.config import ClassicalSettings, Config, TrainingSettings
    from setrnn.data.prepared import Prepared
    from setrnn.decoding import Limits
    from setrnn.evaluation import Evaluation
    from setrnn.methods import Trained
    from setrnn.prediction import Prediction
    from setrnn.tagger import Tagger

FEW_STEPS = 300  # with fewer, the default recipe has hardly begun to learn
SplitName = Annotated[
    str | None,
    typer.Option("--split", help="Which part of DATA.", show_default="test, or the only one"),
]


@with_reading
def train(
    data: Data,
    method: Annotated[str, typer.Option(help="A system; `setrnn methods` lists them.")],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    reading: Reading,
    valid: Annotated[
        Path | None, typer.Option(help="A file that becomes the valid part.", show_default=False)
    ] = None,
    preset: Preset = "default",
    config: ConfigFile = None,
    settings: SetOption = None,
    device: Device = "auto",
    seed: Annotated[int | None, typer.Option(help="Repeats a run.", show_default="0")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run kept in OUT.run.")
    ] = False,
) -> None:
    """Train a system and write its model folder; a recurrent one keeps its run in OUT.run."""
    from setrnn.config import load_config
    from setrnn.data.model_folder import refuse_other_folder
    from setrnn.datasets.cache import open_prepared
    from setrnn.evaluation import evaluate_prepared
    from setrnn.methods import find_method

    _check_method(method, device, resume)
    refuse_other_folder(out)
    overrides = [*(settings or []), *([f"seed={seed}"] if seed is not None else [])]
    chosen = load_config(preset, config, overrides)
    find_method(method).check(chosen)
    with documents_progress() as advance:
        prepared = open_prepared(reading.source(data, valid), chosen.text, None, advance)
    # Of a tokenizer the content counts, and training checks it; not where it lies.
    text = replace(chosen.text, tokenizer=prepared.text_settings.tokenizer)
    note(f"Prepared data: {prepared.folder}")
    if prepared.text_settings != text and any("text." in each for each in overrides):
        raise ConfigError(f"{prepared.folder} is prepared with other text settings than --set.")
    if not len(prepared.labels):
        raise DataError(f"No document of {data} has a label: there is nothing to learn.")
    report_skipped_count(prepared.n_skipped_rows)
    if prepared.text_settings != text:
        note("The data was prepared with other text settings than these: its own are used.")
    chosen = replace(chosen, text=prepared.text_settings)
    with _way_to_go_on(method, out):
        tagger = train_tagger(prepared, method, chosen, device, out, resume)
        tagger = calibrated_on_valid(tagger, prepared)
        tagger.save(out)
        if prepared.description["n_documents"].get("valid"):
            evaluation = evaluate_prepared(tagger, prepared, "valid")
            stdout.print(scores_table("On the valid part", {method: evaluation.as_dict()}))
    note(f"Wrote {out}")


def _check_method(name: str, device: str, resume: bool) -> None:
    from setrnn.methods import find_method

    if find_method(name).is_neural:
        from setrnn.model.devices import find_device

        find_device(device)  # before the data is read
    elif resume:
        raise ConfigError(f"'{name}' trains in one go and keeps no run. Leave out --resume.")


@contextmanager
def _way_to_go_on(method: str, out: Path) -> Iterator[None]:
    """After a Ctrl-C that stopped at once, say how to go on."""
    from setrnn.methods import find_method

    try:
        yield
    except KeyboardInterrupt:
        if not find_method(method).is_neural:
            raise
        from setrnn.training.run_folder import has_run, run_folder_of

        is_saved = has_run(run_folder_of(out))
        way = "Go on with --resume." if is_saved else "Nothing was trained yet: start again."
        raise StoppedError(f"Stopped. {way}") from None


def train_tagger(
    prepared: Prepared,
    method: str,
    config: Config,
    device: str = "auto",
    out: Path | None = None,
    resume: bool = False,
) -> Tagger:
    """Train with a progress bar; what a recurrent system needs to go on is kept beside `out`."""
    from setrnn.methods import find_method
    from setrnn.tagger import Tagger

    start = time.perf_counter()
    if find_method(method).is_neural:
        trained = _train_network(prepared, method, config, device, out, resume)
    else:
        if config.classical.tune:
            config = replace(config, classical=_tuned(prepared, method, config))
        trained = _train_classical(prepared, method, config)
    notes = {
        "data": prepared.name,
        "n_documents": prepared.description["n_documents"]["train"],
        "training_seconds": round(time.perf_counter() - start, 2),
        **trained.notes,
    }
    return Tagger.trained_on(prepared, method, config, trained.system, notes)


def _train_classical(prepared: Prepared, method: str, config: Config) -> Trained:
    from setrnn.methods import TrainOptions, find_method

    with counted_progress(f"training {method}: labels", len(prepared.labels)) as advance:
        return find_method(method).train(prepared, config, TrainOptions(on_labels=advance))


def _warn_of_few_steps(n_documents: int, settings: TrainingSettings) -> None:
    n_steps = -(-n_documents // settings.batch_size) * settings.epochs
    if n_steps < FEW_STEPS:
        warn(
            f"{n_documents:,} documents are only {n_steps} steps of training, and it may learn "
            f"little. Lower training.batch_size (now {settings.batch_size}) or raise "
            f"training.epochs (now {settings.epochs})."
        )


def _train_network(
    prepared: Prepared, method: str, config: Config, device: str, out: Path | None, resume: bool
) -> Trained:
    from setrnn.cli.training_display import training_display
    from setrnn.methods import TrainOptions, find_method
    from setrnn.training.run_folder import has_run, run_folder_of

    run = None if out is None else run_folder_of(out)
    _warn_of_few_steps(prepared.description["n_documents"]["train"], config.training)
    if resume and run is not None and not has_run(run):
        note(f"{run} has no checkpoint yet: training starts anew.")
    if not prepared.description["n_documents"].get("valid"):
        note(
            "There is no valid part: the last epoch is taken, training.metric and "
            "training.patience play no role. Add one with --valid FILE."
        )
    with training_display() as display:
        options = TrainOptions(
            device=device,
            run_folder=run,
            resume=resume,
            on_progress=display.training,
            on_vectors=display.vectors,
        )
        trained = find_method(method).train(prepared, config, options)
    epochs, best = len(trained.notes["epochs"]), trained.notes["best_epoch"]
    if epochs < config.training.epochs:
        note(f"Stopped early: no better {config.training.metric} since epoch {best}.")
    if best:
        note(f"The model is that of epoch {best}, the best by {config.training.metric}.")
    return trained


def _tuned(prepared: Prepared, method: str, config: Config) -> ClassicalSettings:
    from setrnn.baselines import BASELINES
    from setrnn.baselines.tuning import GRID, tune_penalties

    if "valid" not in prepared.splits:
        raise ConfigError(
            "classical.tune needs a valid part. Add one with --valid FILE, "
            "or cut one with: setrnn data split"
        )
    with counted_progress("choosing penalties on valid", len(GRID)) as advance:
        chosen = tune_penalties(
            BASELINES[method], prepared, config.classical, lambda l1, l2, scores: advance(1)
        )
    note(f"Chosen on valid: classical.l1={chosen.l1} classical.l2={chosen.l2}")
    return chosen


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
    from setrnn.datasets import BadRows
    from setrnn.decoding import Limits
    from setrnn.loading import load

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
    values = {
        "id": example_id,
        "labels": list(prediction.labels),
        "probability": prediction.probability,
        "alternatives": [
            {"labels": list(each.labels), "probability": each.probability}
            for each in prediction.alternatives
        ],
    }
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
    from setrnn.loading import load

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
    from setrnn.data.prepared import Prepared, is_prepared
    from setrnn.datasets import BadRows
    from setrnn.evaluation import evaluate, evaluate_prepared

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
