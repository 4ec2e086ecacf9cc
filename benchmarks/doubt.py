"""Compare scores of wrong labels: inject errors into label sets, and look for them.

    python benchmarks/doubt.py DATA... [--half 1] [--documents 5000] [--rates 0.05,0.1]
        [--seeds 0,1] [--drawn frequent] [--correct] [--cache FOLDER] [--cleanlab PYTHON]
        [--json FILE]

The documents are drawn from one half of the train part: half 0 is to choose a score, half 1 to
measure it. In a share of them, a label is left out, added or replaced, with equal probability; the
last label of a document is not left out. A new label is drawn in proportion to its frequency
(`frequent`), from all with equal probability (`any`), or it is the first label that the document
lacks of those with the most similar words (`similar`). With `document`, all labels become those of
another document that has none of them. The given sets are as they are: an error
that the data had before counts as none.

The scores: average precision, and the precision among as many documents as there are errors.
cleanlab is measured on the same cross-fitted probabilities, by the Python that has it.

With `--correct`, as many documents as there are errors are reviewed, the most suspicious ones, and
those that are wrong get their own labels again. A `br-support` is trained after that, and measured
on the test part: instance-F1 and label-F1.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np

import setrnn
from harness import format_scores, make_parser, print_head, print_row, save, split_numbers
from setrnn.config import TextSettings
from setrnn.data.cache import prepare
from setrnn.data.example import Example
from setrnn.data.read import BadRows, write_examples
from setrnn.systems.candidates import Floats, Floats32, Ids
from setrnn.systems.cross_fitted import mark_folds
from setrnn.tagging.choose import weigh_words
from setrnn.tagging.doubt import DOUBTING, LEAST_LOG_PROB, Alternatives, Judges, count_votes

NEAREST = 50  # documents that a similar label is taken from
DRAWN = ("frequent", "any", "similar", "document")
BEST = "mean of the posteriors"  # of `setrnn data doubt`
MIXED = "mixture"  # of the systems' p(set)
CLEANLAB = """
import sys, numpy as np
from cleanlab.multilabel_classification import get_label_quality_scores
given, probs = np.load(sys.argv[1]).values()
labels = [[label for label in row if label >= 0] for row in given.tolist()]
scores = {
    "default": get_label_quality_scores(labels, probs),
    "minimum": get_label_quality_scores(labels, probs, aggregator_kwargs={"method": np.min}),
}
np.savez(sys.argv[2], **scores)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--half", type=int, default=1, choices=(0, 1))
    parser.add_argument("--documents", type=int, default=5_000)
    parser.add_argument("--rates", default="0.05,0.1", help="shares of documents with an error")
    parser.add_argument("--seeds", type=split_numbers, default=[0, 1])
    parser.add_argument("--drawn", default="frequent", choices=DRAWN)
    parser.add_argument("--correct", action="store_true", help="train after corrections")
    parser.add_argument("--cache", type=Path, help="keeps the scores of finished runs")
    parser.add_argument("--cleanlab", help="a Python that has cleanlab")
    chosen = parser.parse_args(arguments)
    if chosen.cache:
        chosen.cache.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    columns = []
    for data in chosen.data:
        for rate in map(float, chosen.rates.split(",")):
            columns.append(f"{data.name}, {rate:.0%}")
            for seed in chosen.seeds:
                run = (data, chosen.half, chosen.documents, rate, seed, chosen.drawn)
                scores = cached(run, chosen.cache, chosen.cleanlab)
                is_wrong = scores.pop("is_wrong") > 0
                if chosen.correct:
                    for name, each in train_after_corrections(run, scores).items():
                        found.setdefault(name, {}).setdefault(columns[-1], []).append(each)
                    continue
                for name, each in scores.items():
                    measures = average_precision(each, is_wrong), precision(each, is_wrong)
                    found.setdefault(name, {}).setdefault(columns[-1], []).append(measures)
    table = {
        name: {
            column: [fmean(values) for values in zip(*cells, strict=True)]
            for column, cells in row.items()
        }
        for name, row in found.items()
    }
    measures = "instance-F1 / label-F1, test" if chosen.correct else "average precision / precision"
    print_head(measures, *columns, "mean")
    for name, row in sorted(table.items(), key=lambda item: -mean_of(item[1])[0]):
        print_row(name, *map(format_scores, row.values()), format_scores(mean_of(row)))
    save(table, chosen.json)


