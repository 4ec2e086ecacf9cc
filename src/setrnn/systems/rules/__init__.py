"""Prediction rules: how one set is chosen from the candidates of a document."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from setrnn.errors import ConfigError, nearest_name
from setrnn.systems.candidates import Ids
from setrnn.systems.limits import SetLimits
from setrnn.systems.rules import expected_f1, marginal_rules, most_probable
from setrnn.systems.rules.choice import Choice
from setrnn.systems.rules.plausible import Rate

# The number of sets that stand for a whole distribution. Systems whose sets cost nothing return
# more; those that know the distribution exactly need none.
MANY_SETS = 16
# The rule by whose weights a mixture gives the probabilities of single labels.
LABEL_RULE = "hamming"
# The number of sets among which p(known labels) is shared. Networks and pcc return their beams.
MANY_COMPLETIONS = 64


@dataclass(frozen=True)
class Rule:
    """How one set is chosen for each document.

    Attributes:
        source: what the rule chooses from: "sets", or the sets of the best "sequences".
        choose: returns the label ids (n, S) of the chosen sets, padded with -1.
        needs_best_only: whether the best candidates are enough; if not, the rule uses the whole
            distribution.
        needs_thresholds: whether the rule uses `Choice.thresholds`.
        measure: the measure that the rule is made for, one of `setrnn.metrics.MEASURES`.
        purpose: what the rule is for, in words.
        rate: returns the value of given sets, of which the rule chooses the largest; None if it
            prefers the most probable one.

    Example: a rule that predicts only labels of p > .9, or what the limits demand.

        >>> choose = lambda c: marginal_rules.choose_by_margin(c.marginals - 0.9, c.limits)
        >>> RULES["sure"] = Rule("sets", choose)  # now: tagger.tag(texts, rule="sure")
        >>> find_rule("sure").source
        'sets'
        >>> _ = RULES.pop("sure")
    """

    source: str
    choose: Callable[[Choice], Ids]
    needs_best_only: bool = False
    needs_thresholds: bool = False
    measure: str | None = None
    purpose: str = ""
    rate: Rate | None = None


RULES: dict[str, Rule] = {
    "set": Rule(
        "sets",
        most_probable.choose_set,
        needs_best_only=True,
        measure="subset_accuracy",
        purpose="the whole set must be right",
    ),
    "sequence": Rule(
        "sequences",
        most_probable.choose_sequence,
        needs_best_only=True,
        purpose="the paper's recurrent baselines",
    ),
    "f1": Rule(
        "sets",
        expected_f1.choose,
        measure="instance_f1",
        purpose="each document counts the same",
        rate=expected_f1.rate,
    ),
    "hamming": Rule(
        "sets",
        partial(marginal_rules.choose, marginal_rules.at_half),
        measure="hamming_loss",
        purpose="as few wrong labels as possible",
        rate=partial(marginal_rules.rate, marginal_rules.at_half),
    ),
    "micro-f1": Rule(
        "sets",
        partial(marginal_rules.choose, marginal_rules.at_common),
        needs_thresholds=True,
        measure="micro_f1",
        purpose="each label of each document counts the same",
        rate=partial(marginal_rules.rate, marginal_rules.at_common),
    ),
    "label-f1": Rule(
        "sets",
        partial(marginal_rules.choose, marginal_rules.at_own),
        needs_thresholds=True,
        measure="label_f1",
        purpose="each label counts the same, rare ones too",
        rate=partial(marginal_rules.rate, marginal_rules.at_own),
    ),
}


def find_rule(name: str) -> Rule:
    """Return a rule by its name."""
    if name not in RULES:
        raise ConfigError(f"There is no rule '{name}'. {nearest_name(name, RULES)}")
    return RULES[name]


def rule_for(measure: str) -> str:
    """Return the name of the rule that is made for a measure.

    Example:
        >>> rule_for("instance_f1"), rule_for("subset_accuracy")
        ('f1', 'set')
    """
    return next(name for name, rule in RULES.items() if rule.measure == measure)


def count_candidates(
    rule: Rule | None = None,
    top: int = 1,
    limits: SetLimits | None = None,
    needed_by_calibration: int = 1,
) -> int:
    """Return how many sets to ask a system for.

    Args:
        rule: the rule that chooses among the sets; None if all sets are needed, as for marginals.
        top: how many sets are shown.
        limits: the limits on the predicted set; None for no limits.
        needed_by_calibration: how many sets a calibration uses.

    Example:
        >>> count_candidates(RULES["set"], top=3), count_candidates(RULES["f1"], top=3)
        (3, 16)
    """
    is_open = limits is None or limits.is_open
    needs_best_only = rule is not None and rule.needs_best_only and is_open
    return max(top, needed_by_calibration, 1 if needs_best_only else MANY_SETS)
