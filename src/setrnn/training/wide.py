"""Fit the linear model of the wide evidence, and cross-fit it for the training documents."""

# n documents, L labels

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy  # scipy.sparse is imported where it is first used
import torch

from setrnn.config import Config
from setrnn.data.batches import TrainingDocuments
from setrnn.data.prepared import Prepared
from setrnn.data.ragged import Ragged
from setrnn.model.evidence import WideEvidence
from setrnn.model.network import Network
from setrnn.progress import OnProgress, count_up, ignore_progress
from setrnn.systems.candidates import Floats32, Ints
from setrnn.systems.classical.features import Tfidf
from setrnn.systems.classical.system import LinearWeights, TrainingData, fit_linear

N_FOLDS = 10


def add_wide(
    network: Network,
    prepared: Prepared,
    documents: TrainingDocuments,
    config: Config,
    on_progress: OnProgress = ignore_progress,
) -> TrainingDocuments:
    """Let a network start from BR, fitted on the train part; return the documents with log-odds.

    Those of the train part come from fits on other documents, so that they are only as good as
    those of new documents.
    """
    n_total = len(prepared.labels) * (N_FOLDS + 1)
    count = count_up("fitting br on words", on_progress, n_total, "labels")
    tfidf, data = TrainingData.of(prepared, config, count)
    linear = fit_linear(data)
    network.start_from(make_wide(tfidf, linear))
    log_odds = cross_fit(data, choose_folds(len(data.label_sets), config.seed))
    if documents.train_rows is not None:
        others = linear.logits(tfidf.transform(documents.tokens))
        rows = documents.train_rows
        log_odds = np.where(rows[:, None] >= 0, log_odds[rows], others)
    return replace(documents, log_odds=log_odds)


def make_wide(tfidf: Tfidf, linear: LinearWeights) -> WideEvidence:
    """Return the evidence with the weights of BR that are not 0."""
    weights = scipy.sparse.csr_matrix(linear.weights)
    arrays = {
        "idf": tfidf.idf,
        "pairs": tfidf.pairs,
        "offsets": weights.indptr.astype(np.int64),
        "labels": weights.indices.astype(np.int64),
        "weights": weights.data,
        "intercepts": linear.intercepts,
    }
    return WideEvidence({name: torch.from_numpy(array) for name, array in arrays.items()})


def weigh_tokens(wide: WideEvidence, tokens: Ragged) -> Floats32:
    """Return what each token of one document adds to the evidence for each label: (T, L)."""
    arrays = {name: each.cpu().numpy() for name, each in wide.named_buffers()}
    shape = (len(arrays["idf"]), len(arrays["intercepts"]))
    sparse = (arrays["weights"], arrays["labels"], arrays["offsets"])
    shares = Tfidf.from_arrays(arrays).spread(tokens) @ scipy.sparse.csr_matrix(sparse, shape=shape)
    return np.asarray(shares.toarray() * wide.scale.item(), dtype=np.float32)


def choose_folds(n_documents: int, seed: int) -> Ints:
    """Return the number of the fold of each document: (n,)."""
    return np.random.default_rng(seed).permutation(n_documents) % min(N_FOLDS, n_documents)


def cross_fit(data: TrainingData, folds: Ints) -> Floats32:
    """Return the log-odds of the documents of each fold by BR fitted on the others: (n, L).

    They are 0 if there are no others.
    """
    found = np.zeros((len(folds), data.n_labels), dtype=np.float32)
    for fold in np.unique(folds) if len(folds) > 1 else ():
        own, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        linear = fit_linear(data.take(others))
        found[own] = linear.logits(data.features[own])
    return found
