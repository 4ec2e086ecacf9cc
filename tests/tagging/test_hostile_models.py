"""Model folders that are sealed and made to do harm: each is refused in one line."""

import base64
import functools
import json
import operator
import resource
import shutil
import time
from itertools import product

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from setrnn.config import load_config, settings_hash
from setrnn.data.disk import file_hash
from setrnn.data.labels import LabelVocabulary
from setrnn.data.text.subwords import SubwordEncoder
from setrnn.errors import ModelError
from setrnn.model.decoders import SigmoidDecoder
from setrnn.model.encoders import TransformerEncoder
from setrnn.model.network import Network
from setrnn.systems.candidates import to_probability
from setrnn.systems.neural import IndependentSystem
from setrnn.systems.rules.marginal_rules import Thresholds
from setrnn.tagging.tagger import Tagger, load
from setrnn.tagging.trust import Calibration
from setrnn.tagging.trust.acceptance import Acceptance, LabelAcceptance
from setrnn.tagging.trust.labels import LabelCurves
from setrnn.tagging.trust.sets import Isotonic, Scaling
from small_taggers import with_thresholds
from tiny_transformers import tiny_tokenizer, tiny_transformer

SECONDS, BYTES = 3.0, 400e6  # that a refusal may take; the machine may be busy


@pytest.fixture
def model(taggers, tmp_path):
    """Return a function that saves a model whose files can be changed."""

    def save(method):
        with_thresholds(taggers[method]).save(tmp_path / "model")
        return tmp_path / "model"

    return save


def change_json(folder, name, change):
    """Change a JSON file of a model, and seal it as if setrnn had written it."""
    file = folder / name
    values = json.loads(file.read_text())
    change(values)
    file.write_text(json.dumps(values))
    seal(folder)


def change_arrays(folder, **changes):
    """Change arrays of a model; None removes one."""
    arrays = load_file(folder / "model.safetensors") | changes
    kept = {name: np.ascontiguousarray(each) for name, each in arrays.items() if each is not None}
    save_file(kept, folder / "model.safetensors")
    seal(folder)


def seal(folder):
    """Seal config.json, and in it the other files."""
    file = folder / "config.json"
    description = json.loads(file.read_text())
    for name in description["files"]:
        path, size = folder / name, (folder / name).stat().st_size
        hashed = file_hash(path) if size < 2**30 else ""
        description["files"][name] = {"bytes": size, "blake2b": hashed}
    write_sealed(file, description)


def write_sealed(file, values):
    values.pop("seal", None)
    values["seal"] = settings_hash(values)
    file.write_text(json.dumps(values))


