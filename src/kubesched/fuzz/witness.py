"""What the judge remembers of one scheduler, from its beginning to its death."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from typing import TYPE_CHECKING, NamedTuple

from kubesched.api.time import Instant
from kubesched.core.messages import Bind, Evict
from kubesched.framework.records import State
from kubesched.framework.steps import Answer
from kubesched.fuzz.connection import Connection, Sent
from kubesched.fuzz.oracle import PodFacts, View

if TYPE_CHECKING:
    from kubesched.fuzz.process import Process


class Chosen(NamedTuple):
    """A placement, and what was known when it was decided."""

    pod: PodFacts
    node: str
    node_uid: str
    node_version: int
    believed: View
    known: frozenset[str]  # uids of the pods it saw there
    turn: int  # of two placements by one scheduler, the later one has the higher


class Account:
    """One life of one scheduler."""

    def __init__(self, process: Process) -> None:
        assert process.connection is None or process.connection.closed is False, "an account is of the living"
        self.process = process
        self.states: dict[str, State] = {}  # uid → where its core says it is
        self.chosen: dict[str, Chosen] = {}  # uid → its latest placement
        self.turns = 0  # placements so far
        self.tried_with: dict[str, View] = {}  # uid → what it knew when an attempt began that extenders take part in
        self.flying: dict[str, str] = {}  # uid → node, of pods the core says are on their way
        self.active: dict[str, int] = {}  # uid → priority, of pods that are ready to be tried
        self.binds: list[Sent] = []  # that may still count
        self.evicted: Counter[tuple[str, str]] = Counter()  # (preemptor, victim) → evictions nobody refused
        self.victims: dict[str, tuple[str, tuple[str, ...]]] = {}  # preemptor → node's uid, victims of its last round
        self.rounds: Counter[str] = Counter()  # preemptor → how often it chose victims
        self.promises: dict[str, str] = {}  # uid → where its last attempt promised it room
        self.for_whom: dict[str, str] = {}  # victim → preemptor
        self.evicting: dict[int, tuple[str, str]] = {}  # effect → preemptor, victim
        self.reserved: set[str] = set()
        self.flushed: set[str] = set()  # uids woken by nothing but the flush
        self.attempts: Counter[str] = Counter()  # uid → attempts since the quiet began
        self.pressure: dict[str, tuple[Instant, int, int]] = {}  # uid → since when, news heard then, attempts since
        self.turned_away: set[str] = set()  # uids that a permit plugin has refused since their last attempt
        self.failed: set[str] = set()  # uids whose last attempt ended with an error
        self.effects = 0

    @property
    def connection(self) -> Connection:
        assert self.process.connection is not None, "an account is of the living"
        return self.process.connection

    @property
    def view(self) -> View:
        return self.connection.view

    def answered(self, sent: Sent, answer: Answer) -> None:
        """A request was answered, whether that is true or not."""
        effect = sent.effect
        if isinstance(effect, Evict) and answer.failure is not None:
            pair = self.evicting.pop(effect.id, None)
            if pair is not None and answer.failure.reason != "NotFound":
                self.evicted[pair] -= 1

    def under_way(self, truth: View) -> list[Sent]:
        """Binds that nobody has answered, or that may still be carried out."""
        self.binds = [sent for sent in self.binds if sent.open or (sent.alive and may_still_count(truth, sent))]
        return self.binds

    def assumed(self, truth: View, ours: Container[str]) -> dict[str, str]:
        """uid → node, of pods whose room is taken though the watch has not said so.

        They are those the core says are on their way; those whose bind may still be carried out, whatever the core
        says; and those bound already, even if they have ended since and no news of either have come.
        """
        found = dict(self.flying)
        for uid, chosen in self.chosen.items():
            if uid in ours and self.states.get(uid) is State.BOUND:
                found[uid] = chosen.node
        for sent in self.under_way(truth):
            assert isinstance(sent.effect, Bind), "binds are kept here"
            if sent.alive:
                found.setdefault(sent.effect.uid, sent.effect.node)
        found.update({pod.uid: pod.node for pod in truth.pods.values() if pod.node and pod.uid in ours})
        return found

    def believed(self, truth: View, ours: Container[str]) -> View:
        """What the scheduler has been told, and what it must take into account besides."""
        told, assumed = self.view, self.assumed(truth, ours)
        both = View()
        both.nodes, both.others = dict(told.nodes), told.others
        both.pods = {key: self._placed(pod, assumed) for key, pod in told.pods.items()}
        return both

    def _placed(self, pod: PodFacts, assumed: dict[str, str]) -> PodFacts:
        """A pod on its way counts as what it was when it was decided, until the watch shows it on its node."""
        node = assumed.get(pod.uid)
        if pod.node or node is None:
            return pod
        then = self.chosen[pod.uid].pod if pod.uid in self.chosen else pod
        return then._replace(node=node)


def may_still_count(truth: View, sent: Sent) -> bool:
    """Whether a bind that is still under way would be accepted by the server now."""
    effect = sent.effect
    assert isinstance(effect, Bind), "only binds are asked about"
    pod = truth.pods.get(effect.pod)
    if pod is None or pod.uid != effect.uid or pod.node:
        return False
    return not effect.resource_version or effect.resource_version == str(pod.version)
