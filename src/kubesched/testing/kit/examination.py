"""Does a plugin keep the contract?  `conformance(MyPlugin)` finds out, and shows the smallest case where it does not.

    from kubesched.testing import conformance

    def test_zone_budget_keeps_the_contract():
        conformance(ZoneBudget, args={"budget": 3})

A few hundred small clusters are drawn, each about themes that the plugin turned out to care for, and every rule is
tried on each.  The first breach of a rule is cut down until nothing can be left out, and reported in words.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from kubesched.api.objects import KINDS, KubeObject
from kubesched.config.registry import PluginClass, Registry, args_type
from kubesched.framework.errors import ConfigError
from kubesched.framework.features import Features
from kubesched.framework.hooks import name_of, points_of, reads_of
from kubesched.testing.kit import rules, source, stories, trials
from kubesched.testing.kit.dice import Dice, seeded
from kubesched.testing.kit.generator import Plan, situation, themes
from kubesched.testing.kit.shrink import smallest
from kubesched.testing.kit.situation import Fault, Json, Scene, Situation, Subject, lines, readable
from kubesched.testing.kit.themes import Words

RULES: Mapping[str, Callable[[Scene], None]] = {
    "answers": rules.answers,
    "scores": rules.scores,
    "tiers": rules.tiers,
    "purity": rules.purity,
    "arguments": rules.arguments,
    "signatures": rules.signatures,
    "boards": stories.boards,
    "dry runs": trials.dry_runs,
    "spare": trials.spare,
    "reserve": trials.reserve,
    "room": trials.room,
    "hints": stories.hints,
    "order": stories.order,
}
"""By name, what a plugin is held to; the docstring of each says it in a sentence."""

NEEDS: Mapping[str, tuple[str, ...]] = {
    "scores": ("score", "score_all"),
    "tiers": ("filter_all", "score_all"),
    "signatures": ("sign_pod", "alike"),
    "boards": ("board",),
    "dry runs": ("filter", "filter_all"),
    "spare": ("spare",),
    "reserve": ("reserve",),
    "room": ("post_filter",),
    "hints": ("pre_enqueue", "pre_filter", "filter", "filter_all", "reserve", "permit"),
    "order": ("key", "less"),
}
"""The hooks a rule is about; a plugin with none of them need not be asked."""

SITUATIONS = 150
_EAGER = 30  # how much more often at most a theme is drawn that tells something
_DRAWS = 3
_TELLING = ("told apart", "fits at last", "made room")
_WORD = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,61}[A-Za-z0-9])?")


class Broken(Struct, frozen=True):
    """A rule that a plugin broke, and the smallest situation in which it does."""

    fault: Fault
    situation: Situation
    number: int

    @property
    def rule(self) -> str:
        return self.fault.rule

    def __str__(self) -> str:
        fault = self.fault
        head = f"{fault.rule}: {sentence(fault.rule)}\n  {fault.where}\n"
        body = f"    expected  {fault.expected}\n    got       {fault.got}\n"
        return head + body + "\n".join(lines(self.situation, self.situation.steps))


class Report(Struct, frozen=True):
    """What came of an examination.

    Attributes:
        broken: every rule that was broken, once.
        seen: how often something worth looking at was met.
        doubt: why a report says little however clean it is; empty where it says much.
    """

    plugin: str
    seed: int
    situations: int
    broken: tuple[Broken, ...]
    seen: Mapping[str, int]
    doubt: str = ""

    def __str__(self) -> str:
        met = ", ".join(f"{what} {count}" for what, count in sorted(self.seen.items()) if count)
        head = f"conformance of {self.plugin}: {len(self.broken)} of {len(RULES)} rules broken"
        tail = f"({self.situations} situations, seed {self.seed}; {met or 'nothing happened'})"
        return "\n\n".join([f"{head} {tail}", *([self.doubt] if self.doubt else []), *map(str, self.broken)])


def sentence(rule: str) -> str:
    """A rule in a sentence."""
    return (RULES[rule].__doc__ or "").strip().splitlines()[0]


class HardlyExamined(UserWarning):
    """The kit found no occasion for a plugin to say yes, or none to say no."""


class NotConformant(AssertionError):
    """A plugin breaks the contract; the text is the report."""

    def __init__(self, report: Report) -> None:
        self.report = report
        super().__init__(str(report))


def conformance(plugin: PluginClass, **how: Any) -> Report:
    """Examine a plugin class; raises NotConformant, an AssertionError, where it breaks a rule.

    Takes what `examine` takes.  Warns (HardlyExamined) where a clean report says little.
    """
    __tracebackhide__ = True  # for pytest: the reader's line is the one in the test
    report = examine(plugin, **how)
    if report.broken:
        raise NotConformant(report)
    if report.doubt:
        warnings.warn(report.doubt, HardlyExamined, stacklevel=2)
    return report


def examine(
    plugin: PluginClass,
    *,
    args: Mapping[str, Any] | Struct | None = None,
    beside: Sequence[PluginClass] = (),
    labels: Mapping[str, Sequence[str]] | None = None,
    objects: Iterable[KubeObject | Json] = (),
    about: Sequence[str] = (),
    only: Sequence[str] = (),
    features: Features | None = None,
    situations: int = SITUATIONS,
    seed: int = 0,
) -> Report:
    """Examine a plugin class.

    Args:
        plugin: the class.
        args: its arguments, as a configuration would give them, or as its own Struct.
        beside: plugins that stand beside it: a post_filter needs a filter to have anything to do.
        labels: labels it reads of nodes or pods, with values worth trying.  Where none are named, the texts in its
            own code and arguments are tried as both.
        objects: objects it reads, its own kinds included; several of one name are versions of one another.
        about: the themes to draw from; where none is named, all, and those it cares for more often.
        only: the rules to try; where none is named, all.
        situations: how many clusters to draw.
        seed: of the drawing; the same seed draws the same.

    Raises:
        ConfigError: it cannot be made: a hook with a wrong signature, arguments it does not take.
    """
    subject = _subject(plugin, args, beside, features or Features())
    made = subject.make()
    extra = tuple(_plain(obj) for obj in objects)
    words = Words(_words(plugin, args, labels or {}))
    plan = Plan(dict.fromkeys(themes(about, words), 1), words, extra)
    asked = [name for name in (only or RULES) if _concerns(name, made)]
    broken: dict[str, Broken] = {}
    seen: dict[str, int] = {}
    keenness = _Keenness(plan.themes)
    for number in range(situations):
        scene, drawn = _drawn(subject, plan, seeded(seed, number), keenness.rare)
        for rule in asked:
            fault = None if rule in broken else _breach(rule, scene)
            if fault is not None and fault.rule not in broken:
                broken[fault.rule] = _cut_down(subject, scene.situation, rule, fault, number)
        for what, count in scene.seen.items():
            seen[what] = seen.get(what, 0) + count
        keenness.learn(drawn, scene.seen)
        if not about:
            plan = Plan(keenness.weights, plan.words, plan.objects)
    found = tuple(broken[rule] for rule in RULES if rule in broken)
    doubt = _doubt(subject.name, made, seen) if "answers" in asked and not found else ""
    return Report(subject.name, seed, situations, found, seen, doubt)


def _doubt(name: str, plugin: Any, seen: Mapping[str, int]) -> str:
    if not any(hasattr(plugin, hook) for hook in ("filter", "filter_all")):
        return ""
    missed = [what for what in ("turned down", "let through") if not seen.get(what)]
    help_ = "say what it reads with labels=, objects= or about="
    return f"{name} was hardly examined: no pod was ever {' or '.join(missed)}; {help_}" if missed else ""


def _drawn(subject: Subject, plan: Plan, dice: Dice, rare: str) -> tuple[Scene, list[str]]:
    """A situation in which the plugin gives an answer it rarely gives, if a few draws find one."""
    found, drawn = situation(dice, plan)
    scene = Scene(subject, found)
    for _ in range(_DRAWS - 1):
        if rules.tells(scene, rare):
            break
        found, drawn = situation(dice, plan)
        scene = Scene(subject, found)
    return scene, drawn


def _concerns(rule: str, plugin: Any) -> bool:
    hooks = NEEDS.get(rule)
    return hooks is None or any(getattr(plugin, hook, None) is not None for hook in hooks)


def _breach(rule: str, scene: Scene) -> Fault | None:
    try:
        RULES[rule](scene)
    except Fault as fault:
        return fault
    return None


def _cut_down(subject: Subject, found: Situation, rule: str, fault: Fault, number: int) -> Broken:
    """The breach in the smallest situation that still has it; `rule` is the one that met it."""
    small = smallest(found, lambda less: _still(subject, less, rule, fault.rule))
    return Broken(_breach(rule, Scene(subject, small)) or fault, small, number)


def _still(subject: Subject, less: Situation, rule: str, broken: str) -> bool:
    """Whether a smaller situation still breaks the same rule."""
    if not readable(less, subject.kinds):
        return False
    fault = _breach(rule, Scene(subject, less))
    return fault is not None and fault.rule == broken


# ── who is examined ──────────────────────────────────────────────────────────────────────────────────────────


def _subject(plugin: PluginClass, args: Any, beside: Sequence[PluginClass], features: Features) -> Subject:
    registry = Registry({name_of(one): one for one in (plugin, *beside)})
    given = msgspec.to_builtins(args) if isinstance(args, Struct) else args
    if not points_of(plugin):
        problem = f'plugin "{name_of(plugin)}" has no hook of any extension point'
        raise ConfigError("", problem, "see docs/hooks.md")

    others = tuple(registry.maker(name_of(one), None, features) for one in beside)
    kinds = {**KINDS, **{kind.__name__: kind for one in (plugin, *beside) for kind in reads_of(one)}}
    return Subject(registry.maker(name_of(plugin), given, features), name_of(plugin), others, kinds)


def _plain(obj: KubeObject | Json) -> Json:
    if isinstance(obj, KubeObject):
        raw: Json = msgspec.to_builtins(obj)
        return {"kind": obj.kind, **raw}
    return dict(obj)


# ── what situations are about ────────────────────────────────────────────────────────────────────────────────


class _Keenness:
    """Which themes a plugin cares for, by what came of the situations about them."""

    def __init__(self, themes: Mapping[str, int]) -> None:
        self._drawn = dict.fromkeys(themes, 0)
        self._told = dict.fromkeys(themes, 0)
        self._seen = dict.fromkeys(("turned down", "let through"), 0)

    @property
    def rare(self) -> str:
        """The answer that has been heard less often: more of it is wanted."""
        return min(self._seen, key=self._seen.__getitem__)

    def learn(self, themes: Sequence[str], seen: Mapping[str, int]) -> None:
        told = any(seen.get(what) for what in (*_TELLING, self.rare))
        for what in self._seen:
            self._seen[what] += seen.get(what, 0)
        for name in themes:
            self._drawn[name] += 1
            self._told[name] += told

    @property
    def weights(self) -> dict[str, int]:
        return {name: 1 + _EAGER * self._told[name] // (drawn + 1) for name, drawn in self._drawn.items()}


def _words(plugin: PluginClass, args: Any, labels: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Labels worth trying: those named; otherwise texts the plugin's own code or arguments could be looking for."""
    if labels:
        return {key: tuple(values) for key, values in labels.items()}
    kind = args_type(plugin)
    defaults = kind() if kind is not None and args is None else None
    known = (*_leaves(args), *_leaves(defaults), *(source.texts(plugin) if isinstance(plugin, type) else ()))
    texts = list(dict.fromkeys(text for text in known if _WORD.fullmatch(text)))
    values = tuple(dict.fromkeys((*texts, "1", "10", "true", "-3", "none")))
    return dict.fromkeys(texts[:12], values)


def _leaves(args: Any) -> Iterator[str]:
    if isinstance(args, str):
        yield args
    elif isinstance(args, Mapping):
        yield from (text for value in args.values() for text in _leaves(value))
    elif isinstance(args, (list, tuple)):
        yield from (text for value in args for text in _leaves(value))
    elif isinstance(args, Struct):
        yield from _leaves(msgspec.to_builtins(args))
