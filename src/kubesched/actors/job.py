"""Jobs: pods until enough of them have succeeded, or too many have failed.

Counted are pods that were seen to end, each once, so that deleting a finished pod does not run it again.  What a Job's
pods do is said by their annotations (kubelet.py); without any they run for a second and succeed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kubesched.actors.conditions import condition, find_condition, is_true, with_conditions
from kubesched.actors.controller import Controller, owner_key
from kubesched.actors.messages import Effect, Seen, change, delete
from kubesched.actors.pods import BURST, claim, create_pod, is_active, is_ready, phase_of, pod_from, ranked_for_deletion
from kubesched.actors.view import Key, View, key_of
from kubesched.api.time import Duration, Instant, format_rfc3339, minutes, parse_rfc3339, seconds

Json = dict[str, Any]

JOBS = "batch/jobs"
INDEX = "batch.kubernetes.io/job-completion-index"
_KINDS = {"Job": JOBS}
_RETRY_FIRST: Duration = seconds(10)
_RETRY_MAX: Duration = minutes(6)


class Jobs(Controller):
    """Runs pods to completion."""

    watches: ClassVar[tuple[str, ...]] = (JOBS, "pods")

    def __init__(self, view: View | None = None) -> None:
        super().__init__(view)
        self._ended: dict[str, dict[str, Json]] = {}  # uid of the job → uid of the pod → the pod as it ended

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource == JOBS:
            if seen.new is None:
                self._ended.pop(seen.last["metadata"]["uid"], None)
            return [key_of(JOBS, seen.last)]
        return dict.fromkeys(key for obj in (seen.old, seen.new) if obj is not None for key in owner_key(obj, _KINDS))

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        job = self.view.at(key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return
        pods, effects = claim(self.view, "pods", job, job["spec"].get("selector"))
        yield from effects
        ended = self._ended.setdefault(job["metadata"]["uid"], {})
        for pod in pods:
            if phase_of(pod) in ("Succeeded", "Failed"):
                ended.setdefault(pod["metadata"]["uid"], pod)
        work = Work(job, [pod for pod in pods if is_active(pod)], list(ended.values()), now)
        if work.over is not None:
            yield from self._expire(key, job, work, now)
            yield from (delete("pods", pod) for pod in work.active)
        elif job["spec"].get("suspend"):
            yield from (delete("pods", pod) for pod in work.active)
        else:
            yield from self._run(key, work, now)
        yield from _tell(job, work, now)

    def _run(self, key: Key, work: Work, now: Instant) -> Iterator[Effect]:
        if work.deadline is not None:
            self.wake(key, work.deadline)
        if work.again_at > now:
            self.wake(key, work.again_at)
            return
        missing = work.wanted - len(work.active)
        for number in range(min(missing, BURST)):
            yield create_pod(work.pod(number))
        if missing < 0:
            yield from (delete("pods", pod) for pod in ranked_for_deletion(work.active)[:-missing])

    def _expire(self, key: Key, job: Json, work: Work, now: Instant) -> Iterator[Effect]:
        """A finished Job goes by itself where it says when."""
        life = job["spec"].get("ttlSecondsAfterFinished")
        done = find_condition(job, "Complete") or find_condition(job, "Failed")
        if life is None or done is None:
            return
        due = Instant(parse_rfc3339(done["lastTransitionTime"]) + seconds(life))
        if now < due:
            self.wake(key, due)
        else:
            yield delete(JOBS, job, propagation="Background")


class Work:
    """How far a Job is."""

    def __init__(self, job: Json, active: list[Json], ended: list[Json], now: Instant) -> None:
        self.job, self.spec, self.active = job, job["spec"], active
        told = job.get("status") or {}
        done = [pod for pod in ended if phase_of(pod) == "Succeeded"]
        broken = [pod for pod in ended if phase_of(pod) == "Failed"]
        # After a restart of the cluster only the status remembers pods that are gone.
        self.succeeded = max(len(done), told.get("succeeded") or 0)
        self.failed = max(len(broken), told.get("failed") or 0)
        self.indexed = self.spec.get("completionMode") == "Indexed"
        self.done_indexes = {index_of(pod) for pod in done} if self.indexed else set()
        if self.indexed:
            self.succeeded = len(self.done_indexes)
        self.completions: int | None = self.spec.get("completions")
        self.deadline = self._deadline(told)
        self.again_at = self._again_at(broken)
        self.over = self._over(now)

    def _deadline(self, told: Json) -> Instant | None:
        limit, start = self.spec.get("activeDeadlineSeconds"), told.get("startTime")
        return Instant(parse_rfc3339(start) + seconds(limit)) if limit is not None and start else None

    def _again_at(self, broken: list[Json]) -> Instant:
        """After a failure the next pod waits: ten seconds, then twice as long, and so on."""
        latest = max((_ended_at(pod) for pod in broken), default=None)
        if latest is None:
            return Instant(0)
        return Instant(latest + min(_RETRY_MAX, _RETRY_FIRST << min(len(broken) - 1, 6)))

    def _over(self, now: Instant) -> tuple[str, str, str] | None:
        """The condition it ends with, reason and message; None while it goes on."""
        for name in ("Complete", "Failed"):
            if is_true(self.job, name):
                found = find_condition(self.job, name) or {}
                return name, found.get("reason", ""), found.get("message", "")
        limit = self.spec.get("backoffLimit")
        if self.failed > (6 if limit is None else limit):
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        if self.deadline is not None and self.deadline <= now:
            return "Failed", "DeadlineExceeded", "Job was active longer than specified deadline"
        enough = self.succeeded >= self.completions if self.completions is not None else self.succeeded > 0
        if enough and (self.completions is not None or not self.active):
            return "Complete", "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    @property
    def wanted(self) -> int:
        """How many pods are to run."""
        parallelism = self.spec.get("parallelism")
        most = 1 if parallelism is None else int(parallelism)
        if self.completions is not None:
            return min(most, max(0, self.completions - self.succeeded))
        return len(self.active) if self.succeeded else most

    def pod(self, number: int) -> Json:
        """The next pod but `number`."""
        name = self.job["metadata"]["name"]
        template = self.spec.get("template") or {}
        if not self.indexed:
            return pod_from(template, self.job, prefix=f"{name}-")
        taken = self.done_indexes | {index_of(pod) for pod in self.active}
        free = [index for index in range(self.completions or 0) if index not in taken]
        index = str(free[number])
        pod = pod_from(template, self.job, prefix=f"{name}-{index}-")
        meta = pod["metadata"]
        meta["annotations"] = {**(meta.get("annotations") or {}), INDEX: index}
        meta["labels"] = {**(meta.get("labels") or {}), INDEX: index}
        pod["spec"].setdefault("hostname", f"{name}-{index}")
        return pod


def index_of(pod: Json) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "-1")
    return int(text) if text.isdecimal() else -1


def ranges(numbers: Iterable[int]) -> str:
    """Sorted numbers as Kubernetes writes them: 0-3,5."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, dict.fromkeys(part))) for part in parts)


