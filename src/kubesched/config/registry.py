"""From the name of a plugin in a configuration to its class, its arguments and an instance.

A name is looked for among the classes given here, the in-tree plugins, and the entry points of installed packages
(group `kubesched.plugins`); a name with a colon says itself where the class is, `package.module:Class` or
`path/to/file.py:Class`.  Nothing is imported that no configuration mentions.

Arguments are decoded by what the class's constructor says of them: the annotation of its parameter `args`.  Where
that is a Struct, unknown fields and wrong types are faults with their path; without an annotation a plugin gets
the mapping as it was written.  Functions `validate_…(args)` beside the Struct say what else is wrong.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec

from kubesched.config.faults import Fault, did_you_mean
from kubesched.config.plugin_files import imported, module_of, place_of, plugins_in, raised_at
from kubesched.config.strict import faults_of
from kubesched.framework.errors import ConfigError, UnknownPlugin
from kubesched.framework.features import Features
from kubesched.framework.hooks import Plugin, check, name_of, points_of
from kubesched.framework.tools import Tools
from kubesched.plugins import IN_TREE
from kubesched.plugins.contrib import CONTRIB

GROUP = "kubesched.plugins"
OURS: Mapping[str, str] = types.MappingProxyType({**IN_TREE, **CONTRIB})
PluginClass = Callable[..., Plugin]

REMOVED: Mapping[str, str] = types.MappingProxyType(
    {
        "NodeResourcesLeastAllocated": "use NodeResourcesFit with scoringStrategy.type LeastAllocated",
        "NodeResourcesMostAllocated": "use NodeResourcesFit with scoringStrategy.type MostAllocated",
        "RequestedToCapacityRatio": "use NodeResourcesFit with scoringStrategy.type RequestedToCapacityRatio",
        "NodePreferAvoidPods": "the annotation it read is gone; use taints with PreferNoSchedule",
        "SelectorSpread": "PodTopologySpread does this by its system defaults",
        "NodeLabel": "use NodeAffinity with addedAffinity",
        "ServiceAffinity": "use pod affinity",
        "EBSLimits": "NodeVolumeLimits counts the volumes of every CSI driver",
        "GCEPDLimits": "NodeVolumeLimits counts the volumes of every CSI driver",
        "AzureDiskLimits": "NodeVolumeLimits counts the volumes of every CSI driver",
        "CinderLimits": "NodeVolumeLimits counts the volumes of every CSI driver",
    }
)
"""Plugins kube-scheduler had once, and what does their work now."""


class Registry:
    """Where plugins are found.

    Args:
        extra: classes by name, before all others; for those who assemble a scheduler in their own program.
        folder: what the path of a plugin's file is relative to: where the configuration is.
    """

    def __init__(self, extra: Mapping[str, PluginClass] | None = None, folder: Path | None = None) -> None:
        self._extra = dict(extra or {})
        self._folder = folder or Path()
        self._found: dict[str, PluginClass] = {}

    def add_file(self, path: Path) -> list[str]:
        """Take in the plugins of a file; returns their names.  Raises ConfigError."""
        found = plugins_in(path)
        taken = [name for name in found if name in self.names()]
        if taken:
            problem = f'{path}: a plugin called "{taken[0]}" is there already'
            raise ConfigError("", problem, "give the class a name of its own")
        self._extra |= found
        return list(found)

    def names(self) -> list[str]:
        """Every name that can be found without looking into a file."""
        return list(dict.fromkeys([*self._extra, *OURS, *_installed()]))

    def find(self, name: str) -> PluginClass | None:
        """The class of a plugin, checked; None where nobody provides the name.  Raises ConfigError."""
        if name not in self._found:
            found = self._look_up(name)
            if found is None:
                return None
            _check_class(name, found)
            self._found[name] = found
        return self._found[name]

    def get(self, name: str) -> PluginClass:
        """As find.  Raises UnknownPlugin."""
        found = self.find(name)
        if found is None:
            raise UnknownPlugin("", f'plugin "{name}" does not exist', self.suggestion(name))
        return found

    def suggestion(self, name: str) -> str:
        """What to write instead of a name nobody provides."""
        close = REMOVED.get(name) or did_you_mean(name, self.names())
        return close or "plugins of your own are named package.module:Class, or installed as entry points"

    def _look_up(self, name: str) -> PluginClass | None:
        if name in self._extra:
            return self._extra[name]
        if name in OURS and name in _installed():
            problem = f'plugin "{name}" is there twice: {OURS[name]}, and {_installed()[name]} of an installed package'
            raise ConfigError("", problem, f"say which one is meant, by its place: {_installed()[name]}")
        place = OURS.get(name) or _installed().get(name)
        if place is not None:
            return _load(name, place)
        return _load(name, name, self._folder) if ":" in name else None

    # ── arguments ────────────────────────────────────────────────────────────────────────────────────────────

    def args_faults(
        self, name: str, raw: Mapping[str, Any] | None, features: Features, path: str = "args"
    ) -> Iterator[Fault]:
        """What is wrong with the arguments of a plugin, if it can be found.  Raises ConfigError."""
        cls = self.find(name)
        if cls is None or (raw is None and not _required(cls, "args")):
            return
        kind, body = args_type(cls), _body(raw or {})
        if kind is None:
            if body and not takes(cls, "args"):
                yield Fault(path, f'plugin "{name}" takes no args', "take them out")
            return
        found = list(faults_of(body, kind, path))
        yield from found or _said_by_plugin(kind, body, features, path)

    def make(self, name: str, raw: Mapping[str, Any] | None, features: Features, path: str = "args") -> Plugin:
        """An instance with these arguments.  Raises ConfigError."""
        return self.maker(name, raw, features, path)()

    def maker(
        self, name: str, raw: Mapping[str, Any] | None, features: Features, path: str = "args"
    ) -> Callable[[], Plugin]:
        """What makes one more instance with these arguments, as often as it is called.  Both raise ConfigError."""
        cls = self.get(name)
        for fault in self.args_faults(name, raw, features, path):
            raise ConfigError(fault.path, fault.problem, fault.remedy)
        kind = args_type(cls)
        wants_args = takes(cls, "args") and (raw is not None or _required(cls, "args"))
        wants_tools = takes(cls, "tools")

        def make() -> Plugin:
            given: dict[str, Any] = {}
            tools = Tools(name, features)
            if wants_args:
                given["args"] = (raw or {}) if kind is None else msgspec.convert(_body(raw or {}), kind)
            if wants_tools:
                given["tools"] = tools
            try:
                plugin = cls(**given)
            except ConfigError as error:
                inner = f"{path}.{error.path}" if error.path else path
                raise ConfigError(inner, f'initializing plugin "{name}": {error.problem}', error.remedy) from error
            except Exception as error:  # whatever a plugin's constructor does
                where = raised_at(error)
                raise ConfigError(
                    "", f'initializing plugin "{name}": {type(error).__name__}: {error}{where}'
                ) from error
            if getattr(plugin, "tools", None) is None:
                plugin.tools = tools
            tools.plugin = name_of(plugin)  # as the scheduler knows it: a configuration may name its file instead
            return plugin

        return make


@cache
def _installed() -> dict[str, str]:
    """The plugins of installed packages: name → module:Class."""
    return {entry.name: entry.value for entry in entry_points(group=GROUP)}


# ── importing ────────────────────────────────────────────────────────────────────────────────────────────────


def _load(name: str, place: str, folder: Path = Path()) -> PluginClass:
    """The class at `module:Class` or `file.py:Class`.  Raises ConfigError."""
    module_name, _, class_name = place.rpartition(":")
    from_file = module_name.endswith(".py")
    try:
        module = module_of(folder / module_name) if from_file else imported(module_name)
    except Exception as error:  # an import runs whatever the module says
        problem = f'plugin "{name}" cannot be imported: {type(error).__name__}: {error}'
        where = place_of(error, folder / module_name) if from_file else module_name
        raise ConfigError("", problem, f"it is looked for in {where}") from error
    found = getattr(module, class_name, None)
    if not callable(found):
        close = did_you_mean(class_name, (key for key, value in vars(module).items() if inspect.isclass(value)))
        raise UnknownPlugin("", f'plugin "{name}" cannot be found: {module_name} has no class {class_name}', close)
    loaded: PluginClass = found
    return loaded


def _check_class(name: str, cls: PluginClass) -> None:
    check(cls)
    own = name_of(cls)
    if ":" not in name and own != name:
        remedy = f'write {own} in the configuration, or give the class name = "{name}"'
        raise ConfigError("", f'plugin "{name}" calls itself "{own}"', remedy)
    if not points_of(cls):
        raise ConfigError("", f'plugin "{name}" has no hook of any extension point', "see docs/hooks.md")


# ── what a constructor says of its arguments ─────────────────────────────────────────────────────────────────


def takes(cls: PluginClass, parameter: str) -> bool:
    """Whether a plugin's constructor has a parameter of this name."""
    try:
        return parameter in inspect.signature(cls).parameters
    except ValueError:
        return False


