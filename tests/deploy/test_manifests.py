"""What is shipped to be deployed: it parses, is pinned, locked down, and sets only what there is to set."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from memory_plane.dev.checkout import checkout
from memory_plane.settings import Settings

ROOT = checkout()
KUBERNETES = ROOT / "deploy" / "kubernetes"
COMPOSE: Mapping[str, Any] = yaml.safe_load((ROOT / "compose.yml").read_text())
SETTINGS = {name.upper() for name in Settings.model_fields}
OBJECTS: list[dict[str, Any]] = [
    each
    for file in sorted(KUBERNETES.glob("*.yaml"))
    if file.name != "kustomization.yaml"
    for each in yaml.safe_load_all(file.read_text())
    if each is not None
]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for each in OBJECTS:
        if each["kind"] in ("Deployment", "Job"):
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def test_the_kustomization_has_every_file_and_pins_the_image() -> None:
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    files = {file.name for file in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == files
    [image] = kustomization["images"]
    assert image["newTag"] == our_version()
    assert {container["image"] for _, pod in pods() for container in containers(pod)} == {image["name"]}


def our_version() -> str:
    return re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]  # type: ignore[index]


@pytest.mark.parametrize(("name", "pod"), list(pods()), ids=lambda value: value if isinstance(value, str) else "")
def test_every_pod_is_locked_down(name: str, pod: dict[str, Any]) -> None:
    assert pod["automountServiceAccountToken"] is False
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == 10001
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(pod):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "memory" in container["resources"]["limits"]
        assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]  # noqa: S108 - in the container


def test_every_service_has_probes_and_a_disruption_budget() -> None:
    budgets = {
        each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"]
        for each in OBJECTS
        if each["kind"] == "PodDisruptionBudget"
    }
    deployments = [each for each in OBJECTS if each["kind"] == "Deployment"]
    assert budgets == {each["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] for each in deployments}
    for each in deployments:
        [container] = each["spec"]["template"]["spec"]["containers"]
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        ports = {port["name"] for port in container["ports"]}
        assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("liveness", "readiness", "startup")} <= ports


def test_each_process_has_a_database_role_of_its_own() -> None:
    secrets = {
        name: {
            source["secretRef"]["name"]
            for container in containers(pod)
            for source in container["envFrom"]
            if "secretRef" in source
        }
        for name, pod in pods()
    }
    assert secrets == {
        "memory-migrate": {"memory-owner"},
        "memory-api": {"memory-api"},
        "memory-worker": {"memory-worker"},
    }


def test_only_settings_that_exist_are_set() -> None:
    [config] = [each for each in OBJECTS if each["kind"] == "ConfigMap"]
    assert set(config["data"]) <= SETTINGS
    assert set(COMPOSE["x-service"]["environment"]) <= SETTINGS


def test_compose_pins_every_image_and_restarts_every_service() -> None:
    for name, service in COMPOSE["services"].items():
        image = service["image"]
        assert re.search(r":[\w.-]*\d[\w.-]*$", image), f"{name} runs {image}"
        assert "latest" not in image
        assert service.get("restart"), name
    assert COMPOSE["x-service"]["read_only"] is True
    assert COMPOSE["x-service"]["cap_drop"] == ["ALL"]


def test_what_compose_waits_for_has_a_state_to_wait_for() -> None:
    services = COMPOSE["services"]
    for service in services.values():
        for needed, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[needed], needed


def test_compose_is_such_as_the_client_takes() -> None:
    """As `docker compose config` would ask: known keys, neighbours and volumes that exist, variables with a value."""
    text = (ROOT / "compose.yml").read_text()
    known = set(
        "build image restart read_only tmpfs cap_drop security_opt environment command entrypoint volumes healthcheck "
        "depends_on ports stop_grace_period".split()
    )
    for name, service in COMPOSE["services"].items():
        assert set(service) <= known, name
        assert set(service.get("depends_on", {})) <= set(COMPOSE["services"]), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert (ROOT / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], volume
    bare = [found for found in re.findall(r"(?<!\$)\$\{([^}]+)\}", text) if not re.search(r":[-?]", found)]
    assert bare == [], "a variable that is not set has a default, or a sentence that asks for it"
    asked = set(re.findall(r"(?<!\$)\$\{(\w+):\?", text))
    assert asked <= set(re.findall(r"^(\w+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))


def test_the_image_runs_as_nobody_and_its_base_is_pinned() -> None:
    text = (ROOT / "Dockerfile").read_text()
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert bases
    assert all(re.search(r":\d", base) for base in bases)
    assert re.search(r"^USER 10001$", text, re.MULTILINE)
