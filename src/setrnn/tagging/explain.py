"""Explain how a model tags a text: the paper's Table 4 and Figure 3, and the words per label."""

# T tokens, R words and features read, S labels of the explained set, N labels shown, L labels

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, factorial
from string import ascii_uppercase
from typing import TYPE_CHECKING

import numpy as np
import torch

from setrnn.data.batches import make_batch
from setrnn.data.example import KnownLabels
from setrnn.data.ragged import Ragged
from setrnn.data.text.alignment import NOWHERE, AlignedText, read_text
from setrnn.data.text.subwords import SubwordEncoder
from setrnn.data.text.words import break_runs, whole_characters
from setrnn.errors import ConfigError, DataError
from setrnn.model.interfaces import Encoding
from setrnn.search.beam_search import search_orders
from setrnn.search.set_search import best_sequences
from setrnn.search.subset_sums import EXACT_UP_TO
from setrnn.systems.candidates import Floats32, ScoredSet, to_probability
from setrnn.systems.classical.system import ClassicalSystem
from setrnn.systems.limits import Limits
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.neural import NeuralSystem
from setrnn.systems.recurrent import OrderFreeSystem, RecurrentSystem
from setrnn.systems.system import System
from setrnn.tagging.explanation import Explanation, FoundSequence, LabelWords, NamedSet, Step
from setrnn.tagging.prediction import name_labels, problem_with_known

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger

N_LEFT_OUT, MIN_PROBABILITY = 3, 0.001  # labels outside the explained set that are shown


@dataclass(frozen=True)
class _Member:
    """A model that is explained, or a member of a mixture, with what it makes of the text."""

    tagger: Tagger
    weight: float  # by the rule
    reading: AlignedText
    encoding: Encoding | None  # of a network

    @classmethod
    def of(cls, tagger: Tagger, weight: float, reading: AlignedText) -> _Member:
        """Encode the text, if the system is a network."""
        system, encoding = tagger.system, None
        if isinstance(system, NeuralSystem):
            system.network.eval()
            batch = make_batch(reading.tokens, None, np.zeros(1, dtype=np.int64)).to(system.device)
            encoding = system.network.encode(batch)
        return cls(tagger, weight, reading, encoding)


def why_not_explained(tagger: Tagger) -> str | None:
    """Return why a model cannot be explained, and what to do; None if it can."""
    if tagger.members:
        if any(why_not_explained(member) is None for member in tagger.members):
            return None
        return (
            "A mixture is explained by its members, and none of them can be: mix a network such "
            "as set-rnn too."
        )
    system = tagger.system
    if system.emits_sequences or _shows_words(system):
        return None
    return (
        f"This '{tagger.method}' model was trained without label evidence, which shows its words. "
        "Train it with --set model.evidence=true."
    )


def _shows_words(system: System) -> bool:
    """Return whether a system shows which words speak for a label."""
    if isinstance(system, NeuralSystem):
        return system.network.evidence is not None
    return isinstance(system, ClassicalSystem)


def choose_explained_rule(
    tagger: Tagger,
    rule: str | None,
    labels: Collection[str] | None = None,
    limits: Limits | None = None,
) -> str | None:
    """Return the rule to explain by, the model's own if not given; None for given labels."""
    problem = why_not_explained(tagger)
    if problem is not None:
        raise ConfigError(problem)
    if labels is not None:
        if rule is not None or (limits or Limits()) != Limits():
            raise ConfigError(
                "A given set is not chosen by a rule or limits. Leave them out, or the labels."
            )
        return None
    return tagger.rule_or_own(rule)


@torch.inference_mode()
def explain_text(
    tagger: Tagger,
    text: str,
    features: Sequence[str] = (),
    top: int = 12,
    rule: str | None = None,
    labels: Collection[str] | None = None,
    limits: Limits | None = None,
) -> Explanation:
    """Explain the predicted set of a text, or the given labels: see `Tagger.explain`."""
    if not isinstance(text, str):
        raise DataError(f"text must be one string, got {type(text).__name__}.")
    if isinstance(features, str):
        raise DataError("features must be a list of strings, got one string.")
    chosen = choose_explained_rule(tagger, rule, labels, limits)
    text, *features = (break_runs(whole_characters(each)) for each in (text, *features))
    if labels is None:
        (predicted,), marginals = tagger.tag_with_marginals([(text, features)], rule, 1, limits)
        labels = predicted.labels
    else:
        if isinstance(labels, str) or not all(isinstance(name, str) for name in labels):
            raise DataError("labels must be a list of strings. Write ['...', '...'].")
        if (problem := problem_with_known(tagger, KnownLabels(tuple(labels)))) is not None:
            raise DataError(problem[0].upper() + problem[1:])
        marginals = tagger.marginals([text], [features])
    members = _read_by_members(tagger, text, features, chosen)
    return _explain(tagger, text, features, members, top, chosen, labels, marginals.probs[0])


