import math
from dataclasses import replace

from made_comparison import made_comparison
from setrnn.comparison.statistics import LEVEL, bootstrap
from setrnn.report.caveats import list_caveats
from setrnn.tagging.calibration import LEAST_DOCUMENTS


def made(n_seeds=2, n_documents=600, methods=("br", "set-rnn", "sgm")):
    comparison, records = made_comparison(methods, n_seeds, n_documents)
    return replace(comparison, synthetic=False), records


def test_nothing_is_said_where_nothing_is_amiss():
    assert list_caveats(*made()) == []


def test_single_seeds_are_said_of_networks_only():
    (said,) = list_caveats(*made(n_seeds=1))
    assert "Each network was trained with one seed" in said
    assert list_caveats(*made(n_seeds=1, methods=("br", "pcc"))) == []


def test_a_training_that_a_budget_ended_is_named():
    comparison, records = made()
    records[-1] = replace(records[-1], treatment={"was_cut_by_budget": True})
    (said,) = list_caveats(comparison, records)
    assert "budget ended the training of sgm-1" in said


def test_different_devices_are_said():
    comparison, records = made()
    records[-1] = replace(records[-1], environment={"device": "some GPU"})
    (said,) = list_caveats(comparison, records)
    assert "cpu and some GPU" in said


def test_systems_with_fewer_seeds_are_said():
    comparison, records = made(n_seeds=3)
    (said,) = list_caveats(comparison, records[:-1])
    assert "different numbers of seeds" in said


def test_runs_of_another_version_are_said():
    comparison, records = made()
    records[-1] = replace(records[-1], setrnn="9.9")
    (said,) = list_caveats(comparison, records)
    assert "different versions of setrnn" in said
    assert "9.9" in said


def test_too_few_valid_documents_are_said():
    comparison, records = made()
    n_documents = {**comparison.n_documents, "valid": LEAST_DOCUMENTS - 1}
    (said,) = list_caveats(replace(comparison, n_documents=n_documents), records)
    assert "99 valid documents are too few" in said
    n_documents["valid"] = LEAST_DOCUMENTS
    assert list_caveats(replace(comparison, n_documents=n_documents), records) == []


def test_more_systems_than_the_draws_can_separate_are_said():
    comparison, records = made(n_seeds=1, methods=("br",))
    for n_systems in (16, 17):
        added = [
            replace(records[0], method=f"tool-{number}", is_added=True)
            for number in range(n_systems)
        ]
        said = list_caveats(comparison, added)
        assert f"The predictions of {n_systems} systems were made elsewhere" in said[-1]
        assert any("can be significant" in each for each in said) == (n_systems > 16)
    draws = bootstrap(comparison, records)  # what the sentence rests on
    assert math.comb(16, 2) * 2 / (draws.n_draws + 1) < LEVEL < math.comb(17, 2) * 2 / draws.n_draws
