"""Tables of scores: which system is best, by how much, and whether this is significant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from math import inf

from setrnn.comparison.statistics import (
    LEVEL,
    LOG_LIKELIHOOD,
    POWER,
    Entry,
    holm,
)
from setrnn.data.hierarchy import HIERARCHICAL_MEASURES
from setrnn.metrics import LOWER_IS_BETTER, MEASURES
from setrnn.report.study import Study
from setrnn.report.table import Column, Estimate, Table, Value
from setrnn.report.wording import (
    format_change,
    format_documents,
    format_p_value,
    format_score,
)

Pair = tuple[Entry, Entry]

LARGE_GAIN = 0.01  # the paper highlights larger ones
MARKS = (
    "Mean over seeds ± standard deviation. p: paired bootstrap over documents and seeds, against "
    "the best of the column; Holm-corrected over all such comparisons of the column. Bold: the "
    "best of its column, significantly better than every other one (p < .05). Underlined: the best "
    "and those not significantly different from it, where no system is significantly better than "
    "every other one."
)
OWN = f"Each system by its own rule, as in the paper. {MARKS}"
TRUE_SET = "log p(true set)"
NAME = Column("system", str)


def score_column(
    study: Study, measure: str, entries: Mapping[str, Entry], header: str = ""
) -> Column:
    """Describe a column of scores, with intervals, p against the best, and marks.

    A system whose runs all failed has "failed".
    """
    standing = study.draws.standing(list(entries.values()), measure) if entries else None

    def get(name: str) -> Value:
        n_runs = sum(each.method == name for each in study.records)
        n_failed = sum(each.method == name and bool(each.failure) for each in study.records)
        if name not in study.systems:
            return "failed" if n_failed else None
        if standing is None or name not in entries:
            return None
        found, p = study.draws.summary(entries[name], measure), standing.p.get(entries[name])
        is_best = p is None  # the others have a p against it
        is_tied = bool(standing.tied) if is_best else entries[name] in standing.tied
        return Estimate(
            found.mean,
            found.std,
            found.low,
            found.high,
            p,
            tests=None if is_best else len(standing.p),
            mark="best" if is_best and standing.stands else "tied" if is_tied else "",
            remark=f"{n_runs - n_failed} of {n_runs} runs" if n_failed else "",
        )

    direction = "lower" if measure in LOWER_IS_BETTER else "higher"
    return Column(
        header or MEASURES[measure], get, partial(format_score, measure=measure), direction
    )


def systems_table(study: Study) -> Table:
    """Make the paper's Table 2: each system by its own rule, and log p of the true set."""
    own = study.own()
    known = {name: each for name, each in own.items() if study.draws.has(each, LOG_LIKELIHOOD)}
    return Table(
        name="systems",
        title="Table 2: each system by its own rule",
        caption=(
            f"{OWN} {TRUE_SET}: the mean log of the model's own probability of the true set, of "
            "which at least log 1e-12 counts; of a large set, recurrent systems sum only the "
            "orders that the search finds."
        ),
        columns=[
            NAME,
            *(score_column(study, measure, own) for measure in MEASURES),
            score_column(study, LOG_LIKELIHOOD, known, TRUE_SET),
        ],
        rows=study.names,
    )


def rules_table(study: Study) -> Table:
    """Make the paper's Table 3: the gain of other rules over the best sequence."""
    sequences = {
        name: Entry(name, "sequence")
        for name in study.systems
        if Entry(name, "sequence") in study.draws.entries
    }
    places = [
        (measure, rule, name)
        for measure in ("instance_f1", "label_f1", "micro_f1")
        for rule in ("set", "f1")
        for name in sequences
        if Entry(name, rule) in study.draws.entries
    ]
    gains = [
        study.draws.difference(Entry(name, rule), sequences[name], measure)
        for measure, rule, name in places
    ]
    corrected = holm([gain.p for gain in gains])
    columns: dict[str, dict[str, Value]] = {}
    for (measure, rule, name), gain, p in zip(places, gains, corrected, strict=True):
        before = study.draws.mean(sequences[name], measure)
        change = "" if abs(gain.mean) <= LARGE_GAIN else " ↑" if gain.mean > 0 else " ↓"
        scores = f"{format_score(before)} → {format_score(before + gain.mean)}"
        star = " *" if p < LEVEL else ""
        columns.setdefault(f"{MEASURES[measure]}, sequence → {rule}", {})[name] = Estimate(
            gain.mean, None, gain.low, gain.high, p, len(places),
            text=f"{scores} ({format_change(gain.mean)}){change}{star}",
        )  # fmt: skip
    return Table(
        name="rules",
        title="Table 3: the best sequence, the best set, the best set for F1",
        caption=(
            "For systems that emit labels one by one: the score by rule sequence, the score by the "
            "other rule, and the gain. ↑ and ↓: a change of more than .01, which the paper "
            "highlights. *: significant (p < .05, paired bootstrap over documents and seeds, "
            f"Holm-corrected over the {len(places)} gains of this table). Gains are computed "
            "before rounding."
        ),
        columns=[
            NAME,
            *(Column(name, found.get, format_change, "higher") for name, found in columns.items()),
        ],
        rows=list(sequences),
    )


