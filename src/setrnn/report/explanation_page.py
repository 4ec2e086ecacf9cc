"""An explanation as one HTML file: it needs no network, and prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from setrnn.data.tokenizing import AS_NUMBER, AS_UNKNOWN, CUT
from setrnn.tagging.explanation import AttendedWord, Explanation, FoundSet, Step

WORDS_SHOWN, LEAST_SHARE = 10, 0.001  # at each step
LONG_TEXT = 2_500  # characters; longer ones scroll within their frame
_NOTES = {AS_UNKNOWN: "unknown to the model", AS_NUMBER: "read as a number"}
_RULES = {"set": "the most probable set", "sequence": "the set of the most probable sequence"}
# Nothing is fetched, whatever a text holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def render_page(explanation: Explanation) -> str:
    """Return the whole page."""
    title = f"{_labels(explanation.predicted.labels)}: {explanation.method}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{escape(title)}</title>
<style>
{_beside("css")}</style>
</head>
<body>
{_head(explanation)}
{_reading(explanation)}
{_given_orders(explanation) if explanation.is_given else _found(explanation)}
<footer>
<p>Attention shows which words the decoder looked at, not why it chose a label.</p>
</footer>
<script type="application/json" id="weights">{_weights(explanation)}</script>
<script>
{_beside("js")}</script>
</body>
</html>
"""


def _beside(suffix: str) -> str:
    return files("setrnn.report").joinpath(f"explanation_page.{suffix}").read_text(encoding="utf-8")


def _head(explanation: Explanation) -> str:
    predicted = explanation.predicted
    chips = [f"<li>{escape(label)}</li>" for label in predicted.labels]
    rule = explanation.rule
    how = "given, not predicted" if rule is None else _RULES.get(rule, escape(rule))
    return f"""<header>
<h1>{escape(explanation.method)} {"is asked about" if explanation.is_given else "predicts"}</h1>
<ul class="labels">{"".join(chips) or '<li class="none">no label</li>'}</ul>
<p class="p">Set A: {how},
p&nbsp;{"=" if predicted.is_exact else "≥"}&nbsp;{_prob(predicted.probability)}</p>
</header>"""


def _reading(explanation: Explanation) -> str:
    """Lay out the text, its steps to choose from, and the words each attends to."""
    length = " is-long" if len(explanation.text) > LONG_TEXT else ""
    text = "".join(_marked_text(explanation)) or '<span class="unread">(an empty text)</span>'
    notes = "".join(f"<li>{escape(each)}</li>" for each in explanation.reading_notes())
    choices = "\n".join(
        f'<label class="choice"><input type="radio" name="step" value="{number}"'
        f"{' checked' if number == 0 else ''}>"
        f"<span>{number + 1}. {_step_name(step)} <small>{_prob(step.probability)}</small></span>"
        "</label>"
        for number, step in enumerate(explanation.steps)
    )
    panels = "\n".join(
        _attended(explanation, number, step) for number, step in enumerate(explanation.steps)
    )
    return f"""<section class="reading">
<h2>Step by step</h2>
<p class="hint">The best order of set A, p = {_prob(explanation.order_probability)};
beside each label its probability after those before it. The stronger a word is lit, the more of
the step's attention it has.</p>
<fieldset><legend class="hint">Choose a step:</legend>
{choices}
</fieldset>
<div class="document{length}"{' tabindex="0"' if length else ""}>{text}</div>
{_features(explanation)}
{panels}
<ul class="notes hint">{notes}</ul>
</section>"""


def _marked_text(explanation: Explanation) -> Iterator[str]:
    """Yield the text with each word that was read in an element of its own."""
    text, end = explanation.text, 0
    cut = explanation.with_fate(CUT)
    for word in explanation.words:
        if word.fate == CUT:
            break
        yield _plain(text[end : word.start])
        end = word.stop
        if word.place is None:
            yield f'<span class="unread" title="a stop word, left out">{escape(word.text)}</span>'
        else:
            yield _read_word(word.text, word.place, word.fate)
    if cut:
        yield _plain(text[end : cut[0].start])
        end = cut[-1].stop
        yield f'<span class="cut" title="not read">{escape(text[cut[0].start : end])}</span>'
    yield _plain(text[end:])


def _plain(text: str) -> str:
    """Write what lies between words."""
    return f'<span class="unread">{escape(text)}</span>' if text.strip() else escape(text)


def _read_word(text: str, place: int, fate: str = "") -> str:
    note = f' data-note="{_NOTES[fate]}"' if fate in _NOTES else ""
    look = ' class="unknown"' if fate == AS_UNKNOWN else ""
    return f'<span data-place="{place}"{look}{note}>{escape(text)}</span>'


