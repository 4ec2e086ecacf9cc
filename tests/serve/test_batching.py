import asyncio
import threading
from dataclasses import dataclass, field

import pytest
from asgi import until

from setrnn.errors import ConfigError
from setrnn.serve import batching
from setrnn.serve.batching import Batcher, WorkError
from setrnn.serve.problems import ProblemError

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Doubling:
    """Work that doubles numbers, fails on negative ones, and can be held up."""

    name: str = ""
    batches: list = field(default_factory=list, compare=False)
    gate: threading.Event = field(default_factory=threading.Event, compare=False)
    threads: set = field(default_factory=set, compare=False)
    may_be_slow: bool = False
    arguments: tuple = ()

    def run(self, documents):
        assert self.gate.wait(10)
        self.batches.append(list(documents))
        self.threads.add(threading.get_ident())
        if any(each < 0 for each in documents):
            raise ValueError("negative")
        return [2 * each for each in documents]


def opened(work):
    work.gate.set()
    return work


@pytest.fixture
async def batcher():
    made = []

    def make(max_batch=8, max_waiting=100, wait_seconds=0.0, **options):
        made.append(Batcher(max_batch, max_waiting, wait_seconds, **options))
        return made[-1]

    yield make
    for each in made:
        await each.close()


async def begun(queue, work):
    """Submit a request that is under way and held up: what follows has to wait."""
    first = queue.submit(work, [0])
    await until(lambda: queue.n_waiting == 0)
    return first


async def test_requests_are_gathered_while_a_batch_is_under_way(batcher):
    queue, work = batcher(), Doubling()
    first = await begun(queue, work)
    others = [queue.submit(work, [number, number + 10]) for number in (1, 2, 3)]
    work.gate.set()
    assert await asyncio.gather(first, *others) == [[0], [2, 22], [4, 24], [6, 26]]
    assert work.batches == [[0], [1, 11, 2, 12, 3, 13]]


async def test_a_batch_waits_as_long_as_requests_arrive_but_not_for_ever(batcher, monkeypatch):
    async def list_batches():
        queue, work = batcher(wait_seconds=0.2), opened(Doubling())
        results = []
        for number in range(6):
            results.append(queue.submit(work, [number]))
            await asyncio.sleep(0.05)  # 0.3 in all
        await asyncio.gather(*results)
        return work.batches

    assert await list_batches() == [[0, 1, 2, 3, 4, 5]]
    monkeypatch.setattr(batching, "MAX_WAITS", 1)
    first, *others = await list_batches()
    assert first[0] == 0
    assert others


async def test_a_batch_does_not_wait_if_no_other_request_can_come(batcher):
    work = opened(Doubling())
    queue = batcher(wait_seconds=5, may_come=lambda: queue.n_pending < 2)
    first = queue.submit(work, [1])
    await asyncio.sleep(0.05)
    assert work.batches == []
    second = queue.submit(work, [2])
    assert await asyncio.wait_for(asyncio.gather(first, second), 2) == [[2], [4]]
    assert work.batches == [[1, 2]]
    await asyncio.sleep(0)
    assert queue.n_pending == 0


async def test_batches_are_bounded_and_keep_the_order(batcher):
    queue, work = batcher(max_batch=4), Doubling()
    first = await begun(queue, work)
    others = [queue.submit(work, [n] * 3) for n in (1, 2)] + [queue.submit(work, [3] * 9)]
    work.gate.set()
    assert await asyncio.gather(first, *others) == [[0], [2] * 3, [4] * 3, [6] * 9]
    assert work.batches == [[0], [1] * 3, [2] * 3, [3] * 4, [3] * 4, [3]]  # the last was cut


async def test_works_of_another_kind_are_batches_of_their_own(batcher):
    queue, work, other = batcher(), Doubling("one"), opened(Doubling("other"))
    first = await begun(queue, work)
    alike = Doubling("one", work.batches, work.gate)
    rest = [queue.submit(each, [1]) for each in (work, other, alike)]
    work.gate.set()
    await asyncio.gather(first, *rest)
    assert work.batches == [[0], [1, 1]]
    assert other.batches == [[1]]


async def test_a_full_queue_refuses_and_takes_again_when_there_is_room(batcher):
    queue, work = batcher(max_waiting=4), Doubling()
    first = await begun(queue, work)
    waiting = queue.submit(work, [1, 2, 3])
    with pytest.raises(ProblemError, match="queue-full"):
        queue.submit(work, [4, 5])
    fourth = queue.submit(work, [4])
    work.gate.set()
    await asyncio.gather(first, waiting, fourth)
    assert await queue.submit(work, list(range(9))) == [2 * each for each in range(9)]


