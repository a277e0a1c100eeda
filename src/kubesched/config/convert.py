"""From v1beta1, v1beta2 and v1beta3 to v1, with one line said for every change.

Kubernetes serves none of the three any more, while files that are written in them are still mounted.  What they
mean is kept: a version's own default weights, where a file relied on them; the plugins that were folded into others;
the fields that moved to the command line.  What has no successor and cannot be dropped without changing decisions
is a fault.

Conversion works on the tree as it was read and touches only what has the expected shape; the strict decoding that
follows finds the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from kubesched.config.convert_plugins import convert_profile, list_at, mapping_at, refs
from kubesched.config.schema import API_VERSION

GROUP = API_VERSION.partition("/")[0]
OLD_VERSIONS = ("v1beta3", "v1beta2", "v1beta1")
"""The versions that are converted, newest first."""

_ADDRESSES = ("healthzBindAddress", "metricsBindAddress")
_OLD_LOCKS = ("endpoints", "configmaps", "endpointsleases", "configmapsleases")
_OWN_WEIGHTS: Mapping[str, int] = MappingProxyType({"TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1})
"""Where v1beta1 and v1beta2 weigh a plugin differently by default."""


def convert(tree: dict[str, Any], version: str) -> list[str]:
    """Turn a document of an old version into one of v1, in place.  Returns a line per change.  Raises ConfigError."""
    assert version in OLD_VERSIONS, version
    notes = [f"apiVersion: {GROUP}/{version} is read as {API_VERSION}"]
    tree["apiVersion"] = API_VERSION
    for name in _ADDRESSES:
        if tree.pop(name, None):
            notes.append(f"{name}: dropped; where to serve is said on the command line (--bind-address, --secure-port)")
    election = tree.get("leaderElection")
    if isinstance(election, dict) and election.get("resourceLock") in _OLD_LOCKS:
        notes.append(f"leaderElection.resourceLock: {election['resourceLock']} is now leases")
        election["resourceLock"] = "leases"
    if version in ("v1beta1", "v1beta2") and not tree.get("profiles"):
        tree["profiles"] = [{}]  # the default profile of that version
    for at, profile in enumerate(list_at(tree, "profiles", "")):
        if not isinstance(profile, dict):
            continue
        path = f"profiles[{at}]"
        notes += convert_profile(profile, version, path)
        if version in ("v1beta1", "v1beta2"):
            notes += _keep_weights(profile, version, path)
    return notes


def _keep_weights(profile: dict[str, Any], version: str, path: str) -> Iterator[str]:
    """Say the weights a file of this version may have left out."""
    multi = mapping_at(mapping_at(profile, "plugins", path), "multiPoint", f"{path}.plugins")
    said = {
        ref["name"]
        for listed in (profile["plugins"].get("score"), multi)
        for key in ("enabled", "disabled")
        for ref in refs(listed, key)
    }
    kept = [name for name in _OWN_WEIGHTS if name not in said and "*" not in said]
    if kept:
        enabled = list_at(multi, "enabled", f"{path}.plugins.multiPoint")
        enabled.extend({"name": name, "weight": _OWN_WEIGHTS[name]} for name in kept)
        yield f"{path}.plugins.multiPoint: {', '.join(kept)} keep the weight 1 that {version} gives them"
