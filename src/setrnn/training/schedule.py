"""Settings that follow from the data: batch size, epochs, and whether word vectors are trained."""

from __future__ import annotations

from dataclasses import replace

from setrnn.config import Config
from setrnn.data.prepared import UNLABELLED, Prepared

FEW_DOCUMENTS = 3_000  # with fewer, each epoch has few steps: more epochs are needed
# Word vectors that are trained learn the training documents by heart: fewer epochs are better.
EPOCHS, EPOCHS_OF_FEW, EPOCHS_IF_TUNED = 20, 40, 10
# A network that starts from br is best after a few epochs, but needs some hundred steps.
EPOCHS_IF_WIDE, DOCUMENTS_IF_WIDE = 15, 7_500
STEPS_PER_EPOCH = 400  # about as many, as far as the batch sizes allow
BATCH_SIZES = (16, 32, 64, 128)
# Vectors learned from this many words are better than training makes them; those learned from
# fewer are poor, and must be trained.
MANY_WORDS = 400_000


def fit_to_data(config: Config, prepared: Prepared) -> Config:
    """Return the settings with a value for each that the user left to the data.

    It changes nothing in settings that it returned.
    """
    train = prepared.split("train")
    training, model = config.training, config.model
    if not config.encoder.is_pretrained:
        parts = [name for name in ("train", UNLABELLED) if name in prepared.splits]
        n_words = sum(len(prepared.split(name).tokens.values) for name in parts)
        model = replace(model, word_vectors=_tune_or_freeze(config, n_words))
    model = replace(model, wide=_use_wide(config, len(train)))
    if not training.batch_size:
        training = replace(training, batch_size=choose_batch_size(len(train)))
    if not training.epochs:
        is_tuned, is_wide = model.word_vectors != "frozen", model.wide == "on"
        n_epochs = choose_epochs(len(train), is_tuned, is_wide)
        training = replace(training, epochs=n_epochs)
    return replace(config, training=training, model=model)


def _use_wide(config: Config, n_documents: int) -> str:
    """Decide whether the network starts from what a linear model on words knows."""
    if config.model.wide != "auto":
        return config.model.wide
    return "on" if n_documents < FEW_DOCUMENTS and not config.encoder.is_pretrained else "off"


def choose_batch_size(n_documents: int) -> int:
    """Return the smallest batch size with at most about `STEPS_PER_EPOCH` steps.

    Small batches give a small corpus enough steps to learn from; large ones are faster.
    """
    fitting = (size for size in BATCH_SIZES if n_documents <= size * STEPS_PER_EPOCH)
    return next(fitting, BATCH_SIZES[-1])


def choose_epochs(n_documents: int, is_tuned: bool, is_wide: bool) -> int:
    """Return how many epochs to train, with word vectors that are tuned or frozen."""
    if n_documents < FEW_DOCUMENTS:
        n_wide = max(EPOCHS_IF_WIDE, DOCUMENTS_IF_WIDE // max(n_documents, 1))
        return min(n_wide, EPOCHS_OF_FEW) if is_wide else EPOCHS_OF_FEW
    return EPOCHS_IF_TUNED if is_tuned else EPOCHS


def _tune_or_freeze(config: Config, n_words: int) -> str:
    """Decide whether training changes the word vectors."""
    if config.vectors.source == "none":  # random vectors must be tuned
        return "tuned"
    if config.model.word_vectors != "auto":
        return config.model.word_vectors
    return "frozen" if n_words >= MANY_WORDS else "tuned"
