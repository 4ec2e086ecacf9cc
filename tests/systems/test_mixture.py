"""Mixtures of systems whose distributions over all sets of four labels are known."""

from dataclasses import dataclass

import numpy as np
import pytest

from brute_force import all_sets, found_sets
from setrnn.data.labels import LabelVocabulary
from setrnn.data.ragged import Ragged
from setrnn.data.text.subwords import join_rows
from setrnn.systems.candidates import SetCandidates, pack_labels
from setrnn.systems.known import Known, make_completions
from setrnn.systems.limits import no_limits
from setrnn.systems.mixture import MixtureSystem, Weights, relabel, unite
from setrnn.systems.predicting import BatchSearch
from setrnn.systems.rules import RULES, count_candidates
from setrnn.systems.rules.marginal_rules import Thresholds
from setrnn.systems.system import System

N_LABELS, N_DOCUMENTS = 4, 30
SETS = all_sets(N_LABELS)
LABELS = LabelVocabulary(tuple("abcd"), (4, 3, 2, 1))
PADDED = Ragged.from_lists(SETS).padded()
TOKENS = Ragged.from_lists([[row] for row in range(N_DOCUMENTS)])
EVERY_SET = np.broadcast_to(PADDED, (N_DOCUMENTS, *PADDED.shape))
WEIGHTS = np.array([0.2, 0.5, 0.3])
THRESHOLDS = Thresholds(0.4, np.full(N_LABELS, 0.3))
SET_RULES = [name for name, rule in RULES.items() if rule.source == "sets"]


@dataclass(frozen=True)
class TableSystem(System):
    """p(set) from a table: documents x all sets. The only token of a document is its row."""

    probs: np.ndarray
    limit: int | None = None
    n_found: int = 100  # a search that misses sets

    @property
    def max_labels(self):
        return self.limit

    def candidates(self, tokens, n_sets, source="sets", known=None):
        log_probs = self._log_probs(tokens)
        labels = np.broadcast_to(PADDED, (len(tokens), *PADDED.shape))
        if known is not None:
            is_in = np.array([[label in each for label in range(N_LABELS)] for each in SETS])
            present, absent = known.is_present(N_LABELS), known.is_absent(N_LABELS)
            fits = (is_in | ~present[:, None]).all(2) & ~(is_in & absent[:, None]).any(2)
            log_probs = np.where(fits, log_probs, -np.inf)
        order = np.argsort(-log_probs, axis=1, kind="stable")[:, : min(n_sets, self.n_found)]
        found = SetCandidates(
            np.take_along_axis(labels, order[:, :, None], axis=1),
            np.take_along_axis(log_probs, order, axis=1),
        )
        return found if known is None else make_completions(found, known)

    def set_log_probs(self, tokens, label_sets):
        rows = [
            SETS.index(tuple(row[row >= 0])) for row in label_sets.reshape(-1, label_sets.shape[-1])
        ]
        places = np.array(rows).reshape(label_sets.shape[:2])
        return np.take_along_axis(self._log_probs(tokens), places, axis=1)

    def marginals(self, tokens, candidates=None):
        return self.candidates(tokens, len(SETS)).marginals(N_LABELS)

    def _log_probs(self, tokens):
        with np.errstate(divide="ignore"):
            return np.log(self.probs[[row[0] for row in tokens]])


def table(seed, **settings):
    random = np.random.default_rng(seed)
    return TableSystem(random.dirichlet(np.full(len(SETS), 0.3), N_DOCUMENTS), **settings)


def mixture(systems, weights=None, by_rule=None):
    weights = np.full(len(systems), 1 / len(systems)) if weights is None else np.array(weights)
    parts = (0,) * len(systems)
    return MixtureSystem(tuple(systems), parts, Weights(weights, by_rule or {}), N_LABELS)


@pytest.fixture
def tables():
    return [table(seed) for seed in range(3)]


def mean_probs(tables):
    return np.tensordot(WEIGHTS, [each.probs for each in tables], 1)


def choose(system, rule, limits=None):
    limits = no_limits(N_LABELS) if limits is None else limits
    search = BatchSearch(system, TOKENS, {"sets": count_candidates(RULES[rule])})
    return search.choose(rule, limits, THRESHOLDS)


def assert_same_choice(one, other):
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.log_probs, other.log_probs, rtol=1e-9)


