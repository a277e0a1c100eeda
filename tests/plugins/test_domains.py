"""Pods counted by row and by domain: what is kept between questions is what counting again would find."""

from hypothesis import given
from hypothesis import strategies as st
from tests.plugins.neighbourhood import World, node, pod

from kubesched.api.objects import Pod
from kubesched.api.selectors import selector_from_map
from kubesched.cluster.neighbours import MANY, by_row
from kubesched.cluster.podinfo import PodInfo
from kubesched.plugins.domains import DomainCounts, Gathering, counted_pods, pods_by_row

FOO = {"foo": ""}
NODES = 2 * MANY
ON = st.integers(0, NODES - 1)


def crowd() -> tuple[World, list[Pod]]:
    """A pod on every other node: enough rows for counts that are kept."""
    pods = [pod(f"p{i}", FOO, on=f"n{i}") for i in range(0, NODES, 2)]
    return World(*(node(f"n{i}", zone=f"z{i % 3}") for i in range(NODES)), *pods), pods


def tally(world: World) -> list[int]:
    table = world.mirror.table
    return list(pods_by_row(table, counted_pods(table, "default", selector_from_map(FOO))).tolist())


def looked_up(world: World) -> list[int]:
    table = world.mirror.table
    on_rows = [sum(one.labels == FOO for one in pods) for pods in table.pods]
    return on_rows + [0] * (len(table.generation) - len(on_rows))


@given(st.lists(st.one_of(ON, ON.map(lambda i: -1 - i)), max_size=20))
def test_counts_by_row_follow_every_pod_that_comes_and_goes(moves: list[int]) -> None:
    world, pods = crowd()
    assert tally(world) == looked_up(world)

    for step, move in enumerate(moves):
        if move >= 0:
            world.mirror.assume(PodInfo(pod(f"more{step}", FOO)), f"n{move}")
        elif pods:
            world.mirror.observe(pods.pop(move % len(pods)), gone=True)
        assert tally(world) == looked_up(world)


def test_counts_by_row_survive_the_table_growing() -> None:
    world, _ = crowd()
    tally(world)
    size = len(world.mirror.table.generation)

    for i in range(NODES, size + 1):
        world.mirror.observe(node(f"n{i}"))
        world.mirror.observe(pod(f"late{i}", FOO, on=f"n{i}"))

    assert len(world.mirror.table.generation) > size
    assert tally(world) == looked_up(world)


def test_a_forked_table_counts_for_itself() -> None:
    world, pods = crowd()
    before = tally(world)
    twin = world.mirror.table.fork()

    world.mirror.observe(pods[0], gone=True)

    assert pods_by_row(twin, counted_pods(twin, "default", selector_from_map(FOO))).tolist() == before
    assert tally(world) != before


def test_counts_of_few_pods_are_the_same_and_not_kept() -> None:
    world = World(node("a"), node("b"), pod("p", FOO, on="b"))
    table = world.mirror.table
    [group] = table.neighbours.classes("default")
    assert by_row(group, len(table.generation)).tolist() == looked_up(world)
    assert group.column is None


def test_weights_and_groups_add_up_by_domain() -> None:
    world, _ = crowd()
    world.mirror.observe(pod("bar", {"bar": ""}, on="n1"))
    table = world.mirror.table
    gathering = Gathering()
    for group in table.neighbours.classes("default"):
        gathering.add("zone", group, 2 if "foo" in group.labels else -100)

    total = gathering.total(table)

    zones = [i % 3 for i in range(0, NODES, 2)]
    assert total.of("zone") == {"z0": 2 * zones.count(0), "z1": 2 * zones.count(1) - 100, "z2": 2 * zones.count(2)}
    assert total.keys == ("zone",)


def test_what_was_counted_and_came_out_as_nothing_is_still_known_to_have_been_counted() -> None:
    world = World(node("a", zone="z"), node("bare"))
    counts = DomainCounts(world.mirror.table)
    row, bare = world.named("a").row, world.named("bare").row

    counts.add("zone", bare, 1)
    assert not counts.keys
    counts.add("zone", row, 1)
    assert counts
    assert (counts.at("zone", row), counts.at("zone", bare), counts.at("rack", row)) == (1, 0, 0)
    counts.add("zone", row, -1)

    assert not counts
    assert counts.keys == ("zone",)
