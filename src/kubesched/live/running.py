"""A scheduler on a real cluster, from its first request to its last: what `kubesched run` does.

    running = Running(wish, Writer(sys.stderr, wall_clock))
    status = running.run()

It is put together here and nowhere else: the core, the world, whoever listens, the port, the signals.  All of it lives
in one thread, so a question over the port, a signal and an event never meet.

SIGTERM and SIGINT: nothing new is tried, what is under way is brought to an end, the lease is let go.  A second one
ends at once.  SIGHUP: the configuration is read again; if it is right, the process lets go and starts over with it,
under the same number.  SIGUSR2: the queue and the cache are dumped, and compared with what the API server has.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from kubesched.api.time import Duration, Instant
from kubesched.assemble import build
from kubesched.core.queue.priority import PriorityQueue
from kubesched.drive import drive
from kubesched.drive.journal import VERSION, Head, Journal, unused
from kubesched.drive.tap import Moment
from kubesched.drive.world import World
from kubesched.framework.errors import KubeschedError, WorldError
from kubesched.framework.hooks import name_of
from kubesched.live.answers import CoreAnswers
from kubesched.live.comparer import differences
from kubesched.live.extending import reaches
from kubesched.live.listening import Counting, LiveTap, Metered, Writer, as_fields
from kubesched.live.memory import be_frugal
from kubesched.live.port import Port
from kubesched.live.preflight import Needed, missing, reach
from kubesched.live.remote import RemoteWorld
from kubesched.live.role import cluster_rights, lease_rights
from kubesched.live.shadow import Comparing, Comparison, ShadowWorld
from kubesched.live.transport import HttpTransport
from kubesched.live.wishes import Wish, access_of, election_of
from kubesched.telemetry import logs
from kubesched.telemetry.metrics import Metrics
from kubesched.wire.exchange import Remark

LOST, STOPPED = 1, 0  # exit statuses
AN_HOUR = 3600.0


class Running:
    """One scheduler.  Raises KubeschedError for whatever keeps it from beginning."""

    def __init__(self, wish: Wish, writer: Writer) -> None:
        self.wish, self.writer = wish, writer
        self.restarts = False  # whether to start over with a new configuration
        configuration = wish.configuration
        self.core = build(
            configuration,
            features=wish.features,
            registry=wish.registry,
            tie=wish.tie,
            seed=wish.seed,
            parked_max=wish.parked_max,
        )
        self.core.verbosity = writer.verbosity
        self.metrics = Metrics(features=wish.features, disabled=wish.disabled_metrics, version=wish.version)
        self.election = election_of(configuration.leader_election, wish.shadow)
        self.access = access_of(configuration.client_connection.kubeconfig, wish)
        reached = reaches(configuration.extenders)
        self.transport = HttpTransport(self.access, extenders=reached)
        self.loop = self.transport.loop
        host = socket.gethostname()
        self.world = RemoteWorld(
            Metered(self.transport, self.metrics, self.access.server.partition("://")[2].partition("/")[0]),
            kinds=self.core.kinds.values(),
            identity=f"{host}_{uuid.uuid4()}",
            lease=self.election,
            qps=configuration.client_connection.qps,
            burst=configuration.client_connection.burst,
            seed=wish.seed,
            host=host,
            extenders={number: one.timeout for number, one in reached.items()},
            streams=wish.gates.get("WatchListClient", True),
            idle_until_leading=configuration.delay_cache_until_active,
            listen=self._remark,
        )
        self.core.unsynced.update(self.world.client.waits_for)
        self.tap = self._tap()
        self._comparing: Comparing | None = None
        self._signalled = self._synced = False
        self._answers = self._make_answers()
        try:
            self._port = None if wish.serve.port is None else Port(wish, self._answers, self.transport, writer)
        except BaseException:
            self.world.close()
            raise

    # ── the whole of it ──────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> int:
        """Schedule until told to stop; the exit status."""
        wish, writer = self.wish, self.writer
        be_frugal()
        writer.say(logs.STARTED, version=wish.version, server=self.access.server, schedulers=", ".join(self._names))
        if self.access.insecure:
            self.metrics.insecure(True)
            repeat(self.loop, AN_HOUR, lambda: writer.say(logs.INSECURE, server=self.access.server))
        self._watch_signals()
        try:
            try:
                self.loop.run_until_complete(self._begin())
            except asyncio.CancelledError:
                return STOPPED  # told to stop before there was anything to stop
            journal = self._journal()
            world: World = self.world
            if wish.shadow:
                world = self._shadow()
            try:
                drive(self.tap, world, journal)
            except Exception:
                self._bail_out()
                raise
            finally:
                if journal is not None:
                    journal.close()
            return self._ended()
        finally:
            self._close()

    async def _begin(self) -> None:
        task = asyncio.current_task()
        self._beginning = task
        if self._port is not None:
            await self._port.open(self._names)
        await reach(self.transport, self.access.server, self._waiting)
        lacking = await missing(self.transport, self._needed())
        if lacking:
            remedy = "kubesched rbac --config FILE prints the roles that are needed"
            self.writer.say(logs.DENIED, missing=", ".join(lacking), remedy=remedy)
        self._beginning = None

    _beginning: asyncio.Task[Any] | None = None

    def _bail_out(self) -> None:
        """Something is wrong with us: write nothing more, and let somebody else have the lease."""
        self.writer.say(logs.BROKEN)
        self.world.drain(lambda: True, within=Duration(0))
        while True:
            while self.world.take() is not None:
                pass
            if not self.world.sleep(None):
                return

    def _ended(self) -> int:
        told = {"shadow": as_fields(self._comparing.tally)} if self._comparing is not None else {}
        if self.world.lost:
            self.writer.say(logs.STOPPED, reason="leaderelection lost", **told)
            return LOST
        self.writer.say(logs.STOPPED, reason="starting over" if self.restarts else "as asked", **told)
        return STOPPED

    def _close(self) -> None:
        if self._port is not None:
            self.loop.run_until_complete(self._port.close())
        self.world.close()

    # ── how it is put together ───────────────────────────────────────────────────────────────────────────────

    @property
    def _names(self) -> list[str]:
        return list(self.core.profiles)

    def _tap(self) -> LiveTap:
        for name, profile in self.core.profiles.items():
            self.metrics.time(name, profile.plugins)
        if isinstance(self.core.queue, PriorityQueue):
            self.core.queue.around_hints(self.metrics.time_hints)
        tap = LiveTap(self.core, self._first_view, self.writer.moment)
        Counting(self.metrics, tap)
        return tap

    def _first_view(self, moment: Moment) -> None:
        """Say once that everything has been seen; whoever has a lease to wait for has it now."""
        if self._synced or self.core.unsynced:
            return
        self._synced = True
        mirror = self.core.mirror
        self.writer.say(logs.SYNCED, nodes=len(mirror.table.row_of), pods=len(mirror.pods))

    def _shadow(self) -> ShadowWorld:
        self._comparing = Comparing(self.core, self._compared)
        self.tap.before.append(self._comparing)
        return ShadowWorld(self.world, [one.bind_verb for one in self.wish.configuration.extenders if one.bind_verb])

    def _compared(self, found: Comparison) -> None:
        self.metrics.compared(found.result)
        about = {"pod": found.pod, "result": found.result, "ours": found.ours, "theirs": found.theirs}
        self.writer.say(logs.COMPARED, **about, **({"why": found.why} if found.why else {}))

    def _journal(self) -> Journal | None:
        """Where everything is written down.  One that is there already, of the process before, stays."""
        if self.wish.journal is None:
            return None
        path = unused(self.wish.journal)
        self.writer.say(logs.JOURNALED, file=str(path))
        return Journal(path, self._head(), flush=False)

    def _head(self) -> Head:
        wish = self.wish
        plugins = {name: tuple(map(name_of, profile.plugins)) for name, profile in self.core.profiles.items()}
        return Head(
            VERSION,
            seed=wish.seed,
            config=wish.said,
            tie=wish.tie,
            features=wish.gates,
            wait_for=tuple(sorted(self.core.unsynced)),
            plugins=plugins,
            parked_max=wish.parked_max,
        )

    def _needed(self) -> list[Needed]:
        election = self.wish.configuration.leader_election
        rights = [Needed(right) for right in cluster_rights(self.core.profiles, serving=self._port is not None)]
        if self.wish.shadow:
            return [one for one in rights if set(one.right.verbs) <= {"get", "list", "watch"}]
        if self.election is not None:
            rights += [Needed(right, election.resource_namespace) for right in lease_rights(election)]
        return rights

    def _make_answers(self) -> CoreAnswers:
        lease = "" if self.election is None else self.election.name
        return CoreAnswers(
            self.core,
            self.metrics,
            self.wish.configuration,
            election=self._watchdog,
            lease=lease,
            leads=lambda: self.world.client.leading,
        )

    def _watchdog(self) -> Mapping[str, str]:
        """Whether we still think to lead although nobody else must believe it any more."""
        elector = self.world.client.elector
        if elector is None:
            return {}
        late = elector.leading and self.world.now >= elector.leads_until
        return {"leaderElection": "the lease has not been renewed in time" if late else ""}

    # ── signals ──────────────────────────────────────────────────────────────────────────────────────────────

    def _watch_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self.loop.add_signal_handler(number, self._stop)
        self.loop.add_signal_handler(signal.SIGHUP, self._reload)
        self.loop.add_signal_handler(signal.SIGUSR2, self._dump)

    def _stop(self) -> None:
        if self._signalled:
            os._exit(LOST)  # asked twice: whoever asks does not want to wait
        self._signalled, self.restarts = True, False
        self.writer.say(logs.STOPPING)
        self._let_go()

    def _let_go(self) -> None:
        if self._beginning is not None:
            self._beginning.cancel()
        else:
            self.world.drain(lambda: not self.core.flights)

    def _reload(self) -> None:
        try:
            if self.wish.reload is not None:
                self.wish.reload()
        except KubeschedError as problem:
            self.writer.say(logs.NOT_RELOADED, err=str(problem))
            return
        self.writer.say(logs.RELOADING)
        self.restarts = True
        self._let_go()

    def _dump(self) -> None:
        task = self.loop.create_task(self._tell_everything())
        task.add_done_callback(lambda done: done.exception())

    async def _tell_everything(self) -> None:
        core, say = self.core, self.writer.say
        try:
            found = await differences(self.transport, core)
        except WorldError as problem:
            say(logs.FAILED, what="comparing the cache with the API server", err=str(problem))
        else:
            told = {name: ", ".join(names) for name, names in found._asdict().items() if names}
            say(logs.UNEQUAL if told else logs.EQUAL, **told)
        pods = Counter(tracked.node for tracked in core.mirror.placed.values())
        for name in sorted(core.mirror.table.row_of):
            say(logs.DUMPED_NODE, node=name, free=as_fields(core.free(name)), pods=pods[name])
        queue = self._answers.queue()
        say(logs.DUMPED_QUEUE, counts=as_fields(queue["counts"]))
        for pod in (*queue["inFlight"], *queue["pods"]):
            told = {key: ", ".join(value) if isinstance(value, list) else value for key, value in pod.items()}
            say(logs.DUMPED_QUEUE, **{key: value for key, value in told.items() if value != ""})

    # ── what is said on the way ──────────────────────────────────────────────────────────────────────────────

    def _remark(self, remark: Remark) -> None:
        self.metrics.remarked(remark.about, remark.what)
        self.writer.remark(remark)

    def _waiting(self, why: str, delay: float) -> None:
        self.writer.say(logs.WAITING, server=self.access.server, err=why, seconds=delay)


def repeat(loop: asyncio.AbstractEventLoop, every: float, action: Callable[[], None]) -> None:
    """Do something now, and again after so many seconds, for as long as the loop lives."""
    action()
    loop.call_later(every, repeat, loop, every, action)


def wall_clock() -> Instant:
    """The time of day, for log lines."""
    return Instant(time.time_ns())
