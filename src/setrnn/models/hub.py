"""Where a model is: in a folder, or on the Hugging Face hub as `hub:NAME` or `hub:NAME@REVISION`.

A repository holds the files of a model folder. Other files in it are neither read nor changed.
The token is that of huggingface_hub: HF_TOKEN, or what `hf auth login` has stored.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setrnn import __version__
from setrnn.data.read.printing import printable
from setrnn.errors import ConfigError, MissingExtraError, ModelError
from setrnn.metrics import MEASURES
from setrnn.models.card import describe_measures
from setrnn.models.folder import (
    ARRAYS,
    CALIBRATION,
    CONFIG,
    LABELS,
    README,
    TOKENIZER,
    SavedModel,
    check_model_place,
    copy_model,
    is_description,
    is_model_file,
    is_written,
    load_model,
    read_description,
)
from setrnn.progress import log

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger

PREFIX = "hub:"
PATTERNS = [CONFIG, ARRAYS, TOKENIZER, LABELS, "tokenizer-*.json", CALIBRATION, README]
LOGIN = "set HF_TOKEN, or run hf auth login"
ARCHIVES = {".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z", ".rar"}
TAGS = ("setrnn", "multi-label", "set-prediction")
TASK = "text-classification"
# The names that the hub has for measures; the others have their own.
METRICS = {"subset_accuracy": "accuracy", "instance_f1": "f1", "label_f1": "f1", "micro_f1": "f1"}
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_REVISION = re.compile(r"[\w.+-][\w.+/-]*", re.ASCII)


def _write(place: str | Path) -> str:
    return place.as_posix() if isinstance(place, Path) else place


def is_hub(place: str | Path) -> bool:
    """Return whether a place is the name of a model on the hub."""
    return _write(place).startswith(PREFIX)


@dataclass(frozen=True)
class HubName:
    """The name of a repository on the hub, and a branch, tag or commit of it.

    Example:
        >>> HubName.parse("hub:me/news@v1")
        HubName(name='me/news', revision='v1')
    """

    name: str
    revision: str | None = None  # None for the newest

    @classmethod
    def parse(cls, place: str | Path) -> HubName:
        """Read `hub:NAME` or `hub:NAME@REVISION`."""
        name, has_revision, revision = _write(place).removeprefix(PREFIX).partition("@")
        is_sound = _NAME.fullmatch(name) and ".." not in name and "--" not in name
        if has_revision:
            is_sound = is_sound and _REVISION.fullmatch(revision) and ".." not in revision
        if not is_sound:
            raise ModelError(
                f"'{printable(_write(place))}' does not name a model on the hub. Write "
                "hub:OWNER/NAME or hub:OWNER/NAME@REVISION."
            )
        return cls(name, revision if has_revision else None)

    def __str__(self) -> str:
        return f"{PREFIX}{self.name}" + ("" if self.revision is None else f"@{self.revision}")


def name_place(place: str | Path) -> str:
    """Return the name of a model: that of its folder, or on the hub.

    Example:
        >>> [name_place(each) for each in ("models/news", "hub:me/news@v1")]
        ['news', 'news']
    """
    if is_hub(place):
        return HubName.parse(place).name.rpartition("/")[2]
    path = Path(place)
    return path.resolve().name if path.name in ("", "..") else path.name


@contextmanager
def open_place(place: str | Path) -> Iterator[Path]:
    """Yield the folder of a model. Errors name the place."""
    if not is_hub(place):
        yield Path(place)
        return
    folder = download(place)
    try:
        yield folder
    except ModelError as error:
        raise ModelError(str(error).replace(str(folder), str(place))) from error


def fix_place(place: str | Path) -> str:
    """Return a place at which another process finds the same model: absolute, or one commit."""
    if not is_hub(place):
        return str(Path(place).absolute())
    return f"{PREFIX}{HubName.parse(place).name}@{download(place).name}"


def require_folder(place: str | Path, purpose: str) -> None:
    """Raise ConfigError if a model is on the hub, and therefore cannot be changed."""
    if is_hub(place):
        raise ConfigError(
            f"{purpose} changes a model folder, and {place} is not one. Copy it first: "
            f"setrnn push {place} {name_place(place)}"
        )


def download(place: str | Path) -> Path:
    """Download the files of a model, if they are not in the cache; return their folder.

    If the hub cannot be reached, the version in the cache is used.
    """
    target = HubName.parse(place)
    with _hub(target, "Loading") as hub:
        api = _api(hub)
        folder = Path(
            api.snapshot_download(target.name, revision=target.revision, allow_patterns=[CONFIG])
        )
        try:
            read_description(folder)  # before the weights of another library are downloaded
        except ModelError as error:
            raise ModelError(str(error).replace(str(folder), str(target))) from error
        return Path(
            api.snapshot_download(target.name, revision=folder.name, allow_patterns=PATTERNS)
        )


def push(
    model: str | Path | Tagger,
    to: str | Path,
    *,
    private: bool = False,
    message: str | None = None,
    license: str | None = None,  # noqa: A002 (the name that the hub has for it)
) -> str:
    """Copy a model to a folder or to the Hugging Face hub; return its place.

    The copy is whole or not there. It holds the files of a model, and nothing else. `setrnn.load`
    and every command read it from both places.

    Args:
        model: a tagger, a model folder, or `hub:NAME`.
        to: a folder or `hub:OWNER/NAME`, which is made if it does not exist. With `@VERSION`, the
            version gets this tag on the hub. At the end, `/` adds the model's name.
        private: whether a repository that is made on the hub is private.
        message: of the commit on the hub.
        license: the licence of the model on the hub, such as "mit"; none if not given.
        on_progress: called with notes for the user, such as what becomes public.

    Example:
        >>> import setrnn
        >>> setrnn.push(setrnn.train("newsroom", "br"), "news")
        'news'
        >>> setrnn.push("news", "shared/")
        'shared/news'
        >>> setrnn.load("shared/news").tag(["The storm stopped the ski race."])[0].labels
        ('weather', 'storm')
    """
    target = _write(to)
    if target.endswith("/"):
        target += name_place(model) if isinstance(model, str | Path) else model.method
    if is_hub(target):
        with tempfile.TemporaryDirectory(prefix="setrnn-") as temporary:
            folder = Path(temporary) / "model"
            _copy(model, folder)
            return _upload(target, folder, private, message, license)
    if private or message is not None or license is not None:
        raise ConfigError(f"private, message and license are for the hub: {target} is a folder.")
    if Path(target).suffix.lower() in ARCHIVES and not Path(target).is_dir():
        raise ConfigError(f"{target} is not the name of a folder: a model is copied as a folder.")
    check_model_place(Path(target))
    _copy(model, Path(target))
    return target


def _copy(model: str | Path | Tagger, folder: Path) -> None:
    if isinstance(model, str | Path):
        with open_place(model) as found:
            copy_model(found, folder)
    else:
        model.save(folder)


def _upload(
    place: str,
    folder: Path,
    private: bool,
    message: str | None,
    license_name: str | None,
) -> str:
    """Send a model to the hub as one commit, all of it or nothing; return its address.

    `upload_folder` would do, but it may make several commits of a large model.
    """
    target, saved = HubName.parse(place), load_model(folder)
    with _hub(target, "Pushing") as hub:
        api = _api(hub)
        if "/" not in target.name:
            target = HubName(f"{api.whoami()['name']}/{target.name}", target.revision)
        name, address = target.name, f"{PREFIX}{target.name}"
        info = _make_repository(hub, api, target, private)
        there = {each.rfilename for each in info.siblings}
        if private and not info.private:
            raise ModelError(
                f"{address} exists and is public. Make it private on its page, or push to another "
                "name."
            )

        def read(file: str) -> bytes:
            return Path(api.hf_hub_download(name, file, revision=info.sha)).read_bytes()

        ours = sorted(file for file in there if is_model_file(file) and file != README)
        if ours and (CONFIG not in there or not is_description(read(CONFIG))):
            raise ModelError(
                f"{address} holds {ours[0]}, which is not of a model of setrnn. Push to another "
                "name."
            )
        if not info.private:
            log.info(
                f"{address} is public. Anyone can read its {len(saved.labels):,} labels, words "
                "of the texts, and the label sets and hashes of documents it was trained on."
            )
        old = read(README) if README in there else b""
        readme = _write_card(saved, folder / README, old, address, license_name)
        files: dict[str, Path | bytes] = {each.name: each for each in folder.iterdir()}
        files[README] = readme
        commit = api.create_commit(
            name,
            [
                *(hub.CommitOperationAdd(file, files[file]) for file in sorted(files)),
                *(hub.CommitOperationDelete(file) for file in ours if file not in files),
            ],
            commit_message=message or f"Push a {saved.method} model by setrnn {__version__}",
            parent_commit=info.sha,
        )
        if target.revision is not None:
            api.create_tag(name, tag=target.revision, revision=commit.oid)
        return f"{api.endpoint}/{name}"


def _make_repository(hub: Any, api: Any, target: HubName, private: bool) -> Any:  # noqa: ANN401
    """Return what the hub knows about a repository, which is made if it does not exist."""
    try:
        info = api.model_info(target.name)
    except hub.errors.GatedRepoError:
        raise
    except hub.errors.RepositoryNotFoundError:
        api.create_repo(target.name, private=private, exist_ok=True)
        return api.model_info(target.name)
    if target.revision is None:
        return info
    try:
        api.model_info(target.name, revision=target.revision)
    except hub.errors.RevisionNotFoundError:
        return info
    raise ModelError(f"{target} exists. Push under another name after the @.")


def _write_card(
    saved: SavedModel, file: Path, old: bytes, place: str, license_name: str | None
) -> bytes:
    """Write the README.md for the hub.

    What a person has written, in the folder or else on the hub, stays; so does what people have
    added to the header on the hub, such as a licence.
    """
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    own = file.read_bytes() if file.is_file() else b""
    chosen = old if is_written(old) and not is_written(own) else own
    cards = [
        ModelCard(each.decode("utf-8", "replace"), ignore_metadata_errors=True)
        for each in (old, chosen)
    ]
    kept = {**cards[0].data.to_dict(), **cards[1].data.to_dict()}
    kept.pop("model-index", None)
    found, data, results = describe_measures(saved.notes), saved.notes.get("data"), []
    if found is not None and data:
        results = [
            EvalResult(
                task_type=TASK,
                dataset_type=str(data),
                dataset_name=str(data),
                dataset_split="valid",
                metric_type=METRICS.get(measure, measure),
                metric_name=f"{MEASURES[measure]}, rule {rule}",
                metric_value=round(value, 4),
            )
            for rule, values in found.get("held_out", found["rules"]).items()
            for measure, value in values.items()
        ]
    header = ModelCardData(
        **{
            "pipeline_tag": TASK,
            **kept,
            **({} if license_name is None else {"license": license_name}),
            "library_name": "setrnn",
            "tags": list(dict.fromkeys([*TAGS, *(kept.get("tags") or ())])),
            "model_name": name_place(place),
            **({"eval_results": results} if results else {}),
        }
    )
    body = cards[1].text.strip()
    usage = f'setrnn.load("{place}")'
    if not is_written(chosen) and usage not in body:
        lines = ["import setrnn", "", f"tagger = {usage}", 'tagger.tag(["A text to tag."])']
        body = "\n".join([body, "", "## To use it", "", "```python", *lines, "```"])
    return f"---\n{header.to_yaml()}\n---\n\n{body}\n".encode()


def _api(hub: Any) -> Any:  # noqa: ANN401 (the library is optional)
    return hub.HfApi(library_name="setrnn", library_version=__version__)


@contextmanager
def _hub(target: HubName, doing: str) -> Iterator[Any]:
    """Yield huggingface_hub, silenced; its errors become a ModelError of one line."""
    try:
        import huggingface_hub as hub
        import huggingface_hub.constants
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError as error:
        raise MissingExtraError("huggingface_hub", "hf", f"{doing} {target}") from error
    log, had_bars = hub.utils.logging, not hub.utils.are_progress_bars_disabled()
    verbosity = log.get_verbosity()
    log.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if had_bars:
            hub.utils.disable_progress_bars()
        try:
            yield hub
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(_explain(hub, target, doing, error)) from error
        finally:
            log.set_verbosity(verbosity)
            if had_bars:
                hub.utils.enable_progress_bars()


def _explain(hub: Any, target: HubName, doing: str, error: Exception) -> str:  # noqa: ANN401
    """Say in one line what the hub or the network refused, and what to do."""
    errors, repository = hub.errors, f"{PREFIX}{target.name}"
    response = getattr(error, "response", None)
    status = None if response is None else response.status_code
    refused = f"The hub refuses to {'write to' if doing == 'Pushing' else 'read'} {repository}"
    reasons = {
        errors.GatedRepoError: f"is gated. Accept its conditions on its page, then {LOGIN}.",
        errors.RepositoryNotFoundError: "does not exist, or is private. Check the name; if "
        f"private, {LOGIN}.",
        errors.RevisionNotFoundError: f"has no revision '{target.revision}'. Check the name after "
        "the @.",
    }
    for each in (error, error.__cause__):  # a download wraps the error of the hub
        for kind, reason in reasons.items():
            if isinstance(each, kind):
                return f"{repository} {reason}"
    if isinstance(error, UnicodeError):
        return f"The token for the hub holds characters that no token has: {LOGIN}."
    if status in (401, 403) or isinstance(error, errors.LocalTokenNotFoundError):
        access = "write" if doing == "Pushing" else "read"
        return f"{refused}: a token with {access} access is needed; {LOGIN}."
    if status in (409, 412):
        return f"{repository} has changed in the meantime: nothing was written. Push again."
    if hub.constants.HF_HUB_OFFLINE:
        return f"{doing} {target} needs the hub, and HF_HUB_OFFLINE is set. Use a model folder."
    text = str(error.__cause__ or error).strip() or type(error).__name__
    if token := hub.get_token():
        text = text.replace(token, "TOKEN")
    line = printable(text.splitlines()[0][:160]).rstrip(".: ")
    after = "The model there has not changed. " if doing == "Pushing" else ""
    again = "push again" if doing == "Pushing" else "try again"
    return f"{doing} {target} failed: {line}. {after}Check the network, and {again} to continue."
