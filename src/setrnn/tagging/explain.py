"""Explain how a network tags a text: the paper's Table 4 and Figure 3, and the words per label."""

# T tokens, R words and features read, S labels of the explained set, N labels shown, L labels

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import exp, factorial, fsum
from string import ascii_uppercase
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from setrnn.data.batches import make_batch
from setrnn.data.example import KnownLabels
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.data.text.alignment import AlignedText, read_text, read_tokens
from setrnn.data.text.subwords import SubwordEncoder
from setrnn.data.text.words import break_runs, whole_characters
from setrnn.errors import ConfigError, DataError
from setrnn.model.evidence import LabelEvidence
from setrnn.model.interfaces import Encoding
from setrnn.search.beam_search import Sequences, search_orders
from setrnn.search.set_search import most_probable_sets
from setrnn.systems.candidates import Floats32, Ids, to_probability
from setrnn.systems.classical.system import ClassicalSystem
from setrnn.systems.mixture import MixtureSystem
from setrnn.systems.neural import NeuralSystem
from setrnn.systems.recurrent import RecurrentSystem
from setrnn.systems.system import System
from setrnn.tagging.complete import problem_with_known
from setrnn.tagging.explanation import Explanation, FoundSequence, LabelWords, NamedSet, Step
from setrnn.tagging.prediction import name_labels
from setrnn.training.wide import weigh_tokens

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger

N_LEFT_OUT, MIN_PROBABILITY = 3, 0.001  # labels outside the explained set that are shown

Order = tuple[list[int], float]  # the ids of a label sequence, and its probability


def why_not_explained(tagger: Tagger) -> str | None:
    """Return why a model cannot be explained, and what to do; None if it can."""
    if tagger.members:
        if _rank_explainable_members(tagger):
            return None
        return (
            "A mixture is explained by one of its members, and none of them can be: mix a "
            "network such as set-rnn too."
        )
    system = tagger.system
    if system.emits_sequences or has_label_words(system):
        return None
    return (
        f"This '{tagger.method}' model was trained without label evidence, which shows its words. "
        "Train it with --set model.evidence=true."
    )


def _rank_explainable_members(mixture: Tagger, rule: str = "set") -> list[tuple[Tagger, float]]:
    """Return the members that can be explained with their weights by a rule, the largest first."""
    assert isinstance(mixture.system, MixtureSystem)
    weights = mixture.system.for_rule(rule).weights.current.tolist()
    ranked = sorted(zip(mixture.members, weights, strict=True), key=lambda each: -each[1])
    return [(member, weight) for member, weight in ranked if why_not_explained(member) is None]


def choose_explained_rule(
    tagger: Tagger, rule: str | None, labels: Collection[str] | None = None
) -> str | None:
    """Return the rule to explain by, the model's own if not given; None for given labels."""
    problem = why_not_explained(tagger)
    if problem is not None:
        raise ConfigError(problem)
    if labels is not None:
        if rule is not None:
            raise ConfigError(
                "A given set is not chosen by a rule. Leave out the rule, or the labels."
            )
        return None
    return tagger.rule_or_own(rule)


def explain_text(
    tagger: Tagger,
    text: str,
    features: Sequence[str] = (),
    top: int = 12,
    rule: str | None = None,
    labels: Collection[str] | None = None,
) -> Explanation:
    """Explain the predicted set of a text, or the given labels: see `Tagger.explain`."""
    if not isinstance(text, str):
        raise DataError(f"text must be one string, got {type(text).__name__}.")
    if isinstance(features, str):
        raise DataError("features must be a list of strings, got one string.")
    chosen = choose_explained_rule(tagger, rule, labels)
    text, *features = (break_runs(whole_characters(each)) for each in (text, *features))
    if labels is None:
        (found,), marginals = tagger.tag_with_marginals([(text, features)], rule)
        labels = found.labels
    else:
        if isinstance(labels, str) or not all(isinstance(name, str) for name in labels):
            raise DataError("labels must be a list of strings. Write ['...', '...'].")
        if (problem := problem_with_known(tagger, KnownLabels(tuple(labels)))) is not None:
            raise DataError(problem[0].upper() + problem[1:])
        marginals = tagger.marginals([text], [features])
    member, weight = tagger, 1.0
    if tagger.members:
        # Of the members that can be explained and emit so many labels, that of most weight.
        ranked = _rank_explainable_members(tagger, chosen or "set")
        n_labels = len(set(labels))
        able = [each for each in ranked if n_labels <= (each[0].max_labels or n_labels)]
        member, weight = (able or ranked)[0]
    reading = read_text(member.encoder, text, features, member.config.text.language)
    own_ids = [tagger.labels.index[name] for name in member.labels.names]
    explained = _explain(member, reading, top, chosen, labels, marginals.probs[0, own_ids])
    unread = tuple(name for name in features if name not in reading.features)
    explained = replace(explained, text=text, unknown_features=unread)
    if member is tagger:
        return explained
    note = (
        f"The words, the sequences and the probabilities of sets are those of {member.method}, "
        f"the member with the most weight ({weight:.2f})."
    )
    return replace(explained, method=tagger.method, member=member.method, note=note)


