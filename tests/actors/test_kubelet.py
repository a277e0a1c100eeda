"""Pods that are bound run, end and die as they are told; nodes register and say that they are alive."""

from __future__ import annotations

from tests.actors.conftest import Stage, phase

from kubesched.api.time import parse_rfc3339


def test_a_bound_pod_runs_and_is_ready(stage: Stage) -> None:
    stage.node()
    stage.pod()

    stage.wait(0.2)

    status = stage.get("Pod", "web")["status"]
    assert status["phase"] == "Running"
    assert {c["type"]: c["status"] for c in status["conditions"]}["Ready"] == "True"
    assert status["podIP"].startswith("10.244.")
    assert status["containerStatuses"][0]["ready"] is True


def test_a_pod_without_a_node_stays_pending(stage: Stage) -> None:
    stage.pod(on="")
    stage.wait(60)
    assert phase(stage.get("Pod", "web")) == "Pending"


def test_a_pod_succeeds_after_the_time_it_says(stage: Stage) -> None:
    stage.node()
    stage.pod(run_for="30s")
    stage.wait(30)
    assert phase(stage.get("Pod", "web")) == "Running"

    stage.wait(0.2)

    pod = stage.get("Pod", "web")
    assert phase(pod) == "Succeeded"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_an_exit_code_makes_it_fail(stage: Stage) -> None:
    stage.node()
    stage.pod(run_for="1s", exit_code="3")
    stage.wait(2)
    pod = stage.get("Pod", "web")
    assert phase(pod) == "Failed"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_a_duration_nobody_can_read_counts_as_none(stage: Stage) -> None:
    stage.node()
    stage.pod(run_for="a while")
    stage.wait(600)
    assert phase(stage.get("Pod", "web")) == "Running"


def test_a_deleted_pod_takes_the_time_it_needs(stage: Stage) -> None:
    stage.node()
    stage.pod(stop_after="5s")
    stage.wait(1)
    stage.delete("Pod", "web")

    stage.wait(4)
    assert stage.get("Pod", "web")["metadata"]["deletionGracePeriodSeconds"] == 30
    stage.wait(1.1)
    assert stage.find("Pod", "web") is None


def test_but_no_longer_than_its_grace(stage: Stage) -> None:
    stage.node()
    stage.pod(stop_after="1h")
    stage.wait(1)
    stage.delete("Pod", "web", grace=10)
    stage.wait(9)
    assert stage.find("Pod", "web") is not None
    stage.wait(1.1)
    assert stage.find("Pod", "web") is None


def test_a_stopped_kubelet_does_nothing_until_it_goes_on(stage: Stage) -> None:
    stage.node()
    stage.pod()
    stage.wait(1)
    stage.patch("Node", "n1", {"metadata": {"annotations": {"kubesched/kubelet": "stopped"}}})
    stage.delete("Pod", "web")
    stage.wait(100)
    assert stage.find("Pod", "web") is not None, "as on a machine without power"

    stage.patch("Node", "n1", {"metadata": {"annotations": {"kubesched/kubelet": None}}})
    stage.wait(1)
    assert stage.find("Pod", "web") is None


def test_a_bare_node_registers(stage: Stage) -> None:
    stage.node()
    node = stage.get("Node", "n1")
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
    assert node["status"]["allocatable"] == node["status"]["capacity"]
    assert {c["type"]: c["status"] for c in node["status"]["conditions"]}["Ready"] == "True"
    assert "taints" not in node["spec"], "the taint it came with is gone"


def test_what_a_node_has_is_not_overwritten(stage: Stage) -> None:
    stage.create("Node", "n1", status={"allocatable": {"cpu": "2", "pods": "5"}})
    stage.settle()
    assert stage.get("Node", "n1")["status"]["allocatable"] == {"cpu": "2", "pods": "5"}


def test_leases_are_renewed_every_ten_seconds(stage: Stage) -> None:
    stage.node()

    def renewed() -> int:
        lease = stage.api.get("Lease", "kube-node-lease", "n1")
        return parse_rfc3339(lease["spec"]["renewTime"])

    stage.wait(60)
    assert 0 <= stage.now - renewed() <= 10e9
    first = renewed()
    stage.wait(30)
    assert renewed() - first == 30e9
