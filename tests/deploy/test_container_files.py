"""The files in deploy/: linters accept them, and they agree with the service and each other."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient

from setrnn.cli.options import expand
from setrnn.cli.serve import serve
from setrnn.serve.guard import OPEN_PATHS
from setrnn.serve.registry import Registry, ServedModel
from setrnn.serve.server import KEEP_ALIVE_SECONDS, STOP_SECONDS, make_app
from setrnn.serve.settings import ApiKeys, ServeSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MANIFESTS = DEPLOY / "kubernetes"
README = (DEPLOY / "README.md").read_text(encoding="utf-8")
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
USER = 10001
PORT = inspect.signature(serve).parameters["port"].default
PROXY_PORT = 8080  # of the proxy in a pod


def read_yaml(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def instructions(name):
    """The arguments of each instruction of one name in the Dockerfile's last stage."""
    joined = re.sub(r"\\\n\s*", "", DOCKERFILE)
    last = joined[joined.rindex("\nFROM ") :]
    return re.findall(rf"^{name} (.*)$", last, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def compose():
    return read_yaml(DEPLOY / "compose.yaml")


@pytest.fixture(scope="module")
def pod():
    return read_yaml(MANIFESTS / "deployment.yaml")["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def container(pod):
    return pod["containers"][0]


@pytest.fixture(scope="module")
def sidecar(pod):
    return pod["containers"][1]


def run_tool(name, *arguments):
    program = Path(sys.executable).parent / name
    if not program.exists():
        pytest.skip(f"{name} is not installed")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hadolint_accepts_the_dockerfile():
    run_tool("hadolint", DEPLOY / "Dockerfile")


@pytest.mark.parametrize("name", ["compose.yaml", "compose.gpu.yaml"])
def test_the_compose_files_follow_their_specification(name):
    run_tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / name)


@pytest.mark.parametrize(
    "name", ["deployment", "service", "ingress", "autoscaler", "disruption"], ids=str
)
def test_the_manifests_follow_the_schemas_of_kubernetes(name):
    validate = pytest.importorskip("kubernetes_validate").validate
    validate(read_yaml(MANIFESTS / f"{name}.yaml"), "1.31", strict=True)


def test_all_parts_use_the_port_of_the_service(compose, sidecar):
    (health,) = instructions("HEALTHCHECK")
    assert instructions("EXPOSE") == [str(PORT)]
    assert f"127.0.0.1:{PORT}/" in health
    assert f"server setrnn:{PORT} " in (DEPLOY / "nginx.conf").read_text()
    of_pod = (MANIFESTS / "nginx.conf").read_text()
    assert f"server 127.0.0.1:{PORT} " in of_pod
    assert f"listen {PROXY_PORT} " in of_pod
    assert sidecar["ports"] == [{"name": "http", "containerPort": PROXY_PORT}]
    (port,) = read_yaml(MANIFESTS / "service.yaml")["spec"]["ports"]
    assert port["targetPort"] == "http"
    assert "ports" not in compose["services"]["setrnn"]  # reached through the proxy only


def test_the_commands_are_commands_of_setrnn(compose, container):
    (default,) = instructions("CMD")
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["setrnn"]
    known = inspect.signature(expand(serve)).parameters
    for words in (
        json.loads(default),
        compose["services"]["setrnn"]["command"],
        container["args"],
    ):
        assert words[0] == "serve"
        # Only the proxy of a pod reaches 127.0.0.1 of its containers.
        assert ("0.0.0.0" in words) == (words is not container["args"])
        flags = [word[2:].replace("-", "_") for word in words if word.startswith("--")]
        assert {*flags} <= {*known}


def test_probes_ask_paths_that_answer_without_a_key(taggers, tmp_path, container):
    keys = tmp_path / "keys"
    keys.write_text("k" * 32)
    model = ServedModel("model", "version", taggers["br"])
    (health,) = instructions("HEALTHCHECK")
    paths = re.findall(rf":{PORT}(/\w+)", health)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] == PROXY_PORT
        paths.append(container[probe]["httpGet"]["path"])
    assert {*paths} <= {*OPEN_PATHS}
    with TestClient(make_app(Registry.of(model), keys=ApiKeys(keys))) as client:
        for path in paths:
            assert client.get(path).status_code == 200, path


def test_the_autoscaler_reads_a_metric_that_is_there_before_any_request(taggers):
    metrics = read_yaml(MANIFESTS / "autoscaler.yaml")["spec"]["metrics"]
    (name,) = (each["pods"]["metric"]["name"] for each in metrics if each["type"] == "Pods")
    (endpoint,) = read_yaml(MANIFESTS / "monitor.yaml")["spec"]["podMetricsEndpoints"]
    model = ServedModel("model", "version", taggers["br"])
    with TestClient(make_app(Registry.of(model))) as client:
        page = client.get(endpoint["path"]).text
    assert f'{name}{{model="model"}} 0.0' in page
    (rule,) = read_yaml(MANIFESTS / "prometheus-adapter.yaml")["rules"]["custom"]
    assert rule["name"]["as"] == name
    assert rule["seriesQuery"].startswith(f"{name}{{")


def test_the_autoscaler_scales_the_deployment():
    deployment = read_yaml(MANIFESTS / "deployment.yaml")
    spec = read_yaml(MANIFESTS / "autoscaler.yaml")["spec"]
    assert spec["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]  # each `kubectl apply` would undo the scaling
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    for name in ("service", "disruption", "monitor"):
        selector = read_yaml(MANIFESTS / f"{name}.yaml")["spec"]["selector"]
        assert selector.get("matchLabels", selector) == labels


def test_a_stopped_service_has_time_to_finish(compose, pod):
    of_service, of_proxy = (
        each["lifecycle"]["preStop"]["sleep"]["seconds"] for each in pod["containers"]
    )
    assert of_proxy < of_service
    assert pod["terminationGracePeriodSeconds"] >= STOP_SECONDS + of_service
    assert int(compose["services"]["setrnn"]["stop_grace_period"].rstrip("s")) >= STOP_SECONDS


@pytest.mark.parametrize("name", ["nginx.conf", "kubernetes/nginx.conf"])
def test_limits_of_the_proxy_are_those_of_the_service(name):
    conf = (DEPLOY / name).read_text()
    (megabytes,) = re.findall(r"client_max_body_size (\d+)m;", conf)
    assert int(megabytes) << 20 == ServeSettings().max_body_bytes
    # nginx keeps idle connections to a service for 60 seconds by default.
    assert KEEP_ALIVE_SECONDS > 60