def mean_of(row: dict[str, list[float]]) -> list[float]:
    return [fmean(values) for values in zip(*row.values(), strict=True)]


def cached(run: tuple, cache: Path | None, cleanlab: str | None) -> dict[str, Floats]:
    """Return the scores of a run, the same as before if they are kept."""
    name = "-".join(str(each) for each in (run[0].name, *run[1:]))
    file = None if cache is None else cache / f"{name}.npz"
    if file is None or not file.exists():
        scores = measure(run, cleanlab)
        if file is None:
            return scores
        np.savez(file, **scores)
    with np.load(file) as kept:
        return dict(kept)


def train_after_corrections(
    run: tuple, scores: dict[str, Floats]
) -> dict[str, tuple[float, float]]:
    """Return the measures of a model that is trained after a review by some of the scores."""
    clean, noisy, is_wrong = draw(*run)
    reviewed = {"no document reviewed": [], "all documents reviewed": range(len(clean))}
    for name in (BEST, f"{MIXED}: least self-confidence"):
        reviewed[name] = np.argsort(-scores[name], kind="stable")[: is_wrong.sum()]
    test = list(setrnn.open_dataset(str(run[0])).require("test").read(BadRows()))
    found = {}
    for name, rows in reviewed.items():
        corrected = list(noisy)
        for row in rows:
            corrected[row] = clean[row]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "train.jsonl"
            write_examples(corrected, file)
            tagger = setrnn.train(file, "br-support", cut_valid=False)
            measured = setrnn.evaluate(tagger, test, "f1")
        found[name] = measured.scores.instance_f1, measured.scores.label_f1
    return found


