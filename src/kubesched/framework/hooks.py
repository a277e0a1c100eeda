"""The scalar hooks, named as in Go, and what a class must look like to be a plugin.

A plugin is a plain class with the methods of the extension points it takes part in; there is nothing to inherit.
`check()` compares a class with the Protocols here when it is loaded, so that a hook with a wrong signature is a
sentence at start-up and not a surprise in the middle of the night.

Every hook is called with positional arguments.  Hooks decide; they never wait, read a clock or open a socket.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from kubesched.api.kinds import KNOWN, CustomResource, kind_of
from kubesched.api.objects import KubeObject
from kubesched.framework.errors import ConfigError

if TYPE_CHECKING:
    from kubesched.cluster.columns import Nodes
    from kubesched.cluster.nodeinfo import NodeInfo
    from kubesched.cluster.podinfo import PodInfo
    from kubesched.cluster.types import Rows, Scores
    from kubesched.framework.cycle import Cycle
    from kubesched.framework.decision import Rejected
    from kubesched.framework.events import Hint
    from kubesched.framework.queued import QueuedPod
    from kubesched.framework.status import Status, Wait
    from kubesched.framework.steps import Steps

Plugin: TypeAlias = Any  # any object with some of the methods below
Signature: TypeAlias = tuple[tuple[str, Any], ...]  # (what is read of a pod, its value), values hashable


class NodeSubset(Struct, frozen=True):
    """A pre_filter's yes with a limit: only these nodes can be meant."""

    names: frozenset[str]


class Nomination(Struct, frozen=True):
    """A post_filter's answer: room to be made on a node by evicting pods.

    An empty node takes an earlier nomination back; then `status` says why nothing was found.
    """

    node: str
    victims: tuple[PodInfo, ...] = ()
    status: Status | None = None


# ── one Protocol per hook ────────────────────────────────────────────────────────────────────────────────────


class PreEnqueue(Protocol):
    def pre_enqueue(self, pod: PodInfo) -> Status: ...


class QueueSort(Protocol):
    def key(self, pod: QueuedPod) -> tuple[Any, ...]: ...


class Less(Protocol):
    def less(self, a: QueuedPod, b: QueuedPod) -> bool: ...


class PreFilter(Protocol):
    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> NodeSubset | Status: ...


class AddRemove(Protocol):
    def add_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None: ...
    def remove_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None: ...


class Filter(Protocol):
    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status: ...


class PostFilter(Protocol):
    def post_filter(self, cycle: Cycle, pod: PodInfo, rejected: Rejected) -> Nomination | Status: ...


