"""Write the pages of the site into one folder, from which a site generator builds it.

    python tools/site/pages.py build/pages

The pages of docs/ link to each other, to pages beside docs/ and to source files, as they are in the
repository. Here the pages beside docs/ become pages of the site, and so do linked source files, the
tables of the results, the notebook and the reference. Links are changed to where these are.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(Path(__file__).parent))

import reference  # noqa: E402

# Pages beside docs/, and what each is called in the site.
BESIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "report-a-weakness.md",
    "deploy/README.md": "deploy.md",
    "benchmarks/README.md": "benchmarks.md",
    "docs/notebook.ipynb": "notebook.md",
}
LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
NAMED = re.compile(r"\[(?:docs/)?[\w./-]+\.(?:md|ipynb)\]\(([^)\s#]+)")  # by the name of its file
FROM_README = re.compile(r"<!-- README.md: (.+) -->")
PICTURES = {".svg", ".png"}
PROSE = re.compile(r"^(?! {4}).*$", re.MULTILINE)
ROW = re.compile(r"^\|.*$", re.MULTILINE)
BOOSTED = {"Start", "Guides", "Concepts"}  # a search finds what explains before what lists
LANGUAGES = {".py": "python", ".toml": "toml", ".yaml": "yaml", ".json": "json"}


def write_pages(folder: Path) -> None:
    """Write all pages and pictures of the site into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=leave_out)
    pages = {
        **{name: write() for name, write in reference.PAGES.items()},
        **{name: (ROOT / place).read_text(encoding="utf-8") for place, name in BESIDE.items()},
        **{
            f"{each.relative_to(DOCS).as_posix()}.md": write_tables(each)
            for each in table_folders()
        },
        **{
            file.relative_to(folder).as_posix(): take_in(file.read_text(encoding="utf-8"))
            for file in folder.rglob("*.md")
        },
    }
    pages["notebook.md"] = write_notebook(pages["notebook.md"])
    for source in sorted(set(linked_sources(pages))):
        if Path(source).suffix in PICTURES:
            copy = folder / site_page(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / source, copy)
        else:
            pages[site_page(source)] = write_source(source)
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    titles, boosted = dict(nav_titles(nav)), boosted_pages(nav)
    for name, text in pages.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = change_page(name, text, titles)
        file.write_text(boost(text) if name in boosted else text, encoding="utf-8")


def leave_out(folder: str, names: list[str]) -> set[str]:
    """Name the files of docs/ that are not of the site as they are."""
    is_table = Path(folder).name == "tables"
    suffixes = (".py", ".ipynb", *([".md"] if is_table else []))
    return {name for name in names if name == "__pycache__" or name.endswith(suffixes)}


def boost(text: str) -> str:
    """Let a search find a page before others."""
    front = "search:\n  boost: 2\n"
    rest = text.removeprefix("---\n")
    return f"---\n{front}{rest}" if rest != text else f"---\n{front}---\n\n{text}"


def change_page(here: str, markdown: str, titles: dict[str, str]) -> str:
    """Change the links of a page to where the site has the pages.

    A link that is called by the name of a file gets the title of the page instead. Values stay on
    one line with their deviation, and an escaped < is read as GitHub reads it.
    """
    markdown = PROSE.sub(lambda line: line[0].replace("\\<", "&lt;"), markdown)
    markdown = ROW.sub(lambda row: row[0].replace(" ± ", "&nbsp;±&nbsp;"), markdown)

    def change(found: re.Match[str]) -> str:
        target, anchor = resolve(here, found[0])
        if target is None:
            return found[0]
        place, part = site_page(target), anchor
        if is_table(target):
            place, part = site_page(posixpath.dirname(target)), Path(target).stem
        elif target.endswith("/figures"):
            part = "figures"
        changed = posixpath.relpath(place, posixpath.dirname(here) or ".")
        return f"{changed}#{part}" if part else changed

    def name(found: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(here), found[1]))
        return f"[{titles[place]}]({found[1]}" if place in titles else found[0]

    return NAMED.sub(name, LINK.sub(change, markdown))


def boosted_pages(nav: Any) -> set[str]:  # noqa: ANN401 (of a YAML file)
    """Return the pages of the parts that a search should find first."""
    parts = [each for each in nav if BOOSTED & set(each)]
    return {place for place, _ in nav_titles(parts)}


