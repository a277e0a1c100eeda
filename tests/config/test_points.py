"""multiPoint is spread over the extension points: in which order, what overrides what, and what is refused."""

import pytest

from kubesched.config.points import mentioned, spread, weights_of
from kubesched.config.schema import PluginRef, Plugins, PluginSet
from kubesched.framework.errors import ConfigError

HOOKS = {
    "A": ("preFilter", "filter", "score"),
    "B": ("filter", "score"),
    "C": ("filter",),
    "D": ("score", "bind"),
    "Q": ("queueSort",),
    "N": (),
}


def refs(names: str) -> tuple[PluginRef, ...]:
    return tuple(
        PluginRef(name=name.partition(":")[0], weight=int(name.partition(":")[2] or 0)) for name in names.split()
    )


def plugins(**sets: tuple[str, str] | str) -> Plugins:
    pairs = {point: (said, "") if isinstance(said, str) else said for point, said in sets.items()}
    return Plugins(**{point: PluginSet(enabled=refs(on), disabled=refs(off)) for point, (on, off) in pairs.items()})


@pytest.mark.parametrize(
    ("given", "point", "order"),
    [
        (plugins(multi_point="A B C D"), "filter", "A B C"),
        (plugins(multi_point="A B C D"), "score", "A B D"),
        (plugins(multi_point="A B C D"), "bind", "D"),
        (plugins(multi_point="A B C D"), "permit", ""),
        (plugins(multi_point="Q A"), "queueSort", "Q"),
        (plugins(multi_point="C B A"), "filter", "C B A"),
        # listed at the point as well: first, in the point's order
        (plugins(multi_point="A B C", filter="C"), "filter", "C A B"),
        (plugins(multi_point="A B C", filter="C B"), "filter", "C B A"),
        # listed only at the point: last
        (plugins(multi_point="A B", filter="C"), "filter", "A B C"),
        (plugins(multi_point="A B", filter="C B"), "filter", "B A C"),
        # disabled at the point
        (plugins(multi_point="A B C", filter=("", "B")), "filter", "A C"),
        (plugins(multi_point="A B C", filter=("", "B")), "score", "A B"),
        (plugins(multi_point="A B C", filter=("", "*")), "filter", ""),
        (plugins(multi_point="A B C", filter=("B", "*")), "filter", "B"),
        (plugins(multi_point="A B C", filter=("A", "A")), "filter", "B C A"),
        # what multiPoint disables was taken out when it was merged; here it changes nothing
        (plugins(multi_point=("A B", "C")), "filter", "A B"),
        (plugins(), "filter", ""),
    ],
)
def test_the_order_at_a_point(given: Plugins, point: str, order: str) -> None:
    assert " ".join(spread(given, HOOKS.__getitem__)[point]) == order


@pytest.mark.parametrize(
    ("given", "path", "problem"),
    [
        (plugins(filter="D"), "filter.enabled[0].name", 'plugin "D" does not extend FilterPlugin plugin'),
        (plugins(permit="A"), "permit.enabled[0].name", 'plugin "A" does not extend PermitPlugin plugin'),
        (
            plugins(placement_score="A"),
            "placementScore.enabled[0].name",
            'plugin "A" does not extend PlacementScorePlugin plugin',
        ),
        (plugins(score="A B A"), "score.enabled[2].name", 'plugin "A" already registered as "ScorePlugin"'),
        (
            plugins(multi_point="A A"),
            "multiPoint.enabled[1].name",
            'plugin "A" already registered as "PreFilterPlugin"',
        ),
        (plugins(multi_point="D D"), "multiPoint.enabled[1].name", 'plugin "D" already registered as "ScorePlugin"'),
        (
            plugins(multi_point="B B", filter=("", "*")),
            "multiPoint.enabled[1].name",
            'plugin "B" already registered as "ScorePlugin"',
        ),
        # a point's own list is looked at before multiPoint
        (plugins(multi_point="A A", bind="C"), "bind.enabled[0].name", 'plugin "C" does not extend BindPlugin plugin'),
    ],
)
def test_what_cannot_be_spread_is_refused_with_its_place(given: Plugins, path: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        spread(given, HOOKS.__getitem__)

    assert (caught.value.path, caught.value.problem) == (path, problem)


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        (plugins(multi_point="A:3 B"), {"A": 3, "B": 1}),
        (plugins(multi_point="A:3 B", score="A:5"), {"A": 5, "B": 1}),
        (plugins(multi_point="A:3", score="A"), {"A": 1}),
        (plugins(multi_point="A:3", filter="A:5"), {"A": 3}),
        (plugins(score="A:-2"), {"A": -2}),
    ],
)
def test_a_weight_at_score_counts_before_one_in_multi_point_and_none_is_one(
    given: Plugins, weights: dict[str, int]
) -> None:
    assert weights_of(given) == weights


def test_plugins_are_mentioned_first_by_their_points() -> None:
    assert mentioned(plugins(multi_point="A B", score="B", bind="D")) == {
        "B": "score.enabled[0]",
        "D": "bind.enabled[0]",
        "A": "multiPoint.enabled[0]",
    }
