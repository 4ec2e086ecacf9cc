"""The answer of a report in sentences: which system to use, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from statistics import fmean

from setrnn.comparison.statistics import Entry
from setrnn.errors import count_of
from setrnn.methods import METHODS
from setrnn.metrics import MEASURES
from setrnn.report.study import Study
from setrnn.report.wording import (
    format_documents,
    format_duration,
    format_p,
    format_score,
    join_names,
)

MEASURE = "instance_f1"  # that the answer is about
OTHER_MEASURES = ("label_f1", "subset_accuracy")
MAX_NAMED = 4  # of the systems that are level with the best


def write_answer(study: Study) -> list[str]:
    """Say in sentences which system to use, by how much it is ahead, and how sure that is."""
    entries = study.by_rule_for(MEASURE)
    if not entries:
        return ["No run succeeded: there is nothing to compare."]
    draws = study.draws
    standing = draws.standing(list(entries.values()), MEASURE)
    best, score = standing.best, draws.summary(standing.best, MEASURE)
    others = sorted(standing.p, key=lambda each: -draws.mean(each, MEASURE))
    lead = ""
    if others:
        ahead = format_score(score.mean - draws.mean(others[0], MEASURE))
        lead = f", {ahead} above {others[0].system}, the next"
    costs = _describe_costs(study, best.system)
    answer = [
        f"Use {best.system}.",
        f"It has the highest {MEASURES[MEASURE]} on the {study.n_documents:,} test documents: "
        f"{format_score(score.mean)} (95% interval {format_score(score.low)} to "
        f"{format_score(score.high)}){lead}{f'; it {costs}' if costs else ''}.",
    ]
    if standing.stands:
        p = format_p(max(standing.p.values()))
        answer.append(f"This is sure: it is significantly better than every other system ({p}).")
    elif others:
        answer += _describe_tied(study, best, [each for each in others if each in standing.tied])
    return answer + _describe_other_measures(study, best.system)


def _describe_tied(study: Study, best: Entry, tied: Sequence[Entry]) -> list[str]:
    """Name the systems that may be as good as the best, and what would separate them."""
    names = [each.system for each in tied]
    first = join_names(names) if len(names) <= MAX_NAMED else count_of(len(names), "system")
    said = f"{first} {'is' if len(names) == 1 else 'are'} not significantly different from it"
    needed = study.draws.documents_needed(best, tied[0], MEASURE, len(study.systems) - 1)
    if isfinite(needed.n_documents):
        seeds = " and more seeds" if needed.needs_seeds else ""
        n = format_documents(needed.n_documents)
        said += f"; about {n} test documents{seeds} would tell {best.system} from {names[0]}"
    times = {name: _training_seconds(study, name) for name in [best.system, *names]}
    quickest = min(times, key=lambda name: times[name])
    sentences = [f"This is not sure: {said}."]
    if times[quickest] < times[best.system]:
        sentences.append(
            f"Of these, {quickest} is the quickest: it {_describe_costs(study, quickest)}."
        )
    return sentences


def _describe_other_measures(study: Study, chosen: str) -> list[str]:
    """Name the systems that are better by another measure."""
    first: dict[str, list[str]] = {}
    for measure in OTHER_MEASURES:
        means = {
            name: study.draws.mean(entry, measure)
            for name, entry in study.by_rule_for(measure).items()
        }
        if chosen not in means:  # its rule for this measure could not be fitted
            continue
        best = max(means, key=lambda name: means[name])
        if means[best] > means[chosen]:
            first.setdefault(best, []).append(f"{MEASURES[measure]} ({format_score(means[best])})")
    return [f"{name} is first in {join_names(found)}." for name, found in first.items()]


def _training_seconds(study: Study, name: str) -> float:
    """Return the mean training time; infinite if not known, as of mixtures with their members."""
    seconds = study.systems[name].cost("training_seconds")
    is_mixture = name in METHODS and METHODS[name].is_mixture
    return fmean(seconds) if seconds and not is_mixture else inf


def _describe_costs(study: Study, name: str) -> str:
    seconds = _training_seconds(study, name)
    speeds = study.systems[name].cost("prediction_documents_per_second")
    if seconds == inf or not speeds:
        return ""
    return f"trains in {format_duration(seconds)} and tags {fmean(speeds):,.0f} documents/s"
