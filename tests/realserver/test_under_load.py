"""Under load, whatever happens to servers, leaders and certificates: every pod ends bound, none twice, none by luck."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.realserver.faults import Refuse
from tests.realserver.harness import Options, RealCluster
from tests.realserver.history import JSON_STORAGE
from tests.realserver.process import wait_until
from tests.realserver.scene import ELECTED, Scene, rescued
from tests.realserver.scheduling import Kubesched
from tests.realserver.tcpproxy import TcpProxy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def readable(real_binaries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A cluster whose etcd can be read, for all tests here; each leaves it empty."""
    options = Options(authorization="AlwaysAllow", apiserver_flags=JSON_STORAGE)
    with RealCluster(tmp_path_factory.mktemp("readable"), options) as cluster:
        yield cluster


@pytest.fixture
def scene(readable: RealCluster, tmp_path: Path) -> Iterator[Scene]:
    with Scene(readable, tmp_path) as scene:
        yield scene


# ── leaders come and go ──────────────────────────────────────────────────────────────────────────────────────


def leads(scheduler: Kubesched) -> bool:
    return any(line.get("what") == "leading" for line in scheduler.said("Talking to the API server"))


class Succession(NamedTuple):
    """How a leader was succeeded: who held the Lease since, and when its successor's first pod was bound."""

    holders: list[str]
    seconds: float


def succession(scene: Scene, leader: Kubesched, end: signal.Signals) -> Succession:
    """End the leader, and wait for its successor's first pod."""
    [holder, _] = scene.witness.holders[-1]
    known, ended = len(scene.witness.holders), time.monotonic()
    leader.send(end)
    scene.witness.until(lambda seen: seen.holders[-1][0] not in ("", holder), "another leader")
    taken = scene.witness.holders[-1][1]
    scene.witness.until(lambda seen: seen.first_bound_after(taken) is not None, "its first binding")
    first = scene.witness.first_bound_after(taken)
    assert first is not None
    return Succession([name for name, _ in scene.witness.holders[known:]], first.heard - ended)


def test_a_leader_that_is_killed_or_stopped_is_succeeded_in_time_and_no_pod_is_lost_or_bound_twice(
    scene: Scene, record_testsuite_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """How long it takes is printed; tests/live/test_succession.py shows in virtual time what it is made of."""
    scene.nodes(20, cpu="8")
    first = scene.start(ELECTED)
    wait_until(lambda: leads(first), timeout=30, what="the first to lead")
    second = scene.start(ELECTED)
    with scene.pods(1500, "100m", every=0.04) as stream:
        stream.until(40)
        crash = succession(scene, first, signal.SIGKILL)
        scene.start(ELECTED)
        stop = succession(scene, second, signal.SIGTERM)
        stream.stop()
    scene.until_all_bound(stream.created)
    with capsys.disabled():
        print(f"\nfirst bind {crash.seconds:.1f} s after kill -9 of the leader, {stop.seconds:.2f} s after SIGTERM")
    record_testsuite_property("seconds from kill -9 to first bind", crash.seconds)
    record_testsuite_property("seconds from SIGTERM to first bind", stop.seconds)
    assert scene.witness.problems == []
    assert len(crash.holders) == 1, "the dead cannot give it back"
    assert stop.holders[0] == "", "it was given back, and nobody waited for it to run out"
    assert len(stop.holders) == 2
    assert second.ended() == 0


# ── the API server comes and goes ────────────────────────────────────────────────────────────────────────────


def make_room(scene: Scene) -> None:
    """Ten pods go."""
    going = scene.witness.placed()[:10]
    for name in going:
        scene.delete(name.partition("/")[2])
    wait_until(lambda: not set(going) & set(scene.witness.placed()), timeout=30, what="ten pods to be gone")


def restart(scene: Scene, proxy: TcpProxy) -> None:
    scene.cluster.apiserver.stop()
    scene.cluster.apiserver.start()


def compact(scene: Scene, proxy: TcpProxy) -> None:
    """What happens while nobody watches can never be watched again."""
    proxy.impose(Refuse())
    proxy.drop_connections()
    make_room(scene)
    scene.cluster.compact()
    scene.cluster.apiserver.stop()  # with it goes what its watch cache still knows
    scene.cluster.apiserver.start()
    proxy.heal()


def rotate(scene: Scene, proxy: TcpProxy) -> None:
    """A new certificate of a new authority, and every connection has to be made anew."""
    scene.cluster.rotate_serving_certificate(new_authority=True)
    proxy.drop_connections()


@pytest.mark.parametrize("happens", [restart, compact, rotate])
def test_all_pods_end_bound_and_the_flush_saved_none_of_them(
    scene: Scene, happens: Callable[[Scene, TcpProxy], None]
) -> None:
    """There is room for 40 pods and 80 come: half of them wait, and what makes room may go unseen."""
    proxy = scene.cluster.proxy(ends_tls=False)
    scene.nodes(10, cpu="2")
    scheduler = scene.start(kubeconfig=scene.cluster.kubeconfig(via=proxy))
    with scene.pods(80, "500m", every=0.03) as stream:
        stream.until(50)
        wait_until(lambda: len(scene.witness.placed()) == 40, timeout=30, what="the nodes to be full")
        happens(scene, proxy)
    # From 80, or the 70 that are left, down to the 40 that fit, ten at a time: each time others wake and take the room.
    for _ in range(4 if happens is not compact else 3):
        make_room(scene)
        wait_until(lambda: len(scene.witness.placed()) == 40, timeout=60, what="the room to be used again")
    scene.until_all_bound(40)
    assert scene.witness.problems == []
    assert rescued(scheduler.ask("/metrics").must_be(200).body.decode()) == 0
    assert scheduler.alive
