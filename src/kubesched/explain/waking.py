"""When will a pod that fits nowhere be tried again?  The events its rejectors listen to, as a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kubesched.framework.events import NODE, POD, Action
from kubesched.framework.hooks import Plugin, name_of

_CHANGES: Mapping[Action, str] = MappingProxyType(
    {
        Action.ADD: "is added",
        Action.DELETE: "is deleted",
        Action.UPDATE: "changes",
        Action.UPDATE_NODE_ALLOCATABLE: "can give something else",
        Action.UPDATE_NODE_LABEL: "changes its labels",
        Action.UPDATE_NODE_TAINT: "changes its taints or is uncordoned",
        Action.UPDATE_NODE_CONDITION: "changes its conditions",
        Action.UPDATE_NODE_ANNOTATION: "changes its annotations",
        Action.UPDATE_NODE_DECLARED_FEATURE: "declares other features",
        Action.UPDATE_POD_LABEL: "changes its labels",
        Action.UPDATE_POD_SCALE_DOWN: "is scaled down",
        Action.UPDATE_POD_TOLERATION: "changes its tolerations",
        Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "loses its last gate",
        Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "gets its resource claims",
    }
)
_FIRST = (NODE, POD)


def retried_when(plugins: Iterable[Plugin], rejectors: Iterable[str]) -> str:
    """What may wake a pod these plugins turned down: `a Node is added or changes its labels; a Pod is deleted`.

    Empty where nobody in particular turned it down: it is then tried again after backing off.
    """
    names = set(rejectors)
    asked = [plugin for plugin in plugins if name_of(plugin) in names]
    if not asked:
        return ""
    heard: dict[str, Action] = {}
    for plugin in asked:
        if not hasattr(plugin, "events_to_register"):
            return "anything in the cluster changes"
        for hint in plugin.events_to_register():
            heard[hint.resource] = heard.get(hint.resource, Action(0)) | hint.action
    order = sorted(heard, key=lambda resource: (_FIRST.index(resource) if resource in _FIRST else 2, resource))
    return "; ".join(f"{_article(resource)} {_changes(heard[resource])}" for resource in order)


def _article(resource: str) -> str:
    kind = resource.rpartition("/")[2]
    return f"{'an' if kind[:1] in 'AEIO' else 'a'} {kind}"


def _changes(action: Action) -> str:
    if action & Action.UPDATE == Action.UPDATE:
        told = [action & Action.ADD, action & Action.DELETE, Action.UPDATE]
        return _joined([_CHANGES[one] for one in told if one])
    return _joined([text for one, text in _CHANGES.items() if one is not Action.UPDATE and one & action])


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