def _ended_at(pod: Json) -> Instant:
    states = [status.get("state") or {} for status in (pod.get("status") or {}).get("containerStatuses") or ()]
    stamps = [state["terminated"]["finishedAt"] for state in states if "finishedAt" in (state.get("terminated") or {})]
    return parse_rfc3339(max(stamps)) if stamps else parse_rfc3339(pod["metadata"]["creationTimestamp"])


def _tell(job: Json, work: Work, now: Instant) -> Iterator[Effect]:
    told = job.get("status") or {}
    suspended = bool(job["spec"].get("suspend"))
    active = [] if work.over is not None or suspended else work.active
    status: Json = {"active": len(active), "ready": sum(is_ready(pod) for pod in active)}
    status |= {"succeeded": work.succeeded, "failed": work.failed, "terminating": 0, "uncountedTerminatedPods": {}}
    if work.indexed:
        status["completedIndexes"] = ranges(work.done_indexes)
    if not told.get("startTime") and not suspended:
        status["startTime"] = format_rfc3339(now)
    made = []
    if suspended or find_condition(job, "Suspended") is not None:
        word = "Suspended" if suspended else "Resumed"
        how = "True" if suspended else "False"
        made.append(condition("Suspended", how, now, f"Job{word}", f"Job {word.lower()}", lastProbeTime=None))
    if work.over is not None:
        name, reason, message = work.over
        first = "SuccessCriteriaMet" if name == "Complete" else "FailureTarget"
        probe = {"lastProbeTime": format_rfc3339(now)}
        if not is_true(job, name):
            made += [condition(one, "True", now, reason, message, **probe) for one in (first, name)]
            if name == "Complete":
                status["completionTime"] = format_rfc3339(now)
    conditions = with_conditions(job, (one for one in made if _is_news(job, one)))
    if conditions != (told.get("conditions") or []):
        status["conditions"] = conditions
    absent = {"active": 0, "succeeded": 0, "failed": 0, "ready": 0, "terminating": 0, "completedIndexes": ""}
    different = {
        field: value for field, value in status.items() if told.get(field, absent.get(field)) != value
    }
    if different:
        yield change(JOBS, job, {"status": different}, subresource="status")


def _is_news(job: Json, made: Json) -> bool:
    found = find_condition(job, made["type"])
    return found is None or found.get("status") != made["status"]
