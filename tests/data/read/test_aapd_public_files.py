"""The AAPD path on the public files, where they are at hand: read, prepared, trained, measured.

They are looked for in $SETRNN_AAPD, or in shared/data/aapd beside the checkout. text_train is
missing there: the documents of text_val stand in for it.
"""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from setrnn.comparison.compare import make_comparable
from setrnn.config import load_config
from setrnn.data.cache import open_prepared
from setrnn.data.source import Source
from setrnn.metrics import evaluate_label_sets
from setrnn.tagging.evaluate import evaluate
from small_taggers import trained_tagger

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "aapd"
AAPD = Path(os.environ.get("SETRNN_AAPD", BESIDE))

pytestmark = pytest.mark.skipif(
    not (AAPD / "text_val").is_file(), reason="no AAPD files: name their folder in SETRNN_AAPD"
)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """A folder as a user has it, the train part of which is the real valid part."""
    folder = tmp_path_factory.mktemp("aapd")
    for name, source in {"train": "val", "test": "test"}.items():
        for kind in ("text", "label"):
            shutil.copyfile(AAPD / f"{kind}_{source}", folder / f"{kind}_{name}")
    return folder


def test_the_train_part_has_the_labels_that_the_paper_counts():
    label_sets = [line.split() for line in (AAPD / "label_train").read_text().splitlines()]
    counts = Counter(label for labels in label_sets for label in labels)
    assert len(label_sets) == 53_840
    assert len(counts) == 54
    assert counts.total() / len(label_sets) == pytest.approx(2.41, abs=0.005)


def test_from_files_to_scores(stand_in, tmp_path):
    config = load_config("paper", overrides=["classical.max_pairs=0"])
    prepared = open_prepared(make_comparable(Source(str(stand_in))), config.text, tmp_path)
    assert prepared.description["n_documents"] == {"train": 900, "valid": 100, "test": 1_000}
    assert prepared.valid_is_cut
    scores = evaluate(trained_tagger(prepared, "br", config), prepared, split="test").scores
    names = [*prepared.labels.names, *prepared.unseen_labels]
    truth = [[names[label] for label in row] for row in prepared.split("test").labels]
    always = [[names[0], names[1]]] * len(truth)  # the two most frequent labels
    assert scores.n_documents == 1_000
    assert scores.mean_set_size == pytest.approx(2.41, abs=0.04)
    assert scores.instance_f1 > evaluate_label_sets(truth, always, names).instance_f1 + 0.03
