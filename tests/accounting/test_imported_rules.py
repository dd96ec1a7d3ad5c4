# SPDX-License-Identifier: Apache-2.0
"""Rules of a Slurm in an imported workload, and their use by runs, sites and calibrations."""

from __future__ import annotations

from pathlib import Path

import pytest

import rebat
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.policies.presets import preset
from rebat.runs.staging import on_machine
from rebat.workloads.importing import import_jobs
from rebat.workloads.load import load_workload, save_workload

HEAD = "JobID|User|Account|Partition|Submit|Eligible|Start|End|State|NNodes|TimelimitRaw|NodeList"
BEGIN = 1_700_000_000


def record(folder: Path) -> Path:
    """Write the records of 300 jobs of two users on four nodes, one after the other."""
    lines = [HEAD]
    for n in range(300):
        submit, start = BEGIN + 20 * n, BEGIN + 20 * n + 5 * (n % 7) + 9 * n
        user = ("ann", "bo")[n % 2]
        times = f"{submit}|{submit}|{start}|{start + 30}"
        lines.append(f"{n + 1}|{user}|phys|main|{times}|COMPLETED|2|2|n[{1 + n % 3}-{2 + n % 3}]")
    path = folder / "jobs.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture
def rules(tmp_path: Path) -> list[Path]:
    config = (
        "Configuration data as of today\nPriorityType = priority/multifactor\n"
        "PriorityWeightAge = 10\nPriorityWeightFairShare = 100\n"
    )
    associations = (
        "Cluster|Account|User|ParentName|Share|MaxJobs\nc|root|||1|\nc|phys||root|1|2\n"
        "c|phys|ann||3|\nc|phys|bo||1|1\n"
    )
    reservations = (
        "Cluster|Name|NodeNames|Start|End|Flags\n"
        f"c|maint|n[2-3]|{BEGIN + 1000}|{BEGIN + 1600}|MAINT\n"
        f"c|before|n1|{BEGIN - 900}|{BEGIN - 100}|MAINT\nc|other|x[1-9]|{BEGIN}|{BEGIN + 9}|\n"
    )
    return [
        write(tmp_path, "config.txt", config),
        write(tmp_path, "associations.txt", associations),
        write(tmp_path, "reservations.txt", reservations),
    ]


STATED = {
    "order": "multifactor:age=10,fairshare=100,max_age=604800",
    "half_life": "7d",
    "order_period": "5min",
    "shares": "phys=1(ann=3+bo=1)",
    "limits": "user=ann:jobs=2+user=bo:jobs=1",
    "reservations": "maint:1-2:begin=1000.000000:length=600.000000",
}


def test_rules_are_in_the_workload_and_in_runs(tmp_path: Path, rules: list[Path]) -> None:
    made = import_jobs(record(tmp_path), "sacct", rules=rules).workload
    assert made.machine is not None
    assert made.machine["rules"] == STATED
    save_workload(made, tmp_path / "jobs.json.gz")
    loaded = load_workload(tmp_path / "jobs.json.gz")
    chosen = on_machine(preset("easy:rules=limits+reservations"), loaded, made.n_nodes)
    assert chosen.point.common.limits == STATED["limits"]
    assert chosen.point.common.reservations == STATED["reservations"]
    assert chosen.point.common.order == "fcfs"
    result = rebat.run(tmp_path / "jobs.json.gz", ["easy", "easy:rules=all"])
    starts = result.jobs.set_index(["policy", "job_id"])["first_start"]
    assert (starts["easy"] != starts["easy:rules=all"]).any()


