"""The accuracy that accepted predictions should have: kept when a model is trained again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from setrnn.errors import ModelError
from setrnn.models.folder import read_calibration
from setrnn.progress import log
from setrnn.systems.rules import RULES
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trust.acceptance import NEVER, Acceptance, LabelAcceptance
from setrnn.tagging.trust.saved import Calibration


def keep_targets(tagger: Tagger, before: Path | Calibration | None) -> Tagger:
    """Give a new model the targets of the model that it replaces; accept nothing until calibrated.

    Args:
        tagger: the new model, not calibrated.
        before: the folder of the model before, if there is one, or its calibration.
        on_progress: called with a warning if a rule of the model before cannot be used.
    """
    if isinstance(before, Path):
        before = _read(before)
    if before is None or not before.acceptance:
        return tagger
    acceptance = {}
    for rule, each in before.acceptance.items():
        if rule not in RULES or (
            RULES[rule].source != "sets" and not tagger.system.emits_sequences
        ):
            text = (
                f"The acceptance by rule {rule} of the model before is gone: this model cannot use "
                "the rule."
            )
            log.warning(text)
            continue
        acceptance[rule] = Acceptance(rule, each.target, each.confidence, None, 0.0, 0.0, 0)
    of_labels = before.label_acceptance
    if of_labels is not None:
        none = np.zeros(len(tagger.labels))
        of_labels = LabelAcceptance(
            of_labels.target, of_labels.confidence, none + NEVER, none.astype(bool), none
        )
    waiting = Calibration(0, acceptance=acceptance, label_acceptance=of_labels)
    return replace(tagger, calibration=waiting)


def _read(folder: Path) -> Calibration | None:
    """Return the calibration of a model folder; None if it has none that can be read."""
    with suppress(ModelError, OSError):
        values = read_calibration(folder)
        return None if values is None else Calibration.from_dict(values)
    return None


def note_targets(tagger: Tagger) -> None:
    """Say what became of the targets of the model before."""
    calibration = tagger.calibration
    if calibration is None or not calibration.acceptance:
        return
    for rule, each in calibration.acceptance.items():
        kept = f"The model before had the target accuracy {each.target:g} for rule {rule}: "
        if not calibration.is_fitted:
            text = "no prediction is accepted until you run setrnn calibrate."
        elif each.threshold is None:
            text = "this model does not reach it, and no prediction is accepted."
        else:
            text = (
                f"predictions of probability {each.threshold:.3f} or more are accepted now "
                f"({each.share:.1%} of the documents calibrated on, {each.accuracy:.3f} right)."
            )
        (log.warning if each.threshold is None else log.info)(kept + text)
    own = tagger.rule_or_own(None)
    if own not in calibration.acceptance:
        text = (
            f"The model predicts by rule {own}, for which it has no acceptance: setrnn calibrate."
        )
        log.warning(text)
