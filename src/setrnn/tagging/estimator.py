"""The scikit-learn estimator: lists of texts in, label sets out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from setrnn.config import Config, load_config
from setrnn.data.cache import prepare
from setrnn.data.disk import private_folder
from setrnn.data.example import Example
from setrnn.data.hierarchy import Hierarchy
from setrnn.data.read import make_hierarchy
from setrnn.data.splits import choose_parts
from setrnn.errors import ConfigError, DataError
from setrnn.methods import Method, find_method
from setrnn.progress import Progress, ignore_progress
from setrnn.systems.candidates import Floats32, Ints
from setrnn.systems.limits import Limits
from setrnn.systems.registry import choose_rule
from setrnn.systems.rules import rule_for
from setrnn.tagging.documents import close_truth
from setrnn.tagging.inputs import make_examples, read_targets, read_texts
from setrnn.tagging.learn.data import choose_preset, list_overrides, note_labels
from setrnn.tagging.learn.train import check_training, train_prepared
from setrnn.tagging.prediction import Predictions
from setrnn.tagging.tagger import Tagger
from setrnn.training.start import TrainOptions

if TYPE_CHECKING:
    from setrnn.data.read.label_files import Parents
    from setrnn.tagging.inputs import Complete, Features, Targets, Unknown
    from setrnn.tagging.learn.data import Settings


class SetRNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier that tags texts with sets of labels.

    It trains one system, on all texts unless `validation_fraction` is given: that suits
    cross-validation. `setrnn.train` without a method makes the best model within a time budget.

    The labels of each text are a collection of strings, such as a list or a set; an indicator
    matrix works too, and the columns of a DataFrame are names of labels. `cross_val_score` and
    `GridSearchCV` take the same. They score by instance-F1; `setrnn.scorers` has other measures.

    `fit` and `score` take what is known of incomplete texts, as data files have it: `unknown`
    labels, which count neither for nor against, and whether the labels are `complete`.
    `set_fit_request(unknown=True)` and the like route them in scikit-learn.

    Args:
        method: the system to train, one of `setrnn.methods.METHODS`.
        preset: the settings to start from, as `--preset` on the command line.
        settings: single settings by their dotted names, such as `{"training.epochs": 10}`; as
            `--set` on the command line, but for the seed; or a list of `key=value`.
        rule: how the predicted set is chosen, one of `setrnn.systems.rules.RULES`. If None, that
            of `training.metric`, as on the command line: `f1` for instance-F1, the default and
            what `score` returns. It chooses among the sets that the model finds plausible.
        validation_fraction: the share of the texts that is not used for training. These texts
            choose the best epoch of a network, by `training.metric`, and calibrate its
            probabilities if there are 100 or more. With 0, all texts are used for training, and
            the last epoch is the result.
        hierarchy: the parents of labels, as in `setrnn.train`: a `setrnn.Hierarchy`, a dict of a
            label to its parent or a list of them, or a file. If the labels of all training texts
            bring those above them, so do predictions.
        close_labels: whether to add to each text the labels above its own, before training and
            before scoring.
        limits: what the predicted sets must satisfy, such as `setrnn.Limits(max_labels=3)`.
        device: where to compute: "cpu", "cuda", "mps", or "auto" for a GPU of NVIDIA if any.
        random_state: the seed: a whole number, a `RandomState`, or None for a new one each fit.
        verbose: whether to write a line to standard error after each epoch. Notes and warnings go
            to the logger `setrnn`.

    Attributes:
        classes_: the labels in alphabetical order; after fitting on an indicator matrix, its
            columns: the names of a DataFrame's, or numbers, where the label of column 3 is "3".
        tagger_: the trained model, a `setrnn.Tagger`.

    Example:
        >>> from setrnn import SetRNNClassifier
        >>> texts = ["red apple", "green apple", "red car"] * 10
        >>> label_sets = [{"fruit", "red"}, {"fruit"}, {"red"}] * 10
        >>> classifier = SetRNNClassifier("br").fit(texts, label_sets)
        >>> classifier.predict_sets(["red apple"])[0].labels
        ('fruit', 'red')
        >>> classifier.predict(["green apple"])
        array([[1, 0]])
        >>> classifier.score(texts, label_sets)
        1.0
        >>> parents = {"apple": "fruit"}
        >>> closing = SetRNNClassifier("br", hierarchy=parents, close_labels=True)
        >>> closing.fit(texts, [{"apple"}, {"apple"}, {"red"}] * 10).predict_sets(texts)[0].labels
        ('apple', 'fruit')
    """

    # `texts` is X under another name, not metadata to route.
    __metadata_request__fit = {"texts": UNUSED}  # noqa: RUF012 (scikit-learn's form)
    __metadata_request__predict = {"texts": UNUSED}  # noqa: RUF012
    __metadata_request__predict_proba = {"texts": UNUSED}  # noqa: RUF012
    __metadata_request__score = {"texts": UNUSED}  # noqa: RUF012

    def __init__(
        self,
        method: str = "set-rnn",
        *,
        preset: str = "default",
        settings: Settings | None = None,
        rule: str | None = None,
        validation_fraction: float = 0.0,
        hierarchy: Parents | None = None,
        close_labels: bool = False,
        limits: Limits | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.preset = preset
        self.settings = settings
        self.rule = rule
        self.validation_fraction = validation_fraction
        self.hierarchy = hierarchy
        self.close_labels = close_labels
        self.limits = limits
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        texts: Sequence[str],
        y: Targets,
        features: Features = None,
        unknown: Unknown = None,
        complete: Complete = None,
    ) -> SetRNNClassifier:
        """Train on texts and their label sets.

        Args:
            texts: the documents.
            y: a collection of labels for each text (an empty one is legal), or an indicator
                matrix, texts x labels.
            features: the features of each text (the paper's user tags), if there are any.
            unknown: the labels of each text that may or may not belong to it.
            complete: for each text, False if every label that is not given may or may not belong
                to it. `training.forgotten` in `settings` says what this means.
        """
        method, config = find_method(self.method), self._config()
        choose_rule(method, self.rule)
        tree = make_hierarchy(self.hierarchy, self.close_labels)
        documents = read_texts(texts)
        if not documents:
            raise DataError("There are 0 texts: fit needs at least 1.")
        label_sets, columns = read_targets(y, len(documents))
        examples = make_examples(documents, label_sets, features, unknown, complete)
        if tree is not None:
            examples = list(tree.close_examples(examples))
            label_sets = [example.labels for example in examples]
        if method.is_network and not any(label_sets):
            raise DataError(
                f"No text has a label: '{method.name}' has nothing to learn. Give labels, or use a "
                "classical method such as br."
            )
        classes = _list_classes(label_sets, columns)
        options = TrainOptions(
            device=self.device, on_progress=_write_progress if self.verbose else ignore_progress
        )
        splits = self._splits(examples, config.seed)
        tagger = _train(method, config, splits, options, tree)
        rule = rule_for(config.training.metric) if self.rule is None else self.rule
        self.tagger_ = replace(tagger, rule=rule)  # so that a saved model predicts the same
        self.takes_matrix_ = columns is not None
        self.classes_ = classes
        return self

    def predict(self, texts: Sequence[str], features: Features = None) -> Ints:
        """Return the predicted sets as 0 and 1, texts x `classes_`."""
        label_sets = [each.labels for each in self.predict_sets(texts, 1, features)]
        binarizer = MultiLabelBinarizer(classes=[*map(str, self.classes_)])
        matrix: Ints = binarizer.fit_transform(label_sets).astype(np.int64)
        return matrix

    def predict_proba(self, texts: Sequence[str], features: Features = None) -> Floats32:
        """Return p(label | text), texts x `classes_`."""
        check_is_fitted(self)
        marginals = self.tagger_.predict_proba(texts, features)
        index = self.tagger_.labels.index
        # A label that occurs in no training text is unknown to the tagger: its column is 0.
        columns = [index.get(name, -1) for name in map(str, self.classes_)]
        return np.pad(marginals, ((0, 0), (0, 1)))[:, columns]

    def predict_sets(
        self, texts: Sequence[str], top: int = 3, features: Features = None
    ) -> Predictions:
        """Return the predicted set of each text and its most probable alternatives: `top` sets.

        They are a list; `predict_sets(texts).to_frame()` is a pandas DataFrame, with the index of
        the texts if these are a Series.
        """
        check_is_fitted(self)
        return self.tagger_.tag(texts, None, top, features, limits=self.limits)

    def score(
        self,
        texts: Sequence[str],
        y: Targets,
        sample_weight: npt.ArrayLike | None = None,
        features: Features = None,
        unknown: Unknown = None,
        complete: Complete = None,
    ) -> float:
        """Return the mean over texts of the F1 of the predicted set (instance-F1).

        A label that was not seen in training counts as missed. Unknown labels count neither for
        nor against, and texts of which nothing is known are left out. `setrnn.scorers` has other
        measures.

        Args:
            texts: the documents.
            y: their label sets; an indicator matrix must have the columns of `classes_`, a
                DataFrame may have them in another order.
            sample_weight: the weight of each text.
            features: the features of each text.
            unknown: the labels of each text that may or may not belong to it.
            complete: for each text, False if this is true of every label that is not given.
        """
        predictions = self.predict_sets(texts, 1, features)
        if not predictions:
            raise DataError("There are 0 texts: score needs at least 1.")
        label_sets, _ = read_targets(y, len(predictions), [*map(str, self.classes_)])
        examples = make_examples([""] * len(predictions), label_sets, None, unknown, complete)
        truths = close_truth(self.tagger_, (each.labels for each in examples))
        labels, f1 = {*map(str, self.classes_)}, np.full(len(predictions), np.nan)
        for row, (example, truth) in enumerate(zip(examples, map(set, truths), strict=True)):
            hidden = (set(example.unknown) if example.complete else labels) - truth
            if truth or not hidden or not hidden >= labels:
                found = set(predictions[row].labels) - hidden
                f1[row] = 2 * len(truth & found) / (len(truth) + len(found)) if truth | found else 1
        is_known = ~np.isnan(f1)
        if not is_known.any():
            raise DataError("No label of any text is known: score needs at least 1.")
        weights = np.ones(len(f1)) if sample_weight is None else np.asarray(sample_weight, float)
        return float(np.average(f1[is_known], weights=weights[is_known]))

    def save(self, folder: str | Path) -> None:
        """Write the model folder, which `setrnn.load` and the command line read."""
        check_is_fitted(self)
        self.tagger_.save(folder)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 (scikit-learn has no types)
        tags = super().__sklearn_tags__()
        # scikit-learn stratifies by the class of each text, and refuses lists of labels on the way.
        # Only its scorers of `predict_proba` ask for a classifier: they need indicator matrices.
        if not getattr(self, "takes_matrix_", False):
            tags.estimator_type = None
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags

    def _splits(self, examples: list[Example], seed: int) -> dict[str, list[Example]]:
        """Split off the texts that choose the best epoch and calibrate."""
        share = self.validation_fraction
        if not isinstance(share, Real) or not 0 <= share < 1:
            raise ConfigError(f"validation_fraction must be at least 0 and below 1, got {share!r}.")
        if share == 0:
            return {"train": examples}
        parts: dict[str, list[Example]] = {"train": [], "valid": []}
        part_of = choose_parts(examples, (1 - share, share), seed, "The data")
        for example, part in zip(examples, part_of, strict=True):
            parts["valid" if part else "train"].append(example)
        return parts

    def _config(self) -> Config:
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        overrides = [*list_overrides(self.settings or {}), f"seed={seed}"]
        return load_config(choose_preset(self.preset, self.device), overrides=overrides)


