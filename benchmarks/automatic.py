"""Compare `setrnn train` without a method to scikit-learn, `br-support` and the best constant set.

    python benchmarks/cells.py cut CELLS DATA... --test
    python benchmarks/automatic.py CELLS/*... [--minutes 0.5,1,2,5,10] [--json FILE]
        [--systems constant scikit-learn br-support setrnn]

DATA is a folder with train, valid and test. With fewer than 1,500 training documents, what a user
with one file has, systems get only train; others also valid. scikit-learn's 25 lines are tf-idf of
words and word pairs and one logistic regression per label. Its penalty and one threshold per
measure are chosen on valid, or by cross-validation. All are measured on test, each measure by the
rule made for it; for `setrnn`, the row after it has its default predictions. The time is that of
training; of `setrnn`, that of the whole command with an empty cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer

import setrnn
from harness import format_scores, make_parser, print_head, print_row, save
from setrnn.data.example import Example
from setrnn.data.read import BadRows
from setrnn.data.splits import MIN_VALID, VALID_SHARE
from setrnn.metrics import evaluate_label_sets
from setrnn.systems.rules import rule_for

MEASURES = ("instance_f1", "label_f1", "micro_f1", "subset_accuracy")
STRENGTHS = (1.0, 10.0, 100.0)  # C of scikit-learn
THRESHOLDS = np.linspace(0.05, 0.5, 10)
Scores = dict[str, float]
Parts = dict[str, list[Example]]


def score(parts: Parts, part: str, predicted: Sequence[Sequence[str]]) -> Scores:
    names = sorted({label for some in parts.values() for each in some for label in each.labels})
    truth = [each.labels for each in parts[part]]
    found = evaluate_label_sets(truth, predicted, names).as_dict()
    return {measure: float(found[measure]) for measure in MEASURES}


def measure_constant(parts: Parts) -> Scores:
    """Return what the most frequent labels give, as many as are best on train."""
    labels = [label for each in parts["train"] for label in each.labels]
    order = sorted(set(labels), key=labels.count, reverse=True)
    tried = [tuple(order[:n]) for n in range(1, 9)]
    best = max(
        tried,
        key=lambda each: score(parts, "train", [each] * len(parts["train"]))["instance_f1"],
    )
    return score(parts, "test", [best] * len(parts["test"]))


def measure_scikit_learn(parts: Parts) -> Scores:
    train, valid = parts["train"], "valid" if "valid" in parts else "train"
    tfidf = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    binarizer = MultiLabelBinarizer()
    features = tfidf.fit_transform([each.text for each in train])
    targets = binarizer.fit_transform([each.labels for each in train])

    def name(probs: np.ndarray, threshold: float) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = binarizer.inverse_transform((probs >= threshold).astype(int))
        return found

    tried = []
    for strength in STRENGTHS:
        model = OneVsRestClassifier(LogisticRegression(C=strength, solver="liblinear"))
        if valid == "train":
            folds = KFold(5, shuffle=True, random_state=0)
            probs = cross_val_predict(model, features, targets, cv=folds, method="predict_proba")
        else:
            texts = [each.text for each in parts[valid]]
            probs = clone(model).fit(features, targets).predict_proba(tfidf.transform(texts))
        tried += [(score(parts, valid, name(probs, each)), model, each) for each in THRESHOLDS]
    tests = tfidf.transform([each.text for each in parts["test"]])
    found = {}
    for measure in MEASURES:
        _, model, threshold = max(tried, key=lambda each: each[0][measure])
        probs = model.fit(features, targets).predict_proba(tests)
        found[measure] = score(parts, "test", name(probs, threshold))[measure]
    return found


def train_setrnn(folder: Path, parts: Parts, options: Sequence[str]) -> Iterator[Scores]:
    """Yield the measures by their rules with the time, then those of default predictions."""
    data = folder if "valid" in parts else next(folder.glob("train.*"))
    with tempfile.TemporaryDirectory() as place:
        command = ["train", str(data), "--out", f"{place}/model", "--device", "cpu", *options]
        environment = {**os.environ, "SETRNN_CACHE": f"{place}/cache"}
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "setrnn", *command],
            env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        tagger = setrnn.load(f"{place}/model", "cpu")
    rules = {m: rule_for(m) for m in MEASURES if rule_for(m) in tagger.rules}
    test = setrnn.evaluate_rules(tagger, parts["test"], list(dict.fromkeys(rules.values())))
    best = {m: float(test[rule].scores.as_dict()[m]) for m, rule in rules.items()}
    yield {**dict.fromkeys(MEASURES, float("nan")), **best, "seconds": seconds}
    yield score(parts, "test", [e.labels for e in tagger.tag([e.text for e in parts["test"]])])


def read(folder: Path) -> Parts:
    splits = setrnn.Source(str(folder)).open().splits
    parts = {name: list(split.read(BadRows())) for name, split in splits.items()}
    if len(parts["train"]) * VALID_SHARE < MIN_VALID:
        del parts["valid"]
    return parts


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--minutes", default="10")
    parser.add_argument("--systems", nargs="+")
    chosen = parser.parse_args(arguments)
    systems = chosen.systems or ["constant", "scikit-learn", "br-support", "setrnn"]
    others: dict[str, Callable[[Parts], Scores]] = {
        "constant": measure_constant,
        "scikit-learn": measure_scikit_learn,
    }
    rows: dict[str, dict[str, Scores]] = {}
    print_head("data", "system", *MEASURES, "seconds")
    for folder in chosen.data:
        parts, found = read(folder), rows.setdefault(folder.name, {})

        def show(name: str, scores: Scores, found: dict[str, Scores] = found) -> None:
            found[name] = scores
            seconds = f"{scores['seconds']:.0f}" if "seconds" in scores else ""
            cells = format_scores(scores[each] for each in MEASURES).split(" / ")
            print_row(folder.name, name, *cells, seconds)  # noqa: B023 (called at once)
            save(rows, chosen.json)

        for system in systems:
            if system in others:
                start = time.perf_counter()
                show(system, {**others[system](parts), "seconds": time.perf_counter() - start})
            elif system != "setrnn":
                show(system, next(train_setrnn(folder, parts, ["--method", system])))
            else:
                for minutes in chosen.minutes.split(","):
                    made = train_setrnn(folder, parts, ["--budget", minutes])
                    show(f"setrnn, {minutes} min", next(made))
                    show(f"setrnn, {minutes} min, default", next(made))


if __name__ == "__main__":
    main()
