"""Sentence vectors of MiniLM, and a logistic regression per label on them.

all-MiniLM-L6-v2 is not trained further; its vectors have length 1. The strength of the penalty is
chosen on valid, by the best micro-F1 of one threshold. The weights are found as in
minilm_sigmoid.py; nothing is downloaded.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
from exchange import Data, Scores, run_peer
from minilm_sigmoid import find_weights
from scikit_learn_logistic import fit_best
from sentence_transformers import SentenceTransformer


def train(data: Data, options: argparse.Namespace) -> Iterator[Scores]:
    torch.manual_seed(options.seed)
    precision = torch.bfloat16 if options.half else torch.float32
    model = SentenceTransformer(
        str(options.weights or find_weights()), model_kwargs={"dtype": precision}
    )
    features, valid, test = (
        model.encode(part.texts, normalize_embeddings=True, show_progress_bar=False)
        for part in (data.train, data.valid, data.test)
    )
    *scores, strength = fit_best(data, features, valid, test)
    settings = {"C": strength, "tokens": model.max_seq_length, "precision": str(precision)}
    yield Scores("minilm-logistic", *scores, True, 0.5, settings)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--weights", type=Path, help="a folder with weights and tokenizer")
    parser.add_argument("--half", action="store_true", help="vectors in bfloat16")


if __name__ == "__main__":
    run_peer(train, ["sentence-transformers", "scikit-learn", "torch"], add_options)