def refuse(folder, *words):
    """Load, and expect a refusal in one line, soon and without much memory."""
    before, start = _peak(), time.perf_counter()
    with pytest.raises(ModelError) as error:
        load(folder, "cpu")
    assert time.perf_counter() - start < SECONDS
    assert _peak() - before < BYTES
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 400
    for word in (str(folder), *words):
        assert word in message


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("method", ["br", "pcc", "set-rnn", "sigmoid"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_array_that_is_not_finite_is_named(model, method, value):
    folder = model(method)
    arrays = load_file(folder / "model.safetensors")
    name = next(name for name, array in arrays.items() if array.dtype.kind == "f" and array.size)
    arrays[name].flat[-1] = value
    change_arrays(folder, **{name: arrays[name]})
    refuse(folder, "model.safetensors", f"'{name}'", "not finite")


SCALING = {"n_candidates": 16, "temperature": 1.0, "isotonic": None}


@pytest.mark.parametrize(
    "changes",
    [
        {"thresholds": {"common": 0.5, "by_label": [0.5, 0.5]}},
        {"thresholds": {"common": 0.5, "by_label": [[0.5]]}},
        {"thresholds": {"common": float("nan"), "by_label": [0.5]}},
        {"thresholds": {"common": 0.5, "by_label": [float("-inf")]}},
        {"scalings": {"sets": SCALING | {"n_candidates": 10**9}}},
        {"scalings": {"sets": SCALING | {"n_candidates": 1.5}}},
        {"scalings": {"sets": SCALING | {"temperature": 1e-300}}},
        {"scalings": {"sets": SCALING | {"temperature": 10**400}}},
    ],
)
def test_a_calibration_of_another_model_or_without_numbers_is_refused(model, changes):
    folder = model("br")
    change_json(folder, "calibration.json", lambda values: values.update(changes))
    refuse(folder, "calibration.json")


def list_places(values, place=()):
    """Yield the place of each value of a calibration, and of one value per list."""
    yield place
    if isinstance(values, dict | list):
        numbered = values.items() if isinstance(values, dict) else [(0, values[0])]
        for key, each in numbered:
            yield from list_places(each, (*place, key))


@pytest.mark.parametrize("wrong", [{}, [], "x", [[]], {"a": {}}])
def test_a_value_of_another_type_anywhere_in_a_calibration_is_refused(wrong):
    """Except for an empty set of rules, which is one that accepts nothing."""
    number = np.array([0.5])
    full = Calibration(
        100,
        Thresholds(0.5, number),
        {"sets": Scaling(16, 1.0, Isotonic(number, number)), "sequences": Scaling(16, 0.7)},
        {
            "f1": Acceptance("f1", 0.9, 0.9, 0.5, 0.5, 0.9, 10),
            "sequence": Acceptance("sequence", 0.9, 0.9, None, 0.0, 0.7, 0),
        },
        LabelCurves(np.ones(3), number, number),
        LabelAcceptance(0.9, 0.9, number),
    ).as_dict()
    assert Calibration.from_dict(json.loads(json.dumps(full)), 1).as_dict() == full
    for place in list_places(full):
        if not place or (wrong == {} and place in (("scalings",), ("acceptance",))):
            continue
        if wrong == "x" and place[-1] == "rule":
            continue
        values = json.loads(json.dumps(full))
        holder = functools.reduce(operator.getitem, place[:-1], values)
        holder[place[-1]] = wrong
        with pytest.raises(ModelError, match="damaged"):
            Calibration.from_dict(values, n_labels=1)


@pytest.mark.parametrize("method", ["set-rnn", "set-rnn-exact", "sgm"])
@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("model.decoder_layers", 1_000_000, "between"),
        ("model.decoder_units", 10**9, "between"),
        ("model.max_labels", 10**9, "between"),
        ("search.exact_sets", 10**9, "between"),
        ("text.max_words", 10**12, "between"),
        ("seed", -1, "between"),
        ("model.decoder_layers", 64, "other weights"),  # those of the arrays are others
        ("model.decoder_units", 16_384, "other weights"),
    ],
)
def test_settings_beyond_their_bounds_or_of_other_arrays_are_refused(
    model, method, key, value, said
):
    folder = model(method)
    group, _, name = key.rpartition(".")

    def change(values):
        (values["config"][group] if group else values["config"])[name] = value

    change_json(folder, "config.json", change)
    refuse(folder, *([f"'{key}'"] if said == "between" else []), said)


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("br", {"weights": np.zeros((3, 3), np.float32)}),
        ("br", {"weights": None}),
        ("br", {"weight_labels": None}),
        ("br", {"weight_labels": np.full(4, 10**6, np.int32)}),
        ("br", {"weight_offsets": np.array([0, -5, 10**9], np.int64)}),
        ("br", {"intercepts": np.zeros(3, np.float32)}),
        ("br", {"idf": np.zeros(3, np.float32)}),
        ("br", {"pairs": np.array([5, 4], np.int64)}),
        ("br-support", {"support": np.array([-1, 10**6], np.int32)}),
        ("br-support", {"support_offsets": np.array([0, 10**9], np.int64)}),
        ("br", {"seen_sets_offsets": np.array([0, -5, 10**9], np.int64)}),
        ("br", {"seen_sets": np.full(4, 10**6, np.int32)}),
        ("br", {"seen_sets_offsets": None}),
        ("pcc", {"chain": np.zeros((2, 2), np.float32)}),
        ("pcc", {"beam_width": np.array([10**9])}),
        ("pcc", {"beam_width": np.zeros(0, np.int64)}),
        ("set-rnn", {"encoder.words.weight": np.zeros((7, 24), np.float32)}),
        ("set-rnn", {"decoder.labels.weight": np.zeros((3, 24), np.float32)}),
        ("set-rnn", {"decoder.output.bias": np.zeros(3, np.float64)}),
        ("set-rnn", {"decoder.output.weight": None}),
        ("set-rnn", {"other": np.zeros(3, np.float32)}),
        ("sigmoid", {"decoder.output.weight": np.zeros((), np.float32)}),
    ],
)
def test_arrays_that_do_not_fit_are_refused(model, method, changes):
    folder = model(method)
    change_arrays(folder, **changes)
    refuse(folder, "other weights")


