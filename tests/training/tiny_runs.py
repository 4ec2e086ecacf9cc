"""Tiny runs: a few documents, a handful of units, no word vectors to learn."""

from functools import partial
from itertools import islice

import torch

from setrnn.config import TextSettings, load_config
from setrnn.data import newsroom
from setrnn.data.cache import prepare
from setrnn.methods import find_method
from setrnn.training.start import TrainOptions, train_system

N_TRAIN, N_VALID = 28, 8  # four batches, the last of 4 documents
WORDS = TextSettings()
SIZES = {"train": N_TRAIN, "valid": N_VALID}
TINY = (
    "vectors.source=none",
    "vectors.dimensions=8",
    "training.average=0",
    "model.encoder_units=8",
    "model.decoder_units=8",
    "search.beam_width=3",
    "training.batch_size=8",
    "training.epochs=2",
)


def tiny_config(*settings):
    return load_config("default", None, [*TINY, *settings])


def prepared_of(sizes, folder, text=WORDS):
    examples = {name: list(islice(newsroom.examples(name), n)) for name, n in sizes.items()}
    streams = {name: partial(iter, each) for name, each in examples.items()}
    return prepare(streams, folder, "newsroom", text, {"synthetic": True})


class Run:
    """A training run with its weights and notes."""

    def __init__(
        self,
        prepared,
        *settings,
        method="set-rnn",
        folder=None,
        resume=False,
        watch=None,
        **more,
    ):
        watch = watch or (lambda progress: None)
        options = TrainOptions("cpu", folder, resume, on_progress=watch, **more)
        trained = train_system(find_method(method), prepared, tiny_config(*settings), options)
        self.system, self.notes = trained.system, trained.notes
        self.weights = trained.system.network.state_dict()

    @property
    def losses(self):
        return [row["loss"] for row in self.notes["epochs"]]

    @property
    def measures(self):
        """All measures except the speed."""
        rows = self.notes["epochs"]
        return [{name: row[name] for name in row if name != "documents_per_second"} for row in rows]


def same_bits(first, second):
    return first.keys() == second.keys() and all(
        torch.equal(each, second[name]) for name, each in first.items()
    )
