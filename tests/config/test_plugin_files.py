"""Plugins from files: what is found, how they join a configuration, and the line that is to blame when they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.assemble import profiles_of
from kubesched.config.joining import joined
from kubesched.config.plugin_files import afresh, plugins_in
from kubesched.config.registry import Registry
from kubesched.config.schema import Configuration, PluginRef, Plugins, PluginSet, ProfileConfig
from kubesched.framework.errors import ConfigError
from kubesched.framework.hooks import name_of

GOOD = '''
from kubesched import SUCCESS

class ZoneBudget:
    def filter(self, cycle, pod, node):
        return SUCCESS

class Helper:
    """Not a plugin: it has no hook."""

class _Hidden:
    def filter(self, cycle, pod, node):
        return SUCCESS
'''


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_plugin_is_a_public_class_with_a_hook(tmp_path: Path) -> None:
    assert list(plugins_in(written(tmp_path, GOOD))) == ["ZoneBudget"]


def test_it_joins_every_profile_that_does_not_mention_it(tmp_path: Path) -> None:
    registry = Registry()
    mentions = Plugins(filter=PluginSet(enabled=(PluginRef(name="ZoneBudget"),)))
    profiles = (ProfileConfig(scheduler_name="a"), ProfileConfig(scheduler_name="b", plugins=mentions))

    configuration = joined(Configuration(profiles=profiles), registry.add_file(written(tmp_path, GOOD)), registry)

    for profile in profiles_of(configuration, registry=registry).values():
        assert [name_of(plugin) for plugin in profile.filter].count("ZoneBudget") == 1


def test_an_order_of_the_queue_takes_the_place_of_the_one_there_is(tmp_path: Path) -> None:
    registry = Registry()
    file = written(tmp_path, "class Fifo:\n    def key(self, pod):\n        return (pod.added,)\n")

    configuration = joined(Configuration(), registry.add_file(file), registry)

    [profile] = profiles_of(configuration, registry=registry).values()
    assert [name_of(plugin) for plugin in profile.queue_sort] == ["Fifo"]


def test_without_files_nothing_changes() -> None:
    configuration = Configuration()
    assert joined(configuration, [], Registry()) is configuration


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("x = 1\ndef oops(:\n", 2, "cannot be imported: SyntaxError: "),
        ("x = 1\n\nimport nothing_of_this_name\n", 3, "cannot be imported: ModuleNotFoundError: No module named"),
        ("\n\nraise ValueError('no licence')\n", 3, "cannot be imported: ValueError: no licence"),
        ("class A:\n    def filter(self, pod): ...\n", 2, "A.filter takes (pod); a filter takes (cycle, pod, node)"),
        ("class A:\n    async def filter(self, cycle, pod, node): ...\n", 2, "A.filter is async; hooks never wait"),
        ("class A:\n    def reserve(self, cycle, pod, node):\n        pass\n", 1, "A has reserve but no unreserve"),
        (
            "class A:\n    def less(self, a, b): ...\nclass B:\n    name = 'A'\n    def less(self, a, b): ...\n",
            3,
            'a second plugin called "A"',
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, line: int, sentence: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        plugins_in(path)
    assert str(refused.value).startswith(f"{path}:{line}: {sentence}")


def test_a_file_without_a_plugin_is_told_what_makes_one(tmp_path: Path) -> None:
    path = written(tmp_path, "x = 1\n")
    with pytest.raises(ConfigError, match="no class in it is a plugin"):
        plugins_in(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        plugins_in(tmp_path / "absent.py")


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    registry = Registry()
    registry.add_file(written(tmp_path, GOOD))
    with pytest.raises(ConfigError, match='a plugin called "ZoneBudget" is there already'):
        registry.add_file(written(tmp_path, GOOD, "again.py"))
    with pytest.raises(ConfigError, match='a plugin called "NodeName" is there already'):
        registry.add_file(written(tmp_path, GOOD.replace("ZoneBudget", "NodeName"), "name.py"))


def test_a_file_that_has_changed_is_read_again_and_the_one_at_work_stays(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("class Own:\n    def score(self, cycle, pod, node): return 1\n")
    before = plugins_in(file)["Own"]
    file.write_text("def (:\n")
    with afresh(), pytest.raises(ConfigError, match=r"own\.py:1: cannot be imported"):
        plugins_in(file)
    assert plugins_in(file)["Own"] is before


def test_a_file_that_ends_the_process_ends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "ends.py"
    file.write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(ConfigError, match=r"ends\.py:2: cannot be imported.*ends the process \(exit status 3\)"):
        plugins_in(file)
