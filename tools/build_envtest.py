"""Build the real servers that the tests run against, once, from the Go module registry.

A claim such as "kube-apiserver answers 409" is worth what the kube-apiserver behind it is worth. The module in
`envtest/` names the exact versions and its go.sum their checksums; this compiles kube-apiserver, kube-scheduler,
kubectl and etcd from it into `.envtest/bin` and remembers from what, so that the next call is a glance at a stamp.

Binaries already at hand are used as they are: whatever the directory in KUBEBUILDER_ASSETS holds is not built.

    build_envtest.py                 build what is missing or stale
    build_envtest.py --if-possible   the same, but without a new enough Go say so in one line and exit 0, unless
                                     KUBESCHED_REQUIRE_ENVTEST=1 insists
    build_envtest.py --print-dirs    where to look for the binaries, best first
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "envtest"
HOME = ROOT / ".envtest"
BIN = HOME / "bin"
STAMP = HOME / "stamp.json"

# What we call the binary, and the package it is compiled from.
PACKAGES: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
# Both packages say a version: the one answers --version and /version, the other names the User-Agent.
VERSIONED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


class CannotBuild(Exception):
    """The binaries are missing and cannot be made here; the message says why and what would help."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Build kube-apiserver, kube-scheduler, kubectl and etcd for tests.")
    parser.add_argument("--if-possible", action="store_true", help="exit 0 with one line when Go is missing or too old")
    parser.add_argument("--print-dirs", action="store_true", help="print where the binaries are looked for, and stop")
    options = parser.parse_args(arguments)
    if options.print_dirs:
        print(*places(), sep="\n")
        return 0
    try:
        bring_up_to_date()
    except CannotBuild as problem:
        print(f"envtest: {problem}", file=sys.stderr)
        insisted = os.environ.get("KUBESCHED_REQUIRE_ENVTEST") == "1"
        return 0 if options.if_possible and not insisted else 1
    return 0


def places() -> list[Path]:
    """Where binaries may be, best first: the user's own, then ours."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return [Path(assets).expanduser(), BIN] if assets else [BIN]


def bring_up_to_date() -> None:
    wanted = [name for name in PACKAGES if not _supplied(name)]
    if not wanted:
        print(f"envtest: all of {', '.join(PACKAGES)} are in KUBEBUILDER_ASSETS; nothing to build")
        return
    recipe = _recipe()
    if _fresh(wanted, recipe):
        print(f"envtest: up to date ({recipe['kubernetes']}, etcd {recipe['etcd']})")
        return
    compiler = _go_version()
    with _only_one():
        if _fresh(wanted, recipe):      # another build finished while this one waited
            return
        print(f"envtest: building {', '.join(wanted)} from Kubernetes {recipe['kubernetes']} and etcd {recipe['etcd']} "
              f"with {compiler}; the first time takes several minutes", flush=True)
        began = time.monotonic()
        _build(wanted, recipe)
        built = _built(recipe) | set(wanted)
        STAMP.write_text(json.dumps({"recipe": recipe, "built": sorted(built)}, indent=1) + "\n")
        print(f"envtest: built in {time.monotonic() - began:.0f} s into {BIN.relative_to(ROOT)}")


# ── what the binaries are made from ──────────────────────────────────────────────────────────────────


def _recipe() -> dict[str, str]:
    """Everything that decides what comes out; two builds with the same recipe are interchangeable."""
    sources = (MODULE / "go.mod").read_text()
    sums = (MODULE / "go.sum").read_bytes()
    kubernetes = _required(sources, "k8s.io/kubernetes")
    return {
        "kubernetes": kubernetes,
        "etcd": _required(sources, "go.etcd.io/etcd/server/v3"),
        "sources": hashlib.sha256(sources.encode() + sums).hexdigest(),
        "ldflags": _ldflags(kubernetes),
        "machine": f"{sys.platform}/{platform.machine()}",
    }


def _required(sources: str, module: str) -> str:
    found = re.search(rf"^\s*(?:require\s+)?{re.escape(module)}\s+(v\S+)", sources, re.MULTILINE)
    if found is None:
        raise CannotBuild(f"envtest/go.mod does not require {module}")
    return found[1]


def _ldflags(version: str) -> str:
    major, minor, _ = version.removeprefix("v").split(".", 2)
    facts = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "archive", "gitCommit": ""}
    settings = (f"-X {package}.{name}={value}" for package in VERSIONED for name, value in facts.items())
    return " ".join(["-s -w", *settings])


def _supplied(name: str) -> bool:
    return any(os.access(place / name, os.X_OK) for place in places() if place != BIN)


def _built(recipe: Mapping[str, str]) -> set[str]:
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return set()
    return set(stamp["built"]) if stamp.get("recipe") == recipe else set()


def _fresh(wanted: Sequence[str], recipe: Mapping[str, str]) -> bool:
    return _built(recipe).issuperset(wanted) and all(os.access(BIN / name, os.X_OK) for name in wanted)


# ── making them ──────────────────────────────────────────────────────────────────────────────────────


def _go_version() -> str:
    remedy = "install Go 1.26 or newer, or point KUBEBUILDER_ASSETS at a directory that holds the binaries"
    if shutil.which("go") is None:
        raise CannotBuild(f"the real servers are not built and there is no `go` to build them with: {remedy}")
    # Asked inside the module: a Go that is too old fetches the right toolchain or refuses here, in a sentence.
    answer = subprocess.run(["go", "env", "GOVERSION"], cwd=MODULE, capture_output=True, text=True, env=_environment())
    if answer.returncode != 0:
        refusal = answer.stderr.strip()
        raise CannotBuild(f"the real servers are not built and this Go cannot build them ({refusal}): {remedy}")
    return answer.stdout.strip()


def _build(names: Sequence[str], recipe: Mapping[str, str]) -> None:
    """Compile into a directory of its own, then move: nobody ever sees half a binary."""
    with tempfile.TemporaryDirectory(dir=HOME) as scratch:
        command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", recipe["ldflags"],
                   "-o", scratch + os.sep, *(PACKAGES[name] for name in names)]
        finished = subprocess.run(command, cwd=MODULE, env=_environment())
        if finished.returncode != 0:
            raise CannotBuild("go build failed; its messages are above")
        BIN.mkdir(exist_ok=True)
        for name in names:
            os.replace(Path(scratch, _output_of(PACKAGES[name])), BIN / name)


def _output_of(package: str) -> str:
    """What `go build` calls the binary: the last element of the path that is not a major version."""
    *rest, last = package.split("/")
    return rest[-1] if re.fullmatch(r"v\d+", last) else last


def _environment() -> dict[str, str]:
    # Without cgo nothing but Go is needed, and a workspace file above this directory is none of our business.
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}


@contextmanager
def _only_one() -> Iterator[None]:
    HOME.mkdir(exist_ok=True)
    (HOME / ".gitignore").write_text("*\n")
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
