"""Scorers for scikit-learn, such as `cross_val_score(..., scoring=setrnn.scorers.label_f1)`.

They are those of `setrnn.tagging.scorers`.
"""

from setrnn.tagging.scorers import (
    SCORERS,
    Scorer,
    instance_f1,
    label_f1,
    micro_f1,
    neg_hamming_loss,
    subset_accuracy,
)

__all__ = [
    "SCORERS",
    "Scorer",
    "instance_f1",
    "label_f1",
    "micro_f1",
    "neg_hamming_loss",
    "subset_accuracy",
]
