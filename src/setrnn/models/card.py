"""What a model is, for people: its method, data, labels, measures, calibration and versions.

`setrnn show` prints it, and a model folder has it as README.md: card.md is the template.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from setrnn import __version__
from setrnn.config import AUTO
from setrnn.errors import ModelError, list_some, printable
from setrnn.metrics import LOWER_IS_BETTER, MEASURES, write_measure
from setrnn.models.folder import GENERATED
from setrnn.systems.rules import RULES

if TYPE_CHECKING:
    from setrnn.tagging.trained_model import TrainedModel

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "tokenizers")
N_LABELS_SHOWN = 20
Json = dict[str, Any]


def note_columns(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the data, if the notes or the description of it name any."""
    return {"columns": about["columns"]} if about.get("columns") else {}


def note_training() -> Json:
    """Return the time and the versions, as notes of a model that was just trained."""
    versions = {"setrnn": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):  # such as torch under another name
            versions[name] = version(name)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"trained": now, "versions": versions}


def describe_model(tagger: TrainedModel) -> Json:
    """Return what a model is, as plain JSON values; `notes` are those of its training.

    Example:
        >>> import setrnn
        >>> card = setrnn.describe_model(setrnn.train("newsroom", "br"))
        >>> card["method"], card["rule"], card["notes"]["n_documents"], len(card["labels"])
        ('br', 'f1', 4800, 65)
        >>> card["notes"]["valid"]["n_documents"], card["calibration"]["n_documents"]
        (600, 600)
    """
    rule, hierarchy, fitted = tagger.rule_or_own(None), None, None
    if (tree := tagger.hierarchy) is not None:
        names = (name for name in tagger.labels.names if name in tree.parents)
        parents = {name: [*tree.parents[name]] for name in names}
        hierarchy = {"parents": parents, "keeps_closed": tree.keeps_closed}
    if (found := tagger.calibration) is not None and found.scalings:
        labels = found.label_acceptance
        fitted = {
            "n_documents": found.n_documents,
            "share_trained_on": found.share_trained_on,
            "temperatures": {key: each.temperature for key, each in found.scalings.items()},
            "acceptance": {key: asdict(each) for key, each in found.acceptance.items()},
            "labels": labels and {"target": labels.target, "n_accepted": labels.n_safe},
        }
    return {
        "method": tagger.method,
        "rule": rule,
        "measure": RULES[rule].measure,
        "rules": list(tagger.rules),
        "members": [each.method for each in tagger.members],
        "language": None if tagger.config.text.language == AUTO else tagger.config.text.language,
        "labels": list(tagger.labels.names),
        "hierarchy": hierarchy,
        "calibration": fitted,
        "warnings": list(tagger.warnings),
        "notes": dict(tagger.notes),
    }


def write_readme(tagger: TrainedModel) -> str:
    """Write the README.md of a model: lines of Markdown, which also read well as they are.

    Raise ModelError if its notes, which may hold any JSON values, are not those of a training.
    """
    from jinja2 import Environment, PackageLoader, TemplateError

    environment = Environment(
        loader=PackageLoader("setrnn.models", "."), trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {
        "code": _code,
        "listed": _list_labels,
        "n": "{:,}".format,
        "score": write_measure,
        "within": _say_budget,
    }
    notes = tagger.notes
    try:
        card, rows = describe_model(tagger), _tabulate(notes)
        return environment.get_template("card.md").render(
            card,
            generated=GENERATED,
            unknown="not known",
            measures=MEASURES,
            weighed=_list_members(notes, card["rule"]),
            rows=rows,
            cross_fitted=_is_cross_fitted(notes),
            width=max(map(len, rows), default=0),
            summary=summarise(tagger) if "automatic" in notes else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError, TemplateError) as error:
        raise ModelError(
            f"The notes in the model's config.json are damaged: {error!r:.80}"
        ) from error


def _list_members(notes: Mapping[str, Any], rule: str) -> list[str]:
    """Return the members of a mixture with their weights by a rule, if these are known."""
    if (mixture := notes.get("mixture")) is None:
        return []
    weights = mixture["rules"].get(rule, mixture)["weights"]
    return [
        f"{_code(name)} {weight:.2f}"
        for name, weight in zip(mixture["members"], weights, strict=True)
        if name not in mixture["left_out"]
    ]


def _is_cross_fitted(notes: Mapping[str, Any]) -> bool:
    """Return whether a mixture was weighed on the training documents, by cross-validation."""
    return bool(notes.get("mixture", {}).get("split") == "train")


def _tabulate(notes: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    """Return the rows of the table of measures by their names."""
    if (mixture := notes.get("mixture")) is not None:
        rules = mixture["rules"].values()
        return {
            "each by its own rule, held out": {each["measure"]: each["held_out"] for each in rules}
        }
    valid = notes.get("valid")
    return {} if valid is None else {f"rule {valid['rule']}": valid}


def _list_labels(labels: Sequence[str]) -> str:
    return list_some([*map(_code, labels)], N_LABELS_SHOWN)


def _say_budget(minutes: float | None) -> str:
    if minutes is None:
        return "without a time limit"
    return f"within {minutes:g} minute{'s' * (minutes != 1)}"


def _code(text: str) -> str:
    """Write a name so that Markdown shows it as it is."""
    return f"`{printable(text).replace('`', chr(39))}`"


def summarise(tagger: TrainedModel) -> list[str]:
    """Say what was chosen and why, and what would make a better model."""
    notes, rule = tagger.notes, tagger.rule_or_own(None)
    automatic = notes["automatic"]
    measure = MEASURES[automatic["measure"]]
    if "mixture" in notes:
        mixture = notes["mixture"]
        fitted = mixture["rules"][automatic["rule"]]
        where = "in cross-validation" if _is_cross_fitted(notes) else "on valid"
        lines = [_say_choice(mixture["members"], fitted, f"{measure} {where}")]
    else:
        lines = ["The members count the same: there were too few documents to weigh them."]
    if rule == automatic["rule"]:
        lines += [f"The model predicts by rule {rule}, made for {measure}; --rule chooses another."]
    else:
        lines += [
            f"The model predicts by rule {rule}: rule {automatic['rule']}, made for {measure}, "
            "needs thresholds, and the model is not calibrated."
        ]
    for reason in dict.fromkeys(automatic["left_out"].values()):
        names = [name for name, why in automatic["left_out"].items() if why == reason]
        lines += [f"Left out: {', '.join(names)} ({reason})."]
    if automatic["better"]:
        lines += ["What would make it better:", *(f"- {each}" for each in automatic["better"])]
    return lines


def _say_choice(names: Sequence[str], fitted: Mapping[str, Any], by: str) -> str:
    """Say which members are used, and how good they are together and alone."""
    pick = min if fitted["measure"] in LOWER_IS_BETTER else max
    alone, best = pick(zip(fitted["members_held_out"], names, strict=True))
    weights = sorted(zip(fitted["weights"], names, strict=True), key=lambda each: -each[0])
    used = [(name, weight) for weight, name in weights if weight > 0]
    held_out, alone = (
        write_measure(each, fitted["measure"]) for each in (fitted["held_out"], alone)
    )
    if len(used) == 1:
        return f"Chosen by {by} ({held_out} held out): {used[0][0]} alone, no mixture was better."
    shown = ", ".join(f"{name} {weight:.2f}" for name, weight in used)
    return (
        f"Chosen by {by} ({held_out} held out): the mixture of {shown}. "
        f"The best member alone, {best}, gives {alone}."
    )
