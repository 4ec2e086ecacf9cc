import pytest
import torch

from setrnn.errors import ModelError
from setrnn.training.run_folder import LAST, Position, RunFolder, read_checkpoint, read_position

TENSORS = {"a": torch.randn(50, 20), "step": torch.tensor(3.0), "empty": torch.empty(0)}
POSITION = Position(epoch=2, batch=3, loss_sum=0.1 + 0.2, history=[{"loss": 1 / 3, "n": 1}])
IDENTITY = {"method": "set-rnn"}


@pytest.fixture
def file(tmp_path):
    RunFolder(tmp_path, IDENTITY).save(TENSORS, POSITION)
    return tmp_path / LAST


def test_what_is_written_is_read(file):
    found = read_checkpoint(file)
    assert found.tensors.keys() == TENSORS.keys()
    assert all(torch.equal(found.tensors[name], each) for name, each in TENSORS.items())
    assert found.position == read_position(file.parent) == POSITION
    assert found.identity == IDENTITY


def test_any_damage_is_found(file):
    whole = file.read_bytes()
    middle = len(whole) - 1000
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for content in (b"", b"no checkpoint", whole[:100], whole[:-1], whole + b"x", flipped):
        file.write_bytes(content)
        with pytest.raises(ModelError, match=r"damaged.*version"):
            read_checkpoint(file)
    file.unlink()
    with pytest.raises(ModelError, match=f"Remove {file.parent}"):
        read_checkpoint(file)
