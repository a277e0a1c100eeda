"""Who else lives in the cluster: kubelets, controllers that bring pods back, a provisioner, and writers of small talk.

They see every change at once and act a little later, as real ones do.  When the quiet begins they finish what they
are at, and start nothing new.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kubesched.api.time import format_rfc3339, milliseconds
from kubesched.apiserver.status import ApiError
from kubesched.drive.requests import split
from kubesched.fuzz.plan import Json

if TYPE_CHECKING:
    from kubesched.fuzz.stage import Stage

_FINAL = ("Succeeded", "Failed")  # phases that no kubelet takes back


class People:
    """Sees what the judge sees, and acts."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self._custom = stage, stage.plan.custom
        self._returned: dict[str, int] = {}  # origin → how often it came back
        self._started: set[str] = set()
        self._ending: set[str] = set()

    def begin(self) -> None:
        if self._custom.chatter:
            self._later(self._custom.chatter, self._chat)

    def pod_changed(self, pod: Json, gone: bool) -> None:
        meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
        uid = meta["uid"]
        finished = status.get("phase") in _FINAL
        if gone or finished:
            self._come_back(pod)
        if gone:
            return
        if meta.get("deletionTimestamp"):
            if uid not in self._ending and self._custom.kubelet:
                self._ending.add(uid)
                grace = min(meta.get("deletionGracePeriodSeconds") or 0, 30)
                self._later(grace * 1000 + self._custom.kubelet, partial(self._let_go, pod))
        elif spec.get("nodeName") and self._custom.kubelet and uid not in self._started:
            self._started.add(uid)
            self._later(self._custom.kubelet, partial(self._say, pod, "Running"))
            if self._custom.life:
                lives = self._stage.tape.below(2 * self._custom.life, "life", uid)
                self._later(self._custom.kubelet + lives, partial(self._end, pod))

    def volume_changed(self, volume: Json) -> None:
        """A volume that was claimed is bound to its claim."""
        claim = (volume.get("spec") or {}).get("claimRef")
        if self._custom.provisioner and claim and (volume.get("status") or {}).get("phase") != "Bound":
            self._later(20, partial(self._bind_volume, volume["metadata"]["name"], claim))

    def node_gone(self, name: str) -> None:
        """The pods of a node that is no more are collected, as the pod garbage collector does."""
        self._later(2_000, partial(self._collect, name))

    # ── what they do ─────────────────────────────────────────────────────────────────────────────────────────

    def _later(self, wait: int, action: object) -> None:
        assert callable(action), "an action is something to do"
        self._stage.later(milliseconds(wait), action)

    def _chat(self) -> None:
        """A heartbeat of a node, or an annotation on a pod: news that change nothing, and versions that do."""
        stage, truth = self._stage, self._stage.judge.truth
        if stage.calm:
            return
        self._later(self._custom.chatter, self._chat)
        kind, known = ("Node", truth.nodes) if stage.steps % 2 else ("Pod", truth.pods)
        if known:
            key = stage.tape.choice(list(known), "chat", stage.now)
            namespace, name = split(key)
            said: Json = {"metadata": {"annotations": {"example.com/seen": str(stage.now)}}}
            if kind == "Node":
                beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": format_rfc3339(stage.now)}
                said = {"status": {"conditions": [beat]}}
            stage.cluster.patch(kind, namespace, name, said)

    def _say(self, pod: Json, phase: str) -> None:
        meta = pod["metadata"]
        found = self._stage.cluster.find("Pod", meta["namespace"], meta["name"])
        if found is None or found["metadata"]["uid"] != meta["uid"]:
            return
        if (found.get("status") or {}).get("phase") not in _FINAL:
            self._stage.cluster.patch("Pod", meta["namespace"], meta["name"], {"status": {"phase": phase}})

    def _end(self, pod: Json) -> None:
        if not self._stage.calm:
            self._say(pod, "Succeeded")

    def _let_go(self, pod: Json) -> None:
        meta = pod["metadata"]
        try:
            self._stage.cluster.delete("Pod", meta["namespace"], meta["name"], uid=meta["uid"], grace=0)
        except ApiError:
            return  # somebody was faster

    def _collect(self, node: str) -> None:
        if self._stage.cluster.find("Node", "", node) is None:
            for pod in self._stage.cluster.list("Pod"):
                if (pod.get("spec") or {}).get("nodeName") == node:
                    self._let_go(pod)

    def _come_back(self, pod: Json) -> None:
        """A controller makes a new pod for one that went, a few times."""
        origin = (pod["metadata"].get("labels") or {}).get("origin")
        if origin is None or self._stage.calm:
            return
        if self._returned.get(origin, 0) >= self._custom.recreate:
            return
        times = self._returned[origin] = self._returned.get(origin, 0) + 1
        name = origin if self._custom.same_name else f"{origin}-{times}"
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        labels = pod["metadata"]["labels"]
        new = {"kind": "Pod", "metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}
        self._later(self._custom.recreate_after, partial(self._create, new))

    def _create(self, pod: Json) -> None:
        if not self._stage.calm:
            try:
                self._stage.cluster.create(pod)
            except ApiError:
                return  # the name is taken

    def _bind_volume(self, name: str, claim: Json) -> None:
        try:
            self._stage.cluster.patch("PersistentVolume", "", name, {"status": {"phase": "Bound"}})
            body = {
                "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"volumeName": name},
                "status": {"phase": "Bound"},
            }
            self._stage.cluster.patch("PersistentVolumeClaim", claim["namespace"], claim["name"], body)
        except ApiError:
            return  # one of the two went away
