"""How extenders are reached: only where the configuration says, never anywhere they send us.

An extender is somebody else's server.  Its address comes from the operator's configuration alone; redirects are not
followed, our token is not shown to it, and a name that resolves to a link-local address, where clouds keep their
secrets, is not connected to.  What was resolved is what is connected to (SEC-09).
"""

from __future__ import annotations

import base64
import binascii
import socket
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from kubesched.api.time import Duration, parse_duration
from kubesched.config.schema import ExtenderConfig, ExtenderTLS
from kubesched.framework.errors import ConfigError
from kubesched.live.access import Pass, Proof, Text, check_url, make_context


class Reach(NamedTuple):
    """One extender: where it is, and how long it may take."""

    way: Pass
    timeout: Duration


class CarefulResolver(AbstractResolver):
    """Names to addresses, without those that are nobody's business."""

    def __init__(self) -> None:
        self._inner = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        allowed = [one for one in found if not _forbidden(one["host"])]
        if not allowed:
            raise OSError(f"{host} has only link-local addresses, and extenders are not looked for there")
        return allowed

    async def close(self) -> None:
        await self._inner.close()


def reaches(extenders: Iterable[ExtenderConfig], *, plain: bool = False) -> dict[int, Reach]:
    """How to reach each extender, by its number.  Raises ConfigError.

    Args:
        plain: that unencrypted HTTP may leave this machine.
    """
    return {at: _reach(one, f"extenders[{at}]", plain) for at, one in enumerate(extenders)}


def _reach(config: ExtenderConfig, where: str, plain: bool) -> Reach:
    url = config.url_prefix
    if config.enable_https and url.startswith("http://"):
        url = f"https://{url.removeprefix('http://')}"
    url = check_url(url, f"{where}.urlPrefix", plain=plain)
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    if _forbidden(host.rsplit(":", 1)[0].strip("[]")):
        raise ConfigError(f"{where}.urlPrefix", f"{url} is a link-local address, where no extender should be")
    tls = config.tls_config or ExtenderTLS()
    if tls.insecure:
        problem = "insecure would let anybody pose as the extender"
        raise ConfigError(f"{where}.tlsConfig", problem, "give caFile or caData")
    context = None
    if url.startswith("https:"):
        authority = _pem(tls.ca_data, tls.ca_file, f"{where}.tlsConfig.ca")
        certificate = _pem(tls.cert_data, tls.cert_file, f"{where}.tlsConfig.cert")
        key = _pem(tls.key_data, tls.key_file, f"{where}.tlsConfig.key")
        context = make_context(authority, Proof("", certificate, key), insecure=False, where=f"{where}.tlsConfig")
    return Reach(Pass(url, {}, context, tls.server_name or None, None), parse_duration(config.http_timeout))


def _pem(data: str, file: str, where: str) -> bytes:
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(f"{where}Data", "is no base64") from None
    return Text(Path(file), f"{where}File").value if file else b""


def _forbidden(address: str) -> bool:
    try:
        return ip_address(address.partition("%")[0]).is_link_local
    except ValueError:
        return False
