"""InterPodAffinity: how nodes compare, what wakes a pod, its arguments, and which pods are alike."""

from typing import Any

import msgspec
import numpy as np
import pytest
from tests.plugins.affinities import DB, SQUARE, WEB, WEB_ON_A, away, dislikes, likes, near, op, term, wants
from tests.plugins.neighbourhood import World, hint, namespace, node, pod

from kubesched.api.objects import KubeObject, Node, Pod, read
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.events import NODE, POD, Action, QueueingHint
from kubesched.framework.hooks import check
from kubesched.framework.status import Code, Status
from kubesched.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs, validate_inter_pod_affinity

# ── how nodes compare ────────────────────────────────────────────────────────────────────────────────────────

CACHE_ON_X = pod("c", {"app": "cache"}, on="x")
SCORES: dict[str, tuple[list[KubeObject], Pod, dict[str, int]]] = {
    "liking pods of a zone": (
        [*SQUARE, WEB_ON_A],
        wants(likes((5, term("zone")))),
        {"a": 100, "b": 100, "x": 0, "y": 0},
    ),
    "disliking them": (
        [*SQUARE, WEB_ON_A],
        wants(dislikes((5, term("zone")))),
        {"a": 0, "b": 0, "x": 100, "y": 100},
    ),
    # a and b: 2 · 5; x 8; y nothing.
    "every pod counts its weight": (
        [*SQUARE, WEB_ON_A, pod("w2", WEB, on="b"), CACHE_ON_X],
        wants(likes((5, term("zone")), (8, term("host", "cache")))),
        {"a": 100, "b": 100, "x": 80, "y": 0},
    ),
    # a 3 − 9, b 3, x 0, y 0: from −6 to 3.
    "likes and dislikes add up": (
        [*SQUARE, WEB_ON_A],
        wants(likes((3, term("zone"))) | dislikes((9, term("host")))),
        {"a": 0, "b": 100, "x": 66, "y": 66},
    ),
    "a node without the label is in no domain": (
        [*SQUARE, node("bare"), WEB_ON_A, pod("w2", WEB, on="bare")],
        wants(likes((5, term("zone")))),
        {"a": 100, "b": 100, "x": 0, "y": 0, "bare": 0},
    ),
    "pods there like the newcomer": (
        [*SQUARE, pod("w", WEB, on="a", affinity=likes((5, term("zone", "db"))))],
        wants(),
        {"a": 100, "b": 100, "x": 0, "y": 0},
    ),
    "pods there dislike the newcomer": (
        [*SQUARE, pod("w", WEB, on="a", affinity=dislikes((5, term("zone", "db"))))],
        wants(),
        {"a": 0, "b": 0, "x": 100, "y": 100},
    ),
    # a 5 + 4, b 5, x 3, y 0.
    "both directions add up": (
        [
            *SQUARE,
            pod("w", WEB, on="a", affinity=likes((4, term("host", "db")))),
            pod("c", {"app": "cache"}, on="x", affinity=likes((3, term("host", "db")))),
        ],
        wants(likes((5, term("zone")))),
        {"a": 100, "b": 55, "x": 33, "y": 0},
    ),
    "required affinity of pods there counts one": (
        [*SQUARE, pod("w", WEB, on="a", affinity=near(term("zone", "db")))],
        wants(),
        {"a": 100, "b": 100, "x": 0, "y": 0},
    ),
    "everybody alike: nobody better": (
        [*SQUARE, WEB_ON_A, pod("w2", WEB, on="x")],
        wants(likes((5, term("zone")))),
        dict.fromkeys("abxy", 0),
    ),
    "wishes that cancel out": (
        [*SQUARE, WEB_ON_A],
        wants(likes((5, term("zone"))) | dislikes((5, term("zone")))),
        dict.fromkeys("abxy", 0),
    ),
}


@pytest.mark.parametrize("case", SCORES)
def test_nodes_compared(case: str) -> None:
    objects, waiting, expected = SCORES[case]
    assert World(*objects).scores(InterPodAffinity(), waiting) == expected


