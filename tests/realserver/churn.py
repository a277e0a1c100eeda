"""A cluster in which pods come and go without end, while something breaks every few seconds.

Two schedulers stand for one Lease, each behind a proxy of its own and with a clock that can be moved.  A crowd keeps
the cluster a little too full, so that there are always pods that wait for others to go.  Faults are drawn from a
table, seeded; the schedulers that end are started again, as a kubelet would.  The witness judges by what etcd says.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

import aiohttp
from tests.realserver import skewed
from tests.realserver.client import Client
from tests.realserver.faults import BlackHole, CutResponse, Delay, HoldRequest, LoseRequest, LoseResponse, Refuse, Reply
from tests.realserver.load import Load, Refused, encoded, node
from tests.realserver.process import wait_until
from tests.realserver.scene import ELECTED, LEASE, PODS, Scene, pod, rescued
from tests.realserver.scheduling import Kubesched
from tests.realserver.tcpproxy import TcpProxy

USERS = ("one", "two")
SIZES = ("100m", "200m", "300m", "600m")  # 300m in the mean
FULL = 1.04  # of all room, that the crowd asks for
BINDING = r"POST \S*/binding "
WRITES = r"(POST|PATCH|DELETE|PUT) \S*/(pods|events)"
LEADS = f'leader_election_master_status{{name="{LEASE}"}} 1.0'
SOON = (("Content-Type", "application/json"), ("Retry-After", "1"))
AN_HOUR = 3600.0


class Size(NamedTuple):
    """How large, how long, how often."""

    nodes: int
    pods: int
    seconds: float
    fault_every: float = 10.0
    pods_a_second: float = 40.0


# ── pods come and go ─────────────────────────────────────────────────────────────────────────────────────────


class Crowd:
    """Creates and deletes pods in a thread of its own, whatever the API server is going through."""

    def __init__(self, client: Client, size: Size, seed: int) -> None:
        self._client, self._size, self._luck = client, size, Random(f"{seed}/crowd")
        self.there: list[str] = []
        self.created = 0
        self._enough = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="crowd", daemon=True)

    def __enter__(self) -> Crowd:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join(120)
        assert self._failed is None, self._failed

    def _run(self) -> None:
        try:
            asyncio.run(self._churn())
        except BaseException as problem:
            self._failed = problem

    async def _churn(self) -> None:
        """Fill the cluster, then replace one after the other; in the end, let go of so many that all others fit.

        That is half of them: then some node has room for the largest, however the others lie.
        """
        async with Load(self._client) as load:
            while len(self.there) < self._size.pods and not self._enough.is_set():
                await asyncio.gather(*(self._create(load) for _ in range(16)))
            began, steps = time.monotonic(), 0
            while not self._enough.is_set():
                await asyncio.gather(self._delete(load), self._create(load))
                steps += 1
                await asyncio.sleep(max(0.0, began + steps / self._size.pods_a_second - time.monotonic()))
            while len(self.there) > 0.5 * self._size.pods:
                await asyncio.gather(*(self._delete(load) for _ in range(16)))

    async def _create(self, load: Load) -> None:
        self.created += 1
        name = f"p{self.created}"
        [body] = encoded([pod(name, self._luck.choice(SIZES))])
        await self._insist(load, "POST", PODS, body, 201, 409)
        self.there.append(name)

    async def _delete(self, load: Load) -> None:
        """Let go of somebody; the last in the list takes the place, so that the list stays dense."""
        if self.there:
            at = self._luck.randrange(len(self.there))
            self.there[at], self.there[-1] = self.there[-1], self.there[at]
            name = self.there.pop()
            await self._insist(load, "DELETE", f"{PODS}/{name}", b'{"gracePeriodSeconds": 0}', 200, 404)

    async def _insist(self, load: Load, method: str, path: str, body: bytes, *good: int) -> None:
        while True:
            with suppress(aiohttp.ClientError, OSError, Refused, TimeoutError):
                async with asyncio.timeout(10):
                    await load.send(method, path, body, *good)
                return
            await asyncio.sleep(0.2)  # nobody tells when a server is back


# ── two schedulers ───────────────────────────────────────────────────────────────────────────────────────────


class Seat:
    """One of the schedulers: whoever runs in it now, the proxy in front of it, its clock, and what was measured."""

    def __init__(self, scene: Scene, user: str) -> None:
        self._scene, self.user = scene, user
        self.proxy: TcpProxy = scene.cluster.proxy()
        self.clock = scene.folder / f"clock-{user}"
        skewed.write(self.clock, 0.0)
        self.running: Kubesched | None = None
        self.memory: dict[int, list[float]] = {}  # MiB, second by second, by process, while it led
        self.rescued: dict[int, float] = {}  # by process
        self.leads = False
        self.all: list[Kubesched] = []

    def start(self) -> None:
        kubeconfig = self._scene.cluster.kubeconfig(self.user, via=self.proxy)
        # One limit is that of kube-scheduler's own benchmarks: what is to be tried here is not its default of 50.
        limits = {"clientConnection": {"qps": 5000, "burst": 5000}}
        one = self._scene.make({**ELECTED, **limits}, kubeconfig=kubeconfig, verbosity=2)
        at = one.command.index("-m")
        one.command[at : at + 2] = [str(Path(skewed.__file__)), str(self.clock)]
        assert one.command[0] == sys.executable
        self.running = one
        self.all.append(one)
        one.launch()

    def look(self) -> None:
        """Note how much it holds, and start another where it has ended."""
        one = self.running
        if one is None or not one.alive:
            self.leads = False
            self.start()
        elif self.leads:
            with suppress(OSError, StopIteration):
                status = Path(f"/proc/{one.pid}/status").read_text().splitlines()
                kib = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
                self.memory.setdefault(one.pid, []).append(kib / 1024)

    def ask(self) -> None:
        """Whether it leads, and how many pods the flush has woken, as far as it answers now."""
        if self.running is not None and self.running.alive:
            with suppress(OSError, AssertionError, TimeoutError):
                text = self.running.ask("/metrics").must_be(200).body.decode()
                self.leads, self.rescued[self.running.pid] = LEADS in text, rescued(text)


# ── what breaks ──────────────────────────────────────────────────────────────────────────────────────────────


class Churn:
    """The whole of it."""

    def __init__(self, scene: Scene, size: Size, seed: int = 1) -> None:
        self.scene, self.size, self.luck = scene, size, Random(f"{seed}/faults")
        self.seats = [Seat(scene, user) for user in USERS]
        self.crowd = Crowd(scene.client, size, seed)
        self.struck: Counter[str] = Counter()
        self._undo: list[Callable[[], object]] = []

    def run(self) -> None:
        """Everything, to its end: full, broken again and again, quiet, and every pod bound."""
        cpu = self.size.pods * 0.3 / self.size.nodes / FULL
        for i in range(self.size.nodes):
            self.scene.client.create("/api/v1/nodes", node(f"n{i}", cpu=f"{int(1000 * cpu)}m"))
        for seat in self.seats:
            seat.start()
        with self.crowd:
            room = int(self.size.pods / FULL * 0.9)
            self._wait(lambda: len(self.scene.witness.placed()) >= room, 900, "the cluster to be full")
            self._break_things()
            self._heal()
        self.scene.until_all_bound(len(self.crowd.there), timeout=60)
        for seat in self.seats:
            seat.ask()

    def _break_things(self) -> None:
        """A fault every so often.  Leaders are only ended in the first half: memory is measured in the second."""
        began = time.monotonic()
        left: list[str] = []
        number = 0
        while (passed := time.monotonic() - began) < self.size.seconds:
            number += 1
            table = ENDING | LASTING if passed < self.size.seconds / 2 else LASTING
            left = [name for name in left if name in table] or self.luck.sample(list(table), len(table))
            name = left.pop()
            table[name](self)
            self.struck[name] += 1
            self.pass_until(began + number * self.size.fault_every * 0.8)
            self._heal()
            self.pass_until(began + number * self.size.fault_every)

    def _heal(self) -> None:
        for undo in self._undo:
            undo()
        self._undo.clear()
        for seat in self.seats:
            seat.proxy.heal()

    def pass_until(self, end: float) -> None:
        self._wait(lambda: time.monotonic() >= end, 3600, "time to pass")

    def _wait(self, so: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait, while the schedulers are looked after."""
        last = [0.0, 0]

        def look() -> bool:
            if time.monotonic() - last[0] >= 1.0:
                last[0], last[1] = time.monotonic(), last[1] + 1
                for seat in self.seats:
                    seat.look()
                    if last[1] % 5 == 0:
                        seat.ask()
            return so()

        wait_until(look, timeout=timeout, what=what)

    # ── for faults ───────────────────────────────────────────────────────────────────────────────────

    def later(self, undo: Callable[[], object]) -> None:
        self._undo.append(undo)

    @property
    def leader(self) -> Seat:
        """The seat that leads, or any."""
        for seat in self.seats:
            seat.ask()
        leading = [seat for seat in self.seats if seat.leads]
        return leading[0] if leading else self.luck.choice(self.seats)


