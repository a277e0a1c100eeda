"""The pages of reference that are made from the program: commands, the flags of `kubesched run`, and its metrics."""

from __future__ import annotations

from collections.abc import Iterator

import click

from kubesched.cli.flags import FLAGS, Fate, Flag
from kubesched.cli.main import COMMANDS, kubesched
from kubesched.cli.run import run
from kubesched.telemetry.series import NOT_HERE, TABLE, Series

# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────


def commands_page() -> str:
    """What every command says of itself."""
    rows = [f"| [`{name}`](#kubesched-{name}) | {said} |" for name, said in COMMANDS.items()]
    sections = [section for name in COMMANDS for section in _sections(kubesched, name, "kubesched")]
    return COMMANDS_PAGE.format(rows="\n".join(rows), sections="\n".join(sections))


def _sections(group: click.Group, name: str, path: str) -> Iterator[str]:
    context = click.Context(group, info_name=path, terminal_width=_WIDTH)
    command = group.get_command(context, name)
    assert command is not None, f"{name} is a command"
    whole = f"{path} {name}"
    yield f"## {whole}\n\n```text\n{_help(command, whole)}\n```\n"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from _sections(command, inner, whole)


def _help(command: click.Command, whole: str) -> str:
    """Its help; where kube-scheduler's flags are among the options, a page of their own has them."""
    own = [one for one in command.params if not (one.name or "").startswith("flag_")]
    apart = len(own) < len(command.params)
    shown = click.Command(command.name, params=own, help=command.help) if apart else command
    context = click.Context(shown, info_name=whole, terminal_width=_WIDTH, help_option_names=["-h", "--help"])
    return shown.get_help(context) + ("\n\nAnd the flags of kube-scheduler: flags.md." if apart else "")


_WIDTH = 110

COMMANDS_PAGE = """\
# Commands

`kubesched --help` lists them, and every one of them has a `--help`, which is what stands here. `kubesched completion
bash` prints what a shell needs to complete them.

| command | |
|---|---|
{rows}

Every command ends with one of these statuses. Mistakes are told on standard error, in a sentence that names the thing.

| status | |
|---|---|
| 0 | it went well |
| 1 | it did not, and why is said: a file cannot be read, a configuration is refused, an expectation is missed |
| 2 | it was not understood: an unknown option, a value without sense, a scenario or journal that cannot be used |
| 70 | a mistake of kubesched's own, which tells where |
| 130 | it was interrupted |

{sections}"""

# ── flags ────────────────────────────────────────────────────────────────────────────────────────────────────


def flags_page() -> str:
    """Every flag of kubesched run: its own, and what becomes of each of kube-scheduler's."""
    return FLAGS_PAGE.format(
        own="\n".join(_own()),
        used="\n".join(_used()),
        accepted="\n".join(_others("accepted")),
        refused="\n".join(_others("refused")),
    )


def _own() -> Iterator[str]:
    for option in run.params:
        if isinstance(option, click.Option) and not option.hidden and not (option.name or "").startswith("flag_"):
            value = "" if option.is_flag else f" {option.make_metavar(click.Context(run))}"
            yield f"| `{option.opts[0]}{value.replace('|', ' or ')}` | {option.help} |"


def _used() -> Iterator[str]:
    group = ""
    for flag in _those("used"):
        if flag.group != group:
            group = flag.group
            yield f"| **{group}** | | |"
        yield f"| `--{flag.name}` | {f'`{flag.default}`' if flag.default else ''} | {flag.text} |"


def _others(fate: Fate) -> Iterator[str]:
    return (f"| `--{flag.name}` | {flag.text} |" for flag in _those(fate))


def _those(fate: Fate) -> Iterator[Flag]:
    return (flag for flag in FLAGS if flag.fate == fate)


FLAGS_PAGE = """\
# The flags of kubesched run

Every flag of kube-scheduler v1.36 is known, so a command line written for it works here, or is told in a sentence which
word of it does not. Values are written as Go writes them: `--leader-elect=false`, `-v=4`, durations as `1m30s`. What
the configuration file says, flags change only where kube-scheduler lets them: of the leader election.

## Of kubesched

| flag | |
|---|---|
{own}

## Of kube-scheduler, used

| flag | default | |
|---|---|---|
{used}

## Accepted, without effect

A line in the log says so when one is given.

| flag | why nothing is lost |
|---|---|
{accepted}

## Refused

The command ends with exit status 2 and this sentence.

| flag | why |
|---|---|
{refused}
"""

