"""Compare cutting long documents with reading them in windows (`text.windows`).

    python benchmarks/long_documents.py prepare CELLS --data FOLDER [--encoder PATH] [--set K=V]...
    python benchmarks/long_documents.py run CELLS RESULTS [--jobs 6] [--device cuda] [--set K=V]...
    python benchmarks/long_documents.py table RESULTS

FOLDER holds the datasets arxiv and reuters21578, whose documents are mostly shorter than 500 words:
`prepare` prints which share is cut. A cell is a dataset and how its documents are made long:

- reuters, arxiv: documents as they are. Windows of 64 words, so that 41% and 98% of the
  test documents are cut.
- reuters-default, arxiv-default: the same in windows of 500 words or 256 tokens, the defaults. Only
  transformers cut more than a few of these documents.
- reuters-joined, arxiv-joined: each document is 8 (arxiv: 6) documents of the same part, drawn
  without replacement, one after the other, with the union of their labels. Each original is in 4
  (arxiv: 1) of them. Windows of 500 words, the default.
- reuters-behind: each document follows a preamble of 0 to 2,000 words (uniform), drawn one by one
  from all words of train, so that they say nothing about the labels. Windows of 500 words.

Each cell is prepared in three ways: `cut` (one window), `windows` (as many as nearly all documents
fill), and `whole` (one window as long as all of these; a transformer reads at most 512 tokens).
With `--encoder`, the tokens are those of this transformer, in windows of 64 or 256. `prepare`
writes an archive per cell and way, with word vectors in 8 bits, so that `run` needs neither the
datasets nor gensim. `run` trains each system in a process of its own, and writes one JSON file
each; the same command resumes. The epoch is chosen on valid. The longest quarter of valid and test
is that by the words of `whole`. `table` prints means over the seeds, each measure by the rule made
for it.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from short_texts import pack_cell, unpack_cell

SEED = 20  # of the choice of documents
SPLIT_OFF = 1000  # valid documents of a dataset without a valid part
LONGEST = 0.75  # the quantile of lengths from which on a document is among the longest
MOST_TOKENS = 512  # that the transformer reads at once
FIELDS = {"arxiv": "title,text", "reuters21578": "text"}
WAYS = ("cut", "windows", "whole")
METHODS = ("sigmoid", "set-rnn")
MEASURED = {"instance_f1": "f1", "label_f1": "label-f1", "micro_f1": "micro-f1"}  # and their rules
SETTINGS_FILE = "settings.json"
Parts = dict[str, list[Any]]  # examples, by the name of the part
Result = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A dataset, how its documents are made long, and the windows."""

    data: str
    words: int  # of a window
    n_windows: int
    tokens: int  # of a window of a transformer
    n_joined: int = 1
    n_times: int = 1  # that each document is in a joined one
    most_before: int = 0  # words of a preamble


CELLS = {
    "reuters": Cell("reuters21578", 64, 8, 64),
    "arxiv": Cell("arxiv", 64, 4, 64),
    "reuters-default": Cell("reuters21578", 500, 2, 256),
    "arxiv-default": Cell("arxiv", 500, 2, 256),
    "reuters-joined": Cell("reuters21578", 500, 4, 256, n_joined=8, n_times=4),
    "arxiv-joined": Cell("arxiv", 500, 4, 256, n_joined=6),
    "reuters-behind": Cell("reuters21578", 500, 4, 256, most_before=2000),
}
N_TOKEN_WINDOWS = 8


