"""A Configuration as a document with every field said, the defaults too: what /configz shows, as in kube-scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from kubesched.config.schema import API_VERSION, KIND, Configuration
from kubesched.framework.hooks import name_of
from kubesched.framework.profile import Profile

Json = dict[str, Any]


def document(configuration: Configuration, profiles: Mapping[str, Profile]) -> Json:
    """What a file could say to mean this configuration; a field that has no value is left out.

    Args:
        profiles: what was made of it; their plugins know the arguments they work with.
    """
    whole: Json = {"kind": KIND, "apiVersion": API_VERSION, **_whole(configuration)}
    for profile in whole["profiles"]:
        given = {one["name"]: one for one in profile["pluginConfig"]}
        given.update(_arguments(profiles[profile["schedulerName"]]))
        profile["pluginConfig"] = [given[name] for name in sorted(given)]
    return whole


def _arguments(profile: Profile) -> dict[str, Json]:
    """The arguments that plugins work with, by plugin, as a file would give them."""
    found = {}
    for plugin in profile.plugins:
        args, name = getattr(plugin, "args", None), name_of(plugin)
        if isinstance(args, Struct):
            found[name] = {"name": name, "args": {"kind": f"{name}Args", "apiVersion": API_VERSION, **_whole(args)}}
    return found


def _whole(value: Any) -> Any:
    if isinstance(value, Struct):
        named = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return {name: _whole(found) for name, field in named if (found := getattr(value, field)) is not None}
    if isinstance(value, (list, tuple)):
        return [_whole(one) for one in value]
    return msgspec.to_builtins(value)
