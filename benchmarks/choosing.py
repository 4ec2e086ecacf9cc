"""Measure what `setrnn data choose` saves: learning curves against random choice.

    OMP_NUM_THREADS=1 python benchmarks/choosing.py DATA... [--part valid] [--json choosing.json]
        [--figure choosing.svg] [--strategies random choose]

DATA holds train, valid and test. A model is trained on 300 random documents of train; then, five
times, a strategy chooses 200 more of 5,000, their true labels are added, and the model is trained
again. Every model is measured on a part that is never chosen from. A seed decides the pool's first
documents and all that is drawn.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

import setrnn
from setrnn.data.formats import BadRows, open_dataset, write_examples
from setrnn.tagging.choosing import weigh_words
from setrnn.tagging.trained_model import BATCH

N_POOL, N_FIRST, N_ADDED, N_ROUNDS, N_MEASURED = 5_000, 300, 200, 5, 2_000
MEASURES = ("instance_f1", "label_f1", "micro_f1")

Examples = Sequence[setrnn.Example]
Floats = npt.NDArray[np.float64]


def choose_random(tagger: setrnn.Tagger, rest: Examples, seed: int) -> list[setrnn.Example]:
    """Choose without the model."""
    order = np.random.default_rng(seed).permutation(len(rest))[:N_ADDED]
    return [rest[row] for row in order]


def choose_both(tagger: setrnn.Tagger, rest: Examples, seed: int) -> list[setrnn.Example]:
    """Choose as `setrnn data choose`: a low expected F1, and words that differ."""
    return [each.example for each in setrnn.choose(tagger, rest, N_ADDED)]


def choose_badge(tagger: setrnn.Tagger, rest: Examples, seed: int) -> list[setrnn.Example]:
    """Choose as BADGE (Ash et al. 2020) would for a linear model on words.

    Learning the set h of a document changes such a model by about (p - h) times its words.
    Documents are drawn as in k-means++, by the distances between these outer products.
    """
    probs, chosen, _ = look_at(tagger, rest)
    changes = sparse.csr_matrix(np.where(np.abs(probs - chosen) < 0.01, 0, probs - chosen))
    words, random = weigh_words([each.text for each in rest]), np.random.default_rng(seed)
    lengths = np.asarray(changes.multiply(changes).sum(axis=1)).ravel()
    distances, rows = lengths.copy(), list[int]()
    for _ in range(N_ADDED):
        distances[rows] = 0
        row = int(random.choice(len(rest), p=distances / distances.sum()))
        rows.append(row)
        products = changes @ changes[row].toarray().ravel() * (words @ words[row].toarray().ravel())
        distances = np.minimum(distances, np.maximum(lengths + lengths[row] - 2 * products, 0))
    return [rest[row] for row in rows]


def choose_most(uncertainty: Callable[..., Floats], differ: bool = False) -> Callable[..., Any]:
    """Return a strategy: the most uncertain ones or, if they shall differ, greedily with words."""

    def choose(tagger: setrnn.Tagger, rest: Examples, seed: int) -> list[setrnn.Example]:
        probs, chosen, p_set = look_at(tagger, rest)
        values = uncertainty(probs, chosen, p_set)
        if not differ:
            return [rest[row] for row in np.argsort(-values, kind="stable")[:N_ADDED]]
        words, nearest = weigh_words([each.text for each in rest]), np.zeros(len(rest))
        rows: list[int] = []
        for _ in range(N_ADDED):
            score = values * (1 - nearest)
            score[rows] = -1
            rows.append(int(score.argmax()))
            nearest = np.maximum(nearest, words @ words[rows[-1]].toarray().ravel())
        return [rest[row] for row in rows]

    return choose


def look_at(tagger: setrnn.Tagger, rest: Examples) -> tuple[Floats, Floats, Floats]:
    """Return p(label), the predicted sets as 0 and 1 (n, L), and p(set) (n,)."""
    predictions, probs = [], []
    for start in range(0, len(rest), BATCH):
        some = [(each.text, each.features) for each in rest[start : start + BATCH]]
        found, marginals = tagger.tag_with_marginals(some)
        predictions += found
        probs.append(marginals.probs.astype(np.float64))
    joined = np.concatenate(probs)
    chosen, labels = np.zeros_like(joined), tagger.labels.encode([p.labels for p in predictions])
    chosen[labels.row_numbers, labels.values] = 1
    return joined, chosen, np.array([each.probability for each in predictions])


def improbable(probs: Floats, chosen: Floats, p_set: Floats) -> Floats:
    """Return 1 - p(predicted set)."""
    return np.asarray(1 - p_set)


def expected_loss(probs: Floats, chosen: Floats, p_set: Floats) -> Floats:
    """Return 1 - the F1 to expect of the predicted set, about: with the mean size of the truth."""
    sizes = np.maximum(chosen.sum(axis=1) + probs.sum(axis=1), 1e-9)
    return np.asarray(1 - 2 * (probs * chosen).sum(axis=1) / sizes)


def entropy(probs: Floats, chosen: Floats, p_set: Floats) -> Floats:
    """Return the sum of the entropies of the labels."""
    p = np.clip(probs, 1e-6, 1 - 1e-6)
    return np.asarray(-(p * np.log(p) + (1 - p) * np.log(1 - p)).sum(axis=1))


STRATEGIES: dict[str, Callable[..., list[setrnn.Example]]] = {
    "random": choose_random,
    "choose": choose_both,
    "badge": choose_badge,
    "improbable": choose_most(improbable),
    "expected loss": choose_most(expected_loss),
    "expected loss, other words": choose_most(expected_loss, differ=True),
    "entropy": choose_most(entropy),
}


def measure_curves(
    strategies: Sequence[str],
    pool: Examples,
    measured: Examples,
    train: Callable[[Examples], setrnn.Tagger],
    seed: int,
) -> dict[str, list[dict[str, float]]]:
    """Return the measures after each round, by strategy; all start from the same model."""
    order = np.random.default_rng(seed).permutation(len(pool))
    first, others = [pool[row] for row in order[:N_FIRST]], [pool[row] for row in order[N_FIRST:]]
    start = train(first)
    curves = {}
    for strategy in strategies:
        tagger, tagged, rest = start, first, others
        rows = [measure(tagger, tagged, measured)]
        for _ in range(N_ROUNDS):
            found = STRATEGIES[strategy](tagger, rest, seed)
            chosen = {each.id for each in found}
            tagged, rest = [*tagged, *found], [each for each in rest if each.id not in chosen]
            tagger = train(tagged)
            rows.append(measure(tagger, tagged, measured))
        print(f"seed {seed}, {strategy}: {rows[-1]['instance_f1']:.4f}", flush=True)
        curves[strategy] = rows
    return curves


def measure(tagger: setrnn.Tagger, tagged: Examples, measured: Examples) -> dict[str, float]:
    """Return the measures of a model, by its own rule."""
    scores = setrnn.evaluate(tagger, measured).as_dict()
    return {"documents": len(tagged), **{name: scores[name] for name in MEASURES}}


def read_part(data: str, name: str, n: int) -> list[setrnn.Example]:
    """Return some documents of a part, drawn once for all seeds."""
    examples = list(open_dataset(data).require(name).read(BadRows()))
    order = np.random.default_rng(0).permutation(len(examples))[:n]
    return [examples[row] for row in order]


def summarise(found: dict[str, dict[str, Any]]) -> str:
    """Return a table: means over rounds and seeds, and when a strategy is as good as random."""
    lines = ["| data | strategy | instance-F1 | label-F1 | micro-F1 | documents needed |"]
    lines.append("|---" * 6 + "|")
    for data, by_strategy in found.items():
        means = {name: mean_curve(runs) for name, runs in by_strategy.items()}
        for name, curve in means.items():
            values = " | ".join(f"{np.mean(curve[each][1:]):.3f}" for each in MEASURES)
            needed = count_needed(curve, means["random"]) if "random" in means else "-"
            lines.append(f"| {data} | {name} | {values} | {needed} |")
    return "\n".join(lines)


def mean_curve(runs: list[list[dict[str, float]]]) -> dict[str, Floats]:
    """Return each column as the mean over the seeds."""
    return {key: np.mean([[row[key] for row in run] for run in runs], axis=0) for key in runs[0][0]}


def count_needed(curve: dict[str, Floats], random: dict[str, Floats]) -> str:
    """Return with how many documents a curve first has the last instance-F1 of random choice."""
    target, values = random["instance_f1"][-1], np.maximum.accumulate(curve["instance_f1"])
    if target > values[-1]:
        return f"more than {int(curve['documents'][-1]):,}"
    return f"{int(np.interp(target, values, curve['documents'])):,}"


def draw_curves(found: dict[str, dict[str, Any]], file: Path) -> None:
    """Draw the mean curves, one panel per dataset and measure."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "setrnn"
    from matplotlib import pyplot as plt

    shown = (("instance_f1", "instance-F1"), ("label_f1", "label-F1"))
    figure, axes = plt.subplots(
        len(shown), len(found), figsize=(4 * len(found), 5.4), squeeze=False, layout="constrained"
    )
    for column, (data, by_strategy) in enumerate(found.items()):
        for row, (measure, title) in enumerate(shown):
            axis = axes[row][column]
            for name, runs in by_strategy.items():
                curve = mean_curve(runs)
                axis.plot(curve["documents"], curve[measure], marker="o", markersize=3, label=name)
            axis.set(title=f"{data}, {title}", xlabel="documents with labels")
            axis.grid(alpha=0.3)
    axes[0][0].legend()
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", help="folders with train, valid and test")
    parser.add_argument("--part", default="valid", help="what to measure on")
    parser.add_argument("--method", default="br")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), choices=STRATEGIES)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:

        def train(tagged: Examples) -> setrnn.Tagger:
            write_examples(tagged, Path(folder, "train.jsonl"))
            return setrnn.train(
                Path(folder, "train.jsonl"), asked.method, cut_valid=False, device="cpu"
            )

        for data in asked.data:
            pool = read_part(data, "train", N_POOL)
            measured = read_part(data, asked.part, N_MEASURED)
            runs = [
                measure_curves(asked.strategies, pool, measured, train, seed)
                for seed in range(asked.seeds)
            ]
            found[Path(data).name] = {
                name: [run[name] for run in runs] for name in asked.strategies
            }
            if asked.json:
                asked.json.write_text(json.dumps({"part": asked.part, "curves": found}, indent=1))
    print(summarise(found))
    if asked.figure:
        draw_curves(found, asked.figure)


if __name__ == "__main__":
    main()
