import json
from itertools import islice

import pytest

from setrnn.data import newsroom
from setrnn.data.read import write_examples
from tiny_transformers import save_transformer

TINY = (
    "--set=text.max_tokens=32",
    "--set=model.decoder_units=8",
    "--set=search.beam_width=3",
    "--set=training.epochs=1",
)


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    return save_transformer(tmp_path_factory.mktemp("transformer") / "tiny")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with a few documents."""
    folder = tmp_path_factory.mktemp("corpus")
    for split in ("train", "test"):
        write_examples(islice(newsroom.examples(split), 40), folder / f"{split}.jsonl")
    return folder


@pytest.fixture
def train(setrnn, corpus, tmp_path):
    def run(path, *settings, data=corpus, method="sigmoid"):
        out = ("--method", method, "--out", tmp_path / "model", "--preset", "transformer")
        encoder = () if path is None else (f"--set=encoder.path={path}",)
        return setrnn("train", data, *out, "--device", "cpu", *encoder, *settings)

    return run


def test_a_transformer_is_trained_predicts_and_is_measured(
    train, setrnn, transformer, corpus, tmp_path
):
    result = train(transformer, *TINY)
    assert result.code == 0, result.err
    predicted = tmp_path / "predicted.jsonl"
    assert setrnn("predict", tmp_path / "model", corpus, "--out", predicted, "--top", 2).code == 0
    rows = [json.loads(line) for line in predicted.read_text().splitlines()]
    assert len(rows) == 40
    assert all(0 < row["probability"] <= 1 for row in rows)
    assert setrnn("evaluate", tmp_path / "model", corpus).code == 0
    result = setrnn("explain", tmp_path / "model", "--text", "Raining, the clubs budgeted.")
    assert result.code == 0, result.err
    assert "Raining" in result.out
    assert "##" not in result.out
    assert "read 4 words of 4" in result.out


def test_an_encoder_that_cannot_be_used_is_one_line_before_data_is_prepared(train, tmp_path):
    (save_transformer(tmp_path / "tiny") / "model.safetensors").unlink()
    for path, said in (
        (None, "--set encoder.path=NAME"),
        (tmp_path / "no", "there is no folder"),
        (tmp_path / "tiny", "has no weights"),
    ):
        result = train(path, *TINY)
        assert result.code == 1
        (line,) = result.error_lines
        assert said in line
        assert not (tmp_path / "cache").exists()
