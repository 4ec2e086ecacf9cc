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
from setrnn.cli.calibrate import acceptance_note
from setrnn.cli.options import option
from setrnn.cli.progress import load_model, terminal_progress
from setrnn.cli.tables import PLAIN, make_table, members_table
from setrnn.cli.terminal import show, stdout
from setrnn.data import newsroom
from setrnn.data.disk import whole_file
from setrnn.data.example import Example
from setrnn.data.hierarchy import describe_fit
from setrnn.data.statistics import dataset_statistics
from setrnn.errors import StoppedError
from setrnn.metrics import MEASURES
from setrnn.report.explanation_page import render_page

if TYPE_CHECKING:
    from setrnn.tagging.measures import Evaluation
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
EASY, UNCERTAIN, WRONG = "an easy one", "one with an uncertain label", "one that it gets wrong"
SURE, UNSURE, LEAST_LEFT_OUT = 0.95, 0.75, 0.05  # probabilities of labels
NEXT = {
    "Open the page that explains the uncertain document:": "{page}",
    "Tag in a browser, at http://127.0.0.1:8000:": "{setrnn} serve {model}",
    "Tag a text of your own:": '{setrnn} predict {model} --text "The cup final is on."',
    "See why:": '{setrnn} explain {model} --text "The cup final is on."',
    "Train on your own file:": "{setrnn} train news.csv --out my-model",
    "Compare all systems, with statistics, in about five minutes:": (
        "{setrnn} compare newsroom --quick --out first-look"
    ),
}


def demo(
    out: Annotated[
        Path, option("The folder of the demo; a demo already there is continued.")
    ] = Path("demo"),
) -> None:
    """Tell the whole story on newsroom, the embedded corpus of synthetic news.

    Shows the data, trains the best model within 75 seconds, measures it, tags three documents,
    says what can be accepted without review, and names the page to open.
    """
    from setrnn.models.card import summarise  # it loads scipy: the help needs none

    model = quote(str(out / MODEL))
    _title("1. The data", "data info newsroom --hierarchy newsroom")
    _show_data()
    _title("2. Training without a method", "train newsroom --hierarchy newsroom --out my-model")
    _print(
        f"Here with small networks and {60 * MINUTES:.0f} seconds instead of 10 minutes. What fits "
        "the time is trained, and mixed with weights chosen on the valid part."
    )
    tagger = _open_model(out / MODEL)
    _title("3. What each member gives on the valid part, and their mixture", f"show {model}")
    stdout.print(members_table(tagger.notes["mixture"]))
    for line in summarise(tagger):
        if line.startswith(("Chosen", "Left out")):
            _print(line)
    _title("4. The model, measured once on the test part", f"evaluate {model} newsroom")
    examples = list(newsroom.examples("test"))
    evaluations, predictions = _measure(tagger, examples)
    _title("5. Three documents and the probabilities of labels", f'predict {model} --text "..."')
    explained = _show_documents(tagger, examples, predictions)
    _title("6. What is accepted without review", f"calibrate {model} newsroom")
    _show_accepted(tagger, evaluations[tagger.rule_or_own(None)])
    with whole_file(out / PAGE) as file:
        file.write(render_page(tagger.explain(explained.text, explained.features)).encode())
    _title("7. What next")
    program = "setrnn" if sys.argv[0] == which("setrnn") else sys.argv[0]
    program = "python -m setrnn" if program.endswith("__main__.py") else program
    for what, how in NEXT.items():
        _print(what)
        show("  " + how.format(page=(out / PAGE).resolve(), setrnn=program, model=model))


def _show_data() -> None:
    parts = {name: list(newsroom.examples(name)) for name in ("train", "valid", "test")}
    found = dataset_statistics(parts)
    train, test = found.splits["train"], found.splits["test"]
    sizes = {name: len(part) for name, part in parts.items()}
    _print(newsroom.DESCRIPTION)
    _print(
        f"Documents: {', '.join(f'{n:,} {name}' for name, n in sizes.items())}. "
        f"{train.n_labels} labels, {train.mean_set_size:.1f} per document; {train.n_label_sets:,} "
        f"different sets in train, and other ones in {test.unseen_share:.1%} of test."
    )
    label_sets = [each.labels for each in parts["train"]]
    _print(" ".join(describe_fit(setrnn.read_hierarchy("newsroom"), label_sets)))


