"""The pages of the reference, made from the code: commands, settings, API and methods."""

from __future__ import annotations

import dataclasses
import inspect
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import setrnn
from setrnn import config
from setrnn.cli.app import COMMANDS, load_command
from setrnn.methods import METHODS

FIELD = re.compile(r"^ {4}(\w+): .+? = ")
ROOM = 80  # a signature that is longer has one parameter per line


def write_commands() -> str:
    """Describe every command as `--help` does."""
    lines = [
        "# Commands",
        "",
        "Made from the commands themselves: `setrnn COMMAND --help` says the same. Exit codes: 0 "
        "done, 1 a failure said in one line, 2 wrong usage, 130 stopped. `setrnn --version` shows "
        "the version; `--debug`, anywhere, shows tracebacks.",
        "",
    ]
    for name, summary in COMMANDS.items():
        command = load_command(name)
        parts = getattr(command, "commands", None)
        if parts is None:
            lines += _command(f"setrnn {name}", command, 2)
            continue
        lines += [f"## setrnn {name}", "", summary, ""]
        for part, each in parts.items():
            lines += _command(f"setrnn {name} {part}", each, 3)
    return "\n".join(lines) + "\n"


def _command(name: str, command: Any, level: int) -> list[str]:  # noqa: ANN401 (of click)
    context = command.make_context(name, [], resilient_parsing=True)
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = ["#" * level + f" {name}", "", inspect.cleandoc(command.help or ""), ""]
    lines += ["```text", " ".join(usage.split()), "```", ""]
    for kind in ("argument", "option"):
        parameters = [each for each in command.params if each.param_type_name == kind]
        records = [each.get_help_record(context) for each in parameters]
        rows = [_row(f"`{names}`", about) for names, about in filter(None, records)]
        if rows:
            lines += [f"| {kind} | |", "|---|---|", *rows, ""]
    return lines


def write_settings() -> str:
    """List every setting with its default, its values in the presets, and its comment."""
    groups = {
        each.name: type(getattr(config.Config(), each.name))
        for each in dataclasses.fields(config.Config)
        if dataclasses.is_dataclass(getattr(config.Config(), each.name))
    }
    changes = config.PRESETS.items()
    presets = {name: config.flatten(each) for name, each in changes if each}
    lines = [
        "# Settings",
        "",
        "Made from `setrnn/config.py`. `--set GROUP.NAME=VALUE` changes a setting of `train`, "
        "`compare` and other commands, `--config FILE` several of them by a JSON file with the "
        "groups as objects, `--preset` all that the preset names. Unknown names and values out of "
        "range are refused; ranges are in brackets. [Training](../training.md#what-to-try) says "
        "what to try.",
        "",
        *_settings("seed", "", config.Config, presets, {"seed"}),
    ]
    for name, group in groups.items():
        lines += _settings(name, f"{name}.", group, presets)
    return "\n".join(lines) + "\n"


def _settings(
    title: str,
    prefix: str,
    group: Any,  # noqa: ANN401 (a dataclass)
    presets: dict[str, dict[str, Any]],
    only: set[str] | None = None,
) -> list[str]:
    comments = field_comments(group)
    about = "" if only else (inspect.getdoc(group) or "").splitlines()[0]
    head = ["| setting | default | | in presets |", "|---|---|---|---|"]
    lines = [f"## {title}", "", about, "", *head]
    for each in dataclasses.fields(group):
        if only and each.name not in only:
            continue
        name = prefix + each.name
        changed = ", ".join(
            f"{preset} `{values[name]}`" for preset, values in presets.items() if name in values
        )
        default = f"`{each.default}`" if each.default != "" else ""
        comment = comments.get(each.name, "")
        if "bounds" in each.metadata and each.name != "seed":
            least, most = (
                int(bound) if float(bound).is_integer() else bound
                for bound in each.metadata["bounds"]
            )
            comment += f" ({least:,} to {most:,})" if comment else f"{least:,} to {most:,}"
        lines.append(_row(f"`{name}`", default, comment, changed))
    return [*lines, ""]


