"""The servers that are compared, and a command that compares them for any seeds.

    python -m tests.realserver.compare 11 12 13

prints every request that was not answered alike, sentences included, and in the end how many answers differ in what
matters.
"""

from __future__ import annotations

import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random

from tests.realserver.drawing import sequence
from tests.realserver.harness import RealCluster
from tests.realserver.likeness import Ask, differences, in_process, over_https, play

from kubesched.apiserver import tls
from kubesched.apiserver.access import Authenticator
from kubesched.apiserver.admission import Rules
from kubesched.apiserver.http import HttpThread
from kubesched.apiserver.requests import ADMIN
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.store import Store

TOKEN = "a-token-for-comparisons"
# What kube-apiserver does by itself, where no controllers run; and every field's owner is known there.
RULES = Rules(protect_storage=True, follow_all=True)


def real(cluster: RealCluster) -> AbstractContextManager[Ask]:
    return over_https(cluster.url, cluster.trust(), cluster.tokens["admin"])


def _server(authenticator: Authenticator | None = None) -> ApiServer:
    store = Store(now=time.time_ns, luck=Random(1))
    server = ApiServer(store, now=time.time_ns, rules=RULES, authenticator=authenticator)
    server.bootstrap()
    return server


def ours_in_process() -> Ask:
    return in_process(_server())


@contextmanager
def ours_over_https(folder: Path) -> Iterator[Ask]:
    made = tls.make_certificates()
    trust = ssl.create_default_context(cadata=made.ca.decode())
    server = _server(Authenticator({TOKEN: ADMIN}))
    with HttpThread(server, tls=made.context(folder)) as thread, over_https(thread.url, trust, TOKEN) as ask:
        yield ask


def main(seeds: list[int], length: int = 500) -> int:
    grave = 0
    for seed in seeds:
        asked = sequence(seed, length)
        with tempfile.TemporaryDirectory() as folder, RealCluster(Path(folder)) as cluster, real(cluster) as ask:
            theirs = play(ask, asked)
        ours = play(ours_in_process(), asked)
        for difference in differences(asked, theirs, ours, words=True):
            print(f"seed {seed}: {difference}\n")
        found = len(differences(asked, theirs, ours))
        print(f"seed {seed}: {found} of {length} answers differ in what matters", flush=True)
        grave += found
    return 1 if grave else 0


if __name__ == "__main__":
    sys.exit(main([int(one) for one in sys.argv[1:]] or [1]))
