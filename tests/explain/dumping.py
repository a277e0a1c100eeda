"""Objects as kubectl prints them."""

import json
from typing import Any

import msgspec

from kubesched.api.kinds import KNOWN
from kubesched.api.objects import KubeObject


def manifest(obj: KubeObject) -> dict[str, Any]:
    """An object with its apiVersion, as plain data."""
    told: dict[str, Any] = msgspec.to_builtins(obj)
    return {"apiVersion": KNOWN[obj.kind].api_version, **told}


def listed(*objects: KubeObject | dict[str, Any]) -> str:
    """A List of objects, as JSON."""
    items = [manifest(obj) if isinstance(obj, KubeObject) else obj for obj in objects]
    return json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=4)
