"""InterPodAffinity: who may be near whom, and who would rather be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plugins.affinities import DB, SQUARE, WEB, WEB_ON_A, away, dislikes, likes, near, op, term, wants
from tests.plugins.neighbourhood import World, answers, namespace, node, pod, raw_scores

from kubesched.api.objects import KubeObject, Namespace, Node, Pod
from kubesched.api.selectors import compile_label_selector
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import NotWritten
from kubesched.framework.status import Code, Status, unresolvable, unschedulable
from kubesched.plugins.inter_pod_affinity import (
    NOT_NEAR,
    TOO_NEAR,
    UNWELCOME,
    InterPodAffinity,
    InterPodAffinityArgs,
    Requirements,
)

FAR, CROWDED, REFUSED = unresolvable(NOT_NEAR), unschedulable(TOO_NEAR), unschedulable(UNWELCOME)
OK = Status()


# ── who is turned down ───────────────────────────────────────────────────────────────────────────────────────

VERDICTS: dict[str, tuple[list[KubeObject], Pod, dict[str, Status]]] = {
    "near a pod in its zone": (
        [*SQUARE, WEB_ON_A],
        wants(near(term("zone"))),
        {"a": OK, "b": OK, "x": FAR, "y": FAR},
    ),
    "near a pod on its host": (
        [*SQUARE, WEB_ON_A],
        wants(near(term("host"))),
        {"a": OK, "b": FAR, "x": FAR, "y": FAR},
    ),
    "near nobody that is there": ([*SQUARE, WEB_ON_A], wants(near(term("zone", "cache"))), dict.fromkeys("abxy", FAR)),
    "a node without the label is not near": (
        [*SQUARE, node("bare"), pod("w2", WEB, on="bare"), WEB_ON_A],
        wants(near(term("zone"))),
        {"a": OK, "b": OK, "x": FAR, "y": FAR, "bare": FAR},
    ),
    "a pod on a node without the label is in no domain": (
        [*SQUARE, node("bare"), pod("w", WEB, on="bare")],
        wants(near(term("zone"))),
        {**dict.fromkeys("abxy", FAR), "bare": FAR},
    ),
    "pods of other namespaces are not meant": (
        [*SQUARE, pod("w", WEB, on="a", namespace="other")],
        wants(near(term("zone"))),
        dict.fromkeys("abxy", FAR),
    ),
    "unless the term says so": (
        [*SQUARE, pod("w", WEB, on="a", namespace="other")],
        wants(near(term("zone", namespaces=["other"]))),
        {"a": OK, "b": OK, "x": FAR, "y": FAR},
    ),
    "and then those of its own are not": (
        [*SQUARE, WEB_ON_A],
        wants(near(term("zone", namespaces=["other"]))),
        dict.fromkeys("abxy", FAR),
    ),
    "pods on their way out are still there": (
        [*SQUARE, pod("w", WEB, on="a", dying=True)],
        wants(near(term("host"))),
        {"a": OK, "b": FAR, "x": FAR, "y": FAR},
    ),
    "a null selector means nobody": (
        [*SQUARE, WEB_ON_A],
        wants(near(term("zone", None))),
        dict.fromkeys("abxy", FAR),
    ),
    "an empty selector means everybody": (
        [*SQUARE, WEB_ON_A],
        wants(near(term("host", {}))),
        {"a": OK, "b": FAR, "x": FAR, "y": FAR},
    ),
    "In, NotIn, Exists and DoesNotExist": (
        [*SQUARE, pod("w", {"app": "web", "tier": "1"}, on="a"), pod("d", {"tier": "2"}, on="x")],
        wants(
            near(
                term("zone", op("app", "In", "web", "api")),
                term("zone", op("tier", "NotIn", "2")),
                term("zone", op("tier", "Exists")),
                term("zone", op("rev", "DoesNotExist")),
            )
        ),
        {"a": OK, "b": OK, "x": FAR, "y": FAR},
    ),
    "one pod must match all terms": (
        [*SQUARE, WEB_ON_A, pod("d", {"tier": "1"}, on="a")],
        wants(near(term("zone"), term("zone", op("tier", "Exists")))),
        dict.fromkeys("abxy", FAR),
    ),
    "terms with different keys meet at different widths": (
        [*SQUARE, WEB_ON_A],
        wants(near(term("zone"), term("host"))),
        {"a": OK, "b": FAR, "x": FAR, "y": FAR},
    ),
    "the first of a kind may begin anywhere": (
        [*SQUARE, pod("d", DB, on="a")],
        wants(near(term("zone")), WEB),
        dict.fromkeys("abxy", OK),
    ),
    "where the labels are": (
        [*SQUARE, node("bare")],
        wants(near(term("zone")), WEB),
        {**dict.fromkeys("abxy", OK), "bare": FAR},
    ),
    "unless it does not match itself": ([*SQUARE], wants(near(term("zone")), DB), dict.fromkeys("abxy", FAR)),
    "or only one of its terms": (
        [*SQUARE],
        wants(near(term("zone"), term("zone", "db")), WEB),
        dict.fromkeys("abxy", FAR),
    ),
    "or is not in the namespace it asks for": (
        [*SQUARE],
        wants(near(term("zone", namespaces=["other"])), WEB),
        dict.fromkeys("abxy", FAR),
    ),
    "the second joins the first": (
        [*SQUARE, WEB_ON_A],
        wants(near(term("host")), WEB),
        {"a": OK, "b": FAR, "x": FAR, "y": FAR},
    ),
    "a first of its kind without a label of its own is in no domain": (
        [*SQUARE, node("bare"), pod("w", WEB, on="bare")],
        wants(near(term("zone")), WEB),
        {**dict.fromkeys("abxy", OK), "bare": FAR},
    ),
    "away from a pod in its zone": (
        [*SQUARE, WEB_ON_A],
        wants(away(term("zone"))),
        {"a": CROWDED, "b": CROWDED, "x": OK, "y": OK},
    ),
    "away from a pod on its host": (
        [*SQUARE, WEB_ON_A],
        wants(away(term("host"))),
        {"a": CROWDED, "b": OK, "x": OK, "y": OK},
    ),
    "one match of any term is too many": (
        [*SQUARE, WEB_ON_A, pod("c", {"app": "cache"}, on="x")],
        wants(away(term("host"), term("host", "cache"))),
        {"a": CROWDED, "b": OK, "x": CROWDED, "y": OK},
    ),
    "a node without the label is away from everybody": (
        [node("a", zone="z1"), node("bare"), pod("w", WEB, on="bare"), WEB_ON_A],
        wants(away(term("zone"))),
        {"a": CROWDED, "bare": OK},
    ),
    "near some and away from others": (
        [*SQUARE, WEB_ON_A, pod("c", {"app": "cache"}, on="b")],
        wants(near(term("zone")) | away(term("host", "cache"))),
        {"a": OK, "b": CROWDED, "x": FAR, "y": FAR},
    ),
    "a pod there minds the newcomer": (
        [*SQUARE, pod("w", WEB, on="a", affinity=away(term("zone", "db")))],
        wants(),
        {"a": REFUSED, "b": REFUSED, "x": OK, "y": OK},
    ),
    "a pod there minds others": (
        [*SQUARE, pod("w", WEB, on="a", affinity=away(term("zone", "cache")))],
        wants(near(term("zone"))),
        {"a": OK, "b": OK, "x": FAR, "y": FAR},
    ),
    "a pod there minds pods of its own namespace": (
        [*SQUARE, pod("w", WEB, on="a", namespace="other", affinity=away(term("zone", "db")))],
        wants(near(term("zone", namespaces=["other"]))),
        {"a": OK, "b": OK, "x": FAR, "y": FAR},
    ),
    "one of several terms is enough to mind": (
        [*SQUARE, pod("w", WEB, on="a", affinity=away(term("zone", "cache"), term("host", "db")))],
        wants(),
        {"a": REFUSED, "b": OK, "x": OK, "y": OK},
    ),
    "a pod minds nobody where its node lacks the label": (
        [*SQUARE, node("bare"), pod("w", WEB, on="bare", affinity=away(term("zone", "db")))],
        wants(near(term("host", "cache"))),
        {**dict.fromkeys("abxy", FAR), "bare": FAR},
    ),
    "own anti-affinity speaks before others'": (
        [*SQUARE, pod("w", WEB, on="a", affinity=away(term("zone", "db")))],
        wants(away(term("host"))),
        {"a": CROWDED, "b": REFUSED, "x": OK, "y": OK},
    ),
    "affinity speaks first": (
        [*SQUARE, pod("w", WEB, on="a", affinity=away(term("zone", "db")))],
        wants(near(term("zone", "cache")) | away(term("zone"))),
        dict.fromkeys("abxy", FAR),
    ),
    "what others would rather does not turn down": (
        [*SQUARE, WEB_ON_A, pod("w2", WEB, on="a", affinity=dislikes((100, term("zone", "db"))))],
        wants(near(term("zone"))),
        {"a": OK, "b": OK, "x": FAR, "y": FAR},
    ),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_nodes_turned_down(case: str) -> None:
    objects, waiting, expected = VERDICTS[case]
    assert World(*objects).filter(InterPodAffinity(), waiting) == expected


def test_the_three_reasons_are_kube_schedulers() -> None:
    assert NOT_NEAR == "node(s) didn't match pod affinity rules"
    assert TOO_NEAR == "node(s) didn't match pod anti-affinity rules"
    assert UNWELCOME == "node(s) didn't satisfy existing pods anti-affinity rules"


@pytest.mark.parametrize(
    "waiting",
    [pod("plain"), wants(), wants(likes((1, term("zone")))), wants({"podAffinity": {}, "podAntiAffinity": {}})],
    ids=["no affinity", "no affinity, but labels", "only wishes", "empty objects"],
)
def test_a_pod_nobody_minds_and_that_minds_nobody_is_skipped(waiting: Pod) -> None:
    minded = pod("w", WEB, on="a", affinity=away(term("zone", "cache")))
    assert World(*SQUARE, minded).filter(InterPodAffinity(), waiting) == Status(Code.SKIP)


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        (near(term("zone", op("app", "Nearly"))), "requiredAffinityTerms: {0}"),
        (away(term("zone"), term("zone", op("app", "Nearly"))), "requiredAntiAffinityTerms: {0}"),
        (
            likes((1, term("zone", op("app", "Nearly")))) | dislikes((1, term("zone", op("app", "Nearly")))),
            "[preferredAffinityTerms: {0}, preferredAntiAffinityTerms: {0}]",
        ),
    ],
)
def test_a_pod_that_cannot_be_read_is_turned_down_for_good(affinity: Any, message: str) -> None:
    problem = '"Nearly" is not a valid label selector operator'
    found = World(*SQUARE).filter(InterPodAffinity(), wants(affinity))
    assert found == unresolvable(f"parsing pod: {message.format(problem)}")


def test_filter_before_pre_filter_cannot_answer() -> None:
    world = World(*SQUARE)
    cycle = world.cycle(wants(near(term("zone"))))
    with pytest.raises(NotWritten, match="not found"):
        InterPodAffinity().filter(cycle, cycle.pod, world.named("a"))


# ── namespaces ───────────────────────────────────────────────────────────────────────────────────────────────


def minding_teams(operator: str, team: str) -> Pod:
    """A pod that minds db pods of some teams in its zone."""
    minded = term("zone", "db", namespaceSelector=op("team", operator, team))
    return pod("w", WEB, on="a", namespace="other", affinity=away(minded))


TEAMS: list[KubeObject] = [namespace("default", team="one"), namespace("other", team="two"), namespace("third")]
ELSEWHERE = pod("w", WEB, on="a", namespace="other")
NEAR_A = {"a": OK, "b": OK, "x": FAR, "y": FAR}
NAMESPACES: dict[str, tuple[list[KubeObject], Pod, dict[str, Status]]] = {
    "a selector names other namespaces": (
        [ELSEWHERE],
        wants(near(term("zone", namespaceSelector={"matchLabels": {"team": "two"}}))),
        NEAR_A,
    ),
    "and leaves its own out": (
        [WEB_ON_A],
        wants(near(term("zone", namespaceSelector={"matchLabels": {"team": "two"}}))),
        dict.fromkeys("abxy", FAR),
    ),
    "names and a selector add up": (
        [WEB_ON_A],
        wants(near(term("zone", namespaces=["default"], namespaceSelector={"matchLabels": {"team": "two"}}))),
        NEAR_A,
    ),
    "an empty selector means all namespaces, known or not": (
        [pod("w", WEB, on="a", namespace="unheard-of")],
        wants(near(term("zone", namespaceSelector={}))),
        NEAR_A,
    ),
    "a selector that names nobody's namespace": (
        [ELSEWHERE, WEB_ON_A],
        wants(near(term("zone", namespaceSelector={"matchLabels": {"team": "three"}}))),
        dict.fromkeys("abxy", FAR),
    ),
    # Kept from kube-scheduler: it is asked about no labels at all, which such a selector matches.
    "a selector that only excludes means every namespace": (
        [ELSEWHERE],
        wants(near(term("zone", namespaceSelector=op("team", "NotIn", "two")))),
        NEAR_A,
    ),
    "anti-affinity alike": (
        [ELSEWHERE],
        wants(away(term("zone", namespaceSelector=op("team", "DoesNotExist")))),
        {"a": CROWDED, "b": CROWDED, "x": OK, "y": OK},
    ),
    "others' terms see the newcomer's namespace as it is": (
        [minding_teams("In", "one")],
        wants(),
        {"a": REFUSED, "b": REFUSED, "x": OK, "y": OK},
    ),
    "excluded there is excluded": (
        [
            minding_teams("NotIn", "one"),
            WEB_ON_A,
        ],
        wants(near(term("zone"))),
        NEAR_A,
    ),
}


@pytest.mark.parametrize("case", NAMESPACES)
def test_namespaces_meant(case: str) -> None:
    objects, waiting, expected = NAMESPACES[case]
    assert World(*SQUARE, *TEAMS, *objects).filter(InterPodAffinity(), waiting) == expected


def test_a_namespace_nobody_has_told_of_has_no_labels() -> None:
    minded = pod("w", WEB, on="a", affinity=away(term("zone", "db", namespaceSelector=op("team", "DoesNotExist"))))
    waiting = pod("new", DB, namespace="unheard-of")
    found = World(*SQUARE, minded).filter(InterPodAffinity(), waiting)
    assert isinstance(found, dict)
    assert found["a"] == REFUSED


# ── what pre_filter counts, and what moves change ────────────────────────────────────────────────────────────


def described(required: Requirements) -> list[dict[str, dict[str, int]]]:
    """near, away, unwelcome: the counts by key and value, zeros left out."""
    found = [
        {key: counts.of(key) for key in counts.keys if counts.of(key)}
        for counts in (required.near, required.away, required.unwelcome)
    ]
    return [{key: dict(values) for key, values in counts.items()} for counts in found]


def counted(world: World, waiting: Pod) -> list[dict[str, dict[str, int]]]:
    cycle = world.cycle(waiting)
    assert InterPodAffinity().pre_filter(cycle, cycle.pod, world.nodes).ok
    return described(cycle.get(Requirements))


def test_each_pod_counts_once_per_term() -> None:
    world = World(*SQUARE, WEB_ON_A, pod("w2", WEB, on="b"), pod("c", {"app": "cache"}, on="x"))
    waiting = wants(near(term("zone"), term("host"), term("zone", op("app", "Exists"))) | away(term("zone", "cache")))
    assert counted(world, waiting) == [{"zone": {"z1": 4}, "host": {"a": 1, "b": 1}}, {"zone": {"z2": 1}}, {}]


def test_each_term_of_each_pod_there_counts_once() -> None:
    minding = away(term("zone", "db"), term("host", op("app", "Exists")), term("zone", "cache"))
    world = World(*SQUARE, pod("w", WEB, on="a", affinity=minding), pod("v", WEB, on="b", affinity=minding))
    assert counted(world, wants()) == [{}, {}, {"zone": {"z1": 2}, "host": {"a": 1, "b": 1}}]


def test_a_clone_does_not_see_later_moves() -> None:
    world = World(*SQUARE, WEB_ON_A)
    cycle = world.cycle(wants(near(term("zone")) | away(term("host", "db"))))
    plugin = InterPodAffinity()
    plugin.pre_filter(cycle, cycle.pod, world.nodes)
    kept = cycle.get(Requirements).clone()
    before = described(kept)

    plugin.add_pod(cycle, cycle.pod, PodInfo(pod("d", DB, affinity=away(term("rack", "db")))), world.named("x"))
    plugin.remove_pod(cycle, cycle.pod, PodInfo(WEB_ON_A), world.named("a"))

    assert described(kept) == before == [{"zone": {"z1": 1}}, {}, {}]
    assert described(cycle.get(Requirements)) == [{}, {"host": {"x": 1}}, {}]


def test_when_the_only_match_leaves_the_pod_may_begin_anew() -> None:
    world = World(*SQUARE, WEB_ON_A)
    cycle = world.cycle(wants(near(term("host")), WEB))
    plugin = InterPodAffinity()
    plugin.pre_filter(cycle, cycle.pod, world.nodes)
    assert answers(plugin, cycle)["x"] == FAR

    plugin.remove_pod(cycle, cycle.pod, PodInfo(WEB_ON_A), world.named("a"))

    assert answers(plugin, cycle) == dict.fromkeys("abxy", OK)


# ── against the rules, node by node and pod by pod ───────────────────────────────────────────────────────────

SELECTOR = st.sampled_from(["web", "db", {}, None, op("app", "NotIn", "web")])
TERM = st.builds(
    lambda key, selector, names, spaces: term(key, selector, namespaces=names, namespaceSelector=spaces),
    st.sampled_from(["zone", "host", "rack"]),
    SELECTOR,
    st.sampled_from([[], ["other"], ["default", "other"]]),
    st.sampled_from([None, None, {}, {"matchLabels": {"team": "two"}}, op("team", "NotIn", "two")]),
)
WEIGHTED = st.lists(st.tuples(st.integers(1, 100), TERM), max_size=2)
AFFINITY = st.builds(
    lambda hard, anti, soft, shy: (
        {
            "podAffinity": near(*hard)["podAffinity"] | likes(*soft)["podAffinity"],
            "podAntiAffinity": away(*anti)["podAntiAffinity"] | dislikes(*shy)["podAntiAffinity"],
        }
    ),
    st.lists(TERM, max_size=2),
    st.lists(TERM, max_size=2),
    WEIGHTED,
    WEIGHTED,
)
CLUSTER = st.lists(
    st.dictionaries(st.sampled_from(["zone", "rack", "host"]), st.sampled_from(["1", "2"])), min_size=1, max_size=4
)
LABELS = st.sampled_from([WEB, DB, {}])
SPACE = st.sampled_from(["default", "other", "third"])
PLACED = st.lists(st.tuples(st.integers(0, 3), LABELS, SPACE, st.one_of(st.none(), AFFINITY)), max_size=6)


def made(cluster: list[dict[str, str]], placed: list[Any]) -> tuple[list[Node], list[Pod]]:
    nodes = [node(f"n{i}", **labels) for i, labels in enumerate(cluster)]
    pods = [
        pod(f"p{i}", labels, on=f"n{at % len(nodes)}", namespace=space, affinity=affinity)
        for i, (at, labels, space, affinity) in enumerate(placed)
    ]
    return nodes, pods


@given(CLUSTER, PLACED, AFFINITY, LABELS, SPACE, st.sampled_from([0, 1, 7]))
def test_both_tiers_say_what_the_rules_say(
    cluster: list[dict[str, str]], placed: list[Any], affinity: Any, labels: dict[str, str], space: str, hard: int
) -> None:
    nodes, pods = made(cluster, placed)
    waiting = pod("new", labels, namespace=space, affinity=affinity)
    world, rules = World(*nodes, *TEAMS, *pods), Rules(nodes, pods, waiting, hard)
    plugin = InterPodAffinity(InterPodAffinityArgs(hard_pod_affinity_weight=hard))

    found = world.filter(plugin, waiting)
    if isinstance(found, dict):
        assert found == {one.name: rules.verdict(one) for one in nodes}
    else:
        assert found == Status(Code.SKIP)
        assert all(rules.verdict(one).ok for one in nodes)

    cycle = world.cycle(waiting)
    scored = plugin.pre_score(cycle, cycle.pod, world.nodes).ok
    raw = raw_scores(plugin, cycle, world.nodes).tolist() if scored else [0] * len(nodes)
    assert dict(zip(world.nodes.names, raw, strict=True)) == {one.name: rules.score(one) for one in nodes}


@given(CLUSTER, PLACED, AFFINITY, LABELS, st.integers(0, 5))
def test_what_moves_leave_behind_is_what_counting_again_finds(
    cluster: list[dict[str, str]], placed: list[Any], affinity: Any, labels: dict[str, str], split: int
) -> None:
    nodes, pods = made(cluster, placed)
    staying, moving = pods[:split], pods[split:]
    waiting = pod("new", labels, affinity=affinity | near(term("zone")))
    fewer, more = World(*nodes, *TEAMS, *staying), World(*nodes, *TEAMS, *pods)
    plugin = InterPodAffinity()

    cycle = fewer.cycle(waiting)
    plugin.pre_filter(cycle, cycle.pod, fewer.nodes)
    for one in moving:
        plugin.add_pod(cycle, cycle.pod, PodInfo(one), fewer.named(one.spec.node_name))
    assert described(cycle.get(Requirements)) == counted(more, waiting)

    cycle = more.cycle(waiting)
    plugin.pre_filter(cycle, cycle.pod, more.nodes)
    for one in moving:
        plugin.remove_pod(cycle, cycle.pod, PodInfo(one), more.named(one.spec.node_name))
    assert described(cycle.get(Requirements)) == counted(fewer, waiting)


class Rules:
    """The written rules, applied the long way: every node, every pod on it, every term."""

    def __init__(self, nodes: list[Node], pods: list[Pod], waiting: Pod, hard: int) -> None:
        self.nodes = {one.name: one for one in nodes}
        self.pods, self.waiting, self.hard = pods, waiting, hard

    def means(self, holder: Pod, one: Any, other: Pod, own: bool) -> bool:
        """Whether a term of `holder` means another pod; the waiting pod's own terms see no namespace labels."""
        here = set(one.namespaces)
        if not here and one.namespace_selector is None:
            here = {holder.namespace}
        if one.namespace_selector is not None:
            selector = compile_label_selector(one.namespace_selector)
            spaces = {space.name: space.labels for space in TEAMS if isinstance(space, Namespace)}
            here |= {name for name, labels in spaces.items() if selector.matches(labels)}
            if own and selector.matches({}):
                here.add(other.namespace)
        return other.namespace in here and compile_label_selector(one.label_selector).matches(other.labels)

    def together(self, one: Any, node: Node, other: Pod) -> bool:
        """Whether a node is in the domain another pod is in."""
        there = self.nodes[other.spec.node_name].labels.get(one.topology_key)
        return there is not None and node.labels.get(one.topology_key) == there

    def verdict(self, node: Node) -> Status:
        affinity = self.waiting.spec.affinity
        assert affinity is not None
        assert affinity.pod_affinity is not None
        assert affinity.pod_anti_affinity is not None
        terms = affinity.pod_affinity.required
        if any(one.topology_key not in node.labels for one in terms):
            return FAR
        matching = [p for p in self.pods if terms and all(self.means(self.waiting, one, p, True) for one in terms)]
        if not all(any(self.together(one, node, p) for p in matching) for one in terms):
            counted = any(one.topology_key in self.nodes[p.spec.node_name].labels for p in matching for one in terms)
            if counted or not all(self.means(self.waiting, one, self.waiting, True) for one in terms):
                return FAR
        for one in affinity.pod_anti_affinity.required:
            if any(self.means(self.waiting, one, p, True) and self.together(one, node, p) for p in self.pods):
                return CROWDED
        for other in self.pods:
            held = other.spec.affinity
            if held is not None and held.pod_anti_affinity is not None:
                for one in held.pod_anti_affinity.required:
                    if self.means(other, one, self.waiting, False) and self.together(one, node, other):
                        return REFUSED
        return OK

    def score(self, node: Node) -> int:
        total = 0
        for other in self.pods:
            for holder, target in ((self.waiting, other), (other, self.waiting)):
                affinity = holder.spec.affinity
                if affinity is None:
                    continue
                assert affinity.pod_affinity is not None
                assert affinity.pod_anti_affinity is not None
                own = holder is self.waiting
                weighted = [(one.weight, one.pod_affinity_term) for one in affinity.pod_affinity.preferred]
                weighted += [(-one.weight, one.pod_affinity_term) for one in affinity.pod_anti_affinity.preferred]
                if not own:
                    weighted += [(self.hard, one) for one in affinity.pod_affinity.required]
                total += sum(
                    weight
                    for weight, one in weighted
                    if self.means(holder, one, target, own) and self.together(one, node, other)
                )
        return total
