"""Compare the systems on few documents and on short texts: 27 cuts of three datasets.

    python benchmarks/short_texts.py --prepare CELLS --data FOLDER [--set KEY=VALUE]...
    python benchmarks/short_texts.py --run CELLS --out RESULTS.jsonl [--jobs 15] [--device cuda]
    python benchmarks/short_texts.py --table RESULTS.jsonl

FOLDER holds the datasets arxiv, debtags and reuters21578. A cell is one of them with 500, 2,000 or
7,000 training documents, cut to their first 8, 20 or 50 words. `--prepare` writes a prepared folder
per cell, with word vectors, so that `--run` does not need the datasets. `--run` trains four systems
per cell, mixes them, and adds a line to RESULTS.jsonl for each system when all of the cell are
done; the same command resumes. Then, as `--table` does, it writes RESULTS.json and RESULTS.md.
Everything is measured on valid, each measure by the rule made for it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

DATASETS = {"arxiv": "title,text", "debtags": "text", "reuters21578": "text"}  # and their fields
N_DOCUMENTS = (500, 2000, 7000)
N_WORDS = (8, 20, 50)
MOST_VALID = 2000
SPLIT_OFF = 1000  # valid documents of a dataset without a valid part
SEED = 15  # of the choice of documents
LINEAR = "br-support"
NETWORKS = ("set-rnn", "set-rnn-exact", "sigmoid")
MIXTURE = "mixture"
METHODS = (LINEAR, *NETWORKS, MIXTURE)
MEASURED = {"instance_f1": "f1", "label_f1": "label-f1", "micro_f1": "micro-f1"}  # and their rules
MARGIN = 0.02
FAILED, UNLEARNED, BEHIND, FINE = "failed", "learned nothing", "behind", ""
SETTINGS_FILE = "settings.json"
Result = dict[str, Any]
Task = tuple[str, str, int]  # cell, method, seed


def list_cells() -> list[str]:
    """Return the names of all cells, the largest first: they take the longest."""
    return [
        f"{name}-{n_documents}-{n_words}"
        for n_documents in sorted(N_DOCUMENTS, reverse=True)
        for n_words in sorted(N_WORDS, reverse=True)
        for name in DATASETS
    ]


def prepare_cells(data: Path, out: Path, cells: Sequence[str], settings: Sequence[str]) -> None:
    """Cut the datasets; write a prepared folder with word vectors per cell."""
    import setrnn

    out.mkdir(parents=True, exist_ok=True)
    (out / SETTINGS_FILE).write_text(json.dumps(list(settings)), encoding="utf-8")
    for name, fields in DATASETS.items():
        wanted = [cell for cell in cells if cell.startswith(f"{name}-")]
        parts = read_parts(data / name, fields) if wanted else {}
        for cell in wanted:
            write_cut(parts, cell, out / "texts" / cell)
            made = setrnn.prepare(
                out / "texts" / cell, out=out / "made", settings=settings, vectors=True
            )
            made.folder.rename(out / cell)
            print(cell, flush=True)
    for folder in ("texts", "made"):
        shutil.rmtree(out / folder, ignore_errors=True)


def read_parts(folder: Path, fields: str) -> dict[str, list[Any]]:
    """Read the train and valid parts of a dataset, shuffled; split valid off if there is none."""
    import setrnn
    from setrnn.data.read import BadRows

    splits = setrnn.open_dataset(folder, setrnn.ReadOptions(text_field=fields)).splits
    parts = {
        part: list(splits[part].read(BadRows())) for part in ("train", "valid") if part in splits
    }
    for examples in parts.values():
        random.Random(SEED).shuffle(examples)
    if "valid" not in parts:
        parts["valid"], parts["train"] = parts["train"][:SPLIT_OFF], parts["train"][SPLIT_OFF:]
    return parts


def write_cut(parts: dict[str, list[Any]], cell: str, folder: Path) -> None:
    """Write the first documents of both parts, and of each its first words."""
    from setrnn.data.example import Example
    from setrnn.data.read.write import write_examples

    _, n_documents, n_words = cell.split("-")
    folder.mkdir(parents=True, exist_ok=True)
    for part, most in (("train", int(n_documents)), ("valid", MOST_VALID)):
        cut = (
            Example(each.id, " ".join(each.text.split()[: int(n_words)]), each.labels)
            for each in parts[part][:most]
        )
        write_examples(cut, folder / f"{part}.jsonl")


def run_cells(
    folder: Path,
    out: Path,
    tasks: Sequence[tuple[str, int]],
    n_jobs: int,
    device: str,
    settings: Sequence[str],
) -> None:
    """Train and measure the systems of each cell and seed that RESULTS lacks."""
    settings = [*json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8")), *settings]
    done = {_key(each) for each in read_results(out) if "error" not in each}
    out.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        waiting = [
            pool.submit(run_cell, folder, cell, seed, device, settings)
            for cell, seed in tasks
            if any((cell, method, seed) not in done for method in METHODS)
        ]
        for future in as_completed(waiting):
            results = future.result()
            with out.open("a", encoding="utf-8") as lines:
                lines.writelines(json.dumps(each) + "\n" for each in results)
            print("\n".join(map(describe, results)), flush=True)


def run_cell(folder: Path, cell: str, seed: int, device: str, settings: list[str]) -> list[Result]:
    """Train the systems of a cell that are not there, and mix them."""
    return [run_one(folder, (cell, method, seed), device, settings) for method in METHODS]


def describe(result: Result) -> str:
    name = f"{result['cell']} {result['method']} seed {result['seed']}"
    if "error" in result:
        return f"{name}: FAILED, {result['error']}"
    scores = " / ".join(f"{result[measure]:.3f}" for measure in MEASURED)
    return f"{name}: {scores} in {result['seconds']:.0f} s"


def model_folder(work: Path, cell: str, method: str, seed: int) -> Path:
    return work / "models" / f"{cell}-{method}-{seed}"


def run_one(work: Path, task: Task, device: str, settings: list[str]) -> Result:
    """Train, save and measure one system, or mix those of a cell; an error is a result too."""
    import torch

    torch.set_num_threads(1)
    import setrnn

    cell, method, seed = task
    data = work / cell
    model = model_folder(work, cell, method, seed)
    result: Result = {"cell": cell, "method": method, "seed": seed}
    start = time.perf_counter()
    try:
        if method == MIXTURE:
            folders = [model_folder(work, cell, name, seed) for name in (LINEAR, *NETWORKS)]
            there = [folder for folder in folders if folder.exists()]
            # Texts that are cut to few words are often equal: they look like those trained on.
            tagger = setrnn.mix(
                there, data, split="valid", device=device, allow_training_documents=True
            )
            result["held_out"] = find_held_out(tagger.notes["mixture"])
        elif model.exists():
            tagger = setrnn.load(model, device)
        else:
            run = model.with_name(f"{model.name}.run")
            shutil.rmtree(run, ignore_errors=True)  # of a process that was killed
            tagger = setrnn.train(
                data, method, out=model, settings=settings, seed=seed, device=device
            )
            shutil.rmtree(run, ignore_errors=True)
        result["seconds"] = round(time.perf_counter() - start, 1)
        result |= measure(tagger, data)
        result["constant"] = measure_constant(data)
    except Exception as error:  # noqa: BLE001 (the table says which cells failed)
        result["error"] = f"{type(error).__name__}: {error}"[:300]
    return result


def measure(tagger: Any, data: Path) -> dict[str, float]:  # noqa: ANN401 (imported late)
    from setrnn.tagging.documents import open_documents
    from setrnn.tagging.evaluate import measure_rules

    documents = open_documents(data, "valid")
    rules = [*MEASURED.values(), "set"]
    found = measure_rules(tagger, documents.batches(tagger), rules)
    values = {name: getattr(found[rule].evaluation.scores, name) for name, rule in MEASURED.items()}
    values["subset_accuracy"] = found["set"].evaluation.scores.subset_accuracy
    return {name: round(float(value), 4) for name, value in values.items()}


def find_held_out(mixture: dict[str, Any]) -> dict[str, float]:
    """Return the scores of the mixture by rule, with weights fitted on other documents."""
    return {
        rule: round(float(values["held_out"]), 4)
        for rule, values in mixture["rules"].items()
        if values.get("held_out") is not None
    }


def measure_constant(data: Path) -> float:
    """Return the instance-F1 of the best constant set: the most frequent labels of train."""
    from setrnn.data.prepared import Prepared

    prepared = Prepared(data)
    valid = prepared.split("valid").labels
    best = 0.0
    for size in range(1, min(len(prepared.labels), 10) + 1):
        n_right = np.bincount(
            valid.row_numbers[np.asarray(valid.values) < size], minlength=len(valid)
        )
        best = max(best, float((2 * n_right / (size + valid.lengths)).mean()))
    return round(best, 4)


def read_results(file: Path) -> list[Result]:
    """Read the lines of finished runs; a line that was cut short is left out."""
    results: dict[Task, Result] = {}
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                result = json.loads(line)
            except ValueError:
                continue
            results[_key(result)] = result
    return list(results.values())


def _key(result: Result) -> Task:
    return result["cell"], result["method"], result["seed"]


def judge(runs: Sequence[Result], linear: float | None) -> str:
    """Say what is wrong with a network in a cell, if anything."""
    if any("error" in run for run in runs):
        return FAILED
    value = fmean(run["instance_f1"] for run in runs)
    if value <= fmean(run["constant"] for run in runs):
        return UNLEARNED
    return BEHIND if linear is not None and value < linear - MARGIN else FINE


def summarise(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return one row per cell: the mean of each measure over seeds, and a verdict, by method."""
    rows = []
    for cell in sorted({each["cell"] for each in results}, key=list_cells().index):
        runs = {m: [r for r in results if (r["cell"], r["method"]) == (cell, m)] for m in METHODS}
        scores = {
            method: {name: round(fmean(run[name] for run in of), 4) for name in MEASURED}
            for method, of in runs.items()
            if of and not any("error" in run for run in of)
        }
        linear = scores.get(LINEAR, {}).get("instance_f1")
        verdicts = {m: judge(runs[m], linear) for m in METHODS if runs[m]}
        rows.append({"cell": cell, "scores": scores, "verdicts": verdicts, "ahead": _ahead(scores)})
    return rows


