"""Describe a model that was trained without a method, in sentences and as its README.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from setrnn.data.model_folder import GENERATED
from setrnn.metrics import LOWER_IS_BETTER, MEASURES


def summarise(notes: Mapping[str, Any]) -> list[str]:
    """Say what was chosen and why, and what would make a better model."""
    automatic = notes["automatic"]
    rule, measure = automatic["rule"], MEASURES[automatic["measure"]]
    lines = []
    if "mixture" in notes:
        mixture = notes["mixture"]
        fitted = mixture["rules"][rule]
        lines += [_say_choice(mixture["members"], fitted, measure)]
    else:
        lines += ["The members count the same: there were too few valid documents to weigh them."]
    lines += [f"The model predicts by rule {rule}, made for {measure}; --rule chooses another."]
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


def write_readme(notes: Mapping[str, Any]) -> str:
    """Write the README.md of a model trained without a method; "" for others."""
    if "automatic" not in notes:
        return ""
    return "\n".join([GENERATED, *_list_lines(notes)]) + "\n"


def _list_lines(notes: Mapping[str, Any]) -> Iterator[str]:
    automatic = notes["automatic"]
    minutes = automatic["minutes"]
    limit = "without a time limit" if minutes is None else f"within {minutes:g} minutes"
    yield f"# A tagger of {notes.get('data')}"
    yield ""
    yield f"Trained by `setrnn train` {limit}, for {MEASURES[automatic['measure']]}."
    for line in summarise(notes):
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
        yield "The time limit stopped a network between two epochs: only `notes` in config.json say"
        yield "which."
        return
    measure = automatic["measure"].replace("_", "-")
    yield "The limit on time decided how many epochs each member got. On a CPU, the same members"
    yield "trained one by one, with your other options, give the same mixture:"
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
