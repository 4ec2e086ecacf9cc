"""The methods as plain data: the systems of the paper's Table 1, and those beyond it.

This table may be imported anywhere: it imports only the errors.
"""

from __future__ import annotations

from dataclasses import dataclass

from setrnn.errors import ConfigError, nearest_name

BEST_SEQUENCE = "set(s*), s* = argmax p(s | x)"
BEST_SET = "argmax over all sets of p(y | x)"


@dataclass(frozen=True)
class Method:
    """One system: how it is trained, how it predicts, and how it is shown.

    A network has an objective and a decoder. A method without an objective is fitted in one step,
    by the class of its name in `setrnn.systems.registry.SYSTEMS`. A mixture is made from models
    that are trained already, by `setrnn.mix`.

    Example:
        >>> from setrnn.methods import METHODS
        >>> METHODS["set-rnn"].objective, METHODS["set-rnn"].rule
        ('set-probability', 'set')
    """

    name: str
    training: str  # what training maximises, in the notation of Table 1
    prediction: str  # what prediction maximises
    colour: str  # in figures
    objective: str | None = None  # of a network; a name in OBJECTIVES
    decoder: str = "rnn"  # of a network; a name in DECODERS
    first_method: str | None = None  # the network that it starts from
    rule: str = "set"  # the prediction rule of the paper; used in validation too
    is_in_paper: bool = True
    relative_cost: float = 8  # of one run, compared with the other systems
    is_mixture: bool = False  # made from trained models
    purpose: str = ""  # what the system is for, in words
    is_later: bool = False  # of other papers, most of them later; in the group "later"

    @property
    def is_network(self) -> bool:
        """Whether the system is a network: trained in epochs, on a device, with checkpoints."""
        return self.objective is not None

    @property
    def family(self) -> str:
        """The kind of system: "network", "classical" or "mixture"."""
        if self.is_mixture:
            return "mixture"
        return "network" if self.is_network else "classical"