def cut(churn: Churn) -> None:
    for seat in churn.seats:
        seat.proxy.drop_connections()


def cut_watches(churn: Churn) -> None:
    seat = churn.leader
    orders = [seat.proxy.on(r"GET \S*watch", CutResponse(churn.luck.randrange(200, 20_000)), times=3) for _ in range(3)]
    seat.proxy.drop_connections()
    churn.later(lambda: [seat.proxy.forget(order) for order in orders])


def strike(pattern: str, fault: object, times: int) -> Callable[[Churn], None]:
    def struck(churn: Churn) -> None:
        proxy = churn.leader.proxy
        order = proxy.on(pattern, fault, times=times)  # type: ignore[arg-type]
        churn.later(lambda: proxy.forget(order))

    return struck


def hold(churn: Churn) -> None:
    proxy = churn.leader.proxy
    order = proxy.on(BINDING, HoldRequest(), times=3)
    churn.later(lambda: (proxy.release(order), proxy.forget(order)))


def impose(fault: object) -> Callable[[Churn], None]:
    return lambda churn: churn.leader.proxy.impose(fault) and None  # type: ignore[arg-type]


def refuse(churn: Churn) -> None:
    proxy = churn.leader.proxy
    proxy.impose(Refuse())
    proxy.drop_connections()


