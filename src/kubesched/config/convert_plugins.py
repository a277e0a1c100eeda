"""The plugins of old configurations: what was folded into others, what is gone, and what cannot be replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeGuard

from kubesched.config.yaml import remove
from kubesched.framework.errors import ConfigError

STRATEGIES: Mapping[str, str] = MappingProxyType(
    {
        "NodeResourcesLeastAllocated": "LeastAllocated",
        "NodeResourcesMostAllocated": "MostAllocated",
        "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    }
)
"""Score plugins of v1beta1 that are strategies of NodeResourcesFit now."""

GONE: Mapping[str, str] = MappingProxyType(
    {
        "NodePreferAvoidPods": "the annotation it read is gone from Kubernetes",
        "SelectorSpread": "PodTopologySpread does this by its system defaults",
        "EBSLimits": "NodeVolumeLimits counts the volumes of every CSI driver",
        "GCEPDLimits": "NodeVolumeLimits counts the volumes of every CSI driver",
        "AzureDiskLimits": "NodeVolumeLimits counts the volumes of every CSI driver",
        "CinderLimits": "NodeVolumeLimits counts the volumes of every CSI driver",
    }
)
"""Plugins that are dropped, and why that changes nothing that is still there."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_FIT, _LEAST, _LABEL, _AFFINITY = "NodeResourcesFit", "NodeResourcesLeastAllocated", "NodeLabel", "ServiceAffinity"


def convert_profile(profile: dict[str, Any], version: str, path: str) -> Iterator[str]:
    """Rewrite one profile, in place; a line per change.  Raises ConfigError."""
    plugins = profile.get("plugins")
    sets = {point: listed for point, listed in plugins.items() if isinstance(listed, dict)} if _is(plugins) else {}
    _refuse_service_affinity(sets, path)
    yield from _drop_gone(profile, sets, path)
    if version == "v1beta1":
        yield from _Strategies(profile, path).fold()
        yield from _fold_node_label(profile, sets, path)
        yield from _say_defaulting_type(profile, path)
    for config in _configs(profile):
        if _is(config.get("args")) and _is_old(config["args"].get("apiVersion")):
            del config["args"]["apiVersion"]


