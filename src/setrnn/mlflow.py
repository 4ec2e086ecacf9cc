"""A model as an MLflow model: `save_model` and `log_model`; `mlflow.pyfunc.load_model` reads it.

MLflow keeps the model folder as it is and loads it by this module. Nothing is pickled.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import setrnn
from setrnn.errors import ConfigError, DataError


class TaggerModel:
    """What MLflow calls: texts, or a table with the column text, in; one row per text out."""

    def __init__(self, tagger: setrnn.Tagger) -> None:
        """Store the tagger."""
        self.tagger = tagger

    def predict(self, model_input: Any) -> list[dict[str, Any]]:  # noqa: ANN401 (many kinds)
        """Tag texts; return rows as `setrnn predict` writes them."""
        if hasattr(model_input, "columns"):
            if "text" not in model_input.columns:
                names = ", ".join(map(str, model_input.columns))
                raise DataError(f"A table needs the column text: it has {names}.")
            model_input = model_input["text"]
        texts = model_input if isinstance(model_input, str) else list(model_input)
        return [each.as_dict() for each in self.tagger.tag(texts)]  # one text is refused


def _load_pyfunc(path: str) -> TaggerModel:
    return TaggerModel(setrnn.load(path))


def save_model(model: str | Path | setrnn.Tagger, path: str | Path, **options: Any) -> None:  # noqa: ANN401
    """Write a model as an MLflow model; options are those of `mlflow.pyfunc.save_model`."""
    _with_pyfunc("save_model", model, path=str(path), **options)


def log_model(model: str | Path | setrnn.Tagger, **options: Any) -> Any:  # noqa: ANN401
    """Log a model to the current run; options are those of `mlflow.pyfunc.log_model`."""
    return _with_pyfunc("log_model", model, **options)


def _with_pyfunc(action: str, model: str | Path | setrnn.Tagger, **options: Any) -> Any:  # noqa: ANN401
    try:
        import mlflow.pyfunc
    except ImportError as error:
        raise ConfigError("An MLflow model needs mlflow: pip install mlflow") from error
    options = {"pip_requirements": [f"setrnn=={setrnn.__version__}"], **options}
    with TemporaryDirectory(prefix="setrnn-") as folder:
        data = setrnn.push(model, Path(folder) / "model")
        act = getattr(mlflow.pyfunc, action)
        return act(loader_module="setrnn.mlflow", data_path=data, **options)
