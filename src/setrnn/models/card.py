"""What a model is, for people: its method, data, labels, measures, calibration and versions.

`setrnn show` prints it, and a model folder has it as README.md.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from setrnn import __version__
from setrnn.config import AUTO, NO_LANGUAGE
from setrnn.data.read.printing import printable
from setrnn.errors import ModelError
from setrnn.metrics import LOWER_IS_BETTER, MEASURES
from setrnn.models.folder import GENERATED
from setrnn.systems.rules import RULES

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger
    from setrnn.tagging.trained_model import TrainedModel

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "tokenizers")
N_LABELS_SHOWN = 20
NOT_KNOWN = "not known"


def describe_model(tagger: Tagger) -> dict[str, Any]:
    """Return what a model is, as plain JSON values; None where it is not known.

    Example:
        >>> import setrnn
        >>> card = setrnn.describe_model(setrnn.train("newsroom", "br"))
        >>> card["method"], card["rule"], card["data"]["n_documents"], len(card["labels"])
        ('br', 'f1', 4800, 65)
        >>> card["measures_on_valid"]["n_documents"], card["calibration"]["n_documents"]
        (600, 600)
    """
    with notes_checked():
        return _describe(tagger)


@contextmanager
def notes_checked() -> Iterator[None]:
    """Raise ModelError if notes, which may hold any JSON values, are not those of a training."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(
            f"The notes in the model's config.json are damaged: {error!r:.80}"
        ) from error


def _describe(tagger: TrainedModel) -> dict[str, Any]:
    notes, rule = tagger.notes, tagger.rule_or_own(None)
    return {
        "method": tagger.method,
        "rule": rule,
        "measure": RULES[rule].measure,
        "rules": list(tagger.rules),
        "members": _describe_members(tagger, rule),
        "data": {"name": notes.get("data"), "n_documents": notes.get("n_documents")},
        "language": None if tagger.config.text.language == AUTO else tagger.config.text.language,
        "labels": list(tagger.labels.names),
        "hierarchy": _describe_hierarchy(tagger),
        "trained": notes.get("trained"),
        "updated": _describe_update(notes),
        "training_seconds": notes.get("training_seconds"),
        "measures_on_valid": describe_measures(notes),
        "calibration": _describe_calibration(tagger),
        "acceptance": _describe_acceptance(tagger),
        "versions": notes.get("versions"),
    }


def _describe_hierarchy(tagger: TrainedModel) -> dict[str, Any] | None:
    """Return the parents of labels that the model has, and whether predictions are closed."""
    tree, labels = tagger.hierarchy, tagger.labels
    if tree is None:
        return None
    parents = {name: list(tree.parents[name]) for name in labels.names if name in tree.parents}
    return {"parents": parents, "keeps_closed": tree.keeps_closed}