def _open_model(folder: Path) -> Tagger:
    """Return the model with its acceptance; what is not there yet is made, and kept."""
    from setrnn.comparison.compare import QUICK_SETTINGS  # they load torch: the help needs none
    from setrnn.model.devices import n_cores
    from setrnn.tagging.learn.member_candidates import MOST_JOBS

    if folder.is_dir():
        tagger = load_model(folder, "cpu")
    else:
        try:
            with terminal_progress() as on_progress:
                tagger = setrnn.train(
                    "newsroom",
                    budget=MINUTES,
                    jobs=min(n_cores(), MOST_JOBS),
                    out=folder,
                    hierarchy="newsroom",
                    settings=QUICK_SETTINGS | SMALLER,
                    device="cpu",
                    resume=True,
                    on_progress=on_progress,
                )
        except StoppedError:
            raise StoppedError("Stopped. The same command continues the demo.") from None
    if not tagger.fitted.acceptance:
        with terminal_progress() as on_progress:
            found = setrnn.calibrate(tagger, "newsroom", target=TARGET, on_progress=on_progress)
        tagger = found.tagger.save_calibration(folder)
    return tagger


def _measure(
    tagger: Tagger, examples: Sequence[Example]
) -> tuple[Mapping[str, Evaluation], Sequence[Prediction]]:
    """Show each measure by the rule made for it; return all measures, and the predictions."""
    from setrnn.systems.rules import rule_for
    from setrnn.tagging.documents import example_batches
    from setrnn.tagging.evaluate import list_rules, measure_rules

    evaluations = measure_rules(tagger, example_batches(tagger, examples), list_rules(tagger))
    values = []
    for measure, name in MEASURES.items():
        rule = rule_for(measure)
        values.append(f"{name} {getattr(evaluations[rule].scores, measure):.3f} by rule {rule}")
    _print(f"{len(examples)} documents: {', '.join(values)}.")
    return evaluations, evaluations[tagger.rule_or_own(None)].predictions


def _show_documents(
    tagger: Tagger, examples: Sequence[Example], predictions: Sequence[Prediction]
) -> Example:
    """Show the first document of each kind; return the uncertain one."""
    first: dict[str, Example] = {}
    for example, found in zip(examples, predictions, strict=True):
        first.setdefault(_kind(example, found), example)
    shown = {kind: first[kind] for kind in (EASY, UNCERTAIN, WRONG) if kind in first}
    documents = [(each.text, each.features) for each in shown.values()]
    tagged, marginals = tagger.tag_with_marginals(documents)
    for (kind, example), each, row in zip(shown.items(), tagged, marginals.probs, strict=True):
        probs = dict(zip(tagger.labels.names, row.tolist(), strict=True))
        _show_document(kind, example, each, probs)
    _print("The probabilities of sets and of labels are calibrated separately.")
    return shown.get(UNCERTAIN, examples[0])


def _kind(example: Example, found: Prediction) -> str:
    if set(found.labels) != set(example.labels):
        return WRONG
    probs = sorted((found.label_probabilities or {}).values())
    if len(probs) > 2 and probs[0] >= SURE:
        return EASY
    is_uncertain = len(probs) > 2 and probs[0] <= UNSURE and probs[1] >= SURE
    return UNCERTAIN if is_uncertain and found.probability <= UNSURE else ""


def _show_document(
    kind: str, example: Example, found: Prediction, probs: Mapping[str, float]
) -> None:
    """Show a document: its labels, the predicted ones, and the most probable others."""
    _print(f"\n{kind.capitalize()}: {example.text}")
    listed = {*example.labels, *found.labels}
    listed |= {label for label, prob in probs.items() if prob >= LEAST_LEFT_OUT}
    rows = [
        [label, f"{prob:.2f}", "x" * (label in found.labels), "x" * (label in example.labels)]
        for label, prob in sorted(probs.items(), key=lambda each: -each[1])
        if label in listed
    ]
    columns = ["label", "probability", "predicted", "true"]
    stdout.print(make_table("", columns, rows, **PLAIN))
    verdict = "right" if kind != WRONG else "wrong"
    accepted = "accepted" if found.accepted else "for review"
    _print(f"The set has p = {found.probability:.2f} ({accepted}) and is {verdict}.")


def _show_accepted(tagger: Tagger, found: Evaluation) -> None:
    _print("On valid: " + acceptance_note(tagger.fitted.acceptance[found.rule]))
    if (accepted := found.accepted) and accepted.accuracy_accepted is not None:
        n, n_right = accepted.n_accepted, round(accepted.accuracy_accepted * accepted.n_accepted)
        _print(
            f"On test: {n} of {found.scores.n_documents} documents are accepted, and {n_right} of "
            f"these are right ({accepted.accuracy_accepted:.1%}). A person reviews the others."
        )


def _title(title: str, command: str = "") -> None:
    """Print the title of a part, and the command that does the same."""
    stdout.print(Text(f"\n{title}", "bold"))
    if command:
        stdout.print(Text(f"   setrnn {command}", "dim"), soft_wrap=True)


def _print(text: str) -> None:
    stdout.print(text, markup=False, highlight=False)
