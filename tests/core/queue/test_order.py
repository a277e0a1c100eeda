"""Who comes first."""

from tests.core.queue.bench import Bench, pod


class Sort:
    def __init__(self, key):
        self._key = key

    def key(self, pod):
        return self._key(pod)


class Reverse:
    """Low priority first."""

    def less(self, a, b):
        return a.priority < b.priority


class Broken:
    def less(self, a, b):
        raise KeyError("no order today")


def fill(bench: Bench, **priorities: int) -> Bench:
    for name, priority in priorities.items():
        bench.add(pod(name, priority=priority))
    return bench


def test_without_a_plugin_the_higher_priority_is_first_then_the_older():
    bench = Bench()
    for name, priority, since in (("low", 1, 0), ("late", 5, 2), ("early", 5, 1), ("high", 9, 3)):
        bench.add(pod(name, priority=priority), since)
    assert bench.drain(4) == ["high", "early", "late", "low"]


def test_pods_added_at_the_same_instant_keep_their_order():
    assert fill(Bench(), b=1, a=1, c=1).drain() == ["b", "a", "c"]


def test_a_plugin_with_a_key_decides():
    bench = fill(Bench(Sort(lambda pod: (pod.info.name,))), c=9, a=1, b=5)
    assert bench.drain() == ["a", "b", "c"]


def test_a_plugin_with_less_decides_and_ties_go_by_arrival():
    bench = fill(Bench(Reverse()), high=9, second=1, third=1, middle=5)
    assert bench.drain() == ["second", "third", "middle", "high"]


def test_a_pod_whose_key_cannot_be_worked_out_comes_last():
    bench = fill(Bench(Sort(lambda pod: {"a": (1,), "b": (2,)}[pod.info.name])), x=9, b=0, y=9, a=0)
    assert bench.drain() == ["a", "b", "x", "y"]
    assert bench.kube.problems == {("Sort", "key"): "raised KeyError('y')"}


def test_keys_that_do_not_compare_do_not_stop_the_queue():
    keys = {"a": (1,), "b": ("one",), "c": None, "d": (0,)}
    bench = fill(Bench(Sort(lambda pod: keys[pod.info.name])), a=0, b=0, c=0, d=0)
    assert sorted(bench.drain()) == ["a", "b", "c", "d"]


def test_a_less_that_raises_leaves_the_order_of_arrival():
    bench = fill(Bench(Broken()), b=1, a=9, c=5)
    assert bench.drain() == ["b", "a", "c"]
    assert bench.kube.problems == {("Broken", "less"): "raised KeyError('no order today')"}
