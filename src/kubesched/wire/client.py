"""A scheduler's whole client: views of its kinds, effects, and a Lease where one is wanted.

Everything a `drive.World` is, except the time and the bytes.  A host calls one of five methods with the time in hand
and does what the Actions say; whatever comes back it hands to `receive`, and when `deadline` has come it calls `tick`.

    client = Client([KNOWN["Pod"], KNOWN["Node"]], Random(1), identity="me", lease=LeaseOptions())
    core = build(configuration, wait_for=client.waits_for)
    host.do(client.start(now))

The core schedules when it has been told Synced of everything in `waits_for`: the first complete view of each kind,
and, with a Lease, that we lead and have caught up with whoever led before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kubesched.api.kinds import Kind
from kubesched.api.time import Duration, Instant, milliseconds, seconds
from kubesched.core.messages import AnyEffect, Synced
from kubesched.wire.barrier import Barrier
from kubesched.wire.elector import Elector, LeaseOptions
from kubesched.wire.exchange import Actions, Exchange, Luck, Number, Reply
from kubesched.wire.performer import TIMEOUT, Performer
from kubesched.wire.reflector import Reflector

LEASE = "Lease"  # the name under which the core waits for us to lead
DRAIN_WITHIN: Duration = seconds(5)  # whoever is asked to end brings to an end what is under way
LAST_WORDS_WITHIN: Duration = milliseconds(500)  # Events are for people, who can wait; pods wait for the next leader

Machine: TypeAlias = Reflector | Performer | Elector | Barrier


class Client:
    """Several machines and one exchange.

    Args:
        kinds: what is watched; their order is the order in which views are asked for.
        luck: what jitter is drawn from.
        identity: who we are, to other candidates for the Lease; different for every process.
        lease: which Lease to hold while scheduling; None to schedule without.
        host: where we run, as Events say it.
        qps, burst: how many requests a second, and after a pause; below 0 for no limit.
        extenders: how long each extender may take, by its number in the configuration.
        streams: whether first views are streamed (WatchList) where the server can.
        idle_until_leading: watch nothing before we lead (`delayCacheUntilActive`).
    """

    def __init__(
        self,
        kinds: Iterable[Kind],
        luck: Luck,
        *,
        identity: str,
        lease: LeaseOptions | None = None,
        host: str = "",
        qps: float = 50.0,
        burst: int = 100,
        extenders: Mapping[int, Duration] | None = None,
        streams: bool = True,
        idle_until_leading: bool = False,
    ) -> None:
        self.exchange = Exchange()
        self.reflectors = {kind.name: Reflector(kind, self.exchange, luck, streams=streams) for kind in kinds}
        self.elector = None if lease is None else Elector(identity, lease, self.exchange, luck)
        self.barrier = Barrier(self.reflectors.values(), self.exchange, luck)
        self.performer = Performer(
            self.exchange,
            luck,
            host=host or identity,
            may_write=self.may_write,
            qps=qps,
            burst=burst,
            timeout=_write_timeout(lease),
            kinds={name: reflector.kind for name, reflector in self.reflectors.items()},
            extenders=extenders,
        )
        self.stopped = False
        self._idle = idle_until_leading and lease is not None
        self._told = False

    # ── for whoever builds the core, and whoever asks how things are ─────────────────────────────────────────

    @property
    def waits_for(self) -> tuple[str, ...]:
        """What the core must be told of before it schedules."""
        return (*self.reflectors, LEASE) if self.elector is not None else tuple(self.reflectors)

    @property
    def over(self) -> bool:
        """Whether this client does nothing more: it was stopped and has let go of the Lease, or has lost it."""
        return self.stopped if self.elector is None else self.elector.standing in ("lost", "released")

    @property
    def lost(self) -> bool:
        """Whether somebody else may lead although we did not let go."""
        return self.elector is not None and self.elector.standing == "lost"

    @property
    def leading(self) -> bool:
        """Whether we may schedule: we lead, or nobody has to."""
        return self.elector is None or self.elector.leading

    def may_write(self, now: Instant) -> bool:
        return self.elector is None or (self.elector.leading and now < self.elector.leads_until)

    # ── what a host calls ────────────────────────────────────────────────────────────────────────────────────

    def start(self, now: Instant) -> Actions:
        if self.elector is not None:
            self.elector.start(now)
        if not self._idle:
            self._start_watching(now)
        return self._actions(now)

    def perform(self, effects: Iterable[AnyEffect], now: Instant) -> Actions:
        self.performer.perform(effects, now)
        return self._actions(now)

    def receive(self, number: Number, reply: Reply, now: Instant) -> Actions:
        self.exchange.receive(number, reply, now)
        return self._actions(now)

    def tick(self, now: Instant) -> Actions:
        """Do what is due."""
        for machine in self._machines:
            machine.tick(now)
        return self._actions(now)

    @property
    def deadline(self) -> Instant | None:
        """When `tick` is needed by itself."""
        if self.over:
            return None
        return min((at for machine in self._machines if (at := machine.deadline) is not None), default=None)

    def hush(self, now: Instant) -> Actions:
        """Leave what another leader may as well do, so that letting go of the Lease need not wait for it."""
        dropped = self.performer.hush(now)
        if dropped:
            text = f"{dropped} bindings, conditions and Events not on their way yet are left to whoever leads next"
            self.exchange.remark("info", "Lease", "left", text)
        return self._actions(now)

    def stop(self, now: Instant) -> Actions:
        """Let go of the Lease.  Whatever the core wanted must have been answered, for nothing is written after this."""
        self.stopped = True
        if self.elector is not None:
            self.elector.stop(now)
        return self._actions(now)

    # ── between the machines ─────────────────────────────────────────────────────────────────────────────────

    @property
    def _machines(self) -> tuple[Machine, ...]:
        elected = () if self.elector is None else (self.elector,)
        return (*elected, *self.reflectors.values(), self.barrier, self.performer)

    def _start_watching(self, now: Instant) -> None:
        self._idle = False
        for reflector in self.reflectors.values():
            reflector.start(now)

    def _actions(self, now: Instant) -> Actions:
        """Whoever has come to lead catches up first; then the core is told."""
        if self.elector is not None and self.elector.leading and not self._told:
            if self._idle:
                self._start_watching(now)
            if not self.barrier.begun:
                self.barrier.begin(now)
            if self.barrier.passed:
                self._told = True
                self.exchange.tell(Synced((LEASE,)))
        return self.exchange.take()


def _write_timeout(lease: LeaseOptions | None) -> Duration:
    """A write that began as long as we surely led has ended before anybody else can lead."""
    return TIMEOUT if lease is None else Duration((lease.duration - lease.renew_deadline) * 9 // 10)