def explain_tokens(tagger: Tagger, tokens: Ragged, top: int = 12) -> Explanation:
    """Explain by rule "set" a document of which only the token ids are known, in one row.

    Its text is what the model read, without stop words. There are no words per label.
    """
    (found,) = tagger.tag_tokens(tokens, "set")
    return _explain(tagger, read_tokens(tagger.encoder, tokens), top, "set", found.labels, None)


@torch.inference_mode()
def _explain(
    tagger: Tagger,
    reading: AlignedText,
    top: int,
    rule: str | None,
    explained: Collection[str],
    probs: Floats32 | None,
) -> Explanation:
    """Explain a set, predicted by a rule or given; `probs` are those of the labels, (L,)."""
    system, labels = tagger.system, tagger.labels
    label_set = sorted({labels.index[name] for name in explained})
    whole = frozenset(label_set)
    width: int | None = None  # of a search, which may miss orders of a set
    encoding: Encoding | None = None
    found: list[Order] = []
    steps: tuple[Step, ...] = ()
    if isinstance(system, NeuralSystem):
        system.network.eval()
        batch = make_batch(reading.tokens, None, np.zeros(1, dtype=np.int64)).to(system.device)
        encoding = system.network.encode(batch)
    if not isinstance(system, RecurrentSystem):
        set_probs = _list_sets(system, reading.tokens, label_set, 1 if rule is None else top)
    else:
        assert encoding is not None
        width = system.config.search.beam_width
        orders = _find_orders(system, encoding, label_set)
        found, set_probs = (orders, {}) if rule is None else _search(system, encoding)
        own = set_probs.pop(whole, min(fsum(prob for _, prob in orders), 1.0))
        set_probs = {whole: own, **set_probs}
        steps = tuple(_follow(system, encoding, reading, labels, orders[0][0]))
    sets = [
        NamedSet(
            name_labels(labels, sorted(each)),
            prob,
            _letters(rank),
            # A sum over orders is exact if the beam is as wide as they are many.
            is_exact=width is None or factorial(len(each)) <= width,
        )
        for rank, (each, prob) in enumerate(set_probs.items())
    ]
    names = {frozenset(each.labels): each.name for each in sets}
    sequences = [
        FoundSequence(order, prob, names[frozenset(order)])
        for order, prob in ((name_labels(labels, order), prob) for order, prob in found[:top])
    ]
    shown = {*(each.name for each in sets[:top]), *(each.set for each in sequences)}
    return Explanation(
        method=tagger.method,
        rule=rule,
        text=" ".join(word.text for word in reading.words),
        words=reading.words,
        features=reading.features,
        unknown_features=(),
        max_words=tagger.encoder.limit,
        beam_width=tagger.config.search.beam_width,
        sequences=tuple(sequences),
        sets=tuple(each for each in sets if each.name in shown),
        steps=steps,
        label_words=()
        if probs is None
        else list_label_words(tagger, reading, encoding, label_set, probs),
        reads_subwords=isinstance(tagger.encoder, SubwordEncoder),
    )


def _list_sets(
    system: System, tokens: Ragged, first: Sequence[int], n_sets: int
) -> dict[frozenset[int], float]:
    """Return a set and the most probable others, with their probabilities."""
    own = system.set_log_probs(tokens, np.array(first, dtype=np.int32).reshape(1, 1, -1))
    probs = {frozenset(first): to_probability(own[0, 0])}
    found = system.candidates(tokens, n_sets)
    for row, log_prob in zip(found.labels[0], found.log_probs[0], strict=True):
        if len(probs) < n_sets and log_prob > -np.inf:
            probs.setdefault(frozenset(_ids(row)), to_probability(log_prob))
    return probs


def _search(
    system: RecurrentSystem, encoding: Encoding
) -> tuple[list[Order], dict[frozenset[int], float]]:
    """Run Algorithm 3; return its sequences, and their sets with p."""
    width, most = system.config.search.beam_width, system.config.model.max_labels
    found = most_probable_sets(system.network.decoder, encoding, width, most)
    probs = {
        frozenset(_ids(row)): min(float(log_prob.exp()), 1.0)
        for row, log_prob in zip(found.labels[0], found.log_probs[0], strict=True)
        if log_prob > -torch.inf
    }
    assert found.sequences is not None
    return _list_orders(found.sequences), probs


