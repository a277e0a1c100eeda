"""`kubesched explain`: where a pod goes and why, or why nowhere.

A running scheduler is asked what it knows of a pod (asked.py).  Or the cluster is read from files, and nobody is asked.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import click
import msgspec

from kubesched.api.objects import KubeObject, Pod
from kubesched.api.time import Instant
from kubesched.cli.asked import asks_a_scheduler, explain_journal, explain_running
from kubesched.cli.config import assembled
from kubesched.cli.main import printable
from kubesched.cli.plugging import plugin_files
from kubesched.cluster.podinfo import PodInfo
from kubesched.config.gates import features_of, gates_of
from kubesched.core.core import Core
from kubesched.core.messages import Observed
from kubesched.explain.asked import Asked, read_pod
from kubesched.explain.documents import UnreadableFile
from kubesched.explain.dump import Dump, counted, read_dump
from kubesched.explain.fields import fields
from kubesched.explain.text import told, why_not
from kubesched.framework.decision import Decision
from kubesched.framework.errors import KubeschedError
from kubesched.framework.plain import plain

_WARNINGS = 10  # shown one by one; a dump may be broken a thousand times over
_REMARKS = {"text": 4, "wide": 10, "json": 0}  # how fine the remarks of plugins are that are shown


class CannotExplain(KubeschedError):
    """A question that makes no sense, in this cluster or with this configuration."""


@click.command()
@click.argument("running", metavar="[POD]", default="")
@asks_a_scheduler
@click.option("--journal", metavar="FILE", type=click.Path(path_type=Path), help="Ask what is known at its end.")
@click.option(
    "--cluster",
    "files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    help="What kubectl get -o json or -o yaml printed; may be given several times, - is standard input.",
)
@click.option(
    "--pod", "pod_file", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True), help="The pod to ask about."
)
@click.option("--config", "config_file", metavar="FILE", type=click.Path(path_type=Path), help="The configuration.")
@plugin_files
@click.option("--node", metavar="NAME", help="Why not this node?")
@click.option("-o", "--output", type=click.Choice(["text", "wide", "json"]), default="text", show_default=True)
@click.option("--strict", is_flag=True, help="Refuse where something in the cluster cannot be read.")
@click.option("--feature-gates", default="", metavar="NAME=BOOL,…", help="Feature gates by their Kubernetes names.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of -o json for a cluster of files, and end.")
def explain(
    running: str,
    server: str,
    token_file: Path | None,
    ca_file: Path | None,
    journal: Path | None,
    files: tuple[Path, ...],
    pod_file: Path | None,
    config_file: Path | None,
    plugins: tuple[Path, ...],
    node: str | None,
    output: str,
    strict: bool,
    feature_gates: str,
    schema: bool,
) -> None:
    """Say where a pod goes and why, or why nowhere.

    POD, as namespace/name, is asked of the scheduler that runs here under your name, or of the one --server names:
    what became of it so far, and what an attempt would find now.  Or of a journal, as it was at its end.

    \b
        kubesched explain shop/web-7
        kubesched explain shop/web-7 --node node-3
        kubesched explain shop/web-7 --journal run.jsonl

    Or the cluster is read from files, so it may be one you cannot reach, or one that does not exist.  Then ties go
    to the smallest node name, and extenders are not asked:

    \b
        kubectl get nodes,pods,pv,pvc,sc,csinodes,pdb,ns,services,rs,priorityclasses \\
            -A -o json > cluster.json
        kubesched explain --cluster cluster.json --pod web.yaml
    """
    if schema:
        click.echo(resources.files("kubesched.explain").joinpath("decision.schema.json").read_text(), nl=False)
        return
    if running and journal is not None:
        explain_journal(running, node or "", output, journal, plugins)
        return
    if running:
        if files or pod_file or config_file or plugins or strict or feature_gates:
            raise click.UsageError(f"{running} is asked of a running scheduler, which needs no files and no settings")
        explain_running(running, node or "", output, server, token_file, ca_file)
        return
    if journal is not None:
        raise click.UsageError("say which pod to look for in it: kubesched explain NAMESPACE/NAME --journal …")
    if server or token_file or ca_file:
        raise click.UsageError("say which pod to ask that scheduler about: kubesched explain NAMESPACE/NAME --server …")
    if not files or pod_file is None:
        problem = "a pod of a running scheduler is named as NAMESPACE/NAME; of a cluster in files, say both"
        raise click.UsageError(f"{problem}: --cluster FILE --pod FILE")
    with _without_gc():
        _answer(files, pod_file, _scheduler(config_file, plugins, feature_gates), node, output, strict)


@contextmanager
def _without_gc() -> Iterator[None]:
    """Nothing here lives on; looking for cycles in a large cluster takes longer than answering."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _answer(
    files: tuple[Path, ...],
    pod_file: Path,
    scheduler: tuple[Core, list[str]],
    node: str | None,
    output: str,
    strict: bool,
) -> None:
    core, notes = scheduler
    core.verbosity = _REMARKS[output]
    dump = read_dump((_named(path), _content(path)) for path in files)
    asked = read_pod(_content(pod_file), _named(pod_file), dump.priorities)
    _populate(core, dump, asked.pod)
    _warn(core, dump, [*notes, *asked.notes], strict)
    decision = _decide(core, asked)
    if node is not None and core.nodes.named(node) is None:
        others = f"only {len(core.nodes):,} other{'s' * (len(core.nodes) != 1)}"
        raise CannotExplain(f"no node {plain(node, 253)!r} is in the cluster files, {others}")
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(fields(decision))).decode())
        return
    for line in _text(core, decision, asked, node, output):
        click.echo(line)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


