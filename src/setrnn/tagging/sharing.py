"""Share a model: copy it to a folder, a zip file, or the Hugging Face hub."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from setrnn import __version__
from setrnn.data.model_copies import copy_model, refuse_other_zip, write_zip
from setrnn.data.model_files import README, check_model_place, is_written
from setrnn.data.model_hub import Upload, is_hub, upload
from setrnn.data.model_places import is_zip, name_place, open_place
from setrnn.errors import ConfigError
from setrnn.metrics import MEASURES
from setrnn.progress import Note, OnProgress, ignore_progress
from setrnn.tagging.loading import load
from setrnn.tagging.model_card import describe_model
from setrnn.tagging.model_readme import write_readme
from setrnn.tagging.tagger import Tagger

ARCHIVES = {".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar"}  # no names of folders
TAGS = ("setrnn", "multi-label", "set-prediction")
TASK = "text-classification"
# The names that the hub has for measures; the others have their own.
METRICS = {"subset_accuracy": "accuracy", "instance_f1": "f1", "label_f1": "f1", "micro_f1": "f1"}


def push(
    model: str | Path | Tagger,
    to: str | Path,
    *,
    private: bool = False,
    message: str | None = None,
    license: str | None = None,  # noqa: A002 (the name that the hub has for it)
    on_progress: OnProgress = ignore_progress,
) -> str:
    """Copy a model to a folder, to one zip file, or to the Hugging Face hub; return its place.

    The copy is whole or not there. It holds the files of a model, and nothing else. `setrnn.load`
    and every command read it from each of these places.

    Args:
        model: a tagger, a model folder, a zip file, or `hub:NAME`.
        to: a folder, FILE.zip, or `hub:OWNER/NAME`, which is made if it does not exist. With
            `@VERSION`, the version gets this tag on the hub. At the end, `/` adds the model's name.
        private: whether a repository that is made on the hub is private.
        message: of the commit on the hub.
        license: the licence of the model on the hub, such as "mit"; none if not given.
        on_progress: called with notes for the user, such as what becomes public.

    Example:
        >>> import setrnn
        >>> setrnn.push(setrnn.train("newsroom", "br"), "news.zip")
        'news.zip'
        >>> setrnn.load("news.zip").tag(["The storm stopped the ski race."])[0].labels
        ('weather', 'storm')
        >>> setrnn.push("news.zip", "shared/")
        'shared/news'
    """
    name = model.method if isinstance(model, Tagger) else name_place(model)
    target = _complete(to, name)
    if not is_hub(target):
        if private or message is not None or license is not None:
            raise ConfigError(
                f"private, message and license are for the hub: {target} is a file or folder."
            )
        if Path(target).suffix.lower() in ARCHIVES and not Path(target).is_dir():
            raise ConfigError(f"{target} is neither FILE.zip nor the name of a folder.")
        (refuse_other_zip if is_zip(target) else check_model_place)(Path(target))
    with tempfile.TemporaryDirectory(prefix="setrnn-") as temporary:
        folder = Path(temporary) / "model"
        if isinstance(model, Tagger):
            model.save(folder)
        else:
            with open_place(model, on_progress) as found:
                others = copy_model(found, folder)
            if others and not is_hub(model):  # the hub has said it
                on_progress(Note(f"{model} also holds {others[0]}: not of a model, not copied."))
        tagger = load(folder, "cpu")  # it is whole and undamaged, or refused
        if is_zip(target):
            write_zip(folder, Path(target))
        elif not is_hub(target):
            copy_model(folder, Path(target))
        else:
            title = f"Push a {tagger.method} model by setrnn {__version__}"
            describe = partial(_describe, tagger, _read_written(folder / README), license)
            sent = Upload(folder, describe, _list_contents(tagger), private, message or title)
            return upload(target, sent, on_progress)
    return target


def _complete(to: str | Path, name: str) -> str:
    """Return a place; one that ends in / gets the name of the model."""
    place = to.as_posix() if isinstance(to, Path) else to
    return f"{place}{name}" if place.endswith("/") else place


def _read_written(file: Path) -> str | None:
    """Return a README.md that a person has written."""
    content = file.read_bytes() if file.is_file() else b""
    return content.decode("utf-8", "replace") if is_written(content) else None


def _list_contents(tagger: Tagger) -> str:
    """Say what can be read from a model."""
    n_words = sum(each.n_tokens for each in tagger.encoder.parts)
    parts = [f"its {len(tagger.labels):,} labels", f"{n_words:,} words or subwords of the texts"]
    if tagger.seen_sets is not None:
        parts.append(f"the {len(tagger.seen_sets):,} label sets it was trained on")
    if tagger.trained_documents is not None:
        parts.append("hashes that show whether a given text was trained on")
    return ", ".join(parts[:-1]) + " and " + parts[-1]


def _describe(
    tagger: Tagger, written: str | None, given: str | None, old: str, place: str
) -> str | None:
    """Write the README.md for the hub; None to keep the old one as it is.

    What a person has written, in the folder or else on the hub, stays; so does what people have
    added to the header on the hub, such as a licence.
    """
    from huggingface_hub import ModelCard

    if written is None and is_written(old.encode()):
        if given is None:
            return None
        written = old
    header = ModelCard(old, ignore_metadata_errors=True).data.to_dict()
    if written is None:
        body = "\n".join([write_readme(tagger).rstrip(), "", *_list_usage(place), ""])
    else:
        card = ModelCard(written, ignore_metadata_errors=True)
        header, body = {**header, **card.data.to_dict()}, card.text
    return f"---\n{_write_header(tagger, place, header, given)}\n---\n\n{body.lstrip()}"


def _list_usage(place: str) -> Iterator[str]:
    yield from ["## To use it", "", "```python", "import setrnn", ""]
    yield from [f'tagger = setrnn.load("{place}")', 'tagger.tag(["A text to tag."])', "```"]


def _write_header(tagger: Tagger, place: str, old: Mapping[str, Any], given: str | None) -> str:
    """Write the header that the hub reads, in YAML."""
    from huggingface_hub import EvalResult, ModelCardData

    kept = {name: value for name, value in old.items() if name != "model-index"}
    found, data = describe_model(tagger)["measures_on_valid"], tagger.notes.get("data")
    results = []
    if found is not None and data:
        for rule, values in found.get("held_out", found["rules"]).items():
            results += [
                EvalResult(
                    task_type=TASK,
                    dataset_type=str(data),
                    dataset_name=str(data),
                    dataset_split="valid",
                    metric_type=METRICS.get(measure, measure),
                    metric_name=f"{MEASURES[measure]}, rule {rule}",
                    metric_value=round(value, 4),
                )
                for measure, value in values.items()
            ]
    header = ModelCardData(
        **{
            "pipeline_tag": TASK,
            **kept,
            **({} if given is None else {"license": given}),
            "library_name": "setrnn",
            "tags": list(dict.fromkeys([*TAGS, *(kept.get("tags") or ())])),
            "model_name": name_place(place),
            **({"eval_results": results} if results else {}),
        }
    )
    return str(header.to_yaml())
