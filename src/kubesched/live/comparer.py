"""Is what we believe what there is?  The cache and the queue beside fresh lists from the API server, on SIGUSR2.

News take a moment, so a difference counts only if it is still there a moment later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec
from msgspec import Struct

from kubesched.core.core import Core
from kubesched.framework.errors import Unreachable, WorldError
from kubesched.live.reviewing import Asker, message_of
from kubesched.wire.exchange import Request, Unanswered

PAGE = 500
LOOK_AGAIN_AFTER = 3.0  # seconds
_UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


class Differences(NamedTuple):
    """Names (pods: `namespace/name`) that only the server has, that only we have, and pods on another node."""

    missed_nodes: tuple[str, ...] = ()
    redundant_nodes: tuple[str, ...] = ()
    missed_pods: tuple[str, ...] = ()
    redundant_pods: tuple[str, ...] = ()
    misplaced_pods: tuple[str, ...] = ()

    def also_in(self, other: Differences) -> Differences:
        """What both of two looks found."""
        pairs = zip(self, map(set, other), strict=True)
        return Differences(*(tuple(name for name in mine if name in theirs) for mine, theirs in pairs))


class _Meta(Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Spec(Struct, rename="camel"):
    node_name: str = ""


class _Object(Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Continue(Struct):
    token: str = msgspec.field(default="", name="continue")


class _List(Struct):
    metadata: _Continue = msgspec.field(default_factory=_Continue)
    items: list[_Object] = []


async def differences(asker: Asker, core: Core) -> Differences:
    """Compare twice; what stays different.  Raises WorldError."""
    first = await look(asker, core)
    if not any(first):
        return first
    await asyncio.sleep(LOOK_AGAIN_AFTER)
    return first.also_in(await look(asker, core))


async def look(asker: Asker, core: Core) -> Differences:
    """What the API server has, and what the core believes, at about the same moment.  Raises WorldError."""
    nodes = {node.metadata.name: node.metadata.uid async for node in _all(asker, "/api/v1/nodes")}
    pods = {pod.metadata.uid: pod async for pod in _all(asker, "/api/v1/pods", _UNFINISHED)}
    table, placed = core.mirror.table, core.mirror.placed
    ours = {name: found.uid for name, row in table.row_of.items() if (found := table.nodes[row]) is not None}
    known = {pod.uid: key for key, pod in core.mirror.pods.items()}
    known |= {found.metadata.uid: key for (kind, key), found in core.mirror.invalid.items() if kind == "Pod"}
    return Differences(
        missed_nodes=tuple(sorted(name for name, uid in nodes.items() if ours.get(name) != uid)),
        redundant_nodes=tuple(sorted(name for name, uid in ours.items() if nodes.get(name) != uid)),
        missed_pods=tuple(sorted(_key(pod) for uid, pod in pods.items() if uid not in known)),
        redundant_pods=tuple(sorted(key for uid, key in known.items() if uid not in pods)),
        misplaced_pods=tuple(
            sorted(
                _key(pod)
                for uid, pod in pods.items()
                if pod.spec.node_name and uid in placed and placed[uid].node != pod.spec.node_name
            )
        ),
    )


def _key(pod: _Object) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


async def _all(asker: Asker, path: str, selector: str = "") -> AsyncIterator[_Object]:
    """A consistent list, page by page."""
    token = ""
    while True:
        query = [("limit", str(PAGE)), ("continue", token), ("fieldSelector", selector)]
        got = await asker.ask(Request(method="GET", path=path, query=tuple(pair for pair in query if pair[1])))
        if isinstance(got, Unanswered):
            raise Unreachable(got.why)
        if got.status != 200:
            raise WorldError(f"{path}: the API server answered {got.status}: {message_of(got)}")
        try:
            page = msgspec.json.decode(got.body, type=_List)
        except msgspec.DecodeError as error:
            raise WorldError(f"{path}: the answer of the API server cannot be read: {error}") from None
        for item in page.items:
            yield item
        token = page.metadata.token
        if not token:
            return