def _read_by_members(
    tagger: Tagger, text: str, features: Sequence[str], rule: str | None
) -> list[_Member]:
    """Read a text as the members of a mixture do that have a weight by the rule, or as the model.

    The first one reads the most of the text. All have its words, and the features that any reads.
    """
    system = _system_for(tagger, rule)
    weights = system.weights.current.tolist() if isinstance(system, MixtureSystem) else [1.0]
    members = [
        _Member.of(
            model, weight, read_text(model.encoder, text, features, model.config.text.language)
        )
        for model, weight in zip(tagger.members or (tagger,), weights, strict=True)
        if weight > 0
    ]
    members.sort(key=lambda each: -each.reading.n_read)
    return [*_share_words(members, features)] if len(members) > 1 else members


def _share_words(members: Sequence[_Member], features: Sequence[str]) -> Iterator[_Member]:
    """Yield members of a mixture with the words of the first, and the features that any reads."""
    words = members[0].reading.words
    read = [word for word in words if word.place is not None]
    stops = [word.stop for word in read]
    some = {name for each in members for name in each.reading.features}
    names = tuple(dict.fromkeys(name for name in features if name in some))
    for member in members:
        places = []
        for word in member.reading.words:
            if word.place is not None:  # these are in the order of their places
                place = bisect_right(stops, word.start)
                overlaps = place < len(read) and read[place].start < word.stop
                places.append(place if overlaps else NOWHERE)
        places += [len(read) + names.index(name) for name in member.reading.features]
        places.append(NOWHERE)  # the last, for what is neither a word nor a feature
        moved = [places[place] for place in member.reading.places]
        reading = AlignedText(member.reading.tokens, words, names, moved)
        yield replace(member, reading=reading)


def _system_for(tagger: Tagger, rule: str | None) -> System:
    return tagger.system if rule is None else tagger.system.for_rule(rule)


def _explain(
    tagger: Tagger,
    text: str,
    features: Sequence[str],
    members: Sequence[_Member],
    top: int,
    rule: str | None,
    explained: Collection[str],
    probs: Floats32,
) -> Explanation:
    """Explain a set, predicted by a rule or given; `probs` are those of the labels, (L,)."""
    index, tokens = tagger.labels.index, tagger.encoder.encode([text], [features])
    names = name_labels(tagger.labels, sorted({index[name] for name in explained}))
    recurrent = _find_recurrent(members, len(names))
    found: list[ScoredSet] = []
    steps: list[Step] = []
    if recurrent is not None:
        orders = _list_orders(recurrent, names)
        steps = [*_follow(recurrent, orders[0].labels)]
        found = (orders if rule is None else _list_orders(recurrent))[:top]
    wanted = [
        tuple(sorted(index[name] for name in each))
        for each in (names, *(sequence.labels for sequence in found))
    ]
    scored = _score_sets(_system_for(tagger, rule), tokens, wanted, 0 if rule is None else top)
    sets = tuple(
        NamedSet(
            name_labels(tagger.labels, ids),
            prob,
            _letters(rank),
            is_exact=all(sums_all_orders(each.tagger.system, len(ids)) for each in members),
        )
        for rank, (ids, prob) in enumerate(scored.items())
    )
    set_names = {frozenset(each.labels): each.name for each in sets}
    left_out = "" if rule is None else _why_left_out(tagger, tokens, rule, names, probs)
    first = members[0]
    return Explanation(
        method=tagger.method,
        rule=rule,
        text=text,
        words=first.reading.words,
        features=first.reading.features,
        unknown_features=tuple(name for name in features if name not in first.reading.features),
        max_words=first.tagger.encoder.limit,
        beam_width=(recurrent or first).tagger.config.search.beam_width,
        sequences=tuple(
            FoundSequence(each.labels, each.probability, set_names[frozenset(each.labels)])
            for each in found
        ),
        sets=sets,
        steps=tuple(steps),
        label_words=_list_label_words(tagger, members, names, probs),
        reads_subwords=isinstance(first.tagger.encoder, SubwordEncoder),
        member=recurrent.tagger.method if tagger.members and recurrent else "",
        note=_describe(members, recurrent) if tagger.members else "",
        left_out=left_out,
    )


