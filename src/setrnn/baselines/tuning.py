"""The choice of the two penalties, on the valid split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import scipy.sparse as sp

from setrnn.baselines.br import BinaryRelevance
from setrnn.baselines.features import indicator
from setrnn.baselines.linear import TrainingData
from setrnn.baselines.system import training_data
from setrnn.config import ClassicalSettings
from setrnn.data.prepared import Prepared
from setrnn.metrics import Scores, evaluate_sets

# (l1, l2): from none of one to much of both
GRID = ((0.1, 0.03), (0.2, 0.03), (0.1, 0.1), (0.3, 0.1), (0.03, 0.03), (0.1, 0.01), (0.0, 0.3))


def tune_penalties(
    prepared: Prepared,
    settings: ClassicalSettings,
    on_trial: Callable[[float, float, Scores], None] = lambda l1, l2, scores: None,
) -> ClassicalSettings:
    """Return the settings whose BR is best on valid, by the sum of the three F1."""
    tfidf, data = training_data(prepared)
    valid = prepared.split("valid")
    features = tfidf.transform(valid.tokens)
    truth = indicator(valid.labels, data.n_labels)
    best, best_sum = settings, -1.0
    for l1, l2 in GRID:
        trial = replace(settings, l1=l1, l2=l2)
        scores = _scores(data, features, truth, trial)
        on_trial(l1, l2, scores)
        total = scores.instance_f1 + scores.label_f1 + scores.micro_f1
        if total > best_sum:
            best, best_sum = trial, total
    return best


def _scores(
    data: TrainingData,
    features: sp.csr_matrix,
    truth: sp.csr_matrix,
    settings: ClassicalSettings,
) -> Scores:
    model = BinaryRelevance.fit(data, settings)
    return evaluate_sets(truth, sp.csr_matrix(model.linear.logits(features) > 0))
