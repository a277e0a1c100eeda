"""What was acknowledged is still there: after a restart, after kill -9, with a full disk, in a strange folder."""

from __future__ import annotations

import importlib.util
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

import kubesched.apiserver.persistence as persistence
from kubesched.apiserver.persistence import FILE_NAME, DataDirError, Journal
from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import Store

WRITER = Path(__file__).with_name("writer.py")
SRC = Path(persistence.__file__).parents[2]


def load_writer():
    spec = importlib.util.spec_from_file_location("writer", WRITER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


writer = load_writer()


def open_store(folder: Path) -> Store:
    return Store(now=lambda: 1_800_000_000_000_000_000, luck=Random(7), journal=Journal(folder))


def item(name: str, **fields) -> dict:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "d"}, **fields}


def contents(store: Store) -> list[dict]:
    return [stored.obj for resource in store.resources() for stored in store.list(resource).items]


def test_a_restart_restores_objects_and_revision(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create("configmaps", item("a", data={"é": "ü\x00"}))
    store.create("configmaps", item("b"))
    store.create("apps/deployments", item("a", unknown=[1, 2.5, None, True]))
    store.update("configmaps", "d", "a", item("a", data={"x": "2"}))
    store.delete("configmaps", "d", "b")
    before, revision = contents(store), store.revision
    store.close()
    again = open_store(tmp_path)
    assert contents(again) == before
    assert again.revision == revision
    assert again.get("configmaps", "d", "a").revision == 5
    again.create("configmaps", item("c"))
    assert again.revision == revision + 1
    again.close()


def test_after_a_restart_older_watches_and_pages_are_expired(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    for name in "abc":
        store.create("configmaps", item(name))
    token = store.list("configmaps", limit=1).continue_token
    store.create("configmaps", item("d"))
    store.close()
    again = open_store(tmp_path)
    assert again.watch("configmaps", resource_version="3").take()[0].obj["reason"] == "Expired"
    assert again.watch("configmaps", resource_version="5").take() == []
    with pytest.raises(ApiError, match="continue parameter is too old"):
        again.list("configmaps", continue_token=token)
    again.close()


def test_after_a_crash_no_revision_is_given_out_twice(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create("configmaps", item("a"))
    revision = store.revision
    journal = store._journal
    assert isinstance(journal, Journal)
    journal._file.close()  # as the death of the process does: no goodbye
    again = open_store(tmp_path)
    assert again.revision == revision + persistence.REVISIONS_SKIPPED
    assert again.get("configmaps", "d", "a").resource_version == str(revision)
    again.close()


def test_the_revision_of_a_deletion_survives_the_sweep(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create("configmaps", item("a"))
    store.delete("configmaps", "d", "a")
    store.close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as file:
        assert file.execute("SELECT count(*) FROM objects").fetchone() == (0,)
    again = open_store(tmp_path)
    assert again.revision == 3
    again.close()


def test_removed_objects_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persistence, "REMOVALS_BETWEEN_SWEEPS", 10)
    store = open_store(tmp_path)
    journal = store._journal
    assert isinstance(journal, Journal)
    for number in range(35):
        store.create("configmaps", item(f"n{number}"))
        store.delete("configmaps", "d", f"n{number}")
        (rows,) = journal._file.execute("SELECT count(*) FROM objects").fetchone()
        assert rows < 10
    store.close()


def test_an_error_inside_a_batch_keeps_what_was_written_before_it(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with pytest.raises(ApiError, match="already exists"), store.batch():
        store.create("configmaps", item("a"))
        with store.batch():
            store.create("configmaps", item("a"))
    store.create("configmaps", item("b"))
    store.close()
    again = open_store(tmp_path)
    assert [s.name for s in again.list("configmaps").items] == ["a", "b"]
    again.close()


def fill_the_disk(journal: Journal) -> None:
    """Let SQLite believe that the disk ends where the file ends."""
    journal._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (pages,) = journal._file.execute("PRAGMA page_count").fetchone()
    journal._file.execute(f"PRAGMA max_page_count = {pages}")


def test_a_write_that_the_disk_refuses_has_not_happened(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create("configmaps", item("a"))
    watch = store.watch("configmaps", resource_version="2")
    journal = store._journal
    assert isinstance(journal, Journal)
    fill_the_disk(journal)
    with pytest.raises(ApiError) as caught:
        store.create("configmaps", item("big", data="x" * 100_000))
    assert caught.value.code == 500
    assert "full" in caught.value.message
    assert str(tmp_path) in caught.value.message
    assert store.revision == 2
    assert store.find("configmaps", "d", "big") is None
    assert watch.take() == []
    store.update("configmaps", "d", "a", item("a", data={"small": "1"}))
    store.close()
    again = open_store(tmp_path)
    assert again.get("configmaps", "d", "a").obj["data"] == {"small": "1"}
    again.close()


def test_a_batch_that_the_disk_refuses_stops_the_store_from_claiming_more(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create("configmaps", item("a"))
    journal = store._journal
    assert isinstance(journal, Journal)
    fill_the_disk(journal)
    with pytest.raises(ApiError), store.batch():
        store.create("configmaps", item("b"))
        store.create("configmaps", item("big", data="x" * 100_000))
    with pytest.raises(ApiError, match=r"lost a batch of writes|full"):
        store.create("configmaps", item("c", data="x" * 100_000))
    store.close()
    again = open_store(tmp_path)
    assert again.find("configmaps", "d", "a") is not None
    assert again.find("configmaps", "d", "c") is None
    again.close()


def test_a_folder_belongs_to_one_process(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with pytest.raises(DataDirError, match="in use by another process"):
        Journal(tmp_path)
    store.close()
    Journal(tmp_path).close()


def test_strange_folders_are_refused_with_a_sentence(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.mkdir()
    (garbage / FILE_NAME).write_bytes(b"certainly no database " * 100)
    with pytest.raises(DataDirError, match="not a usable database"):
        Journal(garbage)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    with closing(sqlite3.connect(foreign / FILE_NAME)) as file:
        file.execute("CREATE TABLE theirs (x)")
    with pytest.raises(DataDirError, match="some other program's database"):
        Journal(foreign)
    newer = tmp_path / "newer"
    Journal(newer).close()
    with closing(sqlite3.connect(newer / FILE_NAME)) as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(DataDirError, match="has format 99"):
        Journal(newer)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirError, match="cannot make the data directory"):
        Journal(tmp_path / "file" / "below")


def expected_after(steps: int) -> dict[str, int]:
    state: dict[str, int] = {}
    for verb, name, value in itertools.islice(writer.steps(), steps):
        if verb == "delete":
            del state[name]
        else:
            state[name] = value
    return state


@pytest.mark.parametrize(
    ("durability", "per_commit", "acknowledged"),
    [("process", 1, 1), ("process", 1, 500), ("process", 7, 300), ("power", 1, 50), ("power", 16, 20)],
)
def test_kill_9_in_the_middle_of_writing_loses_nothing_acknowledged(
    tmp_path: Path, durability: str, per_commit: int, acknowledged: int
) -> None:
    child = subprocess.Popen(
        [sys.executable, str(WRITER), str(tmp_path), durability, str(per_commit)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(acknowledged)]
    child.send_signal(signal.SIGKILL)
    lines += child.stdout.read().splitlines()  # what it had said before it died
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    commits = len([line for line in lines if line.strip().isdigit()])
    assert commits >= acknowledged
    store = open_store(tmp_path)
    found = {stored.name: stored.obj["value"] for stored in store.list("pods").items}
    # The commit after the last acknowledged one may or may not have been made; nothing in between.
    assert found in (expected_after(commits * per_commit), expected_after((commits + 1) * per_commit))
    assert store.revision > int(lines[-1])
    store.close()
