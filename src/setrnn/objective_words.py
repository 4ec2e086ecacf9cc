"""The systems in words, as in the paper's Table 1; what reads them need not load any system."""

from __future__ import annotations

from dataclasses import dataclass

BEST_SEQUENCE = "set(s*), s* = argmax p(s | x)"
BEST_SET = "argmax over all sets of p(y | x)"


@dataclass(frozen=True)
class Words:
    """What a system maximises in training, and what in prediction."""

    training: str
    prediction: str


# In the order in which systems are listed everywhere.
OBJECTIVE_WORDS: dict[str, Words] = {
    "br": Words(
        "maximise Σ log p(y_l | x), each label by itself",
        "argmax over all sets of Π p(y_l | x)",
    ),
    "br-support": Words(
        "as br",
        "argmax over the sets seen in training of Π p(y_l | x)",
    ),
    "pcc": Words(
        "maximise Σ log p(y_l | x, y_1 … y_{l-1}), labels by falling frequency",
        "argmax over all sets of Π p(y_l | x, y_1 … y_{l-1}), by beam search",
    ),
    "seq2seq-rnn": Words(
        "maximise Σ log p(s | x), s by falling frequency",
        BEST_SEQUENCE,
    ),
    "vinyals-uniform": Words(
        "maximise Σ Σ_{s ∈ π(y)} log p(s | x)",
        BEST_SEQUENCE,
    ),
    "vinyals-sample": Words(
        "as vinyals-uniform, then maximise Σ Σ_{s ∈ π(y)} p(s | x) log p(s | x)",
        BEST_SEQUENCE,
    ),
    "vinyals-max": Words(
        "as vinyals-uniform, then maximise Σ max_{s ∈ π(y)} log p(s | x)",
        BEST_SEQUENCE,
    ),
    "vinyals-max-direct": Words(
        "maximise Σ max_{s ∈ π(y)} log p(s | x) from the start",
        BEST_SEQUENCE,
    ),
    "sgm": Words(
        "as seq2seq-rnn, with a decoder that sees all labels by their probability",
        BEST_SEQUENCE,
    ),
    "set-rnn": Words(
        "maximise Σ log Σ_{s ∈ π(y)} p(s | x)",
        BEST_SET,
    ),
    # Beyond the paper.
    "set-rnn-exact": Words(
        "as set-rnn, exactly: the decoder forgets the order, Σ over subsets instead of orders",
        BEST_SET,
    ),
    "sigmoid": Words(
        "maximise Σ log p(y_l | x), each label by itself, one sigmoid on the encoder",
        BEST_SET,
    ),
}
