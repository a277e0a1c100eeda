"""The quick cluster of virtual time answers five hundred drawn sequences of requests as the whole API server does.

That server is compared with a real kube-apiserver in `tests/realserver`; here it is the yardstick, so what holds of
the one holds of the other.
"""

from random import Random
from typing import Any

import pytest

from kubesched.api.objects import PodCondition
from kubesched.api.time import Instant, parse_rfc3339
from kubesched.apiserver.inprocess import InProcess
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import Store
from kubesched.core.messages import AnyEffect, Bind, EffectId, Evict, PatchPod, ReadPod
from kubesched.drive.requests import Requests
from kubesched.sim.cluster import Cluster, die_gracefully

NOW: Instant = parse_rfc3339("2026-01-01T00:00:00Z")
ACTIONS = ("make", "make", "delete", "end", "label", *("Bind", "PatchPod", "Evict", "ReadPod") * 2)
SEQUENCES, STEPS, PODS = 500, 10, ("a", "b", "c")


def now() -> Instant:
    return NOW


class Side:
    """One of the two, and what is known of it: uids and versions differ between them."""

    def __init__(self, cluster: Any) -> None:
        self.cluster, self.requests = cluster, Requests(cluster, now)
        self.first: dict[str, tuple[str, str]] = {}  # name → uid, version, as it was made

    def make(self, name: str, spec: dict[str, Any]) -> None:
        container = {"name": "main", "image": "app:1"}
        meta = {"name": name, "namespace": "default"}
        made = self.cluster.create({"kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}})
        self.first[name] = made["metadata"]["uid"], made["metadata"]["resourceVersion"]

    def of(self, name: str, which: str) -> tuple[str, str]:
        """Its uid and version: as they are now, as they were first, or those of nobody."""
        seen = self.cluster.find("Pod", "default", name)
        if which == "now" and seen is not None:
            return seen["metadata"]["uid"], seen["metadata"]["resourceVersion"]
        return self.first.get(name, ("nobody", "1")) if which != "nobody" else ("nobody", "1")

    def ask(self, effect: AnyEffect, mistaken: bool) -> tuple[Any, ...]:
        """What it says; a patch that names another's uid is Invalid to the one and a Conflict to the other."""
        failure = self.requests.carry_out(effect).failure
        if failure is None:
            return ("ok",)
        return ("no", failure.applied) if mistaken else (failure.reason, failure.code, failure.applied)

    def do(self, action: str, name: str, spec: dict[str, Any]) -> str:
        try:
            match action:
                case "make":
                    self.make(name, spec)
                case "delete":
                    self.cluster.delete("Pod", "default", name)
                case "end":
                    self.cluster.delete("Pod", "default", name, grace=0)
                case "label":
                    self.cluster.patch("Pod", "default", name, {"metadata": {"labels": {"seen": "yes"}}})
        except ApiError as error:
            return error.reason
        return "ok"

    def looks(self) -> dict[str, Any]:
        return {name: self._looks(name) for name in PODS}

    def _looks(self, name: str) -> Any:
        seen = self.cluster.find("Pod", "default", name)
        if seen is None:
            return None
        status = seen.get("status") or {}
        conditions = sorted((one["type"], one["status"]) for one in status.get("conditions") or ())
        if seen["spec"].get("schedulingGates"):
            conditions = []  # the whole server says by itself that a gated pod is not scheduled
        going = "deletionTimestamp" in seen["metadata"]
        return seen["spec"].get("nodeName"), status.get("nominatedNodeName"), conditions, going


def sides() -> list[Side]:
    quick = Cluster(now, Random(1))
    die_gracefully(quick)
    server = ApiServer(Store(now=now, luck=Random(1)), now=now)
    server.bootstrap()
    return [Side(quick), Side(InProcess(server))]


def effect(kind: str, name: str, uid: str, version: str, luck: Random) -> AnyEffect:
    about: dict[str, Any] = {"id": EffectId(1), "cause": 0, "pod": f"default/{name}", "uid": uid}
    match kind:
        case "Bind":
            return Bind(**about, node=luck.choice(("n1", "n2")), resource_version=luck.choice(("", version)))
        case "PatchPod":
            said = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=luck.choice("xyz"))
            nominated, fenced = luck.choice((None, "", "n1")), luck.choice(("", version))
            return PatchPod(**about, condition=said, nominated_node_name=nominated, resource_version=fenced)
        case "Evict":
            return Evict(**about, message="preempting")
    return ReadPod(**about)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_both_answer_alike(part: int) -> None:
    for seed in range(part * SEQUENCES // 10, (part + 1) * SEQUENCES // 10):
        luck, both = Random(seed), sides()
        for step in range(STEPS):
            name, which = luck.choice(PODS), luck.choice(("now", "now", "now", "first", "nobody"))
            spec: dict[str, Any] = {"terminationGracePeriodSeconds": luck.choice((0, 30))}
            spec |= luck.choice(({}, {}, {"nodeName": "n1"}, {"schedulingGates": [{"name": "example.com/wait"}]}))
            action = luck.choice(ACTIONS)
            if action[0].islower():
                answers = [side.do(action, name, spec) for side in both]
            else:
                again, seen = luck.getrandbits(32), both[1].looks()[name]
                kind = "ReadPod" if action == "PatchPod" and seen is not None and seen[0] else action
                answers = []
                for side in both:  # only the whole server refuses to promise room to a pod that is bound
                    asked = effect(kind, name, *side.of(name, which), Random(again))
                    answers.append(side.ask(asked, which != "now"))
            what = f"sequence {seed}, step {step}: {action} of {name} ({which})"
            assert answers[0] == answers[1], what
            assert both[0].looks() == both[1].looks(), what
