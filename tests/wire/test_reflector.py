"""The reflector keeps one kind in view, whatever the server and the network do."""

from __future__ import annotations

from tests.wire.scripted import Half, Script, added, bookmark, deleted, modified

from kubesched.api.kinds import KNOWN
from kubesched.wire.exchange import Exchange
from kubesched.wire.reflector import Reflector


def reflect(streams: bool = True) -> Script:
    exchange = Exchange()
    return Script(Reflector(KNOWN["Pod"], exchange, Half(), streams=streams), exchange).start()


def test_smoke() -> None:
    s = reflect()
    assert s.query["sendInitialEvents"] == "true"
    s.answer()
    s.lines(added("a", 1), added("b", 2), bookmark(5, end=True), modified("a", 6), deleted("b", 7))
    assert s.told() == ["+a/1", "+b/2", "Synced Pod", "+a/6", "-b/7"]
    s.after(2).close()
    assert s.query["resourceVersion"] == "7"
