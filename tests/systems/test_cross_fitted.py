import numpy as np
import pytest

from setrnn.config import Config
from setrnn.data.example import NOTHING
from setrnn.data.ragged import Ragged
from setrnn.methods import METHODS
from setrnn.systems.cross_fitted import CrossFitted, choose_folds, mark_folds
from setrnn.systems.registry import find_system


def test_copies_of_a_text_share_a_fold_and_empty_texts_do_not():
    random = np.random.default_rng(0)
    hashes = np.append(random.integers(1, 30, 100), np.full(50, NOTHING)).astype(np.uint64)
    folds = choose_folds(hashes, 5, seed=1)
    assert all(len(set(folds[hashes == each].tolist())) == 1 for each in np.unique(hashes[:100]))
    assert set(folds[hashes == NOTHING].tolist()) == set(range(5))
    assert (folds == choose_folds(hashes, 5, seed=1)).all()


@pytest.mark.parametrize("method", ["br", "br-support", "pcc"])
def test_each_document_is_predicted_by_the_system_that_did_not_see_it(small_prepared, method):
    train, n_labels = small_prepared.split("train"), len(small_prepared.labels)
    folds = choose_folds(np.asarray(train.text_hashes), 3, seed=0)
    kind = find_system(METHODS[method])
    by_fold = [
        kind.train(small_prepared, Config(), rows=np.flatnonzero(folds != fold))
        for fold in range(3)
    ]
    system = CrossFitted(by_fold[0], by_fold)
    rows = np.random.default_rng(0).permutation(len(train))[:40]
    tokens = mark_folds(train.tokens.take(rows), folds[rows])
    found = system.candidates(tokens, 16)
    marginals, missing = found.marginals(n_labels), found.missing_mass()
    table, log_probs = found.label_size_probs(n_labels), found.log_probs_of(found.labels)
    for place, row in enumerate(rows):
        one: Ragged = train.tokens.take(np.array([row]))
        own = by_fold[folds[row]]
        alone = own.candidates(one, 16)
        same = found.take(np.array([place]))
        assert same.set_at(0, 0) == alone.set_at(0, 0)
        n = alone.log_probs.shape[1]
        assert same.log_probs[0, :n] == pytest.approx(alone.log_probs[0], abs=1e-4)
        assert marginals[place] == pytest.approx(alone.marginals(n_labels)[0], abs=1e-4)
        assert missing[place] == pytest.approx(alone.missing_mass()[0], abs=1e-4)
        sizes = alone.label_size_probs(n_labels)
        assert table.probs[place].sum() == pytest.approx(sizes.probs[0].sum(), abs=0.02)
        assert table.empty[place] == pytest.approx(sizes.empty[0], abs=1e-4)
        best = found.labels[place : place + 1, :1]
        asked = system.set_log_probs(mark_folds(one, folds[[row]]), best)[0, 0]
        assert asked == pytest.approx(own.set_log_probs(one, best)[0, 0])
        assert log_probs[place, 0] == pytest.approx(asked, abs=1e-4)
