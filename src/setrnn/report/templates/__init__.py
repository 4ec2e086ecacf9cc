"""The templates of all HTML pages, and the one function that renders them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from setrnn.report.wording import format_probability


def render(template: str, **values: object) -> str:
    """Render a template of this folder; every value is escaped unless it is `Markup`.

    The page contains its styles and scripts, and its policy forbids loading anything else.
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("setrnn.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters["probability"] = format_probability
    environment.globals["asset"] = _read_asset
    return environment


def _read_asset(name: str) -> Markup:
    """Return a style or a script of this folder, to be inserted as it is."""
    return Markup(files(__name__).joinpath(name).read_text(encoding="utf-8"))
