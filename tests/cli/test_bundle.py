# SPDX-License-Identifier: Apache-2.0
"""Bundles: a result of another person runs again, and does nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from rebat.api.allowed import OPTIONS
from rebat.api.inputs import places
from rebat.api.provenance import InputFile
from rebat.api.reproduce import repetition
from rebat.cli.command import WITHOUT_EFFECT
from rebat.cli.main import main
from rebat.cli.run import run
from rebat.core.archive import write_archive
from rebat.core.errors import InputError
from rebat.core.folders import write_manifest
from tests.test_architecture import PACKAGE

OPTIONS_OF_RUN = ["--failures", "f.events", "-p", "baseline:order=rules/mine.py:small"]
RULE = "def small(attempt):\n    return attempt.n_nodes\n"
ROOT = PACKAGE.parents[1]

Edit = Callable[[dict[str, Any]], object]


def inputs_in(folder: Path) -> None:
    shutil.copy(ROOT / "workloads/toy.json", folder / "w.json")
    shutil.copy(ROOT / "failure_events/toy.events", folder / "f.events")
    (folder / "rules").mkdir()
    (folder / "rules/mine.py").write_text(RULE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with inputs, a result with a Python file, one without, and their bundles."""
    folder = tmp_path_factory.mktemp("made")
    inputs_in(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        main(["run", "w.json", *OPTIONS_OF_RUN, "--out", "out"])
        main(["bundle", "out", "-o", "one.zip"])
        main(["run", "w.json", "--failures", "f.events", "-p", "sfsj", "--out", "plain"])
        main(["bundle", "plain", "-o", "plain.zip"])
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of this folder, which is the current folder."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def elsewhere(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the bundles only, which is the current folder."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("one.zip", "plain.zip"):
        shutil.copy(made / name, folder)
    monkeypatch.chdir(folder)
    return folder


def status(*arguments: str) -> int:
    try:
        main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert status(*arguments) == 2
    return capsys.readouterr().err.splitlines()[-1]


def content(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forged(path: Path, source: Path, edit: Edit, more: dict[str, bytes] | None = None) -> Path:
    """Write a bundle with another record and other files, and with the right hashes."""
    members = content(source) | (more or {})
    record = json.loads(members["result/provenance.json"])
    edit(record)
    members["result/provenance.json"] = json.dumps(record).encode()
    lines = [
        f"{hashlib.sha256(data).hexdigest()}  {name.removeprefix('result/')}\n"
        for name, data in sorted(members.items())
        if name.startswith("result/") and not name.endswith("SHA256SUMS")
    ]
    members["result/SHA256SUMS"] = "".join(lines).encode()
    write_archive(path, members)
    return path


def listed(option: str, file: str, data: bytes) -> dict[str, str]:
    return {"option": option, "file": file, "sha256": hashlib.sha256(data).hexdigest()}


# ---- bundles of the user


def test_a_bundle_has_the_result_the_inputs_and_a_readme(here: Path) -> None:
    members = content(here / "one.zip")
    result = {f"result/{p.relative_to('out').as_posix()}" for p in Path("out").rglob("*.*")}
    result |= {"result/SHA256SUMS"}
    result -= {name for name in result if Path(here / "out" / name[7:]).is_dir()}
    inputs = {"inputs/w.json", "inputs/f.events", "inputs/rules/mine.py"}
    assert members.keys() == result | inputs | {"README.md"}
    for name in result:
        assert members[name] == (here / "out" / name.removeprefix("result/")).read_bytes()
    for name in inputs:
        assert members[name] == (here / name.removeprefix("inputs/")).read_bytes()
    readme = members["README.md"].decode()
    assert "The result needs Python code: `inputs/rules/mine.py`" in readme
    command = next(line for line in readme.splitlines() if line.startswith("    rebat run "))
    assert command.split()[2:4] == ["w.json", "--policy"]
    assert "Python code" not in content(here / "plain.zip")["README.md"].decode()


def test_the_same_result_becomes_the_same_bytes(here: Path, capsys) -> None:
    os.utime(here / "w.json", (1e9, 1e9))
    assert status("bundle", "out", "-o", "again.zip") == 0
    assert (here / "again.zip").read_bytes() == (here / "one.zip").read_bytes()
    assert "rebat reproduce again.zip" in capsys.readouterr().out
    assert "exists" in error_of(capsys, "bundle", "out", "-o", "again.zip")
    assert status("bundle", "out", "-o", "again.zip", "--force") == 0


@pytest.mark.parametrize("name", ["w.json", "rules/mine.py", "f.events"])
def test_changed_and_missing_inputs_are_named(here: Path, capsys, name: str) -> None:
    (here / "kept").mkdir()
    shutil.copy(here / name, here / "kept/any")
    with (here / name).open("a") as file:
        file.write("\n")
    assert f"error: {name}: has changed (expected sha256" in error_of(
        capsys, "bundle", "out", "-o", "new.zip"
    )
    (here / name).unlink()
    error = error_of(capsys, "bundle", "out", "-o", "new.zip")
    assert f"error: {name}: no such file (expected the file with sha256" in error
    assert not (here / "new.zip").exists()
    assert status("bundle", "out", "-o", "new.zip", "--inputs", "kept") == 0
    assert content(here / "new.zip") == content(here / "one.zip")


def test_changed_results_are_not_packed(here: Path, capsys) -> None:
    with (here / "out/comparison.csv").open("a") as file:
        file.write("x\n")
    error = error_of(capsys, "bundle", "out", "-o", "new.zip")
    assert "error: out/comparison.csv: is missing or has changed" in error
    (here / "out/comparison.csv").unlink()
    (here / "out/comparison.csv").symlink_to("/etc/passwd")
    error = error_of(capsys, "bundle", "out", "-o", "new.zip")
    assert "error: out/comparison.csv: is missing or has changed" in error
    (here / "out/SHA256SUMS").write_text(f"{'0' * 64}  ../w.json\n{'0' * 64}  provenance.json\n")
    assert "contains '../w.json'" in error_of(capsys, "bundle", "out", "-o", "new.zip")


def test_results_without_a_command_are_not_packed(here: Path, capsys) -> None:
    (here / "campaign").mkdir()
    (here / "campaign/campaign.json").write_text("{}")
    error = error_of(capsys, "bundle", "campaign", "-o", "new.zip")
    assert "campaign: is the result of a campaign" in error and "'rebat campaign run'" in error
    assert "is the result of a campaign" in error_of(capsys, "reproduce", "campaign")


def test_absolute_paths_become_relative(here: Path, capsys) -> None:
    rule = f"{here}/rules/mine.py"
    assert status("run", f"{here}/w.json", "-p", "sfsj", "--out", "absolute") == 0
    assert status("bundle", "absolute", "-o", "new.zip") == 0
    (copy,) = (name for name in content(here / "new.zip") if name.startswith("inputs/"))
    assert copy.startswith("inputs/input-") and copy.endswith("/w.json")
    assert (
        f"rebat run {copy.removeprefix('inputs/')} "
        in content(here / "new.zip")["README.md"].decode()
    )
    (here / "w.json").unlink()
    capsys.readouterr()
    assert status("reproduce", "new.zip") == 0
    assert capsys.readouterr().out.startswith("reproduced: ")
    shutil.copy(ROOT / "workloads/toy.json", here / "w.json")
    assert status("run", "w.json", "-p", f"baseline:order={rule}:small", "--out", "named") == 0
    error = error_of(capsys, "bundle", "named", "-o", "named.zip")
    assert f"error: {rule}: is in the name of policy baseline" in error


def test_included_inputs_are_not_copied_but_checked(here: Path, capsys) -> None:
    assert status("run", "toy", "--failures", "toy", "-p", "sfsj", "--out", "named") == 0
    capsys.readouterr()
    assert status("bundle", "named", "-o", "named.zip") == 0
    assert "0 inputs, without toy (part of rebat)" in capsys.readouterr().out
    assert not [name for name in content(here / "named.zip") if name.startswith("inputs/")]
    (here / "toy").write_text("a file of the user with this name")
    assert status("reproduce", "named.zip") == 0
    capsys.readouterr()
    forged(here / "other.zip", here / "named.zip", lambda r: r["inputs"][0].update(sha256="0" * 64))
    assert status("reproduce", "other.zip") == 0
    assert "warning: input toy has changed" in capsys.readouterr().err


def test_a_site_is_packed_with_its_files(here: Path, capsys) -> None:
    (here / "site").mkdir()
    shutil.move("w.json", "site/jobs.json")
    shutil.move("f.events", "site/failures.events")
    text = 'jobs = "jobs.json"\nfailures = "failures.events"\n[scheduler]\npolicy = "sfsj"\n'
    (here / "site/site.toml").write_text(text)
    assert status("run", "site/site.toml", "--out", "of_site") == 0
    record = json.loads((here / "of_site/provenance.json").read_text())
    assert [(row["option"], row["file"]) for row in record["inputs"]] == [
        ("WORKLOAD", "site/site.toml"),
        ("SITE", "site/jobs.json"),
        ("SITE", "site/failures.events"),
    ]
    assert status("reproduce", "of_site") == 0
    assert status("bundle", "of_site", "-o", "site.zip") == 0
    shutil.rmtree("site")
    assert status("reproduce", "site.zip") == 0
    (here / "next").mkdir()
    shutil.copy(ROOT / "workloads/toy.json", here / "w.json")
    (here / "next/site.toml").write_text('jobs = "../w.json"\n')
    assert status("run", "next/site.toml", "--out", "above") == 0
    assert "file of the site in another folder" in error_of(
        capsys, "bundle", "above", "-o", "above.zip"
    )


# ---- bundles of other people


def test_a_bundle_has_the_verdict_of_its_folder(elsewhere: Path, made: Path, capsys) -> None:
    assert status("reproduce", "plain.zip", "--json") == 0
    of_bundle = json.loads(capsys.readouterr().out)
    os.chdir(made)
    assert status("reproduce", "plain", "--json") == 0
    assert json.loads(capsys.readouterr().out) == of_bundle
    assert of_bundle["verdict"] == f"reproduced: all {len(of_bundle['files'])} files are equal"


def test_another_result_in_a_bundle_is_not_reproduced(elsewhere: Path, capsys) -> None:
    more = {"result/comparison.csv": b"metric\n"}
    forged(elsewhere / "new.zip", elsewhere / "plain.zip", lambda _: None, more)
    assert status("reproduce", "new.zip") == 1
    assert capsys.readouterr().out.startswith("not reproduced: 1 of ")


def test_code_does_not_run_without_a_confirmation(elsewhere: Path, capsys) -> None:
    marker = elsewhere / "ran"
    code = f"open({str(marker)!r}, 'w')\n{RULE}".encode()
    forged(
        elsewhere / "new.zip", elsewhere / "one.zip",
        lambda r: r["inputs"].__setitem__(2, listed("--policy", "rules/mine.py", code)),
        {"inputs/rules/mine.py": code},
    )  # fmt: skip
    capsys.readouterr()
    assert status("reproduce", "new.zip") == 2
    shown = capsys.readouterr().err
    digest = hashlib.sha256(code).hexdigest()
    assert f"  rules/mine.py: 3 lines, SHA-256 {digest}\n" in shown
    expected = "--yes, after you have read the code, for example with: unzip -p new.zip"
    assert f"new.zip: needs Python code, which was not confirmed (expected {expected}" in shown
    assert not marker.exists()
    assert status("reproduce", "new.zip", "--yes") == 1  # summary.json has the hash of the code
    assert marker.exists()


def test_code_of_a_folder_needs_a_confirmation_too(here: Path, capsys) -> None:
    assert "rebat: error: out: needs Python code" in error_of(capsys, "reproduce", "out")


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "ended"), [("y\n", 0), ("n\n", 2), ("\n", 2)])
def test_a_terminal_is_asked(elsewhere: Path, answer: str, ended: int) -> None:
    parent, child = pty.openpty()
    os.write(parent, answer.encode())
    done = subprocess.Popen(
        [sys.executable, "-m", "rebat", "reproduce", "one.zip"], stdin=child, stderr=child,
        stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT / "schedulers")},
    )  # fmt: skip
    os.close(child)
    shown = b""
    try:
        while part := os.read(parent, 4096):
            shown += part
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    assert done.wait(120) == ended
    text = shown.decode()
    assert "read it in /" in text and "Run this code? [y/N]" in text
    assert ("which you did not allow" in text) == (ended == 2)


