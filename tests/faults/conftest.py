"""The fault suite: `make faults` runs all of it, `make test` a short selection.

-m faults     all tests, with all their tries
otherwise     the tests marked `short`, with a few tries each
"""

import random
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from commands import COMMANDS
from table import Tries, as_markdown, write_page
from worlds import Reference, make_base

SEED = 14
SECONDS = 580  # per test; the whole suite is bounded to about 15 minutes
N_SHORT = 2  # tries of each test in the short selection
ORDER = ("kills", "disks", "two_at_once", "damaged_files", "hostile_inputs", "service", "ray")

if sys.platform == "win32":  # no forks, no signals to processes
    collect_ignore_glob = ["test_*.py"]


def pytest_addoption(parser):
    parser.addoption("--reliability-page", help="Write the table into this page.")


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(SECONDS))


@pytest.fixture(scope="session")
def is_short(pytestconfig):
    """Whether only a short selection runs."""
    return "faults" not in (pytestconfig.option.markexpr or "")


@pytest.fixture
def chance(request):
    """Random numbers of this test; the same in each run."""
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture(scope="session")
def base(make_once, is_short):
    """The world that every try copies its parts from."""
    return make_once("faults", partial(make_base, is_short=is_short))


@pytest.fixture(scope="session")
def references(base, tmp_path_factory):
    """Every command, undisturbed, by its name; run when it is first asked for."""
    place = tmp_path_factory.mktemp("worlds")
    return {command.name: Reference(command, base, place) for command in COMMANDS}


@pytest.fixture
def reference(request, references):
    """The command that the test is about (see `each_command`), undisturbed."""
    return references[request.param]


@pytest.fixture
def tries(record_property):
    """Collect tries for the table; the test fails if one was not survived."""

    @contextmanager
    def collect(fault, where):
        found = Tries(fault, where)
        try:
            yield found
        finally:
            record_property("fault", found.row)
        assert found.n_tries, "the fault never struck"
        if found.n_survived < found.n_tries:
            pytest.fail(f"{found.n_tries - found.n_survived} of {found.n_tries}:\n{found.report}")

    return collect


@pytest.fixture
def few(is_short, chance):
    """Choose tries from a list: all of them, or a few in the short selection."""

    def choose(items, most=None):
        n = min(len(items), N_SHORT if is_short else most or len(items))
        return sorted(chance.sample(list(items), n)) if n < len(items) else list(items)

    return choose


def pytest_terminal_summary(terminalreporter, config):
    found = [
        (next((n for n, name in enumerate(ORDER) if name in report.nodeid), len(ORDER)), *row)
        for outcome in ("passed", "failed", "skipped")
        for report in terminalreporter.stats.get(outcome, [])
        if getattr(report, "when", "") == "call"
        for name, row in report.user_properties
        if name == "fault"
    ]
    if not found:
        return
    rows = [tuple(row) for _, *row in sorted(found)]
    terminalreporter.write_line(f"\nseed {SEED}\n{as_markdown(rows)}")
    if page := config.getoption("--reliability-page", None):
        write_page(Path(page), rows)
