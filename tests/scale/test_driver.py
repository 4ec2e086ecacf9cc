"""The driver: every shard is done once, whoever dies, and documents that kill are found."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setrnn.data.formats.ranges import Range
from setrnn.errors import DataError
from setrnn.progress import ignore_progress
from setrnn.scale.driver import Driver
from setrnn.scale.plan import Input, Shard
from setrnn.scale.worker import Record
from setrnn.scale.workers import Failure, Outcome, Station, count_lacks

N_ROWS = 8


class PretendWorkers:
    """Workers that die of some documents, at random, or never answer."""

    def __init__(self, n_workers=2, killers=(), n_random=0, seed=0, hangs=(), failures=()):
        self.n_workers, self.killers, self.hangs = n_workers, set(killers), set(hangs)
        self.random, self.n_random = random.Random(seed), n_random
        self.failures = list(failures)
        self.running, self.late, self.written = [], [], {}

    def has_room(self):
        return len(self.running) < self.n_workers

    def submit(self, task):
        self.running.append(task)

    def wait(self, seconds):
        ended = [each for each in self.running if not self._documents(each) & self.hangs]
        self.running = [each for each in self.running if each not in ended]
        late, self.late = self.late, []
        return [Outcome(each, death="killed by SIGKILL.") for each in late] + [
            self._end(each) for each in ended
        ]

    def n_ready(self):
        return self.n_workers

    def n_documents(self):
        return 0

    def cancel(self, task):
        self.running.remove(task)
        self.late.append(task)

    def _documents(self, task):
        start, stop = task.only or (0, N_ROWS)
        left_out = dict(task.left_out)
        return {(task.shard.number, n) for n in range(start, stop) if n not in left_out}

    def _end(self, task):
        if self.failures:
            return Outcome(task, failure=self.failures.pop())
        if self.n_random and self.random.random() < 0.5:
            self.n_random -= 1
            return Outcome(task, death="killed by SIGKILL.")
        documents = self._documents(task)
        if documents & self.killers:
            return Outcome(task, death="ended with exit code 1.")
        if task.only is not None:
            return Outcome(task)
        number = task.shard.number
        assert number not in self.written, "done twice"
        self.written[number] = documents
        bad = tuple({"id": str(place), "reason": why} for place, why in task.left_out)
        return Outcome(task, Record(number, f"shard-{number}", len(documents), "", bad))


def run(workers, n_shards=4, limit_seconds=60.0, on_progress=ignore_progress):
    source = Input("a.jsonl", 0, "", (), True, 0)
    shards = [Shard(n, source, Range(n * N_ROWS, N_ROWS)) for n in range(n_shards)]
    driver = Driver(workers, shards, limit_seconds, on_progress, lambda text: None, 0, 32, n_shards)
    driver.run()
    return driver


@given(st.integers(0, 40), st.integers(0, 1000), st.integers(1, 5))
def test_random_deaths_lose_nothing(n_random, seed, n_workers):
    workers = PretendWorkers(n_workers, n_random=n_random, seed=seed)
    driver = run(workers)
    lost = {shard.number for shard, _ in driver.lost}
    left_out = {n: N_ROWS - len(found) for n, found in workers.written.items()}
    assert set(workers.written) | lost == set(range(4))
    if n_random < 12:  # it takes more to lose one shard, or to suspect one document
        assert not lost
        assert not any(left_out.values())


@given(st.sets(st.tuples(st.integers(0, 3), st.integers(0, N_ROWS - 1)), max_size=5))
def test_documents_that_kill_are_left_out_and_no_others(killers):
    workers = PretendWorkers(killers=killers)
    assert not run(workers).lost
    every = {(shard, n) for shard in range(4) for n in range(N_ROWS)}
    assert set().union(*workers.written.values()) == every - killers


def test_a_document_that_never_ends_is_left_out():
    workers = PretendWorkers(hangs={(1, 5)})
    run(workers, limit_seconds=0.0)
    assert workers.written[1] == {(1, n) for n in range(N_ROWS) if n != 5}


def test_a_full_disk_is_tried_elsewhere_and_other_errors_stop():
    lack = Failure("DataError", "x cannot be written: no space left", is_lack=True)
    assert len(run_written(PretendWorkers(failures=[lack, lack]))) == 4
    with pytest.raises(DataError, match="not JSON"):
        run(PretendWorkers(failures=[Failure("BadRowError", "a.jsonl line 1: is not JSON.")]))


def test_a_worker_without_a_disk_gets_no_more_tasks():
    """A full disk on one machine does not stop the others; on all, it does."""
    lack = Outcome("shard", failure=Failure("DataError", "no space left", is_lack=True))
    workers = bad, good = [Station(), Station()]
    bad.is_ready = good.is_ready = True
    for _ in range(10):
        count_lacks(lack, bad, workers)
    assert (bad.is_free, good.is_free) == (False, True)
    count_lacks(lack, good, workers)
    count_lacks(Outcome("shard", "done"), good, workers)  # in a row
    count_lacks(lack, good, workers)
    count_lacks(lack, good, workers)
    assert good.is_free
    with pytest.raises(DataError, match="no space"):
        count_lacks(lack, good, workers)


def test_the_progress_tells_shards_and_workers():
    events = []
    run(PretendWorkers(), on_progress=events.append)
    assert (events[-1].n_done, events[-1].n_total) == (32, 32)
    assert events[-1].counts == "4/4 shards, 2 workers"


def run_written(workers):
    run(workers)
    return workers.written
