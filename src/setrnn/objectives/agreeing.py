"""The probability of all sets that agree with what is known, for documents with unknown labels.

A set agrees if it contains all given labels and no absent one. Each objective has its own log p of
a set; what is maximised is log of the sum of p(set) w(set) over the sets that agree, where the
weight of a set is 1 unless labels are forgotten (`setrnn.data.labels`).

- Independent labels: exactly, label by label.
- All others: over the sets that a search for completions finds, each by the objective itself.
"""

# B documents, N sets, G sets of a document, S labels of the largest set, L labels

from __future__ import annotations

from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from setrnn.data.batches import send
from setrnn.model.dropout import without_dropout
from setrnn.model.interfaces import Decoder, Encoding, Independent
from setrnn.objectives import exact_set
from setrnn.objectives.objective import LabelSets, Objective
from setrnn.search.set_search import find_agreeing_sets, mark_labels
from setrnn.search.subset_sums import NOTHING

MOST_ADDED = 8  # labels that are added to those given


def sum_agreeing(
    objective: Objective,
    decoder: Any,  # noqa: ANN401 (of the kind that the objective trains)
    encoding: Encoding,
    label_sets: LabelSets,
    log_weights: Tensor,
    n_orders: int,
) -> Tensor:
    """Return the value of each document, in any order: documents without known labels have none.

    Args:
        objective: gives log p of sets.
        decoder: is trained.
        encoding: the documents, (B,).
        label_sets: their given labels.
        log_weights: the log of what each label multiplies the weight of a set by, (B, L): 0 for
            given and unknown labels, -inf for absent ones.
        n_orders: the orders that the objective scores, and the sets that are summed.
    """
    if decoder.emits == "labels":
        return sum_independent(decoder, encoding, label_sets, log_weights)
    is_open = log_weights > -torch.inf
    n_open = is_open.sum(1).cpu()
    is_whole = n_open == label_sets.sizes
    # The sum over all sets is 1, whatever the model: nothing is learned.
    is_nothing = (label_sets.sizes == 0) & (log_weights == 0).all(1).cpu()
    values = []
    whole = is_whole.nonzero()[:, 0]
    if len(whole):
        rows = send(whole, log_weights.device)
        of_whole = LabelSets(label_sets.labels[rows], label_sets.sizes[whole], rows)
        values.append(objective(decoder, encoding, of_whole, n_orders))
    others = (~is_whole & ~is_nothing).nonzero()[:, 0]
    if len(others):
        rows = send(others, log_weights.device)
        some, given, weights = encoding.rows(rows), label_sets.labels[rows], log_weights[rows]
        values.append(sum_found(objective, decoder, some, given, weights, n_orders))
    if not values:
        return encoding.summary.sum() * torch.zeros(1, device=log_weights.device)
    return torch.cat(values)


def sum_independent(
    decoder: Independent, encoding: Encoding, label_sets: LabelSets, log_weights: Tensor
) -> Tensor:
    """Return the log of the sum over all sets that agree, label by label: (B,).

    A label that is neither given nor absent has log(1 - p + w p).
    """
    logits = decoder.logits(encoding)  # (B, L)
    is_given = mark_labels(label_sets.labels, decoder.n_labels)
    is_open = ~is_given & (log_weights > -torch.inf)
    weighted = nn.functional.softplus(logits + log_weights.where(is_open, 0.0))
    of_open = weighted - nn.functional.softplus(logits)
    of_known = nn.functional.logsigmoid(logits.where(is_given, -logits))
    return torch.where(is_open, of_open, of_known).sum(1)


def sum_found(
    objective: Objective,
    decoder: Decoder,
    encoding: Encoding,
    given: Tensor,
    log_weights: Tensor,
    n_orders: int,
) -> Tensor:
    """Sum over the sets that a search for completions finds, a lower bound: (B,)."""
    # With as many orders of each set, as many in all. An exact sum has no orders.
    n_sets = n_orders if objective is exact_set.objective else max(round(sqrt(n_orders)), 2)
    most = given.shape[1] + MOST_ADDED
    with without_dropout(decoder):
        sets, is_set = find_agreeing_sets(decoder, encoding, given, log_weights, n_orders, most)
    sets, is_set = sets[:, :n_sets], is_set[:, :n_sets]
    document, rank = is_set.nonzero(as_tuple=True)  # (N,)
    labels = sets[document, rank]  # (N, S)
    sizes = (labels >= 0).sum(1).cpu()
    chosen = LabelSets(labels[:, : max(int(sizes.max()), 1)], sizes, document)
    of_sets = objective(decoder, encoding, chosen, max(n_orders // n_sets, 2))
    padded = nn.functional.pad(log_weights, (0, 1))[document]  # padding has the weight 1
    weights = padded.gather(1, labels.where(labels >= 0, log_weights.shape[1])).sum(1)
    none = of_sets.new_full(is_set.shape, NOTHING)
    return none.index_put((document, rank), of_sets + weights).logsumexp(1)
