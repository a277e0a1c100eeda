"""Reading a KubeSchedulerConfiguration: strictly, in any version still in use, and with every fault named by its place.

`load` reads a mapping, `load_file` a file.  Old versions are converted first; then every unknown field and every
value of a wrong type is found; then kube-scheduler's rules are applied to what remains, the arguments of plugins
included.  What comes back is complete: every default has been filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from kubesched.config.convert import GROUP, OLD_VERSIONS, convert
from kubesched.config.defaults import complete
from kubesched.config.faults import Fault, InvalidConfiguration, did_you_mean, shown
from kubesched.config.points import mentioned
from kubesched.config.registry import REMOVED, Registry
from kubesched.config.schema import API_VERSION, KIND, Configuration
from kubesched.config.strict import faults_of
from kubesched.config.validate import faults_in
from kubesched.config.yaml import Limits, line_of, parse, without_nulls
from kubesched.framework.errors import ConfigError
from kubesched.framework.features import Features


class Source(NamedTuple):
    """Where a configuration was read from, for those who find a fault in it later."""

    file: str = ""
    tree: Any = None

    def placed(self, error: ConfigError) -> InvalidConfiguration:
        """The same error with the file, and the line of every fault."""
        faults = (
            error.faults
            if isinstance(error, InvalidConfiguration)
            else [Fault(error.path, error.problem, error.remedy)]
        )
        lined = [structs.replace(fault, line=fault.line or line_of(self.tree, fault.path)) for fault in faults]
        return InvalidConfiguration(lined, self.file)


class Loaded(NamedTuple):
    """A configuration, what was changed or is worth a word, and where it came from."""

    configuration: Configuration
    notes: tuple[str, ...]
    source: Source


def load(
    raw: Mapping[str, Any], *, features: Features | None = None, registry: Registry | None = None
) -> Configuration:
    """The configuration a mapping describes; apiVersion and kind may be left out.  Raises ConfigError."""
    named = {"apiVersion": API_VERSION, "kind": KIND, **raw}
    return _loaded(without_nulls(named), Source(), features or Features(), registry or Registry()).configuration


def load_file(path: Path, *, features: Features | None = None, registry: Registry | None = None) -> Loaded:
    """The configuration in a file.  Raises ConfigError, with lines."""
    try:
        with path.open("rb") as file:
            data = file.read(Limits().size + 1)
    except OSError as error:
        remedy = "" if error.strerror is None else error.strerror.lower()
        raise InvalidConfiguration([Fault("", "cannot be read", remedy)], str(path)) from error
    registry = registry or Registry(folder=path.parent)
    return load_text(data, str(path), features=features, registry=registry)


def load_text(
    data: bytes, file: str = "", *, features: Features | None = None, registry: Registry | None = None
) -> Loaded:
    """The configuration in some bytes.  Raises ConfigError, with lines."""
    tree = parse(data, file)
    source = Source(file, tree)
    if not isinstance(tree, dict):
        raise source.placed(ConfigError("", f"is not a {KIND}", f"begin with apiVersion: {API_VERSION}"))
    try:
        return _loaded(without_nulls(tree), source, features or Features(), registry or Registry())
    except ConfigError as error:
        raise source.placed(error) from error


def _loaded(tree: dict[str, Any], source: Source, features: Features, registry: Registry) -> Loaded:
    _check_kind(tree)
    version = tree["apiVersion"].partition("/")[2]
    notes = convert(tree, version) if version in OLD_VERSIONS else []
    source = source._replace(tree=tree)
    del tree["apiVersion"], tree["kind"]
    try:
        _refuse(list(faults_of(tree, Configuration)))
        configuration = complete(msgspec.convert(tree, Configuration), features)
        _refuse(list(faults_in(configuration, registry, features)))
    except ConfigError as error:
        raise source.placed(error) from error
    notes += _unused(configuration, registry)
    return Loaded(configuration, tuple(notes), source)


def _refuse(faults: Sequence[Fault]) -> None:
    if faults:
        raise InvalidConfiguration(faults)


# ── is it one at all? ────────────────────────────────────────────────────────────────────────────────────────


def _check_kind(tree: Mapping[str, Any]) -> None:
    version, kind = tree.get("apiVersion", ""), tree.get("kind", "")
    for path, value in (("apiVersion", version), ("kind", kind)):
        if not value:
            raise ConfigError(path, "Required value", f"write apiVersion: {API_VERSION} and kind: {KIND}")
        if not isinstance(value, str):
            raise ConfigError(path, "must be a string")
    supported = [f"{GROUP}/{one}" for one in (API_VERSION.partition("/")[2], *OLD_VERSIONS)]
    if kind == KIND and version in supported:
        return
    problem = f"no kind {shown(kind)} is registered for version {shown(version)}"
    if kind != KIND:
        raise ConfigError("kind", problem, _other_kind(kind, tree))
    remedy = did_you_mean(version, supported) if not version.startswith(f"{GROUP}/") else ""
    raise ConfigError("apiVersion", problem, remedy or f"versions that are read: {', '.join(supported)}")


def _other_kind(kind: str, tree: Mapping[str, Any]) -> str:
    if kind == "ConfigMap":
        data = tree.get("data")
        files = ", ".join(map(str, data)) if isinstance(data, Mapping) and data else "none"
        return f"this is the ConfigMap, not a file in it; save one by itself: {files}"
    if kind == "Policy":
        return "policies went with Kubernetes 1.23; write a KubeSchedulerConfiguration with profiles"
    return did_you_mean(kind, [KIND]) or f"write kind: {KIND}"


# ── what is right, and yet without effect ────────────────────────────────────────────────────────────────────


def _unused(configuration: Configuration, registry: Registry) -> list[str]:
    """Names that mean nobody: kube-scheduler reads over them, and a misspelt one goes unnoticed."""
    notes: list[str] = []
    for at, profile in enumerate(configuration.profiles):
        assert profile.plugins is not None, "a completed profile has plugins"
        enabled, known = mentioned(profile.plugins), {*registry.names(), *REMOVED, "*"}
        for i, config in enumerate(profile.plugin_config):
            if config.name not in enabled:
                hint = did_you_mean(config.name, enabled) if config.name not in known else ""
                text = f"{shown(config.name)} is not enabled, so its arguments are not used"
                notes.append(f"profiles[{at}].pluginConfig[{i}]: {text}{f' ({hint})' if hint else ''}")
        for point, listed in profile.plugins.each():
            for i, ref in enumerate(listed.disabled):
                if ref.name not in known and ref.name not in enabled:
                    hint = did_you_mean(ref.name, known)
                    text = f"there is no plugin {shown(ref.name)} to disable{f' ({hint})' if hint else ''}"
                    notes.append(f"profiles[{at}].plugins.{point}.disabled[{i}]: {text}")
    return notes