def test_only_feasible_nodes_are_compared() -> None:
    world = World(*SQUARE, WEB_ON_A, pod("w2", WEB, on="b"))
    waiting = wants(likes((5, term("zone")), (2, term("host"))))
    assert world.scores(InterPodAffinity(), waiting, "b", "x") == {"b": 100, "x": 0}
    assert world.scores(InterPodAffinity(), waiting, "b") == {"b": 0}


@pytest.mark.parametrize(
    ("weight", "expected"),
    [(0, Status(Code.SKIP)), (1, {"a": 50, "b": 50, "x": 100, "y": 0}), (50, {"a": 100, "b": 100, "x": 4, "y": 0})],
)
def test_required_affinity_of_others_counts_as_much_as_the_arguments_say(weight: int, expected: Any) -> None:
    objects = [
        pod("w", WEB, on="a", affinity=near(term("zone", "db"))),
        *([pod("c", WEB, on="x", affinity=likes((2, term("host", "db"))))] if weight else []),
    ]
    plugin = InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=weight))
    assert World(*SQUARE, *objects).scores(plugin, wants()) == expected


@pytest.mark.parametrize(
    ("objects", "waiting"),
    [
        ([], wants()),
        ([WEB_ON_A], wants(near(term("zone")))),
        ([WEB_ON_A], wants(likes((5, term("rack"))))),
        ([pod("w", WEB, on="a", affinity=likes((5, term("zone", "cache"))))], wants()),
        ([pod("w", WEB, on="a", affinity=away(term("zone", "db")))], wants()),
    ],
    ids=["nobody there", "no wishes", "no such label", "others are liked", "minded, not disliked"],
)
def test_where_no_wish_meets_a_domain_there_is_nothing_to_score(objects: list[KubeObject], waiting: Pod) -> None:
    assert World(*SQUARE, *objects).scores(InterPodAffinity(), waiting) == Status(Code.SKIP)


def test_wishes_of_others_can_be_ignored_by_pods_that_have_none() -> None:
    plugin = InterPodAffinity(InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True))
    liking = pod("w", WEB, on="a", affinity=likes((5, term("host", "db"))))
    world = World(*SQUARE, liking)

    assert world.scores(plugin, wants()) == Status(Code.SKIP)
    assert world.scores(plugin, wants(near(term("zone")))) == Status(Code.SKIP)
    # Kept from kube-scheduler: a pod with wishes of its own hears those of others, too.
    assert world.scores(plugin, wants(likes((5, term("zone"))))) == {"a": 100, "b": 50, "x": 0, "y": 0}


def test_namespace_selectors_count_for_wishes() -> None:
    elsewhere = pod("w", WEB, on="a", namespace="other")
    world = World(*SQUARE, namespace("other", team="two"), namespace("default", team="one"), elsewhere)
    in_team_two = wants(likes((5, term("zone", namespaceSelector={"matchLabels": {"team": "two"}}))))
    outside_team_two = wants(likes((5, term("zone", namespaceSelector=op("team", "NotIn", "two")))))

    assert world.scores(InterPodAffinity(), in_team_two) == {"a": 100, "b": 100, "x": 0, "y": 0}
    # Kept from kube-scheduler: a selector that only excludes is asked about no labels and means everybody.
    assert world.scores(InterPodAffinity(), outside_team_two) == {"a": 100, "b": 100, "x": 0, "y": 0}


@pytest.mark.parametrize(
    ("raw", "normalized"),
    [
        ([0, 0], [0, 0]),
        ([-3, -3], [0, 0]),
        ([0, 1, 3], [0, 33, 100]),
        ([-100, 0, 100], [0, 50, 100]),
        # 29 / 100 is a little less than 0.29 in binary: 28 is what Go's cut leaves.
        ([0, 29, 100], [0, 28, 100]),
    ],
)
def test_scores_are_stretched_in_floating_point_and_cut(raw: list[int], normalized: list[int]) -> None:
    world = World(*SQUARE)
    cycle = world.cycle(wants())
    found = InterPodAffinity().normalize_score(cycle, cycle.pod, np.array(raw, dtype=np.int64))
    assert found.tolist() == normalized
    assert found.dtype == np.int64


