"""Options that limit the sets a command may predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from setrnn.cli.options import with_group

if TYPE_CHECKING:
    from setrnn.systems.rules import Limits

MinLabels = Annotated[int, typer.Option(metavar="N", help="Labels of a set, at least.")]
MaxLabels = Annotated[
    int | None, typer.Option(metavar="N", help="Labels of a set, at most.", show_default=False)
]
OnlySeen = Annotated[
    bool, typer.Option("--only-seen", help="Only label sets of the training documents.")
]
Require = Annotated[
    list[str] | None,
    typer.Option(metavar="LABEL", help="A label every set must hold; may be repeated."),
]
Forbid = Annotated[
    list[str] | None,
    typer.Option(metavar="LABEL", help="A label no set may hold; may be repeated."),
]


@dataclass(frozen=True)
class LimitOptions:
    """The limits as given on the command line."""

    min_labels: MinLabels = 0
    max_labels: MaxLabels = None
    only_seen: OnlySeen = False
    require: Require = None
    forbid: Forbid = None

    def limits(self) -> Limits:
        """Return the limits; labels are checked by the model."""
        from setrnn.systems.rules import Limits

        return Limits(
            self.min_labels, self.max_labels, self.only_seen, self.require or (), self.forbid or ()
        )


def with_limits(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that limit sets: it gets them as one argument, `limits`."""
    return with_group(command, "limits", LimitOptions)
