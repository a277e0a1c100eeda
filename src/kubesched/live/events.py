"""Events for people, written to the cluster: what a scheduler publishes, as `kubectl describe` shows it.

The same thing said again is counted on the Event that said it first, so a pod that waits for an hour has one
FailedScheduling and not a thousand.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from kubesched.api.time import Instant, format_micro, format_rfc3339
from kubesched.apiserver.inprocess import InProcess
from kubesched.apiserver.status import ApiError
from kubesched.core.messages import Publish

Json = dict[str, Any]

REMEMBERED = 4096
NOTE_MAX = 1024


class Events:
    """Writes Events through a caller of the API server.

    Args:
        instance: which scheduler this is.
    """

    def __init__(self, cluster: InProcess, now: Callable[[], Instant], instance: str = "kubesched") -> None:
        self._cluster, self._now, self._instance = cluster, now, instance
        self._said: OrderedDict[tuple[str, ...], tuple[str, str, int]] = OrderedDict()

    def publish(self, effect: Publish) -> None:
        """Write an Event, or count it where it was written before.  Raises ApiError."""
        namespace, _, name = effect.regarding.rpartition("/")
        namespace = namespace or "default"
        same = (effect.regarding, effect.uid, effect.reason, effect.action, effect.note, effect.type)
        known = self._said.pop(same, None)
        if known is not None:
            event, kind, count = known
            self._said[same] = (event, kind, count + 1)
            body = {"count": count + 1, "lastTimestamp": format_rfc3339(self._now())}
            try:
                self._cluster.change("events", namespace, event, body, "", "")
                return
            except ApiError as error:
                if error.reason != "NotFound":
                    raise
        made = self._cluster.create_in("events", self._event(effect, namespace, name))
        self._said[same] = (made["metadata"]["name"], effect.kind, 1)
        if len(self._said) > REMEMBERED:
            self._said.popitem(last=False)

    def _event(self, effect: Publish, namespace: str, name: str) -> Json:
        now = self._now()
        stamp = format_rfc3339(now)
        reference = {"apiVersion": "v1", "kind": effect.kind, "namespace": namespace, "name": name, "uid": effect.uid}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            # Kept from client-go: the name of an Event is its object's and the moment, in hexadecimal.
            "metadata": {"name": f"{name}.{now:x}"[-253:], "namespace": namespace},
            "involvedObject": reference,
            "reason": effect.reason,
            "message": effect.note[:NOTE_MAX],
            "action": effect.action,
            "type": effect.type,
            "eventTime": format_micro(now),
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
            "reportingComponent": effect.reporter,
            "reportingInstance": self._instance,
            "source": {"component": effect.reporter},
        }
