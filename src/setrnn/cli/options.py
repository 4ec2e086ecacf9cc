"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setrnn.data.cache import Source
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read import ReadOptions, make_hierarchy, read_label_map
from setrnn.errors import ConfigError

if TYPE_CHECKING:
    from setrnn.data.read.reader import OnBadRow

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="A file, several, or a folder of files; a folder with train/valid/test, a prepared "
        "folder, hf:NAME, or newsroom.",
        show_default=False,
    ),
]
TextField = Annotated[
    str, typer.Option(help="The field or column with the text; title,description joins several.")
]
LabelsField = Annotated[str, typer.Option(help="The field or column with the labels.")]
IdField = Annotated[str, typer.Option(help="The field or column with the id.")]
FeaturesField = Annotated[str, typer.Option(help="The field or column with the features.")]
UnknownField = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The field or column with labels that are not known: they count neither for nor "
        "against a document.",
        show_default="unknown, if there is one",
    ),
]
CompleteField = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The field or column that is false if labels that are not given are not known.",
        show_default="complete, if there is one",
    ),
]
LabelSeparator = Annotated[
    str,
    typer.Option(
        help="The separator between labels in a CSV or TSV cell; none if each cell is one label."
    ),
]
LabelMap = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A CSV file with the columns from and to: other names for labels. Two labels with one "
        "name are merged; one without a name is dropped.",
        show_default=False,
    ),
]
HierarchyFile = Annotated[
    str | None,
    typer.Option(
        "--hierarchy",
        metavar="FILE",
        help="A CSV or TSV file of label,parent: the hierarchy of the labels. newsroom is that of "
        "the embedded corpus.",
        show_default=False,
    ),
]
CloseLabels = Annotated[
    bool,
    typer.Option(
        "--close-labels",
        help="Add to each document that is read the labels above its own in the hierarchy.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The encoding of text files that are not UTF-8, such as cp1252 or latin-1.",
        show_default="UTF-8, or UTF-16 with a byte order mark",
    ),
]
IdPrefix = Annotated[
    str,
    typer.Option(
        metavar="auto|file|none",
        help="Whether ids begin with the name of their file: if an earlier file has the same id, "
        "always, or never.",
    ),
]
SourceFeature = Annotated[
    bool,
    typer.Option("--source-feature", help="Give each document the name of its file as a feature."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="The format of the data: jsonl, csv, parquet, aapd, rcv1, reuters or label-studio.",
        show_default="from the file name",
    ),
]
SkipBadRows = Annotated[
    str,
    typer.Option(
        "--on-bad-row", metavar="stop|skip", help="What to do with a row that cannot be read."
    ),
]
Valid = Annotated[
    Path | None, typer.Option(help="A file to use as the valid part.", show_default=False)
]
NoValid = Annotated[
    bool,
    typer.Option(
        "--no-valid",
        help="If DATA has no valid part, train on all documents, and choose and calibrate nothing; "
        "otherwise a tenth is set aside, or more of few documents.",
    ),
]
Unlabelled = Annotated[
    list[Path] | None,
    typer.Option(
        "--unlabelled",
        metavar="FILE",
        help="A file of texts without labels; may be repeated. Labels in it are not read.",
        show_default=False,
    ),
]
Preset = Annotated[
    str,
    typer.Option(
        metavar="default|paper|transformer",
        help="The settings to start from: default, those of the paper, or those for a pretrained "
        "transformer.",
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="A JSON file with settings.", show_default=False)
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change one setting, such as training.epochs=10; may be repeated.",
    ),
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda",
        help="The device to compute on; auto uses a GPU if there is one.",
    ),
]
Measure = Annotated[
    str | None,
    typer.Option(
        metavar="instance-f1|label-f1|micro-f1|subset-accuracy|hamming-loss",
        help="What the model should be good at. It chooses the epoch, the weights of members, and "
        "the rule that predicts.",
        show_default="instance-f1",
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        metavar="MINUTES",
        min=0,
        help="The time that training may take; 0 for no limit.",
        show_default="10 for train without --method on a CPU, otherwise no limit",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="The random seed; the same seed gives the same model, if no budget shortens the "
        "training.",
        show_default="0",
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue the run in OUT.run, which was stopped. With a --budget that is used up "
        "already, its best epoch so far becomes the model.",
    ),
]
Model = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A model folder or hub:NAME.", show_default=False),
]
Rule = Annotated[
    str | None,
    typer.Option(
        "--rule",
        metavar="set|sequence|f1|hamming|micro-f1|label-f1",
        help="How to choose the predicted set: the most probable set (set), the set of the most "
        "probable sequence (sequence; its probability is the sequence's), or the best set for a "
        "measure: instance-F1 (f1), hamming loss (hamming), micro-F1, label-F1.",
        show_default="the model's own: that of the measure it was trained for, or of its method",
    ),
]
BeamWidth = Annotated[
    int | None,
    typer.Option(
        "--beam-width",
        metavar="K",
        min=1,
        help="How many candidates the search of a network keeps; with more it is slower and finds "
        "more sets.",
        show_default="as in training",
    ),
]
AllowTrainingDocuments = Annotated[
    bool,
    typer.Option(
        "--allow-training-documents",
        help="Use the documents even if the model was trained on them.",
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", help="Also write the result to this JSON file.", show_default=False),
]


@dataclass(frozen=True)
class Reading:
    """The options that say how to read the data."""

    text_field: TextField = "text"
    labels_field: LabelsField = "labels"
    id_field: IdField = "id"
    features_field: FeaturesField = "features"
    unknown_field: UnknownField = "unknown"
    complete_field: CompleteField = "complete"
    label_separator: LabelSeparator = ";"
    label_map: LabelMap = None
    encoding: Encoding = None
    id_prefix: IdPrefix = "auto"
    source_feature: SourceFeature = False
    reader: Format = None
    on_bad_row: SkipBadRows = "stop"

    def source(
        self, data: str | Sequence[str], valid: Path | None = None, require_labels: bool = True
    ) -> Source:
        """Return what to read, and how."""
        if self.on_bad_row not in ("stop", "skip"):
            raise ConfigError(f"--on-bad-row must be stop or skip, got '{self.on_bad_row}'.")
        options = ReadOptions(
            id_field=self.id_field,
            text_field=self.text_field,
            labels_field=self.labels_field,
            features_field=self.features_field,
            unknown_field=self.unknown_field,
            complete_field=self.complete_field,
            label_separator=self.label_separator,
            label_map=self.read_map(),
            hierarchy=self.read_hierarchy(),
            encoding=self.encoding,
            id_prefix=self.id_prefix,
            source_feature=self.source_feature,
            require_labels=require_labels,
        )
        on_bad_row: OnBadRow = "skip" if self.on_bad_row == "skip" else "stop"
        return Source(data, options, self.reader, valid, on_bad_row)

    def read_map(self) -> dict[str, str] | None:
        """Return the other names of labels, if there are any."""
        return None if self.label_map is None else read_label_map(self.label_map, self.encoding)

    def read_hierarchy(self) -> Hierarchy | None:
        """Return the hierarchy of the labels, if there is one."""
        return None


@dataclass(frozen=True)
class TreeReading(Reading):
    """The same with a hierarchy of the labels."""

    hierarchy: HierarchyFile = None
    close_labels: CloseLabels = False

    def read_hierarchy(self) -> Hierarchy | None:
        """Return the hierarchy of the labels, if there is one."""
        return make_hierarchy(self.hierarchy, self.close_labels, self.encoding)


@dataclass(frozen=True)
class TrainingOptions:
    """The options of commands that train."""

    measure: Measure = None
    budget: Budget = None
    valid: Valid = None
    no_valid: NoValid = False
    preset: Preset = "default"
    config: ConfigFile = None
    settings: SetOption = None
    device: Device = "auto"
    seed: Seed = None
    resume: Resume = False

    def arguments(self) -> dict[str, Any]:
        """Return them as the arguments of `setrnn.train` and `setrnn.distil`."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        cut_valid = not values.pop("no_valid")
        return {**values, "cut_valid": cut_valid, "settings": self.settings or []}


def with_training(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of training and reading to a command, as `training` and `reading`."""
    return with_reading(with_group(command, "training", TrainingOptions))


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Add the reading options to a command, which gets them as one argument, `reading`.

    The command says which: `Reading`, or `TreeReading` if it can use a hierarchy.
    """
    kind = inspect.signature(command, eval_str=True).parameters["reading"].annotation
    return with_group(command, "reading", kind)


def with_group(command: Callable[..., None], name: str, group: type[Any]) -> Callable[..., None]:
    """Add the fields of a dataclass to a command as options; it gets them as one argument."""
    hints = typing.get_type_hints(group, include_extras=True)
    own = inspect.signature(command, eval_str=True).parameters
    kept = [parameter for each, parameter in own.items() if each != name]
    added = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=hints[each.name],
        )
        for each in fields(group)
    ]

    @functools.wraps(command)
    def with_options(**arguments: Any) -> None:  # noqa: ANN401 (any option)
        options = group(**{each.name: arguments.pop(each.name) for each in added})
        command(**{name: options}, **arguments)

    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in kept] + added
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {each.name: each.annotation for each in parameters}
    del with_options.__wrapped__
    return with_options
