"""Train a tagger: open the data, train the system, save it, calibrate it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from setrnn.config import WORDS, ClassicalSettings, Config, TrainingSettings, load_config
from setrnn.data.cache import Source, open_prepared
from setrnn.data.model_folder import check_model_place
from setrnn.data.prepared import Prepared
from setrnn.data.vectors import word_vectors
from setrnn.errors import ConfigError, DataError, SetRNNError, StoppedError
from setrnn.methods import Method, find_method
from setrnn.metrics import MEASURES
from setrnn.model.devices import find_device
from setrnn.progress import Note, OnProgress, Progress, ignore_progress
from setrnn.systems.registry import find_system
from setrnn.tagging.calibrating import calibrate_on_valid
from setrnn.tagging.tagger import Tagger, load
from setrnn.training.run_folder import has_run, mark_saved, only_trainer, run_folder_of
from setrnn.training.schedule import fit_to_data
from setrnn.training.start import TrainOptions, check_method, train_system

FEW_STEPS = 300  # with fewer, the default settings learn little


# A file, a folder, a prepared folder, `hf:NAME` or "newsroom"; a Source says how to read it.
Data: TypeAlias = str | Path | Source | Prepared
Settings: TypeAlias = Mapping[str, Any] | Sequence[str]


def train(
    data: Data,
    method: str = "set-rnn",
    *,
    out: str | Path | None = None,
    valid: str | Path | None = None,
    preset: str = "default",
    config: Config | str | Path | None = None,
    settings: Settings = (),
    device: str = "auto",
    seed: int | None = None,
    resume: bool = False,
    max_seconds: float | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Train a system on documents with labels, and return it as a tagger.

    Settings, device and `out` are checked before the data is read. The model is saved before it is
    calibrated, so that a failure in calibration loses nothing. After Ctrl-C, which raises
    `StoppedError`, a network in training can be resumed.

    Args:
        data: a file, a folder with train/valid/test files, a prepared folder, `hf:NAME` or
            "newsroom"; a `Source` says how to read it.
        method: the system to train, one of `setrnn.methods.METHODS`.
        out: the model folder to write. A network keeps its checkpoints beside it, in OUT.run.
        valid: a file that becomes the valid part.
        preset: the settings to start from: default, paper or transformer.
        config: all settings, or a JSON file of settings to apply after the preset.
        settings: single settings by their dotted names, such as `{"training.epochs": 10}`, or as
            `["training.epochs=10"]`.
        device: where to compute: auto, cpu or cuda.
        seed: the seed of the run; 0 if not given.
        resume: continue the run kept in OUT.run.
        max_seconds: no epoch starts that would probably exceed this time.
        on_progress: called with the progress and with notes for the user.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> tagger.tag(["The ski race was cancelled because of the storm."])[0].labels
        ('weather', 'storm')
    """
    chosen = find_method(method)
    overrides = list_overrides(settings)
    if seed is not None:
        overrides.append(f"seed={seed}")
    full = choose_config(preset, config, overrides)
    target = None if out is None else Path(out)
    check_training(chosen, full, device, resume)
    if target is not None:
        check_model_place(target)
    elif resume:
        raise ConfigError("resume needs out: the run to continue is kept beside the model folder.")
    options = TrainOptions(device, resume=resume, max_seconds=max_seconds, on_progress=on_progress)
    with _explain_stop(target if chosen.is_network else None):
        source = make_source(data, valid)
        prepared, full = open_training_data(source, full, overrides, on_progress=on_progress)
        return train_prepared(prepared, chosen, full, options, target)


