# SPDX-License-Identifier: Apache-2.0
"""Archives: the same files make the same bytes, and no archive writes outside of its folder."""

from __future__ import annotations

import os
import random
import stat
import warnings
import zipfile
from pathlib import Path

import pytest

from rebat.core import archive
from rebat.core.archive import unpack, write_archive
from rebat.core.errors import InputError

Member = tuple[str | zipfile.ZipInfo, bytes]


def packed(path: Path, *members: Member) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        warnings.simplefilter("ignore")  # duplicate names
        for name, content in members:
            file.writestr(name, content)
    return path


def of_mode(name: str, mode: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.external_attr = mode << 16
    return member


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def into(tmp_path: Path) -> Path:
    (tmp_path / "deep/into").mkdir(parents=True)
    return tmp_path / "deep/into"


def refused(path: Path, into: Path) -> str:
    with pytest.raises(InputError) as error:
        unpack(path, into)
    top = into.parents[1]
    outside = [row for row in top.rglob("*") if into not in row.parents]
    assert sorted(outside) == sorted([path, into, into.parent])
    return str(error.value)


def test_what_is_packed_is_unpacked(tmp_path: Path, into: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 5000)
    write_archive(tmp_path / "a.zip", {"b/ü.csv": source, "a.md": b"text"})
    assert unpack(tmp_path / "a.zip", into) == ["a.md", "b/ü.csv"]
    assert files(into) == {"a.md": b"text", "b/ü.csv": source.read_bytes()}


def test_times_permissions_and_order_do_not_change_the_bytes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("text")
    write_archive(tmp_path / "a.zip", {"x": source, "y": b"1"})
    os.utime(source, (1e9, 1e9))
    source.chmod(0o600)
    write_archive(tmp_path / "b.zip", {"y": b"1", "x": source})
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


@pytest.mark.parametrize(
    "name",
    ["/tmp/x", "../x", "a/../../x", "a//x", "./x", "a/./x", "..", "a\\..\\x", "a\nb", "\x1b[2J",
     "a\u202eb", "x" * 300],
)  # fmt: skip
def test_names_that_are_not_plain_are_refused(tmp_path: Path, into: Path, name: str) -> None:
    assert "expected relative paths" in refused(packed(tmp_path / "a.zip", (name, b"")), into)
    with pytest.raises(InputError, match="expected relative paths"):
        write_archive(tmp_path / "b.zip", {name: b""})
    assert not (tmp_path / "b.zip").exists()


@pytest.mark.parametrize(
    ("first", "second"),
    [("a/x", "a/x"), ("a/x", "A/X"), ("é", "e\u0301"), ("ß", "SS"), ("a", "a/b"), ("a/b", "A")],
)
def test_names_that_can_be_the_same_file_are_refused(
    tmp_path: Path, into: Path, first: str, second: str
) -> None:
    path = packed(tmp_path / "a.zip", (first, b"1"), (second, b"2"))
    assert "can be the same file" in refused(path, into)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK])
def test_links_and_special_files_are_refused(tmp_path: Path, into: Path, kind: int) -> None:
    path = packed(tmp_path / "a.zip", (of_mode("x", kind | 0o777), b"/etc/passwd"))
    assert "not a plain file" in refused(path, into)


def test_a_name_that_ends_at_a_null_character_is_refused(tmp_path: Path, into: Path) -> None:
    path = packed(tmp_path / "a.zip", ("abc.def", b"1"))
    path.write_bytes(path.read_bytes().replace(b"abc.def", b"abc\0def"))
    assert "not a plain file" in refused(path, into)


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path, into: Path) -> None:
    path = packed(tmp_path / "a.zip", ("ü", b"1"))
    assert "ü".encode() in path.read_bytes()
    path.write_bytes(path.read_bytes().replace("ü".encode(), b"\xff\xfe"))
    assert "is not a readable archive" in refused(path, into)


def test_encrypted_members_are_refused(tmp_path: Path, into: Path) -> None:
    path = packed(tmp_path / "a.zip", ("x", b"1"))
    content = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(mark) + flags] |= 1
    path.write_bytes(content)
    assert "is encrypted" in refused(path, into)


def test_other_compressions_are_refused(tmp_path: Path, into: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_LZMA) as file:
        file.writestr("x", b"1")
    assert "compression is not supported" in refused(tmp_path / "a.zip", into)


def test_limits_hold_for_stated_sizes(
    tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = packed(tmp_path / "a.zip", ("x", bytes(10**6)), ("y", bytes(10**6)))
    assert bomb.stat().st_size < 10_000
    monkeypatch.setattr(archive, "MOST_BYTES", 1_999_999)
    assert "has 2 MB of files" in refused(bomb, into)
    assert files(into) == {}
    with pytest.raises(InputError, match="of files"):
        write_archive(tmp_path / "b.zip", {"x": bytes(2 * 10**6)})
    monkeypatch.setattr(archive, "MOST_BYTES", 2_000_000)
    monkeypatch.setattr(archive, "MOST_FILES", 1)
    assert "has 2 files" in refused(bomb, into)
    monkeypatch.setattr(archive, "_MOST_CONTENTS", 50)
    assert "has too many files" in refused(bomb, into)


def test_a_member_larger_than_stated_is_refused(tmp_path: Path, into: Path) -> None:
    """`zipfile` reads at most the stated size, and then compares the checksum."""
    path = packed(tmp_path / "a.zip", ("x", bytes(10**6)))
    size = (10**6).to_bytes(4, "little")
    assert path.read_bytes().count(size) == 2
    path.write_bytes(path.read_bytes().replace(size, (1000).to_bytes(4, "little")))
    assert "is not a readable archive" in refused(path, into)
    assert len(files(into).get("x", b"")) <= 1000


def test_a_full_disk_is_named_before_a_file_is_written(
    tmp_path: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path / "a.zip", ("x", bytes(10**6)))
    usage = archive.shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(archive.shutil, "disk_usage", lambda _: usage)
    assert "needs 1 MB, but" in refused(path, into)
    assert files(into) == {}


def test_files_that_are_no_archives_are_refused(tmp_path: Path, into: Path) -> None:
    path = tmp_path / "a.zip"
    good = packed(path, ("x", b"1")).read_bytes()
    for content in (b"", b"PK", b"text" * 100, good + b"more", good[:-3], good[1:]):
        path.write_bytes(content)
        refused(path, into)


def test_folders_of_an_archive_are_not_files(tmp_path: Path, into: Path) -> None:
    """Other programs write an entry for each folder."""
    path = packed(tmp_path / "a.zip", ("a/", b""), ("a/x", b"1"))
    assert unpack(path, into) == ["a/x"]


def test_damaged_archives_are_refused_or_have_right_files(tmp_path: Path, into: Path) -> None:
    path = tmp_path / "a.zip"
    write_archive(path, {"a/x": b"some text" * 50, "b": b"more"})
    good, rng, n_refused = path.read_bytes(), random.Random(0), 0
    for number in range(500):
        content = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(content)
        place = into / str(number)
        place.mkdir()
        try:
            unpack(path, place)
        except InputError:
            n_refused += 1
        else:
            assert set(files(place).values()) <= {b"more", b"some text" * 50}
    assert 100 < n_refused < 500
    assert {row.name for row in tmp_path.iterdir()} == {"a.zip", "deep"}
