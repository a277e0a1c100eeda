"""kubesched: a Kubernetes scheduler, and a framework to write schedulers with.

These names are all that a plugin, a notebook or the tutorial needs.  Each is fetched when it is first used, so
that `import kubesched` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kubesched.api.kinds import Column, CustomResource
    from kubesched.api.objects import Node, Pod
    from kubesched.api.time import milliseconds, minutes, seconds
    from kubesched.cluster.columns import Nodes
    from kubesched.cluster.nodeinfo import NodeInfo
    from kubesched.cluster.podinfo import PodInfo
    from kubesched.core.core import Core
    from kubesched.core.queue import PriorityQueue, SimpleQueue
    from kubesched.core.schedule import schedule
    from kubesched.framework.cycle import Cycle
    from kubesched.framework.decision import Decision
    from kubesched.framework.errors import ConfigError, KubeschedError, PluginError
    from kubesched.framework.events import Action, Hint, QueueingHint
    from kubesched.framework.hooks import NodeSubset, Nomination
    from kubesched.framework.profile import Profile
    from kubesched.framework.records import Record, State
    from kubesched.framework.status import SKIP, SUCCESS, Status, Wait, error, pending, unresolvable, unschedulable
    from kubesched.framework.tools import Tools
    from kubesched.framework.vector import Verdict
    from kubesched.sim.simulation import Simulation

_HOMES = {
    "kubesched.api.kinds": ("Column", "CustomResource"),
    "kubesched.api.objects": ("Node", "Pod"),
    "kubesched.api.time": ("milliseconds", "minutes", "seconds"),
    "kubesched.cluster.columns": ("Nodes",),
    "kubesched.cluster.nodeinfo": ("NodeInfo",),
    "kubesched.cluster.podinfo": ("PodInfo",),
    "kubesched.core.core": ("Core",),
    "kubesched.core.queue": ("PriorityQueue", "SimpleQueue"),
    "kubesched.core.schedule": ("schedule",),
    "kubesched.framework.cycle": ("Cycle",),
    "kubesched.framework.decision": ("Decision",),
    "kubesched.framework.errors": ("ConfigError", "KubeschedError", "PluginError"),
    "kubesched.framework.events": ("Action", "Hint", "QueueingHint"),
    "kubesched.framework.hooks": ("Nomination", "NodeSubset"),
    "kubesched.framework.profile": ("Profile",),
    "kubesched.framework.records": ("Record", "State"),
    "kubesched.framework.status": (
        "SKIP",
        "SUCCESS",
        "Status",
        "Wait",
        "error",
        "pending",
        "unresolvable",
        "unschedulable",
    ),
    "kubesched.framework.tools": ("Tools",),
    "kubesched.framework.vector": ("Verdict",),
    "kubesched.sim.simulation": ("Simulation",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "SKIP",
    "SUCCESS",
    "Action",
    "Column",
    "ConfigError",
    "Core",
    "CustomResource",
    "Cycle",
    "Decision",
    "Hint",
    "KubeschedError",
    "Node",
    "NodeInfo",
    "NodeSubset",
    "Nodes",
    "Nomination",
    "PluginError",
    "Pod",
    "PodInfo",
    "PriorityQueue",
    "Profile",
    "QueueingHint",
    "Record",
    "SimpleQueue",
    "Simulation",
    "State",
    "Status",
    "Tools",
    "Verdict",
    "Wait",
    "error",
    "milliseconds",
    "minutes",
    "pending",
    "schedule",
    "seconds",
    "unresolvable",
    "unschedulable",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'kubesched' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
