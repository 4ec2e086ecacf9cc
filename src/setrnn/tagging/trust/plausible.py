"""How much log p(set) counts in default predictions: as much as costs little on new documents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from setrnn.data.ragged import Ragged
from setrnn.metrics import LOWER_IS_BETTER, evaluate_label_sets
from setrnn.systems.limits import PLAUSIBLE
from setrnn.systems.predicting import BatchSearch
from setrnn.systems.rules import find_rule
from setrnn.tagging.prediction import name_labels
from setrnn.tagging.tagger import Tagger

# With the first, a set that is half as probable must be better by .02: benchmarks/plausible.py.
WEIGHTS = (0.03, 0.02, 0.01, 0.005, 0.002, 0.001)
MAX_LOSS = 0.01  # of the measure of the rule, against the free choice


def choose_weight(tagger: Tagger, tokens: Ragged, label_sets: Sequence[Collection[str]]) -> float:
    """Return the largest weight that costs little of the measure of the model's own rule.

    Args:
        tagger: the model, with thresholds if its rule needs some.
        tokens: documents that the model was not trained on.
        label_sets: their true sets.
    """
    how = tagger.resolve()
    rule = find_rule(how.rule)
    if rule.rate is None or rule.measure is None:  # the rule prefers the most probable set
        return PLAUSIBLE
    measure, sign = rule.measure, -1 if rule.measure in LOWER_IS_BETTER else 1
    starts = range(0, len(tokens), tagger.batch_size)
    parts = [tokens.rows(at, min(at + tagger.batch_size, len(tokens))) for at in starts]
    searches = [BatchSearch(tagger.system, part, {rule.source: how.n_sets}) for part in parts]

    def score(weight: float) -> float:
        limits = replace(how.limits, plausible=weight)
        found = [each.choose(how.rule, limits, tagger.thresholds) for each in searches]
        named = [name_labels(tagger.labels, row) for each in found for row in each.labels]
        scores = evaluate_label_sets(label_sets, named, tagger.labels.names)
        return sign * float(getattr(scores, measure))

    least = score(0.0) - MAX_LOSS
    return next((weight for weight in WEIGHTS if score(weight) >= least), WEIGHTS[-1])
