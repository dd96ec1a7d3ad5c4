# SPDX-License-Identifier: Apache-2.0
"""An export with several troubles: each command repeats what can change its answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.cli.main import main
from tests.records.test_golden import EVENTS, HEADER, job, written

ZERO, DAY = 1_700_000_000, 86_400

FINDINGS = (
    "1 job became eligible after the submission, up to 2.78 h later (job 7), because of a "
    "dependency, a begin time, a hold or an array limit: the workload uses the later time as the "
    "submission; import with --submission submitted to use the users' submissions",
    "the last attempt of 2 of 304 jobs started while one of its nodes was down (jobs 30, 34): left "
    "out; if there are many, the clocks of the two files may differ: import with --zone if one has "
    "local times, or without --events",
    "2 jobs without an end ran more than twice the limit (jobs 801, 802; the longest ran 1000 d "
    "with a limit of 1 h): ended at the next start of a job on the same nodes, or at the limit if "
    "earlier; import with --runaway limit, drop or keep to change this",
    "1 node event without an end, but the node had a job or an event later (n3): ended at this job "
    "or event; import with --stale drop or keep to change this",
    "1 job started up to 5 min before the submission (job 9): the submission is kept, and a "
    "recorded schedule (--schedule) starts them at the submission; if the times are wrong, correct "
    "them in the record",
    "2 of 302 jobs were submitted up to 40 d before all others (jobs 901, 902; 2 node-hours, 4.6 % "
    "of the node time): left out, so the record begins with the others; import with --all to keep "
    "them",
)


def with_eligible(row: str, delay: int = 0) -> str:
    """Return a row of sacct with a column Eligible after the submission."""
    fields = row.split("|")
    return "|".join([*fields[:5], str(int(fields[4]) + delay), *fields[5:]])


def row(number: int, delay: int, eligible: int) -> str:
    """Return a job on one of four nodes, with a submission every ten minutes."""
    submit = ZERO + 600 * number
    start = submit + delay
    return with_eligible(job(number, submit, start, start + 500, f"n{1 + number % 4}"), eligible)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an imported record that has one trouble of each kind."""
    folder = tmp_path_factory.mktemp("site")
    early = [
        job(901, ZERO - 40 * DAY, ZERO + 5, ZERO + 3600, "n4"),
        job(902, ZERO - 20 * DAY, ZERO + 5, ZERO + 3600, "n4"),
        job(801, ZERO, ZERO, "Unknown", "n4", run=1000 * DAY, state="RUNNING"),
        job(802, ZERO, ZERO, "Unknown", "n4", run=10 * DAY, state="RUNNING"),
    ]
    delays, eligible = {7: 10_100, 9: -300}, {7: 10_000}
    usual = [row(n, delays.get(n, 100 + 37 * n % 400), eligible.get(n, 0)) for n in range(300)]
    header = HEADER.replace("Submit|", "Submit|Eligible|")
    jobs = written(folder / "jobs.txt", *map(with_eligible, early), *usual, header=header)
    at = ZERO + 600 * 30
    down = [f"n3|{at}|{at + 5000}|DOWN|1|x\n", f"n3|{ZERO + 50_000}|Unknown|DOWN|1|x\n"]
    events = written(folder / "ev.txt", *down, header=EVENTS)
    main(["workload", "import", str(jobs), "--events", str(events), "-o", str(folder / "w.json"),
          "--schedule", str(folder / "past")])  # fmt: skip
    return folder


COMMANDS = {
    "describe": ["workload", "describe", "w.json"],
    "run": ["run", "w.json", "-p", "easy", "--out", "run"],
    "calibrate": ["calibrate", "w.json", "past", "-p", "easy", "--workers", "1", "--out", "c"],
    "advise": ["advise", "w.json", "--past", "past", "--mtbf", "10d", "--seeds", "1",
               "--minutes", "0.0001", "--workers", "1", "--out", "a"],
}  # fmt: skip
PAGES = {"calibrate": "c/calibration.md", "advise": "a/advice.md"}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_repeats_the_findings(
    command: str, site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site)
    main(COMMANDS[command])
    printed = capsys.readouterr()
    lines = (printed.out + printed.err).splitlines()
    checks = [line.removeprefix("rebat: ") for line in lines if "check: " in line]
    assert sorted(checks) == sorted(f"check: {text}" for text in FINDINGS)
    if command in PAGES:
        page = Path(PAGES[command]).read_text()
        assert [text for text in FINDINGS if text not in page] == []
