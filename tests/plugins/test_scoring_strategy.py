import numpy as np
import pytest

from kubesched.plugins.resource_scoring import Load, LoadAll
from kubesched.plugins.scoring_strategy import (
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
    Strategy,
    UtilizationShapePoint,
    broken_linear,
    mean_score,
    mean_scores,
    validate_shape,
)

HUGE = 2**63 - 1


def shape(*points: tuple[int, int]) -> list[UtilizationShapePoint]:
    return [UtilizationShapePoint(utilization=x, score=y) for x, y in points]


def both_tiers(strategy: Strategy, *loads: Load) -> int:
    """The score of one node, both tiers having said the same."""
    columns = [LoadAll(np.array([load.requested]), np.array([load.capacity]), load.weight) for load in loads]
    [together] = mean_scores(strategy, 1, columns).tolist()
    assert together == mean_score(strategy, loads)
    return int(together)


@pytest.mark.parametrize(
    ("loads", "least", "most"),
    [
        pytest.param([Load(0, 4000, 1), Load(0, 10000, 1)], 100, 0, id="nothing requested"),
        pytest.param([Load(3000, 4000, 1), Load(5000, 10000, 1)], 37, 62, id="the mean, cut off"),
        pytest.param([Load(3000, 6000, 1), Load(5000, 10000, 1)], 50, 50, id="half and half"),
        pytest.param([Load(3000, 4000, 1), Load(5000, 10000, 2)], 41, 58, id="weights"),
        pytest.param([Load(4000, 4000, 1)], 0, 100, id="full"),
        pytest.param([Load(6000, 4000, 1), Load(5000, 10000, 1)], 25, 75, id="overfull is full"),
        pytest.param([Load(3000, 4000, 1), Load(5000, 0, 9)], 25, 75, id="what the node has not does not count"),
        pytest.param([Load(5, 0, 1)], 0, 0, id="nothing counts"),
        pytest.param([], 0, 0, id="nothing to look at"),
        pytest.param([Load(1, 3, 1)], 66, 33, id="cut off, not rounded"),
        pytest.param([Load(HUGE // 4, HUGE, 1)], 75, 24, id="past 92 petabytes"),
    ],
)
def test_spreading_and_packing(loads: list[Load], least: int, most: int) -> None:
    assert both_tiers(LeastAllocated(), *loads) == least
    assert both_tiers(MostAllocated(), *loads) == most


@pytest.mark.parametrize(
    ("points", "heights"),
    [
        pytest.param([(10, 1), (90, 9)], {0: 1, 9: 1, 10: 1, 15: 1, 19: 1, 20: 2, 89: 8, 90: 9, 99: 9}, id="rising"),
        pytest.param([(0, 2), (40, 10), (100, 0)], {0: 2, 20: 6, 30: 8, 40: 10, 70: 5, 100: 0}, id="up and down"),
        pytest.param([(0, 2), (40, 2), (100, 2)], {0: 2, 20: 2, 70: 2, 100: 2}, id="level"),
        pytest.param([(0, 10), (3, 0)], {1: 7, 2: 4, 3: 0, 50: 0}, id="falling: differences are cut toward zero"),
        pytest.param([(50, 7)], {0: 7, 50: 7, 100: 7}, id="one point"),
    ],
)
def test_a_line_through_points(points: list[tuple[int, int]], heights: dict[int, int]) -> None:
    assert {at: broken_linear(points, at) for at in heights} == heights


EMPTIER = RequestedToCapacityRatio(shape((0, 10), (100, 0)))
FULLER = RequestedToCapacityRatio(shape((0, 0), (100, 10)))


@pytest.mark.parametrize(
    ("strategy", "loads", "expected"),
    [
        pytest.param(EMPTIER, [Load(0, 4000, 1), Load(0, 10000, 1)], 100, id="nothing requested"),
        pytest.param(EMPTIER, [Load(3000, 4000, 1), Load(5000, 10000, 1)], 38, id="the mean, rounded"),
        pytest.param(FULLER, [Load(3000, 4000, 1), Load(5000, 10000, 1)], 63, id="the other way, rounded up, too"),
        pytest.param(FULLER, [Load(0, 4000, 1), Load(5000, 10000, 1)], 50, id="what scores 0 does not count"),
        pytest.param(EMPTIER, [Load(9000, 4000, 3), Load(5000, 10000, 1)], 50, id="overfull scores as full"),
        pytest.param(FULLER, [Load(9000, 4000, 3), Load(5000, 10000, 5)], 69, id="weights"),
        pytest.param(FULLER, [Load(0, 4000, 1)], 0, id="all score 0"),
        pytest.param(FULLER, [Load(5, 0, 1)], 0, id="nothing counts"),
        pytest.param(RequestedToCapacityRatio(shape((0, 3))), [Load(1, 2, 1)], 30, id="a shape's 10 is 100"),
        pytest.param(FULLER, [Load(HUGE // 4, HUGE, 1)], 24, id="past 92 petabytes"),
    ],
)
def test_scoring_by_shape(strategy: Strategy, loads: list[Load], expected: int) -> None:
    assert both_tiers(strategy, *loads) == expected


def test_an_extended_resource_is_packed() -> None:
    """Two nodes with four and eight devices; the pod wants two."""
    scores = mean_scores(FULLER, 2, [LoadAll(np.array([2, 6]), np.array([4, 8]), 1)])
    assert scores.tolist() == [50, 75]


@pytest.mark.parametrize(
    ("points", "problems"),
    [
        ([(0, 0), (100, 10)], []),
        ([(50, 5)], []),
        ([], [("shape", "Required value: at least one point must be specified")]),
        (
            [(0, 0), (0, 1), (0, 2)],
            [("shape[1].utilization", "Invalid value: 0: values must be sorted in increasing order")],
        ),
        ([(-1, 0)], [("shape[0].utilization", "Invalid value: -1: not in valid range [0, 100]")]),
        (
            [(0, -1), (101, 11)],
            [
                ("shape[0].score", "Invalid value: -1: not in valid range [0, 10]"),
                ("shape[1].utilization", "Invalid value: 101: not in valid range [0, 100]"),
                ("shape[1].score", "Invalid value: 11: not in valid range [0, 10]"),
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_shape(points: list[tuple[int, int]], problems: list[tuple[str, str]]) -> None:
    assert list(validate_shape(shape(*points), "shape")) == problems
