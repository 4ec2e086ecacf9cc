"""The command line: one thin function per command."""

from __future__ import annotations

from setrnn.cli.app import main

__all__ = ["main"]
