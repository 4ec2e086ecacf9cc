"""Every label by itself: the sigmoid method, as BR does (the usual binary cross-entropy)."""

# B documents, N sets, S labels of the largest set, L labels

from __future__ import annotations

from torch import Tensor, nn

from setrnn.model.interfaces import Encoding, Independent
from setrnn.objectives.objective import LabelSets


def objective(
    decoder: Independent, encoding: Encoding, label_sets: LabelSets, n_orders: int
) -> Tensor:
    """Return log p of each set, the sum over all labels of log p(y_l | x): (N,)."""
    logits = decoder.logits(encoding)  # (B, L)
    if label_sets.documents is not None:
        logits = logits.index_select(0, label_sets.documents)  # (N, L)
    padded = nn.functional.pad(logits, (0, 1))  # padding has log-odds 0
    labels = label_sets.labels
    of_set = padded.gather(1, labels.where(labels >= 0, decoder.n_labels)).sum(1)
    return nn.functional.logsigmoid(-logits).sum(1) + of_set
