"""Lose no acknowledged write: the store's objects in an SQLite file, in WAL mode.

Every write is committed before the store answers it, so a process that is killed at any instant
(kill -9 included) comes back with everything it had said yes to.  What a commit costs depends on what
else may fail:

    durability="process"   (default) the commit is handed to the operating system: survives the death
                           of the process, a few dozen microseconds a write.  A power cut may take the
                           last moments, but never leaves a broken file.
    durability="power"     the commit is on the disk (fsync): survives a power cut; a write waits for
                           the disk.

`batch` puts many writes into one commit, for loading a whole cluster or for answering many requests at
once; what is inside is acknowledged when the batch has ended.

A watcher may have seen revisions that a crash then took back.  Were they given out a second time, its
cache would be wrong for ever; so after anything but a clean close the revision goes on from a later
number, and clients that continue from before are told 410 and list again.

One process has the folder at a time.  A folder written by a newer format, or a file that is no
database, is refused with a sentence.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from kubesched.apiserver.status import internal

FILE_NAME = "objects.sqlite"
APPLICATION_ID = 0x6B756265  # "kube": tells our file from any other SQLite database
FORMAT = 1
REVISIONS_SKIPPED = 10_000
REMOVALS_BETWEEN_SWEEPS = 10_000

Durability = Literal["process", "power"]

# A removed object stays as a row without a body until the next sweep, so that every write is one statement,
# atomic by itself, and the latest revision is that of some row.
_SCHEMA = """
CREATE TABLE objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, body BLOB,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), revision INTEGER NOT NULL, clean INTEGER NOT NULL);
INSERT INTO state VALUES (1, 0, 1);
"""
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)"


class DataDirError(Exception):
    """A data directory that cannot be used; the message says which, why, and what to do."""


class Journal:
    """The objects of a Store in a folder; give it to Store(journal=…).

    Args:
        data_dir: the folder; made if missing.
        durability: what a write survives, see above.
    """

    def __init__(self, data_dir: str | Path, durability: Durability = "process") -> None:
        self._folder = Path(data_dir)
        self._depth = 0
        self._removals = 0
        self._broken = ""
        self._file = self._open(durability)

    # opening ---------------------------------------------------------------------------------------

    def _open(self, durability: Durability) -> sqlite3.Connection:
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise DataDirError(f"cannot make the data directory {self._folder}: {error.strerror}") from None
        path = self._folder / FILE_NAME
        try:
            file = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
            try:
                self._prepare(file, durability)
            except BaseException:
                file.close()
                raise
        except sqlite3.DatabaseError as error:
            raise DataDirError(self._why(path, error)) from None
        return file

    def _prepare(self, file: sqlite3.Connection, durability: Durability) -> None:
        # Exclusive: the lock is held from the first read until close, and the WAL index stays in memory.
        file.execute("PRAGMA locking_mode = EXCLUSIVE")
        file.execute("PRAGMA journal_mode = WAL")
        file.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
        file.execute("BEGIN IMMEDIATE")
        (application,) = file.execute("PRAGMA application_id").fetchone()
        (version,) = file.execute("PRAGMA user_version").fetchone()
        (tables,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            for statement in _SCHEMA.split(";"):
                file.execute(statement)
            file.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            file.execute(f"PRAGMA user_version = {FORMAT}")
        elif application != APPLICATION_ID:
            raise DataDirError(f"{self._folder / FILE_NAME} is some other program's database; choose another folder")
        elif version != FORMAT:
            raise DataDirError(
                f"{self._folder / FILE_NAME} has format {version}, this version of kubesched reads {FORMAT}; "
                "use the version that wrote it, or another folder"
            )
        file.execute("COMMIT")

    def _why(self, path: Path, error: sqlite3.DatabaseError) -> str:
        text = str(error)
        if "locked" in text:
            return f"{path} is in use by another process; stop it, or choose another --data-dir"
        if "not a database" in text or "malformed" in text:
            return f"{path} is not a usable database ({text}); move it away, or choose another --data-dir"
        return f"cannot use {path}: {text}"

    # reading ---------------------------------------------------------------------------------------

    def load(self) -> tuple[int, Iterator[tuple[str, str, str, int, bytes]]]:
        """Return the revision to go on from, and every object as (resource, namespace, name, revision, body)."""
        file = self._file
        (clean,) = file.execute("SELECT clean FROM state").fetchone()
        with self.batch():
            self._sweep()
            file.execute("UPDATE state SET clean = 0, revision = revision + ?", (0 if clean else REVISIONS_SKIPPED,))
        (revision,) = file.execute("SELECT revision FROM state").fetchone()
        return revision, file.execute(
            "SELECT resource, namespace, name, revision, body FROM objects ORDER BY resource, namespace, name"
        )

    # writing ---------------------------------------------------------------------------------------

    def put(self, revision: int, resource: str, namespace: str, name: str, body: bytes) -> None:
        """Write an object; a failure is raised as an ApiError and nothing has happened."""
        self._write((resource, namespace, name, revision, body))

    def remove(self, revision: int, resource: str, namespace: str, name: str) -> None:
        """Remove an object; a failure is raised as an ApiError and nothing has happened."""
        self._write((resource, namespace, name, revision, None))
        self._removals += 1
        if self._removals >= REMOVALS_BETWEEN_SWEEPS:
            with self.batch():
                self._sweep()

    def _write(self, row: tuple[str, str, str, int, bytes | None]) -> None:
        if self._broken:
            raise internal(self._broken)
        try:
            self._file.execute(_PUT, row)
        except sqlite3.Error as error:
            # Some failures (a full disk) make SQLite give up the whole transaction.
            if self._depth and not self._file.in_transaction:
                self._give_up(error)
            raise internal(f"cannot write to {self._folder}: {error}") from error

    def _sweep(self) -> None:
        """Forget removed objects, but not the revision of their removal."""
        self._file.execute(
            "UPDATE state SET revision = max(revision, (SELECT coalesce(max(revision), 0) FROM objects))"
        )
        self._file.execute("DELETE FROM objects WHERE body IS NULL")
        self._removals = 0

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Commit the writes inside together; batches within a batch belong to it.

        An exception inside commits what was written before it, for the store has it in memory as well.
        """
        if self._depth:
            yield
            return
        self._file.execute("BEGIN IMMEDIATE")
        self._depth = 1
        try:
            yield
        finally:
            self._depth = 0
            self._commit()

    def _commit(self) -> None:
        if self._broken:
            raise internal(self._broken)
        try:
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)
            raise internal(self._broken) from error

    def _give_up(self, error: sqlite3.Error) -> None:
        """Memory is ahead of the file and cannot be taken back: accept nothing more."""
        if self._file.in_transaction:
            self._file.execute("ROLLBACK")
        self._broken = f"{self._folder} lost a batch of writes ({error}); make room and start again"

    def close(self) -> None:
        """Let go of the folder; the next start goes on from exactly this revision."""
        if not self._broken:
            with self.batch():
                self._sweep()
                self._file.execute("UPDATE state SET clean = 1")
        self._file.close()