def test_the_probabilities_of_all_sets_are_the_weighted_mean_and_sum_to_one(tables):
    log_probs = mixture(tables, WEIGHTS).set_log_probs(TOKENS, EVERY_SET)
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(log_probs), mean_probs(tables))


@pytest.mark.parametrize("n_found", [3, 100])
def test_candidates_are_scored_by_every_member_whoever_found_them(n_found):
    tables = [table(seed, n_found=n_found) for seed in range(3)]
    found = mixture(tables, WEIGHTS).candidates(TOKENS, 4)
    wanted = mean_probs(tables)
    for document in range(N_DOCUMENTS):
        for labels, prob in found_sets(found, document).items():
            assert prob == pytest.approx(wanted[document, SETS.index(labels)])
        for each in tables:  # the best of each member is among them
            assert SETS[each.probs[document].argmax()] in found_sets(found, document)


def test_marginals_and_sizes_are_the_means_of_the_members(tables):
    found = mixture(tables, WEIGHTS).candidates(TOKENS, 16)
    wanted = np.tensordot(WEIGHTS, [each.marginals(TOKENS) for each in tables], 1)
    np.testing.assert_allclose(found.marginals(N_LABELS), wanted, rtol=1e-5)
    np.testing.assert_allclose(found.missing_mass(), 0, atol=1e-9)
    sizes = found.label_size_probs(N_LABELS, also=[0, 3])
    probs = mean_probs(tables)
    for document in range(N_DOCUMENTS):
        for place, label in enumerate(sizes.labels[document]):
            for size in range(1, N_LABELS + 1):
                fit = [n for n, each in enumerate(SETS) if label in each and len(each) == size]
                assert sizes.probs[document, place, size - 1] == pytest.approx(
                    probs[document, fit].sum()
                )
    np.testing.assert_allclose(sizes.empty, probs[:, SETS.index(())])


@pytest.mark.parametrize("n_found", [2, 5, 100])
def test_a_set_is_known_if_it_is_a_candidate_or_all_members_that_are_used_found_it(n_found):
    members = [table(seed, n_found=n_found) for seed in range(3)]
    candidates = mixture(members, [0.4, 0.6, 0.0]).candidates(TOKENS, 1)
    found = candidates.log_probs_of(EVERY_SET)
    own = SetCandidates(candidates.labels, candidates.log_probs).log_probs_of(EVERY_SET)
    of_members = [each.log_probs_of(EVERY_SET) for each in candidates.pool.found[:2]]
    both = np.log(0.4 * np.exp(of_members[0]) + 0.6 * np.exp(of_members[1]))
    np.testing.assert_allclose(found, np.where(np.isnan(own), both, own))
    some = np.array([7, 2])
    np.testing.assert_array_equal(candidates.take(some).log_probs_of(EVERY_SET[some]), found[some])


@pytest.mark.parametrize("rule", SET_RULES)
def test_one_member_is_that_member_and_copies_and_order_change_nothing(tables, rule):
    assert_same_choice(choose(mixture(tables[:1]), rule), choose(tables[0], rule))
    both = choose(mixture(tables[:2], [0.4, 0.6]), rule)
    assert_same_choice(choose(mixture(tables[1::-1], [0.6, 0.4]), rule), both)
    copies = mixture([tables[0], tables[1], tables[0]], [0.1, 0.6, 0.3])
    assert_same_choice(choose(copies, rule), both)
    alone = mixture(tables, [0, 1, 0])
    assert_same_choice(choose(alone, rule), choose(tables[1], rule))


@pytest.mark.parametrize("rule", SET_RULES)
def test_a_rule_predicts_by_its_own_weights_whatever_was_searched_before(tables, rule):
    by_rule = {"f1": np.array([0, 0, 1.0]), rule: np.array([0, 1.0, 0])}
    system = mixture(tables, WEIGHTS, by_rule)
    assert_same_choice(choose(system, rule), choose(tables[1], rule))
    search = BatchSearch(system, TOKENS, {"sets": 16})
    search.choose("f1", no_limits(N_LABELS))
    later = search.choose(rule, no_limits(N_LABELS), THRESHOLDS)
    assert_same_choice(later, choose(tables[1], rule))
    assert system.for_rule("other") is system
    asked = system.for_rule(rule).set_log_probs(TOKENS, EVERY_SET)
    np.testing.assert_array_equal(asked, tables[1].set_log_probs(TOKENS, EVERY_SET))


