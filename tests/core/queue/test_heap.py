"""A heap that lets its members change and go, and survives comparisons that fail."""

from hypothesis import given
from hypothesis import strategies as st
from tests.core.queue.bench import at, pod

from kubesched.core.queue.heap import Heap
from kubesched.framework.queued import QueuedPod


def queued(name: str, priority: object = 0, seq: int = 0) -> QueuedPod:
    info = pod(name)
    info.priority = priority  # some tests want keys that do not compare
    return QueuedPod(info, at(0), seq)


def by_priority(pod: QueuedPod) -> int:
    return pod.priority


def drained(heap: Heap) -> list[str]:
    names = []
    while (pod := heap.pop()) is not None:
        names.append(pod.info.name)
    return names


def test_the_smallest_comes_first():
    heap = Heap(by_priority)
    for name, priority in (("c", 3), ("a", 1), ("b", 2)):
        heap.push(queued(name, priority))
    assert drained(heap) == ["a", "b", "c"]


def test_equals_come_in_order_of_arrival():
    heap = Heap(by_priority)
    for seq in (3, 1, 2):
        heap.push(queued(f"p{seq}", 7, seq))
    assert drained(heap) == ["p1", "p2", "p3"]


def test_a_pod_pushed_again_moves_to_its_new_place():
    heap = Heap(by_priority)
    first, second = queued("first", 1), queued("second", 2)
    heap.push(first)
    heap.push(second)
    first.info.priority = 3
    heap.push(first)
    assert len(heap) == 2
    assert drained(heap) == ["second", "first"]


def test_a_pod_taken_out_does_not_come_up():
    heap = Heap(by_priority)
    for name in ("a", "b"):
        heap.push(queued(name))
    assert heap.remove("uid-a") is not None
    assert heap.remove("uid-a") is None
    assert "uid-a" not in heap
    assert heap.get("uid-a") is None
    assert drained(heap) == ["b"]


def test_an_empty_heap_gives_none():
    heap = Heap(by_priority)
    assert heap.peek() is None
    assert heap.pop() is None
    assert len(heap) == 0


def test_keys_that_do_not_compare_come_in_order_of_arrival():
    heap = Heap(by_priority)
    for seq, priority in enumerate((5, "five", None, 4, "four")):
        heap.push(queued(f"p{seq}", priority, seq))
    assert sorted(drained(heap)) == ["p0", "p1", "p2", "p3", "p4"]
    heap.push(queued("late", 9, 9))
    heap.push(queued("soon", 1, 10))
    assert drained(heap) == ["soon", "late"]  # those that do compare still do


def test_a_comparison_that_fails_on_the_way_out_loses_nobody():
    class Moody:
        calm = True

        def __lt__(self, other: object) -> bool:
            if not Moody.calm:
                raise RuntimeError("not now")
            return False

    heap = Heap(by_priority)
    for seq in range(6):
        heap.push(queued(f"p{seq}", Moody(), seq))
    Moody.calm = False
    assert drained(heap) == [f"p{seq}" for seq in range(6)]


def test_what_was_taken_out_is_not_kept_for_ever():
    heap = Heap(by_priority)
    stays = queued("stays", -1)
    heap.push(stays)
    for turn in range(10_000):
        heap.push(queued("goes", turn))
        heap.remove("uid-goes")
    assert len(heap._heap) < 100


@given(st.lists(st.tuples(st.sampled_from(["push", "pop", "remove"]), st.integers(0, 7), st.integers(0, 4))))
def test_it_agrees_with_a_sorted_list(steps):
    heap = Heap(by_priority)
    pods = [queued(f"p{number}", 0, number) for number in range(8)]
    model: list[QueuedPod] = []
    for step, number, priority in steps:
        pod = pods[number]
        if step == "push":
            pod.info.priority = priority
            heap.push(pod)
            model = [p for p in model if p is not pod] + [pod]
        elif step == "remove":
            assert (heap.remove(pod.uid) is pod) == (pod in model)
            model = [p for p in model if p is not pod]
        else:
            expected = min(model, key=lambda p: (p.priority, p.seq), default=None)
            assert heap.pop() is expected
            model = [p for p in model if p is not expected]
        assert len(heap) == len(model)
        assert {p.uid for p in heap} == {p.uid for p in model}
