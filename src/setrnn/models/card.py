"""What a model is, for people: its method, data, labels, measures, calibration and versions.

`setrnn show` prints it, and a model folder has it as README.md: card.md is the template.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from setrnn import __version__
from setrnn.config import AUTO
from setrnn.errors import ModelError, printable
from setrnn.metrics import LOWER_IS_BETTER, MEASURES
from setrnn.models.folder import GENERATED
from setrnn.systems.rules import RULES

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger
    from setrnn.tagging.trained_model import TrainedModel

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "tokenizers")
N_LABELS_SHOWN = 20
Json = dict[str, Any]


def note_training() -> Json:
    """Return the time and the versions, as notes of a model that was just trained."""
    versions = {"setrnn": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):  # such as torch under another name
            versions[name] = version(name)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"trained": now, "versions": versions}


def describe_model(tagger: Tagger) -> Json:
    """Return what a model is, as plain JSON values; None where it is not known.

    Example:
        >>> import setrnn
        >>> card = setrnn.describe_model(setrnn.train("newsroom", "br"))
        >>> card["method"], card["rule"], card["data"]["n_documents"], len(card["labels"])
        ('br', 'f1', 4800, 65)
        >>> card["measures_on_valid"]["n_documents"], card["calibration"]["n_documents"]
        (600, 600)
    """
    with _notes_checked():
        return _describe(tagger)


def write_readme(tagger: TrainedModel) -> str:
    """Write the README.md of a model: lines of Markdown, which also read well as they are."""
    from jinja2 import Environment, PackageLoader, TemplateError

    environment = Environment(
        loader=PackageLoader("setrnn.models", "."), trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {
        "code": _code,
        "listed": _list_labels,
        "member": _name_member,
        "n": "{:,}".format,
        "score": _write,
        "within": _say_budget,
    }
    automatic = tagger.notes.get("automatic")
    with _notes_checked(TemplateError):
        card = _describe(tagger)
        rows = _tabulate(card["measures_on_valid"])
        return environment.get_template("card.md").render(
            card,
            generated=GENERATED,
            unknown="not known",
            measures=MEASURES,
            rows=rows,
            width=max(map(len, rows), default=0),
            automatic=automatic,
            summary=None if automatic is None else summarise(tagger),
        )


@contextmanager
def _notes_checked(problem: type[Exception] = KeyError) -> Iterator[None]:
    """Raise ModelError if notes, which may hold any JSON values, are not those of a training."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, problem) as error:
        raise ModelError(
            f"The notes in the model's config.json are damaged: {error!r:.80}"
        ) from error


def _describe(tagger: TrainedModel) -> Json:
    notes, rule, calibration = tagger.notes, tagger.rule_or_own(None), tagger.calibration
    hierarchy = updated = fitted = acceptance = None
    if (tree := tagger.hierarchy) is not None:
        parents = {
            name: [*tree.parents[name]] for name in tagger.labels.names if name in tree.parents
        }
        hierarchy = {"parents": parents, "keeps_closed": tree.keeps_closed}
    if (found := notes.get("updated")) is not None:
        names = ("from", "from_data", "from_trained", "n_updates", "n_old", "n_new", "new_labels")
        updated = {name: found[name] for name in names}
    if calibration is not None:
        fitted = {
            "n_documents": calibration.n_documents,
            "share_trained_on": calibration.share_trained_on,
            "temperatures": {key: each.temperature for key, each in calibration.scalings.items()},
        }
    if calibration is not None and calibration.acceptance:
        labels = calibration.label_acceptance
        acceptance = {
            "rules": {key: asdict(each) for key, each in calibration.acceptance.items()},
            "labels": None
            if labels is None
            else {
                "target": labels.target,
                "confidence": labels.confidence,
                "n_accepted": labels.n_safe,
            },
        }
    return {
        "method": tagger.method,
        "rule": rule,
        "measure": RULES[rule].measure,
        "rules": list(tagger.rules),
        "members": _describe_members(tagger, rule),
        "data": {"name": notes.get("data"), "n_documents": notes.get("n_documents")},
        "language": None if tagger.config.text.language == AUTO else tagger.config.text.language,
        "labels": list(tagger.labels.names),
        "hierarchy": hierarchy,
        "trained": notes.get("trained"),
        "updated": updated,
        "distilled_from": notes.get("distilled_from"),
        "training_seconds": notes.get("training_seconds"),
        "measures_on_valid": _describe_measures(notes),
        "calibration": fitted,
        "acceptance": acceptance,
        "versions": notes.get("versions"),
    }


