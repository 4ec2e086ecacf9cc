"""The gain of predicting the set instead of the sequence, by the number of labels per document.

    python docs/results/cardinality.py

It reads the stored comparisons, docs/results/NAME and docs/results/paper/NAME, and the paper's own
Table 3 from docs/reproduce.md, and writes cardinality.md and cardinality.svg here.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from setrnn.methods import METHODS

HERE = Path(__file__).resolve().parent
PAPERS_PAGE = HERE.parent / "reproduce.md"
MEASURES = ("instance-F1", "label-F1")
PAPER = "the paper"  # where the numbers are from: the preset, or the paper itself
COLOURS = {"default": "#1b6ca8", "paper": "#b3541e", PAPER: "#6b6b6b"}
SHIFTS = {"paper": 0.12}  # to the right, beside the point of the same data
SHOWN = ("vinyals-uniform", "set-rnn")  # in the figure


@dataclass(frozen=True)
class Gain:
    """The score by rule `set` minus that by rule `sequence`; the paper gives no interval."""

    data: str
    source: str
    n_labels: float  # per document: of test, or in the paper's table of datasets
    measure: str
    system: str
    gain: float
    low: float | None = None
    high: float | None = None
    p: float | None = None

    @property
    def text(self) -> str:
        """The gain and its interval, in thousandths, as in a cell."""
        text = _thousandths(self.gain)
        if self.low is not None and self.high is not None:
            text += f" ({_thousandths(self.low)} to {_thousandths(self.high)})"
        return f"**{text}**" if self.p is not None and self.p < 0.05 else text


def main() -> None:
    """Write both files."""
    gains = list_gains()
    (HERE / "cardinality.md").write_text(write_tables(gains), encoding="utf-8")
    (HERE / "cardinality.svg").write_text(draw(gains), encoding="utf-8")


def list_gains() -> list[Gain]:
    """List the gains of the stored comparisons, then those of the paper."""
    return [*list_stored(), *list_papers()]


def list_stored(root: Path = HERE) -> Iterator[Gain]:
    """Yield the gains of the stored comparisons."""
    for preset, folder in (("default", root), ("paper", root / "paper")):
        for file in sorted(folder.glob("*/tables/rules.csv")):
            (data,) = _read(file.with_name("data.csv"))
            for row in _read(file):
                for measure in MEASURES:
                    column = f"{measure}, sequence → set"
                    numbers = [row[column], *(row[f"{column} {each}"] for each in ("low", "high"))]
                    yield Gain(
                        data["data"],
                        preset,
                        float(data["labels per test document"]),
                        measure,
                        row["system"],
                        *map(float, numbers),
                        p=float(row[f"{column} p"]),
                    )


def list_papers() -> Iterator[Gain]:
    """Yield the gains of the paper's Table 3."""
    text = PAPERS_PAGE.read_text(encoding="utf-8")
    sizes = re.findall(r"^\| (\S+) \| [\d,]+ \| [\d,]+ \| ([\d.]+) \|", text, re.MULTILINE)
    n_labels = {name: float(size) for name, size in sizes}
    for measure in MEASURES:
        start = text.index(f"| {measure} | Slashdot |")
        header, _, *lines = text[start:].partition("\n\n")[0].splitlines()
        names = [each.strip() for each in header.strip("|").split("|")][1:]
        for line in lines:
            first, *cells = line.strip("|").split("|")
            system = first.split("`")[1]
            for name, cell in zip(names, cells, strict=True):
                before, after = map(float, cell.split("->"))
                gain = round(after - before, 3)
                yield Gain(name, PAPER, n_labels[name], measure, system, gain)


def write_tables(gains: list[Gain]) -> str:
    """Write one table per measure: a column per dataset, by its labels per document."""
    parts = [
        "# The gain of predicting the set, by the number of labels\n\nScore by rule `set` minus "
        "score by rule `sequence`, in thousandths, with its 95% interval; **bold**: p < .05, after "
        "Holm's correction over all tests of a comparison's table of rules. Columns are ordered by "
        "the mean number of labels per document. Written by `python docs/results/cardinality.py`."
    ]
    for measure in MEASURES:
        of_measure = [each for each in gains if each.measure == measure]
        parts.append(f"## {measure}\n\n{_write_table(of_measure)}")
    parts.append(
        "![The gain of vinyals-uniform and set-rnn by labels per document](cardinality.svg)"
    )
    return "\n\n".join(parts) + "\n"


def _write_table(gains: list[Gain]) -> str:
    columns = sorted({(each.n_labels, each.data, each.source) for each in gains})
    cells = {(each.system, each.data, each.source): each.text for each in gains}
    heads = [f"{data}, {_write_source(source)} ({n:.2f})" for n, data, source in columns]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for system in (name for name in METHODS if name in {each.system for each in gains}):
        row = [cells.get((system, data, source), "-") for _, data, source in columns]
        lines.append(f"| `{system}` | " + " | ".join(row) + " |")
    return "\n".join(lines)


def draw(gains: list[Gain]) -> str:
    """Draw the gains in instance-F1 of two systems against the labels per document."""
    import matplotlib

    matplotlib.use("svg")
    settings = {"svg.fonttype": "none", "svg.hashsalt": "cardinality", "font.size": 9}
    with matplotlib.rc_context(settings):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 3.0), layout="constrained")
        for axes, system in zip(figure.subplots(1, 2, sharey=True), SHOWN, strict=True):
            axes.axhline(0, color="#bdbdbd", linewidth=0.8)
            for source, colour in COLOURS.items():
                found = [
                    each
                    for each in gains
                    if (each.system, each.source, each.measure) == (system, source, MEASURES[0])
                ]
                label = _write_source(source)
                shift = SHIFTS.get(source, 0.0)
                axes.plot(
                    [each.n_labels + shift for each in found],
                    [each.gain for each in found],
                    "s" if source == PAPER else "o",
                    color=colour,
                    markerfacecolor="white" if source == PAPER else colour,
                    label=label if found else None,
                )
                for each in found:
                    if each.low is not None:
                        axes.plot([each.n_labels + shift] * 2, [each.low, each.high], color=colour)
                    if source == "paper":  # the name is below the point of preset default
                        continue
                    is_ours = each.low is not None
                    axes.annotate(
                        each.data,
                        (each.n_labels, each.low if is_ours else each.gain),
                        xytext=(0, -3 if is_ours else 6),
                        textcoords="offset points",
                        horizontalalignment="center",
                        verticalalignment="top" if is_ours else "bottom",
                        fontsize=7,
                        color=colour,
                    )
            axes.set_title(system, fontsize=10)
            axes.set_xlabel("labels per document")
            axes.spines[["top", "right"]].set_visible(False)
            axes.margins(x=0.15, y=0.1)
        figure.axes[0].set_ylabel("instance-F1: set minus sequence")
        figure.axes[0].legend(fontsize=7, frameon=False)
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _write_source(source: str) -> str:
    return source if source == PAPER else f"preset {source}"


def _thousandths(value: float) -> str:
    return f"{round(1000 * value):+d}".replace("+0", "0")


def _read(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


if __name__ == "__main__":
    main()
