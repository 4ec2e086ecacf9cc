"""Kill -9: what was there before is kept, and the same command again ends as if never killed."""

import signal
import time

import pytest
from children import Child, Trap, run
from commands import COMMANDS

short = pytest.mark.short
SHORT = {"Tagger.save", "predict", "calibrate"}
EACH = [pytest.param(each, marks=[short] if each.name in SHORT else [], id=each.name) for each in COMMANDS]
N_RANDOM = 10


def choose_calls(calls):
    """Return the numbers of the first and the last call of each kind."""
    first, last = {}, {}
    for number, call in enumerate(calls, 1):
        first.setdefault(call.kind, number)
        last[call.kind] = number
    return sorted({*first.values(), *last.values()})


@pytest.mark.parametrize("command", EACH)
def test_a_kill_at_every_call_loses_nothing(command, references, tries, few):
    reference = references[command.name]
    with tries("kill -9 at every file-system call", command.name) as found:
        calls = reference.ended.calls
        for number in few(choose_calls(calls), command.most_tries):
            world = reference.new_world("world")
            ended = run(world, command.work, trap=Trap(number))
            problems = [] if ended.code in (-signal.SIGKILL, 0) else [f"not killed: {ended}"]
            found.add(problems_after(reference, world, problems), f"{number} {calls[number - 1]}")


@pytest.mark.parametrize("command", EACH)
def test_a_kill_at_a_random_moment_loses_nothing(command, references, tries, few, chance):
    """Half of the kills reach the process alone, and half its own children too."""
    reference = references[command.name]
    with tries("kill -9 at random moments", command.name) as found:
        for number in few(range(N_RANDOM)):
            world = reference.new_world("world")
            moment = chance.uniform(0.05, reference.ended.seconds)
            child = Child(world, command.work)
            time.sleep(moment)
            if number % 2:
                child.kill()
            else:
                child.kill_all()
            child.wait()
            found.add(problems_after(reference, world, []), f"after {moment:.3f} s")


def problems_after(reference, world, problems):
    return problems + reference.problems_now(world) + reference.problems_again(world)
