"""Who judges a scheduler by what etcd says: no pod bound twice, nothing sold twice, nobody writes who does not lead.

The judge keeps books of its own, and reads quantities its own way: what it is to find fault with cannot be trusted.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tests.realserver.history import Version
from tests.realserver.process import wait_until

Json = dict[str, Any]


class Bound(NamedTuple):
    """A pod got a node."""

    pod: str
    node: str
    revision: int
    heard: float


class _Held(NamedTuple):
    uid: str
    node: str
    cpu: int  # in thousandths
    ended: bool


class Witness:
    """Keeps the books, version by version, and notes whatever must never happen.

    Args:
        scheduler: whose pods are looked at; those of others are no business of ours, except that they hold room.
        lease: the name of the Lease that schedulers stand for.
    """

    def __init__(self, scheduler: str, lease: str) -> None:
        self._ours, self._lease_name = scheduler, lease
        self._lock = threading.Lock()  # it is told in one thread and asked in another
        self.problems: list[str] = []
        self.bound: list[Bound] = []
        self.holders: list[tuple[str, float]] = []  # who came to hold the Lease, and when that was heard
        self.revision = 0
        self._pods: dict[str, _Held] = {}
        self._nodes: dict[str, tuple[int, int]] = {}
        self._waiting: dict[str, str] = {}  # key → uid
        self._on: dict[str, dict[str, int]] = defaultdict(dict)  # node → pod → cpu

    # ── what it is told ──────────────────────────────────────────────────────────────────────────────

    def hear(self, version: Version) -> None:
        """One version, in order."""
        tell = {"pods": self._pod, "minions": self._node, "leases": self._lease}.get(version.kind)
        with self._lock:
            if tell is not None:
                tell(version)
            self.revision = version.revision

    def _node(self, version: Version) -> None:
        if version.obj is None:
            self._nodes.pop(version.key, None)
        else:
            room = version.obj["status"].get("allocatable", {})
            self._nodes[version.key] = thousandths(room.get("cpu", "0")), int(room.get("pods", "0"))

    def _lease(self, version: Version) -> None:
        if version.key.partition("/")[2] != self._lease_name:
            return
        holder = "" if version.obj is None else version.obj["spec"].get("holderIdentity") or ""
        if not self.holders or self.holders[-1][0] != holder:
            self.holders.append((holder, version.heard))

    def _pod(self, version: Version) -> None:
        key, before = version.key, self._pods.pop(version.key, None)
        if before is not None:
            self._on[before.node].pop(key, None)
        self._waiting.pop(key, None)
        if version.obj is None:
            return
        now = _held(version.obj)
        self._pods[key] = now
        same = before is not None and before.uid == now.uid
        if now.node and not now.ended:
            self._on[now.node][key] = now.cpu
        if same and before is not None and before.node and before.node != now.node:
            self._blame(version, f"was on {before.node} and is on {now.node}")
        elif now.node and same and before is not None and not before.node:
            self._note_bound(version, now)
        elif not now.node and not now.ended and version.obj["spec"].get("schedulerName") == self._ours:
            self._waiting[key] = now.uid

    def _note_bound(self, version: Version, now: _Held) -> None:
        assert version.obj is not None
        self.bound.append(Bound(version.key, now.node, version.revision, version.heard))
        if version.obj["metadata"].get("deletionTimestamp"):
            self._blame(version, "was on its way out, and was bound")
        room = self._nodes.get(now.node)
        if room is None:
            self._blame(version, f"was bound to {now.node}, which is not there")
            return
        there = self._on[now.node]
        if sum(there.values()) > room[0]:
            self._blame(version, f"was bound to {now.node}, whose {room[0]}m are less than {sum(there.values())}m")
        if len(there) > room[1]:
            self._blame(version, f"was bound to {now.node}, which takes {room[1]} pods and has {len(there)}")

    def _blame(self, version: Version, what: str) -> None:
        self.problems.append(f"revision {version.revision}: pod {version.key} {what}")

    # ── what it is asked ─────────────────────────────────────────────────────────────────────────────

    @property
    def waiting(self) -> tuple[str, ...]:
        """Pods of ours that are there and have no node."""
        with self._lock:
            return tuple(self._waiting)

    def placed(self) -> list[str]:
        """Pods that hold room."""
        with self._lock:
            return [key for key, held in self._pods.items() if held.node and not held.ended]

    def first_bound_after(self, moment: float) -> Bound | None:
        with self._lock:
            return next((one for one in self.bound if one.heard > moment), None)

    def until(self, so: Callable[[Witness], bool], what: str) -> None:
        wait_until(lambda: so(self), timeout=60, what=what)


def written_without_the_lease(audit: Iterable[Mapping[str, Any]], lease: str) -> list[str]:
    """From an audit log: bindings that arrived after another user had come to hold the Lease.

    Each scheduler needs a user of its own.  Whoever waits for a Lease only reads it, so the holder is whoever wrote
    it last.
    """
    held: list[tuple[str, str]] = []
    bindings: list[tuple[str, str, str]] = []
    for event in audit:
        about, user = event.get("objectRef", {}), event["user"]["username"]
        if event.get("responseStatus", {}).get("code") not in (200, 201):
            continue
        if about.get("resource") == "leases":
            if about.get("name") == lease and event["verb"] in ("create", "update"):
                held.append((event["stageTimestamp"], user))
        elif about.get("subresource") == "binding":
            bindings.append((event["requestReceivedTimestamp"], user, f"{about['namespace']}/{about['name']}"))
    held.sort()
    found, holder, at = [], "", 0
    for moment, user, pod in sorted(bindings):
        while at < len(held) and held[at][0] < moment:
            holder, at = held[at][1], at + 1
        if holder not in ("", user):
            found.append(f"{moment}: {user} bound {pod} while {holder} led")
    return found


def thousandths(cpu: str) -> int:
    """`1500m` and `1` as thousandths of a processor; the load asks in no other way."""
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000


def _held(obj: Json) -> _Held:
    spec = obj["spec"]
    cpu = sum(thousandths(one["resources"]["requests"]["cpu"]) for one in spec["containers"])
    ended = obj.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return _Held(obj["metadata"]["uid"], spec.get("nodeName", ""), cpu, ended)
