"""Made-up data has the long tail that the benchmark says, and commands run within their limits."""

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
import scipy.sparse as sp

import setrnn
from setrnn.systems.true_marginals import MANY_LABELS

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "many_labels.py"
SPECIFICATION = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
many = sys.modules[SCRIPT.stem] = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(many)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    many.main(["make", str(folder), "--labels", "3000", "--documents", "1000"])
    return folder


def read(folder, part):
    return [json.loads(line) for line in (folder / f"{part}.jsonl").open(encoding="utf-8")]


def test_labels_have_a_long_tail(data):
    rows = read(data, "train")
    assert len(rows) == 800
    counts = Counter(label for row in rows for label in row["labels"])
    assert 4 < sum(counts.values()) / len(rows) < 6
    most, median = max(counts.values()), sorted(counts.values())[len(counts) // 2]
    assert most > 20 * median


def test_the_same_seed_makes_the_same_data(data, tmp_path):
    many.main(["make", str(tmp_path), "--labels", "3000", "--documents", "1000"])
    assert read(tmp_path, "test") == read(data, "test")


def test_many_labels_are_trained_calibrated_and_measured_without_dense_weights(data):
    tagger = setrnn.train(data, "br-support", settings={"classical.max_pairs": 0})
    assert len(tagger.labels) >= MANY_LABELS
    assert sp.issparse(tagger.system.model.linear.weights)
    assert len(tagger.calibration.thresholds.by_label) == len(tagger.labels)
    found = setrnn.evaluate(tagger, data, rule="micro-f1")
    assert found.ranking.precision[1] > 0.5


def test_made_up_words_are_distinct():
    words = {many.spell(number) for number in range(many.VOCABULARY)}
    assert len(words) == many.VOCABULARY


def test_the_speed_of_a_network_with_a_shortlist_is_measured(data, capsys):
    sizes = ["vectors.dimensions=8", "model.encoder_units=8", "model.decoder_units=8"]
    many.main(["speed", str(data), "--seconds", "0.1", "--set", *sizes, "model.shortlist=32"])
    row = json.loads(capsys.readouterr().out)
    assert row["labels"] >= MANY_LABELS
    assert row["trained_per_second"] > 0
    assert row["predicted_per_second"] > 0
