"""Settings that follow from the data: batch size, epochs, and the start from br."""

from __future__ import annotations

from dataclasses import replace

from setrnn.config import Config
from setrnn.data.prepared import Prepared

# With fewer documents, words that a network must learn are seen too rarely: it starts from br. Near
# this number both starts are equally good.
FEW_DOCUMENTS = 3_000
STEPS_PER_EPOCH = 400  # at most about as many, as far as the batch sizes allow
BATCH_SIZES = (16, 32, 64, 128)
EPOCHS, MOST_EPOCHS = 10, 40
LEAST_STEPS = 1_000  # in all epochs, as far as these suffice


def fit_to_data(config: Config, prepared: Prepared) -> Config:
    """Return the settings with a value for each that the user left to the data.

    It changes nothing in settings that it returned.
    """
    n_documents = len(prepared.split("train"))
    training, model = config.training, config.model
    if config.vectors.source == "none":  # random vectors must be tuned
        model = replace(model, word_vectors="tuned")
    if model.wide == "auto":
        is_few = n_documents < FEW_DOCUMENTS and not config.encoder.is_pretrained
        model = replace(model, wide="on" if is_few else "off")
    batch_size = training.batch_size or choose_batch_size(n_documents)
    n_epochs = training.epochs or choose_epochs(n_documents, batch_size)
    training = replace(training, batch_size=batch_size, epochs=n_epochs)
    return replace(config, training=training, model=model)


def choose_batch_size(n_documents: int) -> int:
    """Return the smallest batch size with at most about `STEPS_PER_EPOCH` steps.

    Small batches give a small corpus enough steps to learn from; large ones are faster.
    """
    fitting = (size for size in BATCH_SIZES if n_documents <= size * STEPS_PER_EPOCH)
    return next(fitting, BATCH_SIZES[-1])


def choose_epochs(n_documents: int, batch_size: int) -> int:
    """Return the number of epochs: more if each has few steps."""
    n_steps = max(n_documents // batch_size, 1)
    return min(max(EPOCHS, LEAST_STEPS // n_steps), MOST_EPOCHS)
