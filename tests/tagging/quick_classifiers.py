"""Texts and classifiers for the tests of the estimator: small enough to fit in a moment."""

from dataclasses import replace
from functools import cache

import numpy as np

from setrnn.data import newsroom
from setrnn.tagging.estimator import SetRNNClassifier

N_TRAIN = 180
EXAMPLES = list(newsroom.examples("train"))[: N_TRAIN + 60]
TEXTS = [example.text for example in EXAMPLES[:N_TRAIN]]
LABEL_SETS = [set(example.labels) for example in EXAMPLES[:N_TRAIN]]
NEW_TEXTS = [example.text for example in EXAMPLES[N_TRAIN:]]
NEW_LABEL_SETS = [set(example.labels) for example in EXAMPLES[N_TRAIN:]]

FEW_TEXTS = ["red apple", "green apple", "red apple", "green pear", "red pear"]
FEW_SETS = [{"red", "fruit"}, {"fruit"}, {"red", "fruit"}, set(), {"red"}]


# Recurrent systems small enough to fit in a tenth of a second.
QUICK = {
    "vectors.source": "none",
    "vectors.dimensions": 12,
    "model.encoder_units": 12,
    "model.decoder_units": 12,
    "model.decoder_layers": 1,
    "model.dropout": 0.0,
    "model.word_dropout": 0.0,
    "search.beam_width": 12,
    "training.epochs": 2,
    "training.learning_rate": 0.05,
}


# Of each way to train and to keep a model, one; tests/test_methods.py goes over all.
KINDS = ("br", "br-support", "pcc", "vinyals-sample", "sgm", "set-rnn")


def quick(method="set-rnn", epochs=2, **parameters):
    settings = {**QUICK, "training.epochs": epochs, **parameters.pop("settings", {})}
    return SetRNNClassifier(method, settings=settings, device="cpu", **parameters)


def classical(**parameters):
    return SetRNNClassifier("br-support", **parameters)


def indicator(label_sets, labels):
    return np.array([[int(label in row) for label in labels] for row in label_sets])


@cache
def few_fitted(method):
    return quick(method).fit(FEW_TEXTS, FEW_SETS)


def hide(example, number):
    """Hide labels of a document in two ways; every third document is complete."""
    if number % 3 == 1:
        return replace(example, labels=example.labels[::2], complete=False)
    if number % 3 == 2:
        return replace(example, labels=example.labels[1:], unknown=example.labels[:1])
    return example
