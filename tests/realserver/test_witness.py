"""The witness finds fault: with each thing that must never happen, made up."""

from __future__ import annotations

from typing import Any

import pytest
from tests.realserver.history import Version
from tests.realserver.load import node
from tests.realserver.scene import pod
from tests.realserver.scheduling import NAME
from tests.realserver.witness import Witness, thousandths, written_without_the_lease

Json = dict[str, Any]


class Told:
    """A witness, and what it is told: each version a moment after the one before."""

    def __init__(self) -> None:
        self.witness = Witness(NAME, "lease")
        self.revision = 0

    def tell(self, kind: str, key: str, obj: Json | None) -> Told:
        self.revision += 1
        self.witness.hear(Version(kind, key, obj, self.revision, float(self.revision)))
        return self

    def pod(self, name: str, on: str = "", cpu: str = "1", uid: str = "", **meta: Any) -> Told:
        made = pod(name, cpu, **({"nodeName": on} if on else {}))
        made["metadata"].update(uid=uid or f"uid-{name}", **meta)
        return self.tell("pods", f"default/{name}", made)

    def node(self, name: str = "n1", cpu: str = "2", pods: str = "110") -> Told:
        return self.tell("minions", name, node(name, cpu=cpu, pods=pods))

    @property
    def problem(self) -> str:
        [problem] = self.witness.problems
        return problem


@pytest.fixture
def told() -> Told:
    return Told().node()


def test_what_is_right_is_not_blamed(told: Told) -> None:
    told.pod("a").pod("b").pod("a", on="n1").pod("b", on="n1").pod("c")
    told.tell("pods", "default/a", None).pod("c", on="n1")
    assert told.witness.problems == []
    assert [one.pod for one in told.witness.bound] == ["default/a", "default/b", "default/c"]
    assert told.witness.waiting == ()
    assert sorted(told.witness.placed()) == ["default/b", "default/c"]


def test_room_that_is_sold_twice(told: Told) -> None:
    told.pod("a", cpu="1500m").pod("b").pod("a", on="n1", cpu="1500m").pod("b", on="n1")
    assert "default/b was bound to n1, whose 2000m are less than 2500m" in told.problem


def test_more_pods_than_a_node_takes() -> None:
    told = Told().node(pods="1")
    told.pod("a", cpu="1m").pod("b", cpu="1m").pod("a", on="n1", cpu="1m").pod("b", on="n1", cpu="1m")
    assert "which takes 1 pods and has 2" in told.problem


def test_a_pod_that_changes_its_node(told: Told) -> None:
    told.node("n2").pod("a").pod("a", on="n1").pod("a", on="n2")
    assert "was on n1 and is on n2" in told.problem


def test_a_namesake_is_another_pod(told: Told) -> None:
    told.node("n2").pod("a").pod("a", on="n1").pod("a", uid="another").pod("a", uid="another", on="n2")
    assert told.witness.problems == []


def test_a_node_that_is_not_there(told: Told) -> None:
    told.pod("a").tell("minions", "n1", None).pod("a", on="n1")
    assert "was bound to n1, which is not there" in told.problem


def test_a_pod_on_its_way_out(told: Told) -> None:
    told.pod("a").pod("a", on="n1", deletionTimestamp="2026-01-01T00:00:00Z")
    assert "was on its way out, and was bound" in told.problem


def test_a_pod_that_nobody_binds_is_known_to_wait(told: Told) -> None:
    assert told.pod("a").witness.waiting == ("default/a",)


def test_only_the_lease_that_counts_has_holders(told: Told) -> None:
    for name, holder in (("lease", "a"), ("other", "x"), ("lease", "a"), ("lease", "b")):
        told.tell("leases", f"kube-system/{name}", {"spec": {"holderIdentity": holder}})
    assert told.witness.holders == [("a", 2.0), ("b", 5.0)]


def test_cpu_is_read_in_both_ways() -> None:
    assert (thousandths("1500m"), thousandths("2")) == (1500, 2000)


def test_a_binding_by_somebody_who_does_not_lead_is_found() -> None:
    def lease(user: str, second: int, name: str = "lease") -> Json:
        about = {"resource": "leases", "name": name}
        return {**by(user, second), "verb": "update", "objectRef": about}

    def binding(user: str, second: int, code: int = 201) -> Json:
        about = {"resource": "pods", "subresource": "binding", "namespace": "default", "name": f"p{second}"}
        return {**by(user, second, code), "verb": "create", "objectRef": about}

    def by(user: str, second: int, code: int = 200) -> Json:
        stamp = f"2026-01-01T00:00:{second:02}.000000Z"
        times = {"stageTimestamp": stamp, "requestReceivedTimestamp": stamp}
        return {"user": {"username": user}, "responseStatus": {"code": code}, **times}

    right = [lease("one", 1), binding("one", 2), lease("x", 3, "other"), binding("one", 4), lease("two", 5)]
    assert written_without_the_lease([*right, binding("two", 6), binding("one", 7, 409)], "lease") == []
    [found] = written_without_the_lease([*right, binding("one", 6)], "lease")
    assert "one bound default/p6 while two led" in found
