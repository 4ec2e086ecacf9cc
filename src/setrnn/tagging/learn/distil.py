"""Distil a model: train a student network on the set distribution of its teacher."""

# n documents, m of a batch, K sets of the teacher, G target sets, S labels of the largest set

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from setrnn.config import Config, settings_hash
from setrnn.data.batches import TargetSets, TrainingDocuments
from setrnn.data.labels import LabelVocabulary
from setrnn.data.prepared import UNLABELLED, Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.source import Source
from setrnn.errors import ConfigError, DataError
from setrnn.methods import Method, find_method
from setrnn.model.decoders import find_decoder
from setrnn.objectives.set_distribution import SET_LOG_PROB
from setrnn.progress import OnProgress, count_up, ignore_progress, log
from setrnn.search.subset_sums import MOST_LABELS
from setrnn.systems.candidates import Floats, Ids, SetCandidates, pack_labels, widen
from setrnn.systems.mixture import MixtureSystem, Weights
from setrnn.systems.rules import rule_for
from setrnn.systems.system import System
from setrnn.tagging.documents import open_documents
from setrnn.tagging.learn.data import (
    Data,
    Settings,
    choose_preset,
    make_source,
    open_training_data,
    read_budget,
    read_settings,
)
from setrnn.tagging.learn.mix import list_names
from setrnn.tagging.learn.train import check_training, explain_stop, train_prepared
from setrnn.tagging.tagger import Tagger, open_model
from setrnn.training.start import TrainOptions

MIN_WEIGHT = 0.005  # less probable sets of the teacher are left to the rest: they cost time


