# SPDX-License-Identifier: Apache-2.0
"""Tables for papers: the numbers of comparison.csv, with units, and valid LaTeX and Markdown."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rebat.cli.main import cli
from rebat.core.errors import InputError
from rebat.core.numbers import MINUS
from rebat.report.publish import form_of, paper_table
from rebat.report.table import Table, latex_text
from rebat.results.comparison import Runs, rows

FLOW, SHARE, IDLE = ("flow_mean_s", "all"), ("useful_utilisation", None), ("platform_idle", None)


def seeds(n: int = 6) -> Runs[str]:
    """Return runs of three policies: the second is 20 % worse, the third not significantly."""
    runs = Runs(["base_line", "50%&more", "c"])
    for seed in range(n):
        for policy, factor in zip(
            runs.policies, (1.0, 1.2, 1.0 + 0.05 * (-1) ** seed), strict=True
        ):
            flow = 7200.0 * (1 + seed / 10) * factor
            idle = ("platform_idle", None, 5e6 * factor)
            runs.add(seed, policy, [("flow_mean_s", "all", flow), idle])
            runs.add(seed, policy, [("useful_utilisation", None, 0.8 / factor)])
    return runs


def table(form: str, n: int = 6) -> str:
    runs = seeds(n)
    return paper_table(form, list(rows(runs)), runs, [SHARE, FLOW, IDLE])  # type: ignore[arg-type]


def unescaped(text: str) -> str:
    """Return a cell of LaTeX as the reader sees it."""
    text = text.replace("$-$", MINUS).replace("$+$", "+")
    return re.sub(r"\\([&%$#_{}])", r"\1", text).strip()


def cells(text: str) -> list[list[str]]:
    """Return the rows of policies of a LaTeX table."""
    body = text.split(r"\midrule")[1].split(r"\bottomrule", maxsplit=1)[0]
    lines = [line.strip() for line in body.strip().splitlines()]
    assert all(line.endswith(r"\\") for line in lines)
    return [
        [unescaped(cell) for cell in re.split(r"(?<!\\)&", line.removesuffix(r"\\"))]
        for line in lines
    ]


def test_latex_is_balanced_and_escaped() -> None:
    text = table("latex")
    plain = re.sub(r"\\[{}]", "", text)
    depth = 0
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0 and plain.count("$") % 2 == 0
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1
    assert [text.count(rf"\{name}rule") for name in ("top", "mid", "bottom")] == [1, 1, 1]
    assert r"base\_line" in text and r"50\%\&more" in text
    assert not re.search(r"(?<!\\)[%#_]", text), "unescaped"
    columns = re.search(r"\\begin\{tabular\}\{(l r*|lr*)\}", text)
    assert columns is not None and {len(row) for row in cells(text)} == {len(columns[1])} == {7}


def test_all_formats_have_the_same_rows() -> None:
    lines = table("md").splitlines()
    end = lines.index("")
    in_markdown = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:end]]
    assert in_markdown == cells(table("latex"))
    assert [row[0] for row in in_markdown] == ["base_line", "50%&more", "c"]
    assert set(lines[1]) == set("| -") and lines[0].count("|") == lines[1].count("|") == 8
    assert "mean flow (h)" in lines[0] and "useful utilisation (%)" in lines[0]
    assert "idle (node-d)" in lines[0]


def test_an_asterisk_marks_a_significant_change() -> None:
    changes = [row[4] for row in cells(table("latex"))]
    assert changes[0] == "" and changes[1] == "+20.0*" and changes[2].startswith(f"{MINUS}0.2 [")
    assert not changes[2].endswith("*")
    assert "*: the interval does not contain 0" in table("latex")


def test_few_seeds_have_neither_intervals_nor_marks() -> None:
    text = table("latex", 3)
    assert "[" not in text and "*" not in text and "Means over 3 seeds." in text
    assert "One run per policy." in table("md", 1)


def test_the_unit_follows_the_smallest_mean() -> None:
    assert form_of(FLOW, [0.0, 0.0]).unit == "s"
    assert form_of(FLOW, [90.0, 1e6])(90.0) == "1.50 min"
    assert form_of(("steals", None), [12.0, 3.0])(12.0) == "12"
    assert form_of(("steals", None), [12.5, 3.25])(12.5) == "12.50"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b#{c}~^\\", r"a\_b\#\{c\}\textasciitilde{}\textasciicircum{}\textbackslash{}"),
        ("[-1.5, +2.0]", "[$-$1.5, $+$2.0]"),
        ("easy-2, 2020-01-02", "easy-2, 2020-01-02"),
        ("two\nlines", "two lines"),
        ("$x$", r"\$x\$"),
    ],
)
def test_special_characters(text: str, expected: str) -> None:
    assert latex_text(text) == expected


def test_a_row_that_begins_with_a_bracket_is_no_argument_of_the_line_break() -> None:
    text = Table("", "", ["size", "n"], [["[1, 2)", "3"], ["*", "4"]]).latex()
    assert "\n{}[1, 2) & 3 \\\\\n{}* & 4 \\\\\n" in text


def test_tables_of_a_report_in_each_format() -> None:
    columns, body = ["policy", "loss"], [["a|b", "=1+1"], ["c_d", "2 %"]]
    table = Table("", "", columns, body, "a note")
    assert table.markdown().endswith("| a/b | =1+1 |\n| c_d | 2 % |\n\na note\n")
    assert table.csv() == "policy,loss\na|b,'=1+1\nc_d,2 %\n"
    assert r"c\_d & 2 \%" in table.latex()


# ---- the command line and Python

RUN = ["run", "toy", "-p", "baseline", "-p", "sfsj", "--failures", "toy"]


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_csv_has_the_numbers_of_comparison_csv(tmp_path: Path) -> None:
    out = tmp_path / "out"
    columns = "flow_max_s:all,useful_utilisation,platform_waste_failure"
    done = command(*RUN, "--table", "csv", "--columns", columns, "--out", str(out))
    assert done.exit_code == 0, done.output
    assert done.stderr.endswith(f"results in {out}\n")
    printed = list(csv.DictReader(io.StringIO(done.stdout)))
    with (out / "comparison.csv").open() as file:
        expected = {(row["metric"], row["policy"]): row for row in csv.DictReader(file)}
    titles = {
        "flow_max_s": "largest flow (s)",
        "useful_utilisation": "useful utilisation (share)",
        "platform_waste_failure": "wasted by failures (node-s)",
    }
    assert [row["policy"] for row in printed] == ["baseline", "sfsj"]
    for row in printed:
        for metric, title in titles.items():
            of = expected[metric, row["policy"]]
            assert row[title] == of["mean"] != ""
            assert row[f"{title.partition(' (')[0]} ratio"] == of["ratio"]


def test_a_table_does_not_change_the_files(tmp_path: Path) -> None:
    for name, more in (("a", []), ("b", ["--table", "latex"])):
        assert command(*RUN, *more, "--out", str(tmp_path / name)).exit_code == 0
    files = [
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (tmp_path / "a", tmp_path / "b")
    ]
    assert files[0] == files[1]


@pytest.mark.parametrize(
    ("option", "named"), [("--all-metrics", "--all-metrics"), ("--json", "--table")]
)
def test_options_that_contradict_a_table(option: str, named: str, tmp_path: Path) -> None:
    done = command(*RUN, "--table", "md", option, "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, InputError) and not (tmp_path / "out").exists()
    assert str(done.exception).startswith(f"{named}: has no effect with ")
