"""The labeling interface of a Label Studio project: which choices it has, and where the text is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from xml.parsers import expat

from setrnn.errors import DataError

OBJECT = "Text"
CHOICES = "Choices"
SINGLE = ("single", "single-radio")
MOST_CHARACTERS = 2_000_000


@dataclass
class ChoicesTag:
    """A tag of choices, and the text that it is about."""

    name: str
    to_name: str
    is_single: bool
    choices: list[str] = field(default_factory=list)  # empty if a task brings its own
    text_field: str = ""


@lru_cache(maxsize=16)
def find_choices(config: str) -> tuple[ChoicesTag, ...]:
    """Return the tags of choices about a text, in the order of the interface.

    A document type is refused, and with it every entity.

    Example:
        >>> (tag,) = find_choices(
        ...     '<View><Text name="t" value="$body"/><Choices name="c" toName="t" '
        ...     'choice="multiple"><Choice value="A"/></Choices></View>'
        ... )
        >>> tag.name, tag.to_name, tag.text_field, tag.choices, tag.is_single
        ('c', 't', 'body', ['A'], False)
    """
    if len(config) > MOST_CHARACTERS:
        raise DataError(f"The label config has more than {MOST_CHARACTERS:,} characters.")
    texts: dict[str, str] = {}
    tags: list[ChoicesTag] = []
    path: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        path.append(tag)
        if tag == OBJECT and attributes.get("valueType", "text") == "text":
            texts[attributes.get("name", "")] = attributes.get("value", "")
        elif tag == CHOICES:
            is_single = attributes.get("choice", "single") in SINGLE
            names = attributes.get("name", ""), attributes.get("toName", "")
            tags.append(ChoicesTag(*names, is_single))
        elif tag == "Choice" and CHOICES in path and tags:
            tags[-1].choices.append(attributes.get("alias") or attributes.get("value", ""))

    def end(tag: str) -> None:
        path.pop()

    def refuse(*_: object) -> None:
        raise DataError("The label config must not have a document type.")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(config.encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise DataError(
            f"The label config is not XML (line {error.lineno}): the project's labeling interface "
            "is expected."
        ) from None
    for each in tags:
        value = texts.get(each.to_name, "")
        each.text_field = value[1:] if value.startswith("$") else ""
    return tuple(each for each in tags if each.text_field)


def choose_tag(config: str, labels: Collection[str]) -> ChoicesTag:
    """Return the tag with the most choices that are labels of the model."""
    tags = find_choices(config)
    if not tags:
        raise DataError(
            'The label config has no <Choices> for a <Text value="$...">: setrnn tags texts with '
            "choices. GET /label-config returns an interface that fits."
        )
    return max(
        tags, key=lambda tag: (sum(each in labels for each in tag.choices), -tags.index(tag))
    )
