"""What a model has learned: its measures on the valid part, beside a constant prediction."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

from setrnn.data.prepared import Prepared
from setrnn.metrics import LOWER_IS_BETTER, MEASURES, is_better
from setrnn.progress import log
from setrnn.systems.rules import RULES, rule_for
from setrnn.tagging.documents import LabelledDocuments, open_documents
from setrnn.tagging.evaluate import Evaluation, measure_rules
from setrnn.tagging.learn.data import Data, make_training_source
from setrnn.tagging.tagger import Tagger
from setrnn.training.validation import best_constant, has_valid, validate

SPREAD = 0.3  # of a measure over documents, about: a standard error is this over sqrt(n)


def open_valid(
    data: Data, valid: Path | None = None, cut_valid: bool = True
) -> LabelledDocuments | None:
    """Return the valid part that `train` uses; None if there is none."""
    source = make_training_source(data, valid, cut_valid)
    place = source.prepared_folder
    has_part = "valid" in source.open().splits if place is None else has_valid(Prepared(place))
    if not has_part:
        return None
    return open_documents(source, "valid")


def measure_by_rules(tagger: Tagger, documents: LabelledDocuments) -> dict[str, Evaluation]:
    """Measure a model, each measure by its own rule; return the results by the measure."""
    rules = [rule for rule in tagger.rules if RULES[rule].measure]
    results = measure_rules(tagger, documents.batches(tagger), rules)
    return {str(RULES[rule].measure): each.evaluation for rule, each in results.items()}


def check_learned(tagger: Tagger, prepared: Prepared, measure: str) -> None:
    """Warn if a model is not better on the valid part than the most frequent labels."""
    if not has_valid(prepared):
        return
    if "valid" in tagger.notes:
        score = float(tagger.notes["valid"][measure])
    else:
        most = tagger.config.training.valid_documents
        score = validate(tagger.system, prepared, rule_for(measure), most)[measure]
    warn_if_not_learned(score, prepared, measure)


def warn_if_not_learned(score: float, prepared: Prepared, measure: str) -> None:
    """Warn if a score on valid is not clearly better than that of a constant prediction."""
    constant = best_constant(prepared, measure)
    is_less_better = measure in LOWER_IS_BETTER
    margin = 0.0 if is_less_better else SPREAD / sqrt(prepared.description["n_documents"]["valid"])
    perfect = 0.0 if is_less_better else 1.0
    if is_better(score, constant + margin, measure) or score == perfect:
        return
    text = (
        "The model has learned little or nothing from the texts: its "
        f"{MEASURES[measure]} on the valid part is {score:.3f}, and always predicting the same "
        f"most frequent labels gives {constant:.3f}. Look at the texts and labels with setrnn data "
        "info, or give more documents."
    )
    log.warning(text)
