"""The checks of parts from outside: each finds a part that breaks one of its promises."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from setrnn import checks
from setrnn.data.example import Example
from setrnn.data.read import READERS, Format
from setrnn.errors import BrokenPromiseError, SetRNNError
from setrnn.methods import METHODS
from setrnn.model.decoders import DECODERS
from setrnn.model.encoders import GRUEncoder
from setrnn.objectives import OBJECTIVES, OrderObjective, Orders
from setrnn.objectives.objective import the_one
from setrnn.systems.classical.br import BinaryRelevance
from setrnn.systems.registry import SYSTEMS
from setrnn.systems.rules import RULES, Rule


def changed(kind, **methods):
    """A part whose methods are called with the one that they replace."""
    return type("Changed", (kind,), {k: partial_method(v, k) for k, v in methods.items()})


def partial_method(change, name):
    def method(self, *arguments, **named):
        own = partial(getattr(super(type(self), self), name))
        return change(own, *arguments, **named)

    return method


RNN, FREE, SIGMOID = (DECODERS[name] for name in ("rnn", "order-free", "sigmoid"))


@pytest.mark.parametrize(
    ("decoder", "promise"),
    [
        (type("Wrong", (SIGMOID,), {"emits": "words"}), "emits is"),
        (changed(SIGMOID, logits=lambda own, x: own(x) - own(x).mean()), "else is in the batch"),
        (changed(SIGMOID, logits=lambda own, x: own(x) + torch.inf), "finite log-odds"),
        (changed(SIGMOID, logits=lambda own, x: own(x) + torch.rand(1)), "is scored the same"),
        (changed(RNN, score=lambda own, *more: own(*more) - 0.1), "sum to 1"),
        (changed(RNN, follow=lambda own, *more: own(*more).roll(1, 1)), "follow gives"),
        (changed(RNN, attend=lambda own, *more: own(*more) / 2), "attention is a distribution"),
        (changed(RNN, step=lambda own, *more: (own(*more)[0] / 2, own(*more)[1])), "steps of a"),
        (changed(FREE, after=lambda own, *more: own(*more).roll(1, 1)), "after gives p"),
        (type("Wrong", (RNN,), {"from_weights": None}), "from_weights builds"),
    ],
)
def test_a_decoder_that_breaks_a_promise_is_named_with_it(decoder, promise):
    with pytest.raises(BrokenPromiseError, match=promise) as error:
        checks.check_decoder(decoder)
    assert str(error.value).startswith(f"decoder '{decoder.__name__}'")
    assert "\n" not in str(error.value)


def other_orders(decoder, encoding, label_sets, n_orders):
    orders = torch.zeros_like(label_sets.labels)[:, None]
    return Orders(orders, torch.ones_like(label_sets.sizes))


def in_evaluation(decoder, *arguments):
    return OBJECTIVES["fixed-order"](decoder.train(False), *arguments)


@pytest.mark.parametrize(
    ("objective", "promise"),
    [
        (lambda *arguments: OBJECTIVES["fixed-order"](*arguments).sum(), "one finite value"),
        (lambda *arguments: OBJECTIVES["fixed-order"](*arguments).detach(), "parameter learns"),
        (lambda *a: OBJECTIVES["fixed-order"](*a) - a[1].memory.mean(), "else is in the batch"),
        (in_evaluation, "the decoder is left in training"),
        (OrderObjective(other_orders, the_one), "scores orders of the set"),
        (lambda *arguments: arguments[9], "IndexError"),
    ],
)
def test_an_objective_that_breaks_a_promise_is_named_with_it(objective, promise):
    with pytest.raises(BrokenPromiseError, match=promise):
        checks.check_objective(objective)


def with_noise(own, tokens, lengths):
    encoding = own(tokens, lengths)
    return replace(encoding, summary=encoding.summary + encoding.summary.mean())


def without_padding(own, tokens, lengths):
    encoding = own(tokens, lengths)
    return replace(encoding, closed=torch.zeros_like(encoding.closed))


@pytest.mark.parametrize(
    ("encoder", "promise"),
    [
        (changed(GRUEncoder, forward=with_noise), "padding and documents are beside it"),
        (changed(GRUEncoder, forward=without_padding), "closed is 0 on the words"),
        (
            changed(GRUEncoder, forward=lambda own, *more: own(*more).slice(0, 2)),
            "a vector per word",
        ),
        (type("Wrong", (GRUEncoder,), {"from_weights": None}), "from_weights builds"),
        (type("Wrong", (GRUEncoder,), {"from_data": None}), "from_data builds"),
    ],
)
def test_an_encoder_that_breaks_a_promise_is_named_with_it(encoder, promise):
    with pytest.raises(BrokenPromiseError, match=promise):
        checks.check_encoder(encoder)


@pytest.mark.parametrize(
    ("rule", "promise"),
    [
        (Rule("sets", lambda choice: choice.candidates.labels[:, 1]), "that fits"),
        (Rule("sets", lambda choice: np.zeros((len(choice.marginals), 2), np.int32)), "twice"),
        (Rule("sets", lambda choice: choice.candidates.labels[:3, 0]), "that fits"),
        (replace(RULES["hamming"], rate=RULES["f1"].rate), "the highest rate"),
    ],
)
def test_a_rule_that_breaks_a_promise_is_named_with_it(rule, promise):
    with pytest.raises(BrokenPromiseError, match=promise):
        checks.check_rule(rule)


class HalfProbable(BinaryRelevance):
    """Its sets have half of their probability."""

    def set_log_probs(self, tokens, label_sets):
        return super().set_log_probs(tokens, label_sets) + np.log(0.5)


class OtherCandidates(BinaryRelevance):
    """The probabilities of its candidates are not those of the sets."""

    def candidates(self, tokens, n_sets, source="sets", known=None):
        found = super().candidates(tokens, n_sets, source, known)
        return replace(found, log_probs=found.log_probs - 0.1)


class ForgetsWhatIsKnown(BinaryRelevance):
    def candidates(self, tokens, n_sets, source="sets", known=None):
        return super().candidates(tokens, n_sets, source)


class WithoutMarginals(BinaryRelevance):
    def marginals(self, tokens, candidates=None):
        return 0 * super().marginals(tokens, candidates)


class ForgetsWeights(BinaryRelevance):
    def arrays(self):
        arrays = super().arrays()
        return {**arrays, "weights": 0 * arrays["weights"]}


@pytest.mark.parametrize(
    ("system", "promise"),
    [
        (object, "trained with a Config"),
        (HalfProbable, "of all sets sum to 1"),
        (OtherCandidates, "candidates are the sets that fit"),
        (ForgetsWhatIsKnown, "candidates are the sets that fit"),
        (WithoutMarginals, r"p\(label\) is at least"),
        (ForgetsWeights, "from_arrays builds the same system"),
    ],
)
def test_a_system_that_breaks_a_promise_is_named_with_it(system, promise, monkeypatch):
    monkeypatch.setitem(SYSTEMS, "own", system)
    with pytest.raises(BrokenPromiseError, match=f"method 'own' breaks a promise: .*{promise}"):
        checks.check_system(replace(METHODS["br"], name="own"))


def test_a_reader_that_breaks_a_promise_is_named_with_it(tmp_path):
    place = tmp_path / "train.csv"
    place.write_text("text,labels\none,x\n")
    once = READERS["csv"].find(place, checks.ReadOptions())["train"].read(checks.BadRows())
    documents = [Example("train-1", "one", ("x",))]
    everything = Format(finder=lambda *_: READERS["csv"].find(place, checks.ReadOptions()))
    (tmp_path / "empty").mkdir()
    with pytest.raises(BrokenPromiseError, match=r"the parts \[\]"):
        checks.check_reader(READERS["jsonl"], tmp_path / "empty", documents)
    for reader, expected, promise in (
        (READERS["csv"], [Example("train-1", "two", ("x",))], "it finds train, and reads"),
        (Format((".csv",), lambda *_: once), documents, "side by side"),
        (everything, documents, "no files of other formats"),
    ):
        with pytest.raises(BrokenPromiseError, match=promise):
            checks.check_reader(reader, place, expected)
    assert issubclass(BrokenPromiseError, SetRNNError)
    assert issubclass(BrokenPromiseError, AssertionError)