class PreScore(Protocol):
    def pre_score(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status: ...


class Score(Protocol):
    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int: ...


class Normalize(Protocol):
    def normalize_score(self, cycle: Cycle, pod: PodInfo, scores: Scores) -> Scores: ...


class Spare(Protocol):
    """A filter that can work out, without trying, whom its pod must be rid of on a node."""

    def spare(
        self, cycle: Cycle, pod: PodInfo, node: NodeInfo, others: Sequence[PodInfo]
    ) -> Sequence[PodInfo] | Status:
        """As if all of `others`, who are on the node, left and came back one by one, each if the pod still passes.

        Returns those who cannot come back, in the same order; a no where the pod does not pass even without them.
        """
        ...


class Reserve(Protocol):
    def reserve(self, cycle: Cycle, pod: PodInfo, node: str) -> Status: ...
    def unreserve(self, cycle: Cycle, pod: PodInfo, node: str) -> None: ...


class Permit(Protocol):
    def permit(self, cycle: Cycle, pod: PodInfo, node: str) -> Status | Wait: ...


class PreBind(Protocol):
    def pre_bind(self, cycle: Cycle, pod: PodInfo, node: str) -> Status | Steps: ...


class Bind(Protocol):
    def bind(self, cycle: Cycle, pod: PodInfo, node: str) -> Status | Steps: ...


class PostBind(Protocol):
    def post_bind(self, cycle: Cycle, pod: PodInfo, node: str) -> None: ...


class Hints(Protocol):
    def events_to_register(self) -> Sequence[Hint]: ...


class Sign(Protocol):
    def sign_pod(self, pod: PodInfo) -> Signature | Status: ...


class Boarded(Protocol):
    """A plugin whose answers may be kept and used again for pods alike.  One that declares nothing is always asked.

    Instead of `alike`, `sign_pod` will do, where it reads the same.  `board` is "node" where the answer for a node
    hangs on the node itself and on nothing that sits there, "row" where it also hangs on the pods of that node.
    """

    board: Literal["node", "row"]

    def alike(self, cycle: Cycle, pod: PodInfo) -> Hashable | None:
        """What is read of a pod: pods with equal values get equal answers.  None: keep nothing for this pod."""
        ...


class WithContext(Protocol):
    def context(self, cycle: Cycle) -> Hashable:
        """What `alike` reads besides the pod: of the other objects, of the nodes, of the groups with affinity."""
        ...


class WithOutlook(Protocol):
    def outlook(self, cycle: Cycle, pod: PodInfo) -> Hashable:
        """What is read of the cluster besides a node's own row: while it is equal, other rows need no new answer.

        It may hang on the other objects, the nodes and the groups of pods with affinity; where there is a
        pre_score, also on which nodes are feasible.  What hangs on pods elsewhere is RESTLESS, every row being
        asked again for every pod, unless the plugin follows them.
        """
        ...


class Following(Protocol):
    """A plugin that keeps count of pods elsewhere, and knows whom it concerns that some came or went.

    Either hook brings up to date what pre_filter, or pre_score, has put into the cycle, and names the rows that
    may get another answer by it.  None: too much has happened; ask pre_filter, or pre_score, and every row anew.
    """

    def refilter(self, cycle: Cycle, pod: PodInfo) -> Rows | None: ...

    def rescore(self, cycle: Cycle, pod: PodInfo, moved: bool) -> Rows | None:
        """`moved`: other nodes are feasible than before."""
        ...


class ByValue(Protocol):
    def by_value(self, cycle: Cycle, pod: PodInfo) -> bool:
        """Whether normalize_score, for this pod, looks at nothing but which scores there are.

        Then it is asked about each different score once, and only when there are others than before.
        """
        ...


RESTLESS = object()


class Reader(Protocol):
    """A plugin that reads other objects than pods and nodes.

    From this one declaration follow what is watched, what the role of a deployed scheduler allows, and, where the
    plugin registers no events of its own, what wakes the pods it turned down.
    """

    reads: tuple[type[KubeObject], ...]


class Write(Struct, frozen=True):
    """Something a plugin has done to other objects than the pod it places."""

    verb: Literal["create", "patch", "delete"]
    kind: type[KubeObject]
    subresource: str = ""


class Writer(Protocol):
    """A plugin whose steps or nominations change other objects: the role of a deployed scheduler allows just that."""

    writes: tuple[Write, ...]


# ── extension points, as in a KubeSchedulerConfiguration ─────────────────────────────────────────────────────


class Method(NamedTuple):
    """A method a plugin may have: its name, and the parameters it is called with."""

    name: str
    parameters: tuple[str, ...]


_ON_NODE = ("cycle", "pod", "node")
_ON_NODES = ("cycle", "pod", "nodes")

POINTS: dict[str, tuple[Method, ...]] = {
    "preEnqueue": (Method("pre_enqueue", ("pod",)),),
    "queueSort": (Method("key", ("pod",)), Method("less", ("a", "b"))),
    "preFilter": (Method("pre_filter", _ON_NODES),),
    "filter": (Method("filter", _ON_NODE), Method("filter_all", _ON_NODES)),
    "postFilter": (Method("post_filter", ("cycle", "pod", "rejected")),),
    "preScore": (Method("pre_score", _ON_NODES),),
    "score": (Method("score", _ON_NODE), Method("score_all", _ON_NODES)),
    "reserve": (Method("reserve", _ON_NODE),),
    "permit": (Method("permit", _ON_NODE),),
    "preBind": (Method("pre_bind", _ON_NODE),),
    "bind": (Method("bind", _ON_NODE),),
    "postBind": (Method("post_bind", _ON_NODE),),
}
"""Which methods make a plugin part of an extension point; one of them is enough."""

HELPERS = (
    Method("add_pod", ("cycle", "pod", "other", "node")),
    Method("remove_pod", ("cycle", "pod", "other", "node")),
    Method("spare", ("cycle", "pod", "node", "others")),
    Method("normalize_score", ("cycle", "pod", "scores")),
    Method("unreserve", _ON_NODE),
    Method("events_to_register", ()),
    Method("sign_pod", ("pod",)),
    Method("alike", ("cycle", "pod")),
    Method("context", ("cycle",)),
    Method("outlook", ("cycle", "pod")),
    Method("refilter", ("cycle", "pod")),
    Method("rescore", ("cycle", "pod", "moved")),
    Method("by_value", ("cycle", "pod")),
)
"""Methods that go along with an extension point."""


def name_of(plugin: Plugin) -> str:
    """The name of a plugin (an instance or a class): its `name`, or its class's."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    return str(getattr(plugin, "name", cls.__name__))


def points_of(plugin: Plugin) -> tuple[str, ...]:
    """The extension points a plugin takes part in, by its methods."""
    return tuple(point for point, methods in POINTS.items() if any(hasattr(plugin, method.name) for method in methods))


def reads_of(plugin: Plugin) -> tuple[type[KubeObject], ...]:
    """The kinds a plugin reads besides pods and nodes (an instance or a class).  Raises ConfigError."""
    declared = getattr(plugin, "reads", ())
    kinds = declared if isinstance(declared, tuple) else (declared,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, KubeObject)):
            problem = f"{name_of(plugin)}.reads names {kind!r}, which is no kind of object"
            raise ConfigError("", problem, "write classes: reads = (PersistentVolumeClaim,)")
        if issubclass(kind, CustomResource):
            _check_custom(plugin, kind)
    return kinds


def writes_of(plugin: Plugin) -> tuple[Write, ...]:
    """What a plugin has done to other objects (an instance or a class).  Raises ConfigError."""
    declared = getattr(plugin, "writes", ())
    writes = declared if isinstance(declared, tuple) else (declared,)
    for write in writes:
        if not isinstance(write, Write):
            remedy = 'write writes = (Write("patch", PersistentVolumeClaim),)'
            raise ConfigError("", f"{name_of(plugin)}.writes names {write!r}, which is no Write", remedy)
    return writes


def _check_custom(plugin: Plugin, kind: type[CustomResource]) -> None:
    if kind.__name__ in KNOWN:
        problem = f"{name_of(plugin)}.reads names a {kind.__name__} of its own, and Kubernetes has a kind of that name"
        raise ConfigError("", problem, f"read {KNOWN[kind.__name__].resource}, or give the class another name")
    try:
        kind_of(kind)
    except ValueError as error:
        raise ConfigError("", f"{name_of(plugin)}.reads: {error}") from None


def check(plugin: Plugin) -> None:
    """Compare a plugin with the hooks it seems to implement.  Raises ConfigError."""
    for method in (*(method for methods in POINTS.values() for method in methods), *HELPERS):
        hook = getattr(plugin, method.name, None)
        if hook is not None:
            _check_method(plugin, method, hook)
    _check_pairs(plugin)
    reads_of(plugin)
    writes_of(plugin)


def _check_method(plugin: Plugin, method: Method, hook: Any) -> None:
    where = f"{name_of(plugin)}.{method.name}"
    if not callable(hook):
        raise ConfigError("", f"{where} is not a method", f"a {method.name} takes {_listed(method.parameters)}")
    if inspect.iscoroutinefunction(hook):
        raise ConfigError("", f"{where} is async; hooks never wait", "a pre_bind or bind yields steps instead")
    expected = len(method.parameters) + isinstance(plugin, type)  # a class's function still has its self
    try:
        signature = inspect.signature(hook)
        signature.bind(*range(expected))
    except TypeError:
        given = [name for name in signature.parameters if name != "self"]
        problem = f"{where} takes {_listed(given)}; a {method.name} takes {_listed(method.parameters)}"
        raise ConfigError("", problem, f"see docs/hooks.md#{method.name}") from None
    except ValueError:
        return  # a builtin without a signature: the first call will tell


def _check_pairs(plugin: Plugin) -> None:
    for one, other in (("reserve", "unreserve"), ("add_pod", "remove_pod"), ("key", "less")):
        has_one, has_other = hasattr(plugin, one), hasattr(plugin, other)
        if one == "key":
            if has_one and has_other:
                raise ConfigError("", f"{name_of(plugin)} has both key and less", "one order is enough: keep key")
        elif has_one != has_other:
            have, lack = (one, other) if has_one else (other, one)
            raise ConfigError("", f"{name_of(plugin)} has {have} but no {lack}", "the two undo each other: write both")
    if hasattr(plugin, "normalize_score") and not (hasattr(plugin, "score") or hasattr(plugin, "score_all")):
        raise ConfigError("", f"{name_of(plugin)} has normalize_score but no score", "write score, or take it out")


def _listed(parameters: Sequence[str]) -> str:
    return f"({', '.join(parameters)})"
