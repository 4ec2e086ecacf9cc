"""Two commands at once: both do their work, or one is refused; nothing is lost or mixed up."""

import shutil
import signal
import time

import pytest
from children import Child, choose_calls, run
from commands import COMMANDS, NETWORK, each_command
from worlds import copy_parts, differences, snapshot, state_of

import setrnn

N_TRIES, N_STOPS = 5, 8
WAITING = 2.0  # seconds for the second command, which may wait for the first that is stopped


def out_of(work, out):
    """Return a command with another --out."""
    place = work.index("--out") + 1
    return (*work[:place], out, *work[place + 1 :])


def problems_of_both(ended):
    """Each is done, or refused in a line; at least one is done."""
    problems = [f"failed: {each}" for each in ended if not (each.is_done or each.is_refused)]
    if not any(each.is_done for each in ended):
        problems.append(f"both refused: {ended[0]}")
    return problems


@each_command("calibrate")
def test_the_same_command_twice_on_one_folder(reference, tries, few, chance):
    reference.ended  # noqa: B018 (before the first try)
    with tries("twice at once, one folder", reference.command.name) as found:
        for _ in few(range(N_TRIES)):
            world = reference.new_world("world")
            children = [Child(world, reference.command.work)]
            time.sleep(chance.uniform(0, 0.1))
            children.append(Child(world, reference.command.work))
            problems = problems_of_both([child.wait() for child in children])
            problems += reference.problems_now(world)
            found.add(problems + differences(snapshot(world), reference.files))


@each_command()
def test_the_same_command_while_the_first_is_stopped_at_a_call(reference, tries, few):
    """The first stops at a call, the second runs to its end, then the first continues."""
    command, calls = reference.command, reference.ended.calls
    fault = "twice at once, the second at a file-system call of the first"
    with tries(fault, command.name) as found:
        for number in few(choose_calls(calls), min(2 * N_STOPS, command.most_tries // 3)):
            world = reference.new_world("world")
            ended = interleave(world, command.work, command.work, number)
            problems = problems_of_both(ended) + reference.problems_now(world)
            problems += differences(snapshot(world), reference.files)
            found.add(problems, f"{number} {calls[number - 1]}")


@pytest.mark.parametrize(
    "reference", [each.name for each in COMMANDS if each.uses_cache], indirect=True
)
def test_the_same_command_with_a_fresh_cache(reference, tries, few, chance):
    reference.ended  # noqa: B018 (before the first try)
    command = reference.command
    own = command.work[command.work.index("--out") + 1]
    outs = [own, "out/second", "out/third", "out/fourth"]
    with tries("four at once, one fresh cache", command.name) as found:
        for _ in few(range(2 if command.most_tries < 50 else N_TRIES)):
            world = reference.new_world("world")
            shutil.rmtree(world / "cache")
            children = []
            for out in outs:
                children.append(Child(world, out_of(command.work, out)))
                time.sleep(chance.uniform(0, 0.05))
            ended = [child.wait(120) for child in children]
            problems = [f"failed: {each}" for each in ended if not each.is_done]
            if not problems:
                files = snapshot(world)
                models = [model_files(files, out) for out in outs]
                problems = [
                    f"another result: {out}"
                    for out, model in zip(outs, models, strict=True)
                    if model != models[0]
                ]
                problems += [f"left over: {path}" for path in files if "/." in path]
                n_prepared = len(list((world / "cache").iterdir()))
                if n_prepared != 1:
                    problems.append(f"{n_prepared} prepared folders for one dataset")
            found.add(problems)


def model_files(files, out):
    """Return the weights of the models in a folder."""
    return {
        path.removeprefix(out): each
        for path, each in files.items()
        if path.startswith(f"{out}/") and path.endswith("model.safetensors")
    }


def interleave(world, first, second, number):
    """Stop the first command at a call, run the second to its end, and continue the first."""
    stopped = Child(world, first, trap=(number, signal.SIGSTOP))
    stopped.wait_until_stopped()
    other = Child(world, second)
    other.process.join(WAITING)  # it may wait for a lock of the first
    stopped.kill(signal.SIGCONT)
    return [stopped.wait(), other.wait()]


def trained_weights_stay(world, reference, ended):
    """A training that ended well must not be undone by a calibration."""
    if ended[1].is_done and state_of(world / "out/model").learned != reference["trained"]:
        return ["the trained model was replaced by the older one"]
    return []


def both_rules_stay(world, reference, ended):
    """Two calibrations that ended well must both be kept."""
    calibration = setrnn.load(world / "out/model", "cpu").calibration
    rules = set(calibration.acceptance)
    if all(each.is_done for each in ended) and rules != {"set", "f1"}:
        return [f"of two acceptances only {sorted(rules)} is kept"]
    return []


def rows_are_whole(world, reference, ended):
    """Predictions are those of the old model or of the new one."""
    rows = (world / "out/rows.jsonl").read_bytes()
    return [] if rows in reference["rows"] else ["predictions of no whole model"]


CALIBRATE = ("calibrate", "out/model", "data/valid.jsonl", "--device", "cpu")
TRAIN = ("train", "data", "--out", "out/model", *NETWORK)
PREDICT = ("predict", "out/model", "data/test.jsonl", "--out", "out/rows.jsonl")
PAIRS = {
    "calibrate while train replaces the model": (CALIBRATE, TRAIN, trained_weights_stay),
    "calibrate while another rule is calibrated": (
        (*CALIBRATE, "--rule", "set"),
        (*CALIBRATE, "--rule", "f1"),
        both_rules_stay,
    ),
    "predict while train replaces the model": (PREDICT, TRAIN, rows_are_whole),
    "train while calibrate changes the model": (TRAIN, CALIBRATE, lambda *_: []),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_commands_on_one_model(name, base, references, tmp_path, tries, few, chance):
    first, second, check = PAIRS[name]
    needs, copies = ("data", "cache"), {"models/other": "out/model"}

    def new_world():
        shutil.rmtree(tmp_path / "world", ignore_errors=True)
        return copy_parts(base, tmp_path / "world", needs, copies)

    world = new_world()
    calls = run(world, first).calls
    world = new_world()
    rows = []
    for work in (PREDICT, TRAIN, PREDICT):
        assert run(world, work).is_done
        if work is PREDICT:
            rows.append((world / "out/rows.jsonl").read_bytes())
    reference = {"trained": state_of(world / "out/model").learned, "rows": rows}
    with tries("one command at a file-system call of another", name) as found:
        for number in few(choose_calls(calls), N_STOPS):
            world = new_world()
            ended = interleave(world, first, second, number)
            problems = problems_of_both(ended)
            try:
                state_of(world / "out/model")
            except Exception as error:  # noqa: BLE001
                problems.append(f"unreadable: {error}")
            found.add(problems + check(world, reference, ended), f"{number} {calls[number - 1]}")