def field_comments(group: type) -> dict[str, str]:
    """Read the comment of each field of a dataclass: after it, or on the lines before it."""
    found: dict[str, str] = {}
    before: list[str] = []
    for line in inspect.getsource(group).splitlines():
        comment = _comment(line)
        if line.strip().startswith("#"):
            before.append(comment)
            continue
        if field := FIELD.match(line):
            found[field[1]] = " ".join([*before, comment]).strip()
        before = []
    return found


def _comment(line: str) -> str:
    tokens = tokenize.generate_tokens(io.StringIO(line.strip() + "\n").readline)
    try:
        return "".join(each.string.lstrip("# ") for each in tokens if each.type == tokenize.COMMENT)
    except (tokenize.TokenError, IndentationError, SyntaxError):  # a part of a longer statement
        return ""


def write_methods() -> str:
    """List the methods, as `setrnn methods` does."""
    lines = [
        "# Methods",
        "",
        "Made from `setrnn/methods.py`, which `setrnn methods` prints: what each system is for, "
        "what its training maximises, and what its own rule predicts. x: a document, y: a label "
        "set, s: a sequence of labels, π(y): all orders of a set.",
        "",
        _row("method", "kind", "for", "training", "prediction", "rule"),
        "|---|---|---|---|---|---|",
    ]
    for name, each in METHODS.items():
        kind = (
            "paper" if each.is_in_paper else "later paper" if each.is_later else "beyond the paper"
        )
        cells = (f"{each.family}, {kind}", each.purpose, each.training, each.prediction)
        plain = (cell.replace("*", "\\*") for cell in cells)  # s* is the best sequence
        lines.append(_row(f"`{name}`", *plain, f"`{each.rule}`"))
    return "\n".join(lines) + "\n"


def write_api() -> str:
    """Describe the public names of the package by their docstrings."""
    lines = [
        "# Python API",
        "",
        "The public names of `import setrnn`, made from their docstrings, whose examples run in a "
        "test. Most programs need few of them: [train](#setrnntrain) and [load](#setrnnload) "
        "return a [Tagger](#setrnntagger), whose `tag`, `complete` and `explain` take texts; "
        "[SetRNNClassifier](#setrnnsetrnnclassifier) is for scikit-learn.",
        "",
    ]
    found = {name: getattr(setrnn, name) for name in setrnn.__all__ if not name.startswith("__")}
    kinds: dict[str, Callable[[Any], bool]] = {
        "Functions": inspect.isroutine,
        "Classes": lambda value: inspect.isclass(value) and not issubclass(value, Exception),
        "Errors": lambda value: inspect.isclass(value) and issubclass(value, Exception),
        "Modules": inspect.ismodule,
    }
    for title, is_kind in kinds.items():
        lines += [f"## {title}", ""]
        for name, value in found.items():
            if is_kind(value):
                lines += list(_describe(name, value))
    return "\n".join(lines) + "\n"


def _describe(name: str, value: Any) -> Iterator[str]:  # noqa: ANN401
    full = f"setrnn.{name}"
    yield from (f"### {full}", "")
    if not inspect.ismodule(value) and not _is_error(value):
        yield from _signature(full, value)
    yield from _docstring(value)
    if inspect.ismodule(value):
        functions = inspect.getmembers(value, inspect.isfunction)
        for member, each in functions:
            if not member.startswith("_") and each.__module__ == value.__name__:
                yield from (f"#### {full}.{member}", "")
                yield from _signature(f"{full}.{member}", each)
                yield from _docstring(each)
    if inspect.isclass(value) and not _is_error(value):
        for member, each in _members(value).items():
            if member.startswith("_") or isinstance(each, staticmethod):
                continue
            called = getattr(value, member)
            if isinstance(each, property | cached_property):
                yield from (f"#### {name}.{member}", "", *_docstring(each))
            elif inspect.isroutine(called) and _is_ours(called):
                yield from (f"#### {name}.{member}", "")
                signature = _signature(f"{name}.{member}", called)
                yield from (line.replace("-> Self", f"-> {name}") for line in signature)
                yield from _docstring(called)


