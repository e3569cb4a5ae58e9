"""The fleet of fleet-kubernetes.md: what Dask's operator makes of it, and a pod's work."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="make test-systems has it")

import jsonschema
import yaml
from fleet_project import fleet_at, machine_environment, statuses, wait_until

pytestmark = [
    pytest.mark.systems,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

NODE = "node-1"
THEIRS = {
    "DASK_WORKER_NAME": "gpubench-default-worker-0123456789",
    "DASK_SCHEDULER_ADDRESS": "tcp://gpubench-scheduler.lab.svc.cluster.local:8786",
}
"""Variables that the operator gives to a worker that does not have them."""


def block(page: str, containing: str, places: Mapping[str, str | Path] = {}) -> str:
    """The block of a page with some text, and with other places in place of its own."""
    blocks = re.findall(
        r"^```\w*\n(.*?)^```", (Path(__file__).parents[1] / page).read_text(), re.M | re.S
    )
    (text,) = (one for one in blocks if containing in one)
    for place, other in places.items():
        assert place in text
        text = text.replace(place, str(other))
    return text


def fleet_yaml(places: Mapping[str, str | Path] = {}) -> dict[str, Any]:
    resource: dict[str, Any] = yaml.safe_load(block("fleet-kubernetes.md", "DaskCluster", places))
    return resource


def variables(container: Mapping[str, Any]) -> dict[str, str]:
    """Of a container on the node."""
    return {one["name"]: one.get("value", NODE) for one in container["env"]}


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of Kubernetes, which refuses fields that are not in it, as `kubectl` does."""
    inner: dict[str, Any] = {}
    if "properties" in schema:
        fields = {name: closed(field) for name, field in schema["properties"].items()}
        inner = {"properties": fields, "additionalProperties": False}
    if "items" in schema:
        inner["items"] = closed(schema["items"])
    return {**schema, **inner}


def test_the_operator_takes_the_resource_of_the_page() -> None:
    pytest.importorskip("dask_kubernetes", reason="make test-systems has it")
    chart = files("dask_kubernetes") / "operator/deployment/helm/dask-kubernetes-operator"
    definition = yaml.safe_load((chart / "crds/daskcluster.yaml").read_text())["spec"]
    resource, (version,) = fleet_yaml(), definition["versions"]
    assert resource.pop("apiVersion") == f"{definition['group']}/{version['name']}"
    assert resource.pop("kind") == definition["names"]["kind"]
    assert resource.pop("metadata") == {"name": "gpubench"}
    jsonschema.validate(resource, closed(version["schema"]["openAPIV3Schema"]))


def test_the_operator_makes_pods_that_keep_apart_and_find_the_scheduler() -> None:
    operator = pytest.importorskip(
        "dask_kubernetes.operator.controller.controller",
        reason="needs dask-kubernetes with all that it needs (240 MB)",
    )
    scheduler, worker = (fleet_yaml()["spec"][role] for role in ("scheduler", "worker"))
    service = operator.build_scheduler_service_spec("gpubench", scheduler["service"], {}, {})
    pods = [
        deployment["spec"]["template"]
        for deployment in (
            operator.build_scheduler_deployment_spec("gpubench", scheduler["spec"], {}, {}),
            operator.build_worker_deployment_spec(
                "gpubench-default", "lab", "gpubench", "0123456789", worker["spec"], {}, {}
            ),
        )
    ]
    ((apart,),) = worker["spec"]["affinity"]["podAntiAffinity"].values()
    for pod in pods:
        assert apart["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= pods[0]["metadata"]["labels"].items()
    (container,), (port,) = pods[1]["spec"]["containers"], service["spec"]["ports"]
    address = f"tls://{service['metadata']['name']}:{port['port']}"
    assert variables(container) == {
        **THEIRS,
        **variables(worker["spec"]["containers"][0]),
        "DASK_SCHEDULER_ADDRESS": address,
    }
    assert container["resources"]["requests"] == container["resources"]["limits"]


def test_a_pod_of_the_page_joins_with_its_certificate_and_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    subprocess.run(block("fleet.md", "openssl"), shell=True, cwd=secret, check=True)
    here: dict[str, str | Path] = {"/etc/gpubench": secret}
    (secret / "dask.yaml").write_text(block("fleet.md", "require-encryption", here))
    monkeypatch.setenv("DASK_CONFIG", str(secret / "dask.yaml"))
    with fleet_at(tmp_path / "fleet") as fleet:
        assert fleet.address.startswith("tls://")
        home = tmp_path / "fleet/node"
        home.mkdir()
        here |= {"/scratch": home, "tls://gpubench-scheduler:8786": fleet.address}
        (container,) = fleet_yaml(here)["spec"]["worker"]["spec"]["containers"]
        image = machine_environment(home, home / "gpubench", FLEET_MARK=str(fleet.folder))
        del image["DASK_CONFIG"]  # which the pod says
        environment = {**image, **THEIRS, **variables(container)}
        command = [
            # As Kubernetes does: what is no variable stays as it is.
            re.sub(r"\$\((\w+)\)", lambda v: environment.get(v[1], v[0]), word)
            for word in (*container["command"], "--python", "python")
        ]
        with (home / "worker.log").open("ab") as log:
            fleet.workers[NODE] = subprocess.Popen(
                command, cwd=home, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(lambda: NODE in fleet.machines(), fleet.said)
        asking = (
            "import sys; from distributed import Client, Security\n"
            "client = Client(sys.argv[1], security=Security())\n"
            "print(*(one['name'] for one in client.scheduler_info()['workers'].values()))"
        )
        names = fleet.project.run(sys.executable, "-c", asking, fleet.address).stdout.split()
        assert names == [THEIRS["DASK_WORKER_NAME"]]  # by which the operator knows it
        said = fleet.run("run", "--repository", str(fleet.project.path)).stdout
        assert "3 of 3 shares are measured and kept in .asv/results" in said
        assert len(statuses(fleet.project, NODE)) == 18
