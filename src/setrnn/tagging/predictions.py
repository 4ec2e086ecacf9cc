"""The predictions for several texts: a list, and a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from setrnn.errors import ConfigError
from setrnn.tagging.html import write_predictions
from setrnn.tagging.prediction import Prediction

if TYPE_CHECKING:
    import pandas as pd

ALWAYS = ("labels", "probability")


class Predictions(list[Prediction]):
    """A list of predictions, one per text.

    Example:
        >>> import setrnn
        >>> found = setrnn.Predictions([setrnn.Prediction(("sport", "storm"), 0.62)])
        >>> len(found), found[0].labels
        (1, ('sport', 'storm'))
    """

    def __init__(self, found: Iterable[Prediction] = (), texts: object = None) -> None:
        super().__init__(found)
        # Of a pandas Series; a list has a method of this name.
        self.rows = texts.index if hasattr(texts, "iloc") and hasattr(texts, "index") else None

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas DataFrame, one row per text.

        Its columns are those of `Prediction.as_dict`: `labels`, `probability`, `alternatives` and,
        where there is something to say, `accepted`, `label_probabilities`, `accepted_labels`. Its
        index is that of the texts, if they were a pandas Series.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ConfigError("A DataFrame needs pandas: pip install pandas") from None
        rows = [each.as_dict() for each in self]
        names = list(dict.fromkeys(name for row in rows for name in row)) or list(ALWAYS)
        columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
        return pd.DataFrame(columns, index=self.rows)

    def _repr_html_(self) -> str:
        return write_predictions(self)
