"""Load a trained model from a folder or the Hugging Face hub."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import shorten

import numpy as np

from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError, ModelError
from setrnn.methods import METHODS
from setrnn.models.folder import CALIBRATION, load_model
from setrnn.models.hub import name_place, open_place
from setrnn.systems.registry import find_system
from setrnn.systems.rules import RULES
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.trained_model import SEEN_SETS, SEEN_SETS_OFFSETS, TRAINED_TEXTS
from setrnn.tagging.trust.saved import Calibration


def open_model(model: str | Path | Tagger, device: str) -> tuple[str, Tagger]:
    """Return the name of a model, which is a tagger or in a folder, and its tagger."""
    if isinstance(model, Tagger):
        return model.method, model
    return name_place(model), load(model, device)


def load(
    folder: str | Path,
    device: str = "auto",
) -> Tagger:
    """Load a model onto a device: cpu, cuda, or auto for a GPU if there is one.

    The model is in a folder or on the Hugging Face hub: `hub:OWNER/NAME`, or
    `hub:OWNER/NAME@REVISION` for one branch, tag or commit. Nothing in it is run or unpickled.

    Example:
        >>> import setrnn
        >>> setrnn.train("newsroom", "br").save("model")
        >>> tagger = setrnn.load("model")
        >>> tagger.tag(["The ski race was cancelled because of the storm."])[0].labels
        ('weather', 'storm')
    """
    with open_place(folder) as place:
        saved = load_model(place)
    if saved.method not in METHODS:
        raise ModelError(f"{folder} holds a '{saved.method}' model, which this setrnn lacks.")
    if saved.rule is not None and saved.rule not in [*RULES]:  # it may be of any type
        raise ModelError(f"{folder} predicts by rule {saved.rule!r:.40}, which this setrnn lacks.")
    method = METHODS[saved.method]
    try:
        arrays = dict(saved.arrays)
        seen_sets = None
        if SEEN_SETS in arrays:
            seen_sets = Ragged(arrays.pop(SEEN_SETS), arrays.pop(SEEN_SETS_OFFSETS))
            seen_sets.check_ids(len(saved.labels))
        trained_documents = arrays.pop(TRAINED_TEXTS, None)
        hashes = np.empty(0, np.uint64) if trained_documents is None else trained_documents
        if hashes.dtype != np.uint64 or hashes.ndim != 1:
            raise ValueError("the hashes of the trained documents are damaged.")
        system = find_system(method).from_arrays(arrays, method, saved.config, device)
        tagger = Tagger(saved.method, saved.config, saved.encoder, saved.labels, system)
        for each in (tagger, *tagger.members):
            each.system.check_sizes(each.encoder.n_tokens, len(each.labels))
    except ConfigError:  # such as a device that this machine lacks
        raise
    except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"{folder} holds other weights than its '{saved.method}' model has: "
            f"{_first_line(error)} Train or copy the model again."
        ) from error
    calibration = None
    if saved.calibration is not None:
        file = f"{Path(folder) / CALIBRATION}"
        calibration = Calibration.from_dict(saved.calibration, len(saved.labels), file)
    return replace(
        tagger,
        notes=dict(saved.notes),
        calibration=calibration,
        seen_sets=seen_sets,
        version=saved.version,
        rule=saved.rule,
        trained_documents=trained_documents,
        hierarchy=saved.hierarchy,
    )


def _first_line(error: Exception) -> str:
    """Return the first mismatch in one line; torch lists every array on a line of its own."""
    if isinstance(error, KeyError):
        return f"{error} is missing."
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    chosen = lines[1] if len(lines) > 1 and lines[0].endswith(":") else "".join(lines[:1])
    return shorten(chosen.rstrip(". "), 160, placeholder=" ...") + "."
