# SPDX-License-Identifier: Apache-2.0
"""Names chosen by users: no formulas in CSV files, no tags in pages, unchanged after reading."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rebat
from rebat.core.formatting import guarded, name_field, original
from rebat.core.jobs import Workload
from rebat.models.failures.outages import write_names
from rebat.report.claims import CONTRADICTED
from rebat.report.parts import html, markdown
from rebat.results.comparison import Runs, seeds_csv
from rebat.results.files.run_folder import read_timeline
from tests.report.test_page import claim, report

FORMULAS = ["=cmd|' /C calc'!A0", "+a", "-a", "@SUM(1)", "\t=1", "\r=1", "'=1", "-1+1", "=1,2"]
SCRIPT = "<script>alert(1)</script>"
BEGINS = ("=", "+", "-", "@", "\t", "\r")


def cells(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [cell for row in csv.reader(file) for cell in row]


def computed(cell: str) -> bool:
    """Whether a spreadsheet interprets a cell as a formula."""
    return cell.startswith(BEGINS) and not re.fullmatch(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", cell)


@given(st.text(st.sampled_from("=+-@\t\r'\"a1,. \n"), max_size=6))
def test_every_name_is_guarded_and_read_back(name: str) -> None:
    assert not computed(guarded(name))
    assert original(guarded(name)) == name
    (row,) = csv.reader([name_field(name)], strict=True) if "\n" not in name + "\r" else [[""]]
    assert row in ([""], [guarded(name)], [])


@pytest.mark.parametrize("number", ["-1", "+1.5", "-1.5e-07", "0", "-12."])
def test_numbers_stay_numbers(number: str) -> None:
    assert guarded(number) == number


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run jobs whose names, users and queues are formulas, and one with a tag instead."""
    toy = rebat.load_workload("toy")
    names = ["=1+1", "-a", "+b", "@c", SCRIPT.replace("(1)", "")]
    users = [*FORMULAS[:4], SCRIPT]
    jobs = [
        msgspec.structs.replace(job, id=name, extra={"user": user, "queue": f"={n}q"})
        for n, (job, name, user) in enumerate(zip(toy.jobs, names, users, strict=True))
    ]
    folder = tmp_path_factory.mktemp("foreign") / "out"
    workload = Workload(toy.name, toy.n_nodes, tuple(jobs), toy.profiles)
    result = rebat.run(workload, ["sfsj", "baseline"], failures=rebat.failures(file="toy"))
    result.write(folder)
    (folder.parent / "page.html").write_text(result.to_html())
    (folder.parent / "explore.html").write_text(result.explore())
    assert set(result.users["user"]) == {*FORMULAS[:4], SCRIPT}
    return folder


@pytest.mark.slow
def test_no_file_of_ours_holds_a_formula(out: Path) -> None:
    ours = [path for path in out.rglob("*.csv") if path.name not in ("jobs.csv", "schedule.csv")]
    assert {"rebat_users.csv", "rebat_queues.csv", "rebat_jobs.csv"} <= {p.name for p in ours}
    for path in ours:
        assert [cell for cell in cells(path) if computed(cell)] == [], path.name
    assert "'=1+1" in cells(out / "sfsj/rebat_jobs.csv")
    assert "'=cmd|' /C calc'!A0" in cells(out / "sfsj/rebat_users.csv")


def test_batsims_files_have_names_as_batsim_writes_them(out: Path) -> None:
    assert "=1+1" in cells(out / "sfsj/jobs.csv")


def test_names_are_read_back_as_they_were(out: Path) -> None:
    assert {"=1+1", "-a", "+b", "@c"} < set(read_timeline(out / "sfsj").job_id)


def test_pages_hold_no_tags_of_others(out: Path) -> None:
    for name in ("page.html", "explore.html"):
        assert "<script>alert" not in (out.parent / name).read_text(), name


def test_reports_hold_no_tags_of_others() -> None:
    named = msgspec.structs.replace(
        report(claim("one", CONTRADICTED, f"{SCRIPT} <!-- x --> 3 < 5")), title=SCRIPT
    )
    for page in (markdown, html):
        text = page(named)
        assert "<script>alert" not in text
        assert "<!-- x" not in text
    assert "3 < 5" in markdown(named)


def test_other_tables_with_names(tmp_path: Path) -> None:
    write_names(FORMULAS, tmp_path / "names.csv")
    assert [cell for cell in cells(tmp_path / "names.csv") if computed(cell)] == []
    seeds = Runs(["=mine"])
    seeds.add(0, "=mine", [("jobs", None, -3.0)])
    assert seeds_csv(seeds).splitlines()[1] == "0,'=mine,jobs,,-3.0"
