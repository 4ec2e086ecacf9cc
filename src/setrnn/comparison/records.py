"""The files of a comparison: its test documents once, and one record per run.

    DIR/
        comparison.json    the data and its test documents: labels, true sets
        runs/NAME.json     one record per run, written as soon as it ends
        models/NAME/       the trained models
        report/            tables, figures, the page

Reports are made from comparison.json and runs/ alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from setrnn import __version__
from setrnn.config import settings_hash
from setrnn.data.disk import whole_file
from setrnn.errors import DataError
from setrnn.methods import METHODS
from setrnn.progress import log
from setrnn.training.pool import Failure as Failure

FORMAT = 5
COMPARISON_FILE, RUNS, MODELS, REPORT = "comparison.json", "runs", "models", "report"
SEAL = "seal"  # of a file: a hash of its other values
GIVEN = "given"  # the rule of predictions that were added

LabelSets = Sequence[Sequence[int]]  # label ids per document


class DamagedFileError(DataError):
    """A file of a comparison that was not written completely."""


@dataclass(frozen=True)
class Comparison:
    """The data that all runs share; `truth` and predictions are indices into `labels`."""

    data: str  # the name of the data
    data_hash: str  # of the prepared data: runs on other data are refused
    synthetic: bool
    n_documents: Mapping[str, int]  # per split
    valid_is_cut: bool  # from train, as the data had no valid part
    labels: tuple[str, ...]  # in descending order of frequency in train; then those of test alone
    label_counts: tuple[int, ...]  # in train
    ids: tuple[str, ...]  # of the test documents
    truth: LabelSets
    commands: tuple[str, ...] = ()  # the commands that made the comparison
    unseen_sets: tuple[int, ...] = ()  # the test documents whose true set is not in train
    mean_words: Mapping[str, float] = field(default_factory=dict)  # read per document, by split
    parents: Mapping[str, Sequence[str]] | None = None  # of labels; None without a hierarchy
    format: int = FORMAT

    @property
    def n_labels(self) -> int:
        """The number of labels, with those that only test has."""
        return len(self.labels)

    def save(self, folder: Path) -> None:
        """Write the file of the comparison into its folder."""
        _write(folder / COMPARISON_FILE, asdict(self))

    @classmethod
    def load(cls, folder: Path) -> Comparison:
        """Read the file of a comparison from its folder."""
        try:
            values = _read(folder / COMPARISON_FILE)
            for name in ("labels", "label_counts", "ids", "commands", "unseen_sets"):
                values[name] = tuple(values[name])
            return cls(**values)
        except (KeyError, TypeError, DamagedFileError) as error:
            raise DamagedFileError(
                f"{folder / COMPARISON_FILE} is damaged. Remove it and give the same 'setrnn "
                "compare' again: it makes the file, and the runs are kept."
            ) from error


@dataclass(frozen=True)
class Costs:
    """The costs of a run; they are higher where several runs shared the machine."""

    training_seconds: float
    training_documents_per_second: float  # of all epochs, or of the whole fit of classical ones
    prediction_documents_per_second: float  # on some of test, by its own rule
    total_seconds: float  # with measuring by all rules
    peak_memory_bytes: int
    peak_gpu_bytes: int | None  # None without a GPU
    n_parameters: int
    n_jobs: int  # the number of runs that shared the machine


@dataclass(frozen=True)
class SetSums:
    """log p of some true sets: the sum over the orders that searches find, and over all orders."""

    documents: Sequence[int]  # of test
    widths: Sequence[int]  # K of the searches
    found: Sequence[Sequence[float]]  # by width, then by document
    exact: Sequence[float]  # by document


@dataclass(frozen=True)
class TestResults:
    """The predictions of a run for each test document; statistics and figures use them."""

    __test__ = False  # for pytest: not a test class

    predicted: Mapping[str, LabelSets]  # by rule
    probability: Mapping[str, Sequence[float]]  # by rule: calibrated, of the predicted sets
    # log p of each true set by the model, at least log 1e-12; None if it has an unknown label.
    true_log_probs: Sequence[float | None] | None = None
    # Only of systems that emit labels one by one:
    order_entropy: Sequence[float | None] | None = None  # of rule "set"; None below two labels
    set_sums: SetSums | None = None  # if the probability of a set depends on the search


@dataclass(frozen=True)
class Record:
    """One run: its settings, its costs and its scores."""

    method: str  # the name of a method, or of added predictions
    seed: int
    data_hash: str
    own_rule: str
    config: Mapping[str, Any] = field(default_factory=dict)
    treatment: Mapping[str, Any] = field(default_factory=dict)  # preset, budget, ...
    environment: Mapping[str, Any] = field(default_factory=dict)  # versions, device, time
    costs: Costs | None = None  # None for added predictions
    epochs: Sequence[Mapping[str, Any]] = ()
    best_epoch: int | None = None
    scores: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    test: TestResults | None = None  # None if the run failed
    cases: Sequence[Mapping[str, Any]] = ()  # documents whose set and sequence differ
    failure: Failure | None = None
    is_added: bool = False
    format: int = FORMAT
    setrnn: str = __version__

    @property
    def name(self) -> str:
        """The name of the run and of its file."""
        return run_name(self.method, self.seed)

    def with_own_sets(self, change: Callable[[LabelSets], LabelSets]) -> Record:
        """Return the record with changed test sets, those by its own rule alone; no other values.

        Without such sets, the record has no test results.
        """
        sets = {} if self.test is None else self.test.predicted
        if self.own_rule not in sets:
            return replace(self, test=None)
        own = {self.own_rule: change(sets[self.own_rule])}
        return replace(self, test=TestResults(own, {}))

    def save(self, folder: Path) -> Path:
        """Write the record into the folder of the comparison; return the file."""
        file = folder / RUNS / f"{self.name}.json"
        _write(file, asdict(self))
        return file


def run_name(method: str, seed: int) -> str:
    """Return the name of a run."""
    return f"{method}-{seed}"


def order_systems(records: Iterable[Record]) -> list[str]:
    """List the systems in the order of the methods, then those that were added."""
    names = list(dict.fromkeys(record.method for record in records))
    known = [name for name in METHODS if name in names]
    return known + [name for name in names if name not in METHODS]


def load_record(file: Path) -> Record:
    """Read a record; refuse the record of another version."""
    values = _read(file)
    try:
        for name, kind in (("costs", Costs), ("test", TestResults), ("failure", Failure)):
            if values[name] is not None:
                values[name] = kind(**values[name])
        test = values["test"]
        if test is not None and test.set_sums is not None:
            values["test"] = replace(test, set_sums=SetSums(**test.set_sums))
        return Record(**values)
    except (KeyError, TypeError) as error:
        raise DamagedFileError(f"{file} is damaged: {error}.") from error


def load_records(
    folder: Path, comparison: Comparison, on_damage: Callable[[str], None] = log.warning
) -> list[Record]:
    """Read all records of a comparison; refuse those of other data.

    A record that was not written completely is left out, as if the run was still to be done;
    `on_damage` is called with a message.
    """
    records = []
    for file in sorted((folder / RUNS).glob("*.json")):
        try:
            record = load_record(file)
        except DamagedFileError:
            on_damage(
                f"{file} is damaged: the run {file.stem} counts as missing. 'setrnn compare' with "
                "its method and seed makes it again."
            )
            continue
        if record.data_hash != comparison.data_hash:
            raise DataError(
                f"{file} is a run on other data than {folder / COMPARISON_FILE}. Remove it."
            )
        records.append(record)
    return records


def _write(file: Path, values: Mapping[str, Any]) -> None:
    written = json.loads(json.dumps(values))  # what a reader will find: lists, names as strings
    text = json.dumps({**written, SEAL: settings_hash(written)}, ensure_ascii=False)
    with whole_file(file) as stream:
        stream.write((text + "\n").encode())


def _read(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{file} is not JSON: {error}.") from error
    if not isinstance(values, dict) or "format" not in values:
        raise DamagedFileError(f"{file} is not part of a comparison.")
    if values["format"] != FORMAT:
        raise DataError(
            f"{file} was written by another version of setrnn ({values.get('setrnn', 'unknown')}): "
            "run it again, or use that version."
        )
    if values.pop(SEAL, None) != settings_hash(values):
        raise DamagedFileError(f"{file} is damaged, or was changed by hand.")
    return values
