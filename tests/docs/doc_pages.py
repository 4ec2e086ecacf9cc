"""The pages of the documentation: their blocks of code, and the commands in them."""

import importlib.util
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BESIDE_DOCS = ("README.md", "CONTRIBUTING.md", "deploy/README.md", "benchmarks/README.md")
MARK = re.compile(r"<!-- run by (tests/[\w/]+\.py)(?:: ([\w ]+))? -->")
PROGRAMS = {
    *("setrnn", "make", "python", "python3", "pip", "pytest", "torchrun", "ray", "curl", "kill"),
    *("openssl", "docker", "kubectl", "helm", "sudo", "nvidia-cuda-mps-control", "cat", "zensical"),
}
SETTING = re.compile(r"^\w+=\S*$")  # of an environment, before a command


@dataclass(frozen=True)
class Block:
    """A fenced or indented block of a page."""

    page: str
    line: int  # of its first line, from 1
    language: str  # of a fence; "" of an indented block
    text: str
    run_by: str | None = None  # the test that the comment before it names
    story: str | None = None  # of several on a page

    @property
    def is_python(self):
        return self.language == "python" or (
            not self.language and bool(re.match(r"(import|from) \w+", self.text))
        )

    @property
    def commands(self):
        """The commands of the block as lists of words, each with its line of the page."""
        found, lines = [], self.text.splitlines()
        while lines:
            number = self.line + len(self.text.splitlines()) - len(lines)
            whole = lines.pop(0).strip().removeprefix("$ ")
            if not is_command(whole):
                continue
            while (words := split(whole)) is None and lines:  # a backslash, or an open quote
                whole = whole.removesuffix("\\") + ("" if whole.endswith("\\") else "\n")
                whole += lines.pop(0).strip()
            found.append((number, words))
        return found


def is_command(line):
    words = line.split()
    while words and SETTING.match(words[0]):
        words.pop(0)
    return bool(words) and words[0] in PROGRAMS


def split(line):
    """Return the words of a command, or None if it continues on the next line."""
    if line.endswith("\\"):
        return None
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return None


def list_pages():
    """All pages that people wrote, as paths from the root of the repository."""
    docs = (ROOT / "docs").rglob("*.md")
    pages = {path.relative_to(ROOT).as_posix() for path in docs if path.parent.name != "tables"}
    return sorted(pages) + list(BESIDE_DOCS)


def list_blocks(page):
    """The blocks of code of a page."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    found, number = [], 0
    while number < len(lines):
        line, start, language = lines[number], number, ""
        if line.startswith("```"):
            language = line.removeprefix("```") or "text"
            end = next(n for n in range(number + 1, len(lines)) if lines[n].startswith("```"))
            inside, number = lines[start + 1 : end], end + 1
            first = start + 2
        elif line.startswith("    ") and not is_in_list(lines, start):
            while number < len(lines) and (lines[number].startswith("    ") or not lines[number]):
                number += 1
            inside = [each[4:] for each in lines[start:number]]
            first = start + 1
        else:
            number += 1
            continue
        mark = MARK.match(lines[start - 1]) if start else None
        found.append(
            Block(page, first, language, "\n".join(inside), *(mark.groups() if mark else ()))
        )
    return found


def is_in_list(lines, number):
    """Whether an indented line continues an item of a list, rather than being code."""
    before = next((each for each in reversed(lines[:number]) if each.strip()), "")
    is_text = re.match(r"([-*]|\d+\.) ", before) or re.match(r" {2,4}\S", before)
    return bool(is_text) and len(lines[number]) - len(lines[number].lstrip()) < 6


def posted(curl):
    """Return the request of a curl command to the service, as a client of it takes one."""
    (url,) = [each for each in curl if each.startswith("localhost:8000/")]
    request = {"method": "GET", "url": url.removeprefix("localhost:8000")}
    if "-d" in curl:
        name, value = curl[curl.index("-H") + 1].split(": ")
        request |= {
            "method": "POST",
            "content": curl[curl.index("-d") + 1],
            "headers": {name: value},
        }
    return request


def load_script(file):
    """Import a script that is no part of the package."""
    specification = importlib.util.spec_from_file_location(file.stem, file)
    module = sys.modules[file.stem] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