def _describe_update(notes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what an updated model was updated from, and with what."""
    if (found := notes.get("updated")) is None:
        return None
    names = ("from", "from_data", "from_trained", "n_updates", "n_old", "n_new", "new_labels")
    return {name: found[name] for name in names}


def _describe_members(tagger: TrainedModel, rule: str) -> list[dict[str, Any]]:
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


def describe_measures(notes: Mapping[str, Any]) -> dict[str, Any] | None:
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


def _describe_calibration(tagger: TrainedModel) -> dict[str, Any] | None:
    calibration = tagger.calibration
    if calibration is None or not calibration.is_fitted:
        return None
    return {
        "n_documents": calibration.n_documents,
        "share_trained_on": calibration.share_trained_on,
        "temperatures": {key: each.temperature for key, each in calibration.scalings.items()},
    }


def _describe_acceptance(tagger: TrainedModel) -> dict[str, Any] | None:
    calibration = tagger.calibration
    if calibration is None or not calibration.acceptance:
        return None
    labels = calibration.label_acceptance
    return {
        "rules": {rule: asdict(each) for rule, each in calibration.acceptance.items()},
        "labels": None
        if labels is None
        else {
            "target": labels.target,
            "confidence": labels.confidence,
            "n_accepted": labels.n_safe,
        },
    }


def list_card(tagger: TrainedModel) -> Iterator[str]:
    """Write what a model is as lines of Markdown, which also read well as they are."""
    with notes_checked():
        card = _describe(tagger)
    data, labels = card["data"], card["labels"]
    yield f"# A tagger of {_code(data['name'] or NOT_KNOWN)}"
    yield ""
    for name, text in _list_facts(card):
        yield f"- {name}: {text}"
    yield ""
    yield from _list_measures(card["measures_on_valid"])
    yield ""
    shown = ", ".join(_code(each) for each in labels[:N_LABELS_SHOWN])
    more = f" and {len(labels) - N_LABELS_SHOWN:,} more" if len(labels) > N_LABELS_SHOWN else ""
    order = "the most frequent first" if card["updated"] is None else "new ones last"
    yield f"Labels, {order}: {shown}{more}."


def _list_facts(card: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "method", card["method"]
    if members := card["members"]:
        yield "members", ", ".join(map(_name_member, members))
    made_for = f", made for {MEASURES[card['measure']]}" if card["measure"] else ""
    yield "predicts by", f"rule {card['rule']}{made_for}"
    name, n_documents = card["data"]["name"], card["data"]["n_documents"]
    size = f", {n_documents:,} documents" if n_documents else ""
    yield "trained on", f"{_code(name)}{size}" if name else NOT_KNOWN
    if (language := card["language"]) is not None:
        yield "language", "not settled" if language == NO_LANGUAGE else _code(language)
    yield "labels", f"{len(card['labels']):,}"
    if (tree := card["hierarchy"]) is not None:
        yield "hierarchy", _name_hierarchy(tree)
    seconds = card["training_seconds"]
    took = "" if seconds is None else f", in {seconds:,.0f} seconds"
    yield "trained at", f"{card['trained']}{took}" if card["trained"] else NOT_KNOWN
    if (found := card["updated"]) is not None:
        yield "updated from", _name_origin(found)
    found = card["calibration"]
    yield (
        "calibration",
        "none: probabilities are the model's own"
        if found is None
        else f"on {found['n_documents']:,} documents, temperature "
        + ", ".join(f"{each:.2f} ({key})" for key, each in found["temperatures"].items()),
    )
    if found is not None and found["share_trained_on"]:
        yield (
            "warning",
            f"the model was trained on about {found['share_trained_on']:.0%} of the documents that "
            "it was calibrated on: its probabilities and acceptance promise an accuracy that new "
            "documents do not reach",
        )
    yield from (("acceptance", each) for each in _list_acceptance(card))
    versions = card["versions"] or {}
    yield "versions", ", ".join(f"{key} {each}" for key, each in versions.items()) or NOT_KNOWN


def _name_hierarchy(tree: Mapping[str, Any]) -> str:
    parents = tree["parents"]
    tops = {each for above in parents.values() for each in above} - parents.keys()
    closed = "bring those above them" if tree["keeps_closed"] else "need not bring those above them"
    return (
        f"labels below another: {len(parents):,}, above others only: {len(tops):,}; "
        f"predicted labels {closed}"
    )


def _name_origin(found: Mapping[str, Any]) -> str:
    trained = f", trained at {found['from_trained']}" if found["from_trained"] else ""
    old = f"{found['n_old'].get('train', 0):,} old documents" if found["n_old"] else "no old ones"
    labels = found["new_labels"]
    shown = ", ".join(_code(each) for each in labels[:N_LABELS_SHOWN])
    more = f" and {len(labels) - N_LABELS_SHOWN:,} more" if len(labels) > N_LABELS_SHOWN else ""
    added = f"; new labels: {shown}{more}" if labels else ""
    return (
        f"{_code(found['from'])}{trained}, with {found['n_new']['train']:,} new documents and "
        f"{old}{added}"
    )


def _name_member(member: Mapping[str, Any]) -> str:
    name, method = member.get("name", member["method"]), member["method"]
    kind = "" if name == method else f" ({method})"
    weight = f" {member['weight']:.2f}" if "weight" in member else ""
    return f"{_code(name)}{kind}{weight}"


def _list_acceptance(card: Mapping[str, Any]) -> Iterator[str]:
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


def _list_measures(found: Mapping[str, Any] | None) -> Iterator[str]:
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
    for name, values in rows.items():
        cells = [f"{_write(values.get(key), key):>{len(shown)}}" for key, shown in MEASURES.items()]
        yield f"| {name:{width}} | " + " | ".join(cells) + " |"


def _write(value: float | None, measure: str) -> str:
    return "" if value is None else f"{value:.{4 if measure in LOWER_IS_BETTER else 3}f}"


def _code(text: str) -> str:
    """Write a name so that Markdown shows it as it is."""
    return f"`{printable(text).replace('`', chr(39))}`"


def summarise(tagger: TrainedModel) -> list[str]:
    """Say what was chosen and why, and what would make a better model."""
    notes, rule = tagger.notes, tagger.rule_or_own(None)
    automatic = notes["automatic"]
    measure = MEASURES[automatic["measure"]]
    lines = []
    if "mixture" in notes:
        mixture = notes["mixture"]
        fitted = mixture["rules"][automatic["rule"]]
        lines += [_say_choice(mixture["members"], fitted, measure)]
    else:
        lines += ["The members count the same: there were too few valid documents to weigh them."]
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


def _say_choice(names: list[str], fitted: Mapping[str, Any], measure: str) -> str:
    weights = sorted(zip(fitted["weights"], names, strict=True), key=lambda each: -each[0])
    used = [f"{name} {weight:.2f}" for weight, name in weights if weight > 0]
    sign = -1 if fitted["measure"] in LOWER_IS_BETTER else 1
    best = max(zip([sign * each for each in fitted["members"]], names, strict=True))
    scores = [fitted["mixture"], fitted["held_out"], abs(best[0])]
    mixed, held_out, alone = (f"{each:.{4 if sign < 0 else 3}f}" for each in scores)
    if len(used) == 1:
        name = used[0].rpartition(" ")[0]
        return f"Chosen by {measure} on valid ({mixed}): {name} alone, no mixture was better."
    return (
        f"Chosen by {measure} on valid ({mixed}; {held_out} held out): the mixture of "
        f"{', '.join(used)}. The best member alone, {best[1]}, gives {alone}."
    )


def write_readme(tagger: TrainedModel) -> str:
    """Write the README.md of a model."""
    with notes_checked():
        lines = [GENERATED, *list_card(tagger)]
        if "automatic" in tagger.notes:
            lines += ["", *_list_training(tagger)]
        if "distilled_from" in tagger.notes:
            lines += ["", *_describe_student(tagger)]
    return "\n".join(lines) + "\n"


def _describe_student(student: TrainedModel) -> Iterator[str]:
    """Say what a student was distilled from."""
    found, settings = student.notes["distilled_from"], student.config.distillation
    members = f" of {', '.join(found['members'])}" if found["members"] else ""
    yield from ["## A distilled model", ""]
    yield (
        f"This `{student.method}` model learned from `{found['name']}`, a `{found['method']}` "
        f"model{members}. It has {len(student.labels):,} labels."
    )
    yield ""
    yield (
        f"- texts with labels: {found['n_labelled']:,}; their own label sets have the weight "
        f"{settings.true_share:g}"
    )
    yield f"- texts without labels: {found['n_unlabelled']:,}"
    yield f"- sets of the teacher per text: at most {settings.sets}"


def _list_training(tagger: TrainedModel) -> Iterator[str]:
    notes, automatic = tagger.notes, tagger.notes["automatic"]
    minutes = automatic["minutes"]
    limit = (
        "without a time limit"
        if minutes is None
        else f"within {minutes:g} minute{'s' * (minutes != 1)}"
    )
    yield from ["## Training", ""]
    yield f"Trained by `setrnn train` {limit}, for {MEASURES[automatic['measure']]}."
    for line in summarise(tagger):
        yield from [line] if line.startswith("- ") else ["", line]
    if "mixture" in notes:
        yield from ["", *_list_scores(notes["mixture"])]
    yield from ["", "## Members", ""]
    for each in automatic["members"]:
        epochs = (
            ""
            if "epochs" not in each
            else (
                f": seed {each['seed']}, {each['epochs']} epochs, the best was {each['best_epoch']}"
            )
        )
        yield f"- {each['name']} ({each['method']}){epochs}"


def _list_scores(mixture: Mapping[str, Any]) -> Iterator[str]:
    rules = mixture["rules"]
    yield f"Each measure by its own rule, on {mixture['n_documents']:,} valid documents:"
    yield ""
    yield "| | " + " | ".join(MEASURES[each["measure"]] for each in rules.values()) + " |"
    yield "|---" * (len(rules) + 1) + "|"
    rows = [(name, "members", number) for number, name in enumerate(mixture["members"])]
    for name, key, number in [*rows, ("mixture", "mixture", None), ("held out", "held_out", None)]:
        values = [each[key] if number is None else each[key][number] for each in rules.values()]
        yield f"| {name} | " + " | ".join(f"{value:.4f}" for value in values) + " |"


def note_training() -> dict[str, Any]:
    """Return the time and the versions, as notes of a model that was just trained."""
    versions = {"setrnn": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # such as torch under another name
            continue
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"trained": now, "versions": versions}


def is_same_training(notes: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether notes are those of the same training, apart from when they were written."""

    def write(each: Mapping[str, Any]) -> str:
        kept = {key: value for key, value in each.items() if key not in ("trained", "versions")}
        return json.dumps(kept, sort_keys=True)

    return write(notes) == write(other)