def _is(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_old(version: Any) -> bool:
    return isinstance(version, str) and version.startswith("kubescheduler.config.k8s.io/v1beta")


def refs(listed: Any, key: str) -> list[dict[str, Any]]:
    """The entries of a list that have a name, where there is such a list."""
    found = listed.get(key) if isinstance(listed, dict) else None
    entries = found if isinstance(found, list) else []
    return [ref for ref in entries if isinstance(ref, dict) and isinstance(ref.get("name"), str)]


def mapping_at(parent: dict[str, Any], key: str, path: str) -> dict[str, Any]:
    """The mapping at a key, to be changed; made where there is none.  Raises ConfigError."""
    value = parent.setdefault(key, {})
    if not isinstance(value, dict):
        raise ConfigError(f"{path}.{key}", "must be a mapping")
    return value


def list_at(parent: dict[str, Any], key: str, path: str) -> list[Any]:
    """As mapping_at, of a list."""
    value = parent.setdefault(key, [])
    if not isinstance(value, list):
        raise ConfigError(f"{path}.{key}", "must be a list")
    return value


def _configs(profile: dict[str, Any]) -> list[dict[str, Any]]:
    return refs(profile, "pluginConfig")


def _config_of(profile: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((config for config in _configs(profile) if config["name"] == name), None)


def _args_of(profile: dict[str, Any], name: str, path: str) -> dict[str, Any]:
    """The arguments of a plugin, to be changed; made where there are none.  Raises ConfigError."""
    config = _config_of(profile, name)
    if config is None:
        config = {"name": name}
        list_at(profile, "pluginConfig", path).append(config)
    return mapping_at(config, "args", f"{path}.pluginConfig")


def _take(listed: Any, key: str, *names: str) -> list[dict[str, Any]]:
    """Remove the entries of these names from a list, and return them."""
    taken = [ref for ref in refs(listed, key) if ref["name"] in names]
    for ref in taken:
        remove(listed[key], next(at for at, one in enumerate(listed[key]) if one is ref))
    return taken


# ── plugins without a successor ──────────────────────────────────────────────────────────────────────────────


def _refuse_service_affinity(sets: Mapping[str, Any], path: str) -> None:
    for point, listed in sets.items():
        if any(ref["name"] == _AFFINITY for ref in refs(listed, "enabled")):
            problem = f"{_AFFINITY} has no successor"
            raise ConfigError(f"{path}.plugins.{point}.enabled", problem, "use pod affinity in the pods it was for")
        _take(listed, "disabled", _AFFINITY)


def _drop_gone(profile: dict[str, Any], sets: Mapping[str, Any], path: str) -> Iterator[str]:
    for point, listed in sets.items():
        for ref in _take(listed, "enabled", *GONE):
            yield f"{path}.plugins.{point}: {ref['name']} is dropped; {GONE[ref['name']]}"
        _take(listed, "disabled", *GONE)
    for config in _take(profile, "pluginConfig", *GONE, _AFFINITY):
        yield f"{path}.pluginConfig: the arguments of {config['name']} are dropped with it"


# ── score plugins that became strategies ─────────────────────────────────────────────────────────────────────


class _Strategies:
    """NodeResourcesLeastAllocated and its kind, folded into NodeResourcesFit."""

    def __init__(self, profile: dict[str, Any], path: str) -> None:
        self._profile, self._path = profile, path
        plugins = profile.get("plugins")
        score = plugins.get("score") if _is(plugins) else None
        self._score: dict[str, Any] = score if _is(score) else {}

    def fold(self) -> Iterator[str]:
        disabled = {ref["name"] for ref in refs(self._score, "disabled")}
        enabled = [ref for ref in refs(self._score, "enabled") if ref["name"] in STRATEGIES]
        by_default = not disabled & {"*", _LEAST} and all(ref["name"] != _LEAST for ref in enabled)
        self._refuse_several([*([_LEAST] if by_default else []), *(ref["name"] for ref in enabled)])
        _take(self._score, "disabled", *STRATEGIES)
        for ref in enabled:
            name = ref["name"]
            yield f"{self._path}.plugins.score: {name} is now {_FIT} with scoringStrategy.type {STRATEGIES[name]}"
            ref["name"] = _FIT
            yield from self._move_args(name)
        if by_default:
            yield from self._move_args(_LEAST)
        elif not enabled and "*" not in disabled:
            list_at(self._score, "disabled", f"{self._path}.plugins.score").append({"name": _FIT})
            yield f"{self._path}.plugins.score: {_LEAST} was disabled, so {_FIT} is"
        for config in _take(self._profile, "pluginConfig", *STRATEGIES):
            yield f"{self._path}.pluginConfig: the arguments of {config['name']} are dropped; it was not enabled"

    def _refuse_several(self, names: list[str]) -> None:
        if len(names) > 1:
            problem = f"{' and '.join(names)} cannot both score: {_FIT} has one strategy"
            raise ConfigError(f"{self._path}.plugins.score", problem, "keep one, and disable the others")

    def _move_args(self, name: str) -> Iterator[str]:
        """What the old plugin was told is what the strategy is told."""
        old = next((config.get("args") for config in _take(self._profile, "pluginConfig", name)), None)
        old = old if isinstance(old, dict) else {}
        strategy: dict[str, Any] = {"type": STRATEGIES[name]}
        if old.get("resources"):
            strategy["resources"] = old["resources"]
        if "shape" in old:
            strategy["requestedToCapacityRatio"] = {"shape": old["shape"]}
        if len(strategy) > 1 or name != _LEAST:
            _args_of(self._profile, _FIT, self._path)["scoringStrategy"] = strategy
        if len(strategy) > 1:
            yield f"{self._path}.pluginConfig: the arguments of {name} are now the scoringStrategy of {_FIT}"


# ── NodeLabel, and PodTopologySpread's defaults ──────────────────────────────────────────────────────────────


def _fold_node_label(profile: dict[str, Any], sets: Mapping[str, Any], path: str) -> Iterator[str]:
    """Labels that nodes must have, or must not, are node affinity every pod gets."""
    points = [point for point, listed in sets.items() if _take(listed, "enabled", _LABEL)]
    for listed in sets.values():
        _take(listed, "disabled", _LABEL)
    configs = _take(profile, "pluginConfig", _LABEL)
    if not points:
        return
    args: dict[str, Any] = next((config["args"] for config in configs if _is(config.get("args"))), {})
    if args.get("presentLabelsPreference") or args.get("absentLabelsPreference"):
        problem = f"{_LABEL} scores by labels, and has no successor that does"
        raise ConfigError(f"{path}.pluginConfig", problem, "use preferred node affinity in the pods it was for")
    wanted = [
        {"key": key, "operator": operator}
        for field, operator in (("presentLabels", "Exists"), ("absentLabels", "DoesNotExist"))
        for key in list_at(args, field, f"{path}.pluginConfig.args")
    ]
    if not wanted or points == ["score"]:
        yield f"{path}.plugins: {_LABEL} is dropped; it was told of no labels to filter by"
        return
    _refuse_without_affinity(sets, path)
    where = f"{path}.pluginConfig.args.addedAffinity"
    added = mapping_at(_args_of(profile, "NodeAffinity", path), "addedAffinity", where)
    terms = list_at(mapping_at(added, _REQUIRED, where), "nodeSelectorTerms", where)
    if not terms:
        terms.append({})
    for term in terms:
        if isinstance(term, dict):
            list_at(term, "matchExpressions", where).extend(wanted)
    yield f"{path}.plugins: {_LABEL} is now the addedAffinity of NodeAffinity"


def _refuse_without_affinity(sets: Mapping[str, Any], path: str) -> None:
    listed = sets.get("filter")
    disabled = {ref["name"] for ref in refs(listed, "disabled")} & {"*", "NodeAffinity"}
    if disabled and all(ref["name"] != "NodeAffinity" for ref in refs(listed, "enabled")):
        problem = f"{_LABEL} is now part of NodeAffinity, which is disabled"
        raise ConfigError(f"{path}.plugins.filter.disabled", problem, "enable NodeAffinity")


def _say_defaulting_type(profile: dict[str, Any], path: str) -> Iterator[str]:
    config = _config_of(profile, "PodTopologySpread")
    args = config.get("args") if config else None
    if isinstance(args, dict) and args.get("defaultConstraints") and "defaultingType" not in args:
        args["defaultingType"] = "List"
        yield f"{path}.pluginConfig: PodTopologySpread gets defaultingType List, as it has defaultConstraints"