def draw(
    data: Path, half: int, n: int, rate: float, seed: int, drawn: str
) -> tuple[list[Example], list[Example], np.ndarray]:
    """Return documents, the same with errors in some, and which have one."""
    examples = list(setrnn.open_dataset(str(data)).require("train").read(BadRows()))
    rows = np.random.default_rng(0).permutation(len(examples))
    rows = rows[: len(rows) // 2] if half == 0 else rows[len(rows) // 2 :]
    random = np.random.default_rng([half, seed])
    clean = [examples[row] for row in random.permutation(rows)[:n]]
    return clean, *inject(clean, rate, drawn, random)


def measure(run: tuple, cleanlab: str | None) -> dict[str, Floats]:
    """Return which documents are wrong, and how suspicious they are by each score."""
    _, noisy, is_wrong = draw(*run)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "data"
        prepared = prepare({"train": lambda: noisy}, place, "data", TextSettings(), {})
        judges = Judges.train(prepared, DOUBTING, 5)
        scores: dict[str, Floats] = {"is_wrong": is_wrong.astype(float)}
        probs = np.zeros((len(noisy), len(prepared.labels)), dtype=np.float32)
        for batch in judges.find_alternatives(np.arange(len(noisy))):
            probs[batch.rows] = batch.marginals.mean(axis=0)
            tokens = mark_folds(
                prepared.split("train").tokens.take(batch.rows), judges.folds[batch.rows]
            )
            best = [each.candidates(tokens, 1).log_probs[:, 0] for each in judges.systems]
            for name, each in score(batch, best).items():
                scores.setdefault(name, np.zeros(len(noisy)))[batch.rows] = each
        if cleanlab:
            given = prepared.split("train").labels.padded(min_width=1)
            scores |= score_by_cleanlab(given, probs, cleanlab)
    return scores


def inject(
    clean: Sequence[Example], rate: float, drawn: str, random: np.random.Generator
) -> tuple[list[Example], np.ndarray]:
    """Return the documents with errors in some, and which have one."""
    counts = Counter(label for each in clean for label in each.labels)
    names, weights = list(counts), np.array([*counts.values()], dtype=float)
    shares = weights / weights.sum() if drawn == "frequent" else None
    words = weigh_words([each.text for each in clean]) if drawn == "similar" else None
    is_wrong = np.zeros(len(clean), dtype=bool)
    is_wrong[random.permutation(len(clean))[: round(rate * len(clean))]] = True
    noisy = list(clean)
    for row in np.flatnonzero(is_wrong):
        labels = [*clean[row].labels]
        if drawn == "document":
            others = (clean[other].labels for other in random.permutation(len(clean)))
            new = next(each for each in others if not {*each} & {*labels})
            noisy[row] = replace(clean[row], labels=new)
            continue
        kinds = ["out", "in", "other"] if len(labels) > 1 else ["in", "other"]
        kind = random.choice(kinds if labels else ["in"])
        new = [str(each) for each in random.choice(names, 100, p=shares)]
        if words is not None:
            similar = (words @ words[row].T).toarray().ravel()
            near = np.argsort(-similar, kind="stable")[:NEAREST]
            new = [label for other in near for label in clean[other].labels] + new
        if kind != "in":
            labels.pop(random.integers(len(labels)))
        if kind != "out":
            labels.append(next(each for each in new if each not in clean[row].labels))
        noisy[row] = replace(clean[row], labels=tuple(labels))
    return noisy, is_wrong


def score(batch: Alternatives, best: Sequence[Floats]) -> dict[str, Floats]:
    """Return how suspicious documents are, (n,), by each score and system.

    `best` has log p of the most probable set of each document, (n,), by each system.
    """
    sizes = (batch.sets >= 0).sum(axis=2)
    is_flip = np.abs(sizes - sizes[:, :1]) == 1  # one label more or less
    is_set = batch.log_prior > -np.inf
    is_given = mark_given(batch)
    mixed = np.logaddexp.reduce(batch.votes, axis=0) - np.log(len(batch.votes))
    systems = dict(zip(DOUBTING, batch.votes, strict=True)) | {MIXED: mixed}
    marginals = dict(zip(DOUBTING, batch.marginals, strict=True))
    marginals[MIXED] = batch.marginals.mean(axis=0)
    found = {BEST: 1 - count_votes(batch.votes, batch.log_prior)[:, 0]}
    joint = [DOUBTING.index("br"), DOUBTING.index("pcc")]
    found["mean of br and pcc: posterior"] = (
        1 - count_votes(batch.votes[joint], batch.log_prior)[:, 0]
    )
    for name, votes in systems.items():
        votes = np.maximum(votes, LEAST_LOG_PROB)
        ratio = np.where(is_set, votes - votes[:, :1], -np.inf)
        probs = marginals[name]
        least = np.where(is_given, probs, 1 - probs).min(axis=1)
        found[f"{name}: posterior"] = 1 - count_votes(votes[None], batch.log_prior)[:, 0]
        found[f"{name}: least p(label given the others)"] = np.where(is_flip, ratio, -np.inf).max(1)
        found[f"{name}: least self-confidence"] = 1 - least
        if name != MIXED:
            log_best = np.maximum(best[DOUBTING.index(name)], votes.max(axis=1))
            found[f"{name}: log p(given) - log p(best)"] = log_best - votes[:, 0]
    return found


def mark_given(batch: Alternatives) -> np.ndarray:
    """Mark the given labels: (n, L)."""
    n, L = batch.marginals.shape[1:]
    is_given = np.zeros((n, L + 1), dtype=bool)
    np.put_along_axis(is_given, batch.sets[:, 0], True, axis=1)
    return is_given[:, :-1]


def score_by_cleanlab(given: Ids, probs: Floats32, python: str) -> dict[str, Floats]:
    """Return how suspicious documents are by cleanlab, from the mean of the systems' p(label)."""
    with tempfile.TemporaryDirectory() as folder:
        place, out = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(place, given=given, probs=probs)
        subprocess.run([python, "-c", CLEANLAB, place, out], check=True)
        with np.load(out) as scores:
            return {f"cleanlab, {name}": 1 - each for name, each in scores.items()}


def average_precision(scores: Floats, is_wrong: np.ndarray) -> float:
    hits = is_wrong[np.argsort(-scores, kind="stable")]
    return float((hits.cumsum() / np.arange(1, len(hits) + 1))[hits].mean())


def precision(scores: Floats, is_wrong: np.ndarray) -> float:
    return float(is_wrong[np.argsort(-scores, kind="stable")[: is_wrong.sum()]].mean())


if __name__ == "__main__":
    main()