# In the order of the paper's tables. Relative costs: newsroom on a CPU, `compare --quick`.
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "br",
            "maximise Σ log p(y_l | x), each label by itself",
            "argmax over all sets of Π p(y_l | x)",
            colour="#8f6300",
            purpose="seconds to train, one linear classifier per label: a first model, or a "
            "baseline to beat.",
            relative_cost=1,
        ),
        Method(
            "br-support",
            "as br",
            "argmax over the sets seen in training of Π p(y_l | x)",
            colour="#e69f00",
            purpose="as br, but predicts only sets seen in training: for few documents, and "
            "for data with few distinct sets.",
            relative_cost=1,
        ),
        Method(
            "pcc",
            "maximise Σ log p(y_l | x, y_1 … y_{l-1}), labels in descending order of frequency",
            "argmax over all sets of Π p(y_l | x, y_1 … y_{l-1}), by beam search",
            colour="#b98a2e",
            purpose="as br, but each label knows those before it: for labels that depend on "
            "each other, in seconds.",
            relative_cost=1,
        ),
        Method(
            "seq2seq-rnn",
            "maximise Σ log p(s | x), labels of s in descending order of frequency",
            BEST_SEQUENCE,
            colour="#009e73",
            purpose="a network that writes the labels as a sequence, frequent ones first: the "
            "paper's baseline.",
            objective="fixed-order",
            rule="sequence",
            relative_cost=6,
        ),
        Method(
            "vinyals-uniform",
            "maximise Σ mean_{s ∈ π(y)} log p(s | x), orders s drawn uniformly",
            BEST_SEQUENCE,
            colour="#8ccdf2",
            purpose="as seq2seq-rnn, trained on random orders of the labels: to compare with "
            "the paper.",
            objective="random-order",
            rule="sequence",
            relative_cost=11,
        ),
        Method(
            "vinyals-sample",
            "as vinyals-uniform, then maximise Σ mean_{s ~ p(s | x), s ∈ π(y)} log p(s | x)",
            BEST_SEQUENCE,
            colour="#56b4e9",
            purpose="as seq2seq-rnn, trained on orders that it draws itself: to compare with "
            "the paper.",
            objective="sampled-order",
            first_method="vinyals-uniform",
            rule="sequence",
            relative_cost=15,
        ),
        Method(
            "vinyals-max",
            "as vinyals-uniform, then maximise Σ max_{s ∈ π(y)} log p(s | x)",
            BEST_SEQUENCE,
            colour="#2f86b8",
            purpose="as seq2seq-rnn, trained on the order that it finds best: to compare with "
            "the paper.",
            objective="best-order",
            first_method="vinyals-uniform",
            rule="sequence",
            relative_cost=15,
        ),
        Method(
            "vinyals-max-direct",
            "maximise Σ max_{s ∈ π(y)} log p(s | x) from the start",
            BEST_SEQUENCE,
            colour="#1f5c80",
            purpose="as vinyals-max, without its start from random orders: to compare with the "
            "paper.",
            objective="best-order",
            rule="sequence",
            relative_cost=13,
        ),
        Method(
            "sgm",
            "as seq2seq-rnn, with a decoder that reads the probabilities of all labels",
            BEST_SEQUENCE,
            colour="#5cc9a7",
            purpose="as seq2seq-rnn, with another decoder: to compare with another published "
            "system.",
            objective="fixed-order",
            decoder="sgm",
            rule="sequence",
            relative_cost=7,
        ),
        Method(
            "set-rnn",
            "maximise Σ log Σ_{s ∈ π(y)} p(s | x)",
            BEST_SET,
            colour="#d55e00",
            purpose="the paper's network: the probability of the whole set, and sequences that "
            "explain it.",
            objective="set-probability",
            relative_cost=15,
        ),
        Method(
            "set-rnn-exact",
            "as set-rnn, exactly: the decoder ignores the order, Σ over subsets instead of orders",
            BEST_SET,
            colour="#0072b2",
            purpose="as set-rnn, with exact probabilities: the network to take if whole sets "
            "must be right.",
            objective="exact-set-probability",
            decoder="order-free",
            is_in_paper=False,
            relative_cost=12,
        ),
        Method(
            "sigmoid",
            "maximise Σ log p(y_l | x), each label by itself, one sigmoid per label",
            BEST_SET,
            colour="#cc79a7",
            purpose="a network with one output per label: the quickest network, good in F1, "
            "also with pretrained encoders.",
            objective="independent-labels",
            decoder="sigmoid",
            is_in_paper=False,
            relative_cost=4,
        ),
        Method(
            "mixture",
            "choose the weights w_i of trained members on valid, per prediction rule",
            "argmax over all sets of Σ w_i p_i(y | x)",
            colour="#6f3fa0",
            purpose="several trained models as one: the best measures, at the time of all its "
            "members.",
            is_in_paper=False,
            relative_cost=2,
            is_mixture=True,
        ),
        # Later papers, as training objectives of the same network (docs/later.md).
        Method(
            "ocd-rnn",
            "maximise Σ Σ_t mean_l log p(l | x, s_1 … s_{t-1}), s ~ p(s | x), l the labels of y "
            "not in s_1 … s_{t-1}, then STOP",
            BEST_SEQUENCE,
            colour="#7a8b00",
            purpose="as seq2seq-rnn, but learns what should follow its own labels, in any order: "
            "to compare with Tsai and Lee (2020).",
            objective="optimal-completion",
            rule="sequence",
            is_in_paper=False,
            is_later=True,
            relative_cost=9,
        ),
        Method(
            "seq2set-rnn",
            "maximise Σ (1 - λ) log p(s | x) + λ E_{z ~ p(z | x)} F1(set(z), y), labels of s in "
            "descending order of frequency, λ = 1/2",
            BEST_SEQUENCE,
            colour="#4f8f3a",
            purpose="as seq2seq-rnn, with a reward for the F1 of the set that it writes: to "
            "compare with Yang et al. (2019).",
            objective="set-reward",
            rule="sequence",
            is_in_paper=False,
            is_later=True,
            relative_cost=12,
        ),
        Method(
            "greedy-order-rnn",
            "maximise Σ log p(s | x), s_t the most probable label of y not in s_1 … s_{t-1}",
            BEST_SEQUENCE,
            colour="#2a9d9d",
            purpose="as seq2seq-rnn, in the order that it predicts the true labels in: to compare "
            "with Chen et al. (2018).",
            objective="greedy-order",
            rule="sequence",
            is_in_paper=False,
            is_later=True,
            relative_cost=8,
        ),
    )
}


def find_method(name: str) -> Method:
    """Return a method by its name.

    Example:
        >>> from setrnn.methods import find_method
        >>> find_method("br").family
        'classical'
    """
    if name not in METHODS:
        raise ConfigError(f"There is no method '{name}'. {nearest_name(name, METHODS)}")
    return METHODS[name]
