"""Every objective keeps the contract, and the bounds that hold between them."""

from collections import Counter
from itertools import permutations
from math import factorial, log

import pytest
import torch
from scipy.stats import chisquare

from brute_force_sequences import (
    TEXTS,
    TableDecoder,
    UniformOrderDecoder,
    as_tuple,
    batch_of,
    documents,
    label_rows,
    random_set_probs,
    sequence_log_probs,
    set_log_probs,
    tiny_network,
)
from setrnn.errors import ConfigError
from setrnn.model.decoders import DECODERS
from setrnn.objectives import OBJECTIVES, find_objective
from setrnn.objectives.all_orders import all_orders, has_few_orders

EVERY_DECODER = pytest.mark.parametrize("decoder", DECODERS)
EVERY_OBJECTIVE = pytest.mark.parametrize("objective", OBJECTIVES)
# Those that are the same for every seed, given enough orders for sets of 3.
STEADY_OBJECTIVE = pytest.mark.parametrize("objective", sorted({*OBJECTIVES} - {"sampled-order"}))
LABEL_SETS = [(0, 1, 2, 3), (1, 3), (2,), ()]  # one for each text


def encoded(decoder="rnn", texts=TEXTS, **settings):
    network = tiny_network(decoder, **settings)
    return network.decoder, network.encode(batch_of(texts))


def orders_of(objective, decoder, encoding, label_sets, n_orders):
    """The orders that count, for each document."""
    orders, counts = OBJECTIVES[objective].choose_orders(
        decoder, encoding, label_rows(label_sets), n_orders
    )
    assert orders.shape[:2] == counts.shape
    return [
        [as_tuple(order) for order, is_counted in zip(*each, strict=True) if is_counted]
        for each in zip(orders, counts, strict=True)
    ]


# The contract.


@EVERY_OBJECTIVE
@EVERY_DECODER
@pytest.mark.parametrize("n_orders", [1, 5, 12, 30])
def test_the_orders_are_orders_of_the_set_and_at_most_as_many_as_asked(
    objective, decoder, n_orders
):
    chosen = orders_of(objective, *encoded(decoder), LABEL_SETS, n_orders)
    for labels, orders in zip(LABEL_SETS, chosen, strict=True):
        assert 1 <= len(orders) <= n_orders
        assert all(sorted(order) == list(labels) for order in orders)


@EVERY_OBJECTIVE
@EVERY_DECODER
@pytest.mark.parametrize("n_orders", [1, 5, 30])
def test_no_objective_exceeds_the_probability_of_the_set(objective, decoder, n_orders):
    decoder, encoding = encoded(decoder)
    truth = set_log_probs(decoder, encoding)
    values = OBJECTIVES[objective](decoder, encoding, label_rows(LABEL_SETS), n_orders)
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
    values = OBJECTIVES[objective](decoder, encoding, label_rows(label_sets), n_orders)
    torch.testing.assert_close(values, expected, atol=1e-4, rtol=1e-4)
    beside_larger = label_rows(label_sets, width=4)
    values = OBJECTIVES[objective](decoder, encoding, beside_larger, n_orders)
    torch.testing.assert_close(values, expected, atol=1e-4, rtol=1e-4)


@EVERY_OBJECTIVE
@EVERY_DECODER
def test_every_parameter_learns(objective, decoder):
    network = tiny_network(decoder)
    encoding = network.encode(batch_of())
    OBJECTIVES[objective](network.decoder, encoding, label_rows(LABEL_SETS), 5).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


@STEADY_OBJECTIVE
@EVERY_DECODER
@pytest.mark.parametrize("n_orders", [6, 12])
def test_what_else_is_in_the_batch_changes_nothing(objective, decoder, n_orders):
    network = tiny_network(decoder)
    label_sets = [(0, 2, 3), (1, 3), (2,), ()]
    objective = OBJECTIVES[objective]
    encoding = network.encode(batch_of())
    together = objective(network.decoder, encoding, label_rows(label_sets), n_orders)
    for document, (text, labels) in enumerate(zip(TEXTS, label_sets, strict=True)):
        encoding = network.encode(batch_of([text]))
        alone = objective(network.decoder, encoding, label_rows([labels]), n_orders)
        torch.testing.assert_close(together[document], alone[0], atol=1e-4, rtol=1e-4)


