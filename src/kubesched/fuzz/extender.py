"""An extender, played: one that does its work well, is strict, hangs, talks nonsense, or binds pods itself."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from kubesched.api.time import Duration, milliseconds, seconds
from kubesched.apiserver.status import ApiError
from kubesched.framework.steps import Answer, Failure, HttpPost
from kubesched.fuzz.plan import Json

if TYPE_CHECKING:
    from kubesched.fuzz.stage import Stage

MANNERS = ("well", "strict", "hanging", "evil", "binding")
TIMEOUT: Duration = seconds(5)
_NONSENSE: tuple[Any, ...] = (
    None,
    [],
    "ok",
    {"Nodes": 7},
    {"NodeNames": ["a-node-nobody-asked-about"]},
    {"NodeNames": [None, 3]},
    {"Error": "no"},
    {"NodeNames": [], "FailedNodes": []},
    [{"Host": "a-node-nobody-asked-about", "Score": 10**30}],
    [{"Host": 5, "Score": -1}],
    [{"Score": float("nan")}],
)


def configured(manner: str, luck: Random) -> Json:
    """One of its manner, as a configuration has it."""
    assert manner in MANNERS, "a manner it can play"
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1}
    if manner == "binding":
        verbs |= {"bindVerb": "bind"}
    cached, ignorable = luck.random() < 0.5, luck.random() < 0.3
    more = {"nodeCacheCapable": cached, "ignorable": ignorable}
    return {"urlPrefix": "http://127.0.0.1:1/", "enableHTTPS": False, **verbs, **more}


class PlayedExtender:
    """Answers every extender of the configuration, all in the same manner."""

    def __init__(self, stage: Stage, manner: str) -> None:
        self._stage, self.manner = stage, manner
        self.asked = 0

    def allows(self, pod: str, node: str) -> bool:
        """Whether a strict one lets this pod go there: always the same answer."""
        return self.manner != "strict" or self._stage.tape.part("extender", pod, node) < 0.6

    def answer(self, step: HttpPost) -> tuple[Duration, Answer]:
        """How long it takes, and what it says."""
        self.asked += 1
        tape = self._stage.tape
        takes = Duration(milliseconds(1) + tape.below(milliseconds(50), "extender takes", self.asked))
        hangs = self.manner == "hanging" and not self._stage.calm and tape.part("extender hangs", self.asked) < 0.4
        if hangs:
            return TIMEOUT, Answer(failure=Failure("Timeout", "context deadline exceeded", applied="unknown"))
        if self.manner == "evil" and not self._stage.calm:
            return takes, Answer(data=tape.choice(_NONSENSE, "nonsense", self.asked))
        if step.verb == "bind":
            return takes, self._bind(step.body)
        return takes, Answer(data=self._said(step))

    def _said(self, step: HttpPost) -> Any:
        names = step.body.get("NodeNames") or [n["metadata"]["name"] for n in (step.body["Nodes"] or {})["items"]]
        pod = f"{step.body['Pod']['metadata']['namespace']}/{step.body['Pod']['metadata']['name']}"
        if step.verb == "filter":
            left = [name for name in names if self.allows(pod, name)]
            failed = {name: "the extender says no" for name in names if name not in left}
            if step.body.get("NodeNames") is not None:
                return {"NodeNames": left, "FailedNodes": failed}
            items = [node for node in step.body["Nodes"]["items"] if node["metadata"]["name"] in left]
            return {"Nodes": {"items": items}, "FailedNodes": failed}
        return [{"Host": name, "Score": self._stage.tape.below(11, "score", pod, name)} for name in names]

    def _bind(self, body: Any) -> Answer:
        stage = self._stage
        unheard = not stage.calm and stage.tape.part("extender binds unheard", self.asked) < 0.3
        try:
            stage.judge.binding_by_extender(body["PodUID"])
            stage.cluster.bind(body["PodNamespace"], body["PodName"], body["Node"], body["PodUID"])
        except ApiError as error:
            return Answer(data={"Error": error.message})
        if unheard:
            return Answer(failure=Failure("Timeout", "context deadline exceeded", applied="unknown"))
        return Answer(data={})
