"""A Configuration as a document with every field said, the defaults too: what /configz shows, as in kube-scheduler."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kubesched.config.schema import API_VERSION, KIND, Configuration

Json = dict[str, Any]


def document(configuration: Configuration) -> Json:
    """What a file could say to mean this configuration; a field that has no value is left out."""
    return {"kind": KIND, "apiVersion": API_VERSION, **_whole(configuration)}


def _whole(value: Any) -> Any:
    if isinstance(value, Struct):
        named = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return {name: _whole(found) for name, field in named if (found := getattr(value, field)) is not None}
    if isinstance(value, (list, tuple)):
        return [_whole(one) for one in value]
    return msgspec.to_builtins(value)
