"""The table of faults: how often each was tried, survived, and what was lost."""

import re
import threading
from collections import Counter
from itertools import groupby

BEGIN, END = "<!-- made by `make faults`: begin -->", "<!-- made by `make faults`: end -->"
NOTHING = "nothing"
MOST_LOSSES = 2  # that a row lists


class Tries:
    """Collects the tries of one fault on one thing, from any thread."""

    def __init__(self, fault, where):
        self.fault, self.where = fault, where
        self.n_tries = self.n_survived = self.n_late = 0
        self.losses, self.first, self.lock = Counter(), {}, threading.Lock()

    def add(self, problems, what=""):
        """Add a try; without problems it was survived."""
        with self.lock:
            self.n_tries += 1
            self.n_survived += not problems
            self.losses.update({_general(problem) for problem in problems})
            for problem in problems:
                self.first.setdefault(_general(problem), f"{what}: {problem}")

    def add_late(self):
        """Count a fault that came after the end of its command: it is no try."""
        self.n_late += 1

    @property
    def row(self):
        """What the table has of it, as plain values."""
        shown = [f"{text} ({n})" for text, n in self.losses.most_common(MOST_LOSSES)]
        if len(self.losses) > MOST_LOSSES:
            shown.append(f"and {len(self.losses) - MOST_LOSSES} more")
        lost = "; ".join(shown) or NOTHING
        return (self.fault, lost, self.where, self.n_tries, self.n_survived, self.n_late)

    @property
    def report(self):
        return "\n".join(f"{n} x {self.first[kind]}" for kind, n in self.losses.most_common())


def _general(problem):
    """Return a problem without random names and numbers, so that equal ones are counted once."""
    text = re.sub(r"/\S*/(world|try)[^/\s]*/", "", " ".join(problem.split()))
    text = re.sub(r"[0-9a-f]{8,}|\d+", "N", text)
    return text.replace("|", "/")[:110]


def as_markdown(rows):
    """Lay out the table as a page shows it, with a row per fault and what was lost."""
    n_tries, n_survived = sum(row[3] for row in rows), sum(row[4] for row in rows)
    lines = [
        f"{n_survived:,} of {n_tries:,} tries survived.",
        "",
        "| fault | on (tries) | tries | survived | what was lost |",
        "|---|---|---:|---:|---|",
    ]
    faults = list(dict.fromkeys(row[0] for row in rows))
    rows = sorted(rows, key=lambda row: (faults.index(row[0]), row[1] != NOTHING, row[1]))
    for (fault, lost), group in groupby(rows, key=lambda row: row[:2]):
        group = list(group)
        _, _, _, tries, survived, _ = zip(*group, strict=True)
        where = ", ".join(
            f"{name} ({n:,} of {n + late:,})" if late else f"{name} ({n:,})"
            for _, _, name, n, _, late in group
        )
        lines.append(f"| {fault} | {where} | {sum(tries):,} | {sum(survived):,} | {lost} |")
    return "\n".join(lines)


def write_page(file, rows):
    """Replace the table between the two comments of a page."""
    text = file.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, found, tail = rest.partition(END)
    assert found, f"{file} lacks the comments {BEGIN} and {END}"
    file.write_text(f"{head}{BEGIN}\n\n{as_markdown(rows)}\n\n{END}{tail}", encoding="utf-8")
