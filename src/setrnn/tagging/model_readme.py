"""Write the README.md of a model: what it is, and how it was chosen or distilled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from setrnn.data.model_files import GENERATED
from setrnn.metrics import LOWER_IS_BETTER, MEASURES
from setrnn.tagging.model_card import list_card, notes_checked

if TYPE_CHECKING:
    from setrnn.tagging.trained_model import TrainedModel


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
    yield from ["", "## To make it again", "", *_list_commands(automatic)]


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


def _list_commands(automatic: Mapping[str, Any]) -> Iterator[str]:
    if any(each.get("epochs") != each.get("epochs_done") for each in automatic["members"]):
        yield "A network was stopped between two epochs, by the time limit or by --finish-now: only"
        yield "`notes` in config.json say which."
        return
    measure = automatic["measure"].replace("_", "-")
    yield "These commands, with your other options, train the same members for as many epochs, and"
    yield "mix them on all valid documents. The model is nearly the same: the last digits depend on"
    yield "the machine and its threads, and a limit on time may have mixed on fewer documents."
    yield ""
    for each in automatic["members"]:
        more = (
            f" --set training.epochs={each['epochs']}"
            f" --set training.valid_documents={each['valid_documents']} --seed {each['seed']}"
            if "epochs" in each
            else ""
        )
        yield (
            f"    setrnn train DATA --method {each['method']} --measure {measure}{more} "
            f"--out {each['name']}"
        )
    names = " ".join(each["name"] for each in automatic["members"])
    yield f"    setrnn mix {names} --data DATA --out MODEL"