def _required(cls: PluginClass, parameter: str) -> bool:
    """Whether a plugin cannot be made without this parameter: one that wants arguments gets their defaults."""
    try:
        found = inspect.signature(cls).parameters.get(parameter)
    except ValueError:
        return False
    return found is not None and found.default is inspect.Parameter.empty


def args_type(cls: PluginClass) -> Any:
    """The Struct a plugin's arguments are decoded into; None where it takes them as they are, or takes none."""
    if not takes(cls, "args"):
        return None
    constructor = getattr(cls, "__init__", cls) if isinstance(cls, type) else cls
    hint = typing.get_type_hints(constructor).get("args")
    kinds = [kind for kind in (typing.get_args(hint) or (hint,)) if inspect.isclass(kind)]
    return next((kind for kind in kinds if issubclass(kind, msgspec.Struct)), None)


def _body(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments without what only says whose they are."""
    return {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}


def _said_by_plugin(kind: Any, body: Mapping[str, Any], features: Features, path: str) -> Iterator[Fault]:
    """What the plugin itself finds wrong with arguments of the right type."""
    try:
        args = msgspec.convert(body, kind)
    except msgspec.ValidationError as error:  # of the Struct's own __post_init__
        yield Fault(path, str(error))
        return
    for validate in _validators(kind):
        gated = len(inspect.signature(validate).parameters) > 1
        for where, problem in validate(args, features) if gated else validate(args):
            yield Fault(f"{path}.{where}" if where else path, problem)


def _validators(kind: type) -> Iterator[Callable[..., Iterator[tuple[str, str]]]]:
    """The functions beside a Struct that say what is wrong with one."""
    for name, function in vars(sys.modules[kind.__module__]).items():
        if name.startswith("validate_") and inspect.isfunction(function):
            first = next(iter(inspect.signature(function).parameters), "")
            if typing.get_type_hints(function).get(first) is kind:
                yield function
