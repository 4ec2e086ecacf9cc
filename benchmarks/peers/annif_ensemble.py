"""Annif: MLLM, Omikuji (Bonsai) and the ensemble of both, as its tutorial sets them up.

MLLM finds the names of labels in the text: a vocabulary whose labels are codes (`cs.AI`) gives it
nothing to find, and Omikuji is then the only row. MLLM learns from the first 1,000 training
documents, Omikuji from all. Annif splits sentences by the model `punkt_tab`, which nltk downloads;
without NLTK_DATA, an empty model is used, which knows no abbreviations.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from exchange import Data, Part, Scores, run_peer

PROJECTS = """
[mllm]
name=MLLM
language=en
backend=mllm
vocab=labels
analyzer=snowball(english)
limit={n_labels}

[omikuji]
name=Omikuji Bonsai
language=en
backend=omikuji
vocab=labels
analyzer=snowball(english)
cluster_balanced=False
cluster_k=100
max_depth=3
min_df=2
ngram=2
limit={n_labels}

[ensemble]
name=Ensemble
language=en
backend=ensemble
vocab=labels
sources=mllm:1,omikuji:3
limit={n_labels}
"""
ADDRESS = "http://label.invalid/{}"  # of a label, by its number
MLLM_DOCUMENTS, AT_ONCE = 1000, 32
# What MLLM says where no text has the name of a label.
NOTHING_FOUND = "Not enough positive and negative examples"


def write_files(data: Data, folder: Path) -> None:
    """Write the settings, the vocabulary and the training documents."""
    (folder / "projects.cfg").write_text(PROJECTS.format(n_labels=len(data.labels)))
    address = {label: ADDRESS.format(number) for number, label in enumerate(data.labels)}
    names = ((address[label], name_in_text(label)) for label in data.labels)
    (folder / "labels.tsv").write_text("".join(f"<{uri}>\t{name}\n" for uri, name in names))
    with (folder / "train.jsonl").open("w", encoding="utf-8") as lines:
        for text, labels in zip(data.train.texts, data.train.label_sets, strict=True):
            subjects = [{"uri": address[label]} for label in labels]
            lines.write(json.dumps({"text": text, "subjects": subjects}) + "\n")


def name_in_text(label: str) -> str:
    """Return the words of a label without its facet, as a text may have them.

    >>> name_in_text("works-with::text-file")
    'text file'
    """
    return re.sub(r"[^\w]+", " ", label.rpartition("::")[2]).strip()


def write_punkt(folder: Path) -> None:
    """Write a model of sentences that has learned nothing."""
    place = folder / "tokenizers" / "punkt_tab" / "english"
    place.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (place / name).touch()


def predict(project: object, part: Part, columns: list[int]) -> np.ndarray:
    from annif.corpus import Document

    rows = []
    for start in range(0, len(part.texts), AT_ONCE):
        texts = part.texts[start : start + AT_ONCE]
        found = project.suggest([Document(text=text) for text in texts])
        rows += [each.as_vector()[columns] for each in found]
    return np.array(rows)


def train(data: Data, options: argparse.Namespace) -> Iterator[Scores]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_files(data, folder)
        if "NLTK_DATA" not in os.environ:
            write_punkt(folder / "nltk")
            os.environ["NLTK_DATA"] = str(folder / "nltk")
        os.chdir(folder)
        annif = Path(sys.executable).parent / "annif"
        subprocess.run(
            [annif, "load-vocab", "--language", "en", "labels", "labels.tsv"], check=True
        )
        subprocess.run([annif, "train", "omikuji", "train.jsonl"], check=True)
        limit = ["--docs-limit", str(MLLM_DOCUMENTS)]
        mllm = subprocess.run(
            [annif, "train", *limit, "mllm", "train.jsonl"], stderr=subprocess.PIPE, text=True
        )
        print(mllm.stderr, flush=True)
        has_mllm = NOTHING_FOUND not in mllm.stderr
        if has_mllm:
            mllm.check_returncode()
        from annif import create_flask_app, registry

        with create_flask_app().app_context():
            for name in ("omikuji", "mllm", "ensemble") if has_mllm else ("omikuji",):
                project = registry.get_project(name)
                columns = [
                    project.subjects.by_uri(ADDRESS.format(number))
                    for number in range(len(data.labels))
                ]
                both = (predict(project, part, columns) for part in (data.valid, data.test))
                yield Scores(f"annif-{name}", *both, False, None)


if __name__ == "__main__":
    run_peer(train, ["annif", "omikuji"])
