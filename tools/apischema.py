"""Derive src/kubesched/apiserver/schema.txt from the Go types of k8s.io/api.

The embedded API server must know, of every served kind, what encoding/json and protobuf know in Go: the names of the
fields, their types and numbers, which are omitted when empty, which lists are maps.  These are facts of the wire
format; this script reads them out of the Go declarations and writes them down in the terse form that
kubesched.apiserver.schema reads.

    python tools/apischema.py MODULES > src/kubesched/apiserver/schema.txt

MODULES is a Go module cache folder that holds k8s.io/api, k8s.io/apimachinery and k8s.io/apiextensions-apiserver of one
release (`go mod download k8s.io/api@v0.36.4`, and so on).
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

RELEASE = "v0.36.4"

# alias → (folder in the module cache, OpenAPI prefix)
PACKAGES = {
    "meta": (f"apimachinery@{RELEASE}/pkg/apis/meta/v1", "io.k8s.apimachinery.pkg.apis.meta.v1"),
    "core": (f"api@{RELEASE}/core/v1", "io.k8s.api.core.v1"),
    "apps": (f"api@{RELEASE}/apps/v1", "io.k8s.api.apps.v1"),
    "batch": (f"api@{RELEASE}/batch/v1", "io.k8s.api.batch.v1"),
    "policy": (f"api@{RELEASE}/policy/v1", "io.k8s.api.policy.v1"),
    "storage": (f"api@{RELEASE}/storage/v1", "io.k8s.api.storage.v1"),
    "scheduling": (f"api@{RELEASE}/scheduling/v1", "io.k8s.api.scheduling.v1"),
    "schedulingalpha": (f"api@{RELEASE}/scheduling/v1alpha2", "io.k8s.api.scheduling.v1alpha2"),
    "coordination": (f"api@{RELEASE}/coordination/v1", "io.k8s.api.coordination.v1"),
    "events": (f"api@{RELEASE}/events/v1", "io.k8s.api.events.v1"),
    "discovery": (f"api@{RELEASE}/discovery/v1", "io.k8s.api.discovery.v1"),
    "node": (f"api@{RELEASE}/node/v1", "io.k8s.api.node.v1"),
    "networking": (f"api@{RELEASE}/networking/v1", "io.k8s.api.networking.v1"),
    "autoscaling": (f"api@{RELEASE}/autoscaling/v1", "io.k8s.api.autoscaling.v1"),
    "autoscaling2": (f"api@{RELEASE}/autoscaling/v2", "io.k8s.api.autoscaling.v2"),
    "resource": (f"api@{RELEASE}/resource/v1", "io.k8s.api.resource.v1"),
    "rbac": (f"api@{RELEASE}/rbac/v1", "io.k8s.api.rbac.v1"),
    "certificates": (f"api@{RELEASE}/certificates/v1", "io.k8s.api.certificates.v1"),
    "authentication": (f"api@{RELEASE}/authentication/v1", "io.k8s.api.authentication.v1"),
    "authorization": (f"api@{RELEASE}/authorization/v1", "io.k8s.api.authorization.v1"),
    "apiextensions": (
        f"apiextensions-apiserver@{RELEASE}/pkg/apis/apiextensions/v1",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    ),
}

ROOTS = {
    "meta": "DeleteOptions Status",
    "core": "Pod Node Namespace Service Endpoints ConfigMap Secret ServiceAccount PersistentVolume "
    "PersistentVolumeClaim ReplicationController Event ResourceQuota LimitRange Binding PodTemplate",
    "apps": "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
    "batch": "Job CronJob",
    "policy": "PodDisruptionBudget Eviction",
    "storage": "StorageClass CSINode CSIDriver CSIStorageCapacity VolumeAttachment VolumeAttributesClass",
    "scheduling": "PriorityClass",
    "schedulingalpha": "PodGroup Workload",
    "coordination": "Lease",
    "events": "Event",
    "discovery": "EndpointSlice",
    "node": "RuntimeClass",
    "networking": "NetworkPolicy Ingress IngressClass",
    "autoscaling": "Scale HorizontalPodAutoscaler",
    "autoscaling2": "HorizontalPodAutoscaler",
    "resource": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    "rbac": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "certificates": "CertificateSigningRequest",
    "authentication": "TokenRequest TokenReview SelfSubjectReview",
    "authorization": "SubjectAccessReview SelfSubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview",
    "apiextensions": "CustomResourceDefinition",
}

IMPORTS = {
    "metav1": "meta",
    "v1": "core",
    "corev1": "core",
    "apiv1": "core",
    "core": "core",
}

SCALARS = {"string", "int32", "int64", "bool", "float64", "int"}
SPECIAL = {
    "resource.Quantity": "Quantity",
    "intstr.IntOrString": "IntOrString",
    "types.UID": "string",
    "types.NodeName": "string",
    "runtime.RawExtension": "RawExtension",
    "core.LocalObjectReference": None,
    "meta.Time": "Time",
    "meta.MicroTime": "MicroTime",
    "meta.Duration": "Duration",
    "meta.FieldsV1": "FieldsV1",
    "apiextensions.JSON": "JSON",
    "apiextensions.JSONSchemaProps": "JSONSchemaProps",
}

FIELD = re.compile(r"^\t(?:(\w+)\s+)?(\*?[\w\[\]*.]+)\s+`([^`]*)`")
STRUCT = re.compile(r"^type (\w+) struct \{$")
ALIAS = re.compile(r"^type (\w+) =? ?([\w\[\]*.]+)$")


@dataclass
class Field:
    number: str
    name: str
    type: str
    marks: list[str]


@dataclass
class Package:
    structs: dict[str, list[Field]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    name: str = ""
    marks: dict[str, list[str]] = field(default_factory=dict)


def parse(folder: Path) -> Package:
    package = Package(name=folder.name)
    for path in sorted(folder.glob("*types*.go")) + sorted(folder.glob("well_known*.go")):
        lines = path.read_text().split("\n")
        comment: list[str] = []
        here: list[Field] | None = None
        for line in lines:
            text = line.strip()
            if text.startswith("//"):
                comment.append(text[2:].strip())
                continue
            if here is None:
                if match := STRUCT.match(line):
                    here = package.structs.setdefault(match[1], [])
                    package.marks[match[1]] = [c for c in comment if c.startswith("+")]
                elif match := re.match(r"^type (\w+) struct ?\{\}$", line):
                    package.structs[match[1]] = []
                    package.marks[match[1]] = []
                elif match := ALIAS.match(line):
                    package.aliases[match[1]] = match[2]
                    package.marks[match[1]] = [c for c in comment if c.startswith("+")]
            elif line == "}":
                here = None
            elif match := FIELD.match(line.split("//")[0].rstrip() if "`" not in line.split("//")[0] else line):
                entry = read_field(match, comment)
                if entry is not None:
                    here.append(entry)
            if text or here is None:
                comment = []
    return package


def read_field(match: re.Match[str], comment: list[str]) -> Field | None:
    tags = dict(re.findall(r'(\w+):"([^"]*)"', match[3]))
    name, *options = tags.get("json", "-").split(",")
    if name == "-":
        return None
    inline = not name
    if inline and match[2].endswith(("TypeMeta", "ListMeta")):
        return None
    number = tags.get("protobuf", "").split(",")[1] if tags.get("protobuf", "").count(",") > 1 else "0"
    marks: list[str] = []
    if "omitempty" in options or "omitzero" in options:
        marks.append("e")
    if "omitzero" in options:
        marks.append("z")
    plus = dict(re.match(r"\+([\w:]+)=?(.*)", c).groups() for c in comment if re.match(r"\+([\w:]+)=?(.*)", c))  # type: ignore[union-attr]
    keys = [c.split("=", 1)[1].strip() for c in comment if c.startswith("+listMapKey=")]
    if ("e" not in marks and "optional" not in plus and not inline) or "required" in plus:
        marks.append("r")
    match plus.get("listType"):
        case "map":
            marks.append("map=" + ",".join(keys))
        case "set":
            marks.append("set")
        case "atomic":
            marks.append("atomic")
    if plus.get("mapType") == "atomic" or plus.get("structType") == "atomic":
        marks.append("whole")
    if "merge" in tags.get("patchStrategy", ""):
        marks.append("merge=" + tags.get("patchMergeKey", ""))
    if "retainKeys" in tags.get("patchStrategy", ""):
        marks.append("retain")
    return Field(number, name if not inline else "+", match[2], marks)


def resolve(packages: dict[str, Package], alias: str, text: str) -> str:
    """A Go type as schema.txt writes it: string, []T, {}T, *T, or package.Struct."""
    if text.startswith("*"):
        return "*" + resolve(packages, alias, text[1:])
    if text == "[]byte":
        return "bytes"
    if text.startswith("[]"):
        return "[]" + resolve(packages, alias, text[2:])
    if text.startswith("map["):
        return "{}" + resolve(packages, alias, text[text.index("]") + 1 :])
    if text in SCALARS:
        return "int64" if text == "int" else text
    if SPECIAL.get(text):
        return str(SPECIAL[text])
    if "." in text:
        head, name = text.split(".")
        home = IMPORTS[head]
    else:
        home, name = alias, text
    if SPECIAL.get(f"{home}.{name}"):
        return str(SPECIAL[f"{home}.{name}"])
    package = packages[home]
    if name in package.structs:
        return f"{home}.{name}"
    return resolve(packages, home, package.aliases[name])


def spelled(packages: dict[str, Package], alias: str, text: str, *, named: bool) -> str:
    """A Go type as encoding/json calls it in its errors; without `named`, as if no scalar, list or map had a name."""
    if text.startswith("*"):
        return spelled(packages, alias, text[1:], named=named)
    if text.startswith("[]"):
        return "[]" + spelled(packages, alias, text[2:], named=named)
    if text.startswith("map["):
        key, _, value = text[4:].partition("]")
        inner = spelled(packages, alias, key, named=named)
        return f"map[{inner}]" + spelled(packages, alias, value, named=named)
    if text in SCALARS or text == "byte":
        return {"int": "int64", "byte": "uint8"}.get(text, text)
    head, _, name = text.rpartition(".")
    home = IMPORTS.get(head, head) if head else alias
    if text in SPECIAL:  # of a package that is not read
        return text if named or SPECIAL[text] not in SCALARS else str(SPECIAL[text])
    package = packages[home]
    if name in package.structs or f"{home}.{name}" in SPECIAL or named:
        return f"{package.name}.{name}"
    return spelled(packages, home, package.aliases[name], named=named)


def main(modules: Path) -> None:
    packages = {alias: parse(modules / folder) for alias, (folder, _) in PACKAGES.items()}
    needed: dict[str, None] = {}
    todo = [f"{alias}.{name}" for alias, names in ROOTS.items() for name in names.split()]
    todo.append("meta.ObjectMeta")
    bodies: dict[str, list[str]] = {}
    while todo:
        full = todo.pop(0)
        if full in needed:
            continue
        needed[full] = None
        alias, name = full.split(".")
        lines = []
        for item in packages[alias].structs[name]:
            kind = resolve(packages, alias, item.type)
            target = kind.lstrip("*[]{}")
            if "." in target:
                todo.append(target)
                head, short = target.split(".")
                kind = kind.replace(target, short) if head == alias else kind
            name_in_go = spelled(packages, alias, item.type, named=True)
            if name_in_go != spelled(packages, alias, item.type, named=False):
                item.marks.append(f"go={name_in_go}")
            lines.append(" ".join([item.number, item.name, kind, *item.marks]))
        whole = (
            "whole"
            if any("structType=atomic" in c for c in packages[alias].marks[name])
            or any("mapType=atomic" in c for c in packages[alias].marks[name])
            else ""
        )
        bodies[full] = [f"{name} {whole}".rstrip(), *(" " + line for line in lines)]
    release = RELEASE.replace("v0", "v1")
    out = [f"# The fields of the served kinds, as in Kubernetes {release}; by tools/apischema.py, for schema.py."]
    for alias, (_, prefix) in PACKAGES.items():
        out.append(f"@{alias} {prefix}")
        for full in sorted(n for n in needed if n.startswith(alias + ".")):
            out += bodies[full]
    print("\n".join(out))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
