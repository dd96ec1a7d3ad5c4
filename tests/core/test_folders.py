# SPDX-License-Identifier: Apache-2.0
"""Results folders: two commands on the same folder, killed commands, and files of users."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rebat.core import folders
from rebat.core.errors import InputError
from rebat.core.folders import MANIFEST, atomic_folder


def write(path: Path, text: str, force: bool = False, meanwhile: object = None) -> None:
    """Write a result of one file as a command does, and call ``meanwhile`` before the end."""
    with atomic_folder(path, force) as folder:
        (folder / "file").write_text(text)
        if callable(meanwhile):
            meanwhile()


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }


def put(path: Path, text: str) -> None:
    """Write the result of a command on another machine, which does not see this machine's locks."""
    path.mkdir(exist_ok=True)
    (path / "file").write_text(text)
    listed = [file for file in path.iterdir() if file.is_file() and file.name != MANIFEST]
    lines = [f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in listed]
    (path / MANIFEST).write_text("".join(lines))


def test_the_second_of_two_commands_on_one_folder_is_refused_at_once(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def second() -> None:
        with pytest.raises(InputError, match="another command is writing its result there"):
            write(out, "second")

    write(out, "first", meanwhile=second)
    assert contents(tmp_path) == {"out/file": "first"}


@pytest.mark.parametrize("force", [False, True])
def test_a_result_that_came_meanwhile_is_kept_and_so_is_the_new_one(
    tmp_path: Path, force: bool
) -> None:
    out = tmp_path / "out"
    (tmp_path / "out-2").mkdir()
    with pytest.raises(InputError, match=f"the new result is in {out}-3$"):
        write(out, "later", force, meanwhile=lambda: put(out, "other"))
    assert contents(tmp_path) == {"out/file": "other", "out-3/file": "later"}


def test_with_force_only_the_result_of_the_beginning_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, "first")
    with pytest.raises(InputError, match=f"the new result is in {out}-2$"):
        write(out, "later", True, lambda: put(out, "other"))
    with pytest.raises(InputError, match=f"the new result is in {out}-3$"):
        write(out, "last", True, lambda: (out / "notes").write_text("mine"))
    assert contents(tmp_path) == {
        "out/file": "other", "out/notes": "mine", "out-2/file": "later", "out-3/file": "last",
    }  # fmt: skip


def test_an_error_names_the_folder_as_the_user_does(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("out"), "first")
    with pytest.raises(InputError, match=r"^out: contains an earlier result"):
        write(Path("out"), "second")


@pytest.mark.parametrize("force", [False, True])
def test_a_file_is_no_folder(tmp_path: Path, force: bool) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=r"file: is a file \(expected a new or empty folder"):
        write(tmp_path / "file", "mine", force)
    assert contents(tmp_path) == {"file": "mine"}


KILLED = """
import os, signal, sys
from pathlib import Path
from rebat.core.folders import atomic_folder
from rebat.core.folders import MANIFEST
with atomic_folder(Path(sys.argv[1]), True) as folder:
    (folder / "file").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("exists", [False, True])
def test_what_a_killed_command_left_is_removed_by_the_next(tmp_path: Path, exists: bool) -> None:
    out = tmp_path / "out"
    if exists:
        write(out, "first")
    done = subprocess.run([sys.executable, "-c", KILLED, str(out)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert "half" in contents(tmp_path).values()
    write(out, "next", force=True)
    assert contents(tmp_path) == {"out/file": "next"}
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


@pytest.mark.parametrize("name", [".out.0123456789ab", ".out.rebat-0123", ".rebat-0123456789ab"])
def test_only_our_own_temporary_folders_are_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").touch()
    write(tmp_path / "out", "x")
    assert (tmp_path / name / "mine").exists()


def test_temporary_folders_of_others_are_not_removed(tmp_path: Path, monkeypatch) -> None:
    other = tmp_path / ".out.rebat-0123456789ab"
    other.mkdir()
    link = tmp_path / ".x.rebat-0123456789ab"
    link.symlink_to(other)
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    write(tmp_path / "out", "x")
    assert other.exists()
    assert link.is_symlink()


def test_a_command_that_lives_keeps_its_temporary_folder(tmp_path: Path) -> None:
    write(tmp_path / "one", "1", meanwhile=lambda: write(tmp_path / "two", "2"))
    assert contents(tmp_path) == {"one/file": "1", "two/file": "2"}


def test_a_signal_between_old_and_new_waits(tmp_path: Path, monkeypatch) -> None:
    """Otherwise the old result would be removed before the new one is in place."""

    class Came(BaseException):
        pass

    def came(*_: object) -> None:
        raise Came

    out, remove = tmp_path / "out", folders.remove_listed

    def interrupted(folder: Path) -> None:
        remove(folder)
        os.kill(os.getpid(), signal.SIGTERM)

    write(out, "first")
    monkeypatch.setattr(folders, "remove_listed", interrupted)
    before = signal.signal(signal.SIGTERM, came)
    try:
        with pytest.raises(Came):
            write(out, "next", force=True)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert contents(tmp_path) == {"out/file": "next"}