def distil(
    teacher: str | Path | Tagger,
    data: Data,
    method: str = "set-rnn-exact",
    *,
    out: str | Path | None = None,
    unlabelled: Sequence[str | Path] = (),
    measure: str | None = None,
    budget: float | None = None,
    valid: str | Path | None = None,
    cut_valid: bool = True,
    preset: str = "default",
    config: Config | str | Path | None = None,
    settings: Settings = (),
    device: str = "auto",
    seed: int | None = None,
    resume: bool = False,
    keep_run: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Train a student network on what a teacher says about texts, and return it as a tagger.

    The student learns the probabilities of the teacher's most probable sets of each text. A text
    with labels also teaches its own set, with the weight `distillation.true_share`. The student
    has the labels of the train part of the data: sets of the teacher with other labels are left
    out. As in `train`, the true labels of the valid part choose the epoch and calibrate the model.

    Args:
        teacher: a model folder or a tagger, such as a mixture.
        data: documents with labels, as for `train`. A prepared folder is possible if it was made
            with the teacher's vocabulary.
        method: the student: set-rnn-exact, set-rnn or sigmoid.
        out: the model folder to write. Checkpoints are in OUT.run meanwhile.
        unlabelled: files of texts without labels. A prepared folder has them already.
        measure: what to be good at, as for `train`.
        budget: the minutes that the student's training may take, without the teacher's work; 0 or
            None for no limit.
        valid: a file that becomes the valid part.
        cut_valid: whether a tenth of train becomes the valid part, if there is none.
        preset: the settings to start from, as for `train`.
        config: all settings, or a JSON file of settings to apply after the preset.
        settings: single settings by their dotted names, such as `{"distillation.sets": 4}`.
        device: where to compute: auto, cpu, cuda or mps.
        seed: the seed of the run; 0 if not given.
        resume: continue the run kept in OUT.run, as for `train`; the teacher is asked again.
        keep_run: whether OUT.run stays, as for `train`.
        on_progress: called with the progress.

    Example:
        >>> import setrnn
        >>> teacher = setrnn.train("newsroom", "br")
        >>> quick = {"vectors.source": "none", "training.epochs": 1, "model.encoder_units": 8}
        >>> setrnn.distil(teacher, "newsroom", "sigmoid", settings=quick)
        <Tagger sigmoid: 65 labels, calibrated>
    """
    student = _find_student(method)
    asked = read_settings(choose_preset(preset, device), config, settings, seed, measure)
    full, seconds = asked.config, read_budget(budget)
    target = None if out is None else Path(out)
    own = None if isinstance(teacher, Tagger) else Path(teacher).resolve()
    if target is not None and own == target.resolve():
        raise ConfigError(f"--out is {target}, the teacher itself. Name another folder.")
    check_training(student, full, device, target, resume)
    with explain_stop(target):
        name, tagger = open_model(teacher, device)
        source = make_source(data, valid, cut_valid=cut_valid)
        if source.options.hierarchy is None and source.prepared_folder is None:
            source = make_source(source, hierarchy=tagger.hierarchy)
        source = replace(source, unlabelled=tuple(Path(file) for file in unlabelled))
        prepared, full = open_training_data(source, full, asked.overrides, on_progress=on_progress)
        _note_other_labels(tagger, prepared)
        found = _ask(tagger, source, prepared, full, on_progress)
        options = TrainOptions(
            device,
            keep_run=keep_run,
            resume=resume,
            max_seconds=seconds,
            rule=rule_for(full.training.metric),
            on_progress=on_progress,
            documents=aim(found, prepared, tagger.labels, full),
            identity={"teacher": fingerprint(tagger)},
        )
        n_documents, parts = prepared.description["n_documents"], _list_parts(prepared, full)
        notes = {
            "name": name,
            "method": tagger.method,
            "members": [member.method for member in tagger.members],
            "data": tagger.notes.get("data"),
            "n_labelled": n_documents["train"],
            "n_unlabelled": n_documents[UNLABELLED] if UNLABELLED in parts else 0,
        }
        return train_prepared(prepared, student, full, options, target, {"distilled_from": notes})


def _find_student(method: str) -> Method:
    """Return a method that is trained on sets with weights instead of its own objective."""
    student = find_method(method)
    if not student.is_network or student.rule != "set":
        raise ConfigError(
            f"'{method}' does not give the probability of a set while it is trained. A student "
            "is a set-rnn-exact, set-rnn or sigmoid model."
        )
    assert find_decoder(student.decoder).emits in SET_LOG_PROB
    return replace(student, objective="set-distribution", first_method=None)


def fingerprint(teacher: Tagger) -> str:
    """Return a hash of everything that determines the predictions of a model."""
    digest = hashlib.blake2b(digest_size=16)
    for name, array in sorted(teacher.system.arrays().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).data)
    tokenizers = [part.tokenizer.to_str() for part in teacher.encoder.parts]
    return settings_hash(digest.hexdigest(), teacher.method, teacher.labels.names, tokenizers)


def _list_parts(prepared: Prepared, config: Config) -> list[str]:
    """Return the parts of the data that the student learns from."""
    has_more = UNLABELLED in prepared.splits and config.distillation.use_unlabelled
    return ["train", UNLABELLED] if has_more else ["train"]


def _note_other_labels(teacher: Tagger, prepared: Prepared) -> None:
    """Say which labels only one side knows; raise ConfigError if they have none in common."""
    own, known = set(prepared.labels.names), set(teacher.labels.names)
    if not own & known:
        raise ConfigError(
            f"The teacher knows none of the labels of {prepared.name}, such as "
            f"{list_names(own)}. Give data with the teacher's labels."
        )
    for only, text in (
        (known - own, "Sets of the teacher with labels that the train part lacks are left out"),
        (own - known, "The student learns from the texts alone labels that the teacher lacks"),
    ):
        if only:
            log.warning(f"{text}: {list_names(only)}.")


def _ask(
    teacher: Tagger, source: Source, prepared: Prepared, config: Config, on_progress: OnProgress
) -> SetCandidates:
    """Let the teacher find its most probable sets of all texts, in its own label ids."""
    parts, n_sets = prepared.description["n_documents"], config.distillation.sets
    names = _list_parts(prepared, config)
    n_documents = sum(parts[name] for name in names)
    count = count_up("asking the teacher", on_progress, n_documents)
    found, system = [], choose_weights(teacher.system)
    for name in names:
        for batch in open_documents(source, name).batches(teacher):
            best = system.candidates(batch.tokens, n_sets)
            found.append(SetCandidates(best.labels[:, :n_sets], best.log_probs[:, :n_sets]))
            count(len(batch.tokens))
    if sum(map(len, found)) != n_documents:
        raise DataError(f"{source} has changed while it was read. Start again.")
    return SetCandidates.concatenate(found)


def choose_weights(system: System) -> System:
    """Return the system that teaches: a mixture gets the mean of the weights of its rules.

    One student learns for all rules. The weights of maximum likelihood alone teach it too little
    about rare labels.
    """
    if not isinstance(system, MixtureSystem) or not system.weights.by_rule:
        return system
    mean = np.mean(list(system.weights.by_rule.values()), axis=0)
    return replace(system, weights=Weights(mean / mean.sum()))


def aim(
    found: SetCandidates, prepared: Prepared, labels: LabelVocabulary, config: Config
) -> TrainingDocuments:
    """Return the texts with target sets: the teacher's, and the own set of a text with labels.

    Args:
        found: the teacher's sets of the train part, then of the texts without labels.
        prepared: the texts.
        labels: the teacher's labels.
        config: the settings of the student.
    """
    parts = [prepared.split(name) for name in _list_parts(prepared, config)]
    sets, weights = _translate(found, labels, prepared.labels, config)
    n_train = len(parts[0])
    of_train = pack_labels(parts[0].labels.padded(min_width=1).astype(np.int32))
    own = np.full((len(sets), 1, of_train.shape[1]), -1, dtype=np.int32)  # (n, 1, S)
    own[:n_train, 0] = of_train
    is_new = np.array([name not in labels.index for name in prepared.labels.names])
    share = np.zeros(len(sets))
    share[:n_train] = np.where(parts[0].is_complete, config.distillation.true_share, 0.0)
    # A teacher that lacks a label of the text is wrong about it.
    share[:n_train][(is_new[own[:n_train, 0]] & (own[:n_train, 0] >= 0)).any(axis=1)] = 1.0
    width = max(sets.shape[2], own.shape[2])
    sets, own = widen(sets, width), widen(own, width)
    weights = weights * (1 - share[:, None])
    is_own = (sets == own).all(axis=2) & (weights > 0)  # (n, K)
    weights = weights + is_own * share[:, None]
    alone = np.where(is_own.any(axis=1), 0.0, share)
    all_sets = np.concatenate([sets, own], axis=1)
    all_weights = np.concatenate([weights, alone[:, None]], axis=1).astype(np.float32)
    # The teacher may say nothing about a text that the student could learn.
    rows = np.flatnonzero((all_weights > 0).any(axis=1))
    return TrainingDocuments(
        Ragged.concatenate(part.tokens for part in parts).take(rows),
        targets=TargetSets(all_sets[rows], all_weights[rows]),
    )


def _translate(
    found: SetCandidates, labels: LabelVocabulary, own: LabelVocabulary, config: Config
) -> tuple[Ids, Floats]:
    """Return the teacher's sets in the student's ids, (n, K, S), and their probabilities (n, K).

    A set that the student cannot have, or that is improbable, gets the probability 0.
    """
    ids = [own.index.get(name, -2) for name in labels.names]
    translated = np.array([*ids, -1], dtype=np.int32)[found.labels]
    most = min(config.model.max_labels, MOST_LABELS)
    is_possible = (translated > -2).all(axis=2) & ((translated >= 0).sum(axis=2) <= most)
    translated = pack_labels(np.where(is_possible[:, :, None], translated, -1))
    probs = np.exp(found.log_probs)
    return translated, np.where(is_possible & (probs >= MIN_WEIGHT), probs, 0.0)
