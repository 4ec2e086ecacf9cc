"""The scikit-learn estimator: lists of texts in, label sets out."""

from __future__ import annotations

import json
import reprlib
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from numbers import Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from setrnn.config import Config, load_config
from setrnn.data.example import Example
from setrnn.data.prepared import prepare
from setrnn.data.ragged import Ragged
from setrnn.data.splits import stratified_split
from setrnn.errors import ConfigError, DataError
from setrnn.methods import Method, find_method
from setrnn.progress import Note, Progress, ignore_progress
from setrnn.systems.registry import choose_rule
from setrnn.tagging.prediction import Prediction
from setrnn.tagging.tagger import Tagger
from setrnn.tagging.train import check_training, train_prepared
from setrnn.training.start import TrainOptions

if TYPE_CHECKING:
    from typing import TypeAlias

    # Sets of labels, or an indicator matrix (texts x labels) of 0 and 1.
    Targets: TypeAlias = Sequence[Collection[str]] | npt.NDArray[Any] | sp.csr_matrix
    Features: TypeAlias = Sequence[Collection[str]] | None


_NUMBERS = (int, float, complex, np.number, np.bool_)


class InputError(DataError, ValueError):
    """Texts or labels that do not fit; a ValueError too, as users of scikit-learn expect."""


class SetRNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Tag texts with sets of labels, as a scikit-learn classifier.

    Labels are given as one collection of strings a text, or as an indicator matrix. For
    `cross_val_score` and `GridSearchCV` write the collections as sets: scikit-learn refuses
    lists of lists before it asks the estimator.

    Args:
        method: the system to train, one of `setrnn.methods.METHODS`.
        preset: the settings to start from, as `--preset` on the command line.
        settings: single settings by their dotted names, such as `{"training.epochs": 10}`; as
            `--set` on the command line.
        rule: how the predicted set is chosen, one of `setrnn.systems.rules.RULES`; None for the
            method's own.
        validation_fraction: the share of the texts that is not trained on but chooses the best
            epoch of a network, by `training.metric`, and calibrates its probabilities if they are
            100 texts or more; 0 trains on all, to the last epoch.
        device: where to compute: "cpu", "cuda", or "auto" for a GPU if there is one.
        random_state: the seed: a whole number, a `RandomState`, or None for a fresh one each fit.
        verbose: write a line to standard error after each epoch.

    Attributes:
        classes_: the labels in alphabetical order; after fitting on an indicator matrix, the
            numbers of its columns, and the label of column 3 is "3".
        tagger_: the trained model.
    """

    # A text is X under another name, not metadata to be routed.
    __metadata_request__fit = {"texts": UNUSED}  # noqa: RUF012 (scikit-learn's form)
    __metadata_request__predict = {"texts": UNUSED}  # noqa: RUF012
    __metadata_request__predict_proba = {"texts": UNUSED}  # noqa: RUF012
    __metadata_request__score = {"texts": UNUSED}  # noqa: RUF012

    def __init__(
        self,
        method: str = "set-rnn",
        *,
        preset: str = "default",
        settings: Mapping[str, Any] | None = None,
        rule: str | None = None,
        validation_fraction: float = 0.0,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.preset = preset
        self.settings = settings
        self.rule = rule
        self.validation_fraction = validation_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, texts: Sequence[str], y: Targets, features: Features = None) -> SetRNNClassifier:
        """Train on texts and their label sets.

        Args:
            texts: the documents.
            y: a collection of labels for each text (an empty one is legal), or an indicator
                matrix, texts x labels.
            features: each document's features (the paper's user tags), where there are some.
        """
        method, config = find_method(self.method), self._config()
        choose_rule(method, self.rule)
        documents = _read_texts(texts)
        if not documents:
            raise InputError("There are 0 texts: fit needs at least 1.")
        label_sets, n_columns = _read_targets(y, len(documents))
        if method.is_network and not any(label_sets):
            raise InputError(
                f"No text has a label: '{method.name}' has nothing to learn. Give labels, or use "
                "a classical method such as br."
            )
        rows = _read_features(features, len(documents))
        examples = [
            Example(str(number), *each)
            for number, each in enumerate(zip(documents, label_sets, rows, strict=True))
        ]
        options = TrainOptions(
            device=self.device, on_progress=_write_epoch if self.verbose else ignore_progress
        )
        self.tagger_ = _train(method, config, self._splits(examples, config.seed), options)
        if n_columns is None:
            self.classes_ = np.array(sorted(set().union(*label_sets)), dtype=object)
        else:
            self.classes_ = np.arange(n_columns)
        return self

    def predict(self, texts: Sequence[str], features: Features = None) -> npt.NDArray[np.int64]:
        """Return the predicted sets as 0 and 1, texts x `classes_`."""
        predictions = self._tag(texts, features)
        column_of = self._columns()
        indicator = np.zeros((len(predictions), len(self.classes_)), dtype=np.int64)
        for row, prediction in enumerate(predictions):
            indicator[row, [column_of[label] for label in prediction.labels]] = 1
        return indicator

    def predict_proba(
        self, texts: Sequence[str], features: Features = None
    ) -> npt.NDArray[np.float32]:
        """Return p(label | text), texts x `classes_`."""
        check_is_fitted(self)
        documents = _read_texts(texts)
        marginals = self.tagger_.predict_proba(documents, _read_features(features, len(documents)))
        column_of = self._columns()
        columns = [column_of[name] for name in self.tagger_.labels.names]
        # A label that no text trained on has is none of the tagger's: its column stays 0.
        probs = np.zeros((len(documents), len(self.classes_)), dtype=np.float32)
        probs[:, columns] = marginals
        return probs

    def predict_sets(
        self, texts: Sequence[str], top: int = 3, features: Features = None
    ) -> list[Prediction]:
        """Return the predicted set of each text, and the most probable others: `top` in all."""
        return self._tag(texts, features, top)

    def score(
        self,
        texts: Sequence[str],
        y: Targets,
        sample_weight: npt.ArrayLike | None = None,
        features: Features = None,
    ) -> float:
        """Return the share of texts whose predicted set is exactly right (subset accuracy).

        A label that was not seen in training counts as missed.

        Args:
            texts: the documents.
            y: their label sets; an indicator matrix must have the columns of `classes_`.
            sample_weight: how much each text counts.
            features: each document's features.
        """
        predictions = self._tag(texts, features)
        if not predictions:
            raise InputError("There are 0 texts: score needs at least 1.")
        label_sets, _ = _read_targets(y, len(predictions), [*map(str, self.classes_)])
        pairs = zip(predictions, label_sets, strict=True)
        is_exact = np.array([set(prediction.labels) == set(labels) for prediction, labels in pairs])
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(is_exact, weights=weights))

    def save(self, folder: str | Path) -> None:
        """Write the model's folder, which `setrnn.load` and the command line read."""
        check_is_fitted(self)
        self.tagger_.save(folder)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 (scikit-learn has no types)
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags

    def _tag(self, texts: Sequence[str], features: Features, top: int = 1) -> list[Prediction]:
        check_is_fitted(self)
        documents = _read_texts(texts)
        rows = _read_features(features, len(documents))
        return self.tagger_.tag(documents, self.rule, top, rows)

    def _splits(self, examples: list[Example], seed: int) -> dict[str, list[Example]]:
        """Set aside the texts that choose the best epoch and calibrate."""
        share = self.validation_fraction
        if not isinstance(share, Real) or not 0 <= share < 1:
            raise ConfigError(f"validation_fraction must be at least 0 and below 1, got {share!r}.")
        if share == 0:
            return {"train": examples}
        label_sets = [example.labels for example in examples]
        number_of: dict[str, int] = {}  # copies of a text stay together
        groups = [number_of.setdefault(example.text, len(number_of)) for example in examples]
        if len(number_of) < 2:
            raise InputError("validation_fraction needs two different texts or more.")
        part_of = stratified_split(label_sets, (1 - share, share), seed, groups)
        parts: dict[str, list[Example]] = {"train": [], "valid": []}
        for example, part in zip(examples, part_of, strict=True):
            parts["valid" if part else "train"].append(example)
        return parts

    def _columns(self) -> dict[str, int]:
        return {str(label): column for column, label in enumerate(self.classes_)}

    def _config(self) -> Config:
        settings = {} if self.settings is None else self.settings
        if not isinstance(settings, Mapping):
            raise ConfigError(
                f"settings must be a dict such as {{'classical.l1': 0.3}}, got {settings!r}."
            )
        if "seed" in settings:
            raise ConfigError("settings must not hold 'seed'. Give it as random_state.")
        overrides = [
            f"{name}={json.dumps(value, default=_plain)}" for name, value in settings.items()
        ]
        config = load_config(self.preset, overrides=[*overrides, f"seed={self._seed()}"])
        if config.classical.tune:
            raise ConfigError(
                "'classical.tune' needs a valid split, which fit has not. "
                "Search over settings with GridSearchCV."
            )
        return config

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))


