"""Documents of the test part looked at closely: the paper's Table 4 and Figure 3."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from setrnn.comparison.records import Record

WORDS_SHOWN, MOST_WORDS_READ = 5, 150
MOST_SEQUENCES = 12

Case = Mapping[str, Any]


@dataclass(frozen=True)
class SpreadCase:
    """A document whose most probable set is not that of the best sequence (Table 4)."""

    system: str
    seed: int
    case: Case

    @property
    def best_set(self) -> Mapping[str, Any]:
        """The most probable set."""
        return _most_probable(self.case)


@dataclass(frozen=True)
class PairCase:
    """One document read by two systems (Figure 3)."""

    first: tuple[str, Case]
    second: tuple[str, Case]


def choose_spread_case(records: Sequence[Record]) -> SpreadCase | None:
    """Take set-rnn's if it has one, and one that it is right on, as the paper does."""
    found = [
        SpreadCase(record.method, record.seed, case)
        for record in records
        for case in record.cases
        if _differs(case)
    ]
    return max(
        found,
        key=lambda each: (
            each.system == "set-rnn",
            set(each.best_set["labels"]) == set(each.case["truth"]),
            len(each.best_set["labels"]),
        ),
        default=None,
    )


def choose_pair_case(
    records: Sequence[Record], first: str = "seq2seq-rnn", second: str = "set-rnn"
) -> PairCase | None:
    """Take a document that the second system gets right, and the first does not.

    Where there is none, one that the second gets more of right. Both are of one seed.
    """
    theirs = {
        (record.seed, case["document"]): case
        for record in records
        if record.method == first
        for case in record.cases
    }
    found = [
        PairCase((first, theirs[record.seed, case["document"]]), (second, case))
        for record in records
        if record.method == second
        for case in record.cases
        if (record.seed, case["document"]) in theirs
    ]
    ahead = [pair for pair in found if _f1(pair.second[1]) > _f1(pair.first[1])]
    return max(
        ahead,
        key=lambda pair: (_f1(pair.second[1]), len(pair.second[1]["truth"])),
        default=None,
    )


def render_case_studies(records: Sequence[Record]) -> str:
    """Return both studies; say so where the records hold no fitting document."""
    if not any(record.cases for record in records):
        return (
            "<p>No document is explained in these records: that takes a system that emits labels "
            "one by one.</p>"
        )
    spread, pair = choose_spread_case(records), choose_pair_case(records)
    return f"""{_read_note()}
<h3 id="case-sequences">The most probable set is not that of the best sequence</h3>
{_spread(spread) if spread else "<p>The records hold no such document.</p>"}
<h3 id="case-steps">Two systems on one document</h3>
{_pair(pair) if pair else _no_pair()}"""


def _read_note() -> str:
    return (
        '<p class="hint">Words are those a model read: stop words and punctuation are left out, '
        "long documents are cut. Attention shows where the decoder looked, not why it chose.</p>"
    )


def _no_pair() -> str:
    return (
        "<p>The records hold no document that set-rnn gets more of right than seq2seq-rnn, "
        "trained with the same seed.</p>"
    )


def _spread(study: SpreadCase) -> str:
    case, best = study.case, study.best_set
    shown = list(case["sequences"])[:MOST_SEQUENCES]
    of_best = [each for each in shown if set(each["labels"]) == set(best["labels"])]
    top = shown[0]
    rows = "\n".join(_sequence(each, best["labels"]) for each in shown)
    sets = "\n".join(_set(each, best["labels"], case["truth"]) for each in case["sets"])
    total = sum(each["probability"] for each in of_best)
    return f"""{_facts(case, f"{study.system}, seed {study.seed}")}
<p>{_set_of(best["labels"])} has the highest probability of all sets,
{_sign(best)} {_prob(best["probability"])}, and {_is_truth(best["labels"], case["truth"])}. The best
single sequence, {_prob(top["probability"])}, is of {_set_of(top["labels"])}, which
{_is_truth(top["labels"], case["truth"])}.
The {len(of_best)} sequences in bold are orders of the most probable set; they sum to
{_prob(total)}.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Sequences">
<table>
<caption><span>The most probable sequences, labels in the order they are emitted. Bold: those
of the most probable set.</span></caption>
<thead><tr><th scope="col" class="number">p</th><th scope="col">sequence</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</div>
<div class="scroll" tabindex="0" role="region" aria-label="Sets">
<table>
<caption><span>Their sets; the probability of a set is the sum over its orders (≥: over those
found).</span></caption>
<thead><tr><th scope="col" class="number">p</th><th scope="col">set</th><th scope="col">right?</th>
</tr></thead>
<tbody>
{sets}
</tbody>
</table>
</div>
{_words(case)}"""


