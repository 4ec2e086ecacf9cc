"""The words that two systems attend to, label by label: the paper's Figure 3.

    python docs/results/attention.py COMPARISON=DATA... [--out FOLDER]

COMPARISON is a folder of `setrnn compare` with records and models of seq2seq-rnn and set-rnn; DATA
is its data. This writes attention-NAME.svg: one document that set-rnn predicts right and
seq2seq-rnn does not. The figure holds words of the document. Without --out it is written here,
and only for data whose licence allows that: arXiv gives its abstracts away (CC0), and descriptions
of Debian packages are free software; Reuters-21578 is for research only.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import setrnn
from setrnn.comparison.records import MODELS, Comparison, Record, load_records, run_name
from setrnn.data.example import Example
from setrnn.data.read import BadRows
from setrnn.data.source import Source

HERE = Path(__file__).resolve().parent
FREE = ("arxiv", "debtags")  # whose words may be given away
FIRST, SECOND = "seq2seq-rnn", "set-rnn"
SIZES, MOST_WORDS_READ = range(2, 6), 200  # of a document whose picture fits a page
MOST_WORDS = 5  # per step
RIGHT, WRONG, FAINT, INK = "#1a7f37", "#b42318", "#6b6b6b", "#222222"
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "attention", "font.size": 9}


@dataclass(frozen=True)
class Reading:
    """One document read by one system, step by step."""

    system: str
    explanation: setrnn.Explanation
    truth: Sequence[str]

    @property
    def missed(self) -> list[str]:
        """The true labels that are not predicted."""
        return [label for label in self.truth if label not in self.explanation.predicted.labels]

    @property
    def verdict(self) -> str:
        """Whether the predicted set is exactly the true set: "right" or "wrong"."""
        return "right" if set(self.explanation.predicted.labels) == set(self.truth) else "wrong"


def main(given: Sequence[str] | None = None) -> None:
    """Write one figure per comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("comparisons", nargs="+", metavar="COMPARISON=DATA")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(given)
    for pair in arguments.comparisons:
        folder, _, data = pair.partition("=")
        comparison = Comparison.load(Path(folder))
        if arguments.out is None and comparison.data not in FREE:
            note(f"{comparison.data}: its words may not be given away. Give --out FOLDER.")
            continue
        examples = list(Source(data).open().require("test").read(BadRows()))
        chosen = choose_document(comparison, load_records(Path(folder), comparison), examples)
        if chosen is None:
            note(f"{comparison.data}: no document that {SECOND} predicts better than {FIRST}.")
            continue
        seed, row = chosen
        readings = []
        for system in (FIRST, SECOND):
            tagger = setrnn.load(Path(folder) / MODELS / run_name(system, seed))
            found = tagger.explain(examples[row].text, examples[row].features, rule="set")
            readings.append(Reading(system, found, examples[row].labels))
        file = (arguments.out or HERE) / f"attention-{comparison.data}.svg"
        file.write_text(draw(readings), encoding="utf-8")
        note(f"Wrote {file}")


def choose_document(
    comparison: Comparison, records: Sequence[Record], examples: Sequence[Example]
) -> tuple[int, int] | None:
    """Choose a document that the second system predicts right, and the first does not.

    Where there is none, choose one on which the second system has the higher F1. Return the seed of
    both runs and the row of the document; None if there is no such document.
    """
    sets = {
        (each.method, each.seed): each.test.predicted["set"]
        for each in records
        if each.method in (FIRST, SECOND) and each.test is not None
    }
    fit = [
        row
        for row, (true, each) in enumerate(zip(comparison.truth, examples, strict=True))
        if len(true) in SIZES and len(each.text.split()) <= MOST_WORDS_READ
    ]
    found = []
    for seed in sorted(seed for method, seed in sets if method == SECOND and (FIRST, seed) in sets):
        for row in fit:
            true = comparison.truth[row]
            theirs, ours = (f1_of(sets[name, seed][row], true) for name in (FIRST, SECOND))
            if ours > theirs:
                found.append((ours, len(true), seed, row))
    *_, seed, row = max(found, key=lambda each: each[:2], default=(None, None))
    return None if seed is None or row is None else (seed, row)


def f1_of(predicted: Sequence[int], true: Sequence[int]) -> float:
    """Return the F1 of a predicted set; the true one has labels."""
    return 2 * len({*predicted} & {*true}) / (len(predicted) + len(true))


def note(text: str) -> None:
    """Write a line for the user."""
    sys.stderr.write(f"{text}\n")


def draw(readings: Sequence[Reading]) -> str:
    """Draw both systems, one above the other; return the SVG."""
    n_steps = max(len(each.explanation.steps) for each in readings)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(max(5.0, 1.35 * n_steps + 0.4), 4.2), layout="constrained")
        for axes, reading in zip(figure.subplots(2, 1), readings, strict=True):
            _draw_reading(axes, reading, n_steps)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _draw_reading(axes: Axes, reading: Reading, n_steps: int) -> None:
    """Draw one column per step: its words, darker with more attention, above its label."""
    missed = f"; missed: {', '.join(reading.missed)}" if reading.missed else ""
    axes.set_title(f"{reading.system}: {reading.verdict}{missed}", loc="left", fontsize=10)
    axes.set(xlim=(-0.5, n_steps - 0.5), ylim=(-0.9, MOST_WORDS - 0.3))
    axes.axis("off")
    axes.axhline(-0.25, color="#bdbdbd", linewidth=0.8)
    for place, step in enumerate(reading.explanation.steps):
        label = "STOP" if step.label is None else step.label
        colour = FAINT if step.label is None else RIGHT if label in reading.truth else WRONG
        shown = label.replace("::", "::\n")
        axes.text(
            place, -0.4, shown, color=colour, ha="center", va="top", fontsize=8, weight="bold"
        )
        words = reading.explanation.words_for(step, MOST_WORDS)
        for row, word in enumerate(words):
            height = MOST_WORDS - 1 - row
            strength = 0.6 + 0.4 * min(1.0, word.weight / max(words[0].weight, 1e-9))
            axes.text(
                place,
                height,
                f"{word.text} {word.weight:.2f}".replace(" 0.", " ."),
                color=INK,
                alpha=strength,
                ha="center",
                va="center",
                fontsize=8,
            )


if __name__ == "__main__":
    main()
