"""Options that several commands share, alone and in groups."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

import setrnn
from setrnn.cli.terminal import note
from setrnn.data.disk import check_file_place
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read import ReadOptions, make_hierarchy, read_groups, read_label_map
from setrnn.data.read.dataset import STDIN
from setrnn.data.read.delimited import DialectName
from setrnn.data.read.reader import OnBadRow, UnlabelledRows
from setrnn.data.source import Source
from setrnn.errors import ConfigError, printable

if TYPE_CHECKING:
    from setrnn import Limits


def option(
    text: str,
    metavar: str | None = None,
    *names: str,
    default: str | None = None,
    **more: Any,  # noqa: ANN401 (typer's own)
) -> Any:  # noqa: ANN401 (typer has no narrower type)
    """Declare an option: its help, what stands for its value, its name if not the parameter's.

    A boolean option without names is a flag: it has no `--no-...` beside it.

    Args:
        text: the help.
        metavar: what stands for the value in the help.
        names: the names, if they are not made of that of the parameter.
        default: what the help says about the default, in place of its value.
        more: other arguments of typer.
    """
    return typer.Option(*names, help=text, metavar=metavar, show_default=default or True, **more)


def new_file(text: str) -> Any:  # noqa: ANN401 (typer has no narrower type)
    """Declare an option that names a file to write: its place is checked before the work."""

    def check(place: Path | None) -> Path | None:
        if place is not None:
            check_file_place(place)
        return place

    return option(text, callback=check)


def argument(metavar: str, text: str) -> Any:  # noqa: ANN401 (typer has no narrower type)
    """Declare an argument by its name and its help."""
    return typer.Argument(metavar=metavar, help=text, show_default=False)


def part(default: str) -> Any:  # noqa: ANN401 (typer has no narrower type)
    """Declare the option that names one part of the data."""
    return option("The part of the data to read.", default=f"{default}, or the only one")


Model = Annotated[str, argument("MODEL", "A model folder or hub:NAME.")]
Data = Annotated[
    list[str],
    argument(
        "DATA",
        "Files, or a folder of files; a folder with the parts train, valid and test; a prepared "
        "folder; hf:NAME; or newsroom, the embedded corpus.",
    ),
]
ModelOut = Annotated[Path, option("The model folder to write.")]
BUDGET = "The time that training may take; 0 for no limit."
ValidPart = Annotated[str | None, part("valid")]
TestPart = Annotated[str | None, part("test")]
Valid = Annotated[Path | None, option("A file to use as the valid part.")]
Unlabelled = Annotated[
    list[Path] | None,
    option("A file of texts; labels in it are not read. May be repeated.", "FILE"),
]
Preset = Annotated[
    str,
    option(
        "The settings to start from: default (on a CPU this means small), small networks, those of "
        "the paper, or those for a pretrained transformer.",
        "default|small|paper|transformer",
    ),
]
ConfigFile = Annotated[Path | None, option("A JSON file with settings.")]
Settings = Annotated[
    list[str] | None,
    option(
        "Change one setting, such as training.epochs=10. May be repeated.", "KEY=VALUE", "--set"
    ),
]
Device = Annotated[
    str,
    option(
        "The device to compute on; auto uses a GPU of NVIDIA if there is one. mps, for GPUs of "
        "Apple, has not been tried.",
        "auto|cpu|cuda|mps",
    ),
]
Rule = Annotated[
    str | None,
    option(
        "How to choose the predicted set: set takes the most probable set, sequence that of the "
        "most probable sequence of labels, and f1, hamming, micro-f1 and label-f1 the best set for "
        "instance-F1, hamming loss, micro-F1 and label-F1.",
        "set|sequence|f1|hamming|micro-f1|label-f1",
        default="the rule of the measure or the method that the model was trained for",
    ),
]
Thresholds = Annotated[
    Path | None,
    option(
        "Thresholds of your own, for rule label-f1: a CSV or TSV file of label,threshold. A label "
        "is predicted if its probability reaches its threshold.",
        "FILE",
        default="those that the calibration chose",
    ),
]
BeamWidth = Annotated[
    int | None,
    option(
        "How many candidates the search of a network keeps. A wider search is slower and finds "
        "more sets.",
        "K",
        min=1,
        default="as in training",
    ),
]
CsvDialect = Annotated[
    DialectName | None,
    option(
        "How to write a .csv file: excel begins it with a byte order mark, which spreadsheets need "
        "to read UTF-8, and takes the delimiter of the input; plain has commas and no mark.",
        "excel|plain",
        default="plain if the input is UTF-8 with commas and without a mark",
    ),
]
AllowTrainingDocuments = Annotated[
    bool, option("Use the documents even if the model was trained on them.")
]
Overwrite = Annotated[bool, option("Replace what --out names, if it exists.")]
JsonFile = Annotated[Path | None, new_file("Also write the result to this JSON file.")]


def refuse_replacing(out: Path, is_asked: bool, inputs: Sequence[str] = ()) -> None:
    """Raise if a file or model exists that nobody asked to replace, before the work.

    An input is refused elsewhere, in any case.
    """
    is_input = out.resolve() in [Path(each).resolve() for each in inputs]
    if not (is_asked or is_input) and (out.is_file() or (out / "config.json").is_file()):
        raise ConfigError(f"{out} exists. Add --overwrite to replace it, or name another --out.")


def rule_of(thresholds: Path | None, rule: str | None) -> str | None:
    """Return the rule to predict by; raise if it has no thresholds to give."""
    if thresholds is None:
        return rule
    if rule is not None:
        from setrnn.systems.rules import find_rule  # it loads numpy, which the help does not need

        find_rule(rule)
    if rule not in (None, "label-f1"):
        raise ConfigError(f"--thresholds is for rule label-f1, not {rule}. Omit one of them.")
    return "label-f1"


@dataclass(frozen=True)
class Reading:
    """The options that say how to read the data."""

    panel: ClassVar[str] = "How to read the data"  # of the help
    text_field: Annotated[
        str | None,
        option("The field or column of the text; title,description joins two.", default="text"),
    ] = None
    labels_field: Annotated[
        str | None, option("The field or column of the labels.", default="labels")
    ] = None
    id_field: Annotated[str | None, option("The field or column of the id.", default="id")] = None
    features_field: Annotated[
        str | None, option("The field or column of the features.", default="features")
    ] = None
    label_separator: Annotated[
        str | None,
        option(
            "The separator between labels in a CSV or TSV cell; none if each cell is one label.",
            default=";",
        ),
    ] = None
    label_map: Annotated[
        Path | None,
        option(
            "A CSV file with the columns from and to, which renames labels. Labels that get the "
            "same name are merged; a label without a new name is dropped.",
            "FILE",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        option(
            "The encoding of text files that are not UTF-8, such as cp1252 or latin-1.",
            "NAME",
            default="UTF-8, or UTF-16 with a byte order mark",
        ),
    ] = None
    reader: Annotated[
        str | None,
        option(
            "The format of the data: jsonl, csv, excel, parquet, aapd, rcv1, reuters or "
            "label-studio.",
            "NAME",
            "--format",
            default="by the name of the file",
        ),
    ] = None
    sheet: Annotated[
        str | None, option("The sheet of an .xlsx file.", "NAME", default="the first one")
    ] = None
    unlabelled_rows: Annotated[
        UnlabelledRows,
        option(
            "What rows are whose cell of labels is empty: skip leaves them out, as not labelled "
            "yet; with empty, no label applies to them."
        ),
    ] = "stop"
    merge_duplicates: Annotated[
        bool, option("Make one document of those with the same text, with the labels of all.")
    ] = False
    on_bad_row: Annotated[OnBadRow, option("What to do with a row that cannot be read.")] = "stop"

    def source(
        self,
        data: str | Sequence[str],
        valid: Path | None = None,
        require_labels: bool = True,
        model: str | None = None,
    ) -> Source:
        """Return what to read, and how; columns that are not given are those of the model."""
        names = {each.name for each in fields(ReadOptions)} & {each.name for each in fields(self)}
        values = {name: given for name in names if (given := getattr(self, name)) is not None}
        if self.label_map is not None:
            values["label_map"] = read_label_map(self.label_map, self.encoding)
        values |= {"hierarchy": self.tree(), "require_labels": require_labels}
        options = ReadOptions(**values)
        source = Source(data, options, self.reader, valid, self.on_bad_row)
        return source if model is None else self._take_columns(source, model)

    def tree(self) -> Hierarchy | None:
        """Return the hierarchy; the options have none."""
        return None

    def _take_columns(self, source: Source, model: str) -> Source:
        from setrnn.models.hub import read_columns  # it loads what the help does not need

        kept = {name: c for name, c in read_columns(model).items() if getattr(self, name) is None}
        if not kept or not all(source.places) or STDIN in source.places:
            return source
        found = source.with_columns(kept)
        taken = {name: c for name, c in kept.items() if getattr(found.options, name) == c}
        if found is not source:
            said = " ".join(f"--{name.replace('_', '-')} '{c}'" for name, c in taken.items())
            note(printable(f"Columns as in training: {said}"))
        return found


@dataclass(frozen=True)
class TreeReading(Reading):
    """The same with a hierarchy of the labels."""

    hierarchy: Annotated[
        str | None,
        option(
            "The hierarchy of the labels: a CSV or TSV file with rows of label,parent, or "
            "newsroom for that of the embedded corpus.",
            "FILE",
        ),
    ] = None
    close_labels: Annotated[bool, option("Add to each document the labels above its own.")] = False

    def tree(self) -> Hierarchy | None:
        """Return the hierarchy."""
        return make_hierarchy(self.hierarchy, self.close_labels, self.encoding)


@dataclass(frozen=True)
class TrainingOptions:
    """The options of commands that train."""

    measure: Annotated[
        str | None,
        option(
            "The measure that the model should be best at. It chooses the epoch, the weights of "
            "the members, and the prediction rule.",
            "instance-f1|label-f1|micro-f1|subset-accuracy|hamming-loss",
            default="instance-f1",
        ),
    ] = None
    budget: Annotated[
        float | None, option(BUDGET, "MINUTES", min=0, default="10 without --method on a CPU")
    ] = None
    valid: Valid = None
    no_valid: Annotated[
        bool,
        option(
            "Train on all documents if DATA has no valid part. Nothing is chosen or calibrated "
            "then.",
        ),
    ] = False
    preset: Preset = "default"
    config: ConfigFile = None
    settings: Settings = None
    device: Device = "auto"
    seed: Annotated[
        int | None,
        option(
            "The random seed. The same seed gives the same model, unless the budget ends the "
            "training.",
            default="0",
        ),
    ] = None
    resume: Annotated[
        bool,
        option(
            "Continue the stopped run in OUT.run. If its --budget is used up, its best epoch so "
            "far becomes the model."
        ),
    ] = False

    keep_run: Annotated[
        bool, option("Keep OUT.run, the checkpoints and members, once the model is written.")
    ] = False
    overwrite: Overwrite = False

    def may_replace(self, out: Path) -> bool:
        """Return whether a model may be replaced, or is continued."""
        from setrnn.training.run_folder import run_folder_of  # it loads torch

        return self.overwrite or (self.resume and run_folder_of(out).exists())

    def arguments(self) -> dict[str, Any]:
        """Return them as the arguments of `setrnn.train` and `setrnn.distil`."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        cut_valid = not values.pop("no_valid")
        del values["overwrite"]
        return {**values, "cut_valid": cut_valid, "settings": self.settings or []}


