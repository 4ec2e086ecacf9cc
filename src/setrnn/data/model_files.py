"""The files of a model folder: their names, and what may be overwritten."""

from __future__ import annotations

import re
from pathlib import Path

from setrnn.config import Config
from setrnn.data.folders import check_folder_place, is_temporary, temporary_folder
from setrnn.errors import ModelError

CONFIG, ARRAYS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
LABELS, CALIBRATION, README = "labels.json", "calibration.json", "README.md"
_MORE_TOKENIZERS = re.compile(r"tokenizer-[1-9]\d*\.json")  # of a mixture
GENERATED = "<!-- Written by setrnn. Remove this line to keep your changes. -->"


def list_tokenizers(config: Config) -> list[str]:
    """Return the name of the file of each tokenizer."""
    return [TOKENIZER, *(f"tokenizer-{n}.json" for n in range(1, len(config.texts)))]


def is_model_file(name: str) -> bool:
    """Return whether a file name is one of those of a model folder.

    Example:
        >>> [is_model_file(name) for name in ("tokenizer-1.json", "README.md", "model.pkl")]
        [True, True, False]
    """
    known = (CONFIG, ARRAYS, TOKENIZER, LABELS, CALIBRATION, README)
    return name in known or _MORE_TOKENIZERS.fullmatch(name) is not None


def is_description(content: bytes) -> bool:
    """Return whether the content of a config.json is that of a model of setrnn."""
    return b'"setrnn"' in content


def choose_readme(file: Path, new: str) -> bytes:
    """Return the description that is there, or the new one if no person has written it."""
    kept = file.read_bytes() if file.is_file() else b""
    return kept if is_written(kept) else new.encode()


def is_written(readme: bytes) -> bool:
    """Return whether a person has written a README.md; a hub's header alone does not count."""
    text = readme.replace(b"\r\n", b"\n").lstrip(b"\xef\xbb\xbf")
    if text.startswith(b"---\n") and b"\n---\n" in text:
        text = text.partition(b"\n---\n")[2]
    text = text.strip()
    return bool(text) and not text.startswith(GENERATED.encode())


def refuse_other_folder(folder: Path) -> None:
    """Raise if `folder` exists and is not a model, or holds files of another kind."""
    if not folder.exists():
        return
    names = {each.name for each in folder.iterdir()} if folder.is_dir() else {folder.name}
    names -= {f".{CALIBRATION}.lock"}  # of a process that was killed
    others = sorted(name for name in names if not is_model_file(name) and not is_temporary(name))
    if CONFIG in names:
        is_model = is_description((folder / CONFIG).read_bytes())
    else:
        is_model = not others and README not in names
    if not is_model:
        raise ModelError(f"{folder} exists and is not a model. Name another folder.")
    if others:
        raise ModelError(
            f"{folder} also holds {others[0]}, which is not part of a model and would be lost. "
            "Move it elsewhere, or name another folder."
        )


def check_model_place(folder: Path) -> None:
    """Raise if a model cannot be written to `folder`: before the work, not after it."""
    refuse_other_folder(folder)
    check_folder_place(folder)
    parent = folder.resolve().parent
    while not parent.exists():
        parent = parent.parent
    with temporary_folder(parent / folder.name, way_out=" Name a folder in another place."):
        pass
