"""Labels that follow each other, against labels that go together: the paper's second case study.

    python docs/results/adjacency.py COMPARISON=DATA...

COMPARISON is a folder of `setrnn compare` with records of seq2seq-rnn and set-rnn; DATA is the
folder of its data, whose name is shown. seq2seq-rnn is trained on labels in descending order of
frequency. In the paper's example, A is immediately followed by B 19 times and by C 3 times,
although they are together 22 and 12 times; seq2seq-rnn predicts B, the more popular label, where
set-rnn predicts C, which is right. This writes one row per comparison into a table of
docs/replication.md: such a document, and how often each system makes such errors. Rows of other
comparisons stay as they are.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path

from setrnn.comparison.records import Comparison, Record, load_records
from setrnn.config import load_config
from setrnn.data.cache import open_prepared
from setrnn.data.source import Source

PAGE = Path(__file__).resolve().parents[1] / "replication.md"
FIRST, SECOND = "seq2seq-rnn", "set-rnn"
LEAST_TOGETHER = 5  # train documents with A and C: with fewer, no system could know


@dataclass(frozen=True)
class Counts:
    """How often two labels are in one training set, and adjacent in it, by their ids.

    Ids are in descending order of frequency, and so are the labels of a pair.
    """

    together: Counter[tuple[int, int]]
    adjacent: Counter[tuple[int, int]]

    @classmethod
    def of(cls, sets: Iterable[Sequence[int]]) -> Counts:
        """Count the pairs of label sets."""
        together: Counter[tuple[int, int]] = Counter()
        adjacent: Counter[tuple[int, int]] = Counter()
        for labels in map(sorted, sets):
            together.update(combinations(labels, 2))
            adjacent.update(pairwise(labels))
        return cls(together, adjacent)

    def bias(self, a: int, b: int, c: int) -> float:
        """Return how many times more the order favours B over C than the sets do.

        It is the ratio of A followed by B to A followed by C, divided by the ratio of A with B to A
        with C; one is added to every count.
        """
        followed = (self.adjacent[a, b] + 1) / (self.adjacent[a, c] + 1)
        return followed * (self.together[a, c] + 1) / (self.together[a, b] + 1)


@dataclass(frozen=True)
class Swap:
    """A document that has A and one of B and C: the other one is predicted instead.

    The order of frequency is A, B, C, and it favours B over C after A more than the sets do.
    """

    document: int
    a: int
    b: int
    c: int
    is_popular: bool  # whether B, the more frequent one, is the wrong one


def list_swaps(
    truth: Sequence[Sequence[int]], predicted: Sequence[Sequence[int]], counts: Counts
) -> Iterator[Swap]:
    """Yield the swaps of a system: one per document, B and C, with the A that favours B most."""
    for document, (true, given) in enumerate(zip(truth, predicted, strict=True)):
        shared = set(true) & set(given)
        for wrong in sorted(set(given) - set(true)):
            for missed in sorted(set(true) - set(given)):
                b, c = min(wrong, missed), max(wrong, missed)
                biases = {
                    a: counts.bias(a, b, c)
                    for a in shared
                    if a < b and min(counts.together[a, b], counts.together[a, c]) >= LEAST_TOGETHER
                }
                a = max(biases, key=lambda each: (biases[each], -each), default=-1)
                if a >= 0 and biases[a] > 1:
                    yield Swap(document, a, b, c, is_popular=wrong == b)


@dataclass(frozen=True)
class Study:
    """The swaps of both systems on one dataset."""

    comparison: Comparison
    preset: str
    counts: Counts
    n_popular: dict[str, float]  # per run: B is predicted instead of C
    n_rare: dict[str, float]  # per run: C is predicted instead of B
    best: Swap | None  # of seq2seq-rnn, where set-rnn is right
    n_seeds: int  # that show it

    @classmethod
    def of(
        cls,
        comparison: Comparison,
        records: Sequence[Record],
        train_sets: Iterable[Sequence[int]],
    ) -> Study:
        """Count the swaps of both systems, and choose the clearest document."""
        counts, truth = Counts.of(train_sets), [sorted(row) for row in comparison.truth]
        n_popular, n_rare = {FIRST: 0.0, SECOND: 0.0}, {FIRST: 0.0, SECOND: 0.0}
        predicted = {
            (each.method, each.seed): each.test.predicted[each.own_rule]
            for each in records
            if each.method in n_popular and each.test is not None
        }
        found: Counter[Swap] = Counter()
        for (method, seed), sets in predicted.items():
            n_runs = sum(name == method for name, _ in predicted)
            other = predicted.get((SECOND, seed))
            for each in list_swaps(truth, sets, counts):
                (n_popular if each.is_popular else n_rare)[method] += 1 / n_runs
                is_case = method == FIRST and each.is_popular and other is not None
                follows = (each.a, each.b) in pairwise(sorted(sets[each.document]))
                if is_case and follows and sorted(other[each.document]) == truth[each.document]:
                    found[each] += 1
        # In as many seeds as possible; then the clearest.
        best = max(
            found,
            key=lambda each: (found[each], counts.bias(each.a, each.b, each.c), -each.document),
            default=None,
        )
        (preset,) = {each.treatment["preset"] for each in records if "preset" in each.treatment}
        n_seeds = found[best] if best else 0
        return cls(comparison, preset, counts, n_popular, n_rare, best, n_seeds)

    def write(self) -> str:
        """Write the document and the counts as a row of the table."""
        cells = [f"{self.comparison.data}, `{self.preset}`", *self._write_case()]
        for name in (FIRST, SECOND):
            popular, rare = self.n_popular[name], self.n_rare[name]
            share = f" ({popular / (popular + rare):.0%})" if popular + rare else ""
            cells.append(f"{popular:,.0f}{share}, {rare:,.0f}")
        return f"| {' | '.join(cells)} |"

    def _write_case(self) -> list[str]:
        if self.best is None:
            return ["-", "-", "-"]
        a, b, c = self.best.a, self.best.b, self.best.c
        names = [f"`{self.comparison.labels[each]}`" for each in (a, b, c)]
        adjacent, together = self.counts.adjacent, self.counts.together
        return [
            f"{', '.join(names)} ({self.comparison.ids[self.best.document]}, {self.n_seeds})",
            f"{adjacent[a, b]:,}, {adjacent[a, c]:,}",
            f"{together[a, b]:,}, {together[a, c]:,}",
        ]


def main(given: Sequence[str]) -> None:
    """Study each comparison, and write its row of the table."""
    if not given:
        sys.exit("Give at least one COMPARISON=DATA.")
    text = PAGE.read_text(encoding="utf-8")
    for pair in given:
        folder, _, data = pair.partition("=")
        comparison = replace(Comparison.load(Path(folder)), data=Path(data).name)
        records = load_records(Path(folder), comparison)
        study = Study.of(comparison, records, read_train_sets(comparison, data))
        text = with_row(text, study.write())
    PAGE.write_text(text, encoding="utf-8")


def with_row(text: str, row: str) -> str:
    """Return a page with a row of its table, in place of one of the same comparison."""
    table = re.search(r"<!-- swaps: .*?-->\n.*?\n\|---.*?\n(.*?)<!-- end -->", text, re.DOTALL)
    assert table, f"{PAGE} has no place for the table"
    rows = {each.split(" | ")[0]: each for each in [*table[1].splitlines(), row]}
    lines = "".join(f"{rows[name]}\n" for name in sorted(rows))
    return text[: table.start(1)] + lines + text[table.end(1) :]


def read_train_sets(comparison: Comparison, data: str) -> Iterator[list[int]]:
    """Yield the label sets of the training documents, as indices into the comparison's labels."""
    prepared = open_prepared(Source(data, cut_valid=comparison.valid_is_cut), load_config().text)
    index = {name: number for number, name in enumerate(comparison.labels)}
    names = prepared.labels.names
    for row in prepared.split("train").labels:
        yield [index[names[label]] for label in row]


if __name__ == "__main__":
    main(sys.argv[1:])