def _sequence(sequence: Mapping[str, Any], best: Collection[str]) -> str:
    order = ' <span class="arrow">→</span> '.join(map(escape, sequence["labels"]))
    look = ' class="is-predicted"' if set(sequence["labels"]) == set(best) else ""
    return (
        f'<tr{look}><td class="number">{_prob(sequence["probability"])}</td>'
        f"<td>{order or '<i>no label</i>'}</td></tr>"
    )


def _set(found: Mapping[str, Any], best: Collection[str], truth: Collection[str]) -> str:
    look = ' class="is-predicted"' if set(found["labels"]) == set(best) else ""
    right = "the true set" if set(found["labels"]) == set(truth) else ""
    bound = "" if found["is_exact"] else "≥ "
    return (
        f'<tr{look}><td class="number">{bound}{_prob(found["probability"])}</td>'
        f"<td>{_set_of(found['labels'])}</td><td>{right}</td></tr>"
    )


def _pair(study: PairCase) -> str:
    columns = "\n".join(_steps(system, case) for system, case in (study.first, study.second))
    return f"""{_facts(study.first[1], "")}
<p>Step by step, the best order of the set each system predicts; under each label the words
attended to most, with their share of the attention.</p>
<div class="pair">
{columns}
</div>
{_words(study.second[1])}"""


def _steps(system: str, case: Case) -> str:
    truth, predicted = set(case["truth"]), _predicted(case)
    missed = [label for label in case["truth"] if label not in predicted]
    verdict = "right" if _is_right(case) else "wrong"
    steps = "\n".join(_step(step, truth) for step in case["steps"])
    lost = f"<p>Missed: {escape(', '.join(missed))}</p>" if missed else ""
    return f"""<section class="steps" aria-label="{escape(system)}">
<h4>{escape(system)} <span class="mark is-{verdict}">{verdict}</span></h4>
<ol>
{steps}
</ol>
{lost}
</section>"""


def _step(step: Mapping[str, Any], truth: Collection[str]) -> str:
    label = step["label"]
    if label is None:
        name, mark = "STOP", ""
    else:
        name = escape(label)
        is_true = label in truth
        mark = (
            f' <span class="mark is-{"right" if is_true else "wrong"}">'
            f"{'true' if is_true else 'not true'}</span>"
        )
    words = "".join(
        f"<li><span>{escape(str(word))}</span>{_track(weight)}"
        f'<span class="number">{100 * weight:.0f}%</span></li>'
        for word, weight in step["attended"][:WORDS_SHOWN]
    )
    return (
        f"<li><p><b>{name}</b>{mark} <small>p {_prob(step['probability'])}</small></p>"
        f'<ul class="attended">{words}</ul></li>'
    )


def _facts(case: Case, who: str) -> str:
    whose = f" ({escape(who)})" if who else ""
    return (
        f"<p>Document <code>{escape(str(case['id']))}</code>{whose}. "
        f"True labels: {_set_of(case['truth'])}.</p>"
    )


def _words(case: Case) -> str:
    words = list(case["words"])
    text = " ".join(map(str, words[:MOST_WORDS_READ]))
    more = f" … and {len(words) - MOST_WORDS_READ} more" if len(words) > MOST_WORDS_READ else ""
    return (
        f"<details><summary>The words read</summary>"
        f'<p class="words">{escape(text)}{more}</p></details>'
    )


def _predicted(case: Case) -> set[str]:
    return {step["label"] for step in case["steps"] if step["label"] is not None}


def _is_right(case: Case) -> bool:
    return _predicted(case) == set(case["truth"])


def _f1(case: Case) -> float:
    predicted, truth = _predicted(case), set(case["truth"])
    n_both = len(predicted) + len(truth)
    return 2 * len(predicted & truth) / n_both if n_both else 1.0


def _differs(case: Case) -> bool:
    if not case["sequences"] or not case["sets"]:
        return False
    return set(case["sequences"][0]["labels"]) != set(_most_probable(case)["labels"])


def _most_probable(case: Case) -> Mapping[str, Any]:
    best: Mapping[str, Any] = max(case["sets"], key=lambda each: each["probability"])
    return best


def _is_truth(labels: Collection[str], truth: Collection[str]) -> str:
    return "is the true set" if set(labels) == set(truth) else "is not the true set"


def _set_of(labels: Collection[str]) -> str:
    if not labels:
        return "<i>no label</i>"
    return f'<span class="set">{{{escape(", ".join(sorted(labels)))}}}</span>'


def _sign(found: Mapping[str, Any]) -> str:
    return "p =" if found["is_exact"] else "p ≥"


def _track(share: float) -> str:
    return f'<span class="track"><i style="width:{100 * min(share, 1):.1f}%"></i></span>'


def _prob(probability: float) -> str:
    return f"{probability:.4f}" if probability >= 0.001 else f"{probability:.1e}"
