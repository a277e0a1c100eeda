"""The judge: reads the history of the store and every request, and finds the first law that is broken.

It believes nobody.  What is true it takes from the store; what a scheduler could know, from what it has been told;
whether a pod may go somewhere, from a second opinion (oracle.py).  A core's own words count in one place only: which
pods it says are on their way, and that is checked against the requests it sends.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from kubesched.api.time import Duration, Instant, format_duration, seconds
from kubesched.apiserver.store import Watch
from kubesched.core.messages import AnyEffect, Bind
from kubesched.drive.tap import Moment
from kubesched.framework.errors import BrokenInvariant
from kubesched.framework.steps import Answer
from kubesched.fuzz import liveness, safety
from kubesched.fuzz.connection import Connection, Sent, remember
from kubesched.fuzz.oracle import View
from kubesched.fuzz.plan import Json
from kubesched.fuzz.wired import LEASE, Wired
from kubesched.fuzz.witness import Account
from kubesched.sim.cluster import WATCHED

if TYPE_CHECKING:
    from kubesched.fuzz.process import Process
    from kubesched.fuzz.stage import Stage

STREAMS_A_SECOND = 10  # of one kind

LAWS: Mapping[str, str] = {
    "S1a": "no bind of ours makes or worsens an overcommit",
    "S1b": "every bind was feasible in what its scheduler knew and assumed",
    "S2": "a pod has one bind under way at most, and no second one before the first is settled",
    "S3": "a bind names the uid it was decided for, and no pod that is going, gated or somebody else's",
    "S4": "a pod is bound where it was decided, and a second opinion agrees that it may go there",
    "S5": "what was reserved is bound or given back, exactly once",
    "S7": "in the quiet, what a scheduler believes is what is there",
    "S8": "victims are lower than their preemptor, are needed, and are evicted once; the room is kept for it",
    "S9": "no pod is tried while a higher one is ready",
    "S10": "no bind of ours breaks a required rule about other pods, ports, claims or spread",
    "S11": "room is promised to waiting pods only",
    "S12": "nobody writes who does not lead",
    "S15": "nobody's view of a kind goes back in time",
    "S16": "what is remembered is bounded by what is there",
    "S17": "the core never raises",
    "S18": "one event is one line, and no line has a control character",
    "Q": "a pod is in exactly one place, and every attempt ends (the core's own invariants)",
    "Q6": "nobody sleeps without something that will wake him",
    "L1": "in the quiet, every pod that fits somewhere is bound",
    "L1'": "nobody is rescued by the flush",
    "L2": "in the quiet, every pod is bound, or says why it is not",
    "L3": "in the quiet, nobody tries for ever",
    "L6": "in the quiet, a leader dies: whoever is next binds what waits, within 2 s of the Lease's end",
    "L7": "in the quiet, a leader is asked to end: whoever is next binds what waits, within 2 s",
}


class Broken(Struct, frozen=True):
    """A law that was broken."""

    law: str
    what: str
    at: str

    def __str__(self) -> str:
        return f"{self.law} ({LAWS[self.law]}) at {self.at}: {self.what}"


class Judge:
    """Watches one run."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.broken: Broken | None = None
        self.dirty = False
        self.truth = View()
        self.lost = 0  # news that were dropped
        self.refused = 0  # happenings the cluster refused
        self.changes = 0  # of the store
        self.changes_before = 0  # the quiet
        self.binds = 0
        self.accounts: dict[str, Account] = {}  # by process
        self.authors: dict[str, str] = {}  # uid of a pod → who bound it: a process, or "" for somebody else
        self.ours: set[str] = set()  # uids of pods that the schedulers under test have bound
        self.rooms: dict[str, list[tuple[int, Mapping[str, int]]]] = {}  # node → (version, room), as they were
        self.sometimes: dict[str, int] = {}  # what should happen now and then, and how often it did
        self.history: dict[str, Json] = {}  # resource version → the object as it was, where the wire is played
        self._revisions: list[tuple[Instant, int]] = []
        self._asked: dict[tuple[str, str], deque[Instant]] = {}  # who, what → when
        self.rested = False
        self._expected: dict[str, str] = {}  # uid → who is binding it right now
        self._watches: dict[str, Watch] = {}
        self._marked: dict[str, None] = {}  # kinds with news
        for kind in WATCHED:
            self._watches[kind] = watch = stage.cluster.watch(kind, partial(self._mark, kind))
            watch.take()

    def _mark(self, kind: str) -> None:
        self.dirty = True
        self._marked[kind] = None

    def blame(self, law: str, what: str) -> None:
        """A law is broken.  The first one counts."""
        if self.broken is None:
            since = Duration(self.stage.now - self.stage.start)
            self.broken = Broken(law, what, format_duration(since))

    def notice(self, what: str) -> None:
        """Something happened that a good campaign sees often."""
        self.sometimes[what] = self.sometimes.get(what, 0) + 1

    # ── the store ────────────────────────────────────────────────────────────────────────────────────────────

    def look(self) -> None:
        """Fold what happened in the store into the truth."""
        self.dirty = False
        marked, self._marked = self._marked, {}
        for kind in marked:
            for event in self._watches[kind].take():
                self.changes += 1
                if self.stage.plan.custom.wire:
                    self.history[event.obj["metadata"]["resourceVersion"]] = event.obj
                    self._revisions.append((self.stage.now, self.stage.cluster.store.revision))
                gone = event.type == "DELETED"
                if kind == "Pod":
                    self._pod_changed(event.obj, gone)
                remember(self.truth, kind, event.obj, gone)
                if kind == "Node":
                    self._node_changed(event.obj)
                    if gone:
                        self.stage.people.node_gone(event.obj["metadata"]["name"])
                elif kind == "PersistentVolume" and not gone:
                    self.stage.people.volume_changed(event.obj)

    def _pod_changed(self, pod: Json, gone: bool) -> None:
        uid, node = pod["metadata"]["uid"], (pod.get("spec") or {}).get("nodeName")
        if node and uid not in self.authors:
            author = self.authors[uid] = self._expected.pop(uid, "")
            if author and (author == "extender" or self.stage.processes[author].ours):
                self.ours.add(uid)
        self.stage.people.pod_changed(pod, gone)

    def _node_changed(self, obj: Json) -> None:
        facts = self.truth.nodes.get(obj["metadata"]["name"])
        if facts is not None:
            self.rooms.setdefault(facts.name, []).append((facts.version, facts.room))

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────

    def begins(self, process: Process) -> None:
        self.accounts[process.name] = Account(process)

    def dies(self, process: Process) -> None:
        self.notice("a scheduler died")
        del self.accounts[process.name]

    def raised(self, process: Process, error: Exception) -> None:
        """The core raised: a broken invariant of its own, or something worse."""
        if not process.ours:
            self.blame("S17", f"the rival raised {error!r}")
        elif isinstance(error, BrokenInvariant):
            text = str(error).splitlines()[0]
            self.blame("Q6" if "without alarm" in text else "Q", text)
        else:
            last = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
            self.blame("S17", f"{type(error).__name__}: {error} at {where}")

    def witness(self, process: Process, moment: Moment) -> None:
        """An event has been folded into a core."""
        if process.ours:
            safety.moment(self, self.accounts[process.name], moment)

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────

    def sends(self, process: Process, effect: AnyEffect) -> None:
        account = self.accounts[process.name]
        account.effects += 1
        if process.ours:
            safety.sends(self, account, effect)

    def sent(self, connection: Connection, sent: Sent) -> None:
        """A request is on its way."""
        account = self.accounts.get(connection.owner)
        if account is not None and isinstance(sent.effect, Bind):
            account.binds.append(sent)

    def believed(self, account: Account) -> View:
        """What one of our schedulers has been told, and what it must take into account besides."""
        if self.dirty:
            self.look()
        return account.believed(self.truth, self.ours)

    def asked(self, connection: Wired, path: str) -> None:
        """A stream is asked for; whoever does so again and again is a burden."""
        times = self._asked.setdefault((connection.identity, path), deque(maxlen=STREAMS_A_SECOND))
        if len(times) == STREAMS_A_SECOND and self.stage.now - times[0] <= seconds(1):
            self.blame("L3", f"{connection.identity} has asked for {path} {STREAMS_A_SECOND} times within a second")
        times.append(self.stage.now)

    def revision_before(self, moment: Instant) -> int:
        """How far the store had got at a moment; 0 where it is not known."""
        return next((revision for at, revision in reversed(self._revisions) if at <= moment), 0)

    def writes(self, connection: Wired, what: str, about: str) -> None:
        """A write begins; where there is a Lease, only whoever holds it may begin one."""
        if self.stage.plan.custom.wire == "elected":
            lease = self.stage.cluster.find("Lease", LEASE.namespace, LEASE.name)
            holder = "" if lease is None else (lease.get("spec") or {}).get("holderIdentity")
            if holder != connection.identity:
                self.blame("S12", f"{connection.identity} writes ({what} {about}), and {holder or 'nobody'} leads")

    def arriving(self, connection: Connection, sent: Sent) -> None:
        """A request is about to be carried out."""
        if isinstance(sent.effect, Bind):
            if self.dirty:
                self.look()
            self._expected[sent.effect.uid] = connection.owner

    def arrived(self, connection: Connection, sent: Sent, answer: Answer) -> None:
        """It has been."""
        effect = sent.effect
        if not isinstance(effect, Bind):
            return
        if answer.ok and self.stage.processes[connection.owner].ours:
            self.binds += 1
            safety.bound(self, connection, effect, answer)
        if self.dirty:
            self.look()
        self._expected.pop(effect.uid, None)

    def answered(self, connection: Connection, sent: Sent, answer: Answer) -> None:
        account = self.accounts.get(connection.owner)
        if account is not None:
            account.answered(sent, answer)

    def binding_by_extender(self, uid: str) -> None:
        if self.dirty:
            self.look()
        if self.authors.get(uid) == "extender" and not self.stage.plan.custom.rival:
            self.blame("S2", f"the extender is asked to bind {uid} again, and has done so already")
        self._expected[uid] = "extender"

    # ── the quiet ────────────────────────────────────────────────────────────────────────────────────────────

    def calms(self) -> None:
        self.look()
        self.changes_before = self.changes
        for account in self.accounts.values():
            account.attempts.clear()

    def rest(self) -> None:
        """Everything should have come to rest."""
        self.look()
        self.rested = True
        liveness.at_rest(self)
        for account in self.accounts.values():
            account.effects = 0

    def end(self) -> None:
        """And nothing should have happened since."""
        liveness.after_rest(self)
