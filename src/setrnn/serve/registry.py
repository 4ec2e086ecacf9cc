"""The served models: what they answer, and how they are found by name, loaded and replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setrnn.data.example import KnownLabels
from setrnn.data.source import list_columns
from setrnn.errors import ConfigError, SetRNNError, nearest_name
from setrnn.models.folder import read_version
from setrnn.models.hub import open_place
from setrnn.progress import log
from setrnn.serve.problems import ProblemError
from setrnn.serve.schema import (
    AnsweringModel,
    CompleteAnswer,
    ExplainAnswer,
    LabelsAnswer,
    ListedLabel,
    Marginal,
    ModelCard,
    TaggedText,
)
from setrnn.systems.limits import Limits
from setrnn.tagging.explain import why_not_explained
from setrnn.tagging.inputs import Document
from setrnn.tagging.tagger import Tagger, load

MAX_LISTED = 50  # labels with their probabilities
MIN_MARGINAL = 0.001  # of the labels that are listed


@dataclass(frozen=True, eq=False)
class ServedModel:
    """One version of a model; a request keeps the version it started with."""

    name: str
    version: str  # a short hash of the model and its calibration
    tagger: Tagger

    @property
    def answering(self) -> AnsweringModel:
        """The model as an answer names it."""
        return AnsweringModel(self.name, self.version, self.tagger.method)

    def describe(self) -> ModelCard:
        """Return what a client has to know of the model."""
        tagger = self.tagger
        calibration, of_labels = tagger.fitted, tagger.fitted.label_acceptance
        data = tagger.notes.get("data")
        return ModelCard(
            **vars(self.answering),
            n_labels=len(tagger.labels),
            rules=tagger.rules,
            own_rule=tagger.rule_or_own(None),
            can_explain=why_not_explained(tagger) is None,
            is_calibrated=bool(calibration.scalings),
            accepts=dict(calibration.acceptance),
            label_target=of_labels.target if of_labels else None,
            data=None if data is None else str(data),
            keeps_closed=None if tagger.hierarchy is None else tagger.keeps_closed,
            warnings=tagger.warnings,
            columns=list_columns(tagger.notes.get("columns")),
        )

    def list_labels(self, prefix: str, limit: int) -> LabelsAnswer:
        """List the labels that start with a prefix or contain a word that does, by their counts."""
        tagger, start = self.tagger, re.compile(rf"(?<![^\W_]){re.escape(prefix.casefold())}")
        names, counts = tagger.labels.names, tagger.labels.counts
        found = [label for label, name in enumerate(names) if start.search(name.casefold())]
        parents_of = tagger.closure.parents if tagger.hierarchy is not None else lambda label: ()
        listed = [
            ListedLabel(
                names[label], int(counts[label]), tuple(names[each] for each in parents_of(label))
            )
            for label in sorted(found, key=lambda label: -counts[label])[:limit]
        ]
        return LabelsAnswer(listed, len(found))

    def tag(
        self,
        documents: Sequence[Document],
        rule: str | None,
        limits: Limits,
        top: int = 1,
        calibrated: bool = True,
        with_marginals: bool = False,
    ) -> list[TaggedText]:
        """Predict the set of each document."""
        if not with_marginals:
            found = self.tagger.tag_stream(documents, rule, top, limits, calibrated=calibrated)
            return [TaggedText(**vars(each)) for each in found]
        predictions, marginals = self.tagger.tag_with_marginals(
            documents, rule, top, limits, calibrated=calibrated
        )
        rows = zip(predictions, marginals.probs, marginals.missing_mass, strict=True)
        return [
            TaggedText(
                **vars(each),
                marginals=self._list_marginals(probs, calibrated),
                missing_mass=float(missing),
            )
            for each, probs, missing in rows
        ]

    def _list_marginals(self, probs: npt.NDArray[np.float32], calibrated: bool) -> list[Marginal]:
        names, acceptance = self.tagger.labels.names, self.tagger.fitted.label_acceptance

        def accepted_from(label: int) -> float | None:
            # Thresholds are of calibrated probabilities.
            return acceptance.threshold_of(label) if acceptance and calibrated else None

        return [
            Marginal(names[label], float(probs[label]), accepted_from(label))
            for label in np.argsort(-probs, kind="stable")[:MAX_LISTED]
            if probs[label] >= MIN_MARGINAL
        ]

    def complete(
        self, documents: Sequence[tuple[str, Sequence[str], KnownLabels]], top: int
    ) -> list[CompleteAnswer]:
        """Predict the set of each document with known labels."""
        texts, features, known = zip(*documents, strict=True)
        return [
            CompleteAnswer(
                **vars(replace(each, suggestions=each.suggestions[:MAX_LISTED])),
                model=self.answering,
            )
            for each in self.tagger.complete_stream(zip(texts, features, strict=True), known, top)
        ]

    def explain(
        self,
        documents: Sequence[Document],
        rule: str | None,
        labels: Sequence[str] | None,
        limits: Limits,
        top: int,
    ) -> list[ExplainAnswer]:
        """Explain documents one by one."""
        found = [
            self.tagger.explain(text, features, top, rule, labels, limits)
            for text, features in documents
        ]
        return [
            ExplainAnswer(**vars(each), model=self.answering, notes=each.reading_notes())
            for each in found
        ]


class Registry:
    """The served models by name, from a folder each; the first is the default."""

    def __init__(self, folders: Mapping[str, Path], device: str = "auto") -> None:
        self.folders, self.device = dict(folders), device
        self._models: dict[str, ServedModel] = {}

    @classmethod
    def of(cls, *models: ServedModel) -> Registry:
        """Return a registry of models that are already loaded."""
        registry = cls({model.name: Path() for model in models})
        registry._models = {model.name: model for model in models}
        return registry

    @property
    def models(self) -> dict[str, ServedModel]:
        """The current models by name, the default first; raises a 503 while they are loaded."""
        if len(self._models) < len(self.folders):
            raise ProblemError("not-ready", "The models are being loaded.")
        return self._models

    def find(self, name: str | None) -> ServedModel:
        """Return a model by name; None is the default."""
        models = self.models
        chosen = next(iter(models)) if name is None else name
        if chosen not in models:
            raise ConfigError(f"No model has this name. {nearest_name(chosen, models)}")
        return models[chosen]

    def load(self) -> None:
        """Load all models; raise the first error."""
        for name in self.folders:
            self._models[name] = self._load(name)

    def reload(self) -> None:
        """Load the models whose folders have changed; log one line per model.

        If a folder cannot be loaded, its model stays.
        """
        for name, before in list(self._models.items()):
            try:
                with open_place(self.folders[name]) as place:
                    if read_version(place) == before.version:
                        log.info("%s: unchanged (%s).", name, before.version)
                        continue
                self._models[name] = now = self._load(name)
                log.info("%s: %s replaces %s.", name, now.version, before.version)
            except Exception as error:  # noqa: BLE001 (the old model stays, whatever it is)
                is_known = isinstance(error, SetRNNError | OSError)
                reason = error if is_known else f"{type(error).__name__}."
                log.info("%s: not loaded, %s stays. %s", name, before.version, reason)

    def _load(self, name: str) -> ServedModel:
        tagger = load(self.folders[name], self.device)
        tagger.tag([""])  # the first prediction imports for up to a second
        return ServedModel(name, tagger.version, tagger)
