"""Where the real servers are, and which version they should be.

The user's own binaries (KUBEBUILDER_ASSETS) come first, then those of `make envtest`. One may supply what the
other lacks: the usual assets have no kube-scheduler.
"""

import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("etcd", "kube-apiserver", "kube-scheduler", "kubectl")


class Missing(Exception):
    """A binary was not found; the message names it, where it was looked for, and how to get it."""


def find(name: str) -> Path:
    for place in _places():
        if os.access(place / name, os.X_OK):
            return place / name
    raise Missing(f"{name} is not in {' nor in '.join(map(_shown, _places()))}; `make envtest` builds it")


def missing() -> str | None:
    """One line that says what is absent, or None when everything is there."""
    absent = [name for name in NAMES if not any(os.access(place / name, os.X_OK) for place in _places())]
    if not absent:
        return None
    places = " or ".join(map(_shown, _places()))
    return f"real servers left out: no {', '.join(absent)} in {places}; `make envtest` builds them"


def expected(module: str) -> str:
    """The version of a module that the binaries are to be built from, as `v1.2.3`."""
    found = re.search(rf"^\s*{re.escape(module)}\s+(v\S+)", (ROOT / "envtest" / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise Missing(f"envtest/go.mod does not require {module}")
    return found[1]


def _places() -> list[Path]:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    ours = ROOT / ".envtest" / "bin"
    return [Path(assets).expanduser(), ours] if assets else [ours]


def _shown(place: Path) -> str:
    return str(place.relative_to(ROOT)) if place.is_relative_to(ROOT) else str(place)
