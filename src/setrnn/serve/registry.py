"""The models that are served, by name; a folder replaced on disk is loaded anew."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from setrnn.data.folders import file_hash
from setrnn.data.model_folder import CONFIG
from setrnn.errors import ConfigError, ModelError, SetRNNError, nearest_name
from setrnn.systems.rules import RULES
from setrnn.tagging.tagger import Tagger, load

VERSION_LENGTH = 12
TRIES = 3
_WORD_START = re.compile(r"(?<![^\W_])[^\W_]")


class NotReadyError(Exception):
    """The models are still being loaded."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model as it was when a request began: requests under way keep theirs."""

    name: str
    version: str  # a short hash of its config.json, which has those of its other files
    tagger: Tagger

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """The rules it can predict by."""
        return tuple(rule for rule in RULES if self._predicts_by(rule))

    def _predicts_by(self, rule: str) -> bool:
        try:
            self.tagger.rule_or_own(rule)
        except ConfigError:
            return False
        return True

    def labels_with(self, prefix: str) -> list[int]:
        """Return the ids of the labels that begin with a prefix, or have a word that does."""
        wanted = prefix.casefold()
        return [
            label
            for label, beginnings in enumerate(self._beginnings)
            if any(each.startswith(wanted) for each in beginnings)
        ]

    @cached_property
    def _beginnings(self) -> list[tuple[str, ...]]:
        """Each label from its start, and from each of its words on."""
        folded = [name.casefold() for name in self.tagger.labels.names]
        return [
            (name, *(name[match.start() :] for match in _WORD_START.finditer(name)))
            for name in folded
        ]


class Registry:
    """The models by name; the first is the default."""

    def __init__(self, folders: Mapping[str, Path], device: str = "auto") -> None:
        self.folders, self.device = dict(folders), device
        self._models: dict[str, ServedModel] = {}

    @classmethod
    def of(cls, *models: ServedModel) -> Registry:
        """Serve models that are loaded already."""
        registry = cls({})
        registry._models = {model.name: model for model in models}
        return registry

    @property
    def names(self) -> list[str]:
        """The names, the default one first."""
        return list(self.folders or self._models)

    @property
    def is_ready(self) -> bool:
        """Whether all models are loaded."""
        return len(self._models) == len(self.names)

    @property
    def models(self) -> list[ServedModel]:
        """The models as they are now."""
        if not self.is_ready:
            raise NotReadyError
        return [self._models[name] for name in self.names]

    def find(self, name: str | None) -> ServedModel:
        """Return a model by its name, or the default one."""
        models = {model.name: model for model in self.models}
        if name is None:
            return next(iter(models.values()))
        if name not in models:
            raise ConfigError(f"There is no model of this name. {nearest_name(name, models)}")
        return models[name]

    def load(self) -> None:
        """Load all models, or raise what is wrong with the first that cannot be."""
        for name, folder in self.folders.items():
            self._models[name] = load_served(name, folder, self.device)

    def reload(self) -> list[str]:
        """Load the models whose folder has changed; say in a line what became of each.

        A folder that cannot be loaded leaves the model that was there.
        """
        return [self._reload(name, folder) for name, folder in self.folders.items()]

    def _reload(self, name: str, folder: Path) -> str:
        before = self._models[name]
        try:
            if version_of(folder) == before.version:
                return f"{name}: unchanged ({before.version})."
            now = load_served(name, folder, self.device)
        except (SetRNNError, OSError) as error:
            return f"{name}: not loaded, {before.version} stays. {error}"
        except Exception as error:  # noqa: BLE001 (the old model must go on)
            return f"{name}: not loaded, {before.version} stays. {type(error).__name__}."
        self._models[name] = now
        return f"{name}: {now.version} in the place of {before.version}."


def load_served(name: str, folder: Path, device: str = "auto") -> ServedModel:
    """Load a model folder with its version, also while it is being replaced."""
    for _ in range(TRIES):
        tagger = None
        before = version_of(folder)
        try:
            tagger = load(folder, device)
        except ModelError:
            if version_of(folder) == before:
                raise
        if tagger is not None and version_of(folder) == before:
            tagger.tag([""])  # what the first prediction brings in takes up to a second
            return ServedModel(name, before, tagger)
    raise ModelError(f"{folder} is being replaced again and again. Try later.")


def version_of(folder: Path) -> str:
    """Return a short hash of what a model folder says it holds."""
    file = folder / CONFIG
    if not file.is_file():
        load(folder)  # says what is wrong, or puts back what a kill left half replaced
    return file_hash(file)[:VERSION_LENGTH]