@EVERY_OBJECTIVE
@EVERY_DECODER
def test_dropout_does_not_touch_the_choice_of_orders(objective, decoder, monkeypatch):
    """In training, the orders are those chosen without dropout; their scores have it."""
    decoder, encoding = encoded(decoder, dropout=0.5)
    label_sets = label_rows([(0, 1, 2, 3)] * len(TEXTS))
    scored = []
    score = decoder.score

    def noted_score(encoding, orders):
        scored.append((orders, decoder.training))
        return score(encoding, orders)

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
    OBJECTIVES[objective](decoder, encoding, label_rows(LABEL_SETS), 12)
    assert len(calls) == 1


@EVERY_OBJECTIVE
def test_a_seed_repeats(objective):
    decoder, encoding = encoded()
    values = []
    for _ in range(2):
        torch.manual_seed(3)
        values.append(OBJECTIVES[objective](decoder, encoding, label_rows(LABEL_SETS), 5))
    assert torch.equal(*values)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@STEADY_OBJECTIVE
@EVERY_DECODER
def test_the_device_changes_nothing(objective, decoder):
    network, batch = tiny_network(decoder), batch_of()
    label_sets, objective = label_rows([(0, 2, 3), (1, 3), (2,), ()]), OBJECTIVES[objective]
    on_cpu = objective(network.decoder, network.encode(batch), label_sets, 12)
    network.cuda()
    encoding = network.encode(batch.to(torch.device("cuda")))
    on_gpu = objective(network.decoder, encoding, label_sets.cuda(), 12)
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, atol=2e-2, rtol=2e-2)  # TF32


def test_an_unknown_objective_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="Did you mean 'best-order'"):
        find_objective("best-orders")


# What each of them is.


@EVERY_DECODER
def test_fixed_order_scores_the_labels_by_falling_frequency(decoder):
    decoder, encoding = encoded(decoder)
    truth = sequence_log_probs(decoder, encoding)
    values = OBJECTIVES["fixed-order"](decoder, encoding, label_rows(LABEL_SETS), 12)
    for document, labels in enumerate(LABEL_SETS):
        torch.testing.assert_close(values[document], truth[labels][document])


@EVERY_DECODER
def test_random_order_with_room_for_all_is_the_mean_over_all_orders(decoder):
    decoder, encoding = encoded(decoder)
    truth = sequence_log_probs(decoder, encoding)
    values = OBJECTIVES["random-order"](decoder, encoding, label_rows(LABEL_SETS), 24)
    for document, labels in enumerate(LABEL_SETS):
        mean = torch.stack([truth[order][document] for order in permutations(labels)]).mean()
        torch.testing.assert_close(values[document], mean, atol=1e-4, rtol=1e-4)


def test_random_orders_are_uniform():
    torch.manual_seed(0)
    labels, n_orders = (0, 1, 3), 600
    label_sets = [labels, (0, 1, 2, 3, 4, 5)]  # the larger set has more orders than are asked for
    decoder = TableDecoder(6, n_documents=2)
    drawn = Counter(orders_of("random-order", decoder, documents(2), label_sets, n_orders)[0])
    found = [drawn[order] for order in permutations(labels)]
    assert sum(found) == n_orders
    assert chisquare(found).pvalue > 0.001


@EVERY_DECODER
def test_best_order_with_a_full_beam_scores_the_best(decoder):
    decoder, encoding = encoded(decoder)
    truth = sequence_log_probs(decoder, encoding)
    values = OBJECTIVES["best-order"](decoder, encoding, label_rows(LABEL_SETS), 24)
    for document, labels in enumerate(LABEL_SETS):
        best = max(float(truth[order][document]) for order in permutations(labels))
        assert values[document].item() == pytest.approx(best, abs=1e-4)


