"""From a configuration to profiles and a core: every point, every order, and every way it can fail."""

from typing import Any

import pytest

from kubesched.api.time import minutes, seconds
from kubesched.assemble import build, default_profile, extenders_of, profiles_of
from kubesched.config.load import load
from kubesched.config.registry import Registry
from kubesched.config.schema import Configuration, ProfileConfig
from kubesched.core.messages import Bind
from kubesched.core.queue import SimpleQueue
from kubesched.core.schedule import enough
from kubesched.framework.errors import ConfigError
from kubesched.framework.features import Features
from kubesched.framework.hooks import name_of
from kubesched.framework.profile import Profile
from kubesched.framework.status import SUCCESS
from kubesched.plugins import IN_TREE
from kubesched.testing.builders import node, pod
from kubesched.testing.harness import fail, observe, tick


def profile(plugins: dict[str, Any] | None = None, *, registry: Registry | None = None, **fields: Any) -> Profile:
    """The one profile of a configuration."""
    if plugins is not None:
        fields["plugins"] = plugins
    [made] = profiles_of(load({"profiles": [fields]}, registry=registry), registry=registry).values()
    return made


def names(made: Profile, point: str) -> str:
    return " ".join(name_of(plugin) for plugin in made.points[point])


def enabled(*refs: str) -> dict[str, Any]:
    """`"A:3"` is A with weight 3."""
    return {
        "enabled": [{"name": ref.partition(":")[0], "weight": int(ref.partition(":")[2] or 0)} for ref in refs],
    }


def disabled(*refs: str) -> dict[str, Any]:
    return {"disabled": [{"name": ref} for ref in refs]}


# ── the default profile ──────────────────────────────────────────────────────────────────────────────────────

DEFAULT = {
    "preEnqueue": "SchedulingGates DynamicResources DefaultPreemption",
    "queueSort": "PrioritySort",
    "preFilter": (
        "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone "
        "PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"
    ),
    "filter": (
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions "
        "NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources "
        "NodeDeclaredFeatures"
    ),
    "postFilter": "DynamicResources DefaultPreemption",
    "preScore": (
        "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
        "NodeResourcesBalancedAllocation"
    ),
    "score": (
        "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
        "DynamicResources NodeResourcesBalancedAllocation ImageLocality"
    ),
    "reserve": "VolumeBinding DynamicResources",
    "permit": "",
    "preBind": "VolumeBinding DynamicResources",
    "bind": "DefaultBinder",
    "postBind": "",
}
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


@pytest.mark.parametrize("point", DEFAULT)
def test_the_default_profile_has_the_plugins_of_kube_scheduler_in_its_order(point: str) -> None:
    assert names(default_profile(), point) == DEFAULT[point]


def test_and_its_weights() -> None:
    made = default_profile()

    assert made.weights == WEIGHTS
    assert (made.name, made.percentage_of_nodes_to_score, made.tie) == ("default-scheduler", None, "seeded")


