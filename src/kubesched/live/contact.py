"""Where a running scheduler can be asked, and with which token: a file for the user who runs it, and nobody else.

`kubesched run` leaves one while it runs; `kubesched queue` and `kubesched explain` look for it.  A folder in which
others could put a file is not looked at.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

from kubesched.apiserver.tls import write_private
from kubesched.framework.errors import KubeschedError


class NoContact(KubeschedError):
    """No running scheduler was found, or more than one."""


class Contact(Struct, frozen=True, kw_only=True):
    """One running scheduler."""

    url: str
    token: str
    authority: str = ""  # PEM of who vouches for its certificate; empty where the system's authorities do
    pid: int = 0
    schedulers: tuple[str, ...] = ()


def folder() -> Path:
    """Where the contacts of this user are."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given:
        return Path(given) / "kubesched"
    return Path(tempfile.gettempdir()) / f"kubesched-{os.getuid()}"


def leave(contact: Contact, place: Path | None = None) -> Path | None:
    """Leave a contact; where it lies, or None where nothing can be written."""
    path = (place or folder()) / f"run-{contact.pid}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_ours(path.parent):
            return None
        return write_private(path, msgspec.json.format(msgspec.json.encode(contact)))
    except OSError:
        return None


def find(place: Path | None = None) -> Contact:
    """The contact of the only scheduler that runs here.  Raises NoContact."""
    where = place or folder()
    found = [contact for contact in map(_read, sorted(where.glob("run-*.json"))) if contact is not None]
    running = [contact for contact in found if _is_alive(contact.pid)]
    if len(running) == 1:
        return running[0]
    if not running:
        problem = f"no scheduler of yours runs on this machine (looked in {where})"
        raise NoContact(f"{problem}; name another with --server https://HOST:PORT and --token-file")
    listed = ", ".join(contact.url for contact in running)
    raise NoContact(f"{len(running)} schedulers run here: {listed}; say which with --server")


def at(url: str, place: Path | None = None) -> Contact | None:
    """The contact of the scheduler at a URL, if it runs here."""
    found = (_read(path) for path in (place or folder()).glob("run-*.json"))
    return next((contact for contact in found if contact is not None and contact.url == url.rstrip("/")), None)


def _read(path: Path) -> Contact | None:
    try:
        if not (_is_ours(path.parent) and _is_ours(path)):
            return None
        return msgspec.json.decode(path.read_bytes(), type=Contact)
    except (OSError, msgspec.DecodeError):
        return None


def _is_ours(path: Path) -> bool:
    """Ours, and closed to everybody else."""
    status = path.stat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
