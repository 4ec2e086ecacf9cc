"""Choose label sets from a peer's scores: by one threshold, and by the rules of setrnn.

    python benchmarks/peers/choose_sets.py DATA SCORES...

DATA and SCORES (ROW.npz beside ROW.json) are files of `exchange.py`. Everything is chosen on valid;
test is only predicted. For each measure, the folder `predictions` beside ROW.npz gets two files
for `setrnn compare --add`:

    ROW.threshold-RULE.jsonl    one threshold for all labels: the peer's own, or the best on valid
    ROW.rule-RULE.jsonl         the rule of setrnn for this measure: f1, label-f1, micro-f1, set

The rules need p(label | document). Scores that are not probabilities get one logistic curve (two
numbers for all labels), fitted on valid. Labels are taken to be independent, as in `br`; if no
training document is without labels, the empty set is left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from exchange import Data, read_data
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from setrnn.metrics import evaluate_sets, is_better
from setrnn.systems.candidates import Floats32, Ids, Ints, SetCandidates, list_columns, pack_labels
from setrnn.systems.limits import no_limits
from setrnn.systems.products import most_probable_products, product_log_probs
from setrnn.systems.rules import MANY_SETS, RULES, rule_for
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.marginal_rules import Thresholds, choose_thresholds

MEASURES = ("instance_f1", "label_f1", "micro_f1", "subset_accuracy")
# Thresholds: the shares of all pairs of a document and a label that are not predicted.
SHARES = 1 - np.geomspace(0.2, 0.0005, 80)
LEAST = 1e-6  # p(label) and 1 - p(label) are at least this
PREDICTIONS = "predictions"


@dataclass(frozen=True)
class Chosen:
    """The sets that were chosen for the test documents."""

    name: str  # of the row in a comparison
    label_sets: Ids  # (n, S), padded with -1
    probability: np.ndarray | None = None  # (n,)


def choose(row: str, scores: dict[str, np.ndarray], about: dict, data: Data) -> Iterator[Chosen]:
    """Choose sets for test by one threshold and by the rule of each measure.

    `scores` are those of valid and test, `about` is the content of ROW.json.
    """
    targets = data.targets(data.valid)
    for measure in MEASURES:
        threshold = best_threshold(scores["valid"], targets, measure, about["own_threshold"])
        name = f"{row}.threshold-{rule_for(measure)}"
        yield Chosen(name, list_columns(scores["test"] >= threshold))
    valid, test = to_log_odds(scores["valid"], scores["test"], targets, about["is_probability"])
    empty_shift = -np.inf if all(data.train.label_sets) else 0.0
    thresholds = choose_thresholds(
        find_candidates(valid, empty_shift).marginals(valid.shape[1]), targets.astype(bool)
    )
    for measure in MEASURES:
        rule = rule_for(measure)
        sets, log_probs = choose_by_rule(test, rule, thresholds, empty_shift)
        yield Chosen(f"{row}.rule-{rule}", sets, np.exp(np.minimum(log_probs, 0)))


def best_threshold(
    scores: np.ndarray, targets: np.ndarray, measure: str, own: float | None
) -> float:
    """Return the threshold on scores (n, L) with the best measure; the peer's own wins ties."""
    tried = np.unique(np.quantile(scores, SHARES)).tolist()
    best, best_value = None, 0.0
    for threshold in ([] if own is None else [own]) + tried:
        value = evaluate_sets(targets, (scores >= threshold).astype(np.int8)).as_dict()[measure]
        if best is None or is_better(value, best_value, measure):
            best, best_value = threshold, value
    assert best is not None
    return best


def to_log_odds(
    valid: np.ndarray, test: np.ndarray, targets: np.ndarray, is_probability: bool
) -> tuple[Floats32, Floats32]:
    """Return the log-odds of the labels; scores get one logistic curve, fitted on valid."""
    if valid.min() >= 0 and valid.max() <= 1:
        valid, test = (logit(np.clip(each, LEAST, 1 - LEAST)) for each in (valid, test))
    if not is_probability:
        fitted = LogisticRegression(C=1e6).fit(valid.reshape(-1, 1), targets.ravel())
        slope, start = float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
        valid, test = start + slope * valid, start + slope * test
    bound = float(logit(1 - LEAST))
    valid, test = (np.clip(each, -bound, bound).astype(np.float32) for each in (valid, test))
    return valid, test


def find_candidates(log_odds: Floats32, empty_shift: float) -> SetCandidates:
    """Return the most probable sets of independent labels; a shift of -inf leaves out the empty."""
    return most_probable_products(log_odds, MANY_SETS, empty_shift=empty_shift)


def choose_by_rule(
    log_odds: Floats32, rule: str, thresholds: Thresholds, empty_shift: float
) -> tuple[Ids, np.ndarray]:
    """Choose a set per document (n, L) by a rule of setrnn: (n, S), and its log-probability."""

    def set_log_probs(rows: Ints, sets: Ids) -> np.ndarray:
        return product_log_probs(log_odds[rows], sets, empty_shift)

    candidates = find_candidates(log_odds, empty_shift)
    choice = Choice(candidates, no_limits(log_odds.shape[1]), set_log_probs, thresholds)
    labels = pack_labels(RULES[rule].choose(choice))
    return labels, choice.log_probs_of(labels[:, None])[:, 0]


def write_predictions(chosen: Chosen, labels: list[str], ids: list[str], folder: Path) -> Path:
    """Write one file for `setrnn compare --add`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{chosen.name}.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for number, (document, row) in enumerate(zip(ids, chosen.label_sets, strict=True)):
            values = {"id": document, "labels": [labels[label] for label in row if label >= 0]}
            if chosen.probability is not None:
                values["probability"] = float(chosen.probability[number])
            lines.write(json.dumps(values, ensure_ascii=False) + "\n")
    return file


def choose_and_write(data: Data, scores_file: Path) -> list[Path]:
    """Choose from one file of scores, and write the predictions beside it."""
    about = json.loads(scores_file.with_suffix(".json").read_text(encoding="utf-8"))
    with np.load(scores_file) as arrays:
        scores = {name: arrays[name] for name in ("valid", "test")}
    with (data.folder / "test.jsonl").open(encoding="utf-8") as lines:
        ids = [json.loads(line)["id"] for line in lines]
    folder = scores_file.parent / PREDICTIONS
    return [
        write_predictions(chosen, about["labels"], ids, folder)
        for chosen in choose(about["row"], scores, about, data)
    ]


if __name__ == "__main__":
    documents = read_data(Path(sys.argv[1]))
    for given in map(Path, sys.argv[2:]):
        for written in choose_and_write(documents, given):
            print(written)
