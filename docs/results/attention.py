"""The words that two systems attend to, label by label: the paper's Figure 3.

    python docs/results/attention.py COMPARISON... [--out FOLDER]

COMPARISON is a folder of `setrnn compare` with records of seq2seq-rnn and set-rnn. This writes
attention-NAME.svg: one document that set-rnn predicts right and seq2seq-rnn does not. The
figure holds words of the document. Without --out it is written here,
and only for data whose licence allows that: arXiv gives its abstracts away (CC0), and descriptions
of Debian packages are free software; Reuters-21578 is for research only.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from setrnn.comparison.records import Comparison, Record, load_records

HERE = Path(__file__).resolve().parent
FREE = ("arxiv", "debtags")  # whose words may be given away
MOST_WORDS = 5  # per step
RIGHT, WRONG, FAINT, INK = "#1a7f37", "#b42318", "#6b6b6b", "#222222"
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "attention", "font.size": 9}


@dataclass(frozen=True)
class Reading:
    """One document read by one system, step by step."""

    system: str
    case: Mapping[str, Any]  # an explained document of a record

    @property
    def predicted(self) -> set[str]:
        """The labels of all steps."""
        return {step["label"] for step in self.case["steps"] if step["label"] is not None}

    @property
    def missed(self) -> list[str]:
        """The true labels that are not predicted."""
        return [label for label in self.case["truth"] if label not in self.predicted]

    @property
    def verdict(self) -> str:
        """Whether the predicted set is exactly the true set: "right" or "wrong"."""
        return "right" if self.predicted == set(self.case["truth"]) else "wrong"

    @property
    def f1(self) -> float:
        """The F1 of the predicted set."""
        truth = set(self.case["truth"])
        n_both = len(self.predicted) + len(truth)
        return 2 * len(self.predicted & truth) / n_both if n_both else 1.0


@dataclass(frozen=True)
class PairCase:
    """One document read by two systems (Figure 3)."""

    first: Reading
    second: Reading


def main(given: Sequence[str] | None = None) -> None:
    """Write one figure per comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparisons", nargs="+", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(given)
    for folder in arguments.comparisons:
        comparison = Comparison.load(folder)
        records = load_records(folder, comparison)
        pair = choose_pair_case(records)
        if arguments.out is None and comparison.data not in FREE:
            note(f"{comparison.data}: its words may not be given away. Give --out FOLDER.")
        elif not any(record.cases for record in records):
            note(f"{folder} has no explained documents: archives are kept without them.")
        elif pair is None:
            note(f"{comparison.data}: no document that set-rnn predicts better than seq2seq-rnn.")
        else:
            file = (arguments.out or HERE) / f"attention-{comparison.data}.svg"
            file.write_text(draw(pair), encoding="utf-8")
            note(f"Wrote {file}")


def choose_pair_case(
    records: Sequence[Record], first: str = "seq2seq-rnn", second: str = "set-rnn"
) -> PairCase | None:
    """Choose a document that the second system predicts right, and the first does not.

    Where there is none, choose one on which the second system has the higher F1. Both runs have the
    same seed.
    """
    theirs = {
        (record.seed, case["document"]): Reading(first, case)
        for record in records
        if record.method == first
        for case in record.cases
    }
    pairs = [
        PairCase(theirs[record.seed, case["document"]], Reading(second, case))
        for record in records
        if record.method == second
        for case in record.cases
        if (record.seed, case["document"]) in theirs
    ]
    return max(
        (pair for pair in pairs if pair.second.f1 > pair.first.f1),
        key=lambda pair: (pair.second.f1, len(pair.second.case["truth"])),
        default=None,
    )


def note(text: str) -> None:
    """Write a line for the user."""
    sys.stderr.write(f"{text}\n")


def draw(pair: PairCase) -> str:
    """Draw both systems, one above the other; return the SVG."""
    n_steps = max(len(each.case["steps"]) for each in (pair.first, pair.second))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(max(5.0, 1.35 * n_steps + 0.4), 4.2), layout="constrained")
        for axes, reading in zip(figure.subplots(2, 1), (pair.first, pair.second), strict=True):
            _draw_reading(axes, reading, n_steps)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _draw_reading(axes: Axes, reading: Reading, n_steps: int) -> None:
    """Draw one column per step: its words, darker with more attention, above its label."""
    truth = set(reading.case["truth"])
    missed = f"; missed: {', '.join(reading.missed)}" if reading.missed else ""
    axes.set_title(f"{reading.system}: {reading.verdict}{missed}", loc="left", fontsize=10)
    axes.set(xlim=(-0.5, n_steps - 0.5), ylim=(-0.9, MOST_WORDS - 0.3))
    axes.axis("off")
    axes.axhline(-0.25, color="#bdbdbd", linewidth=0.8)
    for place, step in enumerate(reading.case["steps"]):
        label = "STOP" if step["label"] is None else str(step["label"])
        colour = FAINT if step["label"] is None else RIGHT if label in truth else WRONG
        shown = label.replace("::", "::\n")
        axes.text(
            place, -0.4, shown, color=colour, ha="center", va="top", fontsize=8, weight="bold"
        )
        words = list(step["attended"])[:MOST_WORDS]
        for row, (word, share) in enumerate(words):
            height = MOST_WORDS - 1 - row
            strength = 0.6 + 0.4 * min(1.0, share / max(words[0][1], 1e-9))
            axes.text(
                place,
                height,
                f"{word} {share:.2f}".replace(" 0.", " ."),
                color=INK,
                alpha=strength,
                ha="center",
                va="center",
                fontsize=8,
            )


if __name__ == "__main__":
    main()