def _named(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


def _content(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise UnreadableFile(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None


def _scheduler(config_file: Path | None, plugins: tuple[Path, ...], feature_gates: str) -> tuple[Core, list[str]]:
    """A scheduler as configured, and what there is to say about that.  Raises ConfigError."""
    features = features_of(gates_of(feature_gates))
    loaded, profiles = assembled(config_file, features, plugins)
    notes = [f"{config_file}: {note}" for note in loaded.notes]
    for profile in profiles.values():
        profile.tie = "name"
        if profile.extenders:
            names = ", ".join(one.url_prefix for one in profile.extenders)
            notes.append(f"profile {profile.name}: extenders are not asked here ({names})")
            profile.extenders = ()
    return Core(profiles, features=features, checks=False), notes


def _populate(core: Core, dump: Dump, asked: Pod) -> None:
    """Tell the scheduler of the cluster, without the pod that is asked about."""
    now = Instant(time.time_ns())
    for obj in dump.objects:
        if not _is_same(obj, asked):
            core.handle(Observed(obj), now)


def _is_same(obj: KubeObject, asked: Pod) -> bool:
    return isinstance(obj, Pod) and obj.name == asked.name and obj.namespace == asked.namespace


def _warn(core: Core, dump: Dump, notes: list[str], strict: bool) -> None:
    """Say what was left out of the cluster, counted; refuse if that is wanted."""
    broken = [*dump.warnings, *(f"{invalid.error}; it is left out" for invalid in core.mirror.invalid.values())]
    for warning in broken[:_WARNINGS]:
        _say("warning", "yellow", warning)
    if len(broken) > _WARNINGS:
        _say("warning", "yellow", f"… and {len(broken) - _WARNINGS:,} more")
    if broken and strict:
        noun = "object" if len(broken) == 1 else "objects"
        raise CannotExplain(f"{len(broken):,} {noun} cannot be read, and --strict was given; mend them, or go without")
    if broken:
        _say("warning", "yellow", f"{len(broken):,} of {len(broken) + len(dump.objects):,} objects were left out")
    if dump.others:
        _say("note", "cyan", f"not read, for no plugin asks for them: {counted(dump.others)}")
    for note in notes:
        _say("note", "cyan", note)


def _say(what: str, color: str, text: str) -> None:
    click.echo(f"{click.style(f'{what}:', fg=color)} {printable(text)}", err=True)


# ── answering ────────────────────────────────────────────────────────────────────────────────────────────────


def _decide(core: Core, asked: Asked) -> Decision:
    name = asked.pod.spec.scheduler_name
    if name not in core.profiles:
        known = ", ".join(core.profiles)
        remedy = "give its configuration with --config, or change spec.schedulerName"
        raise CannotExplain(f"the pod asks for the scheduler {plain(name, 253)!r}, and there is {known}; {remedy}")
    return core.what_if(asked.pod, exhaustive=True)


def _text(core: Core, decision: Decision, asked: Asked, node: str | None, output: str) -> Iterator[str]:
    info, profile = PodInfo(asked.pod), core.profiles[asked.pod.spec.scheduler_name]
    if node is None:
        yield from told(decision, info, core.nodes, profile, "wide" if output == "wide" else "text")
    else:
        yield from why_not(decision, info, core.nodes, node)
