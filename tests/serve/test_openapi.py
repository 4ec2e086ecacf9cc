from copy import deepcopy

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from setrnn.serve.problems import MEDIA_TYPE
from setrnn.serve.registry import Registry
from setrnn.serve.server import make_app

schemathesis = pytest.importorskip("schemathesis", reason="it needs Python 3.11")
POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE

OPERATIONS = [
    ("POST", "/v1/tag"),
    ("POST", "/v1/complete"),
    ("POST", "/v1/explain"),
    ("GET", "/v1/models"),
    ("GET", "/v1/labels"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
]


def operations_of(schema):
    operations = [each.ok() for each in schema.get_all_operations()]
    return {(each.method.upper(), each.path): each for each in operations}


@pytest.fixture(scope="module")
def app(served):
    return make_app(Registry.of(*served))


@pytest.fixture(scope="module")
def described(app):
    """The operations by method and path, as the description has them."""
    return operations_of(schemathesis.openapi.from_asgi("/openapi.json", app))


@pytest.fixture(scope="module")
def narrowed(app, served):
    """The same, with names that exist and without what only some requests may ask for."""
    description = deepcopy(app.openapi())
    schemas = description["components"]["schemas"]
    model = served[0]
    names = {"enum": list(model.tagger.labels.names[:9])}
    known, no = {"type": "array", "items": names, "maxItems": 3}, {"type": "array", "maxItems": 0}
    narrow = {"model": {"enum": [None, model.name]}, "forbid": no, "absent": no, "groups": no}
    narrow |= dict.fromkeys(("require", "present", "labels"), known)
    nulls = ("min_labels", "max_labels", "closed", "features")
    narrow |= {each: {"type": "null"} for each in nulls}
    for name in ("TagRequest", "CompleteRequest", "ExplainRequest"):
        fields = schemas[name]["properties"]
        fields.update({each: narrow[each] for each in fields if each in narrow})
    # No rule or limit goes with labels.
    schemas["ExplainRequest"]["properties"] |= {"rule": {"type": "null"}, "require": no}
    parameters = description["paths"]["/v1/labels"]["get"]["parameters"]
    of_model = next(each for each in parameters if each["name"] == "model")
    of_model["schema"] = {"enum": [model.name]}
    schema = schemathesis.openapi.from_dict(description)
    schema.app = app
    return operations_of(schema)


def test_all_operations_are_tried(described):
    assert sorted(described) == sorted(OPERATIONS)


def tried(operation, mode, check):
    """Check what hypothesis makes of an operation, the same each time."""

    @seed(0)
    @settings(
        max_examples=25,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check_each(case):
        check(case)

    check_each()


@pytest.mark.parametrize("operation", OPERATIONS, ids=" ".join)
def test_what_fits_the_description_is_answered_as_described(narrowed, operation):
    tried(narrowed[operation], POSITIVE, lambda case: case.call_and_validate())


@pytest.mark.parametrize("operation", OPERATIONS[:3] + OPERATIONS[4:5], ids=" ".join)
def test_what_does_not_fit_is_refused_as_described(described, operation):
    tried(described[operation], NEGATIVE, lambda case: case.call_and_validate())


def test_errors_are_described_as_problems(client):
    paths = client.get("/openapi.json").json()["paths"]
    for operations in paths.values():
        for operation in operations.values():
            assert set(operation["responses"]) == {"200", "default"}
            assert list(operation["responses"]["default"]["content"]) == [MEDIA_TYPE]