def command(*arguments: str) -> Edit:
    return lambda record: record.update(command=["run", *arguments])


PLAIN = ("w.json", "--policy", "sfsj")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda r: r.update(command=["serve"]), "contains no command"),
        (lambda r: r.update(command=[]), "contains no command"),
        (command(), "the command has no workload"),
        (command("--help"), "the command has no workload"),
        (command(*PLAIN, "--out", "/tmp/x"), "the command has the argument '--out'"),
        (command(*PLAIN, "--out=/tmp/x"), "the command has the argument '--out=/tmp/x'"),
        (command(*PLAIN, "--force"), "the command has the argument '--force'"),
        (command(*PLAIN, "--workers", "9999"), "the command has the argument '--workers'"),
        (command(*PLAIN, "-p", "easy"), "the command has the argument '-p'"),
        (command(*PLAIN, "--"), "the command has the argument '--'"),
        (command(*PLAIN, "more.json"), "the command has the argument 'more.json'"),
        (command(*PLAIN, "--explain=1"), "the command has the argument '--explain=1'"),
        (command(*PLAIN, "--seed"), "--seed has no value"),
        (command("/etc/passwd", "--policy", "sfsj"), "the command reads '/etc/passwd'"),
        (command("../w.json", "--policy", "sfsj"), "the command reads '../w.json'"),
        (command(*PLAIN, "--failures", "/etc/passwd"), "the command reads '/etc/passwd'"),
        (command(*PLAIN, "--operations", "/dev/zero"), "the command reads '/dev/zero'"),
        (command(*PLAIN, "--law", "record:file=/dev/zero"), "the command reads '/dev/zero'"),
        (command(*PLAIN, "--law", "record:file=f.events,maintenance=/dev/zero"),
         "the command reads"),
        (command(*PLAIN, "--law", "nonsense:a=1"), "unknown failure law"),
        (command("w.json", "--policy", "evil.py:Evil"), "the command reads 'evil.py'"),
        (command("w.json", "--policy", "baseline:evil.py:rule"), "the command reads 'evil.py'"),
        (command("w.json", "--policy", "evil.py"), "names a file in an unusual way"),
        (command("w.json", "--policy", "baseline:order=EVIL.PY:rule"), "in an unusual way"),
        (command("w.json", "--policy", "box-foresight:foresight=/etc/x.csv"),
         "the command reads '/etc/x.csv'"),
        (command("w.json", "--policy", "box-foresight:FORESIGHT=/etc/x.csv"), "in an unusual way"),
        (lambda r: r.update(inputs=[]), "the command reads 'w.json'"),
        (lambda r: r.update(command="run"), "is invalid"),
        (lambda r: r.update(inputs=[["a"] * 9]), "is invalid"),
    ],
)  # fmt: skip
def test_other_commands_do_not_run(
    elsewhere: Path, made: Path, capsys, edit: Edit, message: str
) -> None:
    """This holds for bundles, and for folders."""
    path = forged(elsewhere / "new.zip", elsewhere / "plain.zip", edit)
    assert message in error_of(capsys, "reproduce", "new.zip", "--yes")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(elsewhere / "unpacked")
    assert message in error_of(capsys, "reproduce", "unpacked/result", "--yes")
    write_manifest(elsewhere / "unpacked/result")
    assert message in error_of(capsys, "bundle", "unpacked/result", "-o", "again.zip")


