"""What is deployed is accepted by the real API server, and by its strictest rules for pods."""

from pathlib import Path

import yaml
from tests.realserver.harness import RealCluster

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_kustomize_base_is_accepted_and_its_pods_keep_to_the_restricted_standard(real_cluster: RealCluster) -> None:
    rendered = real_cluster.kubectl("kustomize", str(DEPLOY / "kustomize" / "base"))
    assert rendered.returncode == 0, rendered.stderr
    applied = real_cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=rendered.stdout)
    assert applied.returncode == 0, applied.stderr
    assert "Warning" not in applied.stderr
    client = real_cluster.client()
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    client.create("/api/v1/namespaces", {"metadata": {"name": "strict", "labels": label}})
    [deployment] = [one for one in yaml.safe_load_all(rendered.stdout) if one["kind"] == "Deployment"]
    template = deployment["spec"]["template"]
    template["spec"].pop("priorityClassName")  # its object is made by a controller that does not run here
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "like-ours"}, "spec": template["spec"]}
    client.create("/api/v1/namespaces/strict/pods?dryRun=All", body)
    loose = {**body, "spec": {**body["spec"], "securityContext": {}}}
    refused = client.request("POST", "/api/v1/namespaces/strict/pods?dryRun=All", loose)
    assert refused.status == 403  # so the check above could have failed
    assert "violates PodSecurity" in refused.message