@EVERY_DECODER
@pytest.mark.parametrize("width", [4, 5], ids=["table of orders", "search"])
def test_set_probability_with_room_for_all_orders_is_exact(decoder, width):
    decoder, encoding = encoded(decoder)
    truth = set_log_probs(decoder, encoding)
    label_sets = label_rows(LABEL_SETS, width=width)
    assert has_few_orders(width, 30) == (width == 4)
    values = OBJECTIVES["set-probability"](decoder, encoding, label_sets, 30)
    for document, labels in enumerate(LABEL_SETS):
        expected = truth[frozenset(labels)][document]
        torch.testing.assert_close(values[document], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("n_orders", [1, 3, 12, 23, 24, 40])
def test_set_probability_counts_no_order_twice(n_orders):
    for orders in orders_of("set-probability", *encoded(), LABEL_SETS, n_orders):
        assert len(set(orders)) == len(orders)


def test_sampled_order_prefers_likely_orders():
    """Drawn orders are better than random ones, and no better than the best."""
    torch.manual_seed(0)
    decoder, encoding = TableDecoder(4, n_documents=30), documents(30)
    label_sets = label_rows([range(4)] * 30)
    value = {
        name: float(OBJECTIVES[name](decoder, encoding, label_sets, 24).mean())
        for name in OBJECTIVES
    }
    assert value["random-order"] < value["sampled-order"] < value["best-order"]
    assert value["best-order"] < value["set-probability"]


# The bounds between them.


@EVERY_DECODER
@pytest.mark.parametrize("seed", range(3))
def test_random_order_is_below_set_probability_minus_log_n_factorial(decoder, seed):
    """Jensen: the log of a mean is above the mean of logs."""
    decoder, encoding = encoded(decoder, seed=seed)
    for labels in [(0, 1), (1, 2, 3), (0, 1, 2, 3)]:
        label_sets = label_rows([labels] * len(TEXTS))
        random = OBJECTIVES["random-order"](decoder, encoding, label_sets, 24)
        whole = OBJECTIVES["set-probability"](decoder, encoding, label_sets, 24)
        assert (random < whole - log(factorial(len(labels)))).all()


@pytest.mark.parametrize("labels", [(), (2,), (0, 1), (1, 2, 3), (0, 1, 2, 3)], ids=len)
def test_random_order_equals_that_bound_when_all_orders_are_as_likely(labels):
    truth = random_set_probs(4)
    decoder = UniformOrderDecoder(truth)
    for n_orders in (1, 5, 24):
        value = OBJECTIVES["random-order"](decoder, documents(), label_rows([labels]), n_orders)
        expected = log(truth[frozenset(labels)]) - log(factorial(len(labels)))
        assert float(value) == pytest.approx(expected, abs=1e-4)


@EVERY_DECODER
@pytest.mark.parametrize("n_orders", [24, 5], ids=["all orders", "those found"])
def test_the_gradient_of_set_probability_is_the_posterior_mean_of_the_orders(decoder, n_orders):
    network = tiny_network(decoder)
    parameters = list(network.parameters())
    decoder, encoding = network.decoder, network.encode(batch_of(TEXTS[:1]))
    label_sets = label_rows([(0, 1, 2, 3)])
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


# The table of all orders.


@pytest.mark.parametrize(
    ("set_size", "n_orders", "expected"),
    [(0, 1, True), (1, 1, True), (3, 5, False), (3, 6, True), (4, 23, False), (500, 12, False)],
)
def test_sets_have_few_orders_if_all_fit(set_size, n_orders, expected):
    assert has_few_orders(set_size, n_orders) == expected


def test_the_table_holds_every_order_of_every_set_once():
    label_sets = [(5, 7, 9, 11), (3, 8), (4,), ()]
    orders, counts = all_orders(label_rows(label_sets))
    for labels, rows, is_counted in zip(label_sets, orders, counts, strict=True):
        found = [as_tuple(row) for row in rows[is_counted]]
        assert sorted(found) == sorted(permutations(labels))
