"""What a configuration means where it says nothing: kube-scheduler's defaults, and how a profile changes them.

The defaults of a profile are one multiPoint list.  What a profile says of a set — multiPoint or a single extension
point — is merged with the default of that set; spreading multiPoint over the points comes later (`points.py`).
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct, structs

from kubesched.config.schema import Configuration, PluginRef, Plugins, PluginSet, ProfileConfig
from kubesched.framework.features import Features
from kubesched.plugins import DEFAULT_WEIGHTS, IN_TREE

DEFAULT_SCHEDULER = "default-scheduler"
EVERY = "*"
_NOTHING = ("", 0, "0", "0s")

S = TypeVar("S", bound=Struct)


def default_plugins(features: Features | None = None) -> Plugins:
    """The plugins of a profile that says nothing about plugins."""
    gates = features or Features()
    without = set() if gates.node_declared_features else {"NodeDeclaredFeatures"}
    enabled = [PluginRef(name=name, weight=DEFAULT_WEIGHTS.get(name, 0)) for name in IN_TREE if name not in without]
    return Plugins(multi_point=PluginSet(enabled=tuple(enabled)))


def merge_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """What a profile says of one set, on top of the default of that set.

    A plugin enabled again takes the place, and keeps the order, of the default of its name.  What is disabled is
    kept in the result: a point that disables a plugin refuses it from multiPoint as well.
    """
    disabled = {ref.name for ref in custom.disabled}
    place = {ref.name: at for at, ref in enumerate(custom.enabled)}  # the last of several of a name
    replaced: set[int] = set()
    enabled: list[PluginRef] = []
    for ref in default.enabled if EVERY not in disabled else ():
        if ref.name in disabled:
            continue
        at = place.get(ref.name)
        if at is not None:
            replaced.add(at)
        enabled.append(ref if at is None else custom.enabled[at])
    enabled += [ref for at, ref in enumerate(custom.enabled) if at not in replaced]
    return PluginSet(enabled=tuple(enabled), disabled=custom.disabled + default.disabled)


def merge(default: Plugins, custom: Plugins | None) -> Plugins:
    """What a profile says of all sets, on top of the defaults."""
    if custom is None:
        return default
    fields = Plugins.__struct_fields__
    return Plugins(**{field: merge_set(getattr(default, field), getattr(custom, field)) for field in fields})


def complete(configuration: Configuration, features: Features | None = None) -> Configuration:
    """The same with everything said that was left open, except for the arguments of plugins, which know their own."""
    profiles = configuration.profiles or (ProfileConfig(),)
    client, election = configuration.client_connection, configuration.leader_election
    contention = configuration.enable_contention_profiling
    return structs.replace(
        configuration,
        profiles=tuple(_complete_profile(profile, len(profiles) == 1, features) for profile in profiles),
        extenders=tuple(_or_default(extender, "http_timeout") for extender in configuration.extenders),
        client_connection=_or_default(client, "qps", "burst", "content_type"),
        leader_election=_or_default(election, *(name for name in election.__struct_fields__ if name != "leader_elect")),
        enable_contention_profiling=configuration.enable_profiling if contention is None else contention,
    )


def _complete_profile(profile: ProfileConfig, alone: bool, features: Features | None) -> ProfileConfig:
    return structs.replace(
        profile,
        scheduler_name=profile.scheduler_name or (DEFAULT_SCHEDULER if alone else ""),
        plugins=merge(default_plugins(features), profile.plugins),
    )


def _or_default(value: S, *names: str) -> S:
    """Kept from kube-scheduler: in these fields, nothing and zero mean the default, too."""
    default = type(value)()
    empty = [name for name in names if getattr(value, name) in _NOTHING]
    return structs.replace(value, **{name: getattr(default, name) for name in empty})
