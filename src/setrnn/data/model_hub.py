"""Models on the Hugging Face hub, `hub:NAME` or `hub:NAME@REVISION`: download and upload them.

A repository holds the files of a model folder. Other files in it are neither read nor changed.
The token is that of huggingface_hub: HF_TOKEN, or what `hf auth login` has stored.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setrnn.data.formats.printing import printable
from setrnn.data.model_files import (
    ARRAYS,
    CALIBRATION,
    CONFIG,
    LABELS,
    README,
    TOKENIZER,
    is_description,
    is_model_file,
)
from setrnn.data.model_folder import MOST_BYTES
from setrnn.errors import MissingExtraError, ModelError
from setrnn.progress import Note, OnProgress, ignore_progress

PREFIX = "hub:"
NEEDED = (CONFIG, ARRAYS, TOKENIZER, LABELS)
PATTERNS = [*NEEDED, "tokenizer-*.json", CALIBRATION, README]
LOGIN = "set HF_TOKEN, or run hf auth login"
OFFLINE = "Check the network, or use a folder or a zip file: setrnn push makes both."
N_NAMED = 3  # of other files
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_REVISION = re.compile(r"[\w.+-][\w.+/-]*", re.ASCII)


def is_hub(place: str | Path) -> bool:
    """Return whether a place is the name of a model on the hub."""
    return _write(place).startswith(PREFIX)


def _write(place: str | Path) -> str:
    return place.as_posix() if isinstance(place, Path) else place


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


def download(place: str | Path, on_progress: OnProgress = ignore_progress) -> Path:
    """Download the files of a model, if they are not in the cache; return their folder.

    If the hub cannot be reached, the newest version in the cache is used.
    """
    target = HubName.parse(place)
    with _hub(target, "Loading") as hub:
        api = _api(hub)
        info = _ask(hub, lambda: _info(api, target))
        wanted = PATTERNS
        if info is not None:
            wanted = _choose_files(target, info.siblings, on_progress)
        folder = Path(
            api.snapshot_download(
                target.name,
                revision=target.revision,
                allow_patterns=wanted,
                local_files_only=info is None,
            )
        )
    if info is None and not hub.constants.HF_HUB_OFFLINE:
        on_progress(Note(f"The hub cannot be reached: {target} is read from the cache."))
    return folder


def _info(api: Any, target: HubName) -> Any:  # noqa: ANN401 (the library is optional)
    return api.model_info(target.name, revision=target.revision, files_metadata=True)


def _ask(hub: Any, question: Callable[[], Any]) -> Any:  # noqa: ANN401
    """Return the answer of the hub; None if it cannot be reached."""
    try:
        return question()
    except hub.errors.HfHubHTTPError as error:
        if error.response is None or error.response.status_code < 500:
            raise
    except ValueError:  # such as a token that cannot be sent
        raise
    except Exception:  # noqa: BLE001 (of the network, of many classes: no list would be complete)
        pass
    return None


def _choose_files(
    target: HubName, siblings: Sequence[Any], on_progress: OnProgress = ignore_progress
) -> list[str]:
    """Return the files of a model in a repository; raise ModelError if one is missing or huge."""
    sizes = {each.rfilename: each.size or 0 for each in siblings}
    missing = [name for name in NEEDED if name not in sizes]
    if missing:
        raise ModelError(f"{target} is not a model of setrnn: it has no {missing[0]}.")
    ours = [name for name in sizes if is_model_file(name)]
    for name in ours:
        if name != ARRAYS and sizes[name] > MOST_BYTES:
            raise ModelError(f"{target}: {name} is too large to be of a model.")
    others = sorted({*sizes} - {*ours, ".gitattributes"})
    if others:
        more = f" and {len(others) - N_NAMED:,} more" if len(others) > N_NAMED else ""
        named = ", ".join(map(printable, others[:N_NAMED]))
        on_progress(Note(f"{target} also holds {named}{more}: not of a model, and not downloaded."))
    return ours


@dataclass(frozen=True)
class Upload:
    """What to send to the hub.

    Args:
        folder: the model, which is whole.
        describe: makes the README.md from the one that is there and the address of the model;
            None to keep the one that is there.
        contents: what can be read from the model, in words.
        private: whether only the owner may read a repository that is made for it.
        message: of the commit.
    """

    folder: Path
    describe: Callable[[str, str], str | None]
    contents: str
    private: bool
    message: str


def upload(place: str | Path, sent: Upload, on_progress: OnProgress = ignore_progress) -> str:
    """Send a model to the hub as one commit, all of it or nothing; return its address.

    The repository is made if it does not exist. Files of the model that was there are replaced or
    removed; a repository that holds another kind of model is refused.
    """
    target = HubName.parse(place)
    with _hub(target, "Pushing") as hub:
        api = _api(hub)
        if "/" not in target.name:
            target = HubName(f"{api.whoami()['name']}/{target.name}", target.revision)
        info = _make_repository(hub, api, target, sent.private)
        there = {each.rfilename: each.size or 0 for each in info.siblings}
        if sent.private and not info.private:
            raise ModelError(
                f"{PREFIX}{target.name} exists and is public. Make it private on its page, or "
                "push to another name."
            )
        _refuse_other_model(api, target, info.sha, there)
        if not info.private:
            on_progress(Note(f"{PREFIX}{target.name} is public. Anyone can read {sent.contents}."))
        files: dict[str, Path | bytes] = {
            each.name: each for each in sent.folder.iterdir() if each.name != README
        }
        old = _read(api, target, info.sha, README) if README in there else b""
        readme = sent.describe(old.decode("utf-8", "replace"), f"{PREFIX}{target.name}")
        if readme is not None:
            files[README] = readme.encode()
        gone = [name for name in there if is_model_file(name) and name not in {*files, README}]
        commit = api.create_commit(
            target.name,
            [
                *(hub.CommitOperationAdd(name, files[name]) for name in sorted(files)),
                *(hub.CommitOperationDelete(name) for name in sorted(gone)),
            ],
            commit_message=sent.message,
            parent_commit=info.sha,
        )
        after = api.model_info(target.name, revision=commit.oid)
        lost = sorted({*files} - {each.rfilename for each in after.siblings})
        if lost:
            raise ModelError(
                f"{PREFIX}{target.name} ignored {lost[0]}: look at its .gitignore, and push again."
            )
        if target.revision is not None:
            api.create_tag(target.name, tag=target.revision, revision=commit.oid)
        return f"{api.endpoint}/{target.name}"


def _make_repository(hub: Any, api: Any, target: HubName, private: bool) -> Any:  # noqa: ANN401
    """Return what the hub knows about a repository, which is made if it does not exist."""
    try:
        info = _info(api, HubName(target.name))
    except hub.errors.GatedRepoError:
        raise
    except hub.errors.RepositoryNotFoundError:
        api.create_repo(target.name, private=private, exist_ok=True)
        return _info(api, HubName(target.name))
    if target.revision is not None:
        try:
            _info(api, target)
        except hub.errors.RevisionNotFoundError:
            return info
        raise ModelError(f"{target} exists. Push under another name after the @.")
    return info


def _refuse_other_model(api: Any, target: HubName, commit: str, there: dict[str, int]) -> None:  # noqa: ANN401
    """Raise ModelError if a file would be overwritten that is not of a model of setrnn."""
    ours = sorted(name for name in there if is_model_file(name) and name != README)
    if not ours:
        return
    is_model = CONFIG in there and there[CONFIG] <= MOST_BYTES
    if not is_model or not is_description(_read(api, target, commit, CONFIG)):
        raise ModelError(
            f"{PREFIX}{target.name} holds {ours[0]}, which is not of a model of setrnn. Push to "
            "another name."
        )


def _read(api: Any, target: HubName, commit: str, name: str) -> bytes:  # noqa: ANN401
    return Path(api.hf_hub_download(target.name, name, revision=commit)).read_bytes()


def _api(hub: Any) -> Any:  # noqa: ANN401
    from setrnn import __version__

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
    log = hub.utils.logging
    verbosity, had_bars = log.get_verbosity(), not hub.utils.are_progress_bars_disabled()
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
    """Say in one line what the hub or the network refused, and the way out."""
    errors, repository = hub.errors, f"{PREFIX}{target.name}"
    if isinstance(error, errors.GatedRepoError):
        return f"{repository} is gated. Accept its conditions on its page, then {LOGIN}."
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"{repository} does not exist, or is private. Check the name; if private, {LOGIN}."
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{repository} has no revision '{target.revision}'. Check the name after the @."
    if isinstance(error, UnicodeError):
        return f"The token for the hub holds characters that no token has: {LOGIN}."
    status = None
    if isinstance(error, errors.HfHubHTTPError) and error.response is not None:
        status = error.response.status_code
    if status in (401, 403) or isinstance(error, errors.LocalTokenNotFoundError):
        right, access = ("write to", "write") if doing == "Pushing" else ("read", "read")
        needed = f"a token with {access} access is needed"
        return f"The hub refuses to {right} {repository}: {needed}; {LOGIN}."
    if status in (409, 412):
        return f"{repository} has changed in the meantime: nothing was written. Push again."
    if isinstance(error, errors.LocalEntryNotFoundError) or hub.constants.HF_HUB_OFFLINE:
        why = "HF_HUB_OFFLINE is set" if hub.constants.HF_HUB_OFFLINE else "it cannot be reached"
        return f"{doing} {target} needs the hub, and {why}. {OFFLINE}"
    if doing == "Pushing":
        after = "The model there has not changed. Check the network, and push again to continue."
    else:
        after = f"Try again to continue. {OFFLINE}"
    return f"{doing} {target} failed: {_first_line(hub, error)}. {after}"


def _first_line(hub: Any, error: Exception) -> str:  # noqa: ANN401
    """Return the first line of an error, without the token."""
    text = str(error.__cause__ or error).strip() or type(error).__name__
    if token := hub.get_token():
        text = text.replace(token, "TOKEN")
    line = text.splitlines()[0]
    return printable(line if len(line) <= 160 else line[:160] + "...").rstrip(".: ")
