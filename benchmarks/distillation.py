"""Measure how much of a teacher's gain a student keeps, and at what speed.

    python benchmarks/distillation.py DATA --out DIR [--documents N] [--words N] [--split valid]
        [--seeds 1] [--device auto] [--set KEY=VALUE]... [--student KEY=VALUE]...
    python benchmarks/distillation.py DATA --out DIR --prepare-only

The labels of half of the train part of DATA are hidden. With --documents, N training documents are
used and at most N / 2 of the other parts; with --words, the first words of each text.
The teacher is the mixture of br-support, set-rnn-exact and sigmoid, all trained on the half with
labels. The student is a set-rnn-exact network like the teacher's member of that name, which is
the network without a teacher. Every system starts from the same vocabulary and word vectors, which
are made from all texts. Weights, epochs and thresholds are chosen on valid. Each measure is given
by its own rule.

--prepare-only stops when the prepared folder is written to DIR, and prints its path: as DATA, it
needs neither gensim nor the texts. A run that is given again continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

import setrnn
from setrnn.data.formats import BadRows, write_examples
from setrnn.data.prepared import Prepared, is_prepared

MEMBERS = ("br-support", "set-rnn-exact", "sigmoid")
STUDENT = "set-rnn-exact"
RULES = {"f1": "instance_f1", "label-f1": "label_f1", "micro-f1": "micro_f1"}
Row = dict[str, float]


def hide_labels(arguments: argparse.Namespace) -> Prepared:
    """Write the data with the labels of half of the training texts hidden, and prepare it."""
    folder, hidden = arguments.out / "data", arguments.out / "hidden" / "texts.jsonl"
    dataset = setrnn.open_dataset(arguments.data)
    if not (folder / "train.jsonl").exists():  # it is written last
        train = list(dataset.splits["train"].read(BadRows()))
        random.Random(0).shuffle(train)
        train = train[: arguments.documents]
        half = len(train) // 2
        most = None if arguments.documents is None else half
        parts: dict[str, Iterator[setrnn.Example]] = {
            name: islice(part.read(BadRows()), most) for name, part in dataset.splits.items()
        }
        n_valid = 0 if "valid" in parts else half // 10  # of the texts with labels
        if n_valid:
            parts["valid"] = iter(train[:n_valid])
        parts["train"] = iter(train[n_valid:half])
        hidden.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        without = (replace(each, labels=()) for each in train[half:])
        write_examples(cut(without, arguments.words), hidden)
        for name in sorted(parts, key=lambda each: each == "train"):
            write_examples(cut(parts[name], arguments.words), folder / f"{name}.jsonl")
    source = setrnn.Source(str(folder), unlabelled=(hidden,))
    return setrnn.prepare(
        source, out=arguments.out / "prepared", settings=arguments.settings, vectors=True
    )


def cut(examples: Iterator[setrnn.Example], n_words: int | None) -> Iterator[setrnn.Example]:
    """Keep the first words of each text."""
    for each in examples:
        text = each.text if n_words is None else " ".join(islice(each.text.split(), n_words))
        yield setrnn.Example(each.id, text, each.labels, each.features)


def run_seed(prepared: Prepared, seed: int, arguments: argparse.Namespace) -> dict[str, Row]:
    """Train the teacher and the students, and measure all."""
    folder = arguments.out / f"seed-{seed}"
    common = {"device": arguments.device, "seed": seed}
    members = []
    for method in MEMBERS:
        out = folder / method
        members.append(
            finished(out)
            or setrnn.train(
                prepared,
                method,
                out=out,
                settings=arguments.settings,
                resume=(folder / f"{method}.run").exists(),
                **common,
            )
        )
    teacher = setrnn.mix(members, prepared, split="valid")
    systems = {"without a teacher": members[MEMBERS.index(STUDENT)], "teacher": teacher}
    for name, use_unlabelled in (("labelled texts only", "false"), ("all texts", "true")):
        out = folder / f"student-{use_unlabelled}"
        own = [*arguments.student, f"distillation.use_unlabelled={use_unlabelled}"]
        systems[f"student, {name}"] = finished(out) or setrnn.distil(
            teacher,
            prepared,
            STUDENT,
            out=out,
            settings=[*arguments.settings, *own],
            resume=out.with_name(out.name + ".run").exists(),
            **common,
        )
    return {name: measure(tagger, prepared, arguments) for name, tagger in systems.items()}


def finished(folder: Path) -> setrnn.Tagger | None:
    """Return the model of a run that is finished."""
    return setrnn.load(folder) if (folder / "calibration.json").exists() else None


def measure(tagger: setrnn.Tagger, prepared: Prepared, arguments: argparse.Namespace) -> Row:
    """Measure one system by the rules of the three F1; the speed is that of rule f1."""
    found = {rule: setrnn.evaluate(tagger, prepared, rule, split=arguments.split) for rule in RULES}
    scores = {name: getattr(found[rule].scores, name) for rule, name in RULES.items()}
    return scores | {
        "log_likelihood": found["f1"].set_log_likelihood.mean or 0.0,
        "documents_per_second": found["f1"].documents_per_second,
    }


def table(rows: list[dict[str, Row]]) -> Iterator[str]:
    """Yield the mean over the seeds as a Markdown table."""
    yield "| | instance / label / micro-F1 | gain kept | log p(true set) | documents/s |"
    yield "|---|---|---|---|---|"
    mean = {
        name: {key: float(np.mean([row[name][key] for row in rows])) for key in rows[0][name]}
        for name in rows[0]
    }
    alone, teacher = mean["without a teacher"], mean["teacher"]
    for name, row in mean.items():
        f1 = " / ".join(f"{row[key]:.3f}".lstrip("0") for key in RULES.values())
        kept = "-"
        if name.startswith("student"):
            kept = " / ".join(
                f"{(row[key] - alone[key]) / (teacher[key] - alone[key]):.0%}"
                for key in RULES.values()
                if teacher[key] != alone[key]
            )
        likelihood, speed = row["log_likelihood"], row["documents_per_second"]
        yield f"| {name} | {f1} | {kept} | {likelihood:.2f} | {speed:,.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--documents", type=int)
    parser.add_argument("--words", type=int)
    parser.add_argument("--split", default="valid")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", dest="settings", action="append", default=[])
    parser.add_argument("--student", action="append", default=[], help="a setting of students only")
    parser.add_argument("--prepare-only", action="store_true")
    arguments = parser.parse_args()

    place = Path(arguments.data)
    prepared = Prepared(place) if is_prepared(place) else hide_labels(arguments)
    if arguments.prepare_only:
        print(prepared.folder)
        return
    print(f"{prepared.name}: {prepared.description['n_documents']}", flush=True)
    rows = []
    for seed in range(arguments.seeds):
        rows.append(run_seed(prepared, seed, arguments))
        print(f"seed {seed}", *table(rows[-1:]), sep="\n", flush=True)
    if len(rows) > 1:
        print(f"mean of {len(rows)} seeds", *table(rows), sep="\n")
    (arguments.out / "rows.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
