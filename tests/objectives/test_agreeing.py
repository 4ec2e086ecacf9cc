"""Documents with unknown labels, against brute force over all sets of four labels."""

import pytest
import torch

from brute_force import all_sets
from brute_force_sequences import TEXTS, batch_of, sets_of, tiny_network
from setrnn.objectives import find_objective
from setrnn.objectives.agreeing import sum_agreeing

L, WIDE, ROWS = 4, 700, range(len(TEXTS))
FORGOTTEN = 0.3
# Of the four texts: nothing is known of the last, everything of the second.
GIVEN = [(1,), (0, 2), (3,), ()]
# Documents that only say what is present forget labels; the others name what is unknown.
UNKNOWN = {0: (0, 3), 2: (0, 1, 2), 3: (0, 1, 2, 3)}
ONLY_GIVEN = 2
OBJECTIVES = [
    ("rnn", "set-probability"),
    ("rnn", "fixed-order"),
    ("order-free", "exact-set-probability"),
    ("order-free", "set-probability"),
    ("sigmoid", "independent-labels"),
]
EVERY_OBJECTIVE = pytest.mark.parametrize(("decoder", "objective"), OBJECTIVES)


def log_weights(unknown=UNKNOWN):
    weights = torch.full((len(TEXTS), L), -torch.inf)
    for document, labels in enumerate(GIVEN):
        weights[document, list(labels)] = 0
        share = FORGOTTEN if document == ONLY_GIVEN else 1.0
        weights[document, list(unknown.get(document, ()))] = torch.tensor(share).log()
    return weights


def each_value(name, network, unknown=UNKNOWN, rows=ROWS, width=WIDE):
    """The values of single documents: together, those without known labels have none."""
    found = {}
    for row in rows:
        part = network.encode(batch_of([TEXTS[row]]))
        weights = log_weights(unknown)[row : row + 1]
        sets = sets_of([GIVEN[row]])
        value = sum_agreeing(find_objective(name), network.decoder, part, sets, weights, width)
        found[row] = value.sum()
    return found


def expected_values(name, network):
    """The log of the weighted sum over all sets that agree, by the objective's own log p."""
    encoding = network.encode(batch_of())
    objective, weights = find_objective(name), log_weights()
    of_sets = {
        labels: objective(network.decoder, encoding, sets_of([labels] * len(TEXTS)), WIDE)
        for labels in all_sets(L)
    }
    found = {}
    for row in range(len(TEXTS)):
        terms = [
            of_sets[labels][row] + weights[row, list(labels)].sum()
            for labels in all_sets(L)
            if set(labels) >= set(GIVEN[row])
        ]
        found[row] = torch.stack(terms).logsumexp(0)
    return found


@EVERY_OBJECTIVE
@pytest.mark.parametrize("seed", range(2))
def test_a_wide_search_sums_over_all_sets_that_agree(decoder, objective, seed):
    network = tiny_network(decoder, seed=seed)
    found, expected = each_value(objective, network), expected_values(objective, network)
    for row in range(len(TEXTS) - 1):
        torch.testing.assert_close(found[row], expected[row], atol=2e-4, rtol=1e-4)


@EVERY_OBJECTIVE
def test_a_document_without_known_labels_changes_no_weight(decoder, objective):
    network = tiny_network(decoder)
    each_value(objective, network, rows=[3])[3].backward()
    gradients = [each.grad for each in network.parameters() if each.grad is not None]
    assert not any(each.any() for each in gradients)


@EVERY_OBJECTIVE
def test_a_narrow_search_is_a_lower_bound_with_a_gradient(decoder, objective):
    network = tiny_network(decoder)
    wide, narrow = each_value(objective, network), each_value(objective, network, width=2)
    for row in range(3):
        assert narrow[row] <= wide[row] + 1e-4
    narrow[0].backward()
    assert any(each.grad.any() for each in network.parameters() if each.grad is not None)


@EVERY_OBJECTIVE
def test_a_complete_document_among_others_has_its_own_value(decoder, objective):
    network = tiny_network(decoder)
    encoding = network.encode(batch_of())
    method = find_objective(objective)
    plain = method(network.decoder, encoding, sets_of(GIVEN), WIDE)
    found = each_value(objective, network, unknown={})
    for row in range(len(TEXTS)):
        torch.testing.assert_close(found[row], plain[row])
    together = sum_agreeing(method, network.decoder, encoding, sets_of(GIVEN), log_weights(), WIDE)
    alone = each_value(objective, network)
    torch.testing.assert_close(together.sum(), sum(alone.values()), atol=1e-3, rtol=1e-4)


def test_the_gradient_is_that_of_the_sum_over_all_sets():
    network = tiny_network("order-free")
    truth = expected_values("exact-set-probability", network)[0]
    weight = network.decoder.parameters().__next__()
    (expected,) = torch.autograd.grad(truth, weight, retain_graph=True)
    found = each_value("exact-set-probability", network, rows=[0])[0]
    (gradient,) = torch.autograd.grad(found, weight)
    torch.testing.assert_close(gradient, expected, atol=2e-4, rtol=1e-3)