def _train(
    method: Method, config: Config, splits: Mapping[str, list[Example]], options: TrainOptions
) -> Tagger:
    """Train on a prepared folder that is gone afterwards: the tagger holds nothing of it."""
    check_training(method, config, options.device, resume=False)
    with TemporaryDirectory(prefix="setrnn-", ignore_cleanup_errors=True) as folder:
        streams = {name: partial(iter, examples) for name, examples in splits.items()}
        prepared = prepare(streams, Path(folder) / "texts", "texts", config.text, source={})
        return train_prepared(prepared, method, config, options)


def _write_epoch(progress: Progress | Note) -> None:
    """Write one line per epoch to standard error."""
    epoch = None if isinstance(progress, Note) else progress.epoch
    if epoch is None or epoch.scores is None:
        return
    scores = "".join(f", {name} {value:.3f}" for name, value in epoch.scores.items())
    line = f"epoch {epoch.number}/{epoch.n_epochs}: loss {epoch.loss:.3f}{scores}"
    sys.stderr.write(line + "\n")


def _plain(value: object) -> object:
    """Return what JSON can write; a value of the wrong type is refused with its setting."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _read_texts(texts: Iterable[Any]) -> list[str]:
    """Return the texts as plain strings, checked."""
    if isinstance(texts, str | bytes):
        raise InputError(f"texts must be a list of strings, got {_shown(texts)}. Write [text].")
    if sp.issparse(texts):
        raise InputError(
            "texts must be a list of strings, got a sparse matrix. Give the texts themselves: "
            "no vectorizer is needed before."
        )
    documents = []
    for number, text in enumerate(_listed(texts, "texts", "a list of strings")):
        if not isinstance(text, str):
            advice = "Write '' for an empty text." if text is None else "Write it as a string."
            if isinstance(text, np.ndarray):
                advice = "Take the one column that holds the texts."
            raise InputError(f"texts[{number}] must be a string, got {_shown(text)}. {advice}")
        _check_characters(text, f"texts[{number}]")
        documents.append(str(text))  # numpy has strings of its own
    return documents


def _read_features(features: Iterable[Any] | None, n_texts: int) -> list[tuple[str, ...]]:
    """Return the features of each text, checked."""
    if features is None:
        return [()] * n_texts
    rows = _listed(features, "features", "a list with a collection of strings for each text")
    _check_length(len(rows), n_texts, "features")
    return [_read_strings(row, f"features[{number}]") for number, row in enumerate(rows)]


def _read_targets(
    y: Any,  # noqa: ANN401 (what users give)
    n_texts: int,
    column_names: Sequence[str] | None = None,
) -> tuple[list[tuple[str, ...]], int | None]:
    """Return the labels of each text, and the number of columns if y is an indicator matrix.

    The label of a column is its name or, without `column_names`, its number.
    """
    if y is None:
        raise InputError(
            "SetRNNClassifier requires y to be passed, but the target y is None. "
            "Give a collection of labels for each text."
        )
    if not sp.issparse(y):
        y = _listed(y, "y", "a list with a collection of labels for each text")
        if y and isinstance(y[0], _NUMBERS):
            raise InputError(
                "y must be a collection of labels for each text, or a matrix of 0 and 1; got one "
                f"class or continuous value a text, such as {_shown(y[0])}. If each text has one "
                "label, write [[str(each)] for each in y]."
            )
        if not _are_rows_of_numbers(y):
            _check_length(len(y), n_texts, "y")
            return [_read_strings(row, f"y[{number}]") for number, row in enumerate(y)], None
    matrix = _indicator_matrix(y)
    n_rows, n_columns = matrix.shape
    _check_length(n_rows, n_texts, "y")
    names = [str(column) for column in range(n_columns)] if column_names is None else column_names
    if len(names) != n_columns:
        raise InputError(
            f"y has {n_columns} columns, but the classifier was fitted with {len(names)} labels. "
            "Give a column for each of classes_, in that order."
        )
    columns = Ragged(matrix.indices, matrix.indptr.astype(np.int64))
    return [tuple(names[column] for column in row) for row in columns], n_columns


def _are_rows_of_numbers(rows: list[Any]) -> bool:
    filled = (row for row in rows if isinstance(row, list | tuple | np.ndarray) and np.size(row))
    first = next(filled, ("",))[0]
    return isinstance(first, _NUMBERS)


def _indicator_matrix(y: Any) -> sp.csr_array[Any, tuple[int, int]]:  # noqa: ANN401
    """Return rows of numbers as a sparse matrix, checked to hold 0 and 1 only."""
    try:
        dense = None if sp.issparse(y) else np.array(y)
        if dense is not None and dense.dtype == object:  # such as a table with mixed columns
            dense = dense.astype(np.float64)
        matrix = sp.csr_array(y if dense is None else dense, copy=True)
    except (TypeError, ValueError):
        raise InputError(
            "y must be a matrix of 0 and 1, or a collection of strings for each text: its rows "
            "of numbers differ in length, or hold something else."
        ) from None
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    is_other = matrix.data != 1
    if is_other.any():
        raise InputError(
            f"y must hold 0 and 1 only, got {matrix.data[is_other][0]}. "
            "Give a column for each label, or a collection of strings for each text."
        )
    return matrix


def _read_strings(row: Any, place: str) -> tuple[str, ...]:  # noqa: ANN401 (what users give)
    """Return one collection of strings, such as the labels of a text, checked."""
    if isinstance(row, str | bytes | Mapping) or not isinstance(row, Iterable):
        advice = "Write ['...'], or [] for none."
        if isinstance(row, str):
            whole = place.partition("[")[0]
            advice = f"Write [{_shown(row)}]: [[each] for each in {whole}] does it for all."
        raise InputError(f"{place} must be a collection of strings, got {_shown(row)}. {advice}")
    strings = []
    for each in row:
        if not isinstance(each, str):
            raise InputError(
                f"{place} must be a collection of strings, got {_shown(row)}, with "
                f"{_shown(each)} in it. Write each as a string."
            )
        if not each:
            raise InputError(f"{place} holds an empty string. Remove it; [] means none.")
        _check_characters(each, place)
        strings.append(str(each))
    return tuple(strings)


def _listed(values: Any, name: str, wanted: str) -> list[Any]:  # noqa: ANN401 (what users give)
    """Return the rows of a list, an array or a column of a table."""
    if hasattr(values, "__array__"):
        values = np.asarray(values)
    is_unordered = isinstance(values, str | bytes | Mapping | set | frozenset)
    if is_unordered or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise InputError(f"{name} must be {wanted}, got {_shown(values)}.")
    return list(values)


def _shown(value: object) -> str:
    """Write a value as Python has it, shortened, on one line."""
    return " ".join(reprlib.repr(value.item() if isinstance(value, np.generic) else value).split())


def _check_length(n_rows: int, n_texts: int, name: str) -> None:
    if n_rows != n_texts:
        raise InputError(
            f"{name} must have a row for each text: there are {n_texts:,} texts, {n_rows:,} rows."
        )


def _check_characters(text: str, place: str) -> None:
    """Refuse what the tokenizer and UTF-8 cannot take."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{place} holds half a character (\\u{ord(text[error.start]):04x}), which UTF-8 "
            "cannot write. Remove it, or write the whole surrogate pair."
        ) from None