def test_the_allowed_options_are_those_that_are_recorded() -> None:
    recorded = {
        max(option.opts, key=len): "no"
        if option.is_flag
        else "optional"
        if isinstance(option.flag_value, str)
        else "yes"
        for option in run.params
        if isinstance(option, click.Option) and option.name not in WITHOUT_EFFECT
    }
    assert recorded == OPTIONS
    assert [name for name, value in OPTIONS.items() if value == "optional"] == ["--figures"]


def test_files_that_are_not_of_the_result_are_refused(elsewhere: Path, capsys) -> None:
    for name in ("inputs/numpy.py", "inputs/x.pth", "result.txt", "result/more.csv", "x"):
        members = content(elsewhere / "plain.zip") | {name: b"import os"}
        write_archive(elsewhere / "new.zip", members)
        error = error_of(capsys, "reproduce", "new.zip", "--yes")
        assert f"contains {name!r}, which is not part of a result" in error


@pytest.mark.parametrize("name", ["inputs/w.json", "result/comparison.csv", "inputs/f.events"])
def test_changed_and_missing_files_are_refused(elsewhere: Path, capsys, name: str) -> None:
    members = content(elsewhere / "plain.zip")
    write_archive(elsewhere / "new.zip", members | {name: members[name] + b"\n"})
    error = error_of(capsys, "reproduce", "new.zip")
    assert "has changed" in error and Path(name).name in error and "/tmp" not in error[15:]
    del members[name]
    write_archive(elsewhere / "new.zip", members)
    error = error_of(capsys, "reproduce", "new.zip")
    assert "missing" in error and Path(name).name in error


