"""The words that speak for each label and against it, by a network or a classical system."""

# T tokens, R words and features read, S labels of the explained set, N labels shown, L labels

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from setrnn.data.ragged import Ragged
from setrnn.data.text.alignment import AlignedText
from setrnn.model.evidence import LabelEvidence
from setrnn.model.interfaces import Encoding
from setrnn.systems.candidates import Floats32
from setrnn.systems.classical.system import ClassicalSystem
from setrnn.systems.neural import NeuralSystem
from setrnn.systems.system import System
from setrnn.training.wide import weigh_tokens

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger

WORD, FEATURE = "word", "feature"  # kinds of what has a weight
N_LEFT_OUT, MIN_PROBABILITY = 3, 0.001  # labels outside the explained set that are shown


@dataclass(frozen=True)
class LabelWords:
    """How much each word speaks for a label of the explained set, or for one that was left out.

    Of a network, this is its label evidence: what a word adds to the score of the label by itself,
    at every step. Of a classical system, it is what a word adds to the log-odds of the label, and
    what a pair of words adds is divided between the two.
    """

    label: str
    probability: float  # p(label | text)
    is_in_set: bool
    weights: tuple[float, ...]  # of each word and feature read; negative: it speaks against
    elsewhere: float  # what punctuation and special tokens add, if a transformer reads them


@dataclass(frozen=True)
class WeightedWord:
    """A word or feature, with its share of the attention or its weight for a label."""

    text: str
    weight: float
    n_times: int  # how often it was read
    is_unknown: bool
    kind: str = WORD  # or FEATURE

    @property
    def remark(self) -> str:
        """What it is, unless it is a known word."""
        return "unknown" if self.is_unknown else "" if self.kind == WORD else self.kind


def has_label_words(system: System) -> bool:
    """Return whether a system shows which words speak for a label."""
    return isinstance(system, ClassicalSystem) or _find_evidence(system) is not None


def list_label_words(
    tagger: Tagger,
    reading: AlignedText,
    encoding: Encoding | None,
    label_set: Sequence[int],
    probs: Floats32,
) -> tuple[LabelWords, ...]:
    """Return the words for each label of a set, and for the most probable labels outside of it.

    `encoding` is what a network makes of the tokens, `probs` (L,) are those of all labels.
    """
    others = [
        label
        for label in np.argsort(-probs, kind="stable")[: len(label_set) + N_LEFT_OUT].tolist()
        if label not in label_set and probs[label] >= MIN_PROBABILITY
    ]
    chosen = [*label_set, *others[:N_LEFT_OUT]]
    values = _weigh_tokens(tagger.system, reading.tokens, encoding, chosen)
    if values is None:
        return ()
    weights = reading.sum_by_word(values.T).tolist()  # (N, R + 1)
    names = tagger.labels.names
    return tuple(
        LabelWords(names[label], float(probs[label]), label in label_set, tuple(row[:-1]), row[-1])
        for label, row in zip(chosen, weights, strict=True)
    )


def _find_evidence(system: System) -> LabelEvidence | None:
    """Return the part of a network that attends to words for each label; None without one."""
    return system.network.evidence if isinstance(system, NeuralSystem) else None


def _weigh_tokens(
    system: System, tokens: Ragged, encoding: Encoding | None, labels: Sequence[int]
) -> Floats32 | None:
    """Return what each token adds to the score of some labels, (T, N); None if it is not known."""
    if isinstance(system, ClassicalSystem):
        return system.weigh_tokens(tokens, labels)
    evidence = _find_evidence(system)
    if evidence is None or encoding is None:
        return None
    by_word = evidence.by_word(encoding)[0, : len(tokens[0]), list(labels)]
    found: Floats32 = by_word.float().cpu().numpy()
    wide = system.network.wide if isinstance(system, NeuralSystem) else None
    return found if wide is None else found + weigh_tokens(wide, tokens)[:, list(labels)]
