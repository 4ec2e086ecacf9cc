import struct
import sys

import pytest
import torch
from tiny_runs import N_TRAIN

from setrnn.errors import DataError, ModelError
from setrnn.training.run_folder import (
    Checkpoint,
    EventLog,
    Position,
    read_checkpoint,
    read_state,
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
    assert found.position == POSITION == read_state(file).position
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


def test_a_full_disk_is_one_line_and_keeps_what_was_there(checkpoint, tmp_path, small_files):
    file = tmp_path / "last.safetensors"
    write_checkpoint(file, checkpoint)
    before = file.read_bytes()
    with small_files(2000), pytest.raises(DataError, match=r"cannot be written: .* --resume"):
        write_checkpoint(file, checkpoint)
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def read_events(folder):
    """Read all logs of a folder as TensorBoard does: a restart drops what was logged from there."""
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event

    values = {}
    for file in sorted(folder.glob("events.*"), key=lambda each: each.stat().st_mtime_ns):
        content, start = file.read_bytes(), 0
        while start < len(content):
            (size,) = struct.unpack("Q", content[start : start + 8])
            event = Event.FromString(content[start + 12 : start + 12 + size])
            start += size + 16
            if event.HasField("session_log"):
                values = {key: value for key, value in values.items() if key[1] < event.step}
            for each in event.summary.value:
                assert (each.tag, event.step) not in values
                values[each.tag, event.step] = each.simple_value
    return values


def test_what_is_logged_again_after_a_restart_counts_once(tmp_path):
    log = EventLog(tmp_path, 1)
    for step in (1, 2, 3):
        log.add({"loss": float(step)}, step)
    log.close()
    log = EventLog(tmp_path, 3)
    log.add({"loss": 30.0}, 3)
    log.close()
    assert read_events(tmp_path) == {("loss", 1): 1.0, ("loss", 2): 2.0, ("loss", 3): 30.0}


def test_a_resumed_run_continues_the_log(train, tmp_path, signal_at_step):
    folder = tmp_path / "m.run"
    signal_at_step(6)
    with pytest.raises(Exception, match="--resume"):
        train("training.checkpoint_minutes=0", folder=folder)
    run = train("training.checkpoint_minutes=0", folder=folder, resume=True)
    values = read_events(folder)
    measured = {step: value for (tag, step), value in values.items() if tag == "valid/label_f1"}
    assert list(measured) == [N_TRAIN, 2 * N_TRAIN]
    assert list(measured.values()) == pytest.approx(
        [row["label_f1"] for row in run.notes["epochs"]]
    )
    losses = [value for (tag, _), value in sorted(values.items()) if tag == "train/loss"]
    assert len(losses) == 7  # of eight batches: the one where it stopped reports nothing
    assert losses[-1] == pytest.approx(run.losses[-1])
    rates = [value for (tag, _), value in sorted(values.items()) if tag == "train/learning_rate"]
    assert rates[0] > rates[-1] > 0


def test_training_needs_no_tensorboard(train, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tensorboardX")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    train("training.epochs=1", folder=tmp_path / "m.run")
    assert not list((tmp_path / "m.run").glob("events*"))
