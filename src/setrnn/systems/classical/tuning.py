"""The choice of the two penalties, on the valid split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import scipy.sparse as sp

from setrnn.config import ClassicalSettings
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.metrics import Scores, evaluate_sets
from setrnn.systems.classical.features import indicator
from setrnn.systems.classical.linear import ClassicalModel, TrainingData
from setrnn.systems.classical.system import training_data

# (l1, l2), around what is good on most data; weaker ones take far longer to fit for little
GRID = ((0.1, 0.03), (0.2, 0.03), (0.3, 0.05), (0.05, 0.03), (0.1, 0.1), (0.0, 0.1))


def tune_penalties(
    model: type[ClassicalModel],
    prepared: Prepared,
    settings: ClassicalSettings,
    on_trial: Callable[[float, float, Scores], None] = lambda l1, l2, scores: None,
) -> ClassicalSettings:
    """Return the settings that are best on valid, by the sum of the three F1."""
    tfidf, data = training_data(prepared, settings)
    valid = prepared.split("valid")
    features = tfidf.transform(valid.tokens)
    truth = indicator(valid.labels, data.n_labels)
    best, best_sum = settings, -1.0
    for l1, l2 in GRID:
        trial = replace(settings, l1=l1, l2=l2)
        scores = evaluate_sets(truth, _predicted(model, data, features, trial))
        on_trial(l1, l2, scores)
        total = scores.instance_f1 + scores.label_f1 + scores.micro_f1
        if total > best_sum:
            best, best_sum = trial, total
    return best


def _predicted(
    model: type[ClassicalModel],
    data: TrainingData,
    features: sp.csr_matrix,
    settings: ClassicalSettings,
) -> sp.csr_matrix:
    fitted = model.fit(data, settings, lambda n_labels: None)
    rows = fitted.candidates(features, 1).labels[:, 0]
    return indicator(Ragged.from_lists([row[row >= 0].tolist() for row in rows]), data.n_labels)