def main(given: list[str] | None = None) -> None:
    """Prepare cells, run systems, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    work = parser.add_subparsers(dest="work", required=True)
    makes, runs = work.add_parser("prepare"), work.add_parser("run")
    makes.add_argument("cells", type=Path)
    makes.add_argument("--data", type=Path, required=True)
    makes.add_argument("--encoder", default="", metavar="PATH")
    makes.add_argument("--documents", type=int, default=0, help="per part; 0: all")
    runs.add_argument("cells", type=Path)
    runs.add_argument("results", type=Path)
    runs.add_argument("--encoder", default="", metavar="PATH")
    runs.add_argument("--seeds", type=int, default=3)
    runs.add_argument("--jobs", type=int, default=1)
    runs.add_argument("--device", default="auto")
    runs.add_argument("--methods", nargs="+", default=METHODS)
    runs.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    for each in (makes, runs):
        each.add_argument("--only", nargs="+", choices=CELLS, default=list(CELLS))
        each.add_argument("--set", dest="settings", action="append", default=[], metavar="K=V")
    one = work.add_parser("one")  # what `run` starts
    one.add_argument("task", type=json.loads)
    work.add_parser("table").add_argument("results", type=Path)
    arguments = parser.parse_args(given)
    if arguments.work == "prepare":
        for name in arguments.only:
            prepare_cell(name, arguments)
    elif arguments.work == "run":
        run_cells(arguments)
    elif arguments.work == "one":
        run_one(arguments.task)
    else:
        print(format_table(read_results(arguments.results)))


def text_settings(cell: Cell, way: str, encoder: str) -> list[str]:
    """Return the settings of a way to read documents."""
    if encoder:
        size, n = cell.tokens, N_TOKEN_WINDOWS
        size, n = (min(size * n, MOST_TOKENS), 1) if way == "whole" else (size, n)
    else:
        size, n = cell.words, cell.n_windows
        size, n = (size * n, 1) if way == "whole" else (size, n)
    name = "max_tokens" if encoder else "max_words"
    return [f"text.{name}={size}", f"text.windows={1 if way == 'cut' else n}"]


def encoder_settings(encoder: str) -> list[str]:
    """Return the settings of a transformer; none for the GRU."""
    return [f"encoder.path={encoder}"] if encoder else []


def prepare_cell(name: str, arguments: argparse.Namespace) -> None:
    """Make the documents of a cell, and an archive of them for each way."""
    import setrnn
    from setrnn.data.formats.write import write_examples

    cell, out, encoder = CELLS[name], arguments.cells, arguments.encoder
    work = out / "work"
    texts = work / "texts" / name
    texts.mkdir(parents=True, exist_ok=True)
    parts = make_long(read_parts(arguments.data / cell.data, cell.data), cell)
    for part, examples in parts.items():
        write_examples(examples[: arguments.documents or None], texts / f"{part}.jsonl")
    (out / SETTINGS_FILE).write_text(json.dumps(arguments.settings), encoding="utf-8")
    for way in WAYS:
        prepared = setrnn.prepare(
            texts,
            out=work / "made",
            preset="transformer" if encoder else "default",
            settings=[
                *arguments.settings,
                *text_settings(cell, way, encoder),
                *encoder_settings(encoder),
            ],
            vectors=True,
        )
        archive = pack_cell(prepared.folder, work, out / folder_name(name, way, encoder))
        shares = ", ".join(f"{share:.1%} of {part}" for part, share in find_cut(prepared).items())
        print(f"{archive.stem}: {archive.stat().st_size / 1e6:.1f} MB; cut: {shares}", flush=True)
    longest = {part: find_longest(prepared, part) for part in ("valid", "test")}  # of `whole`
    (out / f"{folder_name(name, 'longest', encoder)}.json").write_text(json.dumps(longest))
    shutil.rmtree(work)


def folder_name(name: str, way: str, encoder: str) -> str:
    """Return the name of a prepared folder."""
    return f"{name}-{'transformer' if encoder else 'gru'}-{way}"


def read_parts(folder: Path, name: str) -> Parts:
    """Read all parts of a dataset; split valid off from train if there is none."""
    import setrnn
    from setrnn.data.formats import BadRows

    splits = setrnn.open_dataset(folder, setrnn.ReadOptions(text_field=FIELDS[name])).splits
    parts = {part: list(each.read(BadRows())) for part, each in splits.items()}
    for examples in parts.values():
        random.Random(SEED).shuffle(examples)
    if "valid" not in parts:
        parts["valid"], parts["train"] = parts["train"][:SPLIT_OFF], parts["train"][SPLIT_OFF:]
    return parts


def make_long(parts: Parts, cell: Cell) -> Parts:
    """Make documents long in the way of a cell."""
    if cell.n_joined > 1:
        return {name: [*join(each, cell.n_joined, cell.n_times)] for name, each in parts.items()}
    if cell.most_before:
        words = [word for each in parts["train"] for word in each.text.split()]
        return {name: [*put_behind(each, words, cell.most_before)] for name, each in parts.items()}
    return parts


def join(examples: Sequence[Any], n_joined: int, n_times: int) -> Iterator[Any]:
    """Yield joined documents with the union of their labels; each is in `n_times` of them."""
    from setrnn.data.example import Example

    draw = random.Random(SEED)
    for time_number in range(n_times):
        order = draw.sample(range(len(examples)), len(examples))
        for start in range(0, len(order) - n_joined + 1, n_joined):
            own = [examples[row] for row in order[start : start + n_joined]]
            labels = dict.fromkeys(label for each in own for label in each.labels)
            name = f"{time_number}-{start // n_joined}"
            yield Example(name, "\n".join(each.text for each in own), tuple(labels))


def put_behind(examples: Iterable[Any], words: Sequence[str], most: int) -> Iterator[Any]:
    """Yield documents behind a preamble of words that are drawn one by one."""
    from setrnn.data.example import Example

    draw = random.Random(SEED)
    for each in examples:
        before = draw.choices(words, k=draw.randint(0, most))
        yield Example(each.id, " ".join([*before, each.text]), each.labels)


def find_cut(prepared: Any) -> dict[str, float]:  # noqa: ANN401 (imported late)
    """Return the share of documents of each part that are cut."""
    most = prepared.text_settings.windows
    return {
        part: round(
            sum(count for n, count in each.items() if n > most) / max(sum(each.values()), 1), 4
        )
        for part, each in prepared.n_windows.items()
    }


def find_longest(prepared: Any, part: str) -> list[int]:  # noqa: ANN401 (imported late)
    """Return the rows of the longest quarter of a part."""
    lengths = prepared.split(part).tokens.lengths
    rows: list[int] = np.flatnonzero(lengths >= np.quantile(lengths, LONGEST)).tolist()
    return rows


def run_cells(arguments: argparse.Namespace) -> None:
    """Train and measure what RESULTS lacks, each in a process of its own."""
    cells, results, encoder = arguments.cells, arguments.results, arguments.encoder
    results.mkdir(parents=True, exist_ok=True)
    own = json.loads((cells / SETTINGS_FILE).read_text(encoding="utf-8"))
    own = [each for each in own if not each.startswith("text.")]  # those of the prepared folder
    tasks = []
    for seed, name, way, method in product(
        range(arguments.seeds), arguments.only, arguments.ways, arguments.methods
    ):
        folder = folder_name(name, way, encoder)
        file = results / f"{folder}-{method}-{seed}.json"
        if file.exists() or not (cells / f"{folder}.zip").exists():
            continue
        unpack_cell(cells / f"{folder}.zip", cells / "work")
        tasks.append(
            {
                "cell": name,
                "way": way,
                "method": method,
                "seed": seed,
                "encoder": encoder,
                "device": arguments.device,
                "settings": [*own, *arguments.settings, *encoder_settings(encoder)],
                "data": str(cells / "work" / "prepared" / folder),
                "longest": str(cells / f"{folder_name(name, 'longest', encoder)}.json"),
                "file": str(file),
            }
        )

    def start(task: Result) -> None:
        command = [sys.executable, __file__, "one", json.dumps(task)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        said = ended.stdout.strip() or ended.stderr.strip()[-500:]
        print(said if not ended.returncode else f"FAILED {task['file']}: {said}", flush=True)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(start, tasks))


def run_one(task: Result) -> None:
    """Train and measure one system; write its JSON file."""
    import torch

    torch.set_num_threads(1)
    import setrnn
    from setrnn.data.prepared import Prepared

    start = time.perf_counter()
    prepared = Prepared(Path(task["data"]))
    tagger = setrnn.train(
        prepared,
        task["method"],
        preset="transformer" if task["encoder"] else "default",
        settings=task["settings"],
        seed=task["seed"],
        device=task["device"],
    )
    seconds = time.perf_counter() - start
    longest = json.loads(Path(task["longest"]).read_text(encoding="utf-8"))
    result: Result = {name: task[name] for name in ("cell", "way", "method", "seed")}
    result |= {
        "encoder": "transformer" if task["encoder"] else "gru",
        "settings": [each for each in task["settings"] if not each.startswith("encoder.path")],
        "n_train": len(prepared.split("train")),
        "cut": find_cut(prepared),
        "seconds": round(seconds, 1),
        "best_epoch": tagger.notes.get("best_epoch"),
    }
    for part in ("valid", "test"):
        for name, rows in ((part, None), (f"{part}_longest", longest[part])):
            result[name] = measure(tagger, prepared.folder, part, rows)
    if torch.cuda.is_available() and task["device"] != "cpu":
        result["gpu_gb"] = round(torch.cuda.max_memory_allocated() / 1e9, 2)
    unfinished = Path(f"{task['file']}.unfinished")
    unfinished.write_text(json.dumps(result, indent=1), encoding="utf-8")
    unfinished.rename(task["file"])
    print(f"{Path(task['file']).stem}: {result['test_longest']} in {seconds:.0f} s")


def measure(tagger: Any, data: Path, part: str, rows: list[int] | None) -> dict[str, float]:  # noqa: ANN401
    """Measure on some documents of a part, each measure by its rule; None means all."""
    from setrnn.tagging.documents import open_documents, take_documents
    from setrnn.tagging.evaluating import measure_rules

    documents = open_documents(data, part)
    if rows is not None:
        documents = take_documents(documents, np.array(rows, dtype=np.int64))
    found = measure_rules(tagger, documents.batches(tagger), [*MEASURED.values(), "set"])
    values = {name: getattr(found[rule].evaluation.scores, name) for name, rule in MEASURED.items()}
    values["subset_accuracy"] = found["set"].evaluation.scores.subset_accuracy
    return {name: round(float(value), 4) for name, value in values.items()}


def read_results(folder: Path) -> list[Result]:
    """Read the finished runs."""
    return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]


def format_table(results: Sequence[Result]) -> str:
    """Lay out the mean over seeds of instance, label and micro-F1, and the spread of the first."""
    places = ("valid_longest", "test_longest", "test")
    lines = [
        "| cell | encoder | system | way | cut in test | "
        + " | ".join(places)
        + " | seconds | n |",
        "|---" * (len(places) + 7) + "|",
    ]
    keys = ("cell", "encoder", "method", "way")
    groups = dict.fromkeys(tuple(each[key] for key in keys) for each in results)
    for group in sorted(groups, key=lambda each: (*each[:3], WAYS.index(each[3]))):
        runs = [each for each in results if tuple(each[key] for key in keys) == group]
        name, encoder, method, way = group
        cells = [f"{runs[0]['cut']['test']:.1%}", *(_mean(runs, place) for place in places)]
        cells += [f"{fmean(run['seconds'] for run in runs):.0f}", str(len(runs))]
        lines.append(f"| {name} | {encoder} | `{method}` | {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _mean(runs: Sequence[Result], place: str) -> str:
    means = [fmean(run[place][name] for run in runs) for name in MEASURED]
    spread = f" (±{stdev(run[place]['instance_f1'] for run in runs):.3f})" if len(runs) > 1 else ""
    return " / ".join(f"{value:.3f}" for value in means) + spread


if __name__ == "__main__":
    main()
