"""The table of faults: how often each was tried, survived, and what was lost."""

import re
from collections import Counter
from dataclasses import asdict, dataclass

BEGIN, END = "<!-- made by `make faults`: begin -->", "<!-- made by `make faults`: end -->"
NOTHING = "nothing"
MOST_LOSSES = 2  # that a row lists


@dataclass(frozen=True)
class Row:
    """One fault, tried on one thing."""

    fault: str
    where: str
    n_tries: int
    n_survived: int
    lost: str

    def as_dict(self):
        return asdict(self)


class Tries:
    """Collects the tries of one fault."""

    def __init__(self, fault, where):
        self.fault, self.where = fault, where
        self.n_tries = self.n_survived = 0
        self.losses = Counter()
        self.first = {}
        self.reason = ""

    def add(self, problems, what=""):
        """Add a try; without problems it was survived."""
        self.n_tries += 1
        self.n_survived += not problems
        for kind in {_general(problem): problem for problem in problems}:
            self.losses[kind] += 1
        for problem in problems:
            self.first.setdefault(_general(problem), f"{what}: {problem}")

    def add_many(self, n_tries, n_survived):
        """Add tries that were counted elsewhere."""
        self.n_tries += n_tries
        self.n_survived += n_survived

    @property
    def row(self):
        shown = [f"{text} ({n})" for text, n in self.losses.most_common(MOST_LOSSES)]
        if len(self.losses) > MOST_LOSSES:
            shown.append(f"and {len(self.losses) - MOST_LOSSES} more")
        lost = self.reason or "; ".join(shown) or NOTHING
        return Row(self.fault, self.where, self.n_tries, self.n_survived, lost)

    @property
    def report(self):
        return "\n".join(f"{n} x {self.first[kind]}" for kind, n in self.losses.most_common())


def _general(problem):
    """Return a problem without random names and numbers, so that equal ones are counted once."""
    text = re.sub(r"/\S*/(world|try)[^/\s]*/", "", " ".join(problem.split()))
    text = re.sub(r"[0-9a-f]{8,}|\d+", "N", text)
    return text.replace("|", "/")[:110]


def as_markdown(rows):
    """Lay out the table as a page shows it."""
    n_tries, n_survived = sum(row.n_tries for row in rows), sum(row.n_survived for row in rows)
    lines = [
        f"{n_survived:,} of {n_tries:,} tries survived.",
        "",
        "| fault | on | tries | survived | what was lost |",
        "|---|---|---:|---:|---|",
        *(
            f"| {row.fault} | {row.where} | {row.n_tries:,} | {row.n_survived:,} | {row.lost} |"
            for row in rows
        ),
    ]
    return "\n".join(lines)


def write_page(file, rows):
    """Replace the table between the two comments of a page."""
    text = file.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, found, tail = rest.partition(END)
    assert found, f"{file} lacks the comments {BEGIN} and {END}"
    file.write_text(f"{head}{BEGIN}\n\n{as_markdown(rows)}\n\n{END}{tail}", encoding="utf-8")
