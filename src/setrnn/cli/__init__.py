"""The command line: one thin function per command."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

INTERRUPTED = 130  # the exit code that shells give to Ctrl-C


def main() -> NoReturn:
    """Run the command line: 0 done, 1 a failure in one line, 2 wrong usage, 130 stopped."""
    try:
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # as Ctrl-C: no partial files
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        from setrnn.cli.app import run  # what it imports may be interrupted too

        run()
    except KeyboardInterrupt:
        command = next((f" {each}" for each in sys.argv[1:] if each.isidentifier()), "")
        sys.stderr.write(
            f"Stopped setrnn{command}. Nothing was left half written: run the same command again.\n"
        )
        sys.exit(INTERRUPTED)