@dataclass(frozen=True)
class StudentOptions(TrainingOptions):
    """The same for a student, whose teacher has worked before."""

    budget: Annotated[float | None, option(BUDGET, "MINUTES", min=0, default="no limit")] = None


@dataclass(frozen=True)
class LimitOptions:
    """The limits on predicted sets."""

    panel: ClassVar[str] = "Limits on the predicted sets"
    min_labels: Annotated[int, option("The least number of labels in a set.", "N")] = 0
    max_labels: Annotated[int | None, option("The greatest number of labels in a set.", "N")] = None
    only_seen: Annotated[bool, option("Predict only label sets that occurred in training.")] = False
    free: Annotated[bool, option("Also predict sets that the model finds implausible.")] = False
    require: Annotated[
        list[str] | None, option("A label that every set must have. May be repeated.", "LABEL")
    ] = None
    forbid: Annotated[
        list[str] | None, option("A label that no set may have. May be repeated.", "LABEL")
    ] = None
    closed: Annotated[
        bool | None,
        option(
            "Whether each set also has the labels above its own in the model's hierarchy.",
            None,
            "--closed/--not-closed",
            default="as the labels that the model was trained on",
        ),
    ] = None
    groups: Annotated[
        Path | None,
        option(
            "Groups of labels: a CSV or TSV file with rows of label,group,rule,n. The rule is "
            "exactly or at most, for exactly or at most n labels of the group in each set.",
            "FILE",
        ),
    ] = None

    def limits(self) -> Limits:
        """Return the limits; the model checks the labels."""
        sizes = self.min_labels, self.max_labels
        labels = self.require or (), self.forbid or ()
        groups = () if self.groups is None else read_groups(self.groups)
        free = self.free or None
        return setrnn.Limits(*sizes, self.only_seen, *labels, self.closed, free, groups)


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a group of options by the options of the group.

    The groups are dataclasses; the command gets each as one argument.
    """
    given = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {}
    found = {name: (each.annotation, each.default) for name, each in given.items()}
    for name, each in given.items():
        if is_dataclass(each.annotation):
            groups[name], _ = found.pop(name)
    for group in reversed(groups.values()):  # how to read the data is said last
        hints = typing.get_type_hints(group, include_extras=True)
        for member in fields(group):
            found[member.name] = hints[member.name], member.default
            if panel := getattr(group, "panel", None):
                typing.get_args(hints[member.name])[1].rich_help_panel = panel
    for name, (kind, _) in found.items():
        value, declared = typing.get_args(kind)
        if value is bool and not declared.param_decls:  # a flag
            declared.param_decls = (f"--{name.replace('_', '-')}",)

    def expanded(**values: Any) -> None:  # noqa: ANN401 (any option)
        for name, group in groups.items():
            values[name] = group(**{each.name: values.pop(each.name) for each in fields(group)})
        command(**values)

    expanded.__name__, expanded.__doc__ = command.__name__, command.__doc__
    expanded.__annotations__ = {name: kind for name, (kind, _) in found.items()}
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in found.items()
    ]
    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return expanded
