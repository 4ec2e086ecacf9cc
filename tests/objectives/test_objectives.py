"""Every objective keeps the contract, and the bounds that hold between them."""

from collections import Counter
from itertools import permutations
from math import log

import pytest
import torch
from scipy.stats import chisquare

from brute_force import all_sets, product_probability
from brute_force_sequences import (
    EVERY_DECODER,
    STEPPING_DECODERS,
    TEXTS,
    TableDecoder,
    as_tuple,
    batch_of,
    documents,
    encoded,
    sequence_log_probs,
    set_log_probs,
    sets_of,
    tiny_network,
)
from setrnn.checks import check_objective
from setrnn.errors import ConfigError
from setrnn.objectives import OBJECTIVES, OrderObjective, find_objective
from setrnn.objectives.objective import log_sum_exp, mean, the_one

# Those that score orders.
NAMES = [name for name, each in OBJECTIVES.items() if isinstance(each, OrderObjective)]
EVERY_OBJECTIVE = pytest.mark.parametrize("objective", NAMES)
LABEL_SETS = [(0, 1, 2, 3), (1, 3), (2,), ()]  # one for each text


def find_pairs(objective):
    """The decoders that an objective can train."""
    if objective == "exact-set-probability":
        return ["order-free"]
    if objective == "independent-labels":
        return ["sigmoid"]
    return [*STEPPING_DECODERS, "sigmoid"] if objective == "set-distribution" else STEPPING_DECODERS


PAIRS = [(objective, decoder) for objective in OBJECTIVES for decoder in find_pairs(objective)]
EVERY_PAIR = pytest.mark.parametrize(("objective", "decoder"), PAIRS)
DRAWS = ("sampled-order", "optimal-completion", "set-reward")


def orders_of(objective, decoder, encoding, label_sets, n_orders):
    """The orders that count, for each document."""
    chosen = OBJECTIVES[objective].choose_orders(decoder, encoding, sets_of(label_sets), n_orders)
    assert len(chosen.labels) == len(chosen.n_orders) == len(label_sets)
    assert chosen.labels.shape[1] >= int(chosen.n_orders.max())
    return [
        [as_tuple(order) for order in orders[:n]]
        for orders, n in zip(chosen.labels, chosen.n_orders.tolist(), strict=True)
    ]


# The contract of all.


@EVERY_PAIR
def test_every_objective_keeps_its_promises(objective, decoder):
    check_objective(OBJECTIVES[objective], decoder)


@pytest.mark.parametrize("objective", ["exact-set-probability", "independent-labels"])
def test_exact_objectives_are_the_log_probability_of_the_set(objective):
    decoder, encoding = encoded(find_pairs(objective)[0])
    if objective == "independent-labels":
        logits = decoder.logits(encoding).detach()
        truth = {s: [log(product_probability(row, s)) for row in logits] for s in all_sets(4)}
    else:
        of_sets = set_log_probs(decoder, encoding)
        truth = {tuple(sorted(s)): each.tolist() for s, each in of_sets.items()}
    for labels, expected in truth.items():
        sets = sets_of([labels] * len(TEXTS))
        found = OBJECTIVES[objective](decoder, encoding, sets, 12)
        assert found.tolist() == pytest.approx(expected, abs=1e-4)


# The contract of those that score orders.


@EVERY_OBJECTIVE
@EVERY_DECODER
@pytest.mark.parametrize("n_orders", [1, 5, 30])
def test_no_objective_exceeds_the_probability_of_the_set(objective, decoder, n_orders):
    decoder, encoding = encoded(decoder)
    truth = set_log_probs(decoder, encoding)
    values = OBJECTIVES[objective](decoder, encoding, sets_of(LABEL_SETS), n_orders)
    for document, labels in enumerate(LABEL_SETS):
        assert values[document] <= truth[frozenset(labels)][document] + 1e-4


@EVERY_OBJECTIVE
@EVERY_DECODER
@pytest.mark.parametrize("n_orders", [1, 12])
@pytest.mark.parametrize(
    "label_sets",
    [[(2,), (0,), (3,), (1,)], [(), (), (), ()], [(), (1,), (), (3,)]],
    ids=["one label", "empty", "both"],
)
def test_all_agree_on_sets_of_one_label_and_none(objective, decoder, n_orders, label_sets):
    decoder, encoding = encoded(decoder)
    truth = sequence_log_probs(decoder, encoding)
    expected = torch.stack([truth[each][row] for row, each in enumerate(label_sets)])
    values = OBJECTIVES[objective](decoder, encoding, sets_of(label_sets), n_orders)
    torch.testing.assert_close(values, expected, atol=1e-4, rtol=1e-4)
    beside_larger = sets_of(label_sets, width=4)
    values = OBJECTIVES[objective](decoder, encoding, beside_larger, n_orders)
    torch.testing.assert_close(values, expected, atol=1e-4, rtol=1e-4)


