# SPDX-License-Identifier: Apache-2.0
"""Files are complete or not written, devices remain devices, and the user's modes do not change."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.files import atomic_path, write_lines, write_parts, write_text
from rebat.core.folders import atomic_folder

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.is_char_device(), reason="needs /dev/full")


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_lines_are_there_all_or_not_at_all(tmp_path: Path) -> None:
    def lines(n: int) -> Iterator[str]:
        yield from ("é", "", "b")
        yield str(1 // n)

    file = tmp_path / "file"
    write_lines(file, lines(1))
    assert file.read_bytes() == "é\n\nb\n1\n".encode()
    with pytest.raises(ZeroDivisionError):
        write_lines(file, lines(0))
    assert file.read_bytes() == "é\n\nb\n1\n".encode()
    assert list(tmp_path.iterdir()) == [file]


def test_a_pipe_is_written_through_and_stays(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "text")
    reader.join()
    assert read == ["text"]
    assert pipe.is_fifo()


@needs_full
def test_a_device_stays_a_device_and_its_error_is_told(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(FULL)
    with pytest.raises(InputError, match=f"{link}: cannot write: No space left on device"):
        write_text(link, "text")
    assert link.is_symlink()
    assert link.is_char_device()
    assert list(tmp_path.iterdir()) == [link]


def test_a_link_stays_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there/target", tmp_path / "link"
    link.symlink_to(target)
    for text in ("into nothing", "again"):
        write_text(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
    assert list((tmp_path / "there").iterdir()) == [target]


def test_an_error_leaves_the_target_of_a_link_as_it_was(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    with pytest.raises(ZeroDivisionError), atomic_path(link) as temporary:
        temporary.write_text("half")
        _ = 1 / 0
    assert target.read_text() == "before"
    assert sorted(tmp_path.iterdir()) == [link, target]


@pytest.mark.parametrize("kept", [0o600, 0o664, 0o755])
def test_a_file_keeps_its_mode(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(kept)
    write_text(path, "after")
    assert (mode(path), path.read_text()) == (kept, "after")


def test_new_files_and_folders_get_what_the_umask_leaves(tmp_path: Path, umask: None) -> None:
    write_text(tmp_path / "file", "text")
    with atomic_folder(tmp_path / "folder") as folder:
        write_text(folder / "mark", "text")
    assert mode(tmp_path / "file") == 0o640
    assert mode(tmp_path / "folder") == 0o750
    assert mode(tmp_path / "folder/mark") == 0o640


def test_unwritable_places_are_told_by_the_name_that_was_given(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("file/below", "loop", ".", "x" * 300):
        with pytest.raises(InputError) as error:
            write_text(tmp_path / name, "text")
        assert str(error.value).startswith(f"{tmp_path / name}: cannot write: ")
    with (
        pytest.raises(InputError, match=r"file/below: cannot write"),
        atomic_folder(tmp_path / "file/below"),
    ):
        pass
    assert len(list(tmp_path.iterdir())) == 2


def test_a_failure_inside_a_folder_names_the_folder(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError) as error,
        atomic_folder(tmp_path / "out") as folder,
    ):
        write_text(folder / "mark", "text")
        write_text(folder / "mark/below", "text")
    assert str(error.value).startswith(f"{tmp_path / 'out/mark/below'}: cannot write: ")
    assert not list(tmp_path.iterdir())


LIMITED = """
import resource, sys
from rebat.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
main(sys.argv[1:])
"""


def test_a_disk_that_is_full_costs_one_line_and_nothing_else(tmp_path: Path) -> None:
    """A limit on the size of files acts like a full disk."""
    out = tmp_path / "w.json"
    out.write_text("before")
    made = subprocess.run(
        # -B: Python 3.11 would leave incomplete byte code
        [sys.executable, "-B", "-c", LIMITED,
         "workload", "generate", "synthetic", "--force", "-o", str(out)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 2
    assert made.stderr == f"rebat: error: {out}: cannot write: File too large\n"
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


@needs_full
def test_a_full_device_on_the_command_line(tmp_path: Path, capsys) -> None:
    (tmp_path / "link").symlink_to(FULL)
    with pytest.raises(SystemExit) as exit_:
        main(["platform", "generate", "flat:4", "-o", str(tmp_path / "link")])
    assert exit_.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert FULL.is_char_device()


@given(parts=st.lists(st.text(st.characters(codec="utf-8"), max_size=200), max_size=30))
def test_parts_have_the_bytes_of_the_entire_text(parts: list[str]) -> None:
    """A compressed file has the bytes of the text compressed in one call, without a time stamp."""
    whole = "".join(parts).encode()
    with tempfile.TemporaryDirectory() as folder:
        plain, small = Path(folder) / "a.txt", Path(folder) / "a.txt.gz"
        write_parts(plain, iter(parts))
        write_parts(small, iter(parts))
        assert plain.read_bytes() == whole
        assert small.read_bytes() == zlib.compress(whole, level=9, wbits=31)
