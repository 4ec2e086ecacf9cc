"""What a model is, for people: its method, data, labels, measures, calibration and versions.

`setrnn show` prints it, and a model folder has it as README.md.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from setrnn import __version__
from setrnn.config import AUTO, NO_LANGUAGE
from setrnn.errors import ModelError, printable
from setrnn.metrics import LOWER_IS_BETTER, MEASURES
from setrnn.models.folder import GENERATED
from setrnn.systems.rules import RULES

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger
    from setrnn.tagging.trained_model import TrainedModel

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "tokenizers")
N_LABELS_SHOWN = 20
NOT_KNOWN = "not known"
Json = dict[str, Any]


def note_training() -> Json:
    """Return the time and the versions, as notes of a model that was just trained."""
    versions = {"setrnn": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):  # such as torch under another name
            versions[name] = version(name)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"trained": now, "versions": versions}


def is_same_training(notes: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether notes are those of the same training, apart from when they were written."""
    dateless = ({**each, "trained": None, "versions": None} for each in (notes, other))
    first, second = (json.dumps(each, sort_keys=True) for each in dateless)
    return first == second


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
    with _notes_checked():
        lines = [GENERATED, *_list_card(_describe(tagger))]
        if "automatic" in tagger.notes:
            lines += ["", *_list_training(tagger)]
    return "\n".join(lines) + "\n"