def test_a_profile_shares_one_instance_among_its_points_and_none_with_others() -> None:
    a, b = profiles_of(load({"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]})).values()

    assert len(a.plugins) == len(IN_TREE)
    assert not {id(plugin) for plugin in a.plugins} & {id(plugin) for plugin in b.plugins}


# ── what a configuration changes ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("plugins", "point", "expected"),
    [
        (
            {"multiPoint": disabled("NodeResourcesFit", "VolumeBinding")},
            "preScore",
            "TaintToleration NodeAffinity PodTopologySpread InterPodAffinity NodeResourcesBalancedAllocation",
        ),
        ({"multiPoint": disabled("VolumeBinding", "DynamicResources")}, "reserve", ""),
        ({"score": disabled("*")}, "score", ""),
        ({"score": disabled("*")}, "filter", DEFAULT["filter"]),
        ({"filter": {**disabled("*"), **enabled("NodeName", "NodePorts")}}, "filter", "NodeName NodePorts"),
        ({"filter": {**disabled("*"), **enabled("NodeName", "NodePorts")}}, "preFilter", DEFAULT["preFilter"]),
        (
            {"score": enabled("ImageLocality:5", "NodeAffinity:7")},
            "score",
            (
                "ImageLocality NodeAffinity TaintToleration NodeResourcesFit VolumeBinding PodTopologySpread "
                "InterPodAffinity DynamicResources NodeResourcesBalancedAllocation"
            ),
        ),
        (
            {"postFilter": {**disabled("DefaultPreemption"), **enabled("DefaultPreemption")}},
            "postFilter",
            "DynamicResources DefaultPreemption",
        ),
        (
            {"multiPoint": {**disabled("*"), **enabled("NodeName", "PrioritySort", "DefaultBinder", "NodePorts")}},
            "filter",
            "NodeName NodePorts",
        ),
        (
            {"multiPoint": {**disabled("NodeName"), **enabled("NodeName")}},
            "filter",
            DEFAULT["filter"].replace("NodeName ", "") + " NodeName",
        ),
    ],
)
def test_a_profile_says_who_takes_part_where(plugins: dict[str, Any], point: str, expected: str) -> None:
    assert names(profile(plugins), point) == expected


@pytest.mark.parametrize(
    ("plugins", "name", "weight"),
    [
        ({"score": enabled("NodeAffinity:5")}, "NodeAffinity", 5),
        ({"score": enabled("NodeAffinity")}, "NodeAffinity", 1),
        ({"multiPoint": enabled("NodeAffinity:5")}, "NodeAffinity", 5),
        ({"multiPoint": enabled("NodeAffinity")}, "NodeAffinity", 1),
        ({"multiPoint": enabled("NodeAffinity:5"), "score": enabled("NodeAffinity:6")}, "NodeAffinity", 6),
        ({"filter": enabled("NodeAffinity:5")}, "NodeAffinity", 2),
    ],
)
def test_a_weight_comes_from_score_or_else_from_multi_point(plugins: dict[str, Any], name: str, weight: int) -> None:
    assert profile(plugins).weights == {**WEIGHTS, name: weight}


def test_arguments_reach_the_plugin_of_their_profile_only() -> None:
    args = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 50}}
    raw = {"profiles": [{"schedulerName": "a", "pluginConfig": [args]}, {"schedulerName": "b"}]}

    found = profiles_of(load(raw))

    weights = {
        name: plugin.args.hard_pod_affinity_weight
        for name, made in found.items()
        for plugin in made.plugins
        if name_of(plugin) == "InterPodAffinity"
    }
    assert weights == {"a": 50, "b": 1}


def test_a_gate_that_is_off_takes_its_plugin_out() -> None:
    made = default_profile(features=Features(node_declared_features=False))

    assert "NodeDeclaredFeatures" not in names(made, "filter").split()


@pytest.mark.parametrize(
    ("everywhere", "here", "count", "wanted"),
    [
        (None, None, 5000, 5000),  # not said: every node
        (0, None, 5000, 500),  # as kube-scheduler chooses: 50 - 5000/125 = 10 percent
        (0, None, 99, 99),
        (None, 0, 6000, 300),  # never less than 5 percent
        (None, 0, 1000, 420),
        (50, None, 1000, 500),
        (50, 20, 1000, 200),
        (0, 30, 1000, 300),
        (50, 0, 1000, 420),
        (1, None, 1000, 100),  # never less than 100 nodes
        (100, None, 1000, 1000),
    ],
)
def test_how_many_feasible_nodes_are_enough(everywhere: int | None, here: int | None, count: int, wanted: int) -> None:
    raw = {"percentageOfNodesToScore": everywhere, "profiles": [{"percentageOfNodesToScore": here}]}

    [made] = profiles_of(load(raw)).values()

    assert enough(made, count) == wanted


# ── what cannot be assembled ─────────────────────────────────────────────────────────────────────────────────


class Sorter:
    """Another order."""

    name = "Sorter"

    def __init__(self, args: dict[str, Any] | None = None) -> None:
        self.args = args

    def key(self, pod):
        return ()


SORTERS = Registry({"Sorter": Sorter})
FIRST_FILTER = "profiles[0].plugins.filter.enabled[0].name"


