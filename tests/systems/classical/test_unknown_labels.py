"""Regressions on documents for which a label is known; the others are left out."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from setrnn.config import ClassicalSettings
from setrnn.data.labels import Incomplete
from setrnn.data.ragged import Ragged
from setrnn.errors import DataError
from setrnn.systems.classical.br import SupportInference
from setrnn.systems.classical.logistic import Problem, to_torch
from setrnn.systems.classical.pcc import ClassifierChain
from setrnn.systems.classical.system import TrainingData, fit_linear

N, D, L = 60, 8, 3
USUAL = ClassicalSettings()
EXACT = ClassicalSettings(max_steps=300, tolerance=1e-9)


def made_data(unknown=None, forgotten=1.0, settings=USUAL):
    random = np.random.default_rng(0)
    features = sp.csr_matrix(
        random.random((N, D)) * (random.random((N, D)) < 0.5), dtype=np.float32
    )
    labels = [[label for label in range(L) if random.random() < 0.4] for _ in range(N)]
    data = TrainingData(features, Ragged.from_lists(labels), L, settings)
    return data if unknown is None else hide(data, unknown, forgotten)


def hide(data, unknown, forgotten=1.0):
    """Take the labels that are unknown out of those that are given."""
    labels = [
        [label for label in row if label not in hidden]
        for row, hidden in zip(data.label_sets, unknown, strict=True)
    ]
    given = Ragged.from_lists(labels)
    incomplete = Incomplete(Ragged.from_lists(unknown), given, L, forgotten)
    return replace(data, label_sets=given, incomplete=incomplete)


def weights(linear, label):
    dense = sp.csr_matrix(linear.weights).toarray()
    return np.append(dense[:, label], linear.intercepts[label])


def test_a_label_is_fitted_on_the_documents_where_it_is_known():
    unknown = [[1] if row % 3 == 0 else [] for row in range(N)]
    found = fit_linear(made_data(unknown, settings=EXACT))
    everything = made_data(settings=EXACT)
    rows = np.array([row for row in range(N) if row % 3])
    expected, whole = fit_linear(everything.take(rows)), fit_linear(everything)
    np.testing.assert_allclose(weights(found, 1), weights(expected, 1), atol=2e-2)
    np.testing.assert_allclose(weights(found, 0), weights(whole, 0), atol=2e-3)


@pytest.mark.parametrize("forgotten", [0.3, 1.0])
def test_the_loss_of_an_unknown_label_is_that_of_the_sum_over_both_answers(forgotten):
    data = made_data([[0, 2] if row % 2 else [] for row in range(N)], forgotten)
    open_weights = torch.from_numpy(data.incomplete.open_weights(slice(0, L)))
    if forgotten < 1:
        open_weights = open_weights + torch.tensor(forgotten).log()
    ones = sp.csr_matrix(np.ones((N, 1), dtype=np.float32))
    features = sp.hstack([data.features, ones], "csr")
    targets = torch.zeros(N, L)
    targets[data.label_sets.row_numbers, data.label_sets.values.astype(np.int64)] = 1
    problem = Problem(
        to_torch(features), to_torch(features.T.tocsr()), targets,
        ClassicalSettings(l1=0.0, l2=0.0), None,
        open_weights=open_weights,
    )  # fmt: skip
    at = torch.randn(D + 1, L, generator=torch.Generator().manual_seed(1)).requires_grad_()
    p = torch.sigmoid(torch.tensor(features.toarray()) @ at)
    known = torch.where(targets > 0, p, 1 - p).log()
    expected = -torch.where(open_weights > -torch.inf, (1 - p + forgotten * p).log(), known).sum(0)
    point = problem.evaluate(at.detach())
    torch.testing.assert_close(point.value.float(), expected.detach(), rtol=1e-4, atol=1e-4)
    expected.sum().backward()
    torch.testing.assert_close(problem.gradient(point), at.grad, rtol=1e-3, atol=1e-4)


def test_br_support_predicts_sets_of_complete_documents():
    unknown = [[0] if row % 2 else [] for row in range(N)]
    data = made_data(unknown)
    found = SupportInference.fit(None, data)
    complete = {tuple(data.label_sets[row]) for row in range(0, N, 2)}
    assert {tuple(row) for row in found.support} == complete
    with pytest.raises(DataError, match="br instead"):
        SupportInference.fit(None, made_data([[0]] * N))


def test_a_chain_reads_what_br_expects_of_an_unknown_label():
    data = made_data()
    # Label 1 repeats label 0; label 0 is unknown in half of the documents.
    labels = [sorted({0, 1} & set(row) | ({1} if 0 in row else set())) for row in data.label_sets]
    data = replace(data, label_sets=Ragged.from_lists([[x for x in r if x != 1] + [1] * (0 in r)
                                                       for r in labels]))  # fmt: skip
    hidden = hide(data, [[0] if row % 2 else [] for row in range(N)])
    whole, found = (ClassifierChain.fit(None, each) for each in (data, hidden))
    assert whole.chain[0, 1] > 1
    assert found.chain[0, 1] > 1
