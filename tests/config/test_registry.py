"""From a name to a plugin: where it is found, when it is imported, and what is said if it cannot be used."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.config.documents import document

from kubesched.assemble import profiles_of
from kubesched.config.load import load, load_text
from kubesched.config.registry import Registry
from kubesched.framework.errors import ConfigError, UnknownPlugin
from kubesched.framework.features import Features
from kubesched.framework.hooks import name_of
from kubesched.framework.status import SUCCESS
from kubesched.framework.tools import Tools
from kubesched.plugins import IN_TREE


class BudgetArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    per_zone: int = 10
    zones: dict[str, int] = {}


def validate_budget(args: BudgetArgs):
    """What is wrong with a budget."""
    if args.per_zone < 0:
        yield "perZone", f"Invalid value: {args.per_zone}: must not be negative"


class ZoneBudget:
    """A plugin with typed arguments and tools."""

    def __init__(self, args: BudgetArgs | None = None, tools: Tools | None = None) -> None:
        self.args, self.tools = args or BudgetArgs(), tools

    def filter(self, cycle, pod, node):
        return SUCCESS


class Raw:
    """A plugin that takes its arguments as they are."""

    def __init__(self, args) -> None:
        self.args = args

    def score(self, cycle, pod, node):
        return 0


class Plain:
    """A plugin that takes nothing."""

    def filter(self, cycle, pod, node):
        return SUCCESS


def use(cls: type, point: str = "filter", args: Any = None, **settings: Any) -> Any:
    """The plugin as a profile has it when a program offers its class under its name."""
    name = settings.pop("name", cls.__name__)
    registry = Registry({name: cls}, **settings)
    profile: dict[str, Any] = {"plugins": {point: {"enabled": [{"name": name}]}}}
    if args is not None:
        profile["pluginConfig"] = [{"name": name, "args": args}]
    configuration = load({"profiles": [profile]}, registry=registry)
    [made] = profiles_of(configuration, registry=registry).values()
    return made.points[point][-1]


# ── found ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plugin_of_a_program_gets_its_arguments_as_it_declares_them() -> None:
    plugin = use(ZoneBudget, args={"perZone": 3, "zones": {"a": 1}})

    assert plugin.args == BudgetArgs(per_zone=3, zones={"a": 1})
    assert plugin.tools.plugin == "ZoneBudget"


def test_without_a_declaration_they_come_as_they_were_written() -> None:
    assert use(Raw, "score", {"any": ["thing", 1]}).args == {"any": ["thing", 1]}


def test_a_plugin_that_takes_nothing_is_given_tools_all_the_same() -> None:
    assert use(Plain).tools.plugin == "Plain"


def test_tools_know_the_features() -> None:
    features = Features(storage_capacity_scoring=True)

    assert Registry({"Plain": Plain}).make("Plain", None, features).tools.features is features


@pytest.mark.parametrize("name", IN_TREE)
def test_every_in_tree_plugin_is_found_and_calls_itself_so(name: str) -> None:
    assert Registry().get(name).__name__ == name


def test_a_class_is_found_in_a_module_or_a_file_that_says_where(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "zone.py").write_text(
        textwrap.dedent("""
            from kubesched import SUCCESS
            from msgspec import Struct

            class Args(Struct, forbid_unknown_fields=True):
                size: int = 1

            class Zone:
                def __init__(self, args: Args | None = None):
                    self.size = (args or Args()).size

                def filter(self, cycle, pod, node):
                    return SUCCESS
        """)
    )
    text = """
        profiles:
        - plugins: {filter: {enabled: [{name: "plugins/zone.py:Zone"}]}}
          pluginConfig: [{name: "plugins/zone.py:Zone", args: {size: 7}}]
    """
    registry = Registry(folder=tmp_path)

    found = load_text(document(text), registry=registry)
    [profile] = profiles_of(found.configuration, registry=registry).values()

    assert (type(profile.filter[-1]).__name__, profile.filter[-1].size) == ("Zone", 7)


def test_a_weight_reaches_a_plugin_named_by_its_place() -> None:
    registry = Registry()
    place = "tests.config.test_registry:Raw"
    raw = {
        "profiles": [
            {
                "plugins": {"score": {"enabled": [{"name": place, "weight": 4}]}},
                "pluginConfig": [{"name": place, "args": {}}],
            }
        ]
    }

    [profile] = profiles_of(load(raw, registry=registry), registry=registry).values()

    assert profile.weights["Raw"] == 4


INSTALLED = """
import sys
from kubesched.config.load import load
from kubesched.assemble import profiles_of
raw = {"profiles": [{"plugins": {"filter": {"enabled": [{"name": "ZoneBudget"}]}}}]}
[profile] = profiles_of(load(raw)).values()
print(type(profile.filter[-1]).__module__, "acme.other" in sys.modules)
"""


def test_an_installed_package_offers_plugins_and_only_what_is_mentioned_is_imported(tmp_path: Path) -> None:
    package, metadata = tmp_path / "acme", tmp_path / "acme-1.0.dist-info"
    package.mkdir()
    metadata.mkdir()
    (package / "__init__.py").touch()
    body = "from kubesched import SUCCESS\nclass {}:\n    def filter(self, cycle, pod, node):\n        return SUCCESS\n"
    (package / "budget.py").write_text(body.format("ZoneBudget"))
    (package / "other.py").write_text("raise RuntimeError('nobody asked for this')\n")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[kubesched.plugins]\nZoneBudget = acme.budget:ZoneBudget\nOther = acme.other:Other\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", INSTALLED],
        env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2] / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("acme.budget False\n", "")


# ── not found, or not to be used ─────────────────────────────────────────────────────────────────────────────


def refusal(cls: Any, **settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        use(cls, **settings)
    return str(caught.value)


class Misnamed:
    name = "SomethingElse"

    def filter(self, cycle, pod, node):
        return SUCCESS


class ShortFilter:
    def filter(self, cycle, pod):
        return SUCCESS


class AsyncFilter:
    async def filter(self, cycle, pod, node):
        return SUCCESS


class Hookless:
    pass


class Greedy:
    def __init__(self, database) -> None:
        self.database = database

    def filter(self, cycle, pod, node):
        return SUCCESS


class Broken:
    def __init__(self) -> None:
        raise RuntimeError("no licence")

    def filter(self, cycle, pod, node):
        return SUCCESS


class Choosy:
    def __init__(self, args: BudgetArgs | None = None) -> None:
        raise ConfigError("zones", "must name a zone", "write zones: {a: 1}")

    def filter(self, cycle, pod, node):
        return SUCCESS


WHERE = "profiles[0].plugins.filter.enabled[0].name"


@pytest.mark.parametrize(
    ("cls", "args", "sentence"),
    [
        (
            ShortFilter,
            None,
            (
                f"{WHERE}: ShortFilter.filter takes (cycle, pod); "
                "a filter takes (cycle, pod, node) (see docs/hooks.md#filter)"
            ),
        ),
        (
            AsyncFilter,
            None,
            f"{WHERE}: AsyncFilter.filter is async; hooks never wait (a pre_bind or bind yields steps instead)",
        ),
        (Hookless, None, f'{WHERE}: plugin "Hookless" has no hook of any extension point (see docs/hooks.md)'),
        (
            Misnamed,
            None,
            (
                f'{WHERE}: plugin "Misnamed" calls itself "SomethingElse" '
                '(write SomethingElse in the configuration, or give the class name = "Misnamed")'
            ),
        ),
        (
            Greedy,
            None,
            (
                f'{WHERE}: initializing plugin "Greedy": TypeError: '
                "Greedy.__init__() missing 1 required positional argument: 'database'"
            ),
        ),
        (Broken, None, f'{WHERE}: initializing plugin "Broken": RuntimeError: no licence (HERE)'),
        (
            Choosy,
            {},
            (
                'profiles[0].pluginConfig[0].args.zones: initializing plugin "Choosy": '
                "must name a zone (write zones: {a: 1})"
            ),
        ),
        (
            ZoneBudget,
            {"perzone": 1},
            'profiles[0].pluginConfig[0].args.perzone: unknown field "perzone" (did you mean "perZone"?)',
        ),
        (
            ZoneBudget,
            {"zones": {"a": "x"}},
            'profiles[0].pluginConfig[0].args.zones.a: must be an integer, not the string "x"',
        ),
        (
            ZoneBudget,
            {"perZone": -1},
            "profiles[0].pluginConfig[0].args.perZone: Invalid value: -1: must not be negative",
        ),
        (Plain, {"a": 1}, 'profiles[0].pluginConfig[0].args: plugin "Plain" takes no args (take them out)'),
    ],
)
def test_a_plugin_that_cannot_be_used_is_told_why(cls: type, args: Any, sentence: str) -> None:
    assert re.sub(r" \([^ ]*test_registry\.py:\d+\)$", " (HERE)", refusal(cls, args=args)) == sentence


@pytest.mark.parametrize(
    ("plugins", "path", "problem", "remedy"),
    [
        (
            {"filter": {"enabled": [{"name": "NodeNam"}]}},
            "profiles[0].plugins.filter.enabled[0].name",
            'FilterPlugin "NodeNam" does not exist',
            'did you mean "NodeName"?',
        ),
        (
            {"filter": {"enabled": [{"name": "nodename"}]}},
            "profiles[0].plugins.filter.enabled[0].name",
            'FilterPlugin "nodename" does not exist',
            'did you mean "NodeName"?',
        ),
        (
            {"multiPoint": {"enabled": [{"name": "Quux"}]}},
            "profiles[0].plugins.multiPoint.enabled[20].name",
            'PreFilterPlugin "Quux" does not exist',
            "plugins of your own are named package.module:Class, or installed as entry points",
        ),
        (
            {"score": {"enabled": [{"name": "nowhere.to.be:Found"}]}},
            "profiles[0].plugins.score.enabled[0].name",
            "plugin \"nowhere.to.be:Found\" cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
            "it is looked for in nowhere.to.be",
        ),
        (
            {"score": {"enabled": [{"name": "kubesched.plugins.node_name:NodeNam"}]}},
            "profiles[0].plugins.score.enabled[0].name",
            (
                'plugin "kubesched.plugins.node_name:NodeNam" cannot be found: '
                "kubesched.plugins.node_name has no class NodeNam"
            ),
            'did you mean "NodeName"?',
        ),
    ],
)
def test_a_plugin_nobody_provides_is_an_error_with_a_suggestion(
    plugins: dict[str, Any], path: str, problem: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        profiles_of(load({"profiles": [{"plugins": plugins}]}))

    assert (caught.value.path, caught.value.problem, caught.value.remedy) == (path, problem, remedy)


def test_a_file_that_breaks_on_import_is_named_and_forgotten(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1/0\n")
    registry = Registry(folder=tmp_path)

    for _ in range(2):
        with pytest.raises(ConfigError, match=r'plugin "bad.py:X" cannot be imported: ZeroDivisionError'):
            registry.get("bad.py:X")


def test_a_name_that_is_not_there_is_an_unknown_plugin() -> None:
    with pytest.raises(UnknownPlugin, match='plugin "Quux" does not exist'):
        Registry().get("Quux")


def test_a_plugins_tools_speak_for_it_by_the_name_the_scheduler_knows(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    def filter(self, cycle, pod, node):\n        return None\n")
    plugin = Registry(folder=tmp_path).make("mine.py:Mine", None, Features())
    assert plugin.tools.plugin == name_of(plugin) == "Mine"