def differences_table(study: Study) -> Table:
    """Compare all pairs of systems, each by its own rule."""
    entries = list(study.own().values())
    pairs = list(combinations(entries, 2))
    return Table(
        name="differences",
        title="Differences between all pairs of systems",
        caption=(
            "The score of the first system minus that of the second, each by its own rule, with "
            "its 95% interval. p: paired bootstrap over documents and seeds, Holm-corrected over "
            f"the {len(pairs):,} pairs of a measure. *: significant (p < .05). Documents: where it "
            "is not significant, about how many test documents would show a difference of this "
            f"size with a chance of {POWER:.0%}, after the same correction and with the same "
            "number of seeds; '+ seeds' where the spread between seeds hides it, so that it takes "
            "many more seeds as well."
        ),
        columns=[
            Column("first", lambda pair: str(pair[0].system)),
            Column("second", lambda pair: str(pair[1].system)),
            *_difference_columns(study, "instance_f1", entries),
            *_difference_columns(study, "label_f1", entries),
        ],
        rows=pairs,
    )


def _difference_columns(study: Study, measure: str, entries: Sequence[Entry]) -> list[Column]:
    """Describe the difference of a pair, its p, and the documents that would separate it."""
    found, header = study.draws.pairs(entries, measure), MEASURES[measure]

    def difference(pair: Pair) -> Value:
        each = found[pair]
        text = format_change(each.mean) + (" *" if each.p < LEVEL else "")
        return Estimate(each.mean, low=each.low, high=each.high, text=text)

    def needed(pair: Pair) -> Value:
        if found[pair].p < LEVEL:
            return None
        each = study.draws.documents_needed(*pair, measure, len(found))
        text = format_documents(each.n_documents) + (" + seeds" if each.needs_seeds else "")
        return text if each.n_documents == inf else Estimate(each.n_documents, text=text)

    return [
        Column(header, difference, format_change),
        Column(
            f"{header} p",
            lambda pair: Estimate(found[pair].p, tests=len(found)),
            format_p_value,
        ),
        Column(f"{header} documents", needed),
    ]


def unseen_sets_table(study: Study) -> Table:
    """Score each system on the test sets that train does not have, and on the others."""
    unseen, n = set(study.comparison.unseen_sets), study.n_documents
    groups = {
        "unseen": [row for row in range(n) if row in unseen],
        "seen": [row for row in range(n) if row not in unseen],
    }
    columns = []
    for name, rows in groups.items():
        if unseen and rows:
            part = keep_documents(study, rows)
            own = part.own()
            columns.append(score_column(part, "subset_accuracy", own, f"{name}: recall"))
            columns.append(score_column(part, "instance_f1", own, f"{name}: F1"))
    return Table(
        name="unseen-sets",
        title="Label sets that train does not have",
        caption=(
            f"{len(unseen):,} of the {n:,} test documents ({len(unseen) / max(n, 1):.1%}) have a "
            "label set that no training document has (unseen); the others are seen. Recall: the "
            "share of these sets that is predicted exactly. F1: the mean over these documents. "
            f"Each system by its own rule. {MARKS}"
        ),
        columns=[NAME, *columns],
        rows=study.names if columns else [],
    )


def keep_documents(study: Study, rows: Sequence[int]) -> Study:
    """Keep some test documents, and the predictions by each system's own rule."""
    ids = tuple(study.comparison.ids[row] for row in rows)
    return study.with_sets(lambda sets: [sets[row] for row in rows], ids=ids)


def hierarchy_table(study: Study) -> Table:
    """Score each system by its own rule, all sets with the labels above theirs."""

    def score(measure: str) -> Callable[[str], Value]:
        return lambda name: Estimate.of(study.systems[name].recorded(measure))

    has_parents = study.comparison.parents is not None
    return Table(
        name="hierarchy",
        title="In the hierarchy of the labels",
        caption=(
            "True and predicted sets with all labels above theirs in the hierarchy (Kiritchenko et "
            "al. 2006): precision, recall and F1 over all labels of all documents, and the mean F1 "
            "of documents. Each system by its own rule. Mean over seeds ± standard deviation."
        ),
        columns=[
            NAME,
            *(
                Column(shown, score(name), direction="higher")
                for name, shown in HIERARCHICAL_MEASURES.items()
            ),
        ],
        rows=list(study.systems) if has_parents else [],
    )
