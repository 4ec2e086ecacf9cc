"""Options that several commands share, alone and in groups."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import setrnn
from setrnn.data.cache import Source
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read import ReadOptions, make_hierarchy, read_label_map
from setrnn.errors import ConfigError

if TYPE_CHECKING:
    from setrnn import Limits
    from setrnn.data.read.reader import OnBadRow


def option(
    text: str,
    metavar: str | None = None,
    *names: str,
    default: str | None = None,
    **more: Any,  # noqa: ANN401 (typer's own)
) -> Any:  # noqa: ANN401 (typer has no narrower type)
    """Declare an option: its help, what stands for its value, its name if not the parameter's.

    Args:
        text: the help.
        metavar: what stands for the value in the help.
        names: the names, if they are not made of that of the parameter.
        default: what the help says about the default, in place of its value.
        more: other arguments of typer.
    """
    return typer.Option(*names, help=text, metavar=metavar, show_default=default or True, **more)


def argument(metavar: str, text: str) -> Any:  # noqa: ANN401 (typer has no narrower type)
    """Declare an argument by its name and its help."""
    return typer.Argument(metavar=metavar, help=text, show_default=False)


Model = Annotated[Path, argument("MODEL", "A model folder or hub:NAME.")]
Data = Annotated[
    list[str],
    argument(
        "DATA",
        "A file, several, or a folder of files; a folder with train/valid/test, a prepared "
        "folder, hf:NAME, or newsroom.",
    ),
]
ModelOut = Annotated[Path, option("The model folder to write.")]
Valid = Annotated[Path | None, option("A file to use as the valid part.")]
Unlabelled = Annotated[
    list[Path] | None,
    option(
        "A file of texts without labels; may be repeated. Labels in it are not read.",
        "FILE",
        "--unlabelled",
    ),
]
Preset = Annotated[
    str,
    option(
        "The settings to start from: default, those of the paper, or those for a pretrained "
        "transformer.",
        "default|paper|transformer",
    ),
]
ConfigFile = Annotated[Path | None, option("A JSON file with settings.", None, "--config")]
Settings = Annotated[
    list[str] | None,
    option(
        "Change one setting, such as training.epochs=10; may be repeated.", "KEY=VALUE", "--set"
    ),
]
Device = Annotated[
    str, option("The device to compute on; auto uses a GPU if there is one.", "auto|cpu|cuda")
]
Resume = Annotated[
    bool,
    option(
        "Continue the run in OUT.run, which was stopped. With a --budget that is used up "
        "already, its best epoch so far becomes the model.",
        None,
        "--resume",
    ),
]
Rule = Annotated[
    str | None,
    option(
        "How to choose the predicted set: the most probable set (set), the set of the most "
        "probable sequence (sequence; its probability is the sequence's), or the best set for a "
        "measure: instance-F1 (f1), hamming loss (hamming), micro-F1, label-F1.",
        "set|sequence|f1|hamming|micro-f1|label-f1",
        default="the model's own: that of the measure it was trained for, or of its method",
    ),
]
BeamWidth = Annotated[
    int | None,
    option(
        "How many candidates the search of a network keeps; with more it is slower and finds "
        "more sets.",
        "K",
        min=1,
        default="as in training",
    ),
]
AllowTrainingDocuments = Annotated[
    bool,
    option(
        "Use the documents even if the model was trained on them.",
        None,
        "--allow-training-documents",
    ),
]
JsonFile = Annotated[Path | None, option("Also write the result to this JSON file.")]


@dataclass(frozen=True)
class Reading:
    """The options that say how to read the data."""

    text_field: Annotated[
        str, option("The field or column with the text; title,description joins several.")
    ] = "text"
    labels_field: Annotated[str, option("The field or column with the labels.")] = "labels"
    id_field: Annotated[str, option("The field or column with the id.")] = "id"
    features_field: Annotated[str, option("The field or column with the features.")] = "features"
    label_separator: Annotated[
        str,
        option(
            "The separator between labels in a CSV or TSV cell; none if each cell is one label."
        ),
    ] = ";"
    label_map: Annotated[
        Path | None,
        option(
            "A CSV file with the columns from and to: other names for labels. Two labels with one "
            "name are merged; one without a name is dropped.",
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
            "The format of the data: jsonl, csv, parquet, aapd, rcv1, reuters or label-studio.",
            None,
            "--format",
            default="from the file name",
        ),
    ] = None
    on_bad_row: Annotated[
        str, option("What to do with a row that cannot be read.", "stop|skip")
    ] = "stop"

    def source(
        self, data: str | Sequence[str], valid: Path | None = None, require_labels: bool = True
    ) -> Source:
        """Return what to read, and how."""
        if self.on_bad_row not in ("stop", "skip"):
            raise ConfigError(f"--on-bad-row must be stop or skip, got '{self.on_bad_row}'.")
        on_bad_row: OnBadRow = "skip" if self.on_bad_row == "skip" else "stop"
        names = {each.name for each in fields(ReadOptions)} & {each.name for each in fields(self)}
        values = {name: getattr(self, name) for name in names}
        if self.label_map is not None:
            values["label_map"] = read_label_map(self.label_map, self.encoding)
        values["hierarchy"] = self.read_hierarchy()
        options = ReadOptions(**values, require_labels=require_labels)
        return Source(data, options, self.reader, valid, on_bad_row)

    def read_hierarchy(self) -> Hierarchy | None:
        """Return the hierarchy of the labels, if there is one."""
        return None


@dataclass(frozen=True)
class TreeReading(Reading):
    """The same with a hierarchy of the labels."""

    hierarchy: Annotated[
        str | None,
        option(
            "A CSV or TSV file of label,parent: the hierarchy of the labels. newsroom is that of "
            "the embedded corpus.",
            "FILE",
        ),
    ] = None
    close_labels: Annotated[
        bool,
        option(
            "Add to each document that is read the labels above its own in the hierarchy.",
            None,
            "--close-labels",
        ),
    ] = False

    def read_hierarchy(self) -> Hierarchy | None:
        """Return the hierarchy of the labels, if there is one."""
        return make_hierarchy(self.hierarchy, self.close_labels, self.encoding)


@dataclass(frozen=True)
class TrainingOptions:
    """The options of commands that train."""

    measure: Annotated[
        str | None,
        option(
            "What the model should be good at. It chooses the epoch, the weights of members, and "
            "the rule that predicts.",
            "instance-f1|label-f1|micro-f1|subset-accuracy|hamming-loss",
            default="instance-f1",
        ),
    ] = None
    budget: Annotated[
        float | None,
        option(
            "The time that training may take; 0 for no limit.",
            "MINUTES",
            min=0,
            default="10 for train without --method on a CPU, otherwise no limit",
        ),
    ] = None
    valid: Valid = None
    no_valid: Annotated[
        bool,
        option(
            "If DATA has no valid part, train on all documents, and choose and calibrate nothing; "
            "otherwise a tenth is set aside, or more of few documents.",
            None,
            "--no-valid",
        ),
    ] = False
    preset: Preset = "default"
    config: ConfigFile = None
    settings: Settings = None
    device: Device = "auto"
    seed: Annotated[
        int | None,
        option(
            "The random seed; the same seed gives the same model, if no budget shortens the "
            "training.",
            default="0",
        ),
    ] = None
    resume: Resume = False

    def arguments(self) -> dict[str, Any]:
        """Return them as the arguments of `setrnn.train` and `setrnn.distil`."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        cut_valid = not values.pop("no_valid")
        return {**values, "cut_valid": cut_valid, "settings": self.settings or []}


@dataclass(frozen=True)
class LimitOptions:
    """The limits on predicted sets."""

    min_labels: Annotated[int, option("The least number of labels in a set.", "N")] = 0
    max_labels: Annotated[int | None, option("The greatest number of labels in a set.", "N")] = None
    only_seen: Annotated[
        bool, option("Predict only label sets that occurred in training.", None, "--only-seen")
    ] = False
    free: Annotated[
        bool,
        option("Predict any set, also one that the model does not find plausible.", None, "--free"),
    ] = False
    require: Annotated[
        list[str] | None, option("A label that every set must have; may be repeated.", "LABEL")
    ] = None
    forbid: Annotated[
        list[str] | None, option("A label that no set may have; may be repeated.", "LABEL")
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

    def limits(self) -> Limits:
        """Return the limits; the model checks the labels."""
        sizes = self.min_labels, self.max_labels
        labels = self.require or (), self.forbid or ()
        return setrnn.Limits(*sizes, self.only_seen, *labels, self.closed, self.free or None)


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
        found |= {each.name: (hints[each.name], each.default) for each in fields(group)}

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
