# SPDX-License-Identifier: Apache-2.0
"""``--figures`` with and without a list of formats, and ``--figure-width``."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import rebat
from rebat.cli.completion import complete_formats
from rebat.cli.main import cli
from rebat.core.errors import InputError

RUN = ["run", "toy", "-p", "baseline", "-p", "sfsj", "--failures", "toy"]


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def figures(folder: Path) -> set[str]:
    endings = {".png", ".svg", ".pdf", ".eps"}
    return {path.name for path in folder.iterdir() if path.suffix in endings}


def names(*endings: str) -> set[str]:
    return {f"{name}.{end}" for name in ("flows", "utilisation", "gantt") for end in endings}


@pytest.mark.parametrize(
    ("given", "endings", "recorded"),
    [
        (["--figures"], ["png"], ["--figures"]),
        (["--figures", "svg,pdf"], ["svg", "pdf"], ["--figures", "svg,pdf"]),
        (["--figures=PDF"], ["pdf"], ["--figures", "PDF"]),
        (["--figure-width", "1", "--figures"], ["png"], ["--figures", "--figure-width", "1"]),
    ],
)
def test_formats(given: list[str], endings: list[str], recorded: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = command(*RUN, *given, "--out", str(out))
    assert done.exit_code == 0, done.output
    assert figures(out) == names(*endings)
    written = json.loads((out / "provenance.json").read_text())["command"]
    assert written[written.index("--figures") :] == recorded


def test_the_last_word_needs_no_list(tmp_path: Path) -> None:
    done = command(*RUN, "--out", str(tmp_path / "out"), "--figures")
    assert done.exit_code == 0 and figures(tmp_path / "out") == names("png")


@pytest.mark.parametrize("workload", ["toy", "month.json"])
def test_a_workload_after_the_option_is_explained(workload: str) -> None:
    done = command("run", "--figures", workload, "-p", "sfsj", "--out", "never")
    assert done.exit_code == 2
    assert f"'--figures': '{workload}' is not a list of formats" in done.output
    assert "must be the last word or stand before another option" in done.output


@pytest.mark.parametrize("formats", ["pdf,gif", "", "pdf,", "jpg"])
def test_unknown_formats_are_refused(formats: str, tmp_path: Path) -> None:
    done = command(*RUN, f"--figures={formats}", "--out", str(tmp_path / "out"))
    assert done.exit_code == 2 and "png, svg, pdf, eps" in done.output
    assert not (tmp_path / "out").exists()


def test_a_width_needs_figures(tmp_path: Path) -> None:
    done = command(*RUN, "--figure-width", "2", "--out", str(tmp_path / "out"))
    assert str(done.exception) == "--figure-width: has no effect (expected figures as well)"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [["--figures", "pdf"], ["--figure-width", "1"]])
def test_options_of_compare_need_a_folder(option: list[str], tmp_path: Path) -> None:
    done = command("compare", "a", "b", *option)
    assert isinstance(done.exception, InputError)
    assert str(done.exception).startswith(f"{option[0]}: has no effect")


def test_compare_draws_formats(tmp_path: Path) -> None:
    rebat.run("toy", ["baseline", "sfsj"], failures=rebat.failures(file="toy")).write(
        tmp_path / "r"
    )
    sides = [str(tmp_path / "r" / name) for name in ("baseline", "sfsj")]
    done = command("compare", *sides, "--out", str(tmp_path / "c"), "--figures", "pdf,svg")
    assert done.exit_code == 1, done.output
    assert figures(tmp_path / "c") == {"differences.pdf", "differences.svg"}


def test_python_and_the_command_line_write_equal_files(tmp_path: Path) -> None:
    result = rebat.run("toy", ["baseline", "sfsj"], failures=rebat.failures(file="toy"))
    for number, formats in enumerate(("pdf,png", ["pdf", "png"])):
        result.write(tmp_path / str(number), figures=formats, figure_width=1)
    command(*RUN, "--figures", "pdf,png", "--figure-width", "1", "--out", str(tmp_path / "2"))
    for name in names("pdf", "png"):
        contents = {(tmp_path / folder / name).read_bytes() for folder in "012"}
        assert len(contents) == 1
    with pytest.raises(InputError, match="figure_width: has no effect"):
        result.write(tmp_path / "3", figure_width=1)
    with pytest.raises(InputError, match="'gif' is not a list of formats"):
        result.write(tmp_path / "3", figures="gif")
    result.write(tmp_path / "4", figures=True)
    assert figures(tmp_path / "4") == names("png")


def test_formats_are_completed() -> None:
    context = click.Context(click.Command("run"))
    option = click.Option(["--figures"])

    def complete(text: str) -> list[str]:
        return [item.value for item in complete_formats(context, option, text)]

    assert complete("") == ["png", "svg", "pdf", "eps"]
    assert complete("pdf,p") == ["pdf,png"]
