"""Be let in as a pod of the cluster: with the token and the authority that are mounted into every container.

Both are replaced on disk while the pod runs, the token every hour; Access looks at them again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kubesched.framework.errors import ConfigError
from kubesched.live.access import Access, Token

MOUNTED = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load(environment: Mapping[str, str] = os.environ, folder: Path = MOUNTED) -> Access:
    """How to reach the API server from a pod.  Raises ConfigError."""
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not (host and port):
        problem = "this is no pod of a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
        raise ConfigError("", problem, "name a kubeconfig with --kubeconfig or clientConnection.kubeconfig")
    token = folder / "token"
    if not token.exists():
        remedy = "set automountServiceAccountToken, or name a kubeconfig"
        raise ConfigError("", f"no token is mounted at {token}", remedy)
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(server, Token(token, str(token)), ca=folder / "ca.crt", where=server)
