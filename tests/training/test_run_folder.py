import pytest
import torch

from setrnn.errors import ModelError
from setrnn.training.run_folder import (
    Checkpoint,
    Position,
    read_checkpoint,
    read_position,
    write_checkpoint,
)

POSITION = Position(epoch=2, batch=3, loss_sum=0.1 + 0.2, history=[{"loss": 1 / 3, "n": 1}])


@pytest.fixture
def checkpoint():
    tensors = {"a": torch.randn(50, 20), "step": torch.tensor(3.0), "empty": torch.empty(0)}
    return Checkpoint(tensors, POSITION, {"method": "set-rnn"})


def test_what_is_written_is_read(checkpoint, tmp_path):
    file = tmp_path / "last.safetensors"
    write_checkpoint(file, checkpoint)
    found = read_checkpoint(file)
    assert found.tensors.keys() == checkpoint.tensors.keys()
    assert all(torch.equal(found.tensors[name], each) for name, each in checkpoint.tensors.items())
    assert found.position == POSITION
    assert read_position(tmp_path) == POSITION
    assert found.identity == checkpoint.identity


def test_any_damage_is_found(checkpoint, tmp_path):
    file = tmp_path / "last.safetensors"
    write_checkpoint(file, checkpoint)
    whole = file.read_bytes()
    middle = len(whole) - 1000
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for content in (b"", b"no checkpoint", whole[:100], whole[:-1], whole + b"x", flipped):
        file.write_bytes(content)
        with pytest.raises(ModelError, match=r"damaged.*version"):
            read_checkpoint(file)
    file.unlink()
    with pytest.raises(ModelError, match=f"Remove {tmp_path}"):
        read_checkpoint(file)