def prepare(
    data: Data,
    *,
    out: str | Path | None = None,
    valid: str | Path | None = None,
    preset: str = "default",
    config: Config | str | Path | None = None,
    settings: Settings = (),
    vectors: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Prepared:
    """Turn data into a memory-mapped folder for training, or find the folder made before.

    The prepared folder is made in `out`, or in the cache if that is None. With `vectors`, it also
    gets the word vectors that networks start from. The other arguments are those of `train`.

    Example:
        >>> import setrnn
        >>> prepared = setrnn.prepare("newsroom")
        >>> prepared.description["n_documents"]["train"]
        4800
        >>> tagger = setrnn.train(prepared, "br")
    """
    full = choose_config(preset, config, list_overrides(settings))
    source = make_source(data, valid)
    folder = None if out is None else Path(out)
    prepared = open_prepared(source, full.text, folder, on_progress)
    _warn_of_skipped_rows(prepared, on_progress)
    if vectors:
        make_vectors(prepared, full, on_progress)
    return prepared


def make_vectors(prepared: Prepared, config: Config, on_progress: OnProgress) -> None:
    """Make the word vectors that networks start from, if the settings ask for any."""
    if config.vectors.source == "none" or config.text.tokenizer != WORDS:
        return

    def report(detail: str, share: float) -> None:
        on_progress(Progress("word vectors", share, 1.0, unit="", detail=detail))

    word_vectors(prepared, config.vectors, report)


def list_overrides(settings: Settings) -> list[str]:
    """Return single settings as a list of `key=value`."""
    if isinstance(settings, Mapping):
        return [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return list(settings)


def choose_config(
    preset: str, config: Config | str | Path | None, overrides: Sequence[str]
) -> Config:
    """Return a whole config as it is, or build one: a preset, a JSON file, single settings."""
    if not isinstance(config, Config):
        return load_config(preset, None if config is None else Path(config), overrides)
    if overrides:
        raise ConfigError("Give either a Config or single settings and a seed, not both.")
    return config


def make_source(data: Data, valid: str | Path | None = None) -> Source:
    """Return what to read as a Source, with a file as its valid part if one is given."""
    if isinstance(data, Prepared):
        data = data.folder
    if not isinstance(data, str | Path | Source):
        raise DataError(
            f"data must be a file, a folder or a Source, got {type(data).__name__}. Write "
            "documents in memory to a file with write_examples, or use SetRNNClassifier."
        )
    source = data if isinstance(data, Source) else Source(str(data))
    return source if valid is None else replace(source, valid=Path(valid))


def check_training(method: Method, config: Config, device: str, resume: bool) -> None:
    """Raise ConfigError if something cannot be trained, before the data is read."""
    check_method(method, config)
    if method.is_network:
        find_device(device)
    elif resume:
        raise ConfigError(f"'{method.name}' has no checkpoints to resume. Omit --resume.")


def open_training_data(
    source: Source,
    config: Config,
    overrides: Sequence[str] = (),
    folder: Path | None = None,
    open_with: Callable[..., Prepared] = open_prepared,
    on_progress: OnProgress = ignore_progress,
) -> tuple[Prepared, Config]:
    """Prepare data, or open it prepared; return it with the settings that fit it.

    Args:
        source: what to read.
        config: the settings asked for.
        overrides: those of them given as `key=value`: a prepared folder must agree with them.
        folder: where prepared folders are kept; the cache if not given.
        open_with: what prepares the data; called like `open_prepared`.
        on_progress: called with the progress and with notes for the user.
    """
    prepared = open_with(source, config.text, folder, on_progress)
    # The content of a tokenizer counts, and training checks it; not its place.
    text = replace(config.text, tokenizer=prepared.text_settings.tokenizer)
    on_progress(Note(f"Prepared data: {prepared.folder}"))
    is_other = prepared.text_settings != text
    if is_other and any("text." in each for each in overrides):
        raise ConfigError(f"{prepared.folder} was prepared with other text settings than --set.")
    if not len(prepared.labels):
        raise DataError(f"No document of {source.data} has a label: there is nothing to learn.")
    _warn_of_skipped_rows(prepared, on_progress)
    if is_other:
        on_progress(Note("The data was prepared with other text settings: its own are used."))
    return prepared, fit_to_data(replace(config, text=prepared.text_settings), prepared)


def train_prepared(
    prepared: Prepared,
    method: Method,
    config: Config,
    options: TrainOptions = TrainOptions(),  # noqa: B008 (frozen)
    out: Path | None = None,
) -> Tagger:
    """Train on prepared data, save the model if `out` is given, and calibrate it.

    A network keeps its checkpoints in `options.run_folder`, or beside `out` if that is None.
    """
    if out is not None and options.run_folder is None and method.is_network:
        options = replace(options, run_folder=run_folder_of(out))
    config = fit_to_data(config, prepared)
    with only_trainer(options.run_folder, options.wait):
        _note_before(prepared, method, config, options)
        tagger = _train(prepared, method, config, options)
        if out is not None:
            tagger = _save(tagger, out, options)
        if tagger.calibration is None:
            tagger = calibrate_on_valid(tagger, prepared, out, options.on_progress)
        return tagger


def _train(prepared: Prepared, method: Method, config: Config, options: TrainOptions) -> Tagger:
    start = time.perf_counter()
    if config.classical.tune and not method.is_network:
        config = replace(config, classical=_tune(prepared, method, config, options.on_progress))
    trained = train_system(method, prepared, config, options)
    notes = {
        "data": prepared.name,
        "n_documents": prepared.description["n_documents"]["train"],
        "training_seconds": round(time.perf_counter() - start, 2),
        **trained.notes,
    }
    _note_best_epoch(notes, config, options.on_progress)
    return Tagger.trained_on(prepared, method.name, config, trained.system, notes)


def _save(tagger: Tagger, out: Path, options: TrainOptions) -> Tagger:
    """Save a trained tagger, and note in its run folder that it is saved.

    If a run that was finished is resumed, the model is there already: its calibration is kept.
    """
    run, way_out, before = options.run_folder, "", None
    if run is not None:
        way_out = f" The run is kept in {run}: add --resume to write the model."
    if options.resume:
        with suppress(SetRNNError, OSError):
            before = load(out, "cpu")
    saved = tagger.saved_to(out, way_out)
    if run is not None:
        mark_saved(run)
    if before is None or before.calibration is None or before.version.model != saved.version.model:
        return saved
    return replace(saved, calibration=before.calibration).save_calibration(out)


@contextmanager
def _explain_stop(out: Path | None) -> Iterator[None]:
    """Explain how to resume when Ctrl-C stops the training of a network at once."""
    try:
        yield
    except KeyboardInterrupt:
        if out is None:
            raise
        is_saved = has_run(run_folder_of(out))
        way = "Resume with --resume." if is_saved else "No checkpoint was written: start again."
        raise StoppedError(f"Stopped. {way}") from None


def _warn_of_skipped_rows(prepared: Prepared, on_progress: OnProgress) -> None:
    if prepared.n_skipped_rows:
        skipped = f"{prepared.n_skipped_rows:,} rows could not be read and were skipped."
        on_progress(Note(skipped, is_warning=True))


def _note_before(prepared: Prepared, method: Method, config: Config, options: TrainOptions) -> None:
    if not method.is_network:
        return
    settings, n_documents = config.training, prepared.description["n_documents"]
    _warn_of_few_steps(n_documents["train"], settings, options.on_progress)
    if options.resume and options.run_folder is not None and not has_run(options.run_folder):
        text = f"{options.run_folder} has no checkpoint yet: training starts from the beginning."
        options.on_progress(Note(text))
    if not n_documents.get("valid"):
        options.on_progress(
            Note(
                "There is no valid part: the last epoch is used, and training.metric and "
                "training.patience have no effect. Add a valid part with --valid FILE."
            )
        )


def _warn_of_few_steps(
    n_documents: int, settings: TrainingSettings, on_progress: OnProgress
) -> None:
    n_steps = -(-n_documents // settings.batch_size) * settings.epochs
    if n_steps < FEW_STEPS:
        text = (
            f"{n_documents:,} documents give only {n_steps} training steps, too few to learn "
            f"much. Lower training.batch_size (now {settings.batch_size}) or raise "
            f"training.epochs (now {settings.epochs})."
        )
        on_progress(Note(text, is_warning=True))


def _note_best_epoch(notes: Mapping[str, Any], config: Config, on_progress: OnProgress) -> None:
    best = notes.get("best_epoch")
    if not best:
        return
    metric = MEASURES[config.training.metric]
    if len(notes["epochs"]) < config.training.epochs:
        on_progress(Note(f"Stopped early: no better {metric} since epoch {best}."))
    on_progress(Note(f"The model is that of epoch {best}, the best by {metric}."))


def _tune(
    prepared: Prepared, method: Method, config: Config, on_progress: OnProgress
) -> ClassicalSettings:
    """Choose the penalties of a classical system on the valid part."""
    from setrnn.systems.classical.system import GRID, tune_penalties

    if "valid" not in prepared.splits:
        raise ConfigError(
            "classical.tune needs a valid part. Add one with --valid FILE, or split the data with: "
            "setrnn data split"
        )
    n_done = 0

    def count(*trial: object) -> None:
        nonlocal n_done
        n_done += 1
        on_progress(Progress("choosing penalties on valid", n_done, len(GRID), unit="trials"))

    model = find_system(method).model_class
    chosen = tune_penalties(model, prepared, config.classical, count)
    text = f"Chosen on valid: classical.l1={chosen.l1} classical.l2={chosen.l2}"
    on_progress(Note(text))
    return chosen
