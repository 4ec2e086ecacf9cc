"""Write what later versions must read: models of this version, their predictions, and a record.

    python tools/make_released_files.py

Writes tests/released/VERSION, once per release; tests/test_released_files.py reads the files of all
versions. The documents are made up: each label has words of its own, and some are left out.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import setrnn
from setrnn.data.example import Example
from setrnn.data.formats import write_folder

RELEASED = Path(__file__).parents[1] / "tests" / "released"
WORDS = {
    "fruit": ("sweet", "ripe", "juice"),
    "apple": ("orchard", "cider", "core"),
    "car": ("engine", "wheel", "road"),
    "red": ("crimson", "scarlet", "ruby"),
}
OTHERS = ("today", "often", "small", "large", "old", "new")
PARENTS = {"apple": "fruit"}
SIZES = {"train": 160, "valid": 120, "test": 60}
TEXTS = ("ripe juice of the orchard", "a scarlet engine", "an old road", "cider core today", "")
SMALL = {
    "vectors.source": "none",
    "vectors.dimensions": 8,
    "model.encoder_units": 8,
    "model.decoder_units": 8,
    "model.decoder_layers": 1,
    "search.beam_width": 3,
    "training.epochs": 30,
    "training.batch_size": 16,
    "training.learning_rate": 0.01,
}


def main() -> None:
    """Train, mix, predict and compare; keep what they write."""
    folder = RELEASED / setrnn.__version__
    shutil.rmtree(folder, ignore_errors=True)
    with TemporaryDirectory() as made:
        data = Path(made) / "data"
        write_folder({part: draw(size, part) for part, size in SIZES.items()}, data)
        networks = {"settings": SMALL, "device": "cpu", "hierarchy": PARENTS}
        for method in ("br", "set-rnn"):
            setrnn.train(data, method, out=folder / method, **networks)
            shutil.rmtree(folder / f"{method}.run", ignore_errors=True)
        members = [folder / "br", folder / "set-rnn"]
        mixture = setrnn.mix(members, data, out=folder / "mixture", device="cpu")
        assert all(mixture.notes["mixture"]["weights"]), "a member counts for nothing"
        compared = Path(made) / "comparison"
        setrnn.compare(data, ["br"], out=compared, keep_models=False, command="setrnn compare data")
        shutil.copytree(compared / "runs", folder / "comparison" / "runs")
        shutil.copyfile(compared / "comparison.json", folder / "comparison" / "comparison.json")
    predictions = {}
    for name in ("br", "set-rnn", "mixture"):
        found = setrnn.load(folder / name, "cpu").tag(TEXTS, rule="set")
        predictions[name] = [
            {"labels": list(each.labels), "probability": each.probability} for each in found
        ]
    values = {"texts": TEXTS, "predictions": predictions}
    (folder / "predictions.json").write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def draw(size: int, part: str) -> list[Example]:
    """Return documents with sets of labels that are closed upwards."""
    chance = random.Random(part)
    examples = []
    for number in range(size):
        labels = {label for label in WORDS if chance.random() < 0.35}
        labels |= {PARENTS[label] for label in labels if label in PARENTS}
        words = [word for label in sorted(labels) for word in WORDS[label]]
        shown = [word for word in words if chance.random() < 0.4] + chance.sample(OTHERS, 2)
        chance.shuffle(shown)
        ordered = tuple(label for label in WORDS if label in labels)
        examples.append(Example(f"{part}-{number}", " ".join(shown), ordered))
    return examples


if __name__ == "__main__":
    main()
