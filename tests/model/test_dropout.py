import pytest
import torch

from setrnn.model.dropout import Dropout, draw_from, without_dropout


def dropout_of(share, seed=0):
    layer = Dropout(share)
    draw_from(torch.Generator().manual_seed(seed), torch.nn.Sequential(layer))
    return layer


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_share_of_the_values_is_dropped_and_the_mean_stays(share):
    inputs = torch.ones(333, 301)  # not a multiple of 4
    found = dropout_of(share)(inputs)
    assert (found == 0).float().mean() == pytest.approx(share, abs=0.005)
    assert found.mean() == pytest.approx(1.0, abs=0.02)
    assert len(found.unique()) == (1 if share == 0 else 2)


def test_neighbours_are_dropped_independently():
    is_dropped = (dropout_of(0.5)(torch.ones(400_000)) == 0).float().view(-1, 4)
    assert is_dropped.T.corrcoef().sub(torch.eye(4)).abs().max() < 0.02


def test_the_gradient_is_that_of_the_values_kept():
    inputs = torch.randn(50, requires_grad=True)
    found = dropout_of(0.5)(inputs)
    found.sum().backward()
    torch.testing.assert_close(inputs.grad, torch.where(found == 0, 0.0, 2.0))


def test_the_seed_of_the_generator_decides_and_not_that_of_torch():
    inputs, before = torch.ones(1000), torch.get_rng_state()
    assert torch.equal(dropout_of(0.5, 1)(inputs), dropout_of(0.5, 1)(inputs))
    assert not torch.equal(dropout_of(0.5, 1)(inputs), dropout_of(0.5, 2)(inputs))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("has_generator", [True, False])
def test_nothing_is_dropped_outside_training(has_generator):
    layer = (dropout_of if has_generator else Dropout)(0.5)
    inputs = torch.ones(1000)
    assert (layer(inputs) == 0).any()
    assert torch.equal(layer.eval()(inputs), inputs)


@pytest.mark.parametrize("was_training", [True, False])
def test_a_search_without_dropout_leaves_a_decoder_as_it_was_also_after_an_error(was_training):
    decoder = Dropout(0.5).train(was_training)
    with without_dropout(decoder):
        assert not decoder.training
    assert decoder.training == was_training

    def fail():
        with without_dropout(decoder):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert decoder.training == was_training
