"""What can be said of Apple's GPUs without one: who may ask for one, and what they lack."""

from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from setrnn.data.cache import prepare
from setrnn.errors import ConfigError
from setrnn.model.devices import find_device, has_device, limited_threads, sum_type
from setrnn.training.ranks import connected
from small_taggers import SMALL, trained_tagger


class _NoDouble(TorchDispatchMode):
    """Raise where a tensor of type float64 is used, as a GPU of Apple does."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for each in tree_leaves((args, found)):
            if isinstance(each, torch.Tensor) and each.dtype == torch.float64:
                raise TypeError(f"{function} uses float64")
        return found


def test_the_device_is_used_where_torch_has_it_and_only_when_asked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="no GPU that torch can use"):
        find_device("mps")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device("mps").type == "mps"
    assert has_device("mps")
    assert find_device("auto").type == "cpu"


def test_torchrun_refuses_it(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_torchelastic_launched", lambda: True)
    with pytest.raises(ConfigError, match="Train without it"), connected("mps"):
        pass


@pytest.mark.parametrize("method", ["set-rnn", "set-rnn-exact", "sigmoid"])
def test_networks_train_and_predict_without_float64(
    method, small_examples, test_texts, tmp_path, monkeypatch
):
    examples = small_examples["train"][:64]
    prepared = prepare({"train": lambda: iter(examples)}, tmp_path / "few", "few", SMALL.text, {})
    config = replace(SMALL, training=replace(SMALL.training, epochs=1))
    assert sum_type(torch.device("mps")) == torch.float32
    assert sum_type(torch.device("cpu")) == torch.float64
    monkeypatch.setattr("setrnn.training.loop.sum_type", lambda _: torch.float32)
    with limited_threads(1), _NoDouble():  # which sees only its own thread
        tagger = trained_tagger(prepared, method, config)
        for rule in tagger.rules:
            tagger.tag(test_texts[:2], rule)
    with pytest.raises(TypeError, match="uses float64"), _NoDouble():
        torch.zeros(1, dtype=torch.float64)