def _find_orders(
    system: RecurrentSystem, encoding: Encoding, label_set: Sequence[int]
) -> list[Order]:
    """Find the best orders of a set and their probabilities: Algorithm 1 with ALL = 1."""
    sets = torch.tensor(label_set, dtype=torch.long, device=system.device).view(1, 1, -1)
    width = system.config.search.beam_width
    return _list_orders(search_orders(system.network.decoder, encoding, sets, width))


def _list_orders(found: Sequences) -> list[Order]:
    """Return the sequences of one search for one document, with their probabilities."""
    return [
        (_ids(row), min(exp(log_prob), 1.0))
        for row, log_prob in zip(found.labels[0, 0], found.log_probs[0, 0].tolist(), strict=True)
        if log_prob > -torch.inf
    ]


def _follow(
    system: RecurrentSystem,
    encoding: Encoding,
    reading: AlignedText,
    labels: LabelVocabulary,
    order: Sequence[int],
) -> Iterator[Step]:
    """Follow an order again; yield the probability and the attention of each step."""
    decoder = system.network.decoder
    emitted = torch.tensor(order, dtype=torch.long, device=system.device).view(1, -1)  # (1, S)
    probs = decoder.follow(encoding, emitted)[0].exp().clamp(max=1)  # (S + 1, V)
    attention = decoder.attend(encoding, emitted[None])[0, 0]  # (S + 1, T)
    attention = attention[:, : len(reading.places)].float().cpu().numpy()
    weights = reading.sum_by_word(attention)[:, :-1].tolist()  # (S + 1, R)
    for step, name in enumerate([*name_labels(labels, order), None]):
        output = decoder.n_labels if name is None else order[step]
        yield Step(name, float(probs[step, output]), tuple(weights[step]))


def _ids(row: Tensor | Ids) -> list[int]:
    return [label for label in row.tolist() if label >= 0]


def _letters(rank: int) -> str:
    """Return the name of a set by its rank: A, B ... Z, AA, AB ..."""
    name = ""
    while rank >= 0:
        name = ascii_uppercase[rank % 26] + name
        rank = rank // 26 - 1
    return name


def has_label_words(system: System) -> bool:
    """Return whether a system shows which words speak for a label."""
    return isinstance(system, ClassicalSystem) or _find_evidence(system) is not None


def list_label_words(
    tagger: Tagger,
    reading: AlignedText,
    encoding: Encoding | None,
    label_set: Sequence[int],
    probs: Floats32,
) -> tuple[LabelWords, ...]:
    """Return the words for each label of a set, and for the most probable labels outside of it.

    `encoding` is what a network makes of the tokens, `probs` (L,) are those of all labels.
    """
    others = [
        label
        for label in np.argsort(-probs, kind="stable")[: len(label_set) + N_LEFT_OUT].tolist()
        if label not in label_set and probs[label] >= MIN_PROBABILITY
    ]
    chosen = [*label_set, *others[:N_LEFT_OUT]]
    values = _weigh_tokens(tagger.system, reading.tokens, encoding, chosen)
    if values is None:
        return ()
    weights = reading.sum_by_word(values.T).tolist()  # (N, R + 1)
    names = tagger.labels.names
    return tuple(
        LabelWords(names[label], float(probs[label]), label in label_set, tuple(row[:-1]), row[-1])
        for label, row in zip(chosen, weights, strict=True)
    )


def _find_evidence(system: System) -> LabelEvidence | None:
    """Return the part of a network that attends to words for each label; None without one."""
    return system.network.evidence if isinstance(system, NeuralSystem) else None


def _weigh_tokens(
    system: System, tokens: Ragged, encoding: Encoding | None, labels: Sequence[int]
) -> Floats32 | None:
    """Return what each token adds to the score of some labels, (T, N); None if it is not known."""
    if isinstance(system, ClassicalSystem):
        return system.weigh_tokens(tokens, labels)
    evidence = _find_evidence(system)
    if evidence is None or encoding is None:
        return None
    by_word = evidence.by_word(encoding)[0, : len(tokens[0]), list(labels)]
    found: Floats32 = by_word.float().cpu().numpy()
    wide = system.network.wide if isinstance(system, NeuralSystem) else None
    return found if wide is None else found + weigh_tokens(wide, tokens)[:, list(labels)]