def _why_left_out(
    tagger: Tagger, tokens: Ragged, rule: str, predicted: Sequence[str], probs: Floats32
) -> str:
    """Explain why the most probable label outside the predicted set is not in it.

    The text is empty unless the label is more probable than one of the set. The set that would hold
    it has it in addition or in place of the least probable label: whichever is more probable.
    """
    names, own = tagger.labels.names, {tagger.labels.index[name] for name in predicted}
    ranked = np.argsort(-probs, kind="stable").tolist()
    label = next((each for each in ranked if each not in own), None)
    least = next((each for each in reversed(ranked) if each in own), None)
    if label is None or least is None or probs[label] <= probs[least]:
        return ""
    held, dropped = {label}, {least}
    if (closure := tagger.kept_closure) is not None:
        held, dropped = {label, *closure.ids_above(label)}, {least, *closure.below[least]}
    others = {tuple(sorted(own | held)): "with it"}
    if least not in held:
        instead = f"with it in place of {names[least]} ({probs[least]:.3g})"
        others[tuple(sorted((own - dropped) | held))] = instead
    largest = tagger.system.max_labels or len(probs)
    wanted = [tuple(sorted(own)), *(each for each in others if len(each) <= largest)]
    if len(wanted) == 1:
        return ""
    scored = _score_sets(_system_for(tagger, rule), tokens, wanted, 0)
    best = max(wanted[1:], key=scored.__getitem__)
    text = (
        f"{names[label]} ({probs[label]:.3g}) is left out: {others[best]} the set has "
        f"{scored[best]:.3g}, without it {scored[wanted[0]]:.3g}."
    )
    if scored[best] > scored[wanted[0]]:
        text += f" Rule {rule} does not choose by the probability of the set."
    return text


def _describe(members: Sequence[_Member], recurrent: _Member | None) -> str:
    """Describe what the members of a mixture have in its explanation."""
    ranked = sorted(members, key=lambda each: -each.weight)
    shown, silent = (
        [each for each in ranked if _shows_words(each.tagger.system) == wanted]
        for wanted in (True, False)
    )

    def name(some: Sequence[_Member]) -> str:
        return ", ".join(f"{each.tagger.method} ({each.weight:.2f})" for each in some)

    parts = []
    if shown:
        parts.append(f"The words of each label are the weighted sums over {name(shown)}.")
    if silent:
        parts.append(f"Without label evidence, and so without words: {name(silent)}.")
    if recurrent is not None:
        parts.append(f"The sequences and the steps are those of {name([recurrent])}.")
    return " ".join(parts)


def _find_recurrent(members: Sequence[_Member], n_labels: int) -> _Member | None:
    """Return the member of most weight that emits labels one by one, and so many."""
    able = [
        each
        for each in members
        if isinstance(each.tagger.system, RecurrentSystem)
        and n_labels <= each.tagger.system.config.model.max_labels
    ]
    return max(able, key=lambda each: each.weight, default=None)


def _score_sets(
    system: System, tokens: Ragged, wanted: Iterable[tuple[int, ...]], n_best: int
) -> dict[tuple[int, ...], float]:
    """Return the probabilities of the wanted sets and of the most probable ones.

    The first of the wanted sets stays the first; the others are in descending order.
    """
    sets = dict.fromkeys(wanted)
    if n_best:
        found = system.candidates(tokens, n_best)
        n_found = int((found.log_probs[0, :n_best] > -np.inf).sum())
        sets |= dict.fromkeys(tuple(found.set_at(0, rank)) for rank in range(n_found))
    log_probs = system.set_log_probs(tokens, Ragged.from_lists([*sets]).padded(min_width=1)[None])
    probs = dict(zip(sets, map(to_probability, log_probs[0]), strict=True))
    first, *others = probs
    return {each: probs[each] for each in (first, *sorted(others, key=lambda one: -probs[one]))}