def test_arrays_of_another_type_are_refused(model):
    folder = model("set-rnn")
    arrays = load_file(folder / "model.safetensors")
    floats = {name: each for name, each in arrays.items() if each.dtype == np.float32}
    change_arrays(folder, **{name: each.astype(np.float64) for name, each in floats.items()})
    refuse(folder, "other weights", "float64")


@pytest.mark.parametrize(
    "labels",
    [
        ["a"] * 200,
        [f"label {number}" for number in range(1_200_000)],
        ["\ud800"],
        [""] * 2,
        [1, 2],
        "abc",
    ],
)
def test_labels_that_no_model_has_are_refused(model, labels):
    folder = model("br")
    values = {"labels": labels, "counts": [1] * len(labels)}
    (folder / "labels.json").write_text(json.dumps(values))
    seal(folder)
    refuse(folder, "labels")


def test_a_json_file_that_is_far_too_large_is_not_read(model):
    folder = model("br")
    for name in ("labels.json", "tokenizer.json", "calibration.json", "config.json"):
        copy = shutil.copytree(folder, folder.with_name(name))
        with (copy / name).open("r+b") as file:
            file.truncate(2**40)  # takes no room on the disk
        if name != "config.json":
            seal(copy)
        refuse(copy, name, "larger than")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *product(("method", "config", "notes", "files"), (None, 3, "x", [])),
        *product(["rule"], ({}, [], "no-rule", 1)),
    ],
)
def test_a_description_of_another_form_is_refused(model, name, value):
    folder = model("br")
    file = folder / "config.json"
    write_sealed(file, json.loads(file.read_text()) | {name: value})
    said = {"method": "'x'" if value == "x" else "config.json", "rule": "predicts by rule"}
    refuse(folder, said.get(name, "config.json"))


PADDING = {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None}
PADDING |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
TRUNCATION = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
DOUBLE = {"type": "Replace", "pattern": {"Regex": "."}, "content": "aa"}
TEMPLATE = {"type": "TemplateProcessing", "pair": [], "special_tokens": {}}
TEXT = {"Sequence": {"id": "A", "type_id": 0}}


def nest(step, depth):
    for _ in range(depth):
        step = {"type": "Sequence", "normalizers": [step]}
    return step


# What a tokenizer may be told to do, harmful for one that setrnn learned.
HARMFUL = {
    "padding": {"padding": PADDING},
    "truncation": {"truncation": TRUNCATION},
    "doubling": {"normalizer": {"type": "Sequence", "normalizers": [DOUBLE] * 30}},
    "a long replacement": {"normalizer": DOUBLE | {"content": "a" * 10_000}},
    "a prefix": {"normalizer": {"type": "Prepend", "prepend": "a" * 10_000}},
    "nested": {"normalizer": nest(DOUBLE, 40)},
    "too nested": {"normalizer": nest(DOUBLE, 200)},
    "many steps": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}] * 9_999}},
    "a text many times": {"post_processor": TEMPLATE | {"single": [TEXT] * 10_000}},
}


OF_VOCABULARY = {
    "far": lambda vocabulary: vocabulary.update({"far": 4_000_000_000}),
    "twice": lambda vocabulary: vocabulary.update({"twice": 5}),
    "no padding": lambda vocabulary: vocabulary.pop("[PAD]"),
    "no stop words": lambda vocabulary: vocabulary.pop("[STOP WORDS]"),
}


