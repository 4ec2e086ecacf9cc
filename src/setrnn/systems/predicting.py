"""Predict the label sets of a batch of documents: search once, choose by any number of rules."""

# n documents, m of them, L labels, G given sets, S labels of the largest set, E pairs of a
# document and a set

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import Floats, Floats32, Ids, Ints, SetCandidates, pack_labels, widen
from setrnn.systems.kept import KeptTokens
from setrnn.systems.limits import SetLimits, set_keys
from setrnn.systems.rules import LABEL_RULE, count_candidates, find_rule
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.marginal_rules import Thresholds
from setrnn.systems.rules.plausible import choose_plausible
from setrnn.systems.system import System

MAX_PAIRS = 2**21  # of documents and labels that are searched together
NO_RULE = ""  # a mixture has its default weights


def documents_at_once(n_labels: int, most: int) -> int:
    """Return how many documents to search together: fewer if there are many labels.

    Example:
        >>> documents_at_once(200, most=1_024), documents_at_once(30_000, most=1_024)
        (1024, 69)
    """
    return max(min(most, MAX_PAIRS // max(n_labels, 1)), 1)


@dataclass(frozen=True)
class ChosenSets:
    """The sets that a rule chose for a batch of documents."""

    choice: Choice  # what they were chosen from
    labels: Ids  # (n, S) padded with -1
    log_probs: Floats  # (n,)


@dataclass
class Question:
    """One set of each of some documents, whose probability the system is asked for."""

    rule: str  # by whose weights a mixture answers
    rows: Ints  # (m,) of the documents
    labels: Ids  # (m, S) padded with -1
    log_probs: Floats = field(default_factory=lambda: np.zeros(0))  # (m,) the answer


class BatchSearch:
    """The candidates of a batch of documents, searched for once per source.

    Args:
        system: the trained system.
        tokens: the token ids of the documents.
        n_sets: how many candidates to search for, by source ("sets" or "sequences").
    """

    def __init__(self, system: System, tokens: Ragged, n_sets: Mapping[str, int]) -> None:
        self.system, self.n_sets = system, n_sets
        self.tokens: Ragged = KeptTokens.of(tokens)
        self.candidates = system.candidates_by_source(self.tokens, n_sets)
        self._label_probs: dict[str, Floats32] = {}

    def take(self, rows: Ints) -> BatchSearch:
        """Return what was found for some of the documents."""
        taken = copy(self)
        taken.tokens, taken._label_probs = self.tokens.take(rows), {}
        taken.candidates = {source: each.take(rows) for source, each in self.candidates.items()}
        return taken

    def choose(
        self, rule: str, limits: SetLimits, thresholds: Thresholds | None = None
    ) -> ChosenSets:
        """Choose one set per document by a rule, which may prefer one that is not a candidate."""
        return self.choose_all({rule: limits}, thresholds)[rule]

    def choose_all(
        self,
        rules: Mapping[str, SetLimits],
        thresholds: Thresholds | None = None,
        also: Sequence[Question] = (),
    ) -> dict[str, ChosenSets]:
        """Choose one set per document by each of several rules, within the limits of each.

        The system is asked once for the probabilities of all sets that are not candidates, and
        answers the questions in `also` together with them.
        """
        found: dict[str, ChosenSets] = {}
        questions: dict[str, Question] = {}
        for rule, limits in rules.items():
            by = find_rule(rule)
            candidates = self.candidates[by.source].for_rule(rule)

            def set_log_probs(rows: Ints, sets: Ids, rule: str = rule) -> Floats:
                some = self.tokens.take(rows)
                return self.system.for_rule(rule).set_log_probs(some, sets)

            choice = Choice(candidates, limits, set_log_probs, thresholds)
            labels = pack_labels(by.choose(choice))
            log_probs = candidates.log_probs_of(labels[:, None])[:, 0]
            unknown = np.flatnonzero(np.isnan(log_probs))
            questions[rule] = Question(rule, unknown, labels[unknown])
            found[rule] = ChosenSets(choice, labels, log_probs)
        self.ask([*questions.values(), *also])
        for rule, limits in rules.items():
            chosen, question = found[rule], questions[rule]
            chosen.log_probs[question.rows] = question.log_probs
            sets, rate = (chosen.labels, chosen.log_probs), find_rule(rule).rate
            if limits.plausible and limits.n_labels and rate is not None:
                sets = choose_plausible(chosen.choice, rate, *sets)
            found[rule] = ChosenSets(chosen.choice, *sets)
        return found

    def ask(self, questions: Sequence[Question]) -> None:
        """Answer questions: the system is asked once, and once for sets that several ask for."""
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *(each.rows for each in questions)])
        if not len(rows):
            return
        S = max(each.labels.shape[1] for each in questions)
        sets = np.concatenate([widen(each.labels, S) for each in questions])  # (E, S)
        documents, label_sets, row, column = group_sets(rows, sets)
        rules = list(dict.fromkeys(each.rule for each in questions))
        some = self.tokens.take(documents)
        answers = self.system.log_probs_by_rule(some, label_sets, rules)
        end = 0
        for each in questions:
            part = slice(end, end + len(each.rows))
            each.log_probs = answers[rules.index(each.rule)][row[part], column[part]]
            end = part.stop

    def many_sets(self) -> SetCandidates:
        """Return enough sets for marginals; search for them only if that was not done yet."""
        # The sets of best sequences give no marginals. A search that ends when the best set is
        # known has not looked at the rest.
        found, n_many = self.candidates.get("sets"), count_candidates()
        if found is not None and (self.n_sets["sets"] >= n_many or not self.system.stops_early):
            return found
        return self.system.candidates(self.tokens, n_many)

    def label_probs(self, source: str, n_labels: int) -> Floats32 | None:
        """Return the model's own p(label | document), (n, L), from a search that was made.

        None if the search was only for the best sets.
        """
        if self.n_sets.get(source, 0) < count_candidates():
            return None
        if source not in self._label_probs:
            found = self.candidates[source].for_rule(LABEL_RULE)
            self._label_probs[source] = found.marginals(n_labels)
        return self._label_probs[source]


def group_sets(rows: Ints, sets: Ids) -> tuple[Ints, Ids, Ints, Ints]:
    """Return the distinct sets of each document, from pairs of a document (E,) and a set (E, S).

    They are the documents (m,), ascending; their sets (m, G, S), padded with the empty set; and
    the places of each pair among the sets: rows (E,) and columns (E,).

    Example:
        >>> rows, sets = np.array([7, 2, 7]), np.array([[1, 3], [0, -1], [1, 3]], dtype=np.int32)
        >>> documents, label_sets, row, column = group_sets(rows, sets)
        >>> documents.tolist(), label_sets.tolist(), row.tolist(), column.tolist()
        ([2, 7], [[[0, -1]], [[1, 3]]], [1, 0, 1], [0, 0, 0])
    """
    keys = set_keys(sets, int(sets.max(initial=-1)) + 1)
    order = np.lexsort((keys, rows))
    rows, keys = rows[order], keys[order]
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (keys[1:] != keys[:-1])
    documents, start, row = np.unique(rows[is_first], return_index=True, return_inverse=True)
    column = np.arange(len(row)) - start[row]
    label_sets = np.full((len(documents), int(column.max(initial=0)) + 1, sets.shape[1]), -1)
    label_sets[row, column] = sets[order][is_first]
    of_pair = np.empty(len(order), dtype=np.int64)
    of_pair[order] = np.cumsum(is_first) - 1
    return documents, label_sets.astype(np.int32), row[of_pair], column[of_pair]
