"""The client of a simulated cluster: the verbs of a Kubernetes client, at the present moment of the run."""

from typing import Any

import pytest

from kubesched.api.time import milliseconds, seconds
from kubesched.apiserver.status import ApiError
from kubesched.assemble import build
from kubesched.sim import Simulation


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(build())


def made(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, **fields.pop("metadata", {})}, **fields}


def test_create_get_list_patch_delete(simulation: Simulation) -> None:
    client = simulation.client
    stored = client.create(made("Pod", "web", metadata={"labels": {"app": "web"}}))
    assert stored["metadata"]["uid"]
    assert stored["metadata"]["namespace"] == "default"
    client.create(made("Pod", "db", metadata={"namespace": "data"}))

    assert client.get("Pod", "web")["metadata"]["labels"] == {"app": "web"}
    assert {pod["metadata"]["name"] for pod in client.list("Pod")} == {"web", "db"}
    assert [pod["metadata"]["name"] for pod in client.list("Pod", "data")] == ["db"]
    assert [pod["metadata"]["name"] for pod in client.list("Pod", selector="app in (web, api)")] == ["web"]

    changed = client.patch("Pod", "web", {"metadata": {"labels": {"app": None, "tier": "front"}}})
    assert changed["metadata"]["labels"] == {"tier": "front"}
    assert int(changed["metadata"]["resourceVersion"]) > int(stored["metadata"]["resourceVersion"])

    client.delete("Pod", "web")
    assert client.find("Pod", "web") is None
    with pytest.raises(ApiError, match='pods "web" not found'):
        client.get("Pod", "web")
    with pytest.raises(ApiError, match='pods "db" already exists'):
        client.create(made("Pod", "db", metadata={"namespace": "data"}))


def test_watch_tells_what_is_there_and_what_changes_until_it_is_stopped(simulation: Simulation) -> None:
    client, told = simulation.client, []
    client.create(made("Node", "n1"))
    stop = client.watch("Node", lambda what, obj: told.append((what, obj["metadata"]["name"])))
    simulation.at(seconds(1), lambda: client.create(made("Node", "n2")))
    simulation.at(seconds(2), lambda: client.cordon("n1"))
    simulation.at(seconds(3), lambda: client.delete("Node", "n2"))
    simulation.run(until=seconds(4))
    assert told == [("ADDED", "n1"), ("ADDED", "n2"), ("MODIFIED", "n1"), ("DELETED", "n2")]
    stop()
    client.uncordon("n1")
    simulation.run(until=seconds(5))
    assert len(told) == 4


def test_wait_for_ends_when_it_has_come_true_or_time_is_up(simulation: Simulation) -> None:
    client = simulation.client
    client.create(made("Node", "n1", status={"allocatable": {"cpu": "1", "pods": "9"}}))
    simulation.at(seconds(3), lambda: client.create(made("Pod", "web", spec={"containers": []})))
    assert simulation.wait_for(lambda: client.node_of("web") == "n1", timeout=seconds(60))
    assert seconds(3) <= simulation.now < seconds(4)
    assert not simulation.wait_for(lambda: client.node_of("other") != "", timeout=seconds(10))
    assert simulation.client.node_of("other") == ""


def test_an_operator_labels_and_cordons(simulation: Simulation) -> None:
    client = simulation.client
    client.create(made("Node", "n1", metadata={"labels": {"old": "yes"}}))
    client.label("Node", "n1", "", disk="ssd", old=None)
    client.cordon("n1")
    assert client.get("Node", "n1")["metadata"]["labels"] == {"disk": "ssd"}
    assert client.get("Node", "n1")["spec"]["unschedulable"] is True
    client.uncordon("n1")
    assert "unschedulable" not in client.get("Node", "n1").get("spec", {})


def test_nothing_takes_time_but_what_is_said_to(simulation: Simulation) -> None:
    simulation.client.create(made("Node", "n1", status={"allocatable": {"pods": "9"}}))
    simulation.client.create(made("Pod", "web", spec={"containers": []}))
    simulation.run(until=seconds(3600))
    latency = simulation.world.seat.latency
    assert (latency.write, latency.watch) == (milliseconds(2), milliseconds(1))
    story = simulation.core.story("default/web")
    assert story[-1].at - story[0].at == latency.write