# ── metrics ──────────────────────────────────────────────────────────────────────────────────────────────────


def metrics_page() -> str:
    """Every metric: what it is, its labels, its buckets; and what kube-scheduler has that is not here."""
    theirs = [series for series in TABLE if not series.name.startswith("kubesched_")]
    own = [series for series in TABLE if series.name.startswith("kubesched_")]
    return METRICS_PAGE.format(
        alerts="\n".join(f"| `{expression}` | {meaning} |" for expression, meaning in ALERTS),
        theirs="\n".join(_rows(theirs)),
        own="\n".join(_rows(own)),
        buckets="\n".join(_buckets()),
        missing="\n".join(f"| `{name}` | {why} |" for name, why in NOT_HERE.items()),
    )


def _rows(series: list[Series]) -> Iterator[str]:
    for one in series:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        yield f"| `{one.name}` | {one.kind} | {labels} | {one.help} |"


def _buckets() -> Iterator[str]:
    alike: dict[tuple[float, ...], list[str]] = {}
    for series in TABLE:
        if series.buckets:
            alike.setdefault(series.buckets, []).append(f"`{series.name}`")
    for bounds, names in alike.items():
        first, last = f"{bounds[0]:.6g}", f"{bounds[-1]:.6g}"
        yield f"| {first} to {last}, in {len(bounds)} steps | {', '.join(names)} |"


_SLI = "scheduler_pod_scheduling_sli_duration_seconds_bucket"

ALERTS = (
    ('max(leader_election_master_status{name="kube-scheduler"}) < 1', "nobody schedules"),
    (
        'increase(scheduler_schedule_attempts_total{result="error"}[10m]) > 0',
        "an attempt went wrong by the scheduler's own fault, or a plugin raised: the log says what",
    ),
    (
        "increase(scheduler_pod_scheduled_after_flush_total[1h]) > 0",
        "a pod slept through what should have woken it: the hint of a plugin is wrong",
    ),
    (
        "increase(kubesched_binds_unanswered_total[10m]) > 0",
        "bindings got no answer; their room is kept until it is known what became of them",
    ),
    (f"histogram_quantile(0.99, sum by (le) (rate({_SLI}[5m]))) > 5", "pods that fit wait too long"),
    ('scheduler_pending_pods{queue="active"} > 1000', "more pods come than can be tried"),
    ("kubesched_insecure_tls > 0", "nobody checks whether the API server is the API server"),
)
"""Expressions that should be quiet, and what it means where they are not."""

METRICS_PAGE = """\
# Metrics

`/metrics` of a running scheduler, on its secure port, in Prometheus' text format. Names, types, labels and buckets are
those of kube-scheduler v1.36, so its dashboards and alerts find what they look for; a test compares them with the real
one. All are renderings of what the scheduler wrote down of its decisions, so they cannot disagree with its log or its
explanations. No label holds a name that a user of the cluster chose: how many series there are does not grow with it.

Whoever scrapes needs a token of the cluster that may `get` the path. This grants it to Prometheus:

```yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: kubesched-metrics}}
rules:
  - nonResourceURLs: [/metrics, /metrics/resources, /metrics/slis]
    verbs: [get]
```

`/metrics/resources` is `kube_pod_resource_request`, what every unfinished pod asks for, told by the leader alone.
`/metrics/slis` counts the results of health checks.

## What to be woken by

| expression | what it means |
|---|---|
{alerts}

## As in kube-scheduler

| metric | type | labels | |
|---|---|---|---|
{theirs}

What the operating system counts of the process, `process_cpu_seconds_total` and the like, is there too.

## Of kubesched alone

| metric | type | labels | |
|---|---|---|---|
{own}

## Buckets

| bounds | of |
|---|---|
{buckets}

## Not here

What kube-scheduler counts and kubesched does not, and why nothing is lost.

| metric | why |
|---|---|
{missing}
"""
