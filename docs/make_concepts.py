"""Draw the figures of docs/sets.md from the numbers of its example.

python docs/make_concepts.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

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
        for label in set(LABELS) - set(key):
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


def main() -> None:
    """Draw both figures."""
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
        figure.savefig(HERE / file, metadata={"Date": None})
        plt.close(figure)
        text = (HERE / file).read_text(encoding="utf-8")
        lines = (line.rstrip() for line in text.splitlines())
        (HERE / file).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
