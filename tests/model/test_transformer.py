import json
import shutil
import sys

import pytest
import torch

from setrnn.config import ModelSettings, load_config
from setrnn.data.ragged import Ragged
from setrnn.errors import ConfigError, MissingExtraError, ModelError
from setrnn.model.encoders.transformer import (
    TransformerEncoder,
    average_names,
    find_longest,
    load_pretrained,
)
from tiny_transformers import UNITS, save_transformer, tiny_tokenizer, tiny_transformer


@pytest.fixture
def folder(tmp_path):
    return save_transformer(tmp_path / "tiny")


def config_of(folder, *settings):
    overrides = [f"encoder.path={folder}", "text.max_tokens=32", *settings]
    return load_config("transformer", None, overrides)


def change_config(folder, **values):
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def refused(folder, *settings):
    with pytest.raises((ConfigError, ModelError)) as error:
        TransformerEncoder.check(config_of(folder, *settings))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_whole_folder_is_accepted_and_loads_as_it_was_saved(folder):
    TransformerEncoder.check(config_of(folder))
    loaded = load_pretrained(str(folder)).state_dict()
    for name, weight in tiny_transformer().state_dict().items():
        assert torch.equal(loaded[name], weight), name


def test_weights_of_half_precision_are_loaded_in_full(tmp_path):
    folder = tmp_path / "half"
    tiny_transformer().half().save_pretrained(folder)
    assert {each.dtype for each in load_pretrained(str(folder)).parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "has no weights: model.safetens"),
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer"),
        (lambda folder: (folder / "config.json").write_text("{"), "The config.json of"),
        (lambda folder: change_config(folder, is_encoder_decoder=True), "not an encoder"),
        (shutil.rmtree, "there is no folder"),
    ],
)
def test_a_folder_without_a_usable_transformer_is_one_line(folder, damage, said):
    damage(folder)
    assert said in refused(folder)


def test_more_tokens_than_it_has_positions_are_refused_with_the_way_out(folder):
    assert "--set text.max_tokens=64" in refused(folder, "text.max_tokens=65")
    TransformerEncoder.check(config_of(folder, "text.max_tokens=64"))


# Those after the first count positions from the one after their padding.
KINDS = ("bert", "roberta", "camembert", "xlm-roberta", "mpnet")


@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_text_that_is_accepted_can_be_read(kind, tmp_path):
    import transformers

    n_tokens = tiny_tokenizer().get_vocab_size()
    sizes = {"hidden_size": UNITS, "num_hidden_layers": 1, "num_attention_heads": 2}
    architecture = transformers.AutoConfig.for_model(
        kind, vocab_size=n_tokens, intermediate_size=UNITS, max_position_embeddings=40, **sizes
    )
    transformers.AutoModel.from_config(architecture).save_pretrained(tmp_path)
    tiny_tokenizer().save(str(tmp_path / "tokenizer.json"))
    transformer = load_pretrained(str(tmp_path))
    longest = find_longest(transformer)
    assert longest == (40 if kind == "bert" else 38)
    TransformerEncoder.check(config_of(tmp_path, f"text.max_tokens={longest}"))
    refusal = refused(tmp_path, f"text.max_tokens={longest + 1}")
    assert f"--set text.max_tokens={longest}" in refusal
    encoder = TransformerEncoder(transformer, ModelSettings()).eval()
    tokens = torch.randint(5, n_tokens, (2, longest + 1))
    assert encoder(tokens[:, :-1], torch.tensor([longest, 3])).memory.isfinite().all()
    with pytest.raises((IndexError, RuntimeError)):
        encoder(tokens, torch.tensor([longest + 1, 3]))


def test_damaged_weights_and_those_of_another_network_are_one_line(folder, tmp_path):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelError, match=r"The weights of .* cannot be read"):
        load_pretrained(str(folder))
    save_transformer(folder)
    change_config(folder, num_hidden_layers=3)
    with pytest.raises(ModelError, match=r"config.json: 16 are missing"):
        load_pretrained(str(folder))


def test_fewer_embeddings_than_tokens_are_refused(folder):
    n_known = tiny_transformer().config.vocab_size
    load_pretrained(str(folder), n_known)
    with pytest.raises(ModelError, match=f"{n_known} embeddings.*{n_known + 1} tokens"):
        load_pretrained(str(folder), n_known + 1)


def test_without_the_library_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'setrnn\[hf\]'"):
        TransformerEncoder.check(config_of(folder))


def test_names_are_the_centred_means_of_their_subwords():
    transformer = tiny_transformer()
    vectors = average_names(transformer, Ragged.from_lists([[5, 6], [7], [8, 9, 10]]))
    weights = transformer.get_input_embeddings().weight.detach()
    means = torch.stack([weights[rows].mean(0) for rows in ([5, 6], [7], [8, 9, 10])])
    centred = means - means.mean(0)
    torch.testing.assert_close(vectors, centred * (0.1 / centred.square().mean().sqrt()))


@pytest.mark.parametrize("names", [[[5]], [[5], [5]], [[], [], []]])
def test_names_that_read_alike_still_get_vectors(names):
    vectors = average_names(tiny_transformer(), Ragged.from_lists(names))
    assert vectors.shape == (len(names), UNITS)
    assert vectors.isfinite().all()
    assert vectors.abs().max() > 0
