"""PodTopologySpread: its arguments, what wakes a pod, and which pods are alike."""

import msgspec
import pytest
from tests.plugins.neighbourhood import hint, node, pod
from tests.plugins.spreading import FOO, HOST, default, hard, soft, wants

from kubesched.api.objects import Node, Pod, read
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.events import NODE, POD, Action, QueueingHint
from kubesched.framework.hooks import check
from kubesched.framework.status import Code, Status
from kubesched.plugins.pod_topology_spread import (
    DefaultConstraint,
    PodTopologySpread,
    PodTopologySpreadArgs,
    validate_pod_topology_spread,
)
from kubesched.plugins.spread_constraints import HARD, SOFT

# ── arguments ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("args", "faults"),
    [
        (PodTopologySpreadArgs(), []),
        (PodTopologySpreadArgs(defaulting_type="List"), []),
        (
            PodTopologySpreadArgs(
                defaulting_type="List", default_constraints=(default(when=HARD), default("zone", 2), default())
            ),
            [],
        ),
        (
            PodTopologySpreadArgs(default_constraints=(default(),)),
            [("defaultingType", 'Invalid value: "System": when .defaultConstraints are not empty')],
        ),
        (
            PodTopologySpreadArgs(defaulting_type="Random"),
            [("defaultingType", 'Unsupported value: "Random": supported values: "System", "List"')],
        ),
        (
            PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default(skew=-1),)),
            [("defaultConstraints[0].maxSkew", "Invalid value: -1: not in valid range (0, inf)")],
        ),
        (
            PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default(""),)),
            [("defaultConstraints[0].topologyKey", "Required value: can not be empty")],
        ),
        (
            PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default(when=""),)),
            [("defaultConstraints[0].whenUnsatisfiable", "Required value: can not be empty")],
        ),
        (
            PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default(when="Whenever"),)),
            [
                (
                    "defaultConstraints[0].whenUnsatisfiable",
                    'Unsupported value: "Whenever": supported values: "DoNotSchedule", "ScheduleAnyway"',
                )
            ],
        ),
        (
            PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default(), default(skew=5))),
            [("defaultConstraints[1]", 'Duplicate value: "{node, ScheduleAnyway}"')],
        ),
        (
            PodTopologySpreadArgs(
                defaulting_type="List",
                default_constraints=(msgspec.convert({**soft("node")}, DefaultConstraint),),
            ),
            [
                (
                    "defaultConstraints[0].labelSelector",
                    "Forbidden: constraint must not define a selector, as they deduced for each pod",
                )
            ],
        ),
    ],
)
def test_arguments_that_cannot_be_used_are_named(args: PodTopologySpreadArgs, faults: list[tuple[str, str]]) -> None:
    assert list(validate_pod_topology_spread(args)) == faults


def test_a_topology_key_must_be_a_label_key() -> None:
    args = PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default("no spaces"),))

    [(path, message)] = validate_pod_topology_spread(args)

    assert path == "defaultConstraints[0].topologyKey"
    assert message.startswith('Invalid value: "no spaces": name part must consist of alphanumeric characters')


def test_arguments_are_read_as_kubernetes_writes_them() -> None:
    raw = {
        "defaultingType": "List",
        "defaultConstraints": [{"maxSkew": 3, "topologyKey": HOST, "whenUnsatisfiable": SOFT}],
    }
    assert msgspec.convert(raw, PodTopologySpreadArgs).default_constraints == (default(HOST, 3),)
    with pytest.raises(msgspec.ValidationError, match="unknown field `maxskew`"):
        msgspec.convert({"defaultConstraints": [{"maxskew": 3}]}, PodTopologySpreadArgs)


def test_the_plugin_has_the_hooks_it_seems_to_have() -> None:
    check(PodTopologySpread)


# ── what wakes a pod ─────────────────────────────────────────────────────────────────────────────────────────

TAINT = {"key": "k", "effect": "NoSchedule"}
QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def changed(before: Pod, **labels: str) -> Pod:
    return msgspec.structs.replace(before, metadata=msgspec.structs.replace(before.metadata, labels=labels))


def tolerant(before: Pod) -> Pod:
    raw = msgspec.to_builtins(before)
    raw["spec"]["tolerations"] = [{"key": "k", "operator": "Exists"}]
    return read(raw, Pod)


