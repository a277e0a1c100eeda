"""Jobs: enough pods that succeed, not too many that fail, and each counted once."""

from __future__ import annotations

from typing import Any

from tests.actors.conftest import Json, Stage, phase

from kubesched.actors.conditions import find_condition, is_true
from kubesched.actors.job import ranges


def job(stage: Stage, notes: dict[str, str] | None = None, **spec: Any) -> Json:
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "a:1"}]}
    template = {"metadata": {"annotations": notes or {}}, "spec": pod}
    return stage.create("Job", "sum", api="batch/v1", spec={"template": template, **spec})


def status(stage: Stage) -> Json:
    found: Json = stage.get("Job", "sum")["status"]
    return found


def test_it_runs_as_many_as_it_may_until_enough_have_succeeded(stage: Stage) -> None:
    stage.node()
    job(stage, completions=5, parallelism=2)
    stage.settle()
    assert len(stage.pods()) == 2
    for _ in range(5):
        stage.bind()
        stage.wait(2)
    told = status(stage)
    assert (told["succeeded"], told.get("active", 0)) == (5, 0)
    assert is_true(stage.get("Job", "sum"), "Complete")
    assert is_true(stage.get("Job", "sum"), "SuccessCriteriaMet")
    assert told["completionTime"] > told["startTime"]
    assert len(stage.pods()) == 5


def test_too_many_failures_end_it(stage: Stage) -> None:
    stage.node()
    job(stage, {"kubesched/exit-code": "1"}, backoffLimit=1)
    stage.bind()
    stage.wait(2)
    assert status(stage)["failed"] == 1
    stage.wait(6)
    assert len(stage.pods()) == 1, "the next attempt waits ten seconds"
    stage.wait(4)
    stage.bind()
    stage.wait(2)
    found = find_condition(stage.get("Job", "sum"), "Failed")
    assert found is not None
    assert found["reason"] == "BackoffLimitExceeded"


def test_a_deadline_ends_it_and_its_pods(stage: Stage) -> None:
    stage.node()
    job(stage, {"kubesched/run-for": "1h"}, activeDeadlineSeconds=30)
    stage.bind()
    stage.wait(31)
    found = find_condition(stage.get("Job", "sum"), "Failed")
    assert found is not None
    assert found["reason"] == "DeadlineExceeded"
    assert stage.pods() == []


def test_an_indexed_job_runs_every_index_once(stage: Stage) -> None:
    stage.node()
    job(stage, completions=3, parallelism=3, completionMode="Indexed")
    stage.bind()
    stage.wait(2)
    index = "batch.kubernetes.io/job-completion-index"
    assert sorted(pod["metadata"]["annotations"][index] for pod in stage.pods()) == ["0", "1", "2"]
    assert status(stage)["completedIndexes"] == "0-2"


def test_a_finished_pod_that_is_deleted_is_not_run_again(stage: Stage) -> None:
    stage.node()
    job(stage, completions=2)
    stage.bind()
    stage.wait(2)
    [first] = [name for name in stage.names("Pod") if phase(stage.get("Pod", name)) == "Succeeded"]
    stage.delete("Pod", first)
    stage.bind()
    stage.wait(2)
    assert is_true(stage.get("Job", "sum"), "Complete")
    assert status(stage)["succeeded"] == 2


def test_suspending_takes_the_pods_away_and_resuming_brings_others(stage: Stage) -> None:
    stage.node()
    job(stage, {"kubesched/run-for": "1h"})
    stage.bind()
    stage.patch("Job", "sum", {"spec": {"suspend": True}})
    stage.wait(1)
    assert stage.pods() == []
    assert is_true(stage.get("Job", "sum"), "Suspended")
    stage.patch("Job", "sum", {"spec": {"suspend": False}})
    stage.settle()
    assert len(stage.pods()) == 1
    assert not is_true(stage.get("Job", "sum"), "Suspended")


def test_a_finished_job_goes_when_it_says(stage: Stage) -> None:
    stage.node()
    job(stage, ttlSecondsAfterFinished=60)
    stage.bind()
    stage.wait(30)
    assert is_true(stage.get("Job", "sum"), "Complete")
    stage.wait(60)
    assert stage.find("Job", "sum") is None
    assert stage.pods() == []


def test_numbers_are_written_as_ranges() -> None:
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"
    assert ranges([]) == ""