def _ahead(scores: dict[str, dict[str, float]]) -> dict[str, bool]:
    """Return by measure whether the mixture is at least as good as all its members."""
    if set(scores) != set(METHODS):
        return {}
    return {
        name: all(scores[MIXTURE][name] >= scores[m][name] for m in METHODS if m != MIXTURE)
        for name in MEASURED
    }


def make_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a Markdown table of all cells, and what it shows in a few lines."""

    def show(row: dict[str, Any], method: str) -> str:
        values = row["scores"].get(method, {}).values()
        shown = " / ".join(f"{value:.3f}".removeprefix("0") for value in values)
        verdict = row["verdicts"].get(method)
        return f"{shown} **{verdict}**".strip() if verdict else shown

    def count(values: Sequence[bool]) -> str:
        return f"{sum(values)} of {len(values)}"

    lines = [f"| cell | {' | '.join(METHODS)} |", "|---" * (len(METHODS) + 1) + "|"]
    lines += [
        f"| {row['cell']} | {' | '.join(show(row, method) for method in METHODS)} |" for row in rows
    ]
    lines += [
        "",
        f"Instance / label / micro-F1 on valid. {BEHIND.capitalize()}: more than {MARGIN} of "
        f"instance-F1 below {LINEAR}. {UNLEARNED.capitalize()}: no better than the best set "
        "that is the same for all documents.",
        "",
    ]
    lines += [
        f"- {method}: within {MARGIN} of {LINEAR} or ahead in "
        + count([row["verdicts"][method] == FINE for row in rows if method in row["verdicts"]])
        + " cells."
        for method in (*NETWORKS, MIXTURE)
    ]
    for name in MEASURED:
        cells = [row["ahead"][name] for row in rows if row["ahead"]]
        lines.append(f"- {MIXTURE}: no member is better by {name} in {count(cells)} cells.")
    return "\n".join(lines) + "\n"


def write_table(out: Path) -> None:
    rows = summarise(read_results(out))
    out.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    table = make_table(rows)
    out.with_suffix(".md").write_text(table, encoding="utf-8")
    print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--prepare", type=Path, metavar="CELLS", help="the folder to write")
    what.add_argument("--run", type=Path, metavar="CELLS", help="the folder that --prepare wrote")
    what.add_argument("--table", type=Path, metavar="RESULTS.jsonl", help="write its tables again")
    parser.add_argument("--data", type=Path, help="the folder of the datasets, for --prepare")
    parser.add_argument("--out", type=Path, metavar="RESULTS.jsonl", help="for --run")
    parser.add_argument("--cells", help="such as arxiv-500-8,debtags-2000-50; default: all")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args(arguments)
    cells = given.cells.split(",") if given.cells else list_cells()
    if unknown := set(cells) - set(list_cells()):
        parser.error(f"no such cells: {', '.join(sorted(unknown))}")
    if given.prepare:
        if not given.data:
            parser.error("--prepare needs --data")
        prepare_cells(given.data, given.prepare, cells, given.set)
        return
    if given.run:
        if not given.out:
            parser.error("--run needs --out")
        os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that it starts
        there = [cell for cell in cells if (given.run / cell).exists()]
        tasks = [(cell, seed) for cell in there for seed in range(given.seeds)]
        run_cells(given.run, given.out, tasks, given.jobs, given.device, given.set)
    write_table(given.out or given.table)


if __name__ == "__main__":
    main()
