from typing import Any

import msgspec
import pytest
from tests.plugins.small_cluster import Cluster, node, pod, wakes, wakes_on_any

from kubesched.api.objects import Node, Pod
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.errors import ConfigError
from kubesched.framework.events import NODE, Action, ClusterEvent, node_changes
from kubesched.framework.hooks import NodeSubset
from kubesched.framework.status import SKIP, SUCCESS, Code, Status, error
from kubesched.plugins.node_affinity import (
    CONFLICT,
    ENFORCED,
    REASON,
    NodeAffinity,
    NodeAffinityArgs,
    validate_node_affinity,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def is_(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def named(operator: str, *names: str) -> dict[str, Any]:
    return is_("metadata.name", operator, *names)


def term(*labels: dict[str, Any], fields: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"matchExpressions": list(labels), "matchFields": list(fields)}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {REQUIRED: {"nodeSelectorTerms": list(terms)}}


def preferred(*terms: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    return {PREFERRED: [{"weight": weight, "preference": preference} for weight, preference in terms]}


def affine(*affinities: dict[str, Any], **spec: Any) -> Pod:
    merged = {key: value for affinity in affinities for key, value in affinity.items()}
    return pod(affinity={"nodeAffinity": merged}, **spec)


def plugin(**added: Any) -> NodeAffinity:
    return NodeAffinity(msgspec.convert({"addedAffinity": added}, NodeAffinityArgs))


# ── filter ───────────────────────────────────────────────────────────────────────────────────────────────────

ZONES = Cluster(
    node("a1", labels={"zone": "a", "cores": "4", "gpu": ""}),
    node("b1", labels={"zone": "b", "cores": "16"}),
    node("c1", labels={"zone": "c", "cores": "many"}),
    node("bare"),
)
ALL = {"a1", "b1", "c1", "bare"}


@pytest.mark.parametrize(
    ("wanting", "allowed"),
    [
        pytest.param(pod(), ALL, id="no wish"),
        pytest.param(pod(nodeSelector={}), ALL, id="an empty nodeSelector"),
        pytest.param(pod(nodeSelector={"zone": "a"}), {"a1"}, id="a label"),
        pytest.param(pod(nodeSelector={"zone": "a", "cores": "16"}), set(), id="labels no node has together"),
        pytest.param(pod(nodeSelector={"zone": "z"}), set(), id="a value nobody has"),
        pytest.param(pod(nodeSelector={"disk": "ssd"}), set(), id="a label nobody has"),
        pytest.param(affine(required(term(is_("zone", "In", "a", "b")))), {"a1", "b1"}, id="In"),
        pytest.param(affine(required(term(is_("zone", "NotIn", "a", "b")))), {"c1", "bare"}, id="NotIn: or without it"),
        pytest.param(affine(required(term(is_("gpu", "Exists")))), {"a1"}, id="Exists"),
        pytest.param(affine(required(term(is_("gpu", "DoesNotExist")))), ALL - {"a1"}, id="DoesNotExist"),
        pytest.param(affine(required(term(is_("cores", "Gt", "4")))), {"b1"}, id="Gt: more, and a number"),
        pytest.param(affine(required(term(is_("cores", "Lt", "16")))), {"a1"}, id="Lt: less, and a number"),
        pytest.param(
            affine(required(term(is_("zone", "Exists"), is_("cores", "Lt", "9")))), {"a1"}, id="requirements are ANDed"
        ),
        pytest.param(
            affine(required(term(is_("zone", "In", "a")), term(is_("zone", "In", "c")))),
            {"a1", "c1"},
            id="terms are ORed",
        ),
        pytest.param(affine(required()), set(), id="no term matches nothing"),
        pytest.param(affine(required(term())), set(), id="an empty term matches nothing"),
        pytest.param(affine(required(term(), term(is_("zone", "In", "a")))), {"a1"}, id="beside a full one"),
        pytest.param(affine({}), ALL, id="an empty node affinity asks for nothing"),
        pytest.param(
            affine(required(term(is_("zone", "Near", "a")), term(is_("zone", "In", "b")))), {"b1"}, id="a broken term"
        ),
        pytest.param(affine(required(term(is_("zone", "In")))), set(), id="In needs values"),
        pytest.param(affine(required(term(is_("zone", "Exists", "a")))), set(), id="Exists takes none"),
        pytest.param(affine(required(term(is_("cores", "Gt", "many")))), set(), id="Gt needs a number"),
        pytest.param(
            affine(required(term(is_("zone", "In", "a", "b"))), nodeSelector={"cores": "16"}),
            {"b1"},
            id="both must hold",
        ),
        pytest.param(affine(required(term(fields=(named("In", "b1"),)))), {"b1"}, id="the node's name"),
        pytest.param(affine(required(term(fields=(named("NotIn", "b1"),)))), ALL - {"b1"}, id="any other name"),
        pytest.param(
            affine(required(term(is_("zone", "In", "a"), fields=(named("In", "b1"),)))), set(), id="name and label"
        ),
        pytest.param(
            affine(required(term(fields=(named("In", "b1"),)), term(is_("gpu", "Exists")))),
            {"a1", "b1"},
            id="name or label",
        ),
        pytest.param(affine(required(term(fields=(named("In", "a1", "b1"),)))), set(), id="one name per field"),
        pytest.param(affine(required(term(fields=(is_("spec.x", "In", ""),)))), ALL, id="any other field is empty"),
        pytest.param(affine(required(term(fields=(is_("spec.x", "NotIn", ""),)))), set(), id="and not unlike that"),
        pytest.param(affine(preferred((1, term(is_("zone", "In", "a"))))), ALL, id="preferring keeps off no node"),
    ],
)
def test_which_nodes_a_pod_may_go_to(wanting: Pod, allowed: set[str]) -> None:
    assert ZONES.rejects(NodeAffinity(), wanting) == dict.fromkeys(ALL - allowed, REASON)


def test_evicting_pods_would_not_help() -> None:
    statuses = ZONES.filter(NodeAffinity(), pod(nodeSelector={"disk": "ssd"})).values()
    assert {status.code for status in statuses} == {Code.UNRESOLVABLE}


IN_A = required(term(is_("zone", "In", "a")))


@pytest.mark.parametrize(
    ("wanting", "rejected"),
    [
        pytest.param(pod(), {"b1": ENFORCED, "c1": ENFORCED, "bare": ENFORCED}, id="the profile's wish alone"),
        pytest.param(
            pod(nodeSelector={"zone": "b"}),
            {"a1": REASON, "b1": ENFORCED, "c1": ENFORCED, "bare": ENFORCED},
            id="the profile's is said first",
        ),
    ],
)
def test_the_profile_may_add_a_wish(wanting: Pod, rejected: dict[str, str]) -> None:
    assert ZONES.rejects(plugin(**IN_A), wanting) == rejected


# ── pre_filter ───────────────────────────────────────────────────────────────────────────────────────────────


def pre_filtered(wanting: Pod, asked: NodeAffinity | None = None) -> NodeSubset | Status:
    cycle = ZONES.cycle(wanting)
    return (asked or NodeAffinity()).pre_filter(cycle, cycle.pod, cycle.nodes)


@pytest.mark.parametrize(
    ("wanting", "expected"),
    [
        pytest.param(pod(), SKIP, id="no wish"),
        pytest.param(affine({}), SKIP, id="an empty node affinity"),
        pytest.param(affine(preferred((1, term(is_("zone", "In", "a"))))), SKIP, id="only preferences"),
        pytest.param(pod(nodeSelector={}), SUCCESS, id="an empty nodeSelector is one"),
        pytest.param(affine(required()), SUCCESS, id="no terms"),
        pytest.param(affine(IN_A), SUCCESS, id="labels only"),
        pytest.param(
            affine(required(term(fields=(named("In", "a1"),)), term(fields=(named("In", "b1"),)))),
            NodeSubset(frozenset({"a1", "b1"})),
            id="names in every term",
        ),
        pytest.param(
            affine(required(term(fields=(named("In", "a1"),)), term(is_("gpu", "Exists")))),
            SUCCESS,
            id="not in every term",
        ),
        pytest.param(
            affine(required(term(is_("zone", "In", "b"), fields=(named("In", "a1"),)))),
            NodeSubset(frozenset({"a1"})),
            id="labels do not widen it",
        ),
        pytest.param(affine(required(term(fields=(named("NotIn", "a1"),)))), SUCCESS, id="names excluded"),
        pytest.param(
            affine(required(term(fields=(named("In", "a1"), named("In", "b1"))))),
            Status(Code.UNRESOLVABLE, (CONFLICT,)),
            id="two names at once",
        ),
        pytest.param(
            affine(required(term(fields=(named("In", "a1"), named("In", "b1"))), term(fields=(named("In", "c1"),)))),
            NodeSubset(frozenset({"c1"})),
            id="a conflict in one of two terms",
        ),
    ],
)
def test_which_nodes_are_looked_at_at_all(wanting: Pod, expected: NodeSubset | Status) -> None:
    assert pre_filtered(wanting) == expected


def test_with_an_added_wish_nothing_is_skipped() -> None:
    assert pre_filtered(pod(), plugin(**IN_A)) is SUCCESS
    assert pre_filtered(pod(), plugin(**preferred((1, term(is_("zone", "In", "a")))))) is SKIP


# ── score ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("asked", "wanting", "expected"),
    [
        pytest.param(
            NodeAffinity(),
            affine(preferred((2, term(is_("zone", "In", "a"))))),
            {"a1": 100, "b1": 0, "c1": 0, "bare": 0},
            id="one preference",
        ),
        pytest.param(
            NodeAffinity(),
            affine(preferred((2, term(is_("zone", "Exists"))), (4, term(is_("cores", "Gt", "9"))))),
            {"a1": 33, "b1": 100, "c1": 33, "bare": 0},
            id="weights add up",
        ),
        pytest.param(
            NodeAffinity(),
            affine(preferred((0, term(is_("zone", "Exists"))), (7, term()))),
            {"a1": 0, "b1": 0, "c1": 0, "bare": 0},
            id="no weight, or no condition, counts nothing",
        ),
        pytest.param(
            NodeAffinity(),
            affine(preferred((0, term(is_("zone", "Near"))), (7, term(fields=(named("In", "c1"),))))),
            {"a1": 0, "b1": 0, "c1": 100, "bare": 0},
            id="a broken preference without weight is not looked at",
        ),
        pytest.param(
            plugin(**preferred((10, term(is_("zone", "In", "b"))))),
            pod(),
            {"a1": 0, "b1": 100, "c1": 0, "bare": 0},
            id="the profile's preference",
        ),
        pytest.param(
            plugin(**preferred((10, term(is_("zone", "In", "b"))))),
            affine(preferred((20, term(is_("zone", "In", "b", "c"))))),
            {"a1": 0, "b1": 100, "c1": 66, "bare": 0},
            id="the profile's and the pod's",
        ),
        pytest.param(NodeAffinity(), pod(), {}, id="no preference, no scoring"),
        pytest.param(NodeAffinity(), affine(IN_A), {}, id="a requirement is no preference"),
        pytest.param(
            NodeAffinity(), affine(preferred()), {"a1": 0, "b1": 0, "c1": 0, "bare": 0}, id="an empty list is one"
        ),
    ],
)
def test_scores(asked: NodeAffinity, wanting: Pod, expected: dict[str, int]) -> None:
    assert ZONES.scores(asked, wanting) == expected


def test_a_broken_preference_is_an_error() -> None:
    cycle = ZONES.cycle(affine(preferred((1, term(is_("zone", "In", "a"))), (1, term(is_("zone", "Near"))))))
    assert NodeAffinity().pre_score(cycle, cycle.pod, cycle.nodes) == error(
        '[1].matchExpressions[0].operator: Unsupported value: "Near": '
        'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    )


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────

A, B = node(labels={"zone": "a"}), node(labels={"zone": "b"})


@pytest.mark.parametrize(
    ("asked", "wanting", "old", "new", "expected"),
    [
        pytest.param(NodeAffinity(), affine(IN_A), None, A, True, id="a new node that matches"),
        pytest.param(NodeAffinity(), affine(IN_A), None, B, False, id="a new node that does not"),
        pytest.param(NodeAffinity(), affine(IN_A), B, A, True, id="it matches now"),
        pytest.param(NodeAffinity(), affine(IN_A), A, B, False, id="it does not match any more"),
        pytest.param(NodeAffinity(), affine(IN_A), A, A, False, id="it matched before"),
        pytest.param(NodeAffinity(), affine(IN_A), B, node(), False, id="it never matched"),
        pytest.param(NodeAffinity(), pod(nodeSelector={"zone": "a"}), B, A, True, id="a nodeSelector matches now"),
        pytest.param(plugin(**IN_A), pod(), None, A, True, id="a new node the profile allows"),
        pytest.param(plugin(**IN_A), pod(), None, B, False, id="a new node it does not"),
        pytest.param(plugin(**IN_A), pod(nodeSelector={"zone": "b"}), None, B, False, id="the pod would, it does not"),
        pytest.param(plugin(**IN_A), pod(), B, A, True, id="the profile allows it now"),
        pytest.param(
            NodeAffinity(),
            affine(required(term(is_("zone", "Near", "a")))),
            B,
            A,
            True,
            id="nobody knows what it wants",
        ),
    ],
)
def test_nodes_that_wake(asked: NodeAffinity, wanting: Pod, old: Node | None, new: Node, expected: bool) -> None:
    event = ClusterEvent(NODE, Action.ADD if old is None else Action.UPDATE_NODE_LABEL)
    assert wakes(asked, event, wanting, old, new) is expected


def test_a_new_label_is_told_as_such_an_event() -> None:
    assert wakes_on_any(NodeAffinity(), node_changes(B, A), affine(IN_A), B, A)


# ── signature and arguments ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (pod(nodeSelector={"a": "1", "b": "2"}), pod("q", nodeSelector={"b": "2", "a": "1"}), True),
        (pod(nodeSelector={"a": "1"}), pod(nodeSelector={"a": "2"}), False),
        (pod(nodeSelector={}), pod(), False),
        (affine(IN_A), affine(IN_A), True),
        (affine(IN_A), affine(IN_A, preferred((1, term(is_("zone", "In", "a"))))), False),
        (pod(affinity={"podAffinity": {}}), pod(), True),
    ],
)
def test_signatures(one: Pod, other: Pod, alike: bool) -> None:
    signed = [NodeAffinity().sign_pod(PodInfo(each)) for each in (one, other)]
    assert (signed[0] == signed[1]) is alike
    assert len(set(signed)) == (1 if alike else 2)


def test_arguments_that_cannot_be_read_are_named_with_their_place() -> None:
    args = msgspec.convert(
        {
            "addedAffinity": {
                **required(term(is_("zone", "Near", "a"))),
                **preferred((1, term(fields=(named("In", "a", "b"),))), (0, term(is_("zone", "Near")))),
            }
        },
        NodeAffinityArgs,
    )
    assert list(validate_node_affinity(args)) == [
        (
            f"addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator",
            'Unsupported value: "Near": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
        ),
        (
            f"addedAffinity.{PREFERRED}[0].matchFields[0].values",
            'Invalid value: ["a","b"]: must have one element',
        ),
    ]
    with pytest.raises(ConfigError, match=f"^parsing addedAffinity.{REQUIRED}: nodeSelectorTerms.0.*Unsupported value"):
        NodeAffinity(args)


def test_good_arguments_have_nothing_wrong_with_them() -> None:
    assert list(validate_node_affinity(NodeAffinityArgs())) == []
    assert list(validate_node_affinity(msgspec.convert({"addedAffinity": IN_A}, NodeAffinityArgs))) == []