@EVERY_OBJECTIVE
@EVERY_DECODER
def test_dropout_does_not_touch_the_choice_of_orders(objective, decoder, monkeypatch):
    """In training, the orders are those chosen without dropout; their scores have it."""
    decoder, encoding = encoded(decoder, dropout=0.5)
    label_sets = sets_of([(0, 1, 2, 3)] * len(TEXTS))
    scored = []
    score = decoder.score

    def noted_score(encoding, orders, lengths):
        scored.append((orders, decoder.training))
        return score(encoding, orders, lengths)

    monkeypatch.setattr(decoder, "score", noted_score)
    for is_training in (False, True):
        decoder.train(is_training)
        torch.manual_seed(0)
        OBJECTIVES[objective](decoder, encoding, label_sets, 5)
        assert decoder.training == is_training, "it is left as it was found"
    (orders, _), (orders_in_training, has_dropout) = scored
    assert torch.equal(orders, orders_in_training)
    assert has_dropout


@EVERY_OBJECTIVE
def test_all_orders_of_a_batch_are_scored_in_one_pass(objective, monkeypatch):
    decoder, encoding = encoded()
    score, calls = decoder.score, []
    monkeypatch.setattr(decoder, "score", lambda *arguments: calls.append(1) or score(*arguments))
    OBJECTIVES[objective](decoder, encoding, sets_of(LABEL_SETS), 12)
    assert len(calls) == 1


def test_an_unknown_objective_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'best-order'"):
        find_objective("best-orders")


# What each of them is.


# What each makes of log p of all orders of a set; the first is in descending order of frequency.
EQUATIONS = {
    "fixed-order": lambda log_probs: log_probs[0],
    "random-order": torch.mean,
    "best-order": torch.max,
    "set-probability": lambda log_probs: log_probs.logsumexp(0),
}


@EVERY_DECODER
@pytest.mark.parametrize("objective", EQUATIONS)
def test_with_room_for_all_orders_an_objective_is_its_equation(objective, decoder):
    decoder, encoding = encoded(decoder)
    truth = sequence_log_probs(decoder, encoding)
    values = OBJECTIVES[objective](decoder, encoding, sets_of(LABEL_SETS), 24)
    for document, labels in enumerate(LABEL_SETS):
        every = torch.stack([truth[order][document] for order in permutations(labels)])
        expected = EQUATIONS[objective](every)
        torch.testing.assert_close(values[document], expected, atol=1e-4, rtol=1e-4)


def test_random_orders_are_uniform():
    torch.manual_seed(0)
    labels, n_orders = (0, 1, 3, 4), 23  # one less than there are: they are drawn
    label_sets = [labels, (0, 1, 2, 3, 4)] * 50
    chosen = orders_of("random-order", TableDecoder(5), documents(100), label_sets, n_orders)
    drawn = Counter(order for orders in chosen[::2] for order in orders)
    found = [drawn[order] for order in permutations(labels)]
    assert sum(found) == 50 * n_orders
    assert chisquare(found).pvalue > 0.001


# How log-probabilities are combined.


NONE = -torch.inf


@pytest.mark.parametrize("combine", [mean, log_sum_exp, the_one])
def test_where_there_is_no_order_nothing_is_added_and_nothing_learned(combine):
    log_probs = torch.tensor([[-1.0, -2.0, -4.0], [-3.0, NONE, NONE]], requires_grad=True)
    few = torch.tensor([[-3.0]])
    values = combine(log_probs)
    torch.testing.assert_close(values[1:], combine(few))
    values.sum().backward()
    assert log_probs.grad.isfinite().all()
    assert log_probs.grad[1].tolist() == [1.0, 0.0, 0.0]


def test_orders_are_combined_by_mean_or_by_their_summed_probability():
    log_probs = torch.tensor([[0.1, 0.2, 0.4]]).log()
    assert float(mean(log_probs)) == pytest.approx(log(0.1 * 0.2 * 0.4) / 3)
    assert float(log_sum_exp(log_probs)) == pytest.approx(log(0.1 + 0.2 + 0.4))


# The gradient.


@EVERY_DECODER
@pytest.mark.parametrize("n_orders", [24, 5], ids=["all orders", "those found"])
def test_the_gradient_of_set_probability_is_the_posterior_mean_of_the_orders(decoder, n_orders):
    network = tiny_network(decoder)
    parameters = list(network.parameters())
    decoder, encoding = network.decoder, network.encode(batch_of(TEXTS[:1]))
    label_sets = sets_of([(0, 1, 2, 3)])
    value = OBJECTIVES["set-probability"](decoder, encoding, label_sets, n_orders)
    found = torch.autograd.grad(value.sum(), parameters, retain_graph=True)

    (orders,) = orders_of("set-probability", decoder, encoding, [(0, 1, 2, 3)], n_orders)
    assert len(orders) == n_orders
    log_probs = [decoder.score(encoding, torch.tensor([[order]]))[0, 0] for order in orders]
    posterior = torch.stack(log_probs).detach().softmax(0)
    expected = [torch.zeros_like(each) for each in parameters]
    for share, log_prob in zip(posterior, log_probs, strict=True):
        for total, each in zip(
            expected, torch.autograd.grad(log_prob, parameters, retain_graph=True), strict=True
        ):
            total += share * each
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)