@pytest.mark.parametrize(
    ("plugins", "path", "problem"),
    [
        ({"filter": enabled("Foo")}, FIRST_FILTER, 'FilterPlugin "Foo" does not exist'),
        ({"score": enabled("Foo")}, "profiles[0].plugins.score.enabled[0].name", 'ScorePlugin "Foo" does not exist'),
        (
            {"multiPoint": {**disabled("*"), **enabled("Foo")}},
            "profiles[0].plugins.multiPoint.enabled[0].name",
            'PreFilterPlugin "Foo" does not exist',
        ),
        (
            {"filter": enabled("DefaultBinder")},
            FIRST_FILTER,
            'plugin "DefaultBinder" does not extend FilterPlugin plugin',
        ),
        (
            {"filter": enabled("NodeName", "NodeName")},
            "profiles[0].plugins.filter.enabled[1].name",
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        (
            {"multiPoint": {**disabled("*"), **enabled("NodeName", "NodeName")}},
            "profiles[0].plugins.multiPoint.enabled[1].name",
            'plugin "NodeName" already registered as "FilterPlugin"',
        ),
        (
            {"queueSort": disabled("PrioritySort")},
            "profiles[0].plugins.queueSort",
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
        ),
        (
            {"queueSort": enabled("Sorter")},
            "profiles[0].plugins",
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 2',
        ),
        (
            {"bind": disabled("*")},
            "profiles[0].plugins.bind",
            'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ),
        (
            {"score": enabled("NodeName")},
            "profiles[0].plugins.score.enabled[0].name",
            'plugin "NodeName" does not extend ScorePlugin plugin',
        ),
        (
            {"score": {**disabled("*"), **enabled("ImageLocality:-1")}},
            "profiles[0].plugins",
            "score plugins: total score of Score plugins could overflow",
        ),
        (
            {"placementScore": enabled("NodeResourcesFit")},
            "profiles[0].plugins.placementScore.enabled[0].name",
            'plugin "NodeResourcesFit" does not extend PlacementScorePlugin plugin',
        ),
    ],
)
def test_a_profile_that_cannot_be_made_is_told_where_and_why(plugins: dict[str, Any], path: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        profile(plugins, registry=SORTERS)

    assert (caught.value.path, caught.value.problem) == (path, problem)


@pytest.mark.parametrize(
    ("profiles", "path", "problem"),
    [
        (
            [{}, {"multiPoint": {**disabled("PrioritySort"), **enabled("Sorter")}}],
            "profiles[1].plugins.queueSort",
            'different queue sort plugins for profile "p1": "Sorter", first: "PrioritySort"',
        ),
        (
            [{"multiPoint": {**disabled("PrioritySort"), **enabled("Sorter")}}] * 2,
            "profiles[1].plugins.queueSort",
            'different queue sort plugin args for profile "p1"',
        ),
    ],
)
def test_profiles_that_sort_differently_cannot_share_a_queue(
    profiles: list[dict[str, Any]], path: str, problem: str
) -> None:
    raw = {
        "profiles": [
            {"schedulerName": f"p{i}", "plugins": plugins, "pluginConfig": [{"name": "Sorter", "args": {"for": i}}]}
            for i, plugins in enumerate(profiles)
        ]
    }

    with pytest.raises(ConfigError) as caught:
        profiles_of(load(raw, registry=SORTERS), registry=SORTERS)

    assert (caught.value.path, caught.value.problem) == (path, problem)


def test_profiles_of_one_name_cannot_be_told_apart_even_by_a_program() -> None:
    twins = Configuration(profiles=(ProfileConfig(scheduler_name="a"), ProfileConfig(scheduler_name="a")))

    with pytest.raises(ConfigError, match='duplicate profile with scheduler name "a"'):
        profiles_of(twins)


# ── extenders ────────────────────────────────────────────────────────────────────────────────────────────────


def extender(**fields: Any) -> dict[str, Any]:
    return {"urlPrefix": "https://e/", **fields}


def test_extenders_that_may_be_ignored_are_asked_last_and_keep_their_numbers() -> None:
    raw = {"extenders": [extender(ignorable=True), extender(), extender(ignorable=True), extender()]}

    assert [one.number for one in extenders_of(load(raw).extenders)] == [1, 3, 0, 2]


def test_every_profile_has_every_extender_as_it_is_configured() -> None:
    raw = {
        "profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}],
        "extenders": [
            extender(
                filterVerb="f",
                prioritizeVerb="p",
                preemptVerb="e",
                bindVerb="b",
                weight=3,
                nodeCacheCapable=True,
                managedResources=[{"name": "example.com/a"}, {"name": "example.com/b"}],
            )
        ],
    }

    a, b = profiles_of(load(raw)).values()

    [one] = a.extenders
    assert b.extenders == a.extenders
    assert (one.filter_verb, one.prioritize_verb, one.preempt_verb, one.bind_verb) == ("f", "p", "e", "b")
    assert (one.weight, one.node_cache_capable, one.ignorable) == (3, True, False)
    assert one.managed_resources == ("example.com/a", "example.com/b")


COUNTED = {
    "extenders": [
        extender(managedResources=[{"name": "e.com/a", "ignoredByScheduler": True}, {"name": "e.com/b"}]),
        extender(managedResources=[{"name": "e.com/c", "ignoredByScheduler": True}]),
    ]
}


@pytest.mark.parametrize("args", [None, {"ignoredResources": ["e.com/z"]}])
def test_what_an_extender_counts_replaces_what_fit_ignores(args: dict[str, Any] | None) -> None:
    config = [{"name": "NodeResourcesFit", "args": args}]
    [made] = profiles_of(load({**COUNTED, "profiles": [{"pluginConfig": config}]})).values()

    [fit] = [plugin for plugin in made.plugins if name_of(plugin) == "NodeResourcesFit"]

    assert fit.args.ignored_resources == ("e.com/a", "e.com/c")


def test_it_cannot_be_told_to_a_profile_without_fit() -> None:
    without = {"plugins": {"multiPoint": disabled("NodeResourcesFit")}}

    with pytest.raises(ConfigError) as caught:
        profiles_of(load({**COUNTED, "profiles": [without]}))

    assert caught.value.problem == "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"


# ── the core ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_core_without_a_configuration_is_the_default_scheduler() -> None:
    core = build()
    observe(core, node("n1"), pod("a", cpu=1))

    [bind] = tick(core)

    assert isinstance(bind, Bind)
    assert (bind.pod, bind.node) == ("default/a", "n1")


def test_each_profile_serves_the_pods_that_name_it() -> None:
    text = {
        "profiles": [
            {"schedulerName": "spread"},
            {
                "schedulerName": "pack",
                "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
                "plugins": {"score": {**disabled("*"), **enabled("NodeResourcesFit")}},
            },
        ]
    }
    core = build(load(text), tie="name")
    observe(core, node("n1", cpu=4), node("n2", cpu=4), pod("there", cpu=1, on="n2"))

    observe(core, pod("a", cpu=1, scheduler="spread"))
    [spread] = [effect for effect in tick(core) if isinstance(effect, Bind)]
    observe(core, pod("b", cpu=1, scheduler="pack"), pod("c", cpu=1, scheduler="somebody-else"))
    [pack] = [effect for effect in tick(core) if isinstance(effect, Bind)]

    assert (spread.node, pack.node) == ("n1", "n1")
    assert core.why("default/c") is None


@pytest.mark.parametrize(
    ("backoff", "wakes"),
    [({}, 2), ({"podInitialBackoffSeconds": 4}, 5), ({"podInitialBackoffSeconds": 7, "podMaxBackoffSeconds": 7}, 8)],
)
def test_backoff_seconds_reach_the_queue(backoff: dict[str, int], wakes: int) -> None:
    core = build(load(backoff))
    observe(core, node("n1"), pod("a"))
    [bind] = tick(core)

    fail(core, bind, "Forbidden")

    assert core.deadline == seconds(wakes)


def test_the_longest_sleep_is_said_on_the_command_line() -> None:
    core = build(parked_max=minutes(2))
    observe(core, node("n1", cpu=1), pod("a", cpu=2))

    tick(core)

    assert core.deadline is not None
    assert minutes(2) <= core.deadline <= minutes(2) + seconds(31)


def test_another_queue_may_take_the_place_of_the_configured_one() -> None:
    queue = SimpleQueue()

    assert build(queue=queue).queue is queue


def test_what_a_program_brings_along_takes_part() -> None:
    class Anywhere:
        def filter(self, cycle, pod, node):
            return SUCCESS

    registry = Registry({"Anywhere": Anywhere})

    made = profile({"filter": enabled("Anywhere")}, registry=registry)

    assert names(made, "filter") == DEFAULT["filter"] + " Anywhere"
