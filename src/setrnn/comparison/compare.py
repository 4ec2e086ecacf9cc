"""Train many systems on the same data and measure them: `setrnn.compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from setrnn.comparison.added import check_names, make_added_record
from setrnn.comparison.plan import (
    Pool,
    find_done,
    find_methods,
    list_needed,
    list_seeds,
    refuse_unequal_treatment,
    run_jobs_on_ray,
    run_tasks,
)
from setrnn.comparison.records import (
    COMPARISON_FILE,
    MODELS,
    REPORT,
    RUNS,
    Comparison,
    Failure,
    Record,
    load_records,
    order_systems,
)
from setrnn.comparison.run import Task
from setrnn.config import Config, settings_hash
from setrnn.data.disk import locked
from setrnn.data.hierarchy import HIERARCHICAL_MEASURES
from setrnn.data.prepared import Prepared
from setrnn.data.read.label_files import Parents
from setrnn.data.source import Source
from setrnn.errors import ConfigError, DataError, StoppedError
from setrnn.methods import find_method
from setrnn.metrics import MEASURES
from setrnn.model.devices import n_cores
from setrnn.progress import OnProgress, ignore_progress
from setrnn.tagging.learn.data import (
    Data,
    Settings,
    choose_preset,
    list_overrides,
    make_source,
    make_vectors,
    open_training_data,
    read_settings,
)
from setrnn.tagging.learn.train import check_training
from setrnn.tagging.ray_cluster import choose_device, connect, count_room
from setrnn.training.pool import run_jobs

N_SEEDS = 3
MAX_RUNS = 10_000  # per method
# A small network that two cores train in a minute or two; chosen on the valid part of newsroom.
QUICK_SETTINGS = {
    "vectors.dimensions": 100,
    "model.encoder_units": 96,
    "model.decoder_units": 96,
    "model.decoder_layers": 1,
    "model.dropout": 0.2,
    "model.word_dropout": 0.0,
    "search.beam_width": 6,
    "training.epochs": 5,
    "training.batch_size": 32,
    "training.learning_rate": 4e-3,
}
QUICK_SEEDS, QUICK_JOBS = 1, 2
PREPARED = "prepared"  # prepared data may be kept in the folder of the comparison too


@dataclass(frozen=True, repr=False)
class ComparisonResult:
    """The runs of a comparison, read from its folder."""

    folder: Path
    comparison: Comparison  # the data that all runs share
    records: Sequence[Record]  # one per run, also of earlier calls with the same folder

    def __repr__(self) -> str:
        n_failed = len(self.failures)
        return f"<ComparisonResult {self.folder}: {len(self.records)} runs, {n_failed} failed>"

    @property
    def failures(self) -> dict[str, Failure]:
        """The failed runs by their names."""
        return {each.name: each.failure for each in self.records if each.failure is not None}

    def mean_scores(self) -> dict[str, dict[str, float]]:
        """Return the measures on test by each system's own rule: the mean over its seeds.

        If the labels have a hierarchy, the hierarchical measures are among them.
        """
        succeeded = [record for record in self.records if record.failure is None]
        means = {}
        for method in order_systems(succeeded):
            runs = [record for record in succeeded if record.method == method]
            rows = [record.scores["test"][record.own_rule] for record in runs]
            keys = [*MEASURES, *(key for key in HIERARCHICAL_MEASURES if key in rows[0])]
            means[method] = {key: sum(row[key] for row in rows) / len(rows) for key in keys}
        return means


def compare(
    data: Data,
    methods: str | Sequence[str] = "all",
    *,
    out: str | Path,
    seeds: int | None = None,
    jobs: int | None = None,
    budget: float | None = None,
    added: Mapping[str, str | Path] | None = None,
    quick: bool = False,
    valid: str | Path | None = None,
    hierarchy: Parents | None = None,
    close_labels: bool = False,
    preset: str = "default",
    config: Config | str | Path | None = None,
    settings: Settings = (),
    device: str = "auto",
    ray: str | None = None,
    gpus_per_run: float = 0.0,
    command: str | None = None,
    on_progress: OnProgress = ignore_progress,
) -> ComparisonResult:
    """Train systems on the same data, and measure each on the test part by every rule.

    Each run is a process of its own and leaves a record in `out` as soon as it ends. A run that
    fails does not stop the others. After Ctrl-C, which raises `StoppedError`, the same call
    continues the comparison. `setrnn.build_report(out)` makes tables, figures and a page from the
    records. A script must call this function under `if __name__ == "__main__":`, since every new
    process imports the script.

    Args:
        data: a file, a folder with train/valid/test files, a prepared folder, `hf:NAME` or
            "newsroom"; a `Source` says how to read it. Without a valid part, one is cut from train.
        methods: "all", "later", or names of `setrnn.methods.METHODS`, as a list or as "a,b,c";
            mixture mixes the others.
        out: the folder of the comparison; a comparison already there is continued.
        seeds: runs per network, with seeds 0 to N-1; 3 by default, 1 with `quick`.
        jobs: runs at a time; 1 by default, 2 with `quick`, and as many as there is room for with
            `ray`.
        budget: minutes of training per run, after which its best epoch so far counts.
        added: files with predictions of other tools, by the names of their rows.
        quick: small settings for a first look.
        valid: a file that becomes the valid part.
        hierarchy: the parents of labels, as in `train`: predictions are closed if the training
            labels are, and the hierarchical measures are computed.
        close_labels: whether to add to each document the labels above its own.
        preset: the settings to start from: default (on a CPU small), small, paper or transformer.
        config: all settings, or a JSON file of settings to apply after the preset.
        settings: single settings by their dotted names, such as `{"training.epochs": 10}`, or as
            `["training.epochs=10"]`.
        device: where to compute: auto, cpu, cuda or mps.
        ray: run on a Ray cluster: "auto", "local" or its address. All nodes must see `out`, where
            the data is prepared then.
        gpus_per_run: the GPUs of each run on a Ray cluster, such as 0.25; 0: on the CPU.
        command: the command to record as the origin of the comparison; this call by default.
        on_progress: called with the progress.

    Example:
        >>> import setrnn, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = setrnn.compare(
        ...         "newsroom", ["br"], out=folder, settings={"classical.max_pairs": 0}
        ...     )
        >>> round(result.mean_scores()["br"]["instance_f1"], 1)
        0.9
    """
    if budget is not None and not 0 < budget < float("inf"):
        raise ConfigError(f"budget must be above 0 minutes, got {budget:g}.")
    for name, value in (("seeds", seeds), ("jobs", jobs)):
        if value is not None and not 1 <= value <= MAX_RUNS:
            raise ConfigError(f"{name} must be at least 1 and at most {MAX_RUNS:,}, got {value}.")
    device = choose_device(device, ray, gpus_per_run, "--gpus-per-run")
    if quick and (preset != "default" or config is not None):
        raise ConfigError("quick has settings of its own: omit preset and config.")
    overrides = [*list_overrides(QUICK_SETTINGS if quick else ()), *list_overrides(settings)]
    if not (quick or gpus_per_run or isinstance(config, Config)):  # these GPUs are of a cluster
        preset = choose_preset(preset, device)
    config = read_settings(preset, config, overrides).config
    names = find_methods(methods)
    source = make_source(data, valid, hierarchy, close_labels)
    folder = Path(out)
    files = {name: Path(file) for name, file in (added or {}).items()}
    check_names(list(files))
    refuse_other_folder(folder)
    for method in names:
        if not find_method(method).is_mixture:
            check_training(find_method(method), config, device, resume=False)
    cache = None
    n_jobs = jobs or (min(QUICK_JOBS, n_cores()) if quick else 1)
    pool: Pool = partial(run_jobs, n_jobs=n_jobs, n_threads=max(1, n_cores() // n_jobs))
    if ray is not None:
        connect(ray)
        n_jobs = jobs or count_room(gpus_per_run)
        pool = partial(run_jobs_on_ray, n_jobs=jobs, gpus_per_job=gpus_per_run)
        folder = folder.absolute()
        cache = folder / PREPARED  # all nodes see it
    source = make_comparable(source)
    prepared, config = open_training_data(source, config, overrides, cache, on_progress)
    n_seeds = seeds or (QUICK_SEEDS if quick else N_SEEDS)
    if not any(find_method(method).is_network for method in names):
        n_seeds = 1
    tasks = [
        Task(
            prepared=prepared.folder.absolute(),
            folder=folder,
            method=method,
            config=replace(config, seed=seed),
            device=device,
            budget=budget,
            n_jobs=n_jobs,
            treatment={"preset": preset, "settings": overrides},
            needed=list_needed(method, seed, names),
        )
        for method in names
        for seed in list_seeds(method, n_seeds)
    ]
    if command is None:
        command = f"setrnn.compare({str(source)!r}, {names!r}, out={str(out)!r}, ...)"
    # A second comparison in the same folder would do the same runs, and lose records.
    busy = " Wait until it ends, or choose another --out."
    with locked(folder / COMPARISON_FILE, wait=False, way_out=busy):
        return _compare_in_folder(prepared, tasks, files, command, pool, on_progress)


def _compare_in_folder(
    prepared: Prepared,
    tasks: Sequence[Task],
    added: Mapping[str, Path],
    command: str,
    pool: Pool,
    on_progress: OnProgress,
) -> ComparisonResult:
    """Run the tasks that are not done, beside the records in their folder."""
    folder, config = tasks[0].folder, tasks[0].config
    comparison = open_comparison(folder, prepared)
    records = load_records(folder, comparison)
    refuse_unequal_treatment(records, tasks[0])
    for record in [make_added_record(comparison, *each) for each in added.items()]:
        record.save(folder)  # once all are read
    if command not in comparison.commands:
        comparison = replace(comparison, commands=(*comparison.commands, command))
        comparison.save(folder)
    try:
        if any(find_method(task.method).is_network for task in tasks):
            make_vectors(prepared, config, on_progress)  # before the runs, which share them
        run_tasks(comparison, tasks, find_done(records, tasks), pool, on_progress)
    except KeyboardInterrupt:
        raise StoppedError(
            f"Stopped. {folder} keeps what is done: the same command continues."
        ) from None
    return ComparisonResult(folder, comparison, load_records(folder, comparison))


def make_comparable(source: Source) -> Source:
    """Let a missing valid part be cut from train; refuse data without another part."""
    place = source.prepared_folder
    if place is None:
        dataset = source.open()
        dataset.require("train")
        if "test" not in dataset.splits:
            kept = " --valid 0" if "valid" in dataset.splits else ""
            raise DataError(
                f"{dataset.place} has no 'test' part to compare on: found "
                f"{', '.join(sorted(dataset.splits))}. Cut one: setrnn data split {dataset.place} "
                f"FOLDER{kept}, then compare FOLDER."
            )
        return replace(source, cut_valid=True)
    for name in ("train", "valid", "test"):  # its vocabulary is that of all of train: no cut
        if not Prepared(place).description["n_documents"].get(name):
            raise DataError(
                f"{place} was prepared without a '{name}' part, which a comparison needs. Give the "
                "data it was made from: a missing valid part is cut from train."
            )
    return source


def describe(prepared: Prepared) -> Comparison:
    """Collect from the prepared data what all runs share."""
    n_documents: dict[str, int] = prepared.description["n_documents"]
    test = prepared.split("test")
    if test.unknown is not None:
        raise DataError(
            f"{int((~test.is_complete).sum()):,} test documents of {prepared.name} have labels "
            "that are not known, and systems are compared on complete ones. Leave them out of "
            "test; setrnn evaluate can measure a model on them."
        )
    truth = [row.tolist() for row in test.labels]
    seen = {frozenset(row.tolist()) for row in prepared.seen_sets()}
    return Comparison(
        data=prepared.name,
        data_hash=settings_hash(prepared.description),
        synthetic=prepared.is_synthetic,
        n_documents=dict(n_documents),
        valid_is_cut=prepared.valid_is_cut,
        labels=(*prepared.labels.names, *prepared.unseen_labels),
        label_counts=(*map(int, prepared.labels.counts), *[0] * len(prepared.unseen_labels)),
        ids=tuple(test.ids(0, len(test))),
        truth=truth,
        unseen_sets=tuple(row for row, each in enumerate(truth) if frozenset(each) not in seen),
        mean_words={
            split: round(float(prepared.split(split).tokens.lengths.mean()), 2)
            for split, n in n_documents.items()
            if n
        },
        parents=None if prepared.hierarchy is None else dict(prepared.hierarchy.parents),
    )


def refuse_other_folder(folder: Path) -> None:
    """Refuse a folder that holds anything other than a comparison."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file. Choose another --out.")
    if not folder.exists() or (folder / COMPARISON_FILE).is_file():
        return
    others = {each.name for each in folder.iterdir() if not each.name.startswith(".")}
    if not others <= {RUNS, MODELS, REPORT, PREPARED}:
        raise DataError(f"{folder} exists and is not a comparison. Choose another --out.")


def open_comparison(folder: Path, prepared: Prepared) -> Comparison:
    """Create the file of a comparison, or open an existing one."""
    described = describe(prepared)
    if not (folder / COMPARISON_FILE).is_file():
        described.save(folder)
        return described
    comparison = Comparison.load(folder)
    if comparison.data_hash != described.data_hash:
        raise DataError(
            f"{folder} compares systems on other data ({comparison.data}), or on the same data "
            "with other text settings. Choose another --out."
        )
    return comparison
