"""The examples of the API's description."""

from __future__ import annotations

from typing import Any

_TEXT = "Velmara lift trophy in Kotamira. Velmara beat Palmeda 1-0 on Monday night."
_MODEL = {"name": "set-rnn-0", "version": "5f0c9d1e2a34", "method": "set-rnn"}
_FIRST = {"labels": ["sport", "velmara", "football"], "probability": 0.71}
_SECOND = {"labels": ["sport", "football"], "probability": 0.12}

TAG: dict[str, Any] = {"texts": [_TEXT], "top": 2, "forbid": ["hockey"]}
TAGGED: dict[str, Any] = {
    "model": _MODEL,
    "rule": "set",
    "predictions": [
        {
            **_FIRST,
            "alternatives": [_SECOND],
            "accepted": True,
            "certificate": None,
            "marginals": None,
            "missing_mass": None,
        }
    ],
}

COMPLETE: dict[str, Any] = {"text": _TEXT, "present": ["sport"], "absent": ["hockey"]}
COMPLETED: dict[str, Any] = {
    "model": _MODEL,
    **_FIRST,
    "alternatives": [_SECOND],
    "suggestions": [{"label": "football", "probability": 0.93}],
    "known_probability": 0.98,
    "present": ["sport"],
    "absent": ["hockey"],
}

EXPLAIN: dict[str, Any] = {"text": _TEXT}
EXPLAIN_GIVEN: dict[str, Any] = {"text": _TEXT, "labels": ["sport", "football"]}
EXPLAINED: dict[str, Any] = {
    "model": _MODEL,
    "rule": "set",
    "sequences": [{"labels": _FIRST["labels"], "probability": 0.43, "set": "A"}],
    "sets": [{"name": "A", **_FIRST, "is_exact": True}],
    "steps": [
        {
            "label": "sport",
            "probability": 0.97,
            "words": [{"text": "trophy", "start": 13, "stop": 19, "weight": 0.6}],
        },
        {"label": None, "probability": 0.9, "words": []},
    ],
    "notes": ["The model read 9 words of 13."],
}

MODELS: dict[str, Any] = {
    "models": [
        {
            **_MODEL,
            "is_default": True,
            "n_labels": 68,
            "rules": ["set", "sequence", "f1"],
            "own_rule": "set",
            "can_explain": True,
            "is_calibrated": True,
            "accepts": {"set": {"target": 0.9, "threshold": 0.715}},
            "data": "newsroom",
        }
    ],
    "limits": {"max_texts": 64, "max_words": 10_000, "max_body_bytes": 4_194_304},
}

LABELS: dict[str, Any] = {"labels": [{"label": "football", "count": 412}], "n_matching": 1}
