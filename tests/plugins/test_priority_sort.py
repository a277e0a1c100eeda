from typing import Any

import pytest
from tests.plugins.small_cluster import pod

from kubesched.api.time import Instant
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.queued import QueuedPod
from kubesched.plugins.priority_sort import PrioritySort


def queued(name: str, priority: int | None, added: int) -> QueuedPod:
    spec: dict[str, Any] = {} if priority is None else {"priority": priority}
    return QueuedPod(PodInfo(pod(name, **spec)), Instant(added), seq=0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(queued("a", 10, 5), queued("b", 9, 1), id="a higher priority goes first, however late it came"),
        pytest.param(queued("a", 10, 1), queued("b", 10, 2), id="among equals the earlier goes first"),
        pytest.param(queued("a", None, 5), queued("b", -1, 1), id="no priority is priority 0"),
        pytest.param(queued("a", 2**31 - 1, 5), queued("b", -(2**31), 1), id="the extremes"),
    ],
)
def test_order(first: QueuedPod, second: QueuedPod) -> None:
    key = PrioritySort().key
    assert key(first) < key(second)


def test_the_same_priority_at_the_same_time_is_a_tie() -> None:
    key = PrioritySort().key
    assert key(queued("a", None, 3)) == key(queued("b", 0, 3))
