"""Choose how to answer from what the Accept header asks for.

Go clients list protobuf first and JSON second and read whatever comes back, so JSON alone serves them.  kubectl asks
for a Table (`as=Table`) and metadata-only clients for PartialObjectMetadata; both are ways to show the same objects.
Answers are JSON, or YAML for whoever asks for nothing else.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from kubesched.apiserver.status import ApiError, not_acceptable

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
AVAILABLE = (JSON, YAML, PROTOBUF)

TABLE = "Table"
PARTIAL = "PartialObjectMetadata"
PARTIAL_LIST = "PartialObjectMetadataList"
_SHAPES = (TABLE, PARTIAL, PARTIAL_LIST)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The media type of the answer, and the shape of the object in it ("" is its own)."""

    media: str = JSON
    shape: str = ""
    version: str = "v1"


@dataclass(frozen=True, slots=True)
class Clause:
    """One alternative of an Accept header."""

    media: str
    params: tuple[tuple[str, str], ...]
    quality: float

    def param(self, name: str) -> str:
        return next((value for key, value in self.params if key == name), "")


@functools.lru_cache(maxsize=256)
def clauses(accept: str) -> tuple[Clause, ...]:
    """Split an Accept header, best first."""
    found: list[Clause] = []
    for part in accept.split(","):
        media, *rest = (piece.strip() for piece in part.split(";"))
        params = tuple((key.strip(), value.strip()) for key, _, value in (piece.partition("=") for piece in rest))
        try:
            quality = float(next((value for key, value in params if key == "q"), "1"))
        except ValueError:
            quality = 1.0
        if media:
            found.append(Clause(media.lower(), params, quality))
    return tuple(sorted(found, key=lambda clause: -clause.quality))


def _media(asked: str) -> str:
    if asked in ("*/*", "application/*", JSON):
        return JSON
    return asked if asked == YAML else ""


@functools.lru_cache(maxsize=256)
def negotiate(accept: str) -> Wanted:
    """Return what to answer a read or a write with; 406 when nothing fits."""
    if not accept:
        return Wanted()
    shapes_refused = False
    for clause in clauses(accept):
        media = _media(clause.media)
        shape = clause.param("as")
        if shape and (
            shape not in _SHAPES or clause.param("g") != "meta.k8s.io" or clause.param("v") not in ("v1", "v1beta1")
        ):
            shapes_refused = True
            continue
        if media:
            return Wanted(media, shape, clause.param("v") or "v1")
    raise not_acceptable(AVAILABLE) if shapes_refused else _nothing_fits()


def _nothing_fits() -> ApiError:
    available = ", ".join((*AVAILABLE, f"{JSON};stream=watch", f"{PROTOBUF};stream=watch"))
    return ApiError(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {available}", {})
