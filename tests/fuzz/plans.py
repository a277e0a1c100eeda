"""Runs that were not drawn: two candidates for a Lease, and one of them does not hear what he should."""

from typing import Any

from kubesched.fuzz.plan import Alter, Crash, Custom, Gap, Happening, Hush, Make, Place, Plan, Remove, Weather

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
    return _elected(
        seed,
        "4",
        Make(at=18_000, obj=pod("second", port=80, nodeSelector={"disk": "ssd"})),
        Hush(at=18_900, kind="Pod", lasting=30_000),
        Make(at=19_000, obj=pod("first", port=80)),
        Crash(at=18_990, effects=1, down=30_000),
        Alter(at=20_000, kind="Node", key="n1", body={"metadata": {"labels": {"disk": "ssd"}}}),
    )


def a_lease_out_of_reach(seed: int) -> Plan:
    """Whoever leads cannot renew, somebody else takes over, and there is work for both."""
    work = [Make(at=at, obj=pod(f"p{at}")) for at in range(36_000, 56_000, 2_000)]
    return _elected(seed, "64", Gap(at=19_000, kind="Lease", lasting=40_000), *work)


# ── bugs that a thousand seeds may not show ──────────────────────────────────────────────────────────────────

PATIENCE = "kubesched.fuzz.plugins:Patience"
HELD = {"held": 100, "refused": 0, "forgotten": 0, "after": 20_000, "atMost": 25_000}
HOLDING = {
    "profiles": [
        {
            "plugins": {"multiPoint": {"enabled": [{"name": PATIENCE}]}},
            "pluginConfig": [{"name": PATIENCE, "args": HELD}],
        }
    ]
}
BINDING = {
    "profiles": [{}],
    "extenders": [
        {
            "urlPrefix": "http://127.0.0.1:1/", "enableHTTPS": False, "weight": 1,
            "filterVerb": "filter", "prioritizeVerb": "prioritize", "bindVerb": "bind",
        }
    ],
}


def _node(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "1Gi", "pods": "10"}
    return {"kind": "Node", "metadata": {"name": name}, "spec": spec, "status": {"allocatable": allocatable}}


def _staying(name: str, **spec: Any) -> dict[str, Any]:
    """A pod that goes on terminating."""
    obj = pod(name, **spec)
    obj["metadata"]["finalizers"] = ["example.com/agree"]
    return obj


def _wanting(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    obj = pod(name, **spec)
    obj["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return obj


def _slow(name: str, **spec: Any) -> dict[str, Any]:
    obj = pod(name, **spec)
    obj["spec"]["terminationGracePeriodSeconds"] = 30
    return obj


WRITTEN: dict[str, Plan] = {
    "BM-04": Plan(
        scheduler=BINDING,
        weather=Weather(until=60_000, lag={"": 1, "Pod": 9_000}, chances={"PatchPod": {"lost": 1.0}}),
        custom=Custom(extender="binding"),
        cluster=(_node("n1", "64"),),
        happenings=tuple(Make(at=at, obj=pod(f"p{at}")) for at in range(0, 1_000, 100)),
    ),
    "BM-10": Plan(
        scheduler=HOLDING,
        weather=Weather(until=30_000),
        cluster=(_node("n1"), _node("n2", unschedulable=True)),
        happenings=(
            Make(at=0, obj=pod("held")),
            Make(at=1_000, obj=pod("next")),
            Place(at=5_000, key="default/held", node="n2"),
        ),
    ),
    "BM-24": Plan(
        weather=Weather(until=30_000),
        custom=Custom(kubelet=5, grace=True),
        cluster=(_node("n1", "2"), pod("quick", nodeName="n1"), _staying("slow", nodeName="n1")),
        happenings=(
            Make(at=1_000, obj=_wanting("high", "2", priority=1000)),
            Make(at=3_000, obj=pod("other", priority=100)),
            Remove(at=8_000, kind="Pod", key="default/high"),
        ),
    ),
    "BM-33": Plan(
        weather=Weather(until=30_000),
        custom=Custom(kubelet=5, grace=True),
        cluster=(
            _node("n1"),
            _node("n2"),
            _slow("low-1", nodeName="n1"),
            _slow("low-2", nodeName="n2", priority=10),
        ),
        happenings=(Make(at=1_000, obj=pod("high", priority=1000)), Remove(at=2_000, kind="Node", key="n1")),
    ),
}
"""Mutant → the smallest run that shows it."""
