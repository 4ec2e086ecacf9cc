import pytest
import torch

from brute_force_sequences import TEXTS, batch_of, label_rows, set_log_probs, sets_of, tiny_network
from setrnn.objectives import LabelSets, find_objective
from setrnn.objectives.set_distribution import SET_LOG_PROB

OBJECTIVE = find_objective("set-distribution")
DECODERS = ("rnn", "order-free", "sigmoid")
ALL_ORDERS = 24  # of four labels
# Of the four texts; the last has none.
SETS = [(0, 1, 2, 3), (1, 3), (), (2,), (0, 2), (0,), (1, 2, 3)]
DOCUMENTS = [0, 0, 0, 1, 1, 2, 2]
WEIGHTS = [0.4, 0.3, 0.1, 0.5, 0.5, 0.2, 0.1]


def targets(order=None, weights=WEIGHTS):
    places = list(range(len(SETS))) if order is None else order
    plain = sets_of([SETS[place] for place in places])
    return LabelSets(
        plain.labels,
        plain.sizes,
        torch.tensor([DOCUMENTS[place] for place in places]),
        torch.tensor([weights[place] for place in places]),
    )


def every_set_log_prob(network, encoding):
    """{set: log p of each document}, one set per document at a time."""
    if network.decoder.emits != "labels":
        return set_log_probs(network.decoder, encoding)
    score = SET_LOG_PROB["labels"]
    return {
        frozenset(labels): score(network.decoder, encoding, sets_of([labels] * len(TEXTS)), 1)
        for labels in SETS
    }


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_value_is_minus_the_cross_entropy_with_the_rest(decoder):
    network = tiny_network(decoder)
    encoding = network.encode(batch_of())
    truth = every_set_log_prob(network, encoding)
    values = OBJECTIVE(network.decoder, encoding, targets(), ALL_ORDERS)
    for document in range(len(TEXTS)):
        rows = [n for n, each in enumerate(DOCUMENTS) if each == document]
        log_probs = torch.tensor([truth[frozenset(SETS[n])][document].item() for n in rows])
        weights = torch.tensor([WEIGHTS[n] for n in rows])
        rest = (1 - weights.sum()) * torch.log(1 - log_probs.exp().sum())
        expected = (weights * log_probs).sum() + rest
        torch.testing.assert_close(values[document], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_student_that_agrees_with_its_teacher_has_nothing_to_learn(decoder):
    network = tiny_network(decoder)
    score = SET_LOG_PROB[network.decoder.emits]
    with torch.no_grad():
        own = score(network.decoder, network.encode(batch_of()), targets(), ALL_ORDERS).exp()
    for weights, learns in ((own.tolist(), False), (WEIGHTS, True)):
        network.zero_grad()
        encoding = network.encode(batch_of())
        OBJECTIVE(network.decoder, encoding, targets(weights=weights), ALL_ORDERS).sum().backward()
        largest = max(
            each.grad.abs().max() for each in network.parameters() if each.grad is not None
        )
        assert (largest > 1e-2) == learns


def test_a_certain_student_gets_finite_gradients():
    """All weight is on other sets, to which the student gives a probability of almost 0."""
    network = tiny_network("sigmoid")
    with torch.no_grad():
        network.decoder.output.bias.copy_(torch.tensor([60.0, -60.0, -60.0, -60.0]))
    rows = label_rows([(0,)])
    certain = LabelSets(rows, torch.tensor([1]), torch.tensor([0]), torch.tensor([0.0]))
    OBJECTIVE(network.decoder, network.encode(batch_of()), certain, 1).sum().backward()
    assert all(each.grad.isfinite().all() for each in network.parameters())
