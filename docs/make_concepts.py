"""Draw the figures of docs/sets.md and docs/rules.md from the numbers of one example.

python docs/make_concepts.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

HERE = Path(__file__).parent
COLOURS = {"storm": "#96500f", "other": "#9fb3c8", "best": "#1f6f8b", "pruned": "#a33"}
LABELS = ("sport", "storm", "cup")
WIDTH = 2  # of the search that is drawn


def example() -> dict[str, Any]:
    """Run the code of the page, and return the names it defines."""
    page = (HERE / "sets.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"print": lambda *_: None}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    return names


def draw_orders(names: dict[str, Any], axes: Axes) -> None:
    """Draw a bar per set, with a part for each of its orders."""
    probability, sets = names["probability"], names["sets"]
    ranked = sorted(sets, key=sets.get)
    for height, labels in enumerate(ranked):
        left = 0.0
        for order in sorted(permutations(sorted(labels)), key=probability, reverse=True):
            p = probability(order)
            colour = COLOURS["best"] if labels == ranked[-1] else COLOURS["other"]
            colour = COLOURS["storm"] if order == ("storm",) else colour
            axes.barh(height, p, left=left, color=colour, edgecolor="white", linewidth=2)
            if p > 0.04:
                name = " → ".join(order) or "STOP"
                axes.text(
                    left + p / 2,
                    height,
                    f"{name}\n{p:.3f}",
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    color="black" if colour == COLOURS["other"] else "white",
                )
            left += p
        axes.text(left + 0.006, height, f"{left:.3f}", va="center", fontsize=9)
    axes.set_yticks(range(len(ranked)), ["{" + ", ".join(sorted(each)) + "}" for each in ranked])
    axes.set_xlim(0, 0.37)
    axes.set_xlabel("probability of the set: the sum of its orders")
    axes.spines[["top", "right"]].set_visible(False)


def score_sets(names: dict[str, Any]) -> dict[str, dict[frozenset[str], float]]:
    """Return what each rule compares, of every set: the largest value is predicted."""
    probability, sets = names["probability"], names["sets"]

    def f1(true: frozenset[str], found: frozenset[str]) -> float:
        return 2 * len(true & found) / (len(true) + len(found)) if true or found else 1.0

    return {
        "sequence": {each: max(map(probability, permutations(each))) for each in sets},
        "set": dict(sets),
        "f1": {each: sum(p * f1(true, each) for true, p in sets.items()) for each in sets},
        "hamming": {
            each: sum(p * (1 - len(true ^ each) / len(LABELS)) for true, p in sets.items())
            for each in sets
        },
    }


def draw_rules(names: dict[str, Any], panels: Iterable[Axes]) -> None:
    """Draw a panel per rule: what it compares, and the set that it predicts."""
    ranked = sorted(names["sets"], key=names["sets"].get)
    titles = {
        "sequence": "p(best order)",
        "set": "p(set)",
        "f1": "expected F1",
        "hamming": "1 - expected hamming loss",
    }
    for (rule, values), axes in zip(score_sets(names).items(), panels, strict=True):
        best = max(values, key=values.__getitem__)
        for height, each in enumerate(ranked):
            colour = COLOURS["best"] if each == best else COLOURS["other"]
            axes.barh(height, values[each], color=colour)
            weight = "bold" if each == best else "normal"
            axes.text(values[each], height, f" {values[each]:.3f}", va="center", weight=weight)
        axes.set_title(f"{rule}\n{titles[rule]}", fontsize=9)
        axes.set_yticks(range(len(ranked)), [f"{{{', '.join(sorted(each))}}}" for each in ranked])
        axes.set_xlim(0, max(values.values()) * 1.45)
        axes.set_xticks([])
        axes.spines[["top", "right", "bottom"]].set_visible(False)


def masses(
    steps: dict[tuple[str, ...], dict[str, float]],
) -> Iterator[tuple[tuple[str, ...], float, bool]]:
    """List the subsets with the probability that reaches each, and whether the search keeps it."""
    reached: dict[tuple[str, ...], float] = {(): 1.0}
    for size in range(len(LABELS) + 1):
        level = {key: value for key, value in reached.items() if len(key) == size}
        kept = sorted(level, key=lambda key: -level[key])[:WIDTH]
        for key, mass in level.items():
            yield key, mass, key in kept
            for label, p in steps[key].items() if key in kept else ():
                if label != "STOP":
                    after = tuple(sorted((*key, label)))
                    reached[after] = reached.get(after, 0.0) + mass * p


def draw_lattice(names: dict[str, Any], axes: Axes) -> None:
    """Draw the lattice of subsets, with what a search of width 2 reaches and prunes."""
    steps = names["STEPS"]
    found = {key: (mass, is_kept) for key, mass, is_kept in masses(steps)}
    place = {}
    for size in range(len(LABELS) + 1):
        level = [tuple(sorted(each)) for each in combinations(LABELS, size)]
        for number, key in enumerate(level):
            place[key] = (size * 1.5, (len(level) - 1) / 2 - number)
    for key, (x, y) in place.items():
        mass, is_kept = found.get(key, (0.0, False))
        for label in (each for each in LABELS if each not in key):
            after = place[tuple(sorted((*key, label)))]
            line = {"color": "#667", "linewidth": 1.2} if is_kept else {"color": "#ccc", "ls": ":"}
            axes.plot((x, after[0]), (y, after[1]), zorder=1, **line)
            if is_kept:
                part = 0.33
                at = (x + part * (after[0] - x), y + part * (after[1] - y))
                p = steps[key][label]
                axes.text(
                    *at,
                    f"{p:g}",
                    fontsize=7,
                    ha="center",
                    va="center",
                    zorder=2,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                )
        pruned = "" if is_kept else "\npruned"
        box = {
            "boxstyle": "round,pad=0.4",
            "facecolor": "#e8f1f5" if is_kept else "white",
            "edgecolor": COLOURS["best"] if is_kept else COLOURS["pruned"],
            "linestyle": "-" if is_kept else "--",
        }
        text = "{" + ", ".join(key) + "}" + f"\n{mass:.3g}{pruned}"
        axes.text(x, y, text, ha="center", va="center", fontsize=8, bbox=box, zorder=3)
    axes.set_xlim(-0.5, 5.1)
    axes.set_ylim(-1.5, 1.5)
    axes.axis("off")


def save(figure: Figure, file: Path) -> None:
    """Write a figure, without what differs between runs."""
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
    lines = (line.rstrip() for line in file.read_text(encoding="utf-8").splitlines())
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Draw the figures."""
    mpl.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "setrnn", "font.family": "sans-serif"}
    )
    names = example()
    for draw, file, size in (
        (draw_orders, "sets-orders.svg", (8, 3.6)),
        (draw_lattice, "sets-lattice.svg", (8, 3.4)),
    ):
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        draw(names, axes)
        save(figure, HERE / file)
    with mpl.rc_context({"font.size": 8}):
        figure, panels = plt.subplots(1, 4, figsize=(8, 2.8), sharey=True, layout="constrained")
        draw_rules(names, panels)
        save(figure, HERE / "rules.svg")


if __name__ == "__main__":
    main()