def nav_titles(nav: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 (of a YAML file)
    """List the pages of the nav with their titles there."""
    for each in nav:
        for title, part in each.items() if isinstance(each, dict) else ():
            if isinstance(part, str):
                yield part, title
            else:
                yield from nav_titles(part)


def resolve(here: str, link: str) -> tuple[str | None, str]:
    """Find the file of the repository that a link on a page of the site means, and the anchor."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not parts.path:
        return None, ""
    home = next((place for place, name in BESIDE.items() if name == here), f"docs/{here}")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(home), parts.path))
    return (target if (ROOT / target).exists() else None), parts.fragment


def site_page(target: str) -> str:
    """Return the name that a file of the repository has in the site."""
    if target in BESIDE:
        return BESIDE[target]
    if target == "README.md":
        return "index.md"
    if target.startswith("docs/results/") and (ROOT / target).is_dir():
        near = [each for each in table_folders() if (ROOT / target) in (each, *each.parents)]
        folder = near[0] if near else (ROOT / target).parent / "tables"  # beside its figures
        return f"{folder.relative_to(ROOT / 'docs').as_posix()}.md"
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if (ROOT / target).is_dir():
        target = f"{target}/__init__.py"
    return f"source/{target}" + ("" if Path(target).suffix in PICTURES else ".md")


def is_table(target: str) -> bool:
    """Return whether a file is one of the tables that are shown on one page."""
    return target.endswith(".md") and (ROOT / target).parent in table_folders()


def linked_sources(texts: dict[str, str]) -> Iterator[str]:
    """Find the source files that pages link to."""
    for here, text in texts.items():
        for link in LINK.findall(text):
            target, _ = resolve(here, link)
            if target is not None and site_page(target).startswith("source/"):
                is_folder = (ROOT / target).is_dir()
                yield f"{target}/__init__.py" if is_folder else target


def write_source(target: str) -> str:
    """Write the page of a source file."""
    language = LANGUAGES.get(Path(target).suffix, "text")
    code = (ROOT / target).read_text(encoding="utf-8")
    return f"---\nsearch:\n  exclude: true\n---\n\n# {target}\n\n~~~~{language}\n{code}~~~~\n"


@cache
def table_folders() -> list[Path]:
    """Find the folders of tables of stored comparisons."""
    return sorted((ROOT / "docs" / "results").glob("**/tables"))


def write_tables(folder: Path) -> str:
    """Write one page with all tables of a comparison, and the files of their numbers."""
    name = folder.parent.relative_to(ROOT / "docs" / "results")
    group = {"paper": ", preset `paper`", "later": ", with later papers"}.get(name.parts[0], "")
    lines = ["---", "search:", "  exclude: true", "---", "", f"# Tables of {name.name}{group}", ""]
    for file in sorted(folder.glob("*.md")):
        links = [
            f"[{each.suffix[1:].upper()}](tables/{each.name})"
            for each in sorted(folder.glob(f"{file.stem}.*"))
            if each.suffix != ".md"
        ]
        lines += [
            f"## {file.stem}",
            "",
            file.read_text(encoding="utf-8"),
            "",
            " · ".join(links),
            "",
        ]
    figures = sorted((folder.parent / "figures").glob("*.svg"))
    lines += ["## Figures", ""] if figures else []
    for file in figures:
        lines += [f"### {file.stem}", "", f"![{file.stem}](figures/{file.name})", ""]
    return "\n".join(lines)


def write_notebook(text: str) -> str:
    """Write the page of a notebook: its text, and the code of its cells."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"


def take_in(markdown: str) -> str:
    """Replace each comment that names a part of README.md by that part."""
    return FROM_README.sub(lambda found: from_readme(found[1]), markdown)


def from_readme(part: str) -> str:
    """Return a part of README.md: its first paragraphs (intro), or the section of a heading."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    if part == "intro":
        found = sections[0].split("\n", 1)[1]
    else:
        (found,) = [each for each in sections if each.startswith(f"## {part}\n")]
    return LINK.sub(lambda link: _moved(link[0]), found).strip()


def _moved(link: str) -> str:
    """Change a link of README.md to one from docs/."""
    if urlsplit(link).scheme or link.startswith("#"):
        return link
    return Path(os.path.relpath(ROOT / link, ROOT / "docs")).as_posix()


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
