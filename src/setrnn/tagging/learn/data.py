"""The data to train on as a prepared folder, and the settings to train with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from setrnn.config import AUTO, WORDS, Config, find_changes, load_config, read_changes
from setrnn.data.cache import open_prepared
from setrnn.data.hierarchy import describe_fit
from setrnn.data.labels import ESTIMATED, estimate_forgotten, mark_only_given
from setrnn.data.prepared import Prepared
from setrnn.data.read import make_hierarchy
from setrnn.data.read.label_files import Parents
from setrnn.data.source import Source, read_source
from setrnn.data.text.languages import find_language
from setrnn.data.text.notes import describe_cut_documents
from setrnn.data.vectors import word_vectors
from setrnn.errors import ConfigError, DataError
from setrnn.metrics import find_measure
from setrnn.model.devices import find_device
from setrnn.progress import OnProgress, ignore_progress, log

# A file, several, a folder, a prepared folder, `hf:NAME` or "newsroom"; a Source says how to read.
Data: TypeAlias = str | Path | Sequence[str | Path] | Source | Prepared
Settings: TypeAlias = Mapping[str, Any] | Sequence[str]

MINUTE = 60.0
STEPS_PER_EPOCH = 400  # at most about as many, as far as the batch sizes allow
BATCH_SIZES = (16, 32, 64, 128)
EPOCHS, MOST_EPOCHS = 10, 40
SMALL = "small"  # a preset
LEAST_STEPS = 1_000  # in all epochs, as far as these suffice


@dataclass(frozen=True)
class Asked:
    """The settings that were asked for, and what they were made from."""

    config: Config
    preset: str
    changes: Mapping[str, Any]  # of the preset, by group and name
    overrides: Sequence[str]  # the changes that were given as `key=value`


def list_overrides(settings: Settings) -> list[str]:
    """Return single settings as a list of `key=value`."""
    if isinstance(settings, Mapping):
        return [f"{name}={json.dumps(value, default=_plain)}" for name, value in settings.items()]
    return list(settings)


def _plain(value: object) -> object:
    """Return what JSON can write; the configuration refuses values of the wrong type."""
    return value.item() if isinstance(value, np.generic) else str(value)


def choose_preset(preset: str, device: str) -> str:
    """Return the settings to start from: networks are smaller on a CPU if no others are named."""
    is_on_cpu = find_device(device).type == "cpu"
    return SMALL if preset == "default" and is_on_cpu else preset


def read_settings(
    preset: str,
    config: Config | str | Path | None,
    settings: Settings,
    seed: int | None = None,
    measure: str | None = None,
) -> Asked:
    """Return the settings of a training; the seed and the measure are settings too.

    A whole config is taken as it is. Otherwise one is built: a preset, a JSON file, and single
    settings.
    """
    overrides = list_overrides(settings)
    if seed is not None:
        overrides.append(f"seed={seed}")
    if not isinstance(config, Config):
        file = None if config is None else Path(config)
        full, changes = load_config(preset, file, overrides), read_changes(file, overrides)
    elif overrides:
        raise ConfigError("Give either a Config or single settings and a seed, not both.")
    elif config.encoder.is_pretrained:
        full, preset = config, "transformer"
        base = load_config(preset, overrides=[f"encoder.path={config.encoder.path}"])
        changes = find_changes(config, base)
    else:
        full, preset, changes = config, "default", find_changes(config, Config())
    if measure is not None:
        full = replace(full, training=replace(full.training, metric=find_measure(measure)))
    return Asked(full, preset, changes, overrides)


def read_budget(minutes: float | None) -> float | None:
    """Return a budget in seconds; None if there is no limit."""
    if minutes is not None and not minutes >= 0:
        raise ConfigError(f"The budget must be 0 minutes or more, got {minutes}.")
    return MINUTE * minutes if minutes else None


def make_source(
    data: Data,
    valid: str | Path | None = None,
    hierarchy: Parents | None = None,
    close_labels: bool = False,
    cut_valid: bool | None = None,
) -> Source:
    """Return what to read as a Source.

    Args:
        data: what to read.
        valid: a file that becomes the valid part.
        hierarchy: the parents of the labels; those that the data has if not given.
        close_labels: whether to add the labels above its own to each document.
        cut_valid: whether to cut a valid part from train if there is none; if not given, as a
            Source says.
    """
    if valid is not None and cut_valid is False:
        raise ConfigError("There is a valid part, but none is wanted. Leave out one of the two.")
    if isinstance(data, Prepared):
        data = data.folder
    source = read_source(data)
    if source is None:
        raise DataError(
            f"data must be a file, a folder or a Source, got {type(data).__name__}. Write "
            "documents in memory to a file with write_examples, or use SetRNNClassifier."
        )
    if valid is not None:
        source = replace(source, valid=Path(valid))
    if cut_valid is not None:
        source = replace(source, cut_valid=cut_valid)
    if hierarchy is None and not close_labels:
        return source
    parents = source.options.hierarchy if hierarchy is None else hierarchy
    options = replace(source.options, hierarchy=make_hierarchy(parents, close_labels))
    return replace(source, options=options)


def open_training_data(
    source: Source,
    config: Config,
    overrides: Sequence[str] = (),
    folder: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> tuple[Prepared, Config]:
    """Prepare data, or open it prepared; return it with the settings that fit it.

    Args:
        source: what to read.
        config: the settings asked for.
        overrides: those of them given as `key=value`: a prepared folder must agree with them.
        folder: where prepared folders are kept; the cache if not given.
        on_progress: called with the progress.
    """
    prepared = open_prepared(source, config.text, folder, on_progress)
    return prepared, check_training_data(prepared, source, config, overrides)


def check_training_data(
    prepared: Prepared, source: Source, config: Config, overrides: Sequence[str]
) -> Config:
    """Return the settings that fit the data; report what a user should know of it."""
    # The content of a tokenizer counts, and training checks it; not its place.
    text = replace(config.text, tokenizer=prepared.text_settings.tokenizer)
    language = find_language(text.language)
    text = replace(text, language=prepared.text_settings.language if language == AUTO else language)
    log.info(f"Prepared data: {prepared.folder}")
    if prepared.language_note and text.tokenizer == WORDS:
        log.info(f"Language: {prepared.language_note} To change it: --set text.language=NAME.")
    is_other = prepared.text_settings != text
    if is_other and any("text." in each for each in overrides):
        raise ConfigError(
            f"{prepared.folder} was prepared with other text settings than --set. Prepare the data "
            "again with the same --set, or give the data itself."
        )
    if not len(prepared.labels):
        raise DataError(f"No document of {source} has a label: there is nothing to learn.")
    note_documents(prepared)
    note_labels(prepared, config.training.forgotten)
    if prepared.valid_is_cut:
        n_documents = prepared.description["n_documents"]
        n_train, n_valid = n_documents["train"], n_documents["valid"]
        log.info(
            f"{prepared.name} has no valid part: {n_valid / (n_train + n_valid):.0%} of train is "
            f"set aside for it (train {n_train:,}, valid {n_valid:,} documents)."
        )
    if is_other:
        log.info("The data was prepared with other text settings: its own are used.")
    return fit_to_data(replace(config, text=prepared.text_settings), prepared)


def fit_to_data(config: Config, prepared: Prepared) -> Config:
    """Return the settings with a value for each that the user left to the data.

    It changes nothing in settings that it returned.
    """
    n_documents = len(prepared.split("train"))
    training, model = config.training, config.model
    if config.vectors.source == "none":  # random vectors must be tuned
        model = replace(model, word_vectors="tuned")
    batch_size = training.batch_size or choose_batch_size(n_documents)
    n_epochs = training.epochs or choose_epochs(n_documents, batch_size)
    training = replace(training, batch_size=batch_size, epochs=n_epochs)
    return replace(config, training=training, model=model)


def choose_batch_size(n_documents: int) -> int:
    """Return the smallest batch size with at most about `STEPS_PER_EPOCH` steps.

    Small batches give a small corpus enough steps to learn from; large ones are faster.
    """
    fitting = (size for size in BATCH_SIZES if n_documents <= size * STEPS_PER_EPOCH)
    return next(fitting, BATCH_SIZES[-1])


def choose_epochs(n_documents: int, batch_size: int) -> int:
    """Return the number of epochs: more if each has few steps."""
    n_steps = max(n_documents // batch_size, 1)
    return min(max(EPOCHS, LEAST_STEPS // n_steps), MOST_EPOCHS)


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
    full = read_settings(preset, config, settings).config
    folder = None if out is None else Path(out)
    prepared = open_prepared(make_source(data, valid), full.text, folder, on_progress)
    note_documents(prepared)
    if vectors:
        make_vectors(prepared, full, on_progress)
    return prepared


def make_vectors(prepared: Prepared, config: Config, on_progress: OnProgress) -> None:
    """Make the word vectors that networks start from, if the settings ask for any."""
    if config.vectors.source != "none" and config.text.tokenizer == WORDS:
        word_vectors(prepared, config.vectors, on_progress)


def note_documents(prepared: Prepared) -> None:
    """Report how many rows were skipped, and which share of the documents is cut."""
    if prepared.n_skipped_rows:
        log.warning(f"{prepared.n_skipped_rows:,} rows could not be read and were skipped.")
    note_cut_documents(prepared)


def note_cut_documents(prepared: Prepared) -> None:
    """Report which share of the documents is cut, if any is."""
    if cut := describe_cut_documents(prepared.n_windows, prepared.text_settings):
        log.info(cut)


def note_labels(prepared: Prepared, forgotten: float) -> None:
    """Report how the hierarchy fits the labels, and what is made of unknown labels."""
    train = prepared.split("train")
    if prepared.hierarchy is not None and len(prepared.labels):
        for line in describe_fit(prepared.hierarchy, prepared.labels.sets(train.labels)):
            log.info(line)
    if train.unknown is None:
        return
    n_incomplete = int((~train.is_complete).sum())
    text = f"{n_incomplete:,} of {len(train):,} training documents have labels that are not known."
    is_only_given = mark_only_given(train.unknown)
    if not is_only_given.any() or forgotten != ESTIMATED:
        log.info(text)
        if forgotten == 1 and is_only_given.all():
            log.warning(
                "No label is known to be absent from any training document: a model that predicts "
                "all labels fits best. Add complete documents, or assume a smaller share: "
                "--set training.forgotten=0.3"
            )
    elif train.is_complete.any():
        log.info(
            f"{text} Those that are not complete lack about {estimate_forgotten(train):.0%} of "
            "their labels, by comparison with the others; to assume another share: "
            "--set training.forgotten=P"
        )
    else:
        log.warning(
            f"{text} None is complete, so that nothing says how many labels are missing: labels "
            "that are not given are taken as absent. Add complete documents, or assume a share: "
            "--set training.forgotten=0.3"
        )
