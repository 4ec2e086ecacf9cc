"""Taggers that train in a second or two."""

from dataclasses import replace

import numpy as np

from setrnn.config import load_config
from setrnn.methods import METHODS
from setrnn.systems.mixture import Weights
from setrnn.systems.rules.marginal_rules import Thresholds
from setrnn.tagging.learn.mix import join
from setrnn.tagging.learn.train import train_uncalibrated
from setrnn.tagging.trust import Calibration
from setrnn.tagging.trust.acceptance import NEVER, LabelAcceptance
from setrnn.tagging.trust.labels import LabelCurves
from setrnn.training.start import TrainOptions

# Networks that train in a second or two, and learn something.
SMALL_OVERRIDES = (
    "vectors.source=none",
    "vectors.dimensions=24",
    "model.word_vectors=tuned",  # as for all networks without vectors
    "model.encoder_units=32",
    "model.decoder_units=32",
    "model.decoder_layers=1",
    "model.dropout=0.1",
    "search.beam_width=4",
    "training.epochs=5",
    "training.batch_size=32",
    "training.learning_rate=0.02",
    "training.valid_documents=20",
)
SMALL = load_config(overrides=SMALL_OVERRIDES)


MEMBERS = ("br", "pcc", "set-rnn")  # of the mixture


def trained_tagger(prepared, method, config=SMALL):
    if METHODS[method].is_mixture:
        return join_taggers([trained_tagger(prepared, name, config) for name in MEMBERS])
    tagger = train_uncalibrated(prepared, METHODS[method], config, TrainOptions(device="cpu"))
    return replace(tagger, notes={"data": "newsroom, synthetic"})


def join_taggers(members):
    """Return a mixture of three, with weights per rule."""
    weights = Weights(np.array([0.2, 0.3, 0.5]), {"f1": np.array([0.0, 0.9, 0.1])})
    return replace(join(members, weights), notes={"data": "newsroom, synthetic"})


def with_thresholds(tagger, common=0.4, own=0.3):
    """Return the tagger with thresholds, so that it predicts by every rule."""
    thresholds = Thresholds(common, np.full(len(tagger.labels), own))
    return replace(tagger, calibration=Calibration(100, thresholds))


def accepting_labels(tagger, target=0.9, threshold=0.3):
    """Return the tagger with every second label accepted by itself, from a threshold on."""
    n = len(tagger.labels)
    thresholds = np.where(np.arange(n) % 2, NEVER, threshold)
    acceptance = LabelAcceptance(target, 0.9, thresholds)
    curves = LabelCurves(np.array([0.0, 1.0, 1.0]), np.zeros(n), np.ones(n))
    calibration = replace(tagger.calibration, label_curves=curves, label_acceptance=acceptance)
    return replace(tagger, calibration=calibration)
