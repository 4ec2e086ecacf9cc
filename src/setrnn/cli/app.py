"""The table of commands, imported when they are run; one-line errors and exit codes."""

from __future__ import annotations

import inspect
import io
import os
import re
import sys
import traceback
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from setrnn import __version__
from setrnn.cli import INTERRUPTED
from setrnn.cli.terminal import escape_controls, note, show_log, stderr
from setrnn.errors import SetRNNError, StoppedError, find_memory_problem

# The commands, each with the first line of its help. Each is the function (or group) of its name in
# the module of its name, which is imported when the command is run or its own help is asked for.
COMMANDS = {
    "demo": "Show what setrnn does on newsroom, the embedded corpus of synthetic news.",
    "data": "Inspect, convert, split and prepare data; choose what to tag, find wrong labels.",
    "train": "Train a model and write its folder: the best one within a time budget, or one "
    "system.",
    "predict": "Tag documents; write a row for each, in the order of the input.",
    "evaluate": "Measure a model on documents whose labels are known.",
    "calibrate": "Calibrate a model's probabilities, and find which predictions to accept without "
    "review.",
    "show": "Show what a model is: method, data, labels, measures, calibration, versions.",
    "push": "Copy models to a folder or to the Hugging Face hub, or from the hub.",
    "mix": "Make one model of several, with weights fitted for each prediction rule.",
    "distil": "Train a small network on the set probabilities of a trained model, its teacher.",
    "update": "Update a model with new documents and labels, without training from the beginning.",
    "compare": "Train systems on the same data, measure them by every rule, and write a report.",
    "explain": "Explain how a model tags a text, or how it scores a given set.",
    "report": "Make the report of a comparison again from its records: one page, tables and "
    "figures.",
    "serve": "Serve models: an HTTP API, and a page to tag with.",
    "cache": "List the prepared data and word vectors in the cache, or remove them.",
    "methods": "List the systems: what each is for, what it maximises in training, how it "
    "predicts.",
}

HELP_ALL = "--help-all"
# Options that --help leaves out: few people need them. All of them are in --help-all.
RARE = {
    *("features_field", "label_map", "encoding", "reader", "on_bad_row"),  # of data
    *("hierarchy", "close_labels", "write_label_map", "split", "allow_training_documents"),
    *("sheet", "unlabelled_rows", "merge_duplicates", "write_groups"),
    *("csv_dialect", "label_columns"),  # of tables
    *("min_labels", "only_seen", "require", "forbid", "free", "closed", "groups"),  # of sets
    *("beam_width", "raw", "present_field", "absent_field", "confidence"),
    *("no_valid", "preset", "config", "jobs", "keep_run", "add"),  # of training
    *("ray", "gpus_per_worker", "gpus_per_run", "chunk_rows"),  # of clusters
    *("threads", "max_texts", "max_words", "max_body_bytes"),  # of the service
    *("max_connections", "queue", "batch", "batch_ms"),
}


class LazyGroup(TyperGroup):
    """A group whose commands are placeholders with a name and a help line until one is needed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 (click's types)
        """Import the command that the arguments name."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in COMMANDS else command, rest

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401
        """List the general options."""
        found = super().get_params(ctx)
        clear_flags(found)
        return found


def clear_flags(options: list[Any]) -> None:
    """Let the help show no type behind options that take no value."""
    for each in options:
        if getattr(each, "is_flag", False):
            each.metavar = ""


def load_command(name: str) -> Any:  # noqa: ANN401 (a click command)
    """Import a command by its name."""
    from setrnn.cli.options import expand  # it loads numpy, which the general help does not need

    found = getattr(import_module(f"setrnn.cli.{name}"), name)
    group = typer.Typer(callback=lambda: None, rich_markup_mode="rich", add_completion=False)
    if isinstance(found, typer.Typer):
        for each in found.registered_commands:
            each.callback = expand(each.callback) if each.callback else None
        group.add_typer(found, name=name)
    else:
        group.command(name)(expand(found))
    loaded: Any = typer.main.get_command(group)
    command = loaded.commands[name]
    for each in (command, *getattr(command, "commands", {}).values()):
        # Paragraphs are wrapped by the terminal, not where the lines of a docstring end.
        each.help = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(each.help or ""))
        clear_flags(each.get_params(typer.Context(each)))
        rare = [option for option in each.params if option.name in RARE]
        if rare and "--help" in sys.argv and HELP_ALL not in sys.argv:
            each.epilog = f"{len(rare)} more options: {HELP_ALL}"
            for option in rare:
                option.hidden = True
    return command


app = typer.Typer(
    name="setrnn",
    cls=LazyGroup,
    help="Tag documents with sets of labels, and know the probability of each set.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for _name, _help in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"setrnn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show no notes and no bars, only warnings and errors.")
    ] = False,
) -> None:
    show_log()


def run() -> NoReturn:
    """Run the command that the arguments name; KeyboardInterrupt says that it was stopped."""
    # UTF-8 on every system. Messages may contain file names that are not valid text.
    streams = ((sys.stdin, None), (sys.stdout, None), (sys.stderr, "backslashreplace"))
    for stream, errors in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    is_debugging, stderr.shows_notes = "--debug" in sys.argv, "--quiet" not in sys.argv
    # They may stand anywhere.
    arguments = [each for each in sys.argv[1:] if each not in ("--debug", "--quiet")]
    arguments = ["--help" if each == HELP_ALL else each for each in arguments]
    if not stderr.shows_notes:
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    try:
        code = app(arguments, prog_name="setrnn", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # typer turns Ctrl-C into this
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except StoppedError as stop:
        note(str(stop), "yellow")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output is gone: keep Python from reporting it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 (no failure may end in a traceback)
        if hasattr(error, "exit_code") and hasattr(error, "show"):  # of click: wrong usage
            message = escape_controls(error.format_message())  # type: ignore[attr-defined]
            for theirs, ours in (("Value error, ", ""), ("Input should be", "it must be")):
                message = message.replace(theirs, ours)
            error.format_message = lambda: message  # type: ignore[attr-defined]
            error.show()
            sys.exit(error.exit_code)
        if is_debugging:
            sys.stderr.write(escape_controls(traceback.format_exc()))
        note(f"error: {_write_error(error)}", "red")
        sys.exit(1)


def _write_error(error: Exception) -> str:
    """Describe an error in one line."""
    if isinstance(error, SetRNNError):
        return str(error)
    if problem := find_memory_problem(error):
        return problem
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    what = " ".join(str(error).split())[:300]
    return f"unexpected {type(error).__name__}: {what}. Add --debug to see where."