@contextmanager
def _notes_checked() -> Iterator[None]:
    """Raise ModelError if notes, which may hold any JSON values, are not those of a training."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
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
    if calibration is not None and calibration.is_fitted:
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


def _list_card(card: Json) -> Iterator[str]:
    yield f"# A tagger of {_code(card['data']['name'] or NOT_KNOWN)}"
    yield ""
    for name, text in _list_facts(card):
        yield f"- {name}: {text}"
    yield ""
    yield from _list_measures(card["measures_on_valid"])
    yield ""
    order = "the most frequent first" if card["updated"] is None else "new ones last"
    yield f"Labels, {order}: {_list_labels(card['labels'])}."


def _list_facts(card: Json) -> Iterator[tuple[str, str]]:
    yield "method", card["method"]
    if members := card["members"]:
        yield "members", ", ".join(map(_name_member, members))
    made_for = f", made for {MEASURES[card['measure']]}" if card["measure"] else ""
    yield "predicts by", f"rule {card['rule']}{made_for}"
    name, n_documents = card["data"]["name"], card["data"]["n_documents"]
    size = f", {n_documents:,} documents" if n_documents else ""
    yield "trained on", f"{_code(name)}{size}" if name else NOT_KNOWN
    if (teacher := card["distilled_from"]) is not None:
        yield (
            "learned from",
            f"{_code(teacher['name'])}, a {teacher['method']} model: {teacher['n_labelled']:,} "
            f"texts with labels, {teacher['n_unlabelled']:,} without",
        )
    if (language := card["language"]) is not None:
        yield "language", "not settled" if language == NO_LANGUAGE else _code(language)
    yield "labels", f"{len(card['labels']):,}"
    if (tree := card["hierarchy"]) is not None:
        yield "hierarchy", _name_hierarchy(tree)
    seconds = card["training_seconds"]
    took = "" if seconds is None else f", in {seconds:,.0f} seconds"
    yield "trained at", f"{card['trained']}{took}" if card["trained"] else NOT_KNOWN
    if (before := card["updated"]) is not None:
        yield "updated from", _name_origin(before)
    fitted = card["calibration"]
    if fitted is None:
        yield "calibration", "none: probabilities are the model's own"
    else:
        found = ", ".join(f"{each:.2f} ({key})" for key, each in fitted["temperatures"].items())
        yield "calibration", f"on {fitted['n_documents']:,} documents, temperature {found}"
        if share := fitted["share_trained_on"]:
            yield (
                "warning",
                f"the model was trained on about {share:.0%} of the documents that it was "
                "calibrated on: its probabilities and acceptance promise an accuracy that new "
                "documents do not reach",
            )
    yield from (("acceptance", each) for each in _list_acceptance(card))
    versions = card["versions"] or {}
    yield "versions", ", ".join(f"{key} {each}" for key, each in versions.items()) or NOT_KNOWN


def _name_member(member: Mapping[str, Any]) -> str:
    name, method = member.get("name", member["method"]), member["method"]
    kind = "" if name == method else f" ({method})"
    weight = f" {member['weight']:.2f}" if "weight" in member else ""
    return f"{_code(name)}{kind}{weight}"


def _name_hierarchy(tree: Mapping[str, Any]) -> str:
    parents = tree["parents"]
    tops = {each for above in parents.values() for each in above} - parents.keys()
    closed = "bring their ancestors" if tree["keeps_closed"] else "need not bring their ancestors"
    return (
        f"labels below another: {len(parents):,}, above others only: {len(tops):,}; "
        f"predicted labels {closed}"
    )


def _name_origin(found: Mapping[str, Any]) -> str:
    trained = f", trained at {found['from_trained']}" if found["from_trained"] else ""
    old = f"{found['n_old'].get('train', 0):,} old documents" if found["n_old"] else "no old ones"
    labels = found["new_labels"]
    return (
        f"{_code(found['from'])}{trained}, with {found['n_new']['train']:,} new documents and "
        f"{old}" + (f"; new labels: {_list_labels(labels)}" if labels else "")
    )


def _list_acceptance(card: Json) -> Iterator[str]:
    found, is_fitted = card["acceptance"], card["calibration"] is not None
    if found is None:
        yield "none: setrnn calibrate finds which predictions need no review"
        return
    for rule, each in found["rules"].items():
        wanted = f"accuracy {each['target']:g} with confidence {each['confidence']:g}"
        if not is_fitted:
            yield f"rule {rule}, {wanted}: none until the model is calibrated, by setrnn calibrate"
        elif each["threshold"] is None:
            yield f"rule {rule}, {wanted}: none, the accuracy is {each['accuracy']:.3f} at best"
        else:
            yield (
                f"rule {rule}, {wanted}: probability {each['threshold']:.3f} or more, "
                f"{each['share']:.1%} of the documents calibrated on, {each['accuracy']:.3f} right"
            )
    if (labels := found["labels"]) is not None and is_fitted:
        yield (
            f"{labels['n_accepted']:,} of {len(card['labels']):,} labels by themselves, for an "
            f"accuracy of {labels['target']:g}"
        )


def _list_measures(found: Json | None) -> Iterator[str]:
    if found is None:
        yield "Not measured on a valid part."
        return
    yield (
        f"Measures on the {found['n_documents']:,} valid documents, on which epochs, weights and "
        "thresholds are chosen too:"
    )
    yield ""
    rows = {f"rule {rule}": values for rule, values in found["rules"].items()}
    if "held_out" in found:
        names = {"rules": "each by its own rule", "held_out": "the same, held out"}
        rows = {
            name: {measure: value for row in found[key].values() for measure, value in row.items()}
            for key, name in names.items()
        }
    width = max(map(len, rows))
    yield f"| {'':{width}} | " + " | ".join(MEASURES.values()) + " |"
    yield f"|-{'-' * width}-|" + "|".join("-" * (len(each) + 2) for each in MEASURES.values()) + "|"
    for name, row in rows.items():
        cells = (_write(row[key], key) if key in row else "" for key in MEASURES)
        aligned = (
            f"{cell:>{len(each)}}" for cell, each in zip(cells, MEASURES.values(), strict=True)
        )
        yield f"| {name:{width}} | " + " | ".join(aligned) + " |"


def _list_labels(labels: Sequence[str]) -> str:
    shown = ", ".join(map(_code, labels[:N_LABELS_SHOWN]))
    return shown + (
        f" and {len(labels) - N_LABELS_SHOWN:,} more" if len(labels) > N_LABELS_SHOWN else ""
    )


def _write(value: float, measure: str) -> str:
    return f"{value:.{4 if measure in LOWER_IS_BETTER else 3}f}"


def _code(text: str) -> str:
    """Write a name so that Markdown shows it as it is."""
    return f"`{printable(text).replace('`', chr(39))}`"


def _list_training(tagger: TrainedModel) -> Iterator[str]:
    """Say how a model was trained without a method."""
    automatic = tagger.notes["automatic"]
    minutes = automatic["minutes"]
    limit = "without a time limit"
    if minutes is not None:
        limit = f"within {minutes:g} minute{'s' * (minutes != 1)}"
    yield from ["## Training", ""]
    yield f"Trained by `setrnn train` {limit}, for {MEASURES[automatic['measure']]}."
    for line in summarise(tagger):
        yield from [line] if line.startswith("- ") else ["", line]
    trained = (
        each["name"] + (f" ({each['epochs']} epochs)" if "epochs" in each else "")
        for each in automatic["members"]
    )
    yield from ["", f"Members that were trained: {', '.join(trained)}."]


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