HOSTILE = b"open('ran', 'w')\nraise SystemExit('foreign code')\n"


@pytest.mark.slow
def test_modules_among_the_inputs_are_not_imported(
    elsewhere: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs named like modules do not run, even if PYTHONPATH contains the current folder."""
    names = ["numpy.py", "rebat.py", "sitecustomize.py", "usercustomize.py", "msgspec.py"]
    rows = [listed("--operations", name, HOSTILE) for name in names]
    settings = {
        "matplotlibrc": b"backend: module://numpy\n",
        ".numba_config.yaml": b"cache_dir: .\n",
        "evil.pth": b"import os; os.mkdir('ran')\n",
    }
    rows += [listed("--operations", name, data) for name, data in settings.items()]
    where = places(InputFile(**row) for row in rows)
    data = dict.fromkeys(names, HOSTILE) | settings
    more = {f"inputs/{place}": data[row.file] for row, place in where.items()}
    assert {f"inputs/{name}" for name in names} < more.keys()
    assert not more.keys() & {"inputs/matplotlibrc", "inputs/.numba_config.yaml"}
    path = forged(
        elsewhere / "new.zip", elsewhere / "plain.zip", lambda r: r["inputs"].extend(rows), more
    )
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'schedulers'}:.:")
    assert status("reproduce", str(path)) == 0
    assert capsys.readouterr().out.startswith("reproduced: ")


@pytest.mark.slow
def test_code_that_changes_after_the_confirmation_does_not_run(here: Path, capfd) -> None:
    with repetition(Path("one.zip")) as ready:
        (code,) = ready.code
        with pytest.raises(InputError, match="was not confirmed"):
            ready.run(None)
        code.path.write_bytes(HOSTILE)
        with pytest.raises(InputError, match="wrote no result"):
            ready.run(None, run_code=True)
    shown = capfd.readouterr().err
    assert "rules/mine.py: may not run" in shown and "foreign code" not in shown


def test_a_site_reads_only_inputs(elsewhere: Path, capsys) -> None:
    for name in ("/etc/passwd", "../../w.json", "other.json"):
        toml = f'jobs = "{name}"\n'.encode()

        def edit(record: dict[str, Any], toml: bytes = toml) -> None:
            record["command"][1] = "site.toml"
            record["inputs"][0] = listed("WORKLOAD", "site.toml", toml)

        base, members = elsewhere / "base.zip", content(elsewhere / "plain.zip")
        del members["inputs/w.json"]
        write_archive(base, members)
        forged(elsewhere / "new.zip", base, edit, {"inputs/site.toml": toml})
        error = error_of(capsys, "reproduce", "new.zip")
        assert f"names {name!r}, which is not among the inputs" in error


def test_texts_of_a_bundle_do_not_control_the_terminal(elsewhere: Path, capsys) -> None:
    def edit(record: dict[str, Any]) -> None:
        record["versions"]["numpy"] = "\x1b[2J\u202e"

    more = {"result/comparison.csv": b"\x1b[2J\n"}
    forged(elsewhere / "new.zip", elsewhere / "plain.zip", edit, more)
    assert status("reproduce", "new.zip") == 1
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err and "\u202e" not in shown.err
    assert "\\x1b[2J" in shown.out and "\\x1b[2J\\u202e" in shown.err


def test_deep_records_are_refused(elsewhere: Path, capsys) -> None:
    members = content(elsewhere / "plain.zip")
    deep = b'{"more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    members["result/provenance.json"] = deep
    write_archive(elsewhere / "new.zip", members)
    assert "provenance.json: is invalid" in error_of(capsys, "reproduce", "new.zip")


def test_inputs_have_no_effect_on_a_bundle(elsewhere: Path, capsys) -> None:
    error = error_of(capsys, "reproduce", "plain.zip", "--inputs", ".")
    assert error.startswith("rebat: error: --inputs: has no effect")


@pytest.mark.parametrize(
    "options",
    [
        ["--figures"],
        ["--figures", "--gantt", "1:3", "--explain"],
        ["--figures", "svg", "--figure-width", "1"],
        ["--figures", "--format", "parquet", "--engine", "interpreted"],
        ["--seeds", "2", "--figures"],
    ],
    ids=" ".join,
)
def test_options_with_an_optional_value_are_reproduced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["run", "toy", "-p", "baseline", "-p", "sfsj"]
    assert status(*run, "--mtbf", "1h", *options, "--out", "out") == 0
    assert status("bundle", "out", "-o", "one.zip") == 0
    capsys.readouterr()
    assert status("reproduce", "one.zip") == 0
    assert capsys.readouterr().out.startswith("reproduced: all ")
