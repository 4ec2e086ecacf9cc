"""The objectives of later papers, against enumeration and by hand."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from brute_force_sequences import (
    EVERY_DECODER,
    TEXTS,
    TableDecoder,
    UniformOrderDecoder,
    all_sets,
    as_tuple,
    batch_of,
    documents,
    encoded,
    sequence_log_probs,
    sets_of,
    tiny_network,
)
from setrnn.metrics import document_f1, indicator_matrix
from setrnn.objectives import OBJECTIVES, optimal_completion, own_sequences, set_reward
from setrnn.objectives.own_sequences import MOST_STEPS, draw, emit, take_best
from setrnn.objectives.set_reward import REWARD_WEIGHT, draw_sequences, f1

# Those that train on sequences of the model's own.
OWN = pytest.mark.parametrize("objective", ["optimal-completion", "set-reward"])
LABEL_SETS = [(0, 1, 2, 3), (1, 3), (2,), ()]
STOP = 3  # of three labels


class WithRepeats(TableDecoder):
    """Labels that were emitted have a probability, though they are not emitted again."""

    def _log_probs(self, encoding, sequences):
        is_used = super()._log_probs(encoding, sequences) == -torch.inf
        logits = self._logits(encoding.summary, sequences, is_used)
        return logits.log_softmax(-1).masked_fill(is_used, -torch.inf)


def three_labels(n_documents, kind=TableDecoder):
    """A decoder with the same random probabilities for all documents, and its parameters."""
    decoder = kind(3)
    table = decoder.table.requires_grad_()
    decoder.table = table.expand(n_documents, -1, -1)
    return decoder, table


def say(sequences):
    """Emit given sequences (B, S) of labels, and of STOP after them."""

    def emit_given(decoder, encoding, label_sets, beam_width):
        outputs = torch.tensor(sequences, device=label_sets.device)
        return outputs.where(outputs < decoder.n_labels, -1)

    return emit_given


def drawn_sequences(most):
    """All that may be drawn from three labels in at most so many steps, STOP included.

    Those without STOP are cut.
    """
    orders = [order for n in range(4) for order in permutations(range(3), n)]
    return [(*order, STOP) for order in orders if len(order) < most] + [
        order for order in orders if len(order) == most
    ]


def pad(sequences, stop=STOP):
    width = max(map(len, sequences))
    return [(*each, *[stop] * (width - len(each))) for each in sequences]


def log_prob_of(decoder, sequence):
    """log p of drawing outputs, one after the other."""
    return sum(
        decoder.next_log_probs(0, sequence[:place]).log_softmax(0)[output]
        for place, output in enumerate(sequence)
    )


# Optimal completion.


@pytest.mark.parametrize(
    ("labels", "emitted", "optimal"),
    [
        ((0, 1, 3), (1, 2, 0, 3, 4), [(0, 1, 3), (0, 3), (0, 3), (3,), (4,)]),
        ((0, 1, 3), (3, 4), [(0, 1, 3), (0, 1)]),  # it stopped too early
        ((2,), (2, 1, 0, 3), [(2,), (4,), (4,), (4,)]),  # it is cut after 2 x (1 + 1) steps
        ((), (0, 4), [(4,), (4,)]),
    ],
    ids=["one wrong label", "early", "late", "empty"],
)
def test_the_target_is_uniform_over_the_true_labels_left_and_then_stop(
    labels, emitted, optimal, monkeypatch
):
    decoder = TableDecoder(4)
    monkeypatch.setattr(optimal_completion, "draw", say([[*emitted, 4, 4, 4]]))
    value = OBJECTIVES["optimal-completion"](decoder, documents(), sets_of([labels], width=4), 1)
    expected = 0.0
    for step, targets in enumerate(optimal):
        p = decoder.next_log_probs(0, emitted[:step]).exp()
        # KL from q, which is 1 / n on each of n targets, to p.
        expected -= sum((1 / len(targets)) * torch.log(1 / len(targets) / p[t]) for t in targets)
    torch.testing.assert_close(value[0], expected)


@pytest.mark.parametrize("labels", [(), (1,), (0, 2), (0, 1, 2)], ids=len)
def test_a_model_that_is_the_optimal_policy_has_nothing_to_learn(labels):
    """All probability on the true set, and its orders share it equally."""
    only = {each: float(each == frozenset(labels)) for each in all_sets(3)}
    value = OBJECTIVES["optimal-completion"](
        UniformOrderDecoder(only), documents(), sets_of([labels], width=3), 1
    )
    assert float(value) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("labels", [(0, 2), (1,), ()], ids=len)
def test_sequences_are_drawn_from_the_model_and_cut(labels):
    torch.manual_seed(0)
    n = 4000
    decoder, _ = three_labels(n)
    drawn = emit(draw, decoder, documents(n), sets_of([labels] * n, width=3))
    assert drawn.lengths.tolist() == [len(as_tuple(row)) for row in drawn.labels]
    assert (drawn.lengths <= drawn.n_steps).all(), "none is longer than where it is cut"
    found = Counter(
        (*as_tuple(row), STOP)[:n_steps]
        for row, n_steps in zip(drawn.labels, drawn.n_steps, strict=True)
    )
    possible = drawn_sequences(MOST_STEPS * (len(labels) + 1))
    probs = np.array([log_prob_of(decoder, each).exp().item() for each in possible])
    assert probs.sum() == pytest.approx(1.0)
    assert found.keys() <= set(possible)
    is_usual = probs * n >= 5  # what the test needs
    counts = np.array([found[each] for each in possible])
    wanted = np.append(probs[is_usual], probs[~is_usual].sum() + 1e-9)
    seen = np.append(counts[is_usual], counts[~is_usual].sum())
    assert chisquare(seen, wanted / wanted.sum() * n).pvalue > 0.001


@EVERY_DECODER
def test_each_sequence_is_cut_by_the_size_of_its_own_set(decoder):
    """Without a STOP, so that every sequence reaches its cut; short ones are dropped on the way."""
    network = tiny_network(decoder, n_labels=12)
    sets = sets_of([(0, 1, 2, 3), (), (2,), (1, 3)])

    def never_stop(decoder, encoding, label_sets, beam_width):
        return own_sequences._emit(decoder, encoding, label_sets, lambda p: p[:, :-1].argmax(1))

    drawn = emit(never_stop, network.decoder, network.encode(batch_of()), sets)
    assert drawn.lengths.tolist() == drawn.n_steps.tolist() == [10, 2, 4, 6]
    assert all(len({*as_tuple(row)}) == len(as_tuple(row)) for row in drawn.labels)


# The set reward.


@pytest.mark.parametrize("kind", [TableDecoder, WithRepeats])
@pytest.mark.parametrize("labels", [(0, 2), (0, 1, 2), (1,), ()], ids=len)
def test_the_mean_gradient_of_the_reward_is_that_of_the_expected_f1(labels, kind, monkeypatch):
    """Over all sequences that may be drawn, by their probabilities."""
    sequences = drawn_sequences(MOST_STEPS * (len(labels) + 1))
    n = len(sequences)
    decoder, table = three_labels(n, kind)
    sets = sets_of([labels] * n, width=3)
    monkeypatch.setattr(set_reward, "draw", say(pad(sequences)))
    advantage, log_prob = draw_sequences(decoder, documents(n), sets)
    p = log_prob.exp()
    assert p.sum().item() == pytest.approx(1.0)
    (found,) = torch.autograd.grad((p.detach() * advantage * log_prob).sum(), table)

    rewards = [
        2 * len({*each} & {*labels}) / (len({*each} - {STOP}) + len(labels))
        if labels or {*each} - {STOP}
        else 1.0
        for each in sequences
    ]
    expected_f1 = sum(
        reward * log_prob_of(decoder, each).exp()
        for reward, each in zip(rewards, sequences, strict=True)
    )
    (expected,) = torch.autograd.grad(expected_f1, table)
    torch.testing.assert_close(found, expected)
    assert expected.abs().max() > 1e-3


def test_the_baseline_is_the_reward_of_the_greedy_sequence(monkeypatch):
    """A draw that is the greedy sequence teaches nothing: what is left is the likelihood."""
    network = tiny_network()
    encoding, sets = network.encode(batch_of()), sets_of(LABEL_SETS)
    monkeypatch.setattr(set_reward, "draw", take_best)
    value = OBJECTIVES["set-reward"](network.decoder, encoding, sets, 1)
    likelihood = OBJECTIVES["fixed-order"](network.decoder, encoding, sets, 1)
    torch.testing.assert_close(value, (1 - REWARD_WEIGHT) * likelihood)


def test_the_reward_is_the_f1_of_the_metrics():
    random = np.random.default_rng(0)
    truth, predicted = random.random((2, 50, 4)) < 0.4
    truth[0] = predicted[0] = False  # both empty
    found = f1(torch.tensor(predicted), torch.tensor(truth))
    rows = [[row.nonzero()[0].tolist() for row in each] for each in (truth, predicted)]
    expected = document_f1(*(indicator_matrix(each, 4) for each in rows))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


# The greedy order.


@EVERY_DECODER
def test_greedy_order_takes_the_most_probable_true_label_that_is_left(decoder):
    decoder, encoding = encoded(decoder)
    truth = sequence_log_probs(decoder, encoding)
    chosen = OBJECTIVES["greedy-order"].choose_orders(decoder, encoding, sets_of(LABEL_SETS), 12)
    values = OBJECTIVES["greedy-order"](decoder, encoding, sets_of(LABEL_SETS), 12)
    assert chosen.n_orders.tolist() == [1] * len(LABEL_SETS)
    for document, labels in enumerate(LABEL_SETS):
        order = ()
        for _ in labels:
            # p(order so far) is the sum over all sequences that begin with it.
            mass = {
                label: sum(
                    float(each[document].exp())
                    for sequence, each in truth.items()
                    if sequence[: len(order) + 1] == (*order, label)
                )
                for label in set(labels) - set(order)
            }
            order = (*order, max(mass, key=mass.get))
        assert as_tuple(chosen.labels[document, 0]) == order
        torch.testing.assert_close(values[document], truth[order][document], atol=1e-4, rtol=1e-4)


# The contract of those that train on sequences of the model's own.


@OWN
@EVERY_DECODER
def test_other_documents_of_a_batch_change_nothing(objective, decoder, monkeypatch):
    """Sequences end at different steps: by STOP, or by the cut that the size of the set gives."""
    network = tiny_network(decoder)
    emitted = pad([(0, 4), (1, 3, 0, 2, 4), (2, 4), (0, 1, 2, 3, 4)], stop=4)
    module = optimal_completion if objective == "optimal-completion" else set_reward

    def value(rows):
        monkeypatch.setattr(module, "draw", say([emitted[row] for row in rows]))
        encoding = network.encode(batch_of([TEXTS[row] for row in rows]))
        sets = sets_of([LABEL_SETS[row] for row in rows])
        return OBJECTIVES[objective](network.decoder, encoding, sets, 1)

    alone = torch.cat([value([row]) for row in range(4)])
    torch.testing.assert_close(value(range(4)), alone, atol=1e-4, rtol=1e-4)


@OWN
def test_the_number_of_steps_depends_on_the_true_sets_not_on_the_number_of_labels(
    objective, monkeypatch
):
    """An untrained model with many labels hardly ever stops by itself."""
    network = tiny_network(n_labels=300)
    step, calls = network.decoder.step, []
    monkeypatch.setattr(
        network.decoder, "step", lambda *arguments: calls.append(1) or step(*arguments)
    )
    sets = sets_of([(5, 200), (7,), (8,), ()])
    values = OBJECTIVES[objective](network.decoder, network.encode(batch_of()), sets, 5)
    assert values.isfinite().all()
    n_sequences = 2 if objective == "set-reward" else 1  # with the greedy one
    assert len(calls) <= n_sequences * MOST_STEPS * (2 + 1)
