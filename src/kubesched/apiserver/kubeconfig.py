"""Write the file that points kubectl at a server: its address, its CA, and a token.

A token in a file is a password: the file is made readable by its owner alone, and replaced in one step.
"""

from __future__ import annotations

import secrets
from base64 import b64encode
from pathlib import Path
from typing import Any

import yaml

from kubesched.apiserver.tls import write_private

TOKEN_BYTES = 32


def make_token() -> str:
    """A bearer token nobody can guess."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def kubeconfig(url: str, token: str, ca: bytes = b"", name: str = "kubesched") -> dict[str, Any]:
    """The kubeconfig for one server and one user."""
    cluster: dict[str, Any] = {"server": url}
    if ca:
        cluster["certificate-authority-data"] = b64encode(ca).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": f"{name}-admin", "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-admin"}}],
        "current-context": name,
    }


def write_kubeconfig(path: Path, url: str, token: str, ca: bytes = b"", name: str = "kubesched") -> Path:
    """Write a kubeconfig for its owner's eyes only; return its path."""
    text = yaml.safe_dump(kubeconfig(url, token, ca, name), sort_keys=False)
    return write_private(path, text.encode())