# ── what wakes a pod ─────────────────────────────────────────────────────────────────────────────────────────

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def changed(before: Pod, **labels: str) -> Pod:
    return msgspec.structs.replace(before, metadata=msgspec.structs.replace(before.metadata, labels=labels))


def nominated(before: Pod) -> Pod:
    return read({**msgspec.to_builtins(before), "status": {"nominatedNodeName": "a"}}, Pod)


NEAR, AWAY = wants(near(term("zone"))), wants(away(term("zone")))
DB_ON_A = pod("d", DB, on="a")
BOTH = near(term("zone"), term("zone", op("tier", "Exists")))
BOTH_AWAY = away(term("zone"), term("zone", op("tier", "Exists")))

POD_CHANGES: dict[str, tuple[Pod, Pod | None, Pod | None, QueueingHint]] = {
    "a pod it wants to be near comes": (NEAR, None, WEB_ON_A, QUEUE),
    "another comes": (NEAR, None, DB_ON_A, SKIP),
    "one comes elsewhere": (NEAR, None, pod("w", WEB, on="a", namespace="other"), SKIP),
    "one without a place comes": (NEAR, None, pod("w", WEB), SKIP),
    "one with a nomination comes": (NEAR, None, nominated(pod("w", WEB)), QUEUE),
    "one that matches all terms comes": (wants(BOTH), None, pod("w", WEB | {"tier": "1"}, on="a"), QUEUE),
    "one that matches some terms comes": (wants(BOTH), None, WEB_ON_A, SKIP),
    "one begins to match": (NEAR, DB_ON_A, changed(DB_ON_A, app="web"), QUEUE),
    "one matches no more": (NEAR, WEB_ON_A, changed(WEB_ON_A, app="db"), SKIP),
    "one matches as before": (NEAR, WEB_ON_A, changed(WEB_ON_A, app="web", tier="1"), SKIP),
    "one it wants to be near goes": (NEAR, WEB_ON_A, None, SKIP),
    "a pod it stays away from goes": (AWAY, WEB_ON_A, None, QUEUE),
    "another goes": (AWAY, DB_ON_A, None, SKIP),
    "one it stays away from comes": (AWAY, None, WEB_ON_A, SKIP),
    "one is to be stayed away from no more": (AWAY, WEB_ON_A, changed(WEB_ON_A, app="db"), QUEUE),
    "one is to be stayed away from as before": (AWAY, WEB_ON_A, changed(WEB_ON_A, app="web", tier="1"), SKIP),
    "one begins to be": (AWAY, DB_ON_A, changed(DB_ON_A, app="web"), SKIP),
    "one that matches some anti terms goes": (wants(BOTH_AWAY), WEB_ON_A, None, SKIP),
    "one that matches all anti terms goes": (wants(BOTH_AWAY), pod("w", WEB | {"tier": "1"}, on="a"), None, QUEUE),
    "a pod that minded it goes": (wants(), pod("w", WEB, on="a", affinity=away(term("zone", "db"))), None, QUEUE),
    "a pod that minded others goes": (wants(), pod("w", WEB, on="a", affinity=away(term("zone", "c"))), None, SKIP),
    "a pod that minded it never had a place": (wants(), pod("w", WEB, affinity=away(term("zone", "db"))), None, SKIP),
    "its own labels change": (NEAR, NEAR, changed(NEAR, app="web"), QUEUE),
    "another waiting pod changes": (NEAR, pod("w", DB), pod("w", WEB), SKIP),
    "no terms match nobody": (wants(), None, WEB_ON_A, SKIP),
    # Without a cluster to look at, names are all there is: a namespace named by a selector is not looked up.
    "one comes in a namespace a selector names": (
        wants(near(term("zone", namespaceSelector={"matchLabels": {"team": "two"}}))),
        None,
        pod("w", WEB, on="a", namespace="other"),
        SKIP,
    ),
    "one comes and the selector names all": (
        wants(near(term("zone", namespaceSelector={}))),
        None,
        pod("w", WEB, on="a", namespace="other"),
        QUEUE,
    ),
    "terms that cannot be read wake": (wants(near(term("zone", op("a", "?")))), None, DB_ON_A, QUEUE),
}