@pytest.mark.parametrize("column", [True, False])
@pytest.mark.parametrize("owner", ["", "ann"])
def test_jobs_keep_their_reservation(tmp_path: Path, column: bool, owner: str) -> None:
    """Stated by the column Reservation, or because they started in its time, on its nodes."""
    head = HEAD + ("|Reservation" if column else "")
    lines = [head]
    for n, (user, start, nodes, name) in enumerate([
        ("ann", 0, "n[3-4]", ""), ("ann", 700, "n[1-2]", "r"), ("bo", 710, "n[3-4]", ""),
        ("ann", 900, "n[1-4]", "gone"),
    ]):  # fmt: skip
        times = f"{BEGIN + start}|{BEGIN + start}|{BEGIN + start}|{BEGIN + start + 100}"
        row = f"{n}|{user}|phys|main|{times}|COMPLETED|2|2|{nodes}"
        lines.append(row + (f"|{name}" if column else ""))
    jobs = write(tmp_path, "jobs.txt", "\n".join(lines) + "\n")
    begin = BEGIN + 600
    show = (
        f"ReservationName=r StartTime={begin} EndTime={begin + 1000} Nodes=n[1-2] "
        f"Users={owner or '(null)'}\nReservationName=old StartTime={BEGIN - 9} "
        f"EndTime={BEGIN - 5} Nodes=n1\nReservationName=far StartTime={BEGIN} "
        f"EndTime={BEGIN + 9} Nodes=x9\n"
    )
    made = import_jobs(jobs, "sacct", rules=[write(tmp_path, "r.txt", show)]).workload
    named = column or not owner
    assert [job.extra.get("reservation") for job in made.jobs] == [
        None, "r" if named else None, None, None
    ]  # fmt: skip
    assert made.machine is not None
    assert made.machine["rules"]["reservations"] == (
        "r:0-1:begin=600.000000:length=1000.000000" + ("" if named else ":user=ann")
    )
    notes = " ".join(made.notes)
    assert ("check: reservation r states no users, but 1 job ran in it (job 1)" in notes) == (
        named and not owner
    )
    assert ("1 job ran in a reservation that the rules do not state" in notes) == column
    assert "1 reservation left out: no node of the machine" in notes
    assert "1 reservation left out: ended before the first submission" in notes
    frame = rebat.run(made, "easy:rules=reservations").jobs.set_index("job_id")
    assert frame.loc["1", "first_start"] == 700


def test_reservations_with_one_name_are_told_apart(tmp_path: Path) -> None:
    lines = [HEAD + "|Reservation"]
    for n, start in enumerate((100, 1100)):
        times = "|".join([str(BEGIN + start)] * 3)
        lines.append(f"{n}|u|a|main|{times}|{BEGIN + start + 50}|COMPLETED|1|2|n1|r")
    jobs = write(tmp_path, "jobs.txt", "\n".join(lines) + "\n")
    rows = [f"c|r|n1|{BEGIN + at}|{BEGIN + at + 200}|" for at in (0, 1000)]
    text = "\n".join(["Cluster|Name|NodeNames|Start|End|Flags", *rows]) + "\n"
    made = import_jobs(jobs, "sacct", rules=[write(tmp_path, "r.txt", text)]).workload
    assert [job.extra["reservation"] for job in made.jobs] == ["r", "r-2"]


def test_a_site_replaces_the_rules(tmp_path: Path, rules: list[Path]) -> None:
    made = import_jobs(record(tmp_path), "sacct", rules=rules).workload
    save_workload(made, tmp_path / "jobs.json.gz")
    site = write(tmp_path, "site.toml", 'jobs = "jobs.json.gz"\n[rules]\nlimits = "user:jobs=1"\n')
    result = rebat.run(site, "easy:rules=limits")
    assert result.metrics.size
    with pytest.raises(InputError, match="states no order"):
        rebat.run(site, "easy:rules=order")
    write(tmp_path, "site.toml", 'jobs = "jobs.json.gz"\n[rules]\nlimit = "user:jobs=1"\n')
    with pytest.raises(InputError, match="unknown field of the rules 'limit'"):
        rebat.run(site, "easy:rules=all")


def test_calibration_states_what_each_rule_explains(tmp_path: Path, rules: list[Path]) -> None:
    jobs, past = tmp_path / "jobs.json.gz", tmp_path / "past"
    words = ["workload", "import", str(record(tmp_path)), "--format", "sacct", "-o", str(jobs)]
    words += [word for path in rules for word in ("--rules", str(path))]
    main([*words, "--schedule", str(past)])
    result = rebat.calibrate(jobs, past, ["easy", "easy:rules=all"], workers=1)
    rows = {row.rule: row for row in result.verdict.rules}
    assert set(rows) == {"", "order", "limits", "reservations", "all"}
    assert rows["limits"].policy == "easy:rules=order+reservations"
    assert not any("the workload states none" in text for text in result.not_modelled)
    assert "With the rules of the site, the distance of easy is" in result.text