def _train(
    method: Method,
    config: Config,
    splits: Mapping[str, list[Example]],
    options: TrainOptions,
    tree: Hierarchy | None,
) -> Tagger:
    """Train on a temporary prepared folder, to which the tagger keeps no reference."""
    check_training(method, config, options.device, resume=False)
    with private_folder() as folder:
        streams = {name: partial(iter, examples) for name, examples in splits.items()}
        prepared = prepare(streams, folder / "texts", "texts", config.text, {}, hierarchy=tree)
        note_labels(prepared, config.training.forgotten)
        return train_prepared(prepared, method, config, options)


def _list_classes(
    label_sets: Sequence[tuple[str, ...]], columns: list[str] | list[int] | None
) -> npt.NDArray[Any]:
    """Return the labels in alphabetical order, or the columns of an indicator matrix."""
    labels = set().union(*label_sets)
    if columns is None:
        return np.array(sorted(labels), dtype=object)
    if added := sorted(labels.difference(map(str, columns))):
        raise DataError(
            f"The hierarchy adds '{added[0]}' to the labels, which y has no column for. Add one of "
            "zeros, or give a collection of labels for each text."
        )
    is_named = any(isinstance(each, str) for each in columns)
    return np.array(columns, dtype=object if is_named else np.int64)


def _write_progress(event: Progress) -> None:
    """Write one line per epoch to standard error."""
    epoch = event.epoch
    if epoch is None or epoch.scores is None:
        return
    scores = "".join(f", {name} {value:.3f}" for name, value in epoch.scores.items())
    line = f"epoch {epoch.number}/{epoch.n_epochs}: loss {epoch.loss:.3f}{scores}"
    sys.stderr.write(line + "\n")
