import numpy as np
import pytest

from kubesched.plugins.normalize import default_normalize


@pytest.mark.parametrize(
    ("raw", "reverse", "expected"),
    [
        ([1, 2, 3, 4], False, [25, 50, 75, 100]),
        ([1, 2, 3, 4], True, [75, 50, 25, 0]),
        ([1000, 10, 20, 30], False, [100, 1, 2, 3]),
        ([1000, 10, 20, 30], True, [0, 99, 98, 97]),
        ([1, 1, 1, 1], False, [100, 100, 100, 100]),
        ([1, 1, 1, 1], True, [0, 0, 0, 0]),
        ([1, 2, 3], False, [33, 66, 100]),
        ([1, 2, 3], True, [67, 34, 0]),
        ([0, 0], False, [0, 0]),
        ([0, 0], True, [100, 100]),
        ([-1, 3], False, [-33, 100]),
        ([-5, -1], False, [-5, -1]),
        ([], False, []),
        ([], True, []),
    ],
)
def test_the_highest_becomes_a_hundred(raw: list[int], reverse: bool, expected: list[int]) -> None:
    assert default_normalize(np.array(raw, dtype=np.int64), reverse=reverse).tolist() == expected


def test_the_scores_given_are_not_changed() -> None:
    raw = np.array([1, 2], dtype=np.int64)
    default_normalize(raw, reverse=True)
    assert raw.tolist() == [1, 2]
