"""Kill -9: what was there before is kept, and the same command again ends as if never killed."""

import signal
import time
from contextlib import suppress

import pytest
from children import Child, choose_calls, run
from commands import COMMANDS, NOT_BROKEN, each_command

from setrnn.cli import app, data

N_RANDOM, N_KILLS = 10, 8


@pytest.fixture
def training(references):
    return references["train set-rnn-exact"]


@pytest.mark.short
def test_every_command_that_writes_is_broken():
    known = {*app.COMMANDS} - {"data"}
    known |= {f"data {each.callback.__name__}" for each in data.data.registered_commands}
    words = [each.work for each in COMMANDS if not callable(each.work)]
    tried = {" ".join(each[: 1 + (each[0] == "data")]) for each in words}
    assert known - tried == {*NOT_BROKEN}


@each_command("Tagger.save", "predict", "calibrate", is_kill=True)
def test_a_kill_at_every_call_loses_nothing(reference, tries, few):
    command = reference.command
    with tries("kill -9 at every file-system call", command.name) as found:
        calls = reference.ended.calls
        for number in few(choose_calls(calls), command.most_tries):
            world = reference.new_world("world")
            ended = run(world, command.work, trap=(number, signal.SIGKILL))
            problems = [] if ended.code in (-signal.SIGKILL, 0) else [f"not killed: {ended}"]
            problems += reference.problems_now(world)
            if ended.is_done and not problems:  # it made fewer calls this time
                found.add_late()
                continue
            problems += reference.problems_again(world)
            found.add(problems, f"{number} {calls[number - 1]}")


@each_command(is_kill=True)
def test_a_kill_at_a_random_moment_loses_nothing(reference, tries, chance):
    """Half of the kills reach the process alone, and half its own children too."""
    n_tries = min(N_RANDOM, reference.command.most_tries)
    with tries("kill -9 at random moments", reference.command.name) as found:
        for number in range(2 * n_tries):  # some end before their kill
            if found.n_tries == n_tries:
                break
            world = reference.new_world("world")
            moment = chance.uniform(0.05, reference.ended.seconds)
            child = Child(world, reference.command.work)
            time.sleep(moment)
            child.kill(alone=bool(number % 2))
            ended = child.wait()
            child.kill(signal.SIGTERM)  # forked processes do not notice that their parent is gone
            problems = reference.problems_now(world)
            if ended.is_done and not problems:
                found.add_late()
                continue
            found.add(problems + reference.problems_again(world), f"after {moment:.3f} s")


@pytest.mark.short
def test_a_training_killed_again_and_again_ends_with_the_same_bits(
    training, tries, chance, is_short
):
    with tries("kill -9 again and again, --resume each time", training.command.name) as found:
        n_calls = len(training.ended.calls)
        world = training.new_world("world")
        for _ in range(3 if is_short else N_KILLS):
            trap = (chance.randint(n_calls // 8, n_calls // 3), signal.SIGKILL)
            ended = run(world, training.command.work_again, trap=trap)
            problems = [] if ended.code == -signal.SIGKILL else [f"not killed: {ended}"]
            found.add(problems + training.problems_now(world))
        found.add(training.problems_again(world))


@pytest.mark.short
def test_a_stopped_training_is_saved_and_continues(training, tries):
    with tries("Ctrl-C and SIGTERM, then --resume", training.command.name) as found:
        training.ended  # noqa: B018
        world = training.new_world("world")
        last = world / "out/network.run/last.safetensors"
        for number in (signal.SIGINT, signal.SIGTERM):
            before = written_at(last)
            child = Child(world, training.command.work_again)
            while written_at(last) == before and child.process.is_alive():
                time.sleep(0.001)
            child.kill(number, alone=True)
            ended = child.wait()
            found.add([] if ended.code == 130 else [f"not stopped: {ended}"])
        found.add(training.problems_again(world))


@pytest.mark.short
def test_a_finished_run_whose_model_was_not_written_is_kept(training, tries, few):
    """The same command without --resume saves it, or is refused; it never trains it again."""
    with tries("kill -9 between the end of training and its model", training.command.name) as found:
        calls = training.ended.calls
        folder = "/out/.network."
        saving = [n for n, call in enumerate(calls, 1) if call.path.startswith(folder)]
        for number in few(saving[:6]):
            world = training.new_world("world")
            run(world, training.command.work, trap=(number, signal.SIGKILL))
            run_files = {each: written_at(each) for each in world.glob("out/network.run/last.*")}
            ended = run(world, training.command.work)
            problems = [] if ended.is_done or "--resume" in ended.output else [f"{ended}"]
            if {each: written_at(each) for each in run_files} != run_files:
                problems.append("the finished run was deleted")
            found.add(problems + training.problems_again(world), f"{number} {calls[number - 1]}")


def written_at(file):
    """Return when a file was written, and which one it is."""
    with suppress(FileNotFoundError):
        status = file.stat()
        return status.st_mtime_ns, status.st_ino
    return None