def _describe_members(tagger: TrainedModel, rule: str) -> list[Json]:
    """Return the methods of the members of a mixture; with names and weights if these are known."""
    methods = [each.method for each in tagger.members]
    mixture = tagger.notes.get("mixture")
    if mixture is None:
        return [{"method": method} for method in methods]
    weights = mixture["rules"].get(rule, mixture)["weights"]
    rows = zip(mixture["members"], weights, strict=True)
    kept = [(name, weight) for name, weight in rows if name not in mixture["left_out"]]
    return [
        {"method": method, "name": name, "weight": weight}
        for method, (name, weight) in zip(methods, kept, strict=True)
    ]


def _describe_measures(notes: Mapping[str, Any]) -> Json | None:
    """Return the measures by rule; of a mixture, each measure by its own rule."""
    if mixture := notes.get("mixture"):
        rules = mixture["rules"].items()
        return {
            "n_documents": mixture["n_documents"],
            "rules": {rule: {each["measure"]: each["mixture"]} for rule, each in rules},
            "held_out": {rule: {each["measure"]: each["held_out"]} for rule, each in rules},
        }
    if valid := notes.get("valid"):
        measures = {name: valid[name] for name in MEASURES if name in valid}
        return {"n_documents": valid["n_documents"], "rules": {valid["rule"]: measures}}
    return None


def _tabulate(found: Json | None) -> dict[str, Mapping[str, float]]:
    """Return the rows of the table of measures by their names."""
    if found is None:
        return {}
    if "held_out" not in found:
        return {f"rule {rule}": values for rule, values in found["rules"].items()}
    names = {"rules": "each by its own rule", "held_out": "the same, held out"}
    return {
        name: {measure: value for row in found[key].values() for measure, value in row.items()}
        for key, name in names.items()
    }


def _name_member(member: Mapping[str, Any]) -> str:
    name, method = member.get("name", member["method"]), member["method"]
    kind = "" if name == method else f" ({method})"
    weight = f" {member['weight']:.2f}" if "weight" in member else ""
    return f"{_code(name)}{kind}{weight}"


def _list_labels(labels: Sequence[str]) -> str:
    n_more = len(labels) - N_LABELS_SHOWN
    more = f" and {n_more:,} more" if n_more > 0 else ""
    return ", ".join(map(_code, labels[:N_LABELS_SHOWN])) + more


def _say_budget(minutes: float | None) -> str:
    if minutes is None:
        return "without a time limit"
    return f"within {minutes:g} minute{'s' * (minutes != 1)}"


def _write(value: float, measure: str) -> str:
    return f"{value:.{4 if measure in LOWER_IS_BETTER else 3}f}"


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
        lines = [_say_choice(mixture["members"], fitted, measure)]
    else:
        lines = ["The members count the same: there were too few valid documents to weigh them."]
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


def _say_choice(names: Sequence[str], fitted: Mapping[str, Any], measure: str) -> str:
    """Say which members are used, and how good they are together and alone."""
    pick = min if fitted["measure"] in LOWER_IS_BETTER else max
    alone, best = pick(zip(fitted["members"], names, strict=True))
    weights = sorted(zip(fitted["weights"], names, strict=True), key=lambda each: -each[0])
    used = [(name, weight) for weight, name in weights if weight > 0]
    mixed, held_out, alone = (
        _write(each, fitted["measure"]) for each in (fitted["mixture"], fitted["held_out"], alone)
    )
    if len(used) == 1:
        return f"Chosen by {measure} on valid ({mixed}): {used[0][0]} alone, no mixture was better."
    shown = ", ".join(f"{name} {weight:.2f}" for name, weight in used)
    return (
        f"Chosen by {measure} on valid ({mixed}; {held_out} held out): the mixture of {shown}. "
        f"The best member alone, {best}, gives {alone}."
    )