async def test_a_request_that_is_given_up_before_it_begins_is_not_worked_on(batcher):
    queue, work = batcher(), Doubling()
    first = await begun(queue, work)
    gone, kept = queue.submit(work, [1]), queue.submit(work, [2])
    gone.cancel()
    first.cancel()  # it is under way: that harms no other
    await asyncio.sleep(0)
    assert queue.n_waiting == 1
    work.gate.set()
    assert await kept == [4]
    assert work.batches == [[0], [2]]


async def test_several_batches_are_under_way_at_once(batcher):
    queue, work = batcher(n_workers=2), Doubling()
    first, second = await begun(queue, work), await begun(queue, work)
    third = queue.submit(work, [3])
    await asyncio.sleep(0.02)
    assert queue.n_waiting == 1  # both threads are busy
    work.gate.set()
    assert await asyncio.gather(first, second, third) == [[0], [0], [6]]
    assert len(work.threads) == 2


async def test_idle_threads_take_even_shares_of_what_waits(batcher):
    queue, work = batcher(max_batch=100, wait_seconds=0.01, n_workers=2), Doubling()
    found = [queue.submit(work, [number]) for number in range(80)]
    await until(lambda: queue.n_waiting == 0)  # both threads are busy until the gate opens
    work.gate.set()
    assert await asyncio.gather(*found) == [[2 * number] for number in range(80)]
    assert sorted(work.batches) == [list(range(40)), list(range(40, 80))]
    few = [queue.submit(work, [number]) for number in range(12)]
    await asyncio.gather(*few)
    assert work.batches[2:] == [list(range(12))]  # too few to be worth sharing


async def test_nothing_hangs_when_it_is_closed_and_it_opens_again(batcher):
    queue, work = batcher(), Doubling()
    first = await begun(queue, work)
    waiting = queue.submit(work, [1])
    work.gate.set()
    await queue.close()
    assert first.done()
    assert waiting.done()
    assert await queue.submit(work, [5]) == [10]


class Panic(BaseException):
    """As a panic of a library in Rust: not an Exception."""


@dataclass(frozen=True)
class Raising(Doubling):
    """Work that raises a given error for negative numbers."""

    error: type[BaseException] = Panic

    def run(self, documents):
        try:
            return super().run(documents)
        except ValueError:
            raise self.error from None


@pytest.mark.parametrize(
    "error", [ConfigError, Panic, StopIteration, SystemExit, asyncio.CancelledError]
)
async def test_a_failing_request_fails_alone_whatever_its_work_raises(batcher, error):
    queue, work = batcher(), Raising(error=error)
    first = await begun(queue, work)
    good, bad, fine = (queue.submit(work, [each]) for each in (1, -1, 2))
    work.gate.set()
    results = await asyncio.gather(first, good, bad, fine, return_exceptions=True)
    assert [results[0], results[1], results[3]] == [[0], [2], [4]]
    is_own = error is ConfigError  # it says what is wrong with the request
    assert isinstance(results[2], ConfigError if is_own else WorkError)
    assert isinstance(results[2] if is_own else results[2].__cause__, error)
    assert await asyncio.wait_for(queue.submit(work, [5]), 5) == [10]


def slow_work(monkeypatch):
    """Return work of which a batch should hold one document only."""
    monkeypatch.setattr(batching, "BATCH_SECONDS", 1e-9)
    return Doubling("slow", may_be_slow=True)


async def test_a_slow_request_is_cut_and_others_are_served_between(batcher, monkeypatch):
    queue, slow = batcher(), slow_work(monkeypatch)
    quick = opened(Doubling("quick", slow.batches))
    long = queue.submit(slow, [1, 2, 3, 4])
    await until(lambda: queue.n_waiting == 0)
    short = queue.submit(quick, [5])
    slow.gate.set()
    assert await short == [10]
    assert not long.done()
    assert await long == [2, 4, 6, 8]
    assert slow.batches == [[1], [5], [2], [3], [4]]


async def test_what_is_left_of_a_request_is_dropped_when_its_client_leaves(batcher, monkeypatch):
    queue, slow = batcher(), slow_work(monkeypatch)
    gone, kept = queue.submit(slow, [1, 2, 3]), queue.submit(slow, [4, 5])
    await until(lambda: queue.n_waiting == 2)
    gone.cancel()
    slow.gate.set()
    assert await kept == [8, 10]
    assert slow.batches == [[1], [4], [5]]
    assert queue.n_waiting == 0
