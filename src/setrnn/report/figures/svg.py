"""A drawing as SVG text that can stand in a page with others."""

from __future__ import annotations

import re
import warnings
from html import escape
from io import StringIO

from matplotlib.figure import Figure as Drawing

_NUMBERS = re.compile(r"-?\d+\.\d{2,}")
_IDS = re.compile(r' id="([^"]+)"')
_REFERENCES = re.compile(r"(url\(#|href=\"#)([^)\"]+)")


def to_svg(drawing: Drawing, name: str, alt: str) -> str:
    """Write a drawing: small, the same bytes for the same numbers, ids of its own."""
    stream = StringIO()
    with warnings.catch_warnings():
        # The viewer's fonts have the letters that ours lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawing.savefig(stream, format="svg", metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    # A style element would reach into the page.
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    svg = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", svg)
    svg = re.sub(r"(?<= d=\")[^\"]*|(?<=transform=\")[^\"]*|(?<= [xy]=\")[^\"]*", _rounded, svg)
    svg = _with_own_ids(re.sub(r">\s+<", ">\n<", svg), name)
    opening = (
        f'<svg role="img" aria-label="{escape(alt)}" font-family="sans-serif" '
        'stroke-linejoin="round" stroke-linecap="butt"'
    )
    return svg.replace("<svg", opening, 1)


def _rounded(found: re.Match[str]) -> str:
    text = _NUMBERS.sub(
        lambda number: f"{float(number.group()):.2f}".rstrip("0").rstrip("."), found.group()
    )
    return re.sub(r"\s*\n\s*", " ", text).strip()


def _with_own_ids(svg: str, name: str) -> str:
    """Drop the ids that nothing refers to, and put the figure's name before the others."""
    used = {found[1] for found in _REFERENCES.findall(svg)}

    def renamed(found: re.Match[str]) -> str:
        return f' id="{name}-{found[1]}"' if found[1] in used else ""

    return _REFERENCES.sub(rf"\1{name}-\2", _IDS.sub(renamed, svg))
