"""The command line: one thin function a command."""

from __future__ import annotations

from setrnn.cli.app import main

__all__ = ["main"]
