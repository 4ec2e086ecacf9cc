"""Predict documents of which some labels are known: what `predict` adds for them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import tee
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setrnn.cli.console import warn
from setrnn.errors import ConfigError

if TYPE_CHECKING:
    from setrnn.data.cache import Source
    from setrnn.data.example import Example
    from setrnn.tagging.completion import Completion
    from setrnn.tagging.prediction import Prediction
    from setrnn.tagging.tagger import Tagger

PresentField = Annotated[
    str | None,
    typer.Option(
        "--present-field",
        help="The field or column of labels known to be right: the rest is predicted.",
        show_default=False,
    ),
]
AbsentField = Annotated[
    str | None,
    typer.Option(
        "--absent-field",
        help="The field or column of labels known to be wrong.",
        show_default=False,
    ),
]


def with_known_fields(
    source: Source,
    tagger: Tagger,
    present_field: str | None,
    absent_field: str | None,
    rule: str | None,
) -> Source:
    """Read the known labels too, checked against those of the model."""
    from setrnn.tagging.completion import check_known

    if rule not in (None, "set"):
        raise ConfigError(
            f"Known labels are completed to the most probable set, not by rule '{rule}'. "
            "Leave out --rule, or --present-field and --absent-field."
        )
    if present_field == absent_field:
        raise ConfigError(
            f"--present-field and --absent-field are both '{present_field}'. Name two fields."
        )
    options = replace(
        source.options,
        present_field=present_field,
        absent_field=absent_field,
        check_known=partial(check_known, tagger.labels, max_labels=tagger.max_labels),
    )
    return replace(source, options=options)


def completion_rows(tagger: Tagger, examples: Iterable[Example], top: int) -> Iterator[str]:
    """Write a JSON line for each document; warn where no row has a known label."""
    from setrnn.data.example import KnownLabels

    for_texts, for_known, for_ids = tee(examples, 3)
    documents = ((each.text, each.features) for each in for_texts)
    known = (each.known or KnownLabels() for each in for_known)
    has_known = False
    for example, found in zip(for_ids, tagger.complete_stream(documents, known, top), strict=True):
        has_known = has_known or bool(found.present or found.absent)
        yield _row(example.id, found)
    if not has_known:
        warn("No row has a known label. Check --present-field and --absent-field.")


def row_values(example_id: str, found: Prediction | Completion) -> dict[str, Any]:
    """Return what a row of `predict` holds in any case."""
    return {
        "id": example_id,
        "labels": list(found.labels),
        "probability": found.probability,
        "alternatives": [
            {"labels": list(each.labels), "probability": each.probability}
            for each in found.alternatives
        ],
    }


def _row(example_id: str, found: Completion) -> str:
    values = row_values(example_id, found) | {
        "added": list(found.added),
        "suggestion": found.suggestion,
        "known_probability": found.known_probability,
    }
    return json.dumps(values, ensure_ascii=False) + "\n"
