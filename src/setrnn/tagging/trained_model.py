"""A trained model: its rules, limits, hierarchy and calibration, and how it is saved."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar

import numpy as np
from typing_extensions import Self

from setrnn.config import Config, MemberSettings, MixtureConfig
from setrnn.data.example import Hashes
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.data.read import make_hierarchy, read_thresholds
from setrnn.data.read.label_files import Parents
from setrnn.data.text.words import TextEncoder
from setrnn.errors import ConfigError, ModelError, nearest_name
from setrnn.methods import METHODS, find_method
from setrnn.models.card import write_readme
from setrnn.models.folder import CALIBRATION, SavedModel, load_model, save_model
from setrnn.models.hub import open_place, require_folder
from setrnn.systems.closure import Closure
from setrnn.systems.limits import Limits, SeenSets, SetLimits
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.predicting import documents_at_once
from setrnn.systems.registry import choose_rule, find_system
from setrnn.systems.relabelled import RelabelledSystem
from setrnn.systems.rules import LABEL_RULE, RULES, find_rule, rule_for
from setrnn.systems.rules.marginal_rules import NO_THRESHOLDS, Thresholds
from setrnn.systems.rules.plausible import Dependencies
from setrnn.systems.system import System
from setrnn.tagging.trust import Calibration

BATCH = 1024  # the most documents that are searched together
Value = TypeVar("Value")
# Arrays of a model folder.
SEEN_SETS, SEEN_SETS_OFFSETS, TRAINED_TEXTS = "seen_sets", "seen_sets_offsets", "trained_texts"


@dataclass(frozen=True, repr=False)
class TrainedModel:
    """A trained system with its tokenizer and labels, and what was fitted after training."""

    method: str
    config: Config
    encoder: TextEncoder
    labels: LabelVocabulary
    system: System
    notes: dict[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None
    seen_sets: Ragged | None = None  # the label sets of the training documents, for limits
    version: str = ""  # of the folder that it was read from or written to
    rule: str | None = None  # for the measure that it was trained for; None: the method's own
    trained_documents: Hashes | None = None  # None if not known
    hierarchy: Hierarchy | None = None  # the parents of labels; predictions may be closed in it

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Read the model of a folder, or of the Hugging Face hub: see `setrnn.load`."""
        with open_place(folder) as place:
            saved = load_model(place)
        if saved.method not in METHODS:
            raise ModelError(f"{folder} holds a '{saved.method}' model, which this setrnn lacks.")
        if saved.rule is not None and saved.rule not in [*RULES]:  # it may be of any type
            raise ModelError(
                f"{folder} predicts by rule {saved.rule!r:.40}, which this setrnn lacks."
            )
        method, calibration = METHODS[saved.method], None
        if saved.calibration is not None:
            file = f"{Path(folder) / CALIBRATION}"
            calibration = Calibration.from_dict(saved.calibration, len(saved.labels), file)
        try:
            arrays, seen_sets = dict(saved.arrays), None
            if SEEN_SETS in arrays:
                seen_sets = Ragged(arrays.pop(SEEN_SETS), arrays.pop(SEEN_SETS_OFFSETS))
                seen_sets.check_ids(len(saved.labels))
            hashes = arrays.pop(TRAINED_TEXTS, None)
            if hashes is not None and (hashes.dtype != np.uint64 or hashes.ndim != 1):
                raise ValueError("the hashes of the trained documents are damaged.")
            model = cls(
                saved.method,
                saved.config,
                saved.encoder,
                saved.labels,
                find_system(method).from_arrays(arrays, method, saved.config, device),
                dict(saved.notes),
                calibration,
                seen_sets,
                saved.version,
                saved.rule,
                hashes,
                saved.hierarchy,
            )
            for each in (model, *model.members):
                each.system.check_sizes(each.encoder.n_tokens, len(each.labels))
        except ConfigError:  # such as a device that this machine lacks
            raise
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"{folder} holds other weights than its '{saved.method}' model has: "
                f"{_first_line(error)} Train or copy the model again."
            ) from error
        return model

    @property
    def is_calibrated(self) -> bool:
        """Whether the model has calibrated probabilities."""
        return bool(self.fitted.scalings)

    @property
    def fitted(self) -> Calibration:
        """The calibration, or one that changes nothing."""
        return self.calibration or Calibration(0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user of the model has to know: what its training and calibration warned of."""
        found = self.notes.get("warnings")
        texts = [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
        if share := self.fitted.share_trained_on:
            texts.append(
                f"The model was trained on about {share:.0%} of the documents that it was "
                "calibrated on: its probabilities and acceptance promise an accuracy that new "
                "documents do not reach."
            )
        return tuple(texts)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that this model can predict by."""
        has_thresholds = self.fitted.thresholds is not None
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

    def known_limits(self, limits: Limits | None, rule: str | None = None) -> SetLimits:
        """Return limits in this model's label ids; raise ConfigError if no set satisfies them.

        Without a rule, the model chooses among the sets that it finds plausible.
        """
        asked = Limits() if limits is None else limits
        is_closed = self.keeps_closed if asked.closed is None else asked.closed
        if is_closed and self.hierarchy is None:
            raise ConfigError(
                "The model has no hierarchy to keep sets closed in. Train it with --hierarchy FILE."
            )
        closure = self.closure if is_closed else None
        found = asked.for_labels(self.labels, self.seen_sets, closure)
        is_free = rule is not None if asked.free is None else asked.free
        if is_free or not len(self.labels):  # without labels, there is only the empty set
            return found
        return replace(found, plausible=self.fitted.plausible, dependencies=self.dependencies)

    def with_hierarchy(self, parents: Parents | None, *, keeps_closed: bool = True) -> Self:
        """Return the same model with a hierarchy of its labels; None for none.

        Args:
            parents: a file of label,parent, or a dict from labels to their parents.
            keeps_closed: whether predicted sets contain the ancestors of their labels.

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
        return replace(self, hierarchy=hierarchy, version="")

    def with_thresholds(self, thresholds: str | Path | Mapping[str, float]) -> Self:
        """Return the same model with thresholds of your own, which predicts by rule `label-f1`.

        A label is predicted if its p(label | text), as `predict_proba` returns it, reaches its
        threshold. Other labels keep the threshold that the calibration chose, or one half; in a
        mixture, that was chosen for other weights, so give all labels. Sets are no longer accepted
        by this rule, and other rules no longer weigh how plausible a set is.

        Args:
            thresholds: from 0 to 1 by label, or a file of label,threshold.

        Example:
            >>> import setrnn
            >>> tagger = setrnn.train("newsroom", "br").with_thresholds({"sport": 0.2})
            >>> tagger.tag(["The ski race was cancelled because of the storm."])[0].labels
            ('sport', 'weather', 'storm')
        """
        given = thresholds if isinstance(thresholds, Mapping) else read_thresholds(thresholds)
        for label, value in given.items():
            if label not in self.labels.index:
                known = nearest_name(label, self.labels.names)
                raise ConfigError(
                    f"The model has no label '{label}' to give a threshold. {known} A line is "
                    "label,threshold with a decimal point."
                )
            if not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
                raise ConfigError(f"The threshold of '{label}' must be from 0 to 1, got {value}.")
        fitted, system, rule = self.fitted, self.system, rule_for("label_f1")
        before = fitted.thresholds or Thresholds(0.5, np.full(len(self.labels), 0.5))
        labels = np.array([self.labels.index[label] for label in given], dtype=np.int32)
        by_label = before.by_label.copy()
        by_label[labels] = fitted.own_probs(np.array([*given.values()], dtype=np.float64), labels)
        if isinstance(system, MixtureSystem):
            weights = take_from(LABEL_RULE, rule, system.weights.by_rule)
            system = replace(system, weights=replace(system.weights, by_rule=weights))
        calibration = replace(
            fitted,
            thresholds=replace(before, by_label=by_label),
            scalings=take_from(LABEL_RULE, rule, fitted.scalings),
            acceptance={name: each for name, each in fitted.acceptance.items() if name != rule},
            plausible=0.0,  # the thresholds decide alone
        )
        return replace(self, system=system, rule=rule, calibration=calibration, version="")

    @property
    def keeps_closed(self) -> bool:
        """Whether predicted sets contain the ancestors of their labels in the hierarchy."""
        return self.hierarchy is not None and self.hierarchy.keeps_closed

    @cached_property
    def closure(self) -> Closure:
        """The labels above each label, of a model with a hierarchy."""
        assert self.hierarchy is not None
        return Closure.of(self.hierarchy, self.labels)

    @property
    def kept_closure(self) -> Closure | None:
        """The labels above each label, if predicted sets are closed; None if they need not be."""
        return self.closure if self.keeps_closed else None

    @cached_property
    def dependencies(self) -> Dependencies | None:
        """What the label sets of training show without an exception; None if they are not kept."""
        if self.seen_sets is None or not len(self.seen_sets):
            return None
        return Dependencies.of(SeenSets(self.seen_sets.padded(min_width=1), len(self.labels)))

    @property
    def batch_size(self) -> int:
        """The number of documents that are searched together."""
        return documents_at_once(len(self.labels), BATCH)

    @property
    def members(self) -> tuple[Self, ...]:
        """The models that a mixture is made of, without their calibrations; () for others."""
        if not isinstance(self.config, MixtureConfig) or not isinstance(self.system, MixtureSystem):
            return ()
        return tuple(
            self._member(settings, system)
            for settings, system in zip(self.config.members, self.system.systems, strict=True)
        )

    def _member(self, settings: MemberSettings, system: System) -> Self:
        """Return one member of a mixture, with its own tokenizer and order of the labels."""
        labels = self.labels
        if isinstance(system, RelabelledSystem):
            names = tuple(labels.names[place] for place in np.argsort(system.own_ids))
            labels, system = LabelVocabulary(names, (0,) * len(names)), system.own
        encoder = self.encoder.parts[settings.tokenizer]
        return type(self)(settings.method, settings.config, encoder, labels, system)

    def with_beam_width(self, beam_width: int) -> Self:
        """Return the same model with another beam width: a wider search finds more sets, slower.

        Thresholds and calibration stay those of the width they were fitted with.
        """
        if not isinstance(beam_width, int):
            raise ConfigError(f"beam_width must be a whole number, got {beam_width!r}.")
        system = self.system.with_beam_width(beam_width)
        if system is None:
            raise ConfigError(f"'{self.method}' has no search to widen: train a network.")
        config = self.config.with_beam_width(beam_width)
        return replace(self, config=config, system=system, version="")

    def save(self, folder: str | Path) -> None:
        """Write the model folder, whole or not at all."""
        self.saved_to(Path(folder))

    def saved_to(self, folder: Path, way_out: str = "", *, replaced: str | None = None) -> Self:
        """Write the model folder, and return the tagger with the version that is there now.

        The way out is what a message adds if the folder cannot be written. If the folder must have
        the version `replaced` and no longer has it, nothing is written.
        """
        arrays = self.system.arrays()
        if self.seen_sets is not None:
            arrays[SEEN_SETS] = self.seen_sets.values.astype(np.int32)
            arrays[SEEN_SETS_OFFSETS] = np.asarray(self.seen_sets.offsets, dtype=np.int64)
        if self.trained_documents is not None:
            arrays[TRAINED_TEXTS] = self.trained_documents
        readme = ""
        with suppress(ModelError):  # damaged notes must not lose a model
            readme = write_readme(self)
        saved = SavedModel(
            self.method,
            self.config,
            self.encoder,
            self.labels,
            arrays,
            self.notes,
            None if self.calibration is None else self.calibration.as_dict(),
            rule=self.rule,
            readme=readme,
            hierarchy=self.hierarchy,
        )
        version = save_model(folder, saved, way_out, replaced=replaced)
        return replace(self, version=version)

    def save_calibration(self, folder: str | Path) -> Self:
        """Write the calibration into the folder of the tagger.

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
        if not self.version:
            raise ConfigError("The tagger is not in a folder yet. Write all of it: Tagger.save.")
        require_folder(folder, "Calibrating")
        way_out = " The model there is as it was. When it can be written, run setrnn calibrate."
        return self.saved_to(Path(folder), way_out, replaced=self.version)


def _first_line(error: Exception) -> str:
    """Return the first mismatch in one line; torch lists every array on a line of its own."""
    if isinstance(error, KeyError):
        return f"{error} is missing."
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    chosen = lines[1] if len(lines) > 1 and lines[0].endswith(":") else "".join(lines[:1])
    return shorten(chosen.rstrip(". "), 160, placeholder=" ...") + "."


def take_from(one: str, other: str, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return values by rule, of which one rule has that of another, or none as the other."""
    found = {rule: value for rule, value in values.items() if rule != other}
    return found | ({other: found[one]} if one in found else {})
