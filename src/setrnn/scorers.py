"""Scorers for scikit-learn, such as `cross_val_score(..., scoring=setrnn.scorers.label_f1)`.

`instance_f1`, `label_f1`, `micro_f1`, `subset_accuracy` and `neg_hamming_loss`; `SCORERS` is a dict
of all by name, for `cross_validate` and `GridSearchCV`. The labels are what `SetRNNClassifier.fit`
takes: lists of labels, sets, or an indicator matrix.
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