def test_known_labels_leave_only_sets_that_fit(tables):
    known = Known.of([[1]] * N_DOCUMENTS, [[3]] * N_DOCUMENTS)
    found = mixture(tables, WEIGHTS).candidates(TOKENS, 64, known=known)
    wanted = mean_probs(tables)
    fits = [each for each in SETS if 1 in each and 3 not in each]
    for document in range(N_DOCUMENTS):
        rows = {each: wanted[document, SETS.index(each)] for each in fits}
        assert found_sets(found, document) == pytest.approx(rows)
    # p(label | known) of a mixture is not the mean of the members' own.
    mass = wanted[:, [SETS.index(each) for each in fits]].sum(axis=1)
    with_label = wanted[:, [SETS.index(each) for each in fits if 0 in each]].sum(axis=1)
    np.testing.assert_allclose(found.marginals(N_LABELS)[:, 0], with_label / mass, rtol=1e-5)


def test_if_no_member_allows_a_set_the_present_labels_are_left():
    probs = np.zeros((N_DOCUMENTS, len(SETS)))
    probs[:, SETS.index(())] = 1
    certain = TableSystem(probs)
    known = Known.of([[2]] * N_DOCUMENTS, [[]] * N_DOCUMENTS)
    found = mixture([certain, table(0)], by_rule={"f1": np.array([1.0, 0.0])}).candidates(
        TOKENS, 4, known=known
    )
    assert np.isfinite(found.log_probs[:, 0]).all()
    none = found.for_rule("f1")
    assert (none.log_probs == -np.inf).all()
    assert none.set_at(0, 0) == [2]


@pytest.mark.parametrize("rule", SET_RULES)
def test_a_member_with_another_order_of_the_labels_predicts_the_same(tables, rule):
    own_ids = np.array([2, 0, 3, 1])  # the id of each label in the other order
    places = [SETS.index(tuple(sorted(own_ids[list(each)]))) for each in SETS]
    probs = np.zeros_like(tables[0].probs)
    probs[:, places] = tables[0].probs
    other = relabel(TableSystem(probs, limit=3), own_ids)
    assert other.max_labels == 3
    np.testing.assert_array_equal(
        other.set_log_probs(TOKENS, EVERY_SET), tables[0].set_log_probs(TOKENS, EVERY_SET)
    )
    one, same = mixture([other, tables[1]], [0.3, 0.7]), mixture(tables[:2], [0.3, 0.7])
    assert_same_choice(choose(one, rule), choose(same, rule))
    known = Known.of([[1]] * N_DOCUMENTS, [[3]] * N_DOCUMENTS)
    found, expected = (each.candidates(TOKENS, 16, known=known) for each in (one, same))
    np.testing.assert_array_equal(found.labels[:, 0], expected.labels[:, 0])
    np.testing.assert_allclose(found.log_probs[:, 0], expected.log_probs[:, 0], rtol=1e-9)


def test_members_read_the_rows_of_their_own_tokenizer(tables):
    other_rows = Ragged.from_lists([[N_DOCUMENTS - 1 - row] for row in range(N_DOCUMENTS)])
    joined = join_rows([TOKENS, other_rows])
    flipped = TableSystem(tables[1].probs[::-1])
    systems = (tables[0], flipped)
    found = MixtureSystem(systems, (0, 1), Weights(np.array([0.5, 0.5])), N_LABELS)
    wanted = mixture(tables[:2]).set_log_probs(TOKENS, EVERY_SET)
    np.testing.assert_array_equal(found.set_log_probs(joined, EVERY_SET), wanted)
    candidates = found.candidates(joined, 4)
    np.testing.assert_array_equal(
        candidates.log_probs, mixture(tables[:2]).candidates(TOKENS, 4).log_probs
    )


def test_the_union_keeps_the_best_of_each_member_and_then_the_most_probable():
    def one(sets, probs):
        labels = pack_labels(Ragged.from_lists(sets).padded(min_width=2))[None]
        return SetCandidates(labels, np.log([probs]))

    labels, is_set = unite(
        [one([[0, 1], [2], []], [0.9, 0.08, 0.01]), one([[3], [2], [1]], [0.05, 0.04, 0.03])], 3, 4
    )
    assert is_set.all()
    found = SetCandidates(labels, np.zeros(is_set.shape))
    assert {tuple(found.set_at(0, rank)) for rank in range(3)} == {(0, 1), (3,), (2,)}
