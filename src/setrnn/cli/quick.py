"""Settings for a first look: `compare --quick` and `demo`."""

from __future__ import annotations

# A small network that two cores train in a minute or two; chosen on the valid part of newsroom.
SETTINGS = {
    "vectors.dimensions": 100,
    "model.encoder_units": 96,
    "model.decoder_units": 96,
    "model.decoder_layers": 1,
    "model.dropout": 0.2,
    "model.word_dropout": 0.0,
    "search.beam_width": 6,
    "training.epochs": 5,
    "training.batch_size": 32,
    "training.learning_rate": 4e-3,
}
MOST_JOBS = 2  # at once, unless more are asked for


def quick_overrides() -> list[str]:
    """Return the settings as `--set` takes them."""
    return [f"{name}={value}" for name, value in SETTINGS.items()]