@pytest.mark.parametrize("name", [*HARMFUL, *OF_VOCABULARY])
def test_a_tokenizer_that_setrnn_did_not_write_is_refused(model, name):
    folder = model("br")

    def change(values):
        if name in HARMFUL:
            values.update(HARMFUL[name])
        else:
            OF_VOCABULARY[name](values["model"]["vocab"])

    change_json(folder, "tokenizer.json", change)
    refuse(folder, "tokenizer.json")


@pytest.fixture
def pretrained(tmp_path):
    """A model of a transformer with its own tokenizer, not trained."""
    place = tmp_path / "transformer"
    config = load_config("transformer", overrides=[f"encoder.path={place}", "text.max_tokens=32"])
    encoder = TransformerEncoder(tiny_transformer(), config.model)
    labels = LabelVocabulary(("rain", "club", "bank"), (3, 2, 1))
    decoder = SigmoidDecoder(encoder.memory_size, torch.zeros(len(labels), 0), config.model)
    system = IndependentSystem(Network(encoder, decoder).eval(), config, torch.device("cpu"))
    subwords = SubwordEncoder(tiny_tokenizer(), config.text.max_tokens)
    Tagger("sigmoid", config, subwords, labels, system).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_pretrained_tokenizer_is_neither_padded_nor_told_its_length(pretrained):
    before = load(pretrained, "cpu").predict_proba(["the rain"])
    change_json(
        pretrained,
        "tokenizer.json",
        lambda values: values.update(padding=PADDING, truncation=TRUNCATION),
    )
    assert np.array_equal(load(pretrained, "cpu").predict_proba(["the rain"]), before)


CHARACTERS = b"\x04\0\0\0" + bytes(4) + b"a" * 10_000 + b"\0"
HARMLESS = ("padding", "truncation", "nested")  # for these: what they ask for is not done, or small
HARMFUL_TO_ANY = {name: harm for name, harm in HARMFUL.items() if name not in HARMLESS} | {
    "a table of characters": {
        "normalizer": {
            "type": "Precompiled",
            "precompiled_charsmap": base64.b64encode(CHARACTERS).decode(),
        }
    },
    "special tokens": {
        "post_processor": TEMPLATE
        | {
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}] * 99 + [TEXT],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]}},
        }
    },
}


@pytest.mark.parametrize("harm", HARMFUL_TO_ANY.values(), ids=HARMFUL_TO_ANY)
def test_a_pretrained_tokenizer_that_multiplies_texts_is_refused(pretrained, harm):
    change_json(pretrained, "tokenizer.json", lambda values: values.update(harm))
    refuse(pretrained, "tokenizer.json")


def test_a_pretrained_tokenizer_of_endless_words_is_refused(pretrained):
    endless = {"max_input_chars_per_word": 10**9}
    change_json(pretrained, "tokenizer.json", lambda values: values["model"].update(endless))
    refuse(pretrained, "tokenizer.json", "letters")


@pytest.mark.parametrize(
    "changes",
    [
        {"num_hidden_layers": 1_000_000},
        {"hidden_size": 1_000_000, "num_attention_heads": 1},
        {"vocab_size": 10**9},
        {"intermediate_size": 10**9},
        {"max_position_embeddings": 10**9},
        {"hidden_act": "nothing"},
        {"num_attention_heads": 0},
        {"model_type": "no such"},
    ],
)
def test_a_transformer_that_does_not_fit_its_weights_is_refused(pretrained, changes):
    name = "encoder.architecture"
    values = json.loads(load_file(pretrained / "model.safetensors")[name].tobytes()) | changes
    architecture = np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)
    change_arrays(pretrained, **{name: architecture})
    refuse(pretrained, "other weights")


def test_weights_whose_products_are_infinite_are_refused(model):
    folder = model("sigmoid")
    bias = load_file(folder / "model.safetensors")["decoder.output.bias"]
    change_arrays(folder, **{"decoder.output.bias": np.full_like(bias, -3e38)})
    refuse(folder, "'decoder.output.bias'", "beyond")


def test_a_probability_that_is_not_a_number_is_an_error_not_an_answer():
    with pytest.raises(ModelError, match="not numbers"):
        to_probability(float("nan"))
