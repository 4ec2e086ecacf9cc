"""`setrnn demo`: the whole story on the embedded corpus, from the data to the page to open."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from shutil import which
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

import setrnn
from setrnn.cli.calibrate import describe_acceptance
from setrnn.cli.data import show_parts
from setrnn.cli.evaluate import show_accepted
from setrnn.cli.options import option
from setrnn.cli.progress import terminal_progress
from setrnn.cli.tables import show_measures, show_members, show_table
from setrnn.cli.terminal import show, stdout
from setrnn.data import newsroom
from setrnn.data.disk import whole_file
from setrnn.data.example import Example
from setrnn.data.statistics import dataset_statistics
from setrnn.errors import StoppedError
from setrnn.report.html import render_explanation

if TYPE_CHECKING:
    from setrnn.tagging.prediction import Prediction
    from setrnn.tagging.tagger import Tagger

MODEL, PAGE = "model", "explanation.html"  # in the folder of the demo
MINUTES, TARGET = 1.25, 0.9  # of training; the accuracy of the predictions that are accepted
# Beside the settings of `compare --quick`: networks that train in half a minute of one core.
SMALLER = {
    "model.encoder_units": 64,
    "model.decoder_units": 64,
    "training.batch_size": 64,
    "training.valid_documents": 200,  # measured after each epoch
}
# The first document of each kind is shown.
EASY, UNCERTAIN, WRONG = "an easy document", "an uncertain label", "a wrong set"
SURE, UNSURE, LEAST_LEFT_OUT = 0.95, 0.75, 0.05  # probabilities of labels
NEXT = {
    "Read why the uncertain document has its labels; open this page:": "{page}",
    "Tag in a browser, at http://127.0.0.1:8000:": "{setrnn} serve {model}",
    "Tag a text of your own:": '{setrnn} predict {model} --text "The cup final is on."',
    "See why:": '{setrnn} explain {model} --text "The cup final is on."',
    "Train on your own file:": "{setrnn} train news.csv --out my-model",
    "Compare all systems, with statistics, in about five minutes:": (
        "{setrnn} compare newsroom --quick --out first-look"
    ),
}


def demo(
    out: Annotated[Path, option("The folder to write; a stopped demo continues.")] = Path("demo"),
) -> None:
    """Show what setrnn does on newsroom, the embedded corpus of synthetic news.

    Shows the data, trains the best model within 75 seconds, measures it, tags three documents,
    says what can be accepted without review, and names the page to open.
    """
    model = quote(str(out / MODEL))
    parts = {name: list(newsroom.examples(name)) for name in ("train", "valid", "test")}
    _title("1. The data", "data info newsroom --hierarchy newsroom")
    show(newsroom.DESCRIPTION)
    show_parts(dataset_statistics(parts))
    _title(
        "2. The best model that the time allows",
        "train newsroom --hierarchy newsroom --out my-model",
    )
    show(
        f"The demo uses small networks, and {60 * MINUTES:.0f} seconds instead of 10 minutes. It "
        "trains the systems that fit into this time, and mixes them with weights chosen on the "
        "valid part."
    )
    tagger = _open_model(out / MODEL)
    _title("3. Each system and their mixture, on the valid part", f"show {model}")
    show_members(tagger.notes["mixture"])
    _title("4. Which predictions need no review", f"calibrate {model} newsroom")
    with terminal_progress() as on_progress:
        found = setrnn.calibrate(tagger, "newsroom", target=TARGET, on_progress=on_progress)
    tagger = found.tagger.save_calibration(out / MODEL)
    show(describe_acceptance(found.acceptance))
    _title("5. The model, measured once on the test part", f"evaluate {model} newsroom")
    with terminal_progress() as on_progress:
        evaluations = setrnn.evaluate_rules(tagger, parts["test"], on_progress=on_progress)
    rows = {rule: each.as_dict() for rule, each in evaluations.items()}
    show_measures("The measures by each prediction rule", rows)
    if (accepted := evaluations[found.rule].accepted) is not None:
        show_accepted(accepted, TARGET)
    _title("6. Three documents of the test part", f'predict {model} --text "..."')
    explained = _show_documents(tagger, parts["test"])
    with whole_file(out / PAGE) as file:
        file.write(render_explanation(tagger.explain(explained.text, explained.features)).encode())
    _title("7. What next")
    program = "setrnn" if which("setrnn") else sys.argv[0]
    for what, how in NEXT.items():
        show(what)
        line = how.format(page=(out / PAGE).resolve(), setrnn=program, model=model)
        stdout.print(Text(f"  {line}"), soft_wrap=True)


def _open_model(folder: Path) -> Tagger:
    """Return the model of the demo; train it if it is not there yet."""
    from setrnn.comparison.compare import QUICK_SETTINGS  # they load torch: the help needs none
    from setrnn.tagging.learn.member_candidates import count_jobs

    if folder.is_dir():
        return setrnn.load(folder, "cpu")
    try:
        with terminal_progress() as on_progress:
            return setrnn.train(
                "newsroom",
                budget=MINUTES,
                jobs=count_jobs(),
                out=folder,
                hierarchy="newsroom",
                settings=QUICK_SETTINGS | SMALLER,
                device="cpu",
                resume=True,
                on_progress=on_progress,
            )
    except StoppedError:
        raise StoppedError("Stopped. The same command continues the demo.") from None


def _show_documents(tagger: Tagger, examples: Sequence[Example]) -> Example:
    """Show the first document of each kind; return the uncertain one."""
    documents = [(each.text, each.features) for each in examples]
    predictions, marginals = tagger.tag_with_marginals(documents)
    first: dict[str, tuple[Example, Prediction, dict[str, float]]] = {}
    for example, found, row in zip(examples, predictions, marginals.probs, strict=True):
        probs = dict(zip(tagger.labels.names, row.tolist(), strict=True))
        first.setdefault(_kind(example, found, probs), (example, found, probs))
    shown = {kind: first[kind] for kind in (EASY, UNCERTAIN, WRONG) if kind in first}
    for kind, (example, found, probs) in shown.items():
        show(f"\n{kind.capitalize()}. {example.text}")
        _show_labels(example, found, probs)
        verdict = "wrong" if kind == WRONG else "right"
        accepted = "accepted" if found.accepted else "for review"
        show(f"The set has p = {found.probability:.2f} ({accepted}) and is {verdict}.")
    return shown[UNCERTAIN][0] if UNCERTAIN in shown else examples[0]


def _kind(example: Example, found: Prediction, probs: Mapping[str, float]) -> str:
    if set(found.labels) != set(example.labels):
        return WRONG
    least, *others = sorted(probs[label] for label in found.labels) or [0.0]
    if len(others) < 2:
        return ""
    if least >= SURE:
        return EASY
    is_uncertain = least <= UNSURE and others[0] >= SURE and found.probability <= UNSURE
    return UNCERTAIN if is_uncertain else ""


def _show_labels(example: Example, found: Prediction, probs: Mapping[str, float]) -> None:
    """Print the labels of a document, the predicted ones, and the most probable others."""
    rows = [
        [label, f"{prob:.2f}", "x" * (label in found.labels), "x" * (label in example.labels)]
        for label, prob in sorted(probs.items(), key=lambda each: -each[1])
        if prob >= LEAST_LEFT_OUT or label in (*example.labels, *found.labels)
    ]
    show_table("", ["label", "probability", "predicted", "true"], rows)


def _title(title: str, command: str = "") -> None:
    """Print the title of a part, and the command that does the same."""
    stdout.print(Text(f"\n{title}", "bold"))
    if command:
        stdout.print(Text(f"   setrnn {command}", "dim"), soft_wrap=True)
