"""A reward for the set, whatever its order: Seq2Set's policy gradient (Yang et al. 2019).

The model draws a sequence and is rewarded by the F1 of its labels. The reward of its greedy
sequence is the baseline (self-critical training): only what is better is raised.
The likelihood of the labels in descending order of frequency is a part of the objective.
"""

# B documents, S labels of the longest, Q steps of the longest, L labels, V = labels + STOP; rows of
# labels are padded with -1

from __future__ import annotations

import torch
from torch import Tensor

from setrnn.model.interfaces import Decoder, Encoding
from setrnn.objectives import fixed_order
from setrnn.objectives.objective import LabelSets
from setrnn.objectives.own_sequences import draw, emit, take_best
from setrnn.search.set_search import mark_labels

REWARD_WEIGHT = 0.5  # lambda; the rest is that of the likelihood


def objective(decoder: Decoder, encoding: Encoding, label_sets: LabelSets, n_orders: int) -> Tensor:
    """Return (1 - λ) log p(fixed order) + λ (reward - baseline) log p(drawn sequence): (B,).

    The gradient of the second part is, in expectation, that of λ times the expected F1.
    """
    likelihood = fixed_order.OBJECTIVE(decoder, encoding, label_sets, n_orders)
    advantage, log_prob = draw_sequences(decoder, label_sets.expand(encoding), label_sets)
    return (1 - REWARD_WEIGHT) * likelihood + REWARD_WEIGHT * advantage * log_prob


def draw_sequences(
    decoder: Decoder, encoding: Encoding, label_sets: LabelSets
) -> tuple[Tensor, Tensor]:
    """Draw one sequence per document; return its reward minus the baseline, and its log p: (B,).

    A sequence that is cut has no STOP, and log p is that of its labels. The baseline is the reward
    of the greedy sequence, which is cut in the same way.
    """
    drawn, greedy = (emit(each, decoder, encoding, label_sets) for each in (draw, take_best))
    log_probs = decoder.follow(encoding, drawn.labels, drawn.lengths)  # (B, Q, V)
    # Also under `model.repeats`, where labels emitted before have a share, none is drawn.
    log_probs = log_probs.log_softmax(2)
    Q, stop = log_probs.shape[1], decoder.n_labels
    chosen = torch.nn.functional.pad(drawn.labels, (0, 1), value=-1)[:, :Q]
    of_chosen = log_probs.gather(2, chosen.where(chosen >= 0, stop)[..., None])[..., 0]
    log_prob = of_chosen.where(drawn.mark_steps(Q), 0.0).sum(1)
    truth = mark_labels(label_sets.labels, stop)
    reward, baseline = (f1(mark_labels(each.labels, stop), truth) for each in (drawn, greedy))
    return reward - baseline, log_prob


def f1(predicted: Tensor, truth: Tensor) -> Tensor:
    """Return the F1 of sets as marks (B, L): (B,). It is 1 if both are empty, as in `metrics`."""
    n_right, n_both = (predicted & truth).sum(1), predicted.sum(1) + truth.sum(1)
    return (2 * n_right / n_both.clamp(min=1)).where(n_both > 0, 1.0)
