"""Imported once by the process that all children are forked from: a fork takes milliseconds."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # threads do not survive a fork

import children  # noqa: F401
import pytest  # noqa: F401
import scipy.optimize  # noqa: F401
import sklearn.feature_extraction.text  # noqa: F401
import torch
from typer.main import get_command  # noqa: F401

import setrnn.report.build
import setrnn.tagging.learn.train  # noqa: F401
from setrnn.cli.app import COMMANDS, load_command

torch.set_num_threads(1)
for name in COMMANDS:
    if name != "serve":
        load_command(name)