def _features(explanation: Explanation) -> str:
    if not explanation.features:
        return ""
    first = len(explanation.read) - len(explanation.features)
    names = [_read_word(name, first + n) for n, name in enumerate(explanation.features)]
    return f'<div class="features"><span class="hint">Features:</span>{"".join(names)}</div>'


def _attended(explanation: Explanation, number: int, step: Step) -> str:
    attended = explanation.attended(step, WORDS_SHOWN)
    rows = [_attended_word(each) for each in attended if each.weight >= LEAST_SHARE]
    words = f"<ol>{''.join(rows)}</ol>" if attended else '<p class="hint">There are no words.</p>'
    return f"""<div class="attended">
<h3>Step {number + 1}, {_step_name(step)}: words attended to most</h3>
{words}
</div>"""


def _attended_word(word: AttendedWord) -> str:
    remarks = [f"{word.n_times} times"] * (word.n_times > 1)
    remarks += ["unknown"] * word.is_unknown + ["feature"] * word.is_feature
    remark = f" <small>{' '.join(remarks)}</small>" if remarks else ""
    return (
        f'<li><span class="word">{escape(word.text)}{remark}</span>{_track(word.weight)}'
        f'<span class="number">{100 * word.weight:.1f}%</span></li>'
    )


def _found(explanation: Explanation) -> str:
    """Lay out what the search found, of which the predicted set is one."""
    rows = _orders(explanation)
    held = sum(each.probability for each in explanation.sequences)
    return f"""<section>
<h2>The most probable sequences</h2>
<p class="hint">Labels in the order the decoder emits them. Those of the predicted set are bold.
Together these {len(rows)} hold {held:.1%} of all probability.</p>
{_table(rows, "sequence")}
</section>
{_sets(explanation)}"""


def _given_orders(explanation: Explanation) -> str:
    """Lay out the orders of a given set: there is no other set beside it."""
    rows = _orders(explanation)
    bound = "" if explanation.predicted.is_exact else " ≥: not all of them were searched."
    return f"""<section>
<h2>Its best orders</h2>
<p class="hint">Labels in the order the decoder emits them. The probability of the set is the sum
over all its orders.{bound}</p>
{_table(rows, "order")}
</section>"""


def _orders(explanation: Explanation) -> list[str]:
    """Write a row for each sequence."""
    most = max(each.probability for each in explanation.sequences) or 1.0
    arrow = ' <span class="arrow">→</span> '
    return [
        _row(
            explanation,
            each.set_name,
            _prob(each.probability),
            each.probability / most,
            arrow.join(map(escape, each.labels)) or "<i>no label</i>",
        )
        for each in explanation.sequences
    ]


def _sets(explanation: Explanation) -> str:
    most = max(each.probability for each in explanation.sets)
    rows = [
        _row(
            explanation,
            each.name,
            _set_prob(each),
            each.probability / most,
            escape(_labels(each.labels)),
        )
        for each in explanation.sets
    ]
    bound = ""
    if not all(each.is_exact for each in explanation.sets):
        bound = (
            f" ≥ marks a set of more orders than the beam holds ({explanation.beam_width}): "
            "its probability is at least that of the best orders found."
        )
    return f"""<section>
<h2>Their sets</h2>
<p class="hint">The probability of a set is the sum over its orders.{bound}</p>
{_table(rows, "labels")}
</section>"""


def _table(rows: Sequence[str], what: str) -> str:
    return f"""<table>
<thead><tr><th class="number">p</th><th>set</th><th class="share"></th><th>{what}</th></tr></thead>
<tbody>
{chr(10).join(rows)}
</tbody>
</table>"""


def _row(explanation: Explanation, name: str, prob: str, share: float, what: str) -> str:
    look = ' class="is-predicted"' if name == explanation.predicted.name else ""
    return (
        f'<tr{look}><td class="number">{prob}</td><td class="name"><b>{name}</b></td>'
        f'<td class="share">{_track(share)}</td><td class="what">{what}</td></tr>'
    )


def _track(share: float) -> str:
    return f'<span class="track"><i style="width:{100 * share:.1f}%"></i></span>'


def _weights(explanation: Explanation) -> str:
    """Write the attention for the script: only numbers, so nothing to escape."""
    rows = [[round(weight, 5) for weight in step.weights] for step in explanation.steps]
    return json.dumps(rows, separators=(",", ":"))


def _step_name(step: Step) -> str:
    return "STOP" if step.label is None else escape(step.label)


def _labels(labels: Sequence[str]) -> str:
    return ", ".join(labels) if labels else "no label"


def _set_prob(found: FoundSet) -> str:
    return ("" if found.is_exact else "≥ ") + _prob(found.probability)


def _prob(probability: float) -> str:
    return f"{probability:.4f}" if probability >= 0.001 else f"{probability:.1e}"
