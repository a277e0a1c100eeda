"""Runs that were not drawn: two candidates for a Lease, and one of them does not hear what he should."""

from typing import Any

from kubesched.fuzz.plan import Alter, Crash, Custom, Gap, Happening, Hush, Make, Plan, Weather

SEEDS = range(5, 9)  # it is by luck whom the silence meets: whoever leads, or the next


def pod(name: str, port: int = 0, **more: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **more}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _elected(seed: int, cpu: str, *happenings: Happening) -> Plan:
    node = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": cpu, "pods": "10"}}}
    return Plan(
        seed=seed,
        custom=Custom(wire="elected", kubelet=50_000, grace=True),
        weather=Weather(until=60_000),
        patient=120_000,
        cluster=(node,),
        happenings=happenings,
    )


def room_for_one(seed: int) -> Plan:
    """`first` gets the room, its scheduler dies, and `second` is the first that the next scheduler tries."""
    return _elected(
        seed,
        "1",
        Make(at=19_000, obj=pod("first")),
        Make(at=19_001, obj=pod("second", priority=1000, preemptionPolicy="Never")),
        Hush(at=19_002, kind="Pod", lasting=30_000),
        Crash(at=18_999, effects=3, down=30_000),  # when it hears that `first` is bound
    )


def a_port_unheard_of(seed: int) -> Plan:
    """As before, but the next scheduler has never heard of `first`, which has the port that `second` wants."""
    return _unheard_of(seed, "4", port=80)


def room_unheard_of(seed: int) -> Plan:
    """The same, and it is the room that `second` wants."""
    return _unheard_of(seed, "1", port=0)


def _unheard_of(seed: int, cpu: str, port: int) -> Plan:
    return _elected(
        seed,
        cpu,
        Make(at=18_000, obj=pod("second", port=port, nodeSelector={"disk": "ssd"})),
        Hush(at=18_900, kind="Pod", lasting=30_000),
        Make(at=19_000, obj=pod("first", port=port)),
        Crash(at=18_990, effects=1, down=30_000),
        Alter(at=20_000, kind="Node", key="n1", body={"metadata": {"labels": {"disk": "ssd"}}}),
    )


def a_lease_out_of_reach(seed: int) -> Plan:
    """Whoever leads cannot renew, somebody else takes over, and there is work for both."""
    work = [Make(at=at, obj=pod(f"p{at}")) for at in range(36_000, 56_000, 2_000)]
    return _elected(seed, "64", Gap(at=19_000, kind="Lease", lasting=40_000), *work)
