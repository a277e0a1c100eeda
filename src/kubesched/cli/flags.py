"""The flags of kube-scheduler, every one of them: used, accepted because nothing is lost without it, or refused.

A command line written for kube-scheduler works unchanged, or is told in a sentence which word of it does not and
why.  Values are spelled as Go spells them: `--leader-elect=false`, `--leader-elect`, durations as `15s`, `-v=4`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import click

from kubesched.api.time import parse_duration

F = TypeVar("F", bound=Callable[..., Any])
Kind: TypeAlias = Literal["text", "bool", "int", "float", "list", "duration"]
Fate: TypeAlias = Literal["used", "accepted", "refused"]


class Flag(NamedTuple):
    """One flag.

    Args:
        default: as Go prints it; what is not said at all is "".
        fate: `used`; `accepted`, with why nothing is lost without it; `refused`, with what to do instead.
        text: of a used flag what it does, of the others why.
    """

    group: str
    name: str
    kind: Kind
    default: str
    fate: Fate
    text: str


def _flags(group: str, *rows: tuple[str, Kind, str, Fate, str]) -> Iterator[Flag]:
    return (Flag(group, *row) for row in rows)


_IN_MEMORY = "a certificate of our own is made in memory and written nowhere"
_HTTP1 = "HTTP/1.1 is served, and no HTTP/2"
_NO_PROXY = "nobody is believed on a proxy's word: let clients come with a token or a certificate"
_BOUNDED = "labels hold no names that users choose, so there is nothing to limit"
_PROFILING = "there is no profiler to switch on"
_UNBUFFERED = "every line is written at once"

FLAGS: tuple[Flag, ...] = (
    *_flags(
        "Misc",
        ("config", "text", "", "used", "The configuration file."),
        ("master", "text", "", "used", "The URL of the API server, instead of the kubeconfig's."),
        ("write-config-to", "text", "", "used", "Write the configuration with all defaults to this file, and end."),
    ),
    *_flags(
        "Secure serving",
        ("bind-address", "text", "127.0.0.1", "used", "Where to serve; kube-scheduler's default is 0.0.0.0."),
        ("secure-port", "int", "10259", "used", "The port to serve on; 0 for none."),
        ("cert-dir", "text", "", "accepted", _IN_MEMORY),
        ("tls-cert-file", "text", "", "used", "The certificate to serve with; read again when it changes."),
        ("tls-private-key-file", "text", "", "used", "Its key."),
        ("tls-cipher-suites", "list", "", "used", "The cipher suites, by Go's names or by OpenSSL's."),
        ("tls-min-version", "text", "", "used", "VersionTLS12 or VersionTLS13."),
        ("tls-curve-preferences", "list", "", "refused", "the curves are those of the TLS library"),
        ("tls-sni-cert-key", "list", "", "refused", "one certificate is served: name it with --tls-cert-file"),
        ("http2-max-streams-per-connection", "int", "", "accepted", _HTTP1),
        ("disable-http2-serving", "bool", "false", "accepted", _HTTP1),
        ("permit-address-sharing", "bool", "false", "accepted", "addresses are always shared like that"),
        ("permit-port-sharing", "bool", "false", "refused", "two schedulers on one port cannot be told apart"),
    ),
    *_flags(
        "Authentication",
        ("authentication-kubeconfig", "text", "", "used", "With whose rights to review tokens; the scheduler's."),
        ("authentication-skip-lookup", "bool", "false", "accepted", "nothing is looked up in the cluster"),
        ("authentication-token-webhook-cache-ttl", "duration", "10s", "used", "For how long a review holds."),
        ("authentication-tolerate-lookup-failure", "bool", "true", "accepted", "nothing is looked up in the cluster"),
        ("client-ca-file", "text", "", "used", "Whose client certificates are believed."),
        ("requestheader-allowed-names", "list", "", "refused", _NO_PROXY),
        ("requestheader-client-ca-file", "text", "", "refused", _NO_PROXY),
        ("requestheader-extra-headers-prefix", "list", "", "refused", _NO_PROXY),
        ("requestheader-group-headers", "list", "", "refused", _NO_PROXY),
        ("requestheader-uid-headers", "list", "", "refused", _NO_PROXY),
        ("requestheader-username-headers", "list", "", "refused", _NO_PROXY),
    ),
    *_flags(
        "Authorization",
        ("authorization-always-allow-paths", "list", "/healthz,/readyz,/livez", "used", "Pages for everybody."),
        ("authorization-kubeconfig", "text", "", "used", "With whose rights to review access; the scheduler's."),
        ("authorization-webhook-cache-authorized-ttl", "duration", "10s", "used", "For how long a yes or no holds."),
        ("authorization-webhook-cache-unauthorized-ttl", "duration", "10s", "accepted", "a no holds as long as a yes"),
    ),
    *_flags(
        "Deprecated",
        ("kubeconfig", "text", "", "used", "Where the API server is; a configuration file that says so comes first."),
        ("kube-api-qps", "float", "50", "used", "Requests a second; without --config only."),
        ("kube-api-burst", "int", "100", "used", "Requests at once; without --config only."),
        ("kube-api-content-type", "text", "", "accepted", "JSON is spoken: it costs us less than protobuf"),
        ("profiling", "bool", "true", "accepted", _PROFILING),
        ("contention-profiling", "bool", "true", "accepted", _PROFILING),
        ("pod-max-in-unschedulable-pods-duration", "duration", "5m0s", "used", "How long a pod may sleep at most."),
    ),
    *_flags(
        "Leader election",
        ("leader-elect", "bool", "true", "used", "Work only while holding the lease."),
        ("leader-elect-lease-duration", "duration", "15s", "used", "How long the others wait before they take over."),
        ("leader-elect-renew-deadline", "duration", "10s", "used", "When to stop after the last renewal."),
        ("leader-elect-retry-period", "duration", "2s", "used", "How often to renew."),
        ("leader-elect-resource-lock", "text", "leases", "used", "Only leases."),
        ("leader-elect-resource-name", "text", "kube-scheduler", "used", "The name of the lease."),
        ("leader-elect-resource-namespace", "text", "kube-system", "used", "Where the lease is."),
    ),
    *_flags(
        "Feature gates",
        ("feature-gates", "list", "", "used", "NAME=true,OTHER=false, by the names Kubernetes gives them."),
        ("emulated-version", "list", "", "used", "Only 1.36, which is what kubesched does."),
        ("min-compatibility-version", "list", "", "accepted", "nothing that is written depends on it"),
    ),
    *_flags(
        "Metrics",
        ("show-hidden-metrics-for-version", "text", "", "accepted", "no metric is hidden"),
        ("disabled-metrics", "list", "", "used", "Metrics to leave out, by their full names."),
        ("allow-metric-labels", "list", "", "refused", _BOUNDED),
        ("allow-metric-labels-manifest", "text", "", "refused", _BOUNDED),
    ),
    *_flags(
        "Logs",
        ("logging-format", "text", "text", "used", "text or json; --log-format says the same."),
        ("v", "int", "0", "used", "How much is logged: 2 outcomes, 3 and 4 attempts, 5 moves, 10 scores."),
        ("vmodule", "list", "", "refused", "all lines come from one list of messages: use -v"),
        ("log-flush-frequency", "duration", "5s", "accepted", _UNBUFFERED),
        ("log-json-info-buffer-size", "text", "", "accepted", _UNBUFFERED),
        ("log-json-split-stream", "bool", "false", "refused", "log lines go to standard error: redirect it"),
        ("log-text-info-buffer-size", "text", "", "accepted", _UNBUFFERED),
        ("log-text-split-stream", "bool", "false", "refused", "log lines go to standard error: redirect it"),
    ),
)

BY_NAME: Mapping[str, Flag] = MappingProxyType({flag.name: flag for flag in FLAGS})

_SHORT: Mapping[str, tuple[str, ...]] = MappingProxyType({"v": ("-v",), "logging-format": ("--log-format",)})
_TRUE, _FALSE = ("1", "t", "true"), ("0", "f", "false")


def kube_scheduler_flags(command: F) -> F:
    """Give a command all of these flags, as one argument `said`: what was said, by name, as values."""
    for flag in reversed(FLAGS):
        command = _option(flag)(command)
    return command


def _option(flag: Flag) -> Callable[[F], F]:
    told: dict[str, Any] = {"default": None, "metavar": flag.kind.upper(), "help": _help(flag)}
    if flag.kind == "bool":
        told |= {"is_flag": False, "flag_value": "true", "metavar": "[BOOL]"}
    elif flag.kind == "list":
        told |= {"multiple": True, "default": ()}
    if flag.name == "v":
        told["metavar"] = "LEVEL"
    return click.option(
        *_SHORT.get(flag.name, ()),
        f"--{flag.name}",
        f"flag_{flag.name.replace('-', '_')}",
        hidden=flag.fate != "used",
        expose_value=False,
        callback=lambda context, parameter, value: _take(flag, context, value),
        **told,
    )


def _help(flag: Flag) -> str:
    default = f"  [{flag.default}]" if flag.default else ""
    return f"{flag.text}{default}"


def _take(flag: Flag, context: click.Context, value: Any) -> None:
    """Put a value where `said` finds it."""
    taken: dict[str, Any] = context.meta.setdefault(__name__, {})
    if value is None or value == ():
        return
    if flag.fate == "refused":
        raise click.UsageError(f"--{flag.name}: {flag.text}", context)
    taken[flag.name] = _value(flag, value, context)


def _value(flag: Flag, value: Any, context: click.Context) -> Any:
    if flag.kind == "list":
        return tuple(part.strip() for one in value for part in one.split(",") if part.strip())
    text = str(value)
    if flag.name == "v":
        text = text.removeprefix("=")  # Go takes -v=4
    try:
        match flag.kind:
            case "bool":
                return _bool(text)
            case "int":
                return int(text)
            case "float":
                return float(text)
            case "duration":
                parse_duration(text)
    except ValueError:
        raise click.UsageError(f"--{flag.name}: {text!r} is not {_ARTICLES[flag.kind]}", context) from None
    return text


_ARTICLES = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "duration": "a duration, as 15s or 1m30s",
}


def _bool(text: str) -> bool:
    if text.lower() in (*_TRUE, *_FALSE):
        return text.lower() in _TRUE
    raise ValueError(text)


def said(context: click.Context) -> Mapping[str, Any]:
    """What was said of these flags, by name; what was not said is not there."""
    found: Mapping[str, Any] = context.meta.get(__name__, {})
    return found


def notes(told: Mapping[str, Any]) -> Iterator[str]:
    """A line for every flag that was given and has no effect."""
    for name in told:
        if BY_NAME[name].fate == "accepted":
            yield f"--{name} has no effect: {BY_NAME[name].text}"