def sums_all_orders(system: System, n_labels: int) -> bool:
    """Return whether p of sets of so many labels is exact: not only a sum over some orders."""
    if isinstance(system, OrderFreeSystem):
        return n_labels <= EXACT_UP_TO
    if isinstance(system, RecurrentSystem):
        return factorial(n_labels) <= system.config.search.beam_width
    return True


def _list_orders(member: _Member, given: Sequence[str] | None = None) -> list[ScoredSet]:
    """Return the best label sequences, or the best orders of a given set, with their p.

    The orders of a set are found by Algorithm 1 with ALL = 1.
    """
    system, encoding, labels = member.tagger.system, member.encoding, member.tagger.labels
    assert isinstance(system, RecurrentSystem)
    assert encoding is not None
    decoder, width = system.network.decoder, system.config.search.beam_width
    if given is None:
        found = best_sequences(decoder, encoding, width, system.config.model.max_labels)
    else:
        ids = [labels.index[name] for name in given]
        sets = torch.tensor(ids, dtype=torch.long, device=system.device).view(1, 1, -1)
        found = search_orders(decoder, encoding, sets, width)
    orders = zip(found.labels[0, 0].tolist(), found.log_probs[0, 0].tolist(), strict=True)
    return [
        ScoredSet(name_labels(labels, order), min(exp(log_prob), 1.0))
        for order, log_prob in orders
        if log_prob > -np.inf
    ]


def _follow(member: _Member, order: Sequence[str]) -> Iterator[Step]:
    """Follow an order again; yield the probability and the attention of each step."""
    system, encoding, reading = member.tagger.system, member.encoding, member.reading
    assert isinstance(system, RecurrentSystem)
    assert encoding is not None
    decoder = system.network.decoder
    ids = [member.tagger.labels.index[name] for name in order]
    emitted = torch.tensor(ids, dtype=torch.long, device=system.device).view(1, -1)  # (1, S)
    probs = decoder.follow(encoding, emitted)[0].exp().clamp(max=1)  # (S + 1, V)
    attention = decoder.attend(encoding, emitted[None])[0, 0]  # (S + 1, T)
    attention = attention[:, : len(reading.places)].float().cpu().numpy()
    weights = reading.sum_by_word(attention)[:, :-1].tolist()  # (S + 1, R)
    outputs = [*ids, decoder.n_labels]  # STOP
    for step, name in enumerate([*order, None]):
        yield Step(name, float(probs[step, outputs[step]]), tuple(weights[step]))


def _letters(rank: int) -> str:
    """Return the name of a set by its rank: A, B ... Z, AA, AB ..."""
    name = ""
    while rank >= 0:
        name = ascii_uppercase[rank % 26] + name
        rank = rank // 26 - 1
    return name


def _list_label_words(
    tagger: Tagger, members: Sequence[_Member], explained: Sequence[str], probs: Floats32
) -> tuple[LabelWords, ...]:
    """Return the words for each label of a set, and for the most probable labels outside of it.

    Of a mixture, they are the weighted sums over its members. `probs` (L,) are those of all labels.
    """
    index, names = tagger.labels.index, tagger.labels.names
    others = [
        names[label]
        for label in np.argsort(-probs, kind="stable")[: len(explained) + N_LEFT_OUT].tolist()
        if names[label] not in explained and probs[label] >= MIN_PROBABILITY
    ]
    chosen = [*explained, *others[:N_LEFT_OUT]]
    found = [
        each.weight * each.reading.sum_by_word(values.T)
        for each in members
        if (values := _weigh_tokens(each, chosen)) is not None
    ]
    if not found:
        return ()
    weights = np.sum(found, axis=0).tolist()  # (N, R + 1)
    return tuple(
        LabelWords(name, float(probs[index[name]]), name in explained, tuple(row[:-1]), row[-1])
        for name, row in zip(chosen, weights, strict=True)
    )


def _weigh_tokens(member: _Member, names: Sequence[str]) -> Floats32 | None:
    """Return what each token adds to the score of some labels, (T, N); None if it is not known."""
    system, tokens = member.tagger.system, member.reading.tokens
    labels = [member.tagger.labels.index[name] for name in names]
    if isinstance(system, ClassicalSystem):
        return system.weigh_tokens(tokens, labels)
    if not isinstance(system, NeuralSystem) or system.network.evidence is None:
        return None
    assert member.encoding is not None
    by_word = system.network.evidence.by_word(member.encoding)[0, : len(tokens[0]), labels]
    found: Floats32 = by_word.float().cpu().numpy()
    return found
