"""A journal is a complete account: it is read as it was written, replays to the same bytes, and names its damage."""

import errno
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from kubesched.api.objects import Pod
from kubesched.api.time import Instant, seconds
from kubesched.assemble import build, default_profile
from kubesched.cli.replay import core_of
from kubesched.config.registry import Registry
from kubesched.core.core import Core
from kubesched.core.messages import Completed, EffectId, Observed, Synced, Tick
from kubesched.drive.journal import VERSION, Divergence, Head, Journal, JournalError, Reading, replay, unused
from kubesched.framework.features import Features
from kubesched.framework.profile import Profile
from kubesched.framework.records import State
from kubesched.framework.steps import Answer, Failure
from kubesched.plugins.contrib.node_crd_resource_fit import ClusterScopedResource
from kubesched.sim import Simulation
from kubesched.testing.builders import node, pod


def simple_run(path: Path) -> Simulation:
    """Two pods and room for one; a second node comes later."""
    with Simulation(Core(default_profile()), journal=path) as simulation:
        create = simulation.client.create
        create({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}})
        wants = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
        for name in ("a", "b"):
            create({"kind": "Pod", "metadata": {"name": name}, "spec": wants})
        late = {"kind": "Node", "metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
        simulation.at(seconds(5), lambda: create(late))
        simulation.run(until=seconds(20))
    return simulation


def fresh(head: Head) -> Core:
    return Core(default_profile(), seed=head.seed, wait_for=head.wait_for)


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_a_replayed_journal_gives_the_same_bytes_and_the_same_state(tmp_path: Path):
    simulation = simple_run(tmp_path / "run.jsonl")
    reading = Reading(tmp_path / "run.jsonl")
    core = fresh(reading.head)

    count = replay(reading, core)

    assert count == simulation.core.position > 15
    assert not reading.cut
    assert list(core.life.recent) == list(simulation.core.life.recent)
    assert [core.story(f"default/{name}")[-1].note for name in "ab"] == ["n1", "n2"]


def test_a_replay_stops_where_it_is_told(tmp_path: Path):
    simulation = simple_run(tmp_path / "run.jsonl")
    reading = Reading(tmp_path / "run.jsonl")
    core = fresh(reading.head)
    replay(reading, core, until=Instant(simulation.world.start + seconds(4)))
    assert core.state("default/b") is not None
    assert core.state("default/b").value == "Parked"


def test_another_seed_in_the_head_is_a_divergence_that_says_where(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    simple_run(path)
    told = path.read_bytes().replace(b'"node":"n1"', b'"node":"n9"')
    path.write_bytes(told)
    reading = Reading(path)
    with pytest.raises(Divergence) as caught:
        replay(reading, fresh(reading.head))
    text = str(caught.value)
    assert "(Tick) has another outcome than the journal says, at its effect 1" in text
    assert '"node":"n9"' in text.splitlines()[1]
    assert '"node":"n1"' in text.splitlines()[2]


def test_an_effect_too_few_is_a_divergence(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    simple_run(path)
    path.write_bytes(b"".join(line for line in lines(path) if b'"effect":"Bind"' not in line))
    reading = Reading(path)
    with pytest.raises(Divergence, match="journal: nothing"):
        replay(reading, fresh(reading.head))


@pytest.mark.parametrize(
    "event",
    [
        Tick(),
        Synced(("Node", "Pod")),
        Observed(node("n1", cpu="1500m", taints=["gpu=yes:NoSchedule"])),
        Observed(pod("a", cpu=1.5, labels={"ключ": "\u2028"}), gone=True),
        Completed(EffectId(7), Answer(failure=Failure("Timeout", "no answer", applied="unknown"))),
        Completed(EffectId(8), Answer(obj=pod("a", on="n1"), data={"x": [1, None]})),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_is_read_as_it_was_written(tmp_path: Path, event: Any):
    with Journal(tmp_path / "j", Head(VERSION)) as journal:
        journal.append(Instant(1_234_567_890_123_456_789), event)
    [entry] = Reading(tmp_path / "j")
    assert (entry.number, entry.at, entry.event) == (1, 1_234_567_890_123_456_789, event)
    assert entry.effects is None, "the writer may have died before it could answer"


def test_an_event_without_effects_is_known_to_have_none_once_another_follows(tmp_path: Path):
    with Journal(tmp_path / "j", Head(VERSION)) as journal:
        journal.append(Instant(1), Tick())
        journal.answer([])
        journal.append(Instant(2), Tick())
    first, last = Reading(tmp_path / "j")
    assert first.effects == b"[]"
    assert last.effects is None


def test_what_a_crash_leaves_counts_up_to_its_last_whole_line(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    simple_run(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    reading = Reading(path)
    numbers = [entry.number for entry in reading]
    assert numbers == list(range(1, len(numbers) + 1))
    assert reading.cut


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────

HEAD = b'{"journal":1}\n'
TICK = b'{"at":"2026-01-01T00:00:00.000000000Z","event":{"event":"Tick"},"n":%d}\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty; a journal begins with a head"),
        (b'{"journal":1', "its only line is cut"),
        (b"hello\n", ":1: not JSON"),
        (b"\xff\xfe\n", ":1: not JSON"),
        (b"[1]\n", ":1: not the head of a journal: Expected `object`, got `array`"),
        (b'{"seed":3}\n', "missing required field `journal`"),
        (b'{"journal":1,"seed":"x"}\n', "Expected `int`, got `str` - at `$.seed`"),
        (b'{"journal":9}\n', ":1: a journal of version 9; this kubesched reads version 1"),
        (HEAD + b"nonsense\n", ":2: JSON is malformed"),
        (HEAD + TICK % 1 + TICK % 3, ":3: event 3 stands where event 2 was expected; events before it: 1"),
        (HEAD + TICK % 2, ":2: event 2 stands where event 1 was expected"),
        (HEAD + b'{"n":1,"effects":[]}\n', ":2: effects of event 1, which does not stand before them"),
        (HEAD + TICK % 1 + b'{"n":2,"effects":[]}\n', ":3: effects of event 2"),
        (HEAD + b'{"n":1,"at":"2026-01-01T00:00:00Z","event":{"event":"Party"}}\n', ":2: Invalid value 'Party'"),
        (HEAD + b'{"n":1,"at":"noon","event":{"event":"Tick"}}\n' + TICK % 2, "'noon' is not an RFC 3339 time"),
        (HEAD + b'{"n":1,"at":"2026-01-01T00:00:00Z","event":' + b"[" * 100_000 + b"\n", ":2: "),
    ],
)
def test_damage_is_named_by_file_and_line(tmp_path: Path, content: bytes, said: str):
    path = tmp_path / "broken.jsonl"
    path.write_bytes(content)
    with pytest.raises(JournalError) as caught:
        list(Reading(path))
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_damage_in_the_middle_comes_with_a_remedy(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    path.write_bytes(HEAD + TICK % 1 + b"x\n")
    with pytest.raises(JournalError, match=r"head -n 2 FILE > SHORTER"):
        list(Reading(path))


def test_a_file_that_is_not_there_is_an_error_in_words(tmp_path: Path):
    with pytest.raises(JournalError, match="cannot be read: no such file or directory"):
        Reading(tmp_path / "none.jsonl")
    with pytest.raises(JournalError, match="cannot be written: no such file or directory"):
        Journal(tmp_path / "no" / "such.jsonl", Head(VERSION))


class Full(BytesIO):
    """A file on a disk that has no room."""

    def write(self, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_an_error_in_words(tmp_path: Path):
    journal = Journal(tmp_path / "run.jsonl", Head(VERSION))
    journal._file.close()
    journal._file = Full()
    with pytest.raises(JournalError, match=r"run\.jsonl: the journal cannot be written on: no space left on device"):
        journal.append(Instant(1), Tick())


def test_a_journal_is_its_owners_alone_and_one_that_is_there_stays(tmp_path: Path):
    path = tmp_path / "run.jsonl"
    names = []
    for _ in range(3):
        names.append(unused(path).name)
        Journal(unused(path), Head(VERSION)).close()
    assert names == ["run.jsonl", "run.jsonl.1", "run.jsonl.2"]
    assert path.stat().st_mode & 0o077 == 0


def test_a_line_is_on_disk_before_its_event_is_handled(tmp_path: Path):
    journal = Journal(tmp_path / "j", Head(VERSION))
    journal.append(Instant(1), Observed(Pod()))
    assert len(lines(tmp_path / "j")) == 2
    journal.close()


def test_how_long_a_pod_may_sleep_is_part_of_the_account(tmp_path: Path) -> None:
    """A pod that fits nowhere, and a flush that comes after a minute instead of five."""

    path = tmp_path / "run.jsonl"
    wants = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "9"}}}]}
    with Simulation(build(parked_max=seconds(60)), journal=path) as simulation:
        simulation.client.create({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "9"}}})
        simulation.client.create({"kind": "Pod", "metadata": {"name": "web"}, "spec": wants})
        simulation.run(until=seconds(200))
    head = Reading(path).head
    replay(Reading(path), core_of(structs.replace(head, parked_max=seconds(60)), path, tmp_path))
    with pytest.raises(Divergence, match="at 2026-01-01T00:01:30"):  # which is when the flush came
        replay(Reading(path), core_of(head, path, tmp_path))


def test_kinds_that_only_the_plugins_know_are_replayed_too(tmp_path: Path) -> None:
    def core() -> Core:
        plugin = Registry().make("NodeCRDResourceFit", None, Features())
        return Core(Profile(plugin, tie="name"))

    path = tmp_path / "run.jsonl"
    with Simulation(core(), journal=path) as simulation:
        client = simulation.client
        client.create({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "9"}}})
        client.create({"kind": "Pod", "metadata": {"name": "web"}})
        simulation.at(seconds(3), lambda: client.create({"kind": "ClusterScopedResource", "metadata": {"name": "n1"}}))
        simulation.at(seconds(4), lambda: client.delete("ClusterScopedResource", "n1"))
        simulation.run(until=seconds(5))
    assert simulation.core.state("default/web") is State.BOUND

    twin, reading = core(), Reading(path)
    twin.unsynced.update(reading.head.wait_for)
    reading.kinds = twin.own_kinds
    replay(reading, twin)
    assert twin.state("default/web") is State.BOUND
    assert list(twin.objects.all(ClusterScopedResource)) == []

    with pytest.raises(JournalError, match="Invalid value 'ClusterScopedResource'"):
        replay(Reading(path), core())
