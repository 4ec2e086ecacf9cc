"""Results in the form of the API's answers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from setrnn.serve import schemas
from setrnn.serve.registry import ServedModel
from setrnn.serve.settings import ServeSettings
from setrnn.serve.work import Tagged
from setrnn.tagging.explanation import Explanation, Step, why_not_explained
from setrnn.tagging.prediction import Completion

MAX_SUGGESTIONS = 50
MIN_WEIGHT = 0.0005  # of a word in an explanation
LAST_OF_ONE_UNIT = "\uffff"  # later characters take two code units of UTF-16


def answer_tags(model: ServedModel, rule: str, found: Sequence[Tagged]) -> schemas.TagAnswer:
    """Return the answer to POST /v1/tag."""
    return schemas.TagAnswer(
        model=_version(model), rule=rule, predictions=[_tagged_text(each) for each in found]
    )


def _tagged_text(found: Tagged) -> schemas.TaggedText:
    prediction = found.prediction
    return schemas.TaggedText(
        labels=prediction.labels,
        probability=prediction.probability,
        alternatives=prediction.alternatives,
        accepted=prediction.accepted,
        certificate=prediction.certificate,
        marginals=None if found.marginals is None else _probabilities(found.marginals),
        missing_mass=found.missing_mass,
    )


def answer_completion(model: ServedModel, found: Completion) -> schemas.CompleteAnswer:
    """Return the answer to POST /v1/complete."""
    return schemas.CompleteAnswer(
        model=_version(model),
        labels=found.labels,
        probability=found.probability,
        alternatives=found.alternatives,
        suggestions=_probabilities(found.suggestions[:MAX_SUGGESTIONS]),
        known_probability=found.known_probability,
        present=found.present,
        absent=found.absent,
    )


def answer_explanation(model: ServedModel, found: Explanation) -> schemas.ExplainAnswer:
    """Return the answer to POST /v1/explain."""
    units = Utf16Offsets(found.text)
    return schemas.ExplainAnswer(
        model=_version(model),
        rule=found.rule,
        sequences=[
            schemas.Sequence(labels=each.labels, probability=each.probability, set=each.set_name)
            for each in found.sequences
        ],
        sets=found.sets,
        steps=[_step(found, each, units) for each in found.steps],
        notes=found.reading_notes(),
    )


def _step(explanation: Explanation, step: Step, units: Utf16Offsets) -> schemas.ExplainedStep:
    read = (word for word in explanation.words if word.place is not None)
    return schemas.ExplainedStep(
        label=step.label,
        probability=step.probability,
        words=[
            schemas.AttendedWord(
                text=word.text, start=units.of(word.start), stop=units.of(word.stop), weight=weight
            )
            for word, weight in zip(read, step.weights, strict=False)  # features follow the words
            if weight >= MIN_WEIGHT
        ],
    )


def answer_models(models: Sequence[ServedModel], settings: ServeSettings) -> schemas.ModelsAnswer:
    """Return the answer to GET /v1/models."""
    return schemas.ModelsAnswer(
        models=[_card(model, is_default=model is models[0]) for model in models],
        limits=schemas.RequestLimits(
            max_texts=settings.max_texts,
            max_words=settings.max_words,
            max_body_bytes=settings.max_body_bytes,
        ),
    )


def _card(model: ServedModel, is_default: bool) -> schemas.ModelCard:
    tagger = model.tagger
    calibration, data = tagger.calibration, tagger.notes.get("data")
    accepts = {} if calibration is None else calibration.acceptance
    return schemas.ModelCard(
        name=model.name,
        version=model.version,
        method=tagger.method,
        is_default=is_default,
        n_labels=len(tagger.labels),
        rules=tagger.rules,
        own_rule=tagger.rule_or_own(None),
        can_explain=why_not_explained(tagger) is None,
        is_calibrated=calibration is not None and bool(calibration.scalings),
        accepts={
            rule: schemas.AcceptedFrom(target=each.target, threshold=each.threshold)
            for rule, each in accepts.items()
        },
        data=None if data is None else str(data),
    )


def answer_labels(model: ServedModel, prefix: str, limit: int) -> schemas.LabelsAnswer:
    """Return the answer to GET /v1/labels."""
    found, known = model.find_labels(prefix), model.tagger.labels
    return schemas.LabelsAnswer(
        labels=[
            schemas.CountedLabel(label=known.names[label], count=int(known.counts[label]))
            for label in found[:limit]
        ],
        n_matching=len(found),
    )


class Utf16Offsets:
    """Offsets into a text in UTF-16 code units, as JavaScript counts them."""

    def __init__(self, text: str) -> None:
        self._wide = [place for place, each in enumerate(text) if each > LAST_OF_ONE_UNIT]

    def of(self, offset: int) -> int:
        """Return the offset of a character in UTF-16 code units."""
        return offset + bisect_left(self._wide, offset)


def _version(model: ServedModel) -> schemas.ModelVersion:
    return schemas.ModelVersion(name=model.name, version=model.version, method=model.tagger.method)


def _probabilities(found: Iterable[tuple[str, float]]) -> list[schemas.LabelProbability]:
    return [
        schemas.LabelProbability(label=label, probability=probability)
        for label, probability in found
    ]
