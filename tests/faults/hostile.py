"""Hostile inputs, as lists: one more line is one more try."""

import json
import math

import numpy as np
from safetensors.numpy import load_file, save_file

from setrnn.config import settings_hash
from setrnn.data.disk import file_hash

GOOD = "Velmara lift the trophy in the harbour after a late goal."

# Texts that break tokenizers, readers or terminals.
TEXTS = {
    "5.5 million digits and a letter": "9" * 5_500_000 + "a",
    "a word of 5 million letters": "a" * 5_000_000,
    "a million accents on one letter": "a" + "\u0301" * 1_000_000,
    "a million letters of another script": "日" * 1_000_000,
    "a million commas between digits": "1," * 1_000_000,
    "5 million spaces": " " * 5_000_000,
    "a million family emoji": "\U0001f468\u200d" * 500_000,
    "zero bytes": "goal\0goal\0",
    "control characters": "".join(map(chr, range(32))) + "\x7f\x9b31m\x1b]0;title\x07",
    "right to left": "\u202egoal\u2066",
    "half of a surrogate pair": "goal \ud800 goal",
    "names of special tokens": "[PAD] [UNK] NUM [STOP WORDS] [feature] x",
    "nothing": "",
}

# Lines of a JSON Lines file that are not a document.
LINES = {
    "nested 100,000 deep": '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "a list": "[1, 2]",
    "a number of 5,000 digits": '{"text": "a", "id": ' + "9" * 5_000 + "}",
    "not a number": '{"text": NaN}',
    "no text": '{"id": "1"}',
    "text that is null": '{"text": null}',
    "half a line": '{"text": "a',
    "not UTF-8": b'{"text": "\xff\xfe"}',
    "zero bytes": b"\0" * 100,
    "the same key twice": '{"text": "a", "text": ["b"]}',
    "labels that are a number": '{"text": "a", "labels": 3}',
}

TRAIN = ("train", "data", "--out", "out/m", "--method")
PREDICT = ("predict", "models/network", "data/test.jsonl", "--out", "out/rows.jsonl")
# Arguments that ask for the impossible; each is refused in one line, or does what it can.
ARGUMENTS = {
    **{
        f"seed of {seed}, {method}": (*TRAIN, method, "--seed", seed)
        for seed in ("-1", str(2**70))
        for method in ("br", "sigmoid")
    },
    **{
        setting: (*TRAIN, "set-rnn-exact", "--set", "vectors.source=none", "--set", setting)
        for setting in (
            "model.encoder_units=1000000000000",
            "model.decoder_units=1000000000000",
            "model.decoder_layers=1000000",
            "vectors.dimensions=1000000000000",
            "search.beam_width=1000000000",
            "training.batch_size=1000000000000000000000",
            "training.learning_rate=1e300",
            "training.learning_rate=NaN",
            "text.max_words=1000000000000000000000",
            "vectors.seed=1180591620717411303424",
            "vectors.seed=-1",
        )
    },
    "top of 10^18": (*PREDICT, "--top", str(10**18)),
    "beam width of 10^12": (*PREDICT, "--beam-width", str(10**12)),
    "target accuracy that is not a number": (
        *("calibrate", "models/network", "data/valid.jsonl", "--target-accuracy", "nan"),
    ),
}


def with_settings(**groups):
    """Return a change of the settings in config.json."""

    def change(folder):
        file = folder / "config.json"
        description = json.loads(file.read_text())
        for group, values in groups.items():
            description["config"][group].update(values)
        file.write_text(json.dumps(description))

    return change


def with_weight(value):
    """Return a change of one number in every array of weights."""

    def change(folder):
        arrays = {
            name: array.copy() for name, array in load_file(folder / "model.safetensors").items()
        }
        for array in arrays.values():
            if array.dtype.kind == "f" and array.size:
                array.reshape(-1)[0] = value
        save_file(arrays, folder / "model.safetensors")

    return change


def with_tokenizer(**parts):
    """Return a change of parts of tokenizer.json."""

    def change(folder):
        file = folder / "tokenizer.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **parts}))

    return change


def with_huge_array(folder):
    arrays = dict(load_file(folder / "model.safetensors"))
    name = next(name for name, array in arrays.items() if array.ndim == 2)
    arrays[name] = np.zeros((0, 2**40), arrays[name].dtype)
    save_file(arrays, folder / "model.safetensors")


GROWING = [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}] * 4
# Changes of a model folder, sealed again: well-formed, and hostile.
MODELS = {
    "weights that are not numbers": with_weight(math.nan),
    "infinite weights": with_weight(math.inf),
    "weights of 1e38": with_weight(1e38),
    "padding of 10^9": with_tokenizer(
        padding={"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None}
        | {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    ),
    "a normalizer that makes texts longer": with_tokenizer(
        normalizer={"type": "Sequence", "normalizers": GROWING}
    ),
    "a pattern that backtracks": with_tokenizer(
        pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a|a|aa)*$b"}, "behavior": "Removed"}
        | {"invert": True}
    ),
    "a million decoder layers": with_settings(model={"decoder_layers": 10**6}),
    "10^9 decoder units": with_settings(model={"decoder_units": 10**9}),
    "sets of 10^9 labels": with_settings(model={"max_labels": 10**9}),
    "a beam width of 10^9": with_settings(search={"beam_width": 10**9}),
    "10^12 words per document": with_settings(text={"max_words": 10**12}),
    "an array of 2^40 columns": with_huge_array,
}


def seal(folder):
    """Write the sizes and hashes of a model folder again, as its author would."""
    file = folder / "config.json"
    description = json.loads(file.read_text())
    for name in description["files"]:
        place = folder / name
        description["files"][name] = {"bytes": place.stat().st_size, "blake2b": file_hash(place)}
    description.pop("seal", None)
    description["seal"] = settings_hash(description)
    file.write_text(json.dumps(description, indent=2, ensure_ascii=False))
