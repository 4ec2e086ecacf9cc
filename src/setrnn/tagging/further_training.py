"""How a network is trained further: fewer steps, a lower learning rate, old documents replayed.

Chosen on the valid parts of debtags and arxiv.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from setrnn.config import Config, TrainingSettings, from_dict, read_changes, to_dict
from setrnn.data.batches import TrainingDocuments, take_rows
from setrnn.data.incomplete import Incomplete
from setrnn.data.prepared import Prepared
from setrnn.errors import ConfigError
from setrnn.tagging.opening import Settings, list_overrides

SHARE_OF_STEPS, LEAST_EPOCHS = 0.13, 2  # of a whole training
SHARE_OF_RATE = 0.5  # of the highest learning rate
TIMES_RATE = 4.0  # the rows of new labels learn so much faster
TIMES_NEW = 3  # an epoch has each new document, if there are old ones


def read_training_changes(settings: Settings) -> Mapping[str, Any]:
    """Return changes of the settings of training by their names; refuse others."""
    changes = read_changes(None, list_overrides(settings))
    others = [name for name in changes if name != "training"]
    if others:
        raise ConfigError(
            f"An update keeps the model's settings: only those of training can be changed, such as "
            f"training.epochs, not '{others[0]}'."
        )
    found: Mapping[str, Any] = changes.get("training", {})
    from_dict(TrainingSettings, found, "training.")  # raises for wrong names and values
    return found


def choose_schedule(config: Config, changes: Mapping[str, Any]) -> Config:
    """Return the settings for a few epochs at a lower rate, with the changes of the user."""
    before = config.training
    training = replace(
        before,
        epochs=_count_epochs(before),
        learning_rate=SHARE_OF_RATE * before.learning_rate,
        random_share=0.0,  # the first objective was for the first epochs
    )
    training = from_dict(TrainingSettings, {**to_dict(training), **changes})
    rate = SHARE_OF_RATE * config.encoder.learning_rate
    encoder = replace(config.encoder, learning_rate=rate)
    return replace(config, training=training, encoder=encoder)


def _count_epochs(training: TrainingSettings) -> int:
    """Return the epochs of a further training, unless the user chooses another number."""
    return max(LEAST_EPOCHS, round(SHARE_OF_STEPS * training.epochs))


def fit_to_sets(config: Config, prepared: Prepared) -> Config:
    """Return the settings of a model for data that may have larger label sets."""
    sizes, model = prepared.split("train").labels.lengths, config.model
    most = max(model.max_labels, int(sizes.max(initial=0)))
    return replace(config, model=replace(model, max_labels=most))


def replay(prepared: Prepared, n_old: int, config: Config) -> TrainingDocuments | None:
    """Return the documents of each epoch: the new ones several times, and a sample of the old.

    All epochs together have a share of the documents of a whole training, unless the user asks for
    more or fewer epochs.

    Args:
        prepared: the data, whose train part begins with the old documents.
        n_old: the number of these; if there are none, the result is None: all documents once.
        config: the settings of the whole training.
    """
    if not n_old:
        return None
    train = prepared.split("train")
    new = np.repeat(np.arange(n_old, len(train)), TIMES_NEW)
    n_epochs = _count_epochs(config.training)
    n_wanted = round(SHARE_OF_STEPS * config.training.epochs * len(train) / n_epochs)
    n_replayed = min(max(n_wanted - len(new), len(new)), n_old)
    random = np.random.default_rng(config.seed)
    old = np.sort(random.permutation(n_old)[:n_replayed])
    rows = np.concatenate([old, new])
    tokens, labels = take_rows(train.tokens, rows), take_rows(train.labels, rows)
    incomplete = Incomplete.of(train, len(prepared.labels), config.training.forgotten)
    some = None if incomplete is None else incomplete.rows(rows)
    return TrainingDocuments(tokens, labels, train_rows=rows, incomplete=some)
