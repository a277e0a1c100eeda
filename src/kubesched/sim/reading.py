"""From YAML to a Scenario: strictly, and with every fault named by file, line and path.

See docs/scenarios.md for the format.  YAML is read by the loader of configurations: no tags, no aliases, no key
twice, not without end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from msgspec import structs

from kubesched.actors.kubelet import Stages
from kubesched.api.objects import KINDS
from kubesched.api.time import Duration, seconds
from kubesched.config.faults import Fault, InvalidConfiguration, did_you_mean, shown
from kubesched.config.gates import features_of
from kubesched.config.load import load, load_file
from kubesched.config.registry import PluginClass, Registry
from kubesched.config.schema import Configuration
from kubesched.config.yaml import Limits, line_of, parse
from kubesched.framework.errors import ConfigError
from kubesched.framework.features import Features
from kubesched.framework.profile import TieRule
from kubesched.sim import faults
from kubesched.sim.changing import changed
from kubesched.sim.expectation import expectation_of
from kubesched.sim.fields import Fields, described, quoted
from kubesched.sim.scenario import (
    Change,
    Command,
    Create,
    Deed,
    Delete,
    HoldNews,
    InvalidScenario,
    Planned,
    Scenario,
    Target,
    cordon,
    uncordon,
)
from kubesched.sim.seat import Latency
from kubesched.sim.shorthand import objects_of
from kubesched.sim.troupe import PLAYED, Playing
from kubesched.sim.workload import workload_of

LIMITS = Limits(size=32 << 20, depth=64, nodes=2_000_000)
SEED_MAX = (1 << 63) - 1
TIES: tuple[TieRule, ...] = get_args(TieRule)

KIND_WORDS: Mapping[str, str] = {
    **{kind.lower(): kind for kind in (*KINDS, *(played.name for played in PLAYED))},
    "pvc": "PersistentVolumeClaim",
    "pv": "PersistentVolume",
    "pdb": "PodDisruptionBudget",
    "ns": "Namespace",
}


NO_PLUGINS: Mapping[str, PluginClass] = {}


def read_scenario(
    path: Path, changes: Iterable[str] = (), plugins: Mapping[str, PluginClass] = NO_PLUGINS
) -> Scenario:
    """The scenario in a YAML file, `-` for standard input.  Raises InvalidScenario.

    Args:
        changes: fields to set, as `latency.write=50ms` or `workloads[0].count=500`.
        plugins: classes of one's own that its scheduler may name.
    """
    data, file, folder = bytes_of(path), str(path), path.parent
    if file == "-":
        file, folder = "standard input", Path()
    return parse_scenario(data, file, folder, changes=changes, plugins=plugins)


def bytes_of(path: Path) -> bytes:
    """What is in a file.  Raises InvalidScenario."""
    if str(path) == "-":
        return sys.stdin.buffer.read(LIMITS.size + 1)
    try:
        with path.open("rb") as file:
            return file.read(LIMITS.size + 1)
    except OSError as error:
        remedy = "" if error.strerror is None else error.strerror.lower()
        raise InvalidScenario([Fault("", "cannot be read", remedy)], str(path)) from None


def parse_scenario(
    data: bytes,
    file: str = "",
    folder: Path | None = None,
    line: int = 0,
    changes: Iterable[str] = (),
    plugins: Mapping[str, PluginClass] = NO_PLUGINS,
) -> Scenario:
    """The scenario in some bytes.  Raises InvalidScenario.

    Args:
        folder: what paths in it are relative to.
        line: how many lines stand before these bytes in the file.
        changes: fields to set before it is read.
        plugins: classes of one's own that its scheduler may name.
    """
    try:
        tree = parse(data, file, LIMITS)
        for change in changes:
            tree = changed(tree, change)
    except InvalidConfiguration as error:
        raise InvalidScenario(_moved(error.faults, line), file) from None
    reader = _Reader(tree, file, folder or Path(), line, plugins)
    scenario = reader.scenario()
    reader.refuse()
    return scenario


class _Reader:
    """Reads one document."""

    def __init__(self, tree: Any, file: str, folder: Path, line: int, plugins: Mapping[str, PluginClass]) -> None:
        self._tree, self._file, self._folder, self._line, self._plugins = tree, file, folder, line, plugins
        self._faults: list[Fault] = []

    def refuse(self) -> None:
        """Raise whatever faults were found, in the order of their lines."""
        if self._faults:
            lined = [(fault.line or line_of(self._tree, fault.path), fault) for fault in self._faults]
            found = [structs.replace(fault, line=line) for line, fault in sorted(lined, key=lambda pair: pair[0])]
            raise InvalidScenario(_moved(found, self._line), self._file)

    def scenario(self) -> Scenario:
        fields = Fields(self._tree, "", self._faults)
        if not isinstance(self._tree, Mapping):
            return Scenario()
        until = fields.duration("until", least=1)
        features = self._features(fields)
        cluster, later = self._entries(fields, "cluster", at_required=False)
        scenario = Scenario(
            name=fields.text("name"),
            seed=fields.integer("seed", 0, -SEED_MAX, SEED_MAX),
            until=until,
            latency=self._latency(fields),
            actors=self._actors(fields),
            scheduler=self._scheduler(fields, features_of(features)),
            tie=fields.choice("tie", TIES, "seeded"),
            plugins=self._plugins,
            features=features,
            cluster=tuple(cluster),
            planned=(*later, *self._entries(fields, "events", at_required=True)[1]),
            workloads=tuple(
                workload_of(Fields(item, path, self._faults), endless=until is None)
                for path, item in _each(fields, "workloads")
            ),
            expect=tuple(
                expectation_of(Fields(item, path, self._faults), self._place(path))
                for path, item in _each(fields, "expect")
            ),
            file=self._file,
            plugins_from=str(self._folder),
        )
        fields.done()
        self._check_names(scenario)
        return scenario

    def _check_names(self, scenario: Scenario) -> None:
        seen: list[str] = []
        for i, workload in enumerate(scenario.workloads):
            if workload.name in seen:
                self._faults.append(Fault(f"workloads[{i}].name", f"{shown(workload.name)} is there already"))
            seen.append(workload.name)

    def _latency(self, fields: Fields) -> Latency:
        if "latency" not in fields:
            fields.raw("latency")
            return Latency()
        inner, usual = fields.inner("latency"), Latency()
        latency = Latency(
            write=_or(inner.duration("write"), usual.write),
            watch=_or(inner.duration("watch"), usual.watch),
            jitter=_or(inner.duration("jitter"), usual.jitter),
        )
        inner.done()
        return latency

    def _actors(self, fields: Fields) -> Playing | None:
        """`actors: true`, or how long things take for them."""
        if not isinstance(fields.raw("actors"), Mapping):
            return Playing() if fields.truth("actors") else None
        inner, usual = fields.inner("actors"), Stages()
        stages = Stages(
            start=_or(inner.duration("start"), usual.start),
            stop=_or(inner.duration("stop"), usual.stop),
            job=_or(inner.duration("job"), usual.job),
        )
        heartbeat = inner.duration("heartbeat", least=1)
        inner.done()
        return Playing(stages, heartbeat)

    def _features(self, fields: Fields) -> dict[str, bool]:
        found = fields.mapping("features")
        for name, value in list(found.items()):
            try:
                if not isinstance(value, bool):
                    raise ConfigError("", f"must be true or false, not {described(value)}")
                features_of({name: value})
            except ConfigError as error:
                fields.fault(f"features.{name}", error.problem, error.remedy)
                del found[name]
        return found

    def _scheduler(self, fields: Fields, features: Features) -> Configuration | None:
        """A KubeSchedulerConfiguration in place, or the path of one."""
        written = fields.raw("scheduler")
        try:
            if written is None:
                return None
            if isinstance(written, str):
                file = self._folder / written
                registry = Registry(self._plugins, file.parent)
                return load_file(file, features=features, registry=registry).configuration
            if isinstance(written, Mapping):
                return load(written, features=features, registry=Registry(self._plugins, self._folder))
        except InvalidConfiguration as error:
            if isinstance(written, str):
                raise InvalidScenario(error.faults, error.file) from None
            self._faults += [structs.replace(fault, path=f"scheduler.{fault.path}", line=0) for fault in error.faults]
            return None
        except ConfigError as error:
            fields.fault(f"scheduler.{error.path}" if error.path else "scheduler", error.problem, error.remedy)
            return None
        wanted = "must be a KubeSchedulerConfiguration or the path of one"
        fields.fault("scheduler", f"{wanted}, not {described(written)}")
        return None

    # ── what is there, and what happens ──────────────────────────────────────────────────────────────────────

    def _entries(self, fields: Fields, key: str, *, at_required: bool) -> tuple[list[Planned], list[Planned]]:
        """The entries of a list: those that are there when the run begins, and those that happen at a time."""
        first: list[Planned] = []
        later: list[Planned] = []
        for path, item in _each(fields, key):
            entry = Fields(item, path, self._faults)
            at = entry.duration("at")
            if at_required and entry.given and "at" not in entry:
                entry.fault("at", "when?", "at: 10s")
            deed = _deed(entry)
            if deed is not None:
                place = self._place(path)
                if at is None and not isinstance(deed, Create):
                    entry.fault("at", "when?", "at: 10s; only objects are there from the beginning")
                (first if at is None else later).append(Planned(at or Duration(0), deed, place))
        return first, later

    def _place(self, path: str) -> str:
        line = line_of(self._tree, path)
        where = f"{self._file}:{line + self._line}: " if self._file and line else ""
        return f"{where}{path}"


def _each(fields: Fields, key: str) -> list[tuple[str, Any]]:
    value = fields.raw(key)
    if value is not None and not isinstance(value, list):
        fields.fault(key, f"must be a list, not {described(value)}", "begin each entry with a dash")
        return []
    return [(fields.at(f"{key}[{i}]"), item) for i, item in enumerate(value or ())]


def _moved(found: Any, by: int) -> list[Fault]:
    return [structs.replace(fault, line=fault.line + by if fault.line else 0) for fault in found]


def _or(value: Duration | None, usual: Duration) -> Duration:
    return usual if value is None else value


# ── the verbs of an entry ────────────────────────────────────────────────────────────────────────────────────


def _deed(fields: Fields) -> Deed | None:
    """What an entry says shall happen: its verb is the first of these it has."""
    for verb, read in VERBS.items():
        if verb in fields:
            return read(fields)
    unknown = [key for key in fields.present if key != "at"]
    if unknown:
        close = did_you_mean(unknown[0], VERBS) or f"begin with one of {', '.join(VERBS)}"
        fields.fault("", f"says nothing that is known: {', '.join(map(shown, unknown[:3]))}", close)
    elif fields.given:
        fields.fault("", "says nothing", f"begin with one of {', '.join(VERBS)}")
    return None


def _objects(fields: Fields) -> Deed:
    return Create(tuple(objects_of(fields)))


def _create(fields: Fields) -> Deed:
    inner = fields.inner("create")
    fields.done("at")
    return Create(tuple(objects_of(inner)) if inner.present else ())


def _delete(fields: Fields) -> Deed:
    target = _target(fields, "delete", "Pod")
    fields.done("at")
    return Delete(target)


def _patch(fields: Fields) -> Deed:
    target = _target(fields, "patch", "Pod")
    body = fields.mapping("with")
    if not body:
        fields.fault("with", "what shall change?", "with: {spec: {…}}")
    fields.done("at")
    return Change(target, body)


def _label(fields: Fields) -> Deed:
    target = _target(fields, "label", "Pod")
    labels = fields.mapping("with")
    for name, value in labels.items():
        if value is not None and not isinstance(value, str):
            fields.fault(f"with.{name}", f"must be a string or null, not {described(value)}", quoted(value))
    if not labels:
        fields.fault("with", "which labels?", "with: {tier: gold, old: null}")
    fields.done("at")
    return Change(target, {"metadata": {"labels": labels}})


def _cordon(fields: Fields) -> Deed:
    name = fields.name("cordon")
    fields.done("at")
    return cordon(name)


def _uncordon(fields: Fields) -> Deed:
    name = fields.name("uncordon")
    fields.done("at")
    return uncordon(name)


def _fault(fields: Fields) -> Deed:
    """Something goes wrong with effects of one type, or the news of one kind stay out."""
    inner = fields.inner("fault")
    fields.done("at")
    if "watch" in inner:
        kind = KIND_WORDS.get(inner.text("watch").lower(), "")
        if not kind:
            inner.fault("watch", "must be a kind a scheduler reads", f"one of {', '.join(sorted(KINDS))}")
        duration = inner.duration("for", least=1) or seconds(1)
        inner.done()
        return HoldNews(kind or "Pod", duration)
    pod = inner.text("pod")
    fault = faults.Fault(
        effect=inner.choice("effect", faults.EFFECTS, "Bind"),
        outcome=inner.choice("outcome", faults.OUTCOMES, "lost"),
        pod=pod if "/" in pod or not pod else f"default/{pod}",
        times=inner.integer("times", 1, 1, 1_000_000),
        after=inner.duration("after", least=1) or faults.PATIENCE,
        reason=inner.text("reason") or "InternalError",
        code=inner.integer("code", 500, 400, 599),
        message=inner.text("message") or "injected fault",
    )
    for key in ("effect", "outcome"):
        if key not in inner:
            inner.fault(key, f"which {key}?", "fault: {effect: Bind, outcome: refused}, or {watch: Pod, for: 5s}")
    inner.done()
    return fault


def _command(fields: Fields) -> Deed:
    verb = fields.choice("command", ("activate", "allow", "reject", "flush", "drain"), "flush")
    pod = fields.text("pod")
    if verb in ("activate", "allow", "reject") and not pod:
        fields.fault("pod", f"whom shall it {verb}?", "pod: NAME")
    fields.done("at")
    return Command(verb, pod if "/" in pod or not pod else f"default/{pod}")


def _target(fields: Fields, key: str, usual: str) -> Target:
    """`web`, `pod/web`, `pod/team/web`, `node/n1`."""
    words = fields.text(key)
    *before, name = words.split("/")
    kind = KIND_WORDS.get(before[0].lower(), "") if before else usual
    if not kind or not name or len(before) > 2:
        remedy = did_you_mean(before[0], KIND_WORDS) if before and not kind else "pod/web, pod/team/web or node/n1"
        fields.fault(key, f"{shown(words)} names no object", remedy or "pod/web, pod/team/web or node/n1")
        return Target(usual, name)
    return Target(kind, name, before[1] if len(before) == 2 else "default")


VERBS: Mapping[str, Callable[[Fields], Deed | None]] = {
    "kind": _objects,
    "create": _create,
    "delete": _delete,
    "patch": _patch,
    "label": _label,
    "cordon": _cordon,
    "uncordon": _uncordon,
    "fault": _fault,
    "command": _command,
    "pod": _objects,
    "node": _objects,
    "pdb": _objects,
    "namespace": _objects,
}
