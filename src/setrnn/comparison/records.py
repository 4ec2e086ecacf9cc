"""What a comparison keeps on disk: its documents once, and one record a run.

    DIR/
        comparison.json    the data and its test documents: labels, true sets
        runs/NAME.json     one record a run, written as soon as it ends
        models/NAME/       the trained models
        report/            tables, figures, the page

Reports are made from comparison.json and runs/ alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from setrnn import __version__
from setrnn.data.folders import whole_file
from setrnn.errors import DataError

FORMAT = 1
COMPARISON_FILE, RUNS, MODELS, REPORT = "comparison.json", "runs", "models", "report"
GIVEN = "given"  # the rule of predictions that came from elsewhere

LabelSets = Sequence[Sequence[int]]  # of each document: label ids


@dataclass(frozen=True)
class Comparison:
    """The data that all runs share: `truth` and predictions are indexes into `labels`."""

    data: str  # its name
    data_hash: str  # of the prepared data: runs on other data do not belong here
    synthetic: bool
    n_documents: Mapping[str, int]  # by split
    valid_is_cut: bool  # from train, as the data had no valid part
    labels: tuple[str, ...]  # by falling frequency in train; then those train never had
    label_counts: tuple[int, ...]  # in train
    ids: tuple[str, ...]  # of the test documents
    truth: LabelSets
    commands: tuple[str, ...] = ()  # that made it, as given
    format: int = FORMAT

    @property
    def n_labels(self) -> int:
        """Count all labels, those that train never had too."""
        return len(self.labels)

    def save(self, folder: Path) -> None:
        """Write it into the folder of the comparison."""
        _write(folder / COMPARISON_FILE, asdict(self))

    @classmethod
    def load(cls, folder: Path) -> Comparison:
        """Read it from the folder of a comparison."""
        values = _read(folder / COMPARISON_FILE)
        try:
            return cls(
                **{
                    **values,
                    **{
                        name: tuple(values[name])
                        for name in ("labels", "label_counts", "ids", "commands")
                    },
                }
            )
        except (KeyError, TypeError) as error:
            raise DataError(f"{folder / COMPARISON_FILE} is damaged: {error}.") from error


@dataclass(frozen=True)
class Costs:
    """What a run took; where several runs shared the machine, less would do alone."""

    training_seconds: float
    training_documents_per_second: float  # of all epochs, or of the whole fit of classical ones
    prediction_documents_per_second: float  # on test, by its own rule
    total_seconds: float  # with measuring by all rules
    peak_memory_bytes: int
    peak_gpu_bytes: int | None  # None without a GPU
    n_parameters: int
    n_jobs: int  # how many runs shared the machine


@dataclass(frozen=True)
class Failure:
    """Why a run has no scores."""

    kind: str  # the exception
    message: str


@dataclass(frozen=True)
class TestResults:
    """What a run predicts for each test document: what statistics and figures are made of."""

    __test__ = False  # pytest: no tests in here

    predicted: Mapping[str, LabelSets]  # by rule
    probability: Mapping[str, Sequence[float]]  # by rule: calibrated, of the predicted sets
    raw_probability: Mapping[str, Sequence[float]]  # by rule: the model's own
    # Of systems that emit labels one by one:
    order_entropy: Sequence[float | None] | None = None  # of rule set's; None below two labels
    true_orders: LabelSets | None = None  # the best order of each true set; empty if unknown


@dataclass(frozen=True)
class Record:
    """One run: how it was made, what it took, how good it is."""

    method: str  # a method's name, or that of added predictions
    seed: int
    data_hash: str
    own_rule: str
    config: Mapping[str, Any] = field(default_factory=dict)
    treatment: Mapping[str, Any] = field(default_factory=dict)  # preset, overrides, budget ...
    environment: Mapping[str, Any] = field(default_factory=dict)  # versions, device, time
    costs: Costs | None = None  # None: predictions from elsewhere
    epochs: Sequence[Mapping[str, Any]] = ()
    best_epoch: int | None = None
    trials: Sequence[Mapping[str, Any]] = ()  # of --tune
    scores: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    test: TestResults | None = None  # None: it failed
    cases: Sequence[Mapping[str, Any]] = ()  # documents explained
    failure: Failure | None = None
    is_added: bool = False
    format: int = FORMAT
    setrnn: str = __version__

    @property
    def name(self) -> str:
        """What the run is called, and its file."""
        return run_name(self.method, self.seed)

    @property
    def rules(self) -> list[str]:
        """The rules it predicted by."""
        return [] if self.test is None else list(self.test.predicted)

    def save(self, folder: Path) -> Path:
        """Write it into the folder of the comparison."""
        file = folder / RUNS / f"{self.name}.json"
        _write(file, asdict(self))
        return file


def run_name(method: str, seed: int) -> str:
    """Name a run."""
    return f"{method}-{seed}"


def load_record(file: Path) -> Record:
    """Read a record; refuse one of another version."""
    values = _read(file)
    try:
        for name, kind in (("costs", Costs), ("test", TestResults), ("failure", Failure)):
            if values[name] is not None:
                values[name] = kind(**values[name])
        return Record(**values)
    except (KeyError, TypeError) as error:
        raise DataError(f"{file} is damaged: {error}. Remove it, and run it again.") from error


def load_records(folder: Path, comparison: Comparison) -> list[Record]:
    """Read all records of a comparison, by name; refuse those of other data, and twins."""
    found: dict[str, Path] = {}
    records = []
    for file in sorted((folder / RUNS).glob("*.json")):
        record = load_record(file)
        if record.data_hash != comparison.data_hash:
            raise DataError(
                f"{file} is a run on other data than {folder / COMPARISON_FILE}. Remove it."
            )
        if record.name in found:
            raise DataError(f"{file} and {found[record.name]} are both the run '{record.name}'.")
        found[record.name] = file
        records.append(record)
    return records


def _write(file: Path, values: Mapping[str, Any]) -> None:
    with whole_file(file) as stream:
        stream.write((json.dumps(values, ensure_ascii=False) + "\n").encode())


def _read(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise DataError(f"{file} is not JSON: {error}.") from error
    if not isinstance(values, dict) or "format" not in values:
        raise DataError(f"{file} is not part of a comparison.")
    if values["format"] != FORMAT:
        raise DataError(
            f"{file} was written by another version of setrnn ({values.get('setrnn', 'unknown')}): "
            "run it again with this one, or read it with that one."
        )
    return values