def pause_server(churn: Churn) -> None:
    churn.scene.cluster.apiserver.pause()
    churn.later(churn.scene.cluster.apiserver.resume)
    churn.pass_until(time.monotonic() + 3)
    churn.scene.cluster.apiserver.resume()


def restart_server(churn: Churn) -> None:
    churn.scene.cluster.apiserver.stop()
    churn.scene.cluster.apiserver.start()


def compact(churn: Churn) -> None:
    churn.scene.cluster.compact()
    cut(churn)


def compact_unseen(churn: Churn) -> None:
    """What happens meanwhile, nobody can watch any more."""
    refuse(churn)
    churn.pass_until(time.monotonic() + 2)
    churn.scene.cluster.compact()
    restart_server(churn)


def pause(churn: Churn) -> None:
    """For less than its Lease lasts."""
    one = churn.leader.running
    assert one is not None
    one.pause()
    churn.pass_until(time.monotonic() + 3)
    one.resume()


def jump(churn: Churn) -> None:
    for seat in churn.seats:
        skewed.write(seat.clock, churn.luck.uniform(-AN_HOUR, AN_HOUR))


def kill(churn: Churn) -> None:
    one = churn.leader.running
    assert one is not None
    one.send(signal.SIGKILL)


def terminate(churn: Churn) -> None:
    one = churn.leader.running
    assert one is not None
    one.send(signal.SIGTERM)


def oversleep(churn: Churn) -> None:
    """For longer than its Lease lasts: it must not write a word when it wakes."""
    one = churn.leader.running
    assert one is not None
    one.pause()
    churn.pass_until(time.monotonic() + 18)
    one.resume()


LASTING: dict[str, Callable[[Churn], None]] = {
    "connections cut": cut,
    "watches cut at a byte": cut_watches,
    "answers to bindings lost": strike(BINDING, LoseResponse(), 5),
    "bindings lost": strike(BINDING, LoseRequest(), 5),
    "bindings late": hold,
    "429": strike(WRITES, Reply(429, headers=SOON), 20),
    "500": strike(WRITES, Reply(500), 20),
    "slow link": impose(Delay(0.3)),
    "silent link": impose(BlackHole()),
    "connections refused": refuse,
    "leader paused": pause,
    "API server paused": pause_server,
    "API server restarted": restart_server,
    "history compacted": compact,
    "history compacted unseen": compact_unseen,
    "clocks jump": jump,
}
ENDING: dict[str, Callable[[Churn], None]] = {
    "leader killed": kill,
    "leader stopped": terminate,
    "leader oversleeps": oversleep,
}
