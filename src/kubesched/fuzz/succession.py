"""The laws of succession: a leader ends, or dies, and whoever is next binds what waits.

They are tried when all has come to rest.  Everybody is well by then, or another law would be broken: nothing keeps the
one that stands by from taking over, and it is known that there is work, for a pod is made that asks for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubesched.api.time import Duration, Instant, format_duration, milliseconds, seconds
from kubesched.framework.records import State
from kubesched.fuzz.liveness import home
from kubesched.fuzz.plan import Json
from kubesched.fuzz.wired import LEASE
from kubesched.wire.elector import JITTER

if TYPE_CHECKING:
    from kubesched.fuzz.judge import Judge
    from kubesched.fuzz.stage import Stage

SOON: Duration = seconds(2)
AFTER_DEATH: Duration = Duration(LEASE.duration + SOON)
POLLED: Duration = Duration(int(LEASE.retry_period * (1 + JITTER)))  # how old what was seen of the Lease may be
SWIFT = 100  # ms: a server that takes longer for each request is slow, and that is nobody's fault
REQUESTS = 8  # one after the other, until somebody else has bound something: let go, lead, catch up, bind
SETTLED: Duration = seconds(20)  # until the one that ended has come back, and stands by
DOWN = 30_000


def play(stage: Stage) -> None:
    """Whoever leads is asked to end; and whoever leads then dies."""
    for process in stage.processes.values():
        process.spare()
    _change_hands(stage, "L7", SOON)
    stage.run(Instant(stage.now + SETTLED))
    _change_hands(stage, "L6", AFTER_DEATH)


def _change_hands(stage: Stage, law: str, within: Duration) -> None:
    judge, leader = stage.judge, stage.leader
    if judge.broken:
        return
    if leader is None:
        judge.blame(law, "nobody leads, and all is well")
        return
    if law == "L7":
        leader.stop(DOWN // 10)
    else:
        leader.doom(0, DOWN)
        leader.die()
    work = _work(law)
    stage.make(work)
    within = Duration(within + _excused(stage))
    stage.run(Instant(stage.now + within))
    _judge(judge, law, f"default/{work['metadata']['name']}", leader.name, within)


def _judge(judge: Judge, law: str, key: str, leader: str, within: Duration) -> None:
    pod = judge.truth.pods.get(key)
    if judge.broken or pod is None or any(pod.uid in account.turned_away for account in judge.accounts.values()):
        return
    if pod.node:
        judge.notice(f"somebody took over ({law})")
    elif all(account.states.get(pod.uid) is not State.WAITING for account in judge.accounts.values()):  # not held
        there = home(judge, pod)
        if there is not None:
            judge.blame(law, f"{leader} went {format_duration(within)} ago, and {key} could be on {there.name}")


def _excused(stage: Stage) -> Duration:
    """How much longer it may take: the server is slow, or told somebody once that he may not watch the Lease."""
    write = stage.plan.weather.write
    forbidden = any(met.effect == "Watch" and not met.key and met.outcome == "refused" for met in stage.met)
    return Duration((milliseconds(REQUESTS * write) if write > SWIFT else 0) + (POLLED if forbidden else 0))


def _work(law: str) -> Json:
    """A pod that asks for nothing, puts up with everything, and comes before all others."""
    spec: Json = {
        "containers": [{"name": "main", "image": "app:1"}],
        "tolerations": [{"operator": "Exists"}],
        "priority": 2000,
        "preemptionPolicy": "Never",
    }
    return {"kind": "Pod", "metadata": {"name": f"after-{law.lower()}", "namespace": "default"}, "spec": spec}
