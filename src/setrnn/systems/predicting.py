"""Predict the label sets of a batch of documents: search once, choose by any number of rules."""

# n documents, G given sets, S labels of the largest set

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from setrnn.data.batches import take_rows
from setrnn.data.ragged import Ragged
from setrnn.systems.candidates import Floats, Floats32, Ids, Ints, SetCandidates
from setrnn.systems.known import Known
from setrnn.systems.limits import SetLimits
from setrnn.systems.rules import LABEL_RULE, choose_sets, count_candidates, find_rule
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.marginal_rules import Thresholds
from setrnn.systems.system import System


@dataclass(frozen=True)
class ChosenSets:
    """The sets that a rule chose for a batch of documents."""

    choice: Choice  # what they were chosen from
    labels: Ids  # (n, S) padded with -1
    log_probs: Floats  # (n,)


class BatchSearch:
    """The candidates of a batch of documents, searched for once per source.

    Args:
        system: the trained system.
        tokens: the token ids of the documents.
        n_sets: how many candidates to search for, by source ("sets" or "sequences").
        known: labels that are known of the documents.
    """

    def __init__(
        self, system: System, tokens: Ragged, n_sets: Mapping[str, int], known: Known | None = None
    ) -> None:
        self.system, self.tokens, self.n_sets, self.known = system, tokens, n_sets, known
        self.candidates: dict[str, SetCandidates] = {}
        self.seconds: dict[str, float] = {}
        for source, n in n_sets.items():
            start = time.perf_counter()
            self.candidates[source] = system.candidates(tokens, n, source, known)
            self.seconds[source] = time.perf_counter() - start

    def choose(
        self, rule: str, limits: SetLimits, thresholds: Thresholds | None = None
    ) -> ChosenSets:
        """Choose one set per document by a rule, which may prefer one that is not a candidate."""
        by, system = find_rule(rule), self.system.for_rule(rule)

        def set_log_probs(rows: Ints, sets: Ids) -> Floats:
            return system.set_log_probs(take_rows(self.tokens, rows), sets)

        candidates = self.candidates[by.source].for_rule(rule)
        choice = Choice(candidates, limits, set_log_probs, thresholds)
        return ChosenSets(choice, *choose_sets(by, choice))

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

        None if labels are known, or if the search was only for the best sets.
        """
        if self.known is not None or self.n_sets.get(source, 0) < count_candidates():
            return None
        return self.candidates[source].for_rule(LABEL_RULE).marginals(n_labels)