@pytest.mark.parametrize("case", POD_CHANGES)
def test_a_pods_change_wakes(case: str) -> None:
    waiting, old, new, expected = POD_CHANGES[case]
    assert hint(InterPodAffinity(), POD, waiting, old, new) is expected


ZONED, OTHER_ZONE, BARE = node("n", zone="z1"), node("n", zone="z2"), node("n", host="n")
NODE_CHANGES: dict[str, tuple[Pod, Node | None, Node | None, QueueingHint]] = {
    "near: a node with the key comes": (NEAR, None, ZONED, QUEUE),
    "near: a node without it comes": (NEAR, None, BARE, SKIP),
    "near: the key appears": (NEAR, BARE, ZONED, QUEUE),
    "near: the key disappears": (NEAR, ZONED, BARE, SKIP),
    "near: the domain changes": (NEAR, ZONED, OTHER_ZONE, QUEUE),
    "near: another label changes": (NEAR, ZONED, node("n", zone="z1", disk="ssd"), SKIP),
    "away: any node comes": (AWAY, None, BARE, QUEUE),
    "away: the key appears": (AWAY, BARE, ZONED, SKIP),
    "away: the key disappears": (AWAY, ZONED, BARE, QUEUE),
    "away: the domain changes": (AWAY, ZONED, OTHER_ZONE, QUEUE),
    "away: another label changes": (AWAY, ZONED, node("n", zone="z1", disk="ssd"), SKIP),
    "no terms: a node comes": (wants(), None, ZONED, SKIP),
    "terms that cannot be read wake": (wants(near(term("zone", op("a", "?")))), ZONED, ZONED, QUEUE),
}


@pytest.mark.parametrize("case", NODE_CHANGES)
def test_a_nodes_change_wakes(case: str) -> None:
    waiting, old, new, expected = NODE_CHANGES[case]
    assert hint(InterPodAffinity(), NODE, waiting, old, new) is expected


def test_what_is_listened_to() -> None:
    pods, nodes, namespaces = InterPodAffinity().events_to_register()
    assert (pods.resource, pods.action) == (POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
    assert (nodes.resource, nodes.action) == (NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
    assert namespaces.resource == "Namespace"  # kube-scheduler does not listen to them


# ── arguments and signature ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("weight", [0, 1, 100])
def test_weights_in_range_are_taken(weight: int) -> None:
    assert list(validate_inter_pod_affinity(InterPodAffinityArgs(hard_pod_affinity_weight=weight))) == []


@pytest.mark.parametrize("weight", [-1, 101])
def test_weights_out_of_range_are_named(weight: int) -> None:
    assert list(validate_inter_pod_affinity(InterPodAffinityArgs(hard_pod_affinity_weight=weight))) == [
        ("hardPodAffinityWeight", f"Invalid value: {weight}: not in valid range [0, 100]")
    ]


def test_arguments_are_read_as_kubernetes_writes_them() -> None:
    raw = {"hardPodAffinityWeight": 5, "ignorePreferredTermsOfExistingPods": True}
    assert msgspec.convert(raw, InterPodAffinityArgs) == InterPodAffinityArgs(
        hard_pod_affinity_weight=5, ignore_preferred_terms_of_existing_pods=True
    )
    with pytest.raises(msgspec.ValidationError, match="unknown field `fooBar`"):
        msgspec.convert({"fooBar": 1}, InterPodAffinityArgs)


def test_the_plugin_has_the_hooks_it_seems_to_have() -> None:
    check(InterPodAffinity)


def test_pods_are_alike_by_namespace_and_labels_and_never_with_affinity() -> None:
    plugin = InterPodAffinity()
    same = plugin.sign_pod(PodInfo(pod("p", WEB | {"tier": "1"})))
    assert same == plugin.sign_pod(PodInfo(pod("q", {"tier": "1"} | WEB)))
    assert same != plugin.sign_pod(PodInfo(pod("p", WEB)))
    assert same != plugin.sign_pod(PodInfo(pod("p", WEB | {"tier": "1"}, namespace="other")))
    assert plugin.sign_pod(PodInfo(wants(likes((1, term("zone")))))) == Status(
        Code.UNSCHEDULABLE, ("pods with InterPodAffinity are not signable",)
    )
