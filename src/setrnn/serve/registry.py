"""The served models by name; a model whose folder has changed can be reloaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from setrnn.errors import ConfigError, SetRNNError, nearest_name
from setrnn.models.folder import read_version
from setrnn.models.hub import open_place
from setrnn.progress import log
from setrnn.serve.problems import ProblemError
from setrnn.tagging.tagger import Tagger, load


@dataclass(frozen=True)
class AnsweringModel:
    """The model that answered; the version is a short hash that changes if it is replaced."""

    name: str
    version: str
    method: str


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

    def find_labels(self, prefix: str) -> list[int]:
        """Return the ids of the labels that start with a prefix, or contain a word that does."""
        start = re.compile(rf"(?<![^\W_]){re.escape(prefix.casefold())}")
        names = self.tagger.labels.names
        return [label for label, name in enumerate(names) if start.search(name.casefold())]


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