def going(before: Pod) -> Pod:
    meta = msgspec.structs.replace(before.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return msgspec.structs.replace(before, metadata=meta)


def nominated(before: Pod) -> Pod:
    raw = msgspec.to_builtins(before)
    raw["status"] = {"nominatedNodeName": "a"}
    return read(raw, Pod)


WAITING = wants(hard("zone"), hard("node", selector="bar"))
MATCHING = pod("other", FOO, on="a")
OTHER = pod("other", {"baz": ""}, on="a")

POD_CHANGES: dict[str, tuple[Pod, Pod | None, Pod | None, QueueingHint]] = {
    "a counted pod comes": (WAITING, None, MATCHING, QUEUE),
    "a pod counted by the second constraint alone comes": (WAITING, None, pod("o", {"bar": ""}, on="a"), QUEUE),
    "a pod nobody counts comes": (WAITING, None, OTHER, SKIP),
    "a counted pod comes elsewhere": (WAITING, None, pod("o", FOO, on="a", namespace="elsewhere"), SKIP),
    "a counted pod without a place comes": (WAITING, None, pod("o", FOO), SKIP),
    "a counted pod with a nomination comes": (WAITING, None, nominated(pod("o", FOO)), QUEUE),
    "a counted pod goes": (WAITING, MATCHING, None, QUEUE),
    "a pod nobody counts goes": (WAITING, OTHER, None, SKIP),
    "a counted pod goes elsewhere": (WAITING, pod("o", FOO, on="a", namespace="elsewhere"), None, SKIP),
    "a pod begins to be counted": (WAITING, OTHER, changed(OTHER, foo=""), QUEUE),
    "a pod is counted no more": (WAITING, MATCHING, changed(MATCHING, baz=""), QUEUE),
    "a pod is counted as before": (WAITING, MATCHING, changed(MATCHING, foo="", baz=""), SKIP),
    "one constraint flips, the other does not": (WAITING, MATCHING, changed(MATCHING, foo="", bar=""), QUEUE),
    "a counted pod begins to go": (WAITING, MATCHING, going(MATCHING), QUEUE),
    "a pod nobody counts begins to go": (WAITING, OTHER, going(OTHER), SKIP),
    "a pod that goes is no news again": (WAITING, going(MATCHING), going(changed(MATCHING, foo="", new="")), SKIP),
    "labels stay": (WAITING, MATCHING, MATCHING, SKIP),
    "a pod without a place changes": (WAITING, pod("o", FOO), pod("o", {"baz": ""}), SKIP),
    "the pod itself is counted no more": (WAITING, WAITING, changed(WAITING, baz=""), QUEUE),
    "the pod itself changes what nobody reads": (WAITING, WAITING, changed(WAITING, foo="", baz=""), SKIP),
    "the pod tolerates more, and taints are honoured": (
        wants(hard("zone", nodeTaintsPolicy="Honor")),
        wants(hard("zone", nodeTaintsPolicy="Honor")),
        tolerant(wants(hard("zone", nodeTaintsPolicy="Honor"))),
        QUEUE,
    ),
    "the pod tolerates more, and taints are ignored": (WAITING, WAITING, tolerant(WAITING), SKIP),
    "another pod tolerates more": (
        wants(hard("zone", nodeTaintsPolicy="Honor")),
        MATCHING,
        tolerant(MATCHING),
        SKIP,
    ),
    "soft constraints do not wake": (wants(soft("zone")), None, MATCHING, SKIP),
    "a constraint that cannot be read wakes": (
        wants(hard("zone", selector={"matchExpressions": [{"key": "a", "operator": "?"}]})),
        None,
        MATCHING,
        QUEUE,
    ),
}


@pytest.mark.parametrize("case", POD_CHANGES)
def test_a_pods_change_wakes(case: str) -> None:
    waiting, old, new, expected = POD_CHANGES[case]
    assert hint(PodTopologySpread(), POD, waiting, old, new) is expected


HERE = node("n", zone="z1", node="n1")
BARE = node("n", node="n1")
NODE_CHANGES: dict[str, tuple[Pod, Node | None, Node | None, QueueingHint]] = {
    "a node with all keys comes": (WAITING, None, HERE, QUEUE),
    "a node that lacks one comes": (WAITING, None, BARE, SKIP),
    "a node with all keys goes": (WAITING, HERE, None, QUEUE),
    "a node that lacks one goes": (WAITING, BARE, None, SKIP),
    "a key appears": (WAITING, BARE, HERE, QUEUE),
    "a key disappears": (WAITING, HERE, BARE, QUEUE),
    "a domain changes": (WAITING, HERE, node("n", zone="z2", node="n1"), QUEUE),
    "another label changes": (WAITING, HERE, node("n", zone="z1", node="n1", disk="ssd"), SKIP),
    "a label changes where a key is missing": (WAITING, BARE, node("n", node="n2"), SKIP),
    "taints change": (WAITING, HERE, node("n", zone="z1", node="n1", taints=[TAINT]), QUEUE),
    "taints change where a key is missing": (WAITING, BARE, node("n", node="n1", taints=[TAINT]), SKIP),
    "nothing changes": (WAITING, HERE, HERE, SKIP),
    "soft constraints do not ask for keys": (wants(soft("zone"), hard("node")), None, BARE, QUEUE),
    "a constraint that cannot be read wakes": (
        wants(hard("zone", selector={"matchExpressions": [{"key": "a", "operator": "?"}]})),
        HERE,
        HERE,
        QUEUE,
    ),
}


@pytest.mark.parametrize("case", NODE_CHANGES)
def test_a_nodes_change_wakes(case: str) -> None:
    waiting, old, new, expected = NODE_CHANGES[case]
    assert hint(PodTopologySpread(), NODE, waiting, old, new) is expected


def test_what_is_listened_to() -> None:
    pods, nodes = PodTopologySpread().events_to_register()
    assert (pods.resource, nodes.resource) == (POD, NODE)
    assert pods.action == Action.ADD | Action.DELETE | Action.UPDATE
    assert nodes.action == Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT


# ── signature ────────────────────────────────────────────────────────────────────────────────────────────────


def test_pods_under_constraints_are_not_alike() -> None:
    none = PodTopologySpread(PodTopologySpreadArgs(defaulting_type="List"))
    system = PodTopologySpread()
    assert none.sign_pod(PodInfo(pod("p", FOO))) == ()
    assert none.sign_pod(PodInfo(wants(soft("zone")))) == Status(
        Code.UNSCHEDULABLE, ("pods with topology constraints are not signable",)
    )
    assert system.sign_pod(PodInfo(pod("p", FOO))) == Status(
        Code.UNSCHEDULABLE, ("pods with default topology constraints are not signable",)
    )