def _members(value: type) -> dict[str, Any]:
    """Return what a class has of its own, then what it has of classes of this package."""
    found: dict[str, Any] = {}
    for kind in value.__mro__:
        if kind.__module__.startswith("setrnn"):
            for name, each in vars(kind).items():
                found.setdefault(name, each)
    return found


def _is_ours(value: Any) -> bool:  # noqa: ANN401
    """Return whether a method was written here: scikit-learn adds some to an estimator."""
    return bool(value.__doc__) and getattr(value, "__module__", "").startswith("setrnn")


def _is_error(value: Any) -> bool:  # noqa: ANN401
    return inspect.isclass(value) and issubclass(value, Exception)


def _signature(name: str, value: Any) -> Iterator[str]:  # noqa: ANN401
    signature = inspect.signature(value)
    parts, seen_keyword = [], False
    for each in signature.parameters.values():
        if each.name == "self":
            continue
        seen_keyword |= each.kind is each.VAR_POSITIONAL
        if each.kind is each.KEYWORD_ONLY and not seen_keyword:
            parts.append("*")
            seen_keyword = True
        parts.append(_parameter(each))
    result = signature.return_annotation
    has_result = result is not signature.empty and not inspect.isclass(value)
    arrow = f" -> {_plain(result)}" if has_result else ""
    text = f"{name}({', '.join(parts)}){arrow}"
    if len(text) > ROOM and parts:
        text = f"{name}(\n" + "".join(f"    {each},\n" for each in parts) + f"){arrow}"
    yield from ("```python", text, "```", "")


def _parameter(part: inspect.Parameter) -> str:
    """Write a parameter as in Python; defaults that are objects by their names."""
    stars = {part.VAR_POSITIONAL: "*", part.VAR_KEYWORD: "**"}.get(part.kind, "")
    text = stars + part.name
    if part.annotation is not part.empty:
        text += f": {_plain(part.annotation)}"
    if part.default is not part.empty:
        text += f" = {_default(part.default)}"
    return text


def _default(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, str):
        return json.dumps(value)
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__}(...)"
    if inspect.isfunction(value):
        return value.__name__
    return re.sub(r"<factory>|<[^<>]+ object at [^<>]+>", "...", repr(value))


def _plain(annotation: Any) -> str:  # noqa: ANN401
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _docstring(value: Any) -> Iterator[str]:  # noqa: ANN401
    """Turn a docstring into Markdown: its sections Args, Attributes and Example."""
    text = inspect.cleandoc(value.__doc__ or "")
    for part in re.split(r"^(?=(?:Args|Attributes|Example):$)", text, flags=re.MULTILINE):
        head, _, body = part.partition("\n")
        if head in ("Args:", "Attributes:"):
            yield from ("**Parameters**" if head == "Args:" else "**Attributes**", "")
            items = re.split(r"^    (?=[\w*]+(?: \(.*?\))?: )", body, flags=re.MULTILINE)
            for item in items[1:]:
                name, _, about = item.partition(":")
                yield f"- `{name}`: {' '.join(about.split())}"
            yield ""
        elif head == "Example:":
            code = inspect.cleandoc("\n" + body)
            shown = re.sub(r" +# doctest: \+\w+", "", code)
            yield from ("```pycon", shown, "```", "")
        else:
            yield from (part.strip(), "")


def _row(*cells: str) -> str:
    """Write a row of a table. A cell has one line, and no bar of its own outside of code."""
    escaped = (" ".join(str(each).split()).replace("|", "\\|") for each in cells)
    return "| " + " | ".join(escaped) + " |"


PAGES = {
    "reference/commands.md": write_commands,
    "reference/settings.md": write_settings,
    "reference/api.md": write_api,
    "reference/methods.md": write_methods,
}
