"""LibMultiLabel's networks, trained by its own trainer: BiGRULWAN, XML-CNN and KimCNN.

With DATA/vectors.npz (from a prepared folder), texts are its words and the word vectors are kept
as they are (`--vectors tuned` trains them too); without, words are what LibMultiLabel takes for
words, and vectors start at random. The epoch with the best micro-F1 at 0.5 on valid is kept, as in
its example settings.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from exchange import Data, Part, Scores, run_peer
from libmultilabel.nn.nn_utils import init_device, init_model, init_trainer, set_seed
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

NETWORKS = {
    "BiGRULWAN": {"rnn_dim": 512, "embed_dropout": 0.2},
    "XMLCNN": {"filter_sizes": [2, 4, 8], "hidden_dim": 512, "num_pool": 2},
    "KimCNN": {"filter_sizes": [2, 4, 8], "num_filter_per_size": 128},
}
DIMENSIONS, MIN_COUNT = 300, 2  # of vectors that start at random; of their words
LEARNING_RATE = 1e-3  # a row with another one has it in its name
LEAST_WORDS = 8  # a text is as long as the widest filter


class Words:
    """The words that a network knows, and their vectors; 0 is padding, 1 any other word."""

    def __init__(self, data: Data, seed: int) -> None:
        file = data.folder / "vectors.npz"
        self.are_given = file.is_file()
        if self.are_given:
            with np.load(file) as found:
                words, vectors = found["words"].tolist(), found["vectors"].astype(np.float32)
        else:
            counts = Counter(word for text in data.train.texts for word in self.split(text))
            words = sorted(word for word, n in counts.items() if n >= MIN_COUNT)
            vectors = np.random.default_rng(seed).normal(0, 0.1, (len(words), DIMENSIONS))
        self.numbers = {word: number for number, word in enumerate(words, 2)}
        around = np.zeros((2, vectors.shape[1]))
        self.vectors = torch.tensor(np.concatenate([around, vectors]), dtype=torch.float32)

    def split(self, text: str) -> list[str]:
        """Split a text as LibMultiLabel does, or at the spaces of a prepared folder."""
        if self.are_given:
            return text.split()
        return [word.lower() for word in re.findall(r"\w+", text) if not word.isnumeric()]

    def encode(self, part: Part, n_words: int) -> list[torch.Tensor]:
        """Return the numbers of the first words of each text."""
        rows = ([self.numbers.get(w, 1) for w in self.split(text)[:n_words]] for text in part.texts)
        return [torch.tensor(row + [0] * (LEAST_WORDS - len(row))) for row in rows]


def collate(rows: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Make a batch as LibMultiLabel's networks read it."""
    return {
        "text": pad_sequence([text for text, _ in rows], batch_first=True),
        "label": torch.stack([labels for _, labels in rows]),
        "length": torch.tensor([len(text) for text, _ in rows], dtype=torch.int32),
    }


def train(data: Data, options: argparse.Namespace) -> Iterator[Scores]:
    set_seed(options.seed)
    words, device = Words(data, options.seed), init_device()

    def load(part: Part, is_shuffled: bool = False) -> DataLoader:
        targets = torch.tensor(data.targets(part), dtype=torch.int32)
        rows = list(zip(words.encode(part, options.words), targets, strict=True))
        return DataLoader(rows, options.batch_size, shuffle=is_shuffled, collate_fn=collate)

    loaders = load(data.train, is_shuffled=True), load(data.valid), load(data.test)
    keeps_vectors = words.are_given and options.vectors == "frozen"
    for name in options.networks:
        model = init_model(
            name, NETWORKS[name], data.labels, embed_vecs=words.vectors,
            learning_rate=options.learning_rate, val_metric="Micro-F1",
            monitor_metrics=["Micro-F1", "Macro-F1"], silent=True,
        )  # fmt: skip
        model.network.embedding.embedding.weight.requires_grad = not keeps_vectors
        with tempfile.TemporaryDirectory() as folder:
            trainer = init_trainer(
                folder, epochs=options.epochs, patience=options.patience, silent=True,
                early_stopping_metric="Micro-F1", val_metric="Micro-F1",
                use_cpu=device.type == "cpu", limit_train_batches=options.batches,
            )  # fmt: skip
            trainer.fit(model, loaders[0], loaders[1])
            best = torch.load(Path(folder) / "best_model.ckpt", weights_only=False)
        model.load_state_dict(best["state_dict"])
        valid, test = (predict(model.to(device).eval(), loader, device) for loader in loaders[1:])
        settings = {
            **NETWORKS[name], "epoch": int(best["epoch"]) + 1, "epochs": options.epochs,
            "learning_rate": options.learning_rate, "batch_size": options.batch_size,
            "vectors": "frozen" if keeps_vectors else "tuned", "seed": options.seed,
        }  # fmt: skip
        is_usual = options.learning_rate == LEARNING_RATE
        row = f"libmultilabel-{name}" + ("" if is_usual else f"-{options.learning_rate:g}")
        yield Scores(row, valid, test, True, 0.5, settings)


@torch.inference_mode()
def predict(model: torch.nn.Module, loader: DataLoader, device: torch.device) -> np.ndarray:
    parts = [
        torch.sigmoid(model({name: value.to(device) for name, value in batch.items()})).cpu()
        for batch in loader
    ]
    return torch.cat(parts).numpy()


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--patience", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=LEARNING_RATE)
    parser.add_argument("--batches", type=int, default=1.0, help="batches per epoch, for a trial")
    parser.add_argument("--words", type=int, default=500, help="words of a text that are read")
    parser.add_argument("--vectors", choices=("frozen", "tuned"), default="frozen")


if __name__ == "__main__":
    run_peer(train, ["libmultilabel", "lightning", "torch"], add_options)
