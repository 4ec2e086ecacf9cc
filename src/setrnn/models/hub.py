"""Where a model is: in a folder, or on the Hugging Face hub as `hub:NAME` or `hub:NAME@REVISION`.

A repository holds the files of a model folder. Other files in it are neither read nor changed.
The token is that of huggingface_hub: HF_TOKEN, or what `hf auth login` has stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setrnn import __version__
from setrnn.data.disk import private_folder, recovered
from setrnn.data.source import list_columns
from setrnn.errors import ConfigError, MissingExtraError, ModelError, printable
from setrnn.models.folder import (
    CONFIG,
    FILES,
    README,
    check_model_place,
    is_description,
    is_model_file,
    is_written,
    load_model,
    read_description,
    save_model,
)
from setrnn.progress import log

if TYPE_CHECKING:
    from setrnn.tagging.tagger import Tagger

PREFIX = "hub:"
LOGIN = "set HF_TOKEN, or run hf auth login"
TAGS = ("setrnn", "multi-label", "set-prediction")
_NAME = r"[A-Za-z0-9](?:(?!--|\.\.)[\w.-])*"
_PLACE = re.compile(rf"hub:((?:{_NAME}/)?{_NAME})(?:@((?:(?!\.\.)[\w.+/-])+))?", re.ASCII)


def is_hub(place: str | Path) -> bool:
    """Return whether a place is the name of a model on the hub."""
    return str(place).startswith(PREFIX)


def split_place(place: str | Path) -> tuple[str, str | None]:
    """Return the name and the revision (None for the newest) of `hub:NAME[@REVISION]`.

    Example:
        >>> split_place("hub:me/news@v1")
        ('me/news', 'v1')
    """
    if (found := _PLACE.fullmatch(str(place))) is None:
        raise ModelError(
            f"'{printable(str(place))}' does not name a model on the hub. Write hub:OWNER/NAME or "
            "hub:OWNER/NAME@REVISION."
        )
    return found[1], found[2]


def name_place(place: str | Path) -> str:
    """Return the name of a model: that of its folder, or on the hub.

    Example:
        >>> [name_place(each) for each in ("models/news", "hub:me/news@v1")]
        ['news', 'news']
    """
    if is_hub(place):
        return split_place(place)[0].rpartition("/")[2]
    path = Path(place)
    return path.resolve().name if path.name in ("", "..") else path.name


@contextmanager
def open_place(place: str | Path) -> Iterator[Path]:
    """Yield the folder of a model. Errors name the place."""
    if not is_hub(place):
        yield Path(place)
        return
    with _name_in_errors(place, folder := download(place)):
        yield folder


def read_columns(place: str | Path) -> dict[str, str]:
    """Return the columns that a model was trained from, without reading the model."""
    with open_place(place) as folder:
        return list_columns(read_description(recovered(folder))["notes"].get("columns"))


@contextmanager
def _name_in_errors(place: str | Path, folder: Path) -> Iterator[None]:
    try:
        yield
    except ModelError as error:
        raise ModelError(str(error).replace(str(folder), str(place))) from error


def fix_place(place: str | Path) -> str:
    """Return a place at which another process finds the same model: absolute, or one commit."""
    if not is_hub(place):
        return str(Path(place).absolute())
    return f"{PREFIX}{split_place(place)[0]}@{download(place).name}"


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
    name, revision = split_place(place)
    with _connected(place, "Loading") as api:
        folder = Path(api.snapshot_download(name, revision=revision, allow_patterns=[CONFIG]))
        with _name_in_errors(place, folder):
            read_description(folder)  # before the weights of another library are downloaded
        return Path(api.snapshot_download(name, revision=folder.name, allow_patterns=[*FILES]))


def push(model: str | Path | Tagger, to: str | Path, *, private: bool = False) -> str:
    """Copy a model to a folder or to the Hugging Face hub; return its place.

    The copy is whole or not there. It holds the files of a model, and nothing else. `setrnn.load`
    and every command read it from both places.

    Args:
        model: a tagger, a model folder, or `hub:NAME`.
        to: a folder or `hub:OWNER/NAME`, which is made if it does not exist. With `@VERSION`, the
            version gets this tag on the hub. At the end, `/` adds the model's name.
        private: whether a repository that is made on the hub is private.

    Example:
        >>> import setrnn
        >>> setrnn.push(setrnn.train("newsroom", "br"), "news")
        'news'
        >>> setrnn.push("news", "shared/")
        'shared/news'
        >>> setrnn.load("shared/news").tag(["The storm stopped the ski race."])[0].labels
        ('weather', 'storm')
    """
    target = str(to)
    if target.endswith("/"):
        target += name_place(model) if isinstance(model, str | Path) else model.method
    if is_hub(target):
        with private_folder() as temporary:
            folder = temporary / "model"
            _copy(model, folder)
            return _upload(target, folder, private)
    if private:
        raise ConfigError(f"private is for the hub: {target} is a folder.")
    check_model_place(Path(target))
    _copy(model, Path(target))
    return target


def _copy(model: str | Path | Tagger, folder: Path) -> None:
    """Write a model to a folder; a damaged one is refused, and what people wrote there stays."""
    if not isinstance(model, str | Path):
        model.save(folder)
        return
    with open_place(model) as found:
        saved, readme = load_model(found), found / README
        text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
        save_model(folder, replace(saved, readme=text))


def _upload(place: str, folder: Path, private: bool) -> str:
    """Send a model to the hub as one commit, all of it or nothing; return its address.

    `upload_folder` may make several commits.
    """
    name, tag = split_place(place)
    method = read_description(folder)["method"]
    with _connected(place, "Pushing") as api:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        if "/" not in name:
            name = f"{api.whoami()['name']}/{name}"
        address = f"{PREFIX}{name}"
        api.create_repo(name, private=private, exist_ok=True)
        info = api.model_info(name)
        if private and not info.private:
            raise ModelError(
                f"{address} exists and is public. Make it private on its page, or push to another "
                "name."
            )
        if tag is not None and api.revision_exists(name, tag):
            raise ModelError(f"{address}@{tag} exists. Push under another name after the @.")

        def read(file: str) -> bytes:
            return Path(api.hf_hub_download(name, file, revision=info.sha)).read_bytes()

        there = {each.rfilename for each in info.siblings}
        ours = {file for file in there if is_model_file(file) and file != README}
        if ours and (CONFIG not in there or not is_description(read(CONFIG))):
            raise ModelError(
                f"{address} holds {min(ours)}, which is not of a model of setrnn. Push to another "
                "name."
            )
        if not info.private:
            log.info(
                f"{address} is public. Anyone can read its labels, words of the texts, and the "
                "label sets and hashes of documents it was trained on."
            )
        _write_card(folder / README, read(README) if README in there else b"", name)
        files = {each.name: each for each in sorted(folder.iterdir())}
        commit = api.create_commit(
            name,
            [
                *(CommitOperationAdd(file, path) for file, path in files.items()),
                *(CommitOperationDelete(file) for file in sorted(ours - files.keys())),
            ],
            commit_message=f"Push a {method} model by setrnn {__version__}",
            parent_commit=info.sha,
        )
        if tag is not None:
            api.create_tag(name, tag=tag, revision=commit.oid)
        return f"{api.endpoint}/{name}"


def _write_card(file: Path, old: bytes, name: str) -> None:
    """Write the README.md for the hub into a folder, with the header that the hub reads.

    What a person has written, in the folder or else on the hub, stays; so does what people have
    added to the headers, such as a licence.
    """
    from huggingface_hub import ModelCard, ModelCardData

    own = file.read_bytes() if file.is_file() else b""
    chosen = old if is_written(old) and not is_written(own) else own
    texts = (each.decode("utf-8", "replace") for each in (old, chosen))
    before, card = (
        ModelCard(
            each if each.startswith("---") else f"---\n{{}}\n---\n{each}",
            ignore_metadata_errors=True,
        )
        for each in texts
    )
    kept = {"pipeline_tag": "text-classification", **before.data.to_dict(), **card.data.to_dict()}
    kept["library_name"] = "setrnn"
    kept["tags"] = list(dict.fromkeys([*TAGS, *(kept.get("tags") or ())]))
    body, usage = card.text.strip(), f'setrnn.load("{PREFIX}{name}")'
    if not is_written(chosen) and usage not in body:
        lines = ["import setrnn", "", f"tagger = {usage}", 'tagger.tag(["A text to tag."])']
        body = "\n".join([body, "", "## To use it", "", "```python", *lines, "```"])
    header = ModelCardData(**kept).to_yaml()
    file.write_text(f"---\n{header}\n---\n\n{body}\n", encoding="utf-8")


@contextmanager
def _connected(place: str | Path, doing: str) -> Iterator[Any]:
    """Yield the interface of the hub; its errors become a ModelError of one line."""
    try:
        import huggingface_hub
    except ImportError as error:
        raise MissingExtraError("huggingface_hub", "hf", f"{doing} {place}") from error
    try:
        yield huggingface_hub.HfApi(library_name="setrnn", library_version=__version__)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(_explain(error, place, doing)) from error


def _explain(error: Exception, place: str | Path, doing: str) -> str:
    """Say in one line what the hub or the network refused, and what to do."""
    from huggingface_hub import errors, get_token

    name, revision = split_place(place)
    address, access = f"{PREFIX}{name}", "write" if doing == "Pushing" else "read"
    for each in (error, error.__cause__):  # a download wraps the error of the hub
        if isinstance(each, errors.GatedRepoError):
            return f"{address} is gated. Accept its conditions on its page, then {LOGIN}."
        if isinstance(each, errors.RepositoryNotFoundError):
            return f"{address} does not exist, or is private. Check the name; if private, {LOGIN}."
        if isinstance(each, errors.RevisionNotFoundError):
            return f"{address} has no revision '{revision}'. Check the name after the @."
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403) or isinstance(error, errors.LocalTokenNotFoundError):
        refused = f"The hub refuses to {access} {address}"
        return f"{refused}: a token with {access} access is needed; {LOGIN}."
    if status in (409, 412):
        return f"{address} has changed in the meantime: nothing was written. Push again."
    text = str(error.__cause__ or error).strip() or type(error).__name__
    if token := get_token():  # a header that is refused is quoted
        text = text.replace(token, "TOKEN")
    line = printable(text.splitlines()[0][:160]).rstrip(".: ")
    if doing == "Pushing":
        line += ". The model there has not changed"
    return f"{doing} {place} failed: {line}. Check the network, and repeat the command."
