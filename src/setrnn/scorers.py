"""Scorers for scikit-learn: `cross_val_score(..., scoring=setrnn.scorers.label_f1)`.

They take what `SetRNNClassifier.fit` takes: lists of labels, sets, or an indicator matrix. A label
that was not seen in training counts as missed. scikit-learn's own scorers, such as "f1_samples",
read the true labels themselves, and only from an indicator matrix: with lists of labels they fail,
and `cross_val_score` gives nan. `instance_f1` is the same measure for lists.

Example:
    >>> import setrnn
    >>> from sklearn.model_selection import cross_validate
    >>> texts, labels = ["red apple", "green pear"] * 10, [["fruit", "red"], ["fruit"]] * 10
    >>> classifier = setrnn.SetRNNClassifier("br")
    >>> found = cross_validate(classifier, texts, labels, cv=2, scoring=setrnn.scorers.SCORERS)
    >>> found["test_instance_f1"].tolist(), found["test_neg_hamming_loss"].tolist()
    ([1.0, 1.0], [-0.0, -0.0])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from setrnn.metrics import LOWER_IS_BETTER, MEASURES, as_indicator, evaluate_label_sets
from setrnn.tagging.documents import close_truth
from setrnn.tagging.inputs import read_targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from setrnn.tagging.inputs import Targets


@dataclass(frozen=True)
class Scorer:
    """A measure of a classifier that predicts an indicator matrix; more is better."""

    measure: str  # one of `setrnn.metrics.MEASURES`

    @property
    def name(self) -> str:
        """The name, with neg_ if less of the measure is better: scikit-learn's convention."""
        return f"neg_{self.measure}" if self.measure in LOWER_IS_BETTER else self.measure

    def __repr__(self) -> str:
        return f"setrnn.scorers.{self.name}"

    def __call__(self, estimator: Any, texts: Sequence[str], y: Targets) -> float:  # noqa: ANN401
        """Return the score of a fitted estimator, which may be the last step of a pipeline."""
        predicted = as_indicator(estimator.predict(texts), "predict")
        names, n_texts = [str(each) for each in estimator.classes_], predicted.shape[0]
        sets, _ = read_targets(predicted, n_texts, names)
        truth, _ = read_targets(y, n_texts, names)
        last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        if hasattr(last, "tagger_"):
            truth = close_truth(last.tagger_, truth)
        value = float(evaluate_label_sets(truth, sets, names).as_dict()[self.measure])
        return -value if self.measure in LOWER_IS_BETTER else value


instance_f1 = Scorer("instance_f1")
label_f1 = Scorer("label_f1")
micro_f1 = Scorer("micro_f1")
subset_accuracy = Scorer("subset_accuracy")
neg_hamming_loss = Scorer("hamming_loss")
SCORERS = {each.name: each for each in map(Scorer, MEASURES)}  # all, for `cross_validate`
