"""A network that has grown says the same about what it knew."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from setrnn.data.batches import make_batch
from setrnn.data.cache import Vocabulary, prepare
from setrnn.data.example import Example
from setrnn.methods import METHODS
from setrnn.model.network import LABELS, WORDS, grow_weights, rebuild_network

NEW = [
    Example(f"n{n}", f"zyxwv qponm storm weather {n}", ("storm", "gale storm"), ("brand new",))
    for n in range(9)
]


@pytest.fixture(scope="module")
def grown(small_examples, small_prepared, tmp_path_factory):
    """Data with more words, features and labels than that of the taggers."""
    known = Vocabulary(small_prepared.encoder, small_prepared.labels)
    streams = {"train": partial(iter, [*small_examples["train"], *NEW])}
    folder = tmp_path_factory.mktemp("grown") / "data"
    return prepare(streams, folder, "news", small_prepared.text_settings, {}, known=known)


def test_words_and_labels_keep_their_places(grown, small_prepared):
    before, after = small_prepared.encoder, grown.encoder
    n_words = sum(not token.startswith("[feature]") for token in before.tokens)
    assert after.tokens[:n_words] == before.tokens[:n_words]
    assert {"zyxwv", "qponm", "[feature] brand new"} <= {*after.tokens} - {*before.tokens}
    assert {*before.tokens} <= {*after.tokens}
    names = small_prepared.labels.names
    assert grown.labels.names == (*names, "gale storm")
    text = "The storm at sea: 12 ships are lost."
    (own,), (other,) = before.encode([text]), after.encode([text])
    assert [before.tokens[each] for each in own] == [after.tokens[each] for each in other]


@pytest.mark.parametrize("method", ["set-rnn", "sgm", "set-rnn-exact", "sigmoid"])
def test_logits_of_known_labels_stay(method, taggers, grown, small_prepared, test_texts):
    tagger = taggers[method]
    decoder, config = METHODS[method].decoder, tagger.config
    known = Vocabulary(tagger.encoder, tagger.labels)
    weights = grow_weights(tagger.system.network, decoder, config.model, known, grown).weights
    network = rebuild_network(weights, config, decoder)

    def outputs(network, encoder):
        tokens = encoder.encode(test_texts[:8])
        encoding = network.encode(make_batch(tokens, None, np.arange(8)))
        if method == "sigmoid":
            return network.decoder.logits(encoding)
        none = torch.full((8, 1), network.decoder.n_labels)
        log_probs, _ = network.decoder.step(encoding, network.decoder.start(encoding), none)
        return log_probs[:, 0] - log_probs[:, 0, -1:]  # of STOP

    with torch.inference_mode():
        before = outputs(tagger.system.network, tagger.encoder)
        after = outputs(network, grown.encoder)
    n = len(tagger.labels)
    assert torch.allclose(before[:, :n], after[:, :n], atol=1e-5)
    assert after.shape[1] == before.shape[1] + 1
    assert after.isfinite().all()


def test_larger_sets_than_before_are_possible(taggers, grown):
    tagger = taggers["set-rnn-exact"]
    known = Vocabulary(tagger.encoder, tagger.labels)
    larger = replace(tagger.config.model, max_labels=tagger.config.model.max_labels + 3)
    found = grow_weights(tagger.system.network, "order-free", larger, known, grown)
    network = rebuild_network(found.weights, replace(tagger.config, model=larger), "order-free")
    sizes = network.decoder.sizes.weight
    assert len(sizes) == larger.max_labels + 1
    assert torch.equal(sizes[-1], sizes[-4])
    n = len(tagger.labels)
    assert {name: rows.tolist() for name, rows in found.new_rows.items()}[LABELS] == [n]


def test_a_new_label_is_near_the_words_of_its_name(taggers, grown):
    tagger = taggers["set-rnn"]
    known = Vocabulary(tagger.encoder, tagger.labels)
    weights = grow_weights(tagger.system.network, "rnn", tagger.config.model, known, grown).weights
    words, labels = weights[WORDS], weights[LABELS]
    assert words.shape[0] == grown.encoder.n_tokens
    row = grown.encoder.tokens.index("zyxwv")
    assert words[row].std() > 0
    new = labels[-2] - labels[:-2].mean(0)
    index = {token: row for row, token in enumerate(grown.encoder.tokens)}
    centre = words[3:].mean(0)
    near, far = (words[index[word]] - centre for word in ("storm", "minister"))
    assert torch.cosine_similarity(new, near, 0) > torch.cosine_similarity(new, far, 0)
