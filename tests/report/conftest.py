"""A comparison with everything that a report must handle, and its report: made once per session."""

from dataclasses import replace

import pytest

from made_comparison import NASTY, made_comparison
from setrnn.comparison.records import GIVEN, Failure, TestResults
from setrnn.report.build import build_report


@pytest.fixture(scope="session")
def comparison_folder(tmp_path_factory):
    """Nasty names, a failed run, predictions from elsewhere, a shared machine."""
    folder = tmp_path_factory.mktemp("comparison")
    comparison, records = made_comparison(n_seeds=2, n_documents=120)
    labels = (NASTY, *comparison.labels[1:])
    comparison = replace(comparison, labels=labels, valid_is_cut=True)
    shared = [
        replace(
            record,
            costs=replace(record.costs, n_jobs=3),
            config={"seed": record.seed, "model": {"units": 300}},
        )
        for record in records
    ]
    sgm = next(record for record in shared if record.name == "sgm-1")
    shared.remove(sgm)
    failed = replace(sgm, test=None, costs=None, scores={}, cases=[], failure=Failure("E", NASTY))
    given = TestResults({GIVEN: comparison.truth}, {})
    added = replace(
        failed, method="other", seed=0, own_rule=GIVEN, failure=None, test=given, is_added=True
    )
    comparison.save(folder)
    for record in (*shared, failed, added):
        record.save(folder)
    return folder


@pytest.fixture(scope="session")
def built(comparison_folder):
    """The report of it."""
    return build_report(comparison_folder)


@pytest.fixture(scope="session")
def page(built):
    """The text of its page."""
    return built.page.read_text(encoding="utf-8")
