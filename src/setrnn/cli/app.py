"""The commands together, and what happens when one fails."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, NoReturn

import typer

from setrnn import __version__
from setrnn.cli.calibrate import calibrate
from setrnn.cli.compare import compare
from setrnn.cli.console import stderr
from setrnn.cli.data import app as data_app
from setrnn.cli.demo import demo
from setrnn.cli.evaluate import evaluate
from setrnn.cli.explain import explain
from setrnn.cli.methods import methods
from setrnn.cli.predict import predict
from setrnn.cli.report import report
from setrnn.cli.serve import serve
from setrnn.cli.train import train
from setrnn.errors import SetRNNError, StoppedError

app = typer.Typer(
    name="setrnn",
    help="Tag documents with sets of labels, and know the probability of each set.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command()(demo)
app.add_typer(data_app, name="data")
app.command()(train)
app.command()(predict)
app.command()(evaluate)
app.command()(calibrate)
app.command()(compare)
app.command()(explain)
app.command()(report)
app.command()(serve)
app.command()(methods)


INTERRUPTED = 130  # what shells make of Ctrl-C


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
) -> None:
    pass


def main() -> NoReturn:
    """Run the command line: 0 done, 1 a failure said in one line, 2 wrong usage, 130 stopped."""
    # What is said may name a file whose name is no text.
    for stream, errors in ((sys.stdout, None), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    is_debugging = "--debug" in sys.argv
    # --debug may stand anywhere
    arguments = [each for each in sys.argv[1:] if each != "--debug"]
    try:
        with _terminated_as_interrupted():
            code = app(arguments, standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:
            _fail("stopped.", INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)
    except typer.Exit as stop:
        if stop.exit_code == INTERRUPTED:  # how typer passes on Ctrl-C
            _fail("stopped.", INTERRUPTED)
        sys.exit(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail("stopped.", INTERRUPTED)
    except StoppedError as stop:
        stderr.print(str(stop), style="yellow", markup=False, highlight=False, soft_wrap=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # the reader of our output went away; keep Python from saying so at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 (the last line of defence: no tracebacks)
        if hasattr(error, "exit_code") and hasattr(error, "show"):  # wrong usage
            error.show()
            sys.exit(error.exit_code)
        if is_debugging:
            traceback.print_exc()
        _fail(_one_line(error), 1)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM stop a command as Ctrl-C does: nothing half-written is left."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    is_ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    )
    if is_ours:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _one_line(error: Exception) -> str:
    if isinstance(error, SetRNNError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    what = " ".join(str(error).split())[:300]
    return f"unexpected {type(error).__name__}: {what}. Add --debug to see where."


def _fail(message: str, code: int) -> NoReturn:
    stderr.print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)
