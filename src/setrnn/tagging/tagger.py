"""A trained model: tag, complete and explain texts; save and load."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from setrnn import __version__
from setrnn.config import Config, MemberSettings, MixtureConfig
from setrnn.data.arrays import share_arrays
from setrnn.data.document_sketch import DocumentSketch, pack_sketch, unpack_sketch
from setrnn.data.example import KnownLabels
from setrnn.data.formats import make_hierarchy
from setrnn.data.formats.parents import Parents
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary
from setrnn.data.model_files import CALIBRATION
from setrnn.data.model_folder import (
    NOWHERE,
    ModelVersion,
    SavedModel,
    load_model,
    save_calibration,
    save_model,
)
from setrnn.data.model_places import open_place, require_folder
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.data.text_notes import note_texts
from setrnn.data.tokenizing import TextEncoder
from setrnn.errors import ConfigError, DataError, ModelError
from setrnn.methods import METHODS, find_method
from setrnn.progress import OnProgress, ignore_progress
from setrnn.systems.candidates import Floats32, Ids, SetCandidates
from setrnn.systems.closure import Closure
from setrnn.systems.known import Known
from setrnn.systems.limits import Limits, SetLimits
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.predicting import BatchSearch, ChosenSets, documents_at_once
from setrnn.systems.registry import choose_rule, find_system
from setrnn.systems.relabelled import RelabelledSystem
from setrnn.systems.rules import LABEL_RULE, RULES, count_candidates, find_rule, rule_for
from setrnn.systems.rules.marginal_rules import NO_THRESHOLDS, Thresholds
from setrnn.systems.system import System
from setrnn.tagging.acceptance import LabelAcceptance
from setrnn.tagging.calibration import Calibration
from setrnn.tagging.inputs import Document, check_top, encode_batches, pair_features, pair_known
from setrnn.tagging.model_readme import write_readme
from setrnn.tagging.prediction import (
    Completion,
    LabelProbs,
    Marginals,
    Prediction,
    add_notes,
    complete_tokens,
    encode_known,
    list_certificates,
    name_predictions,
    problem_with_known,
)
from setrnn.tagging.predictions import Predictions

if TYPE_CHECKING:
    from setrnn.tagging.explanation import Explanation

BATCH = 1024  # the most documents that are searched together
SEEN_SETS, SEEN_SETS_OFFSETS = "seen_sets", "seen_sets_offsets"  # arrays of a model folder


@dataclass(frozen=True, repr=False)
class Tagger:
    """A trained system with its tokenizer and labels.

    `setrnn.train` makes a tagger, `setrnn.load` reads one from a model folder.

    Example:
        >>> import setrnn
        >>> tagger = setrnn.train("newsroom", "br")
        >>> text = "The ski race was cancelled because of the storm."
        >>> prediction = tagger.tag([text], top=2)[0]
        >>> prediction.labels
        ('weather', 'storm')
        >>> prediction.alternatives[0].labels
        ('sport', 'weather', 'storm')
        >>> tagger.complete(text, present={"sport"}).added
        ('weather', 'storm')
        >>> tagger.tag([text], limits=setrnn.Limits(max_labels=1))[0].labels
        ('storm',)
    """

    method: str
    config: Config
    encoder: TextEncoder
    labels: LabelVocabulary
    system: System
    notes: dict[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None
    seen_sets: Ragged | None = None  # the label sets of the training documents, for limits
    version: ModelVersion = NOWHERE  # of the folder that it was read from or written to
    rule: str | None = None  # for the measure that it was trained for; None: the method's own
    trained_documents: DocumentSketch | None = None  # None if not known
    hierarchy: Hierarchy | None = None  # the parents of labels; predictions may be closed in it

    def __repr__(self) -> str:
        calibrated = "calibrated" if self.is_calibrated else "not calibrated"
        return f"<Tagger {self.method}: {len(self.labels):,} labels, {calibrated}>"

    @classmethod
    def trained_on(
        cls,
        prepared: Prepared,
        method: str,
        config: Config,
        system: System,
        notes: dict[str, Any] | None = None,
        rule: str | None = None,
    ) -> Tagger:
        """Return a tagger of a system that was trained on prepared data."""
        return cls(
            method,
            config,
            prepared.encoder,
            prepared.labels,
            system,
            {} if notes is None else notes,
            seen_sets=prepared.seen_sets(),
            rule=rule,
            trained_documents=DocumentSketch.of(
                np.asarray(prepared.split("train").text_hashes.values)
            ),
            hierarchy=prepared.hierarchy,
        )

    def tag(
        self,
        texts: Sequence[str],
        rule: str | None = None,
        top: int = 1,
        features: Sequence[Sequence[str]] | None = None,
        limits: Limits | None = None,
        *,
        calibrated: bool = True,
    ) -> Predictions:
        """Predict a label set for each text.

        Args:
            texts: the documents.
            rule: the prediction rule; the model's own if not given. With "sequence", the
                probability of a set is that of its best sequence.
            top: how many sets to return per text: the predicted one and the most probable others.
            features: the features of each text, if the model was trained with features.
            limits: what all returned sets must satisfy.
            calibrated: whether to return calibrated probabilities, if the model has a
                calibration, or the model's own.
        """
        documents = pair_features(texts, features)
        found = self.tag_stream(documents, rule, top, limits, calibrated=calibrated)
        return Predictions(found, texts)

    def tag_stream(
        self,
        documents: Iterable[Document],
        rule: str | None = None,
        top: int = 1,
        limits: Limits | None = None,
        *,
        known: Iterable[KnownLabels] | None = None,
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Predict a label set for each (text, features); reads one batch at a time.

        With `known` labels, one row per document, all sets agree with them. Probabilities stay
        p(set | x).
        """
        check_top(top)
        self.rule_or_own(rule)
        self.known_limits(limits)
        for tokens, notes, _, ids in self._batches(documents, known):
            found = self.tag_tokens(tokens, rule, top, limits, known=ids, calibrated=calibrated)
            yield from map(add_notes, found, notes)

    def tag_tokens(
        self,
        tokens: Ragged,
        rule: str | None = None,
        top: int = 1,
        limits: Limits | None = None,
        *,
        known: Known | None = None,
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Predict from token ids, such as those of a prepared folder.

        With known labels, probabilities are the model's own: a calibration does not apply.
        """
        check_top(top)
        name, set_limits = self.rule_or_own(rule), self.known_limits(limits)
        n_sets = {find_rule(name).source: self.n_candidates(name, top, set_limits)}
        for start in range(0, len(tokens), self.batch_size):
            stop = min(start + self.batch_size, len(tokens))
            part = tokens.rows(start, stop)
            part_known = None if known is None else known.rows(slice(start, stop))
            search = BatchSearch(self.system, part, n_sets, part_known)
            yield from self.predictions(search, name, top, set_limits, calibrated=calibrated)

    def tag_with_marginals(
        self,
        documents: Sequence[Document],
        rule: str | None = None,
        top: int = 1,
        limits: Limits | None = None,
        *,
        calibrated: bool = True,
    ) -> tuple[list[Prediction], Marginals]:
        """Predict a label set and p(label | text) for each (text, features), in one batch.

        One search serves both, unless the rule chooses from the sequences of set-rnn-exact.
        """
        check_top(top)
        name, set_limits = self.rule_or_own(rule), self.known_limits(limits)
        texts, features = zip(*documents, strict=True)
        tokens = self.encoder.encode(texts, features)
        source, n_wanted = find_rule(name).source, self.n_candidates(name, top, set_limits)
        n_sets = {"sets": count_candidates()}  # for marginals: sequences give none
        n_sets[source] = max(n_wanted, n_sets.get(source, 0))
        search = BatchSearch(self.system, tokens, n_sets)
        found = self.predictions(search, name, top, set_limits, calibrated=calibrated)
        predictions = list(map(add_notes, found, note_texts(self.encoder, texts, tokens)))
        many = search.many_sets()
        return predictions, self.label_marginals(tokens, many, calibrated=calibrated)

    def predictions(
        self,
        search: BatchSearch,
        rule: str,
        top: int,
        limits: SetLimits,
        *,
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Choose a set for each document of a search, which found `n_candidates` or more."""
        chosen = search.choose(rule, limits, self.thresholds)
        yield from self.name_chosen(search, rule, chosen, top, calibrated=calibrated)

    def name_chosen(
        self,
        search: BatchSearch,
        rule: str,
        chosen: ChosenSets,
        top: int,
        *,
        calibrated: bool = True,
    ) -> Iterator[Prediction]:
        """Yield a prediction per document from the sets that a rule chose."""
        by, calibration = find_rule(rule), self.calibration
        choice, labels, log_probs = chosen.choice, chosen.labels, chosen.log_probs
        is_by_set = by.needs_best_only and by.source == "sets"
        proofs = list_certificates(labels, choice.candidates if is_by_set else None)
        accepted: list[bool | None] = [None] * len(labels)
        if calibration is not None and search.known is None:
            key = calibration.key_of(rule, by.source)
            found, trusted = calibration.apply(key, choice.candidates, labels, log_probs)
            if rule in calibration.acceptance:
                accepted = calibration.acceptance[rule].accepts(np.exp(trusted)).tolist()
            if calibrated:
                choice, log_probs = replace(choice, candidates=found), trusted
        probs = search.label_probs(by.source, len(self.labels))
        of_labels = None
        if probs is not None and len(self.labels):  # all training documents may be without labels
            of_labels = self._label_probs(probs, labels, calibrated)
        yield from name_predictions(
            self.labels, choice, labels, log_probs, top, accepted, proofs, of_labels
        )

    def _label_probs(self, marginals: Floats32, labels: Ids, calibrated: bool) -> LabelProbs:
        """Return the probabilities of the labels of sets (n, S), and which are accepted."""
        own = np.take_along_axis(marginals, np.maximum(labels, 0), axis=1)
        calibration = self.calibration
        if calibration is None or calibration.label_curves is None:
            return LabelProbs(own)
        trusted, acceptance = calibration.label_curves(own, labels), calibration.label_acceptance
        is_accepted = None if acceptance is None else acceptance.accepts(trusted, labels)
        return LabelProbs(trusted if calibrated else own, is_accepted)

    def label_marginals(
        self, tokens: Ragged, candidates: SetCandidates, *, calibrated: bool = True
    ) -> Marginals:
        """Return p(label | document), given candidates that stand for the whole distribution."""
        many = candidates.for_rule(LABEL_RULE)
        probs = self.system.for_rule(LABEL_RULE).marginals(tokens, many)
        probs = self.calibrate_labels(probs) if calibrated else probs
        return Marginals(probs, many.missing_mass())

    def calibrate_labels(self, probs: Floats32) -> Floats32:
        """Return calibrated label probabilities (n, L); the same if there is no calibration."""
        curves = None if self.calibration is None else self.calibration.label_curves
        return probs if curves is None else curves(probs)

    @property
    def batch_size(self) -> int:
        """The number of documents that are searched together."""
        return documents_at_once(len(self.labels), BATCH)

    @property
    def is_calibrated(self) -> bool:
        """Whether the model has a calibration that was fitted on documents."""
        return self.calibration is not None and self.calibration.is_fitted

    @property
    def thresholds(self) -> Thresholds | None:
        """The thresholds of the rules that need some; None without a calibration."""
        return None if self.calibration is None else self.calibration.thresholds

    @property
    def label_acceptance(self) -> LabelAcceptance | None:
        """From which probability on each label is accepted; None if that is not known."""
        return None if self.calibration is None else self.calibration.label_acceptance

    def n_candidates(self, rule: str, top: int = 1, limits: SetLimits | None = None) -> int:
        """Return how many candidates `predictions` needs to show `top` sets."""
        by, calibration = find_rule(rule), self.calibration
        needed = 1
        if calibration is not None:
            needed = calibration.n_candidates(calibration.key_of(rule, by.source))
        return count_candidates(by, top, limits, needed)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that this model can predict by."""
        has_thresholds = self.calibration is not None and self.calibration.thresholds is not None
        return tuple(
            name
            for name, rule in RULES.items()
            if (rule.source == "sets" or self.system.emits_sequences)
            and (has_thresholds or not rule.needs_thresholds)
        )

    def rule_or_own(self, rule: str | None) -> str:
        """Return a rule, or the model's own; raise ConfigError if the model cannot use it.

        The model's own rule is that of the measure it was trained for. If this rule needs
        thresholds and the model is not calibrated, it is `f1` instead.
        """
        own = self.rule
        if own is not None and find_rule(own).needs_thresholds and own not in self.rules:
            own = rule_for("instance_f1")
        chosen = choose_rule(find_method(self.method), own if rule is None else rule)
        if find_rule(chosen).needs_thresholds and chosen not in self.rules:
            raise ConfigError(NO_THRESHOLDS.format(rule=chosen))
        return chosen

    def known_limits(self, limits: Limits | None) -> SetLimits:
        """Return limits in this model's label ids; raise ConfigError if no set satisfies them."""
        asked = Limits() if limits is None else limits
        is_closed = self.keeps_closed if asked.closed is None else asked.closed
        if is_closed and self.hierarchy is None:
            raise ConfigError(
                "The model has no hierarchy to keep sets closed in. Train it with --hierarchy FILE."
            )
        closure = self.closure if is_closed else None
        return asked.for_labels(self.labels, self.seen_sets, closure)

    def with_hierarchy(self, parents: Parents | None, *, keeps_closed: bool = True) -> Tagger:
        """Return the same model with a hierarchy of its labels; None for none.

        Args:
            parents: a file of label,parent, or a dict from labels to their parents.
            keeps_closed: whether the labels of predicted sets bring those above them.

        Example:
            >>> import setrnn
            >>> tagger = setrnn.train("newsroom", "br").with_hierarchy("newsroom")
            >>> tagger.complete("", present={"copper"}).labels
            ('economy', 'markets', 'commodities', 'copper')
        """
        hierarchy = make_hierarchy(parents)
        if hierarchy is not None:
            if not any(name in self.labels.index for name in hierarchy.labels):
                raise ConfigError("The hierarchy names none of the labels of the model.")
            hierarchy = replace(hierarchy, keeps_closed=keeps_closed)
        return replace(self, hierarchy=hierarchy, version=NOWHERE)

    @property
    def keeps_closed(self) -> bool:
        """Whether the labels of a predicted set bring those above them in the hierarchy."""
        return self.hierarchy is not None and self.hierarchy.keeps_closed

    @cached_property
    def closure(self) -> Closure:
        """The labels above each label; raise ConfigError if the model has no hierarchy."""
        if self.hierarchy is None:
            raise ConfigError("The model has no hierarchy. Train it with --hierarchy FILE.")
        return Closure.of(self.hierarchy, self.labels)

    @property
    def max_labels(self) -> int | None:
        """The most labels that a set may have; None if there is no limit."""
        return self.system.max_labels

    @property
    def members(self) -> tuple[Tagger, ...]:
        """The models that a mixture is made of, without their calibrations; () for others."""
        if not isinstance(self.config, MixtureConfig) or not isinstance(self.system, MixtureSystem):
            return ()
        return tuple(
            _member_tagger(self, settings, system)
            for settings, system in zip(self.config.members, self.system.systems, strict=True)
        )

    @overload
    def complete(  # type: ignore[overload-overlap]  # a string is a sequence too
        self,
        texts: str,
        present: Collection[str] = (),
        absent: Collection[str] = (),
        top: int = 3,
        features: Sequence[str] | None = None,
    ) -> Completion: ...

    @overload
    def complete(
        self,
        texts: Sequence[str],
        present: Sequence[Collection[str]] = (),
        absent: Sequence[Collection[str]] = (),
        top: int = 3,
        features: Sequence[Sequence[str]] | None = None,
    ) -> list[Completion]: ...

    def complete(
        self, texts: Any, present: Any = (), absent: Any = (), top: int = 3, features: Any = None
    ) -> Completion | list[Completion]:
        """Find the most probable set that agrees with the known labels of a text, or of each text.

        Args:
            texts: one document, or a list of documents.
            present: labels known to be right: a collection, or one per text of a list.
            absent: labels known to be wrong, in the same form.
            top: how many sets to return per text.
            features: the features of the text, or of each text.
        """
        if isinstance(texts, str):
            of_one = None if features is None else [features]
            return self.complete([texts], [present], [absent], top, of_one)[0]
        known = pair_known(present, absent, len(texts))
        return list(self.complete_stream(pair_features(texts, features), known, top))

    def complete_stream(
        self, documents: Iterable[Document], known: Iterable[KnownLabels], top: int = 3
    ) -> Iterator[Completion]:
        """Complete the labels of each (text, features); reads one batch at a time."""
        check_top(top)
        for tokens, notes, rows, ids in self._batches(documents, known):
            assert ids is not None
            closure = self.closure if self.keeps_closed else None
            found = complete_tokens(self.system, self.labels, tokens, rows, ids, top, closure)
            yield from map(add_notes, found, notes)

    def check_known(self, known: KnownLabels) -> None:
        """Raise DataError if known labels do not fit the labels of the model."""
        closure = self.closure if self.keeps_closed else None
        problem = problem_with_known(
            self.labels, known.present, known.absent, self.max_labels, closure
        )
        if problem is not None:
            raise DataError(problem)

    def _batches(
        self, documents: Iterable[Document], known: Iterable[KnownLabels] | None
    ) -> Iterator[tuple[Ragged, list[tuple[str, ...]], list[KnownLabels], Known | None]]:
        """Yield token ids in batches, with notes on each text, what is known, and its label ids."""
        rows_left, n_before = iter(known or ()), 0
        for texts, tokens in encode_batches(self.encoder, documents, self.batch_size):
            rows, notes = (
                list(islice(rows_left, len(tokens))),
                note_texts(self.encoder, texts, tokens),
            )
            if known is None:
                yield tokens, notes, rows, None
                continue
            if len(rows) < len(tokens):
                raise DataError("Known labels are given for fewer documents than there are.")
            closure = self.closure if self.keeps_closed else None
            ids = encode_known(self.labels, rows, self.max_labels, n_before, closure)
            yield tokens, notes, rows, ids
            n_before += len(rows)

    def explain(
        self,
        text: str,
        features: Sequence[str] = (),
        top: int = 12,
        rule: str | None = None,
        labels: Collection[str] | None = None,
    ) -> Explanation:
        """Show how the model tags a text: the words for each label, sequences, sets, steps.

        Args:
            text: the document.
            features: its features.
            top: how many sequences and sets to list; the beam width limits the sequences.
            rule: the prediction rule; the model's own if not given.
            labels: the set to explain instead of the predicted one, in any order. It excludes
                a rule.
        """
        from setrnn.tagging.explaining import explain_text

        check_top(top)
        return explain_text(self, text, features, top, rule, labels)

    def predict_proba(
        self, texts: Sequence[str], features: Sequence[Sequence[str]] | None = None
    ) -> Floats32:
        """Return p(label | text), texts x labels, in the order of `self.labels.names`.

        The probabilities are calibrated if the model has a calibration.
        """
        return self.marginals(texts, features).probs

    def marginals(
        self,
        texts: Sequence[str],
        features: Sequence[Sequence[str]] | None = None,
        *,
        calibrated: bool = True,
    ) -> Marginals:
        """Return p(label | text), and the probability of the sets that were not found."""
        probs, missing = [np.zeros((0, len(self.labels)), np.float32)], [np.zeros(0)]
        for _, tokens in encode_batches(
            self.encoder, pair_features(texts, features), self.batch_size
        ):
            candidates = self.system.candidates(tokens, count_candidates())
            found = self.label_marginals(tokens, candidates, calibrated=calibrated)
            probs.append(found.probs)
            missing.append(found.missing_mass)
        return Marginals(np.concatenate(probs), np.concatenate(missing))

    def with_beam_width(self, beam_width: int) -> Tagger:
        """Return the same model with another beam width: a wider search finds more sets, slower.

        Thresholds and calibration stay those of the width they were fitted with.
        """
        if not isinstance(beam_width, int):
            raise ConfigError(f"beam_width must be a whole number, got {beam_width!r}.")
        system = self.system.with_beam_width(beam_width)
        if system is None:
            raise ConfigError(f"'{self.method}' has no search to widen: train a network.")
        config = self.config.with_beam_width(beam_width)
        return replace(self, config=config, system=system, version=NOWHERE)

    def save(self, folder: str | Path) -> None:
        """Write the model folder, whole or not at all."""
        self.saved_to(Path(folder))

    def saved_to(self, folder: Path, way_out: str = "") -> Tagger:
        """Write the model folder, and return the tagger with the version that is there now.

        The way out is what a message adds if the folder cannot be written.
        """
        arrays = self.system.arrays()
        if self.seen_sets is not None:
            arrays[SEEN_SETS] = self.seen_sets.values.astype(np.int32)
            arrays[SEEN_SETS_OFFSETS] = np.asarray(self.seen_sets.offsets, dtype=np.int64)
        arrays |= pack_sketch(self.trained_documents)
        saved = SavedModel(
            self.method,
            self.config,
            self.encoder,
            self.labels,
            arrays,
            self.notes,
            None if self.calibration is None else self.calibration.as_dict(),
            rule=self.rule,
            readme=self._readme(),
            hierarchy=self.hierarchy,
        )
        return replace(self, version=save_model(folder, saved, __version__, way_out))

    def save_calibration(self, folder: str | Path) -> Tagger:
        """Write only the calibration and the README.md, into the folder of the tagger.

        Return the tagger with the version that is there now. If the model or its calibration has
        changed since it was read, ModelError is raised and nothing is written.

        Example:
            >>> import setrnn
            >>> tagger = setrnn.train("newsroom", "br", out="model")
            >>> calibrated = setrnn.calibrate(tagger, "newsroom", target=0.8)
            >>> calibrated.tagger.save_calibration("model")
            <Tagger br: 65 labels, calibrated>
        """
        if self.calibration is None:
            raise ConfigError("The tagger has no calibration. Make one with setrnn.calibrate.")
        if self.version == NOWHERE:
            raise ConfigError("The tagger is not in a folder yet. Write all of it: Tagger.save.")
        require_folder(folder, "Calibrating")
        values = self.calibration.as_dict()
        version = save_calibration(Path(folder), values, self.version, self._readme())
        return replace(self, version=version)

    def _readme(self) -> str:
        """Return the README.md; empty if the notes are damaged, which must not lose a model."""
        with suppress(ModelError):
            return write_readme(self)
        return ""


def _member_tagger(mixture: Tagger, settings: MemberSettings, system: System) -> Tagger:
    """Return one member of a mixture, with its own tokenizer and its own order of the labels."""
    labels = mixture.labels
    if isinstance(system, RelabelledSystem):
        places = system.order.from_own(np.arange(len(labels), dtype=np.int32))
        names = tuple(labels.names[place] for place in places)
        labels, system = LabelVocabulary(names, (0,) * len(names)), system.own
    encoder = mixture.encoder.parts[settings.tokenizer]
    return Tagger(settings.method, settings.config, encoder, labels, system)


def load(
    folder: str | Path,
    device: str = "auto",
    *,
    shared: str | Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> Tagger:
    """Load a model onto a device: cpu, cuda, or auto for a GPU if there is one.

    The model is in a folder, in a zip file, or on the Hugging Face hub: `hub:OWNER/NAME`, or
    `hub:OWNER/NAME@REVISION` for one branch, tag or commit. Nothing in it is run or unpickled.
    `on_progress` is called with notes, such as that the hub cannot be reached.

    On a CPU, processes that name the same folder `shared` share the memory of the weights. A
    copy of them is kept there, by the version of the model; remove it when all have ended.

    Example:
        >>> import setrnn
        >>> setrnn.train("newsroom", "br").save("model")
        >>> tagger = setrnn.load("model")
        >>> tagger.tag(["The ski race was cancelled because of the storm."])[0].labels
        ('weather', 'storm')
    """
    with open_place(folder, on_progress) as place:
        saved = load_model(place)
    if saved.method not in METHODS:
        raise ModelError(f"{folder} holds a '{saved.method}' model, which this setrnn lacks.")
    if saved.rule is not None and saved.rule not in RULES:
        raise ModelError(f"{folder} predicts by rule {saved.rule!r:.40}, which this setrnn lacks.")
    method = METHODS[saved.method]
    try:
        arrays = dict(saved.arrays)
        if shared is not None:
            arrays = share_arrays(arrays, Path(shared) / saved.version.model)
        seen_sets = None
        if SEEN_SETS in arrays:
            seen_sets = Ragged(arrays.pop(SEEN_SETS), arrays.pop(SEEN_SETS_OFFSETS))
            seen_sets.check_ids(len(saved.labels))
        trained_documents = unpack_sketch(arrays)
        system = find_system(method).from_arrays(arrays, method, saved.config, device)
        tagger = Tagger(saved.method, saved.config, saved.encoder, saved.labels, system)
        for each in (tagger, *tagger.members):
            each.system.check_sizes(each.encoder.n_tokens, len(each.labels))
    except ConfigError:  # such as a device that this machine lacks
        raise
    except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"{folder} holds other weights than its '{saved.method}' model has: "
            f"{_first_line(error)} Train or copy the model again."
        ) from error
    calibration = None
    if saved.calibration is not None:
        calibration = Calibration.from_dict(saved.calibration, f"{Path(folder) / CALIBRATION}")
        calibration.check_labels(len(saved.labels), f"{Path(folder) / CALIBRATION}")
    return replace(
        tagger,
        notes=dict(saved.notes),
        calibration=calibration,
        seen_sets=seen_sets,
        version=saved.version,
        rule=saved.rule,
        trained_documents=trained_documents,
        hierarchy=saved.hierarchy,
    )


def _first_line(error: Exception) -> str:
    """Return the first mismatch in one line; torch lists every array on a line of its own."""
    if isinstance(error, KeyError):
        return f"{error} is missing."
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    chosen = lines[1] if len(lines) > 1 and lines[0].endswith(":") else "".join(lines[:1])
    return shorten(chosen.rstrip(". "), 160, placeholder=" ...") + "."
