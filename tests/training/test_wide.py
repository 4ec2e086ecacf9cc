"""The linear model that a network starts from is cross-fitted: no document knows its own labels."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from tiny_runs import tiny_config

from setrnn.data.batches import TrainingDocuments, make_batch
from setrnn.data.ragged import Ragged
from setrnn.methods import find_method
from setrnn.model.network import make_network
from setrnn.systems.classical.br import BinaryRelevance
from setrnn.systems.classical.system import TrainingData
from setrnn.tagging.learn.planning import measure_speed
from setrnn.training.start import (
    TrainOptions,
    add_wide,
    choose_folds,
    cross_fit,
    identify_run,
    weigh_tokens,
)

WIDE = "model.wide=on"
ONE = np.zeros(1, dtype=np.int64)  # the first row


def test_the_labels_of_a_fold_do_not_change_its_log_odds(tiny):
    config = tiny_config(WIDE)
    _, data = TrainingData.of(tiny, config)
    folds = choose_folds(len(data.label_sets), seed=0)
    before = cross_fit(data, folds)
    is_own = folds == 2
    other_labels = [
        np.setdiff1d(np.arange(data.n_labels, dtype=np.int32), row) if own else row
        for own, row in zip(is_own, data.label_sets, strict=True)
    ]
    changed = replace(data, label_sets=Ragged.from_lists([row.tolist() for row in other_labels]))
    after = cross_fit(changed, folds)
    np.testing.assert_array_equal(after[is_own], before[is_own])
    assert (after[~is_own] != before[~is_own]).any(axis=1).all()


def test_an_untrained_sigmoid_is_br(tiny):
    """For new documents; those of the train part have the log-odds of other fits."""
    config = tiny_config(WIDE)
    network = make_network(tiny, config, "sigmoid")
    part = tiny.split("train")
    documents = add_wide(network, tiny, TrainingDocuments(part.tokens, part.labels), config)
    rows = np.arange(len(part))
    br = BinaryRelevance.train(tiny, config)
    expected = br.linear.logits(br.tfidf.transform(part.tokens))
    with torch.inference_mode():
        own = documents.batch(rows)
        found = network.decoder.logits(network.eval().encode(own))
        of_new = network.decoder.logits(network.encode(replace(own, log_odds=None)))
    np.testing.assert_allclose(of_new, expected, atol=1e-5)
    np.testing.assert_allclose(found, documents.log_odds, atol=1e-5)
    assert not np.allclose(found, expected, atol=0.1)


def test_texts_that_are_not_of_the_train_part_have_the_log_odds_of_the_whole_fit(tiny):
    config = tiny_config(WIDE)
    part = tiny.split("train")
    plain = TrainingDocuments(part.tokens, part.labels)
    expected = add_wide(make_network(tiny, config), tiny, plain, config).log_odds
    rows = np.arange(len(part))
    rows[::2] = -1
    mixed = replace(plain, train_rows=rows)
    found = add_wide(make_network(tiny, config), tiny, mixed, config).log_odds
    np.testing.assert_array_equal(found[1::2], expected[1::2])
    br = BinaryRelevance.train(tiny, config)
    whole = br.linear.logits(br.tfidf.transform(part.tokens))
    np.testing.assert_allclose(found[::2], whole[::2], atol=1e-5)


@pytest.mark.parametrize("method", ["set-rnn", "sgm", "set-rnn-exact", "sigmoid"])
def test_every_decoder_learns_its_scale_and_leaves_br_as_it_is(train, tiny, method):
    wide = train(WIDE, "training.epochs=1", method=method).system.network.wide
    assert wide.scale.item() != 1
    br = BinaryRelevance.train(tiny, tiny_config(WIDE))
    np.testing.assert_array_equal(wide.weights, sp.csr_matrix(br.linear.weights).data)


def test_the_settings_of_br_are_part_of_a_wide_run_alone(tiny):
    found = [
        identify_run(tiny, tiny_config(wide, f"classical.l1={l1}"), "sigmoid", {})
        for wide in (WIDE, "model.wide=off")
        for l1 in (0.1, 0.5)
    ]
    assert found[0] != found[1]
    assert found[2] == found[3]


def test_the_words_add_up_to_the_evidence(train, tiny):
    wide = train(WIDE, method="sigmoid").system.network.wide
    tokens = tiny.split("valid").tokens.take(ONE)
    batch = make_batch(tokens, None, ONE)
    with torch.inference_mode():
        expected = wide(batch)[0, :-1] - wide.scale * wide.intercepts
    found = weigh_tokens(wide, tokens)
    assert len(found) == len(tokens[0])
    np.testing.assert_allclose(found.sum(axis=0), expected, atol=1e-5)


def test_measuring_the_speed_fits_no_br(tiny, monkeypatch):
    monkeypatch.setattr("setrnn.training.start.add_wide", lambda *_: pytest.fail("it was fitted"))
    options = TrainOptions("cpu")
    found = measure_speed(find_method("sigmoid"), tiny, tiny_config(WIDE), options, 0.01)
    assert found.training > 0
