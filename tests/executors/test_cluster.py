# SPDX-License-Identifier: Apache-2.0
"""Campaigns on batch systems write the same bytes, leave no jobs, and have errors of one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.campaign.opening import open_campaign
from rebat.campaign.run import run_campaign
from rebat.cli.campaign import campaign
from rebat.core.errors import InputError, RebatError
from rebat.executors import cluster as crew
from rebat.executors import on_dask
from rebat.executors.cluster import KEYS, SYSTEMS, job_options, jobqueue, listed
from rebat.executors.resources import Jobs
from tests.support.campaigns import (
    GRID,
    campaign_file,
    contents,
    keys_of_log,
    n_run,
    run_here,
    stored,
)
from tests.support.fake_systems import Fake
from tests.support.messages import messages

HERE = Jobs(interface="lo", memory="1 GiB")
MANY = GRID.replace("seeds = [0, 1]", f"seeds = {list(range(15))}")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """A Slurm system whose jobs are local processes."""
    return installed(tmp_path, monkeypatch, "slurm")


def needs_jobqueue() -> Any:
    """Return dask-jobqueue without its change of Ctrl-C; skip the test if it is not installed."""
    try:
        return jobqueue()
    except ImportError:
        pytest.skip("needs dask-jobqueue: rebat[cluster]")


def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, refuse: str = "") -> Fake:
    needs_jobqueue()
    system = Fake(tmp_path, name, refuse)
    monkeypatch.setenv("PATH", system.path)
    monkeypatch.setattr(crew, "LOOK_S", 0.3)
    monkeypatch.setattr(on_dask, "WATCH_S", 0.2)
    return system


def results_of(folder: Path) -> dict[str, bytes]:
    """Return the results without the output of the jobs."""
    return {name: data for name, data in contents(folder).items() if not name.startswith("jobs/")}


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_every_batch_system_gives_the_same_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbroken
) -> None:
    file, expected = unbroken
    system, told = installed(tmp_path, monkeypatch, name), []
    status = run_campaign(
        open_campaign(file), tmp_path / "r", workers=2, executor=name, jobs=HERE,
        on_progress=told.append,
    )  # fmt: skip
    assert (status.ok, status.total) == (10, 10)
    assert results_of(tmp_path / "r") == expected
    assert not (tmp_path / "r" / KEYS).exists()
    assert "2 submitted; Dask listens at tls://127.0.0.1:" in told[1].note
    assert told[1].running == 0
    assert told[-1].note == ""
    assert system.empties()


@pytest.mark.slow
def test_a_job_may_have_many_workers(tmp_path: Path, fake: Fake, unbroken) -> None:
    jobs, most = Jobs(interface="lo", cores=2), []
    run_campaign(
        open_campaign(unbroken[0]), tmp_path / "r", executor="slurm", jobs=jobs,
        on_progress=lambda now: most.append(len(fake.jobs())),
    )  # fmt: skip
    assert max(most) == 1
    assert results_of(tmp_path / "r") == unbroken[1]
    (script,) = fake.queue.glob("script.*")
    assert "#SBATCH --cpus-per-task=2" in script.read_text()
    assert "#SBATCH --mem=4G" in script.read_text()


@pytest.mark.slow
def test_a_job_that_is_cancelled_is_replaced_and_nothing_is_run_twice(
    tmp_path: Path, fake: Fake
) -> None:
    file = campaign_file(tmp_path, MANY)
    run_here(file, tmp_path / "unbroken")
    cancelled: list[str] = []

    def cancel_once(now: Any) -> None:
        if now.done >= 20 and not cancelled:
            cancelled.extend(fake.jobs())
            fake.cancel(cancelled[0])

    run_campaign(
        open_campaign(file), tmp_path / "r", executor="slurm", jobs=HERE, on_progress=cancel_once
    )
    assert len(cancelled) == 1
    assert len(list(fake.queue.glob("script.*"))) == 2
    assert results_of(tmp_path / "r") == contents(tmp_path / "unbroken")
    performed = keys_of_log(tmp_path / "r")
    assert len(performed) == len(set(performed)) == 62
    assert fake.empties()


def test_what_the_batch_system_says_against_a_job_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbroken
) -> None:
    refuse = "echo 'sbatch: error: invalid partition specified: none' >&2; exit 1"
    installed(tmp_path, monkeypatch, "slurm", refuse)
    with pytest.raises(InputError, match=r"^executor slurm: sbatch: error: invalid partition"):
        run_campaign(open_campaign(unbroken[0]), tmp_path / "r", executor="slurm", jobs=HERE)
    assert not (tmp_path / "r" / KEYS).exists()


@pytest.mark.slow
def test_jobs_whose_workers_never_report_end_the_campaign(
    tmp_path: Path, fake: Fake, unbroken
) -> None:
    jobs = Jobs(interface="lo", prologue=("exit 3",))
    with pytest.raises(RebatError, match="3 jobs ended before their workers connected; see"):
        run_campaign(open_campaign(unbroken[0]), tmp_path / "r", executor="slurm", jobs=jobs)
    assert len(list(fake.queue.glob("script.*"))) == crew.STILLBORN


# ---- killed and interrupted ----------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "rebat", "campaign", "run"]


def started(file: Path, results: Path, n_results: int) -> subprocess.Popen[str]:
    """Start a campaign on the fake Slurm; return its process when this number of results exists."""
    process = subprocess.Popen(
        [*COMMAND, str(file), "--results", str(results), "--executor", "slurm",
         "--interface", "lo", "--workers", "2"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        # Without compiled kernels a run takes longer, so that the campaign is interrupted.
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    until = time.monotonic() + 60
    while len(stored(results)) < n_results and time.monotonic() < until:
        time.sleep(0.02)
    return process


@pytest.mark.slow
def test_a_killed_campaign_leaves_no_job_and_goes_on(tmp_path: Path, fake: Fake) -> None:
    file = campaign_file(tmp_path, MANY)
    run_here(file, tmp_path / "unbroken")
    with started(file, tmp_path / "r", 5) as process:
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert fake.jobs()  # their workers must notice the kill
    assert fake.empties()
    done = stored(tmp_path / "r")
    assert 5 <= len(done) < 62
    logged = keys_of_log(tmp_path / "r")
    _, told = run_here(file, tmp_path / "r")
    assert n_run(told) == 62 - len(done)
    assert not done & set(keys_of_log(tmp_path / "r")[len(logged) :])
    found = {n: d for n, d in results_of(tmp_path / "r").items() if not n.startswith(KEYS)}
    assert found == contents(tmp_path / "unbroken")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "status", "told"),
    [("SIGINT", 130, "rebat: interrupted"), ("SIGTERM", 143, "rebat: terminated")],
)
def test_an_interrupted_campaign_cancels_its_jobs(
    name: str, status: int, told: str, tmp_path: Path, fake: Fake
) -> None:
    with started(campaign_file(tmp_path, MANY), tmp_path / "r", 5) as process:
        os.killpg(process.pid, getattr(signal, name))
        _, error = process.communicate(timeout=60)
    assert process.returncode == status
    assert messages(error) == [told]
    assert list(fake.queue.glob("job.*")) == []  # cancelled, not just ended
    assert not (tmp_path / "r" / KEYS).exists()


@pytest.mark.slow
def test_an_interrupt_between_two_outcomes_cancels_the_jobs_too(
    tmp_path: Path, fake: Fake, unbroken
) -> None:
    """The error keeps the frames of the campaign alive, so their deletion does not end the jobs."""

    def interrupt(now: Any) -> None:
        if now.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as held:
        run_campaign(
            open_campaign(unbroken[0]), tmp_path / "r", executor="slurm", jobs=HERE,
            on_progress=interrupt,
        )  # fmt: skip
    assert held.traceback[-1].name == "interrupt"
    assert list(fake.queue.glob("script.*")) != []
    assert list(fake.queue.glob("job.*")) == []  # cancelled, not just ended
    assert not (tmp_path / "r" / KEYS).exists()


# ---- what is refused -----------------------------------------------------------------------------


def refused(unbroken, results: Path, executor: str = "slurm", **jobs: Any) -> str:
    with pytest.raises(InputError) as error:
        run_campaign(
            open_campaign(unbroken[0]), results, executor=executor, jobs=Jobs(**jobs), limit=1
        )
    return str(error.value)


@pytest.mark.parametrize("package", ["dask_jobqueue", "cryptography"])
def test_a_package_that_is_missing(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbroken
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    if package == "cryptography":
        needs_jobqueue()
    assert refused(unbroken, tmp_path / "r") == (
        f"executor slurm: {package} is not installed; install it with: "
        "pip install 'rebat[cluster]' (in a checkout of rebat: pip install '.[cluster]')"
    )


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_batch_system_that_is_not_here(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbroken
) -> None:
    needs_jobqueue()
    monkeypatch.setenv("PATH", str(tmp_path))
    found = refused(unbroken, tmp_path / "r", name)
    assert found == f"executor {name}: {SYSTEMS[name].submit} is not on the PATH of this machine"


def test_options_that_fit_nothing(tmp_path: Path, fake: Fake, unbroken) -> None:
    assert "--interface: 'none0' is not a valid" in refused(
        unbroken, tmp_path / "r", interface="none0"
    )
    assert "--job-memory: Could not interpret 'much'" in refused(
        unbroken, tmp_path / "r", memory="much"
    )
    assert "a folder with spaces" in refused(unbroken, tmp_path / "a r")
    assert fake.jobs() == []


@pytest.mark.parametrize(
    "option",
    ["--queue=a", "--account=a", "--job-walltime=1h", "--job-memory=1GiB", "--job-cores=2",
     "--job-extra=-x", "--job-prologue=true", "--job-directory=/tmp", "--interface=lo"],
)  # fmt: skip
@pytest.mark.parametrize("executor", ["processes", "dask", "inline"])
def test_options_of_jobs_are_for_batch_systems(option: str, executor: str, unbroken) -> None:
    arguments = ["run", str(unbroken[0]), "--executor", executor, option]
    with pytest.raises(InputError, match="needs a batch system") as error:
        campaign.main(arguments, standalone_mode=False)
    assert error.value.where == option.partition("=")[0]


def test_an_address_is_for_dask(unbroken) -> None:
    arguments = ["run", str(unbroken[0]), "--executor", "slurm", "--address", "tcp://127.0.0.1:1"]
    with pytest.raises(InputError, match="has no effect without Dask"):
        campaign.main(arguments, standalone_mode=False)


# ---- output of the batch systems -----------------------------------------------------------------

ASKED = Jobs(
    queue="long", account="physics", walltime_s=5400.5, memory="8 GiB", cores=4,
    extra=("--one", "--two"), prologue=("module load python",), interface="ib0",
    local_directory=Path("/scratch"),
)  # fmt: skip
WORDS = {
    "slurm": ["-p long", "-A physics", "-t 01:30:01", "--cpus-per-task=4", "--mem=8G"],
    "pbs": ["-q long", "-A physics", "-l walltime=01:30:01", "-l select=1:ncpus=4:mem=8192MB"],
    "sge": ["-q long", "-P physics", "-l h_rt=01:30:01"],
    "lsf": ["-q long", '-P "physics"', "-W 01:31", "-n 4"],
}


def script(name: str, jobs: Jobs) -> str:
    job = getattr(needs_jobqueue(), SYSTEMS[name].cluster).job_cls
    return job("tls://10.0.0.1:1", "rebat0", **job_options(SYSTEMS[name], jobs)).job_script()


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_job_is_asked_for_in_the_systems_words(name: str) -> None:
    text = script(name, ASKED)
    assert [word for word in WORDS[name] if f" {word}\n" not in text] == []
    assert "--one\n" in text
    assert "--two\n" in text
    assert "\nmodule load python\n" in text
    command = text.splitlines()[-1]
    assert "--nworkers 4" in command
    assert "--nthreads 1" in command
    assert "--interface ib0" in command
    assert "--local-directory /scratch" in command
    assert "--death-timeout 60" in command
    assert "--dashboard-address 127.0.0.1:0" in command


def test_dasks_own_configuration_counts_where_nothing_is_asked_for() -> None:
    dask = pytest.importorskip("dask")
    needs_jobqueue()
    settings = {
        "queue": "theirs", "walltime": "12:00:00", "cores": 3, "memory": "5 GiB",
        "job-extra-directives": ["--theirs"], "job-script-prologue": ["theirs"],
    }  # fmt: skip
    with dask.config.set({f"jobqueue.slurm.{name}": value for name, value in settings.items()}):
        assert " -p theirs\n" in script("slurm", Jobs())
        text = script("slurm", Jobs(queue="ours", extra=("--ours",), prologue=("ours",)))
    assert " -p ours\n" in text
    assert " -t 12:00:00\n" in text
    assert " --cpus-per-task=3\n" in text
    assert " --mem=5G\n" in text
    assert " --theirs\n#SBATCH --ours\n" in text
    assert "\ntheirs\nours\n" in text


@given(st.floats(0.001, 1e7))
def test_a_walltime_is_never_shorter_than_asked(seconds: float) -> None:
    for system in SYSTEMS.values():
        parts = [int(part) for part in system.walltime(seconds).split(":")]
        told = sum(part * 60**place for place, part in enumerate(reversed(parts)))
        unit = 60 if system.name == "lsf" else 1
        assert 0 <= told * unit - seconds < unit


LISTINGS = {
    "slurm": ("12 PENDING\n13 RUNNING\n", {"12": "PENDING", "13": "RUNNING"}),
    "pbs": (
        "Job id            Name             User              Time Use S Queue\n"
        "----------------  ---------------- ----------------  -------- - -----\n"
        "12.pbs01          rebat            me                00:00:00 R workq\n"
        "13.pbs01          rebat            me                       0 Q workq\n"
        "14.pbs01          rebat            me                00:01:00 F workq\n",
        {"12": "R", "13": "Q"},
    ),
    "sge": (
        "job-ID  prior   name   user  state submit/start at     queue       slots ja-task-ID\n"
        "-----------------------------------------------------------------------------------\n"
        "     12 0.55500 rebat  me    r     11/22/2026 07:00:00 all.q@node1     1\n"
        "     13 0.00000 rebat  me    qw    11/22/2026 07:00:00                 1\n",
        {"12": "r", "13": "qw"},
    ),
    "lsf": (
        "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n"
        "12      me      RUN   normal     login1      node1       rebat      Nov 22 07:00\n"
        "13      me      PEND  normal     login1                  rebat      Nov 22 07:00\n"
        "14      me      EXIT  normal     login1      node1       rebat      Nov 22 07:00\n",
        {"12": "RUN", "13": "PEND"},
    ),
}
"""Listings as in the examples of the manuals."""


@pytest.mark.parametrize("name", SYSTEMS)
def test_listings_are_read(name: str) -> None:
    text, expected = LISTINGS[name]
    assert listed(SYSTEMS[name], text) == expected
    assert SYSTEMS[name].runs in expected.values()


# ---- a real batch system -------------------------------------------------------------------------


def test_on_a_real_slurm(tmp_path: Path, unbroken) -> None:
    """The test needs a Slurm; start it with ``eval "$(scripts/one-machine-slurm.sh up)"``."""
    needs_jobqueue()
    try:
        sinfo = ["sinfo", "--noheader", "--format=%T"]
        states = subprocess.run(sinfo, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"needs a Slurm with an idle node: {type(error).__name__} of sinfo")
    if "idle" not in states.stdout.split():
        pytest.skip("needs a Slurm with an idle node")
    file, expected = unbroken
    status = run_campaign(
        open_campaign(file), tmp_path / "r", workers=2, executor="slurm",
        jobs=Jobs(memory="1 GiB"),
    )  # fmt: skip
    assert status.ok == 10
    assert results_of(tmp_path / "r") == expected
    overview = json.loads((tmp_path / "r/campaign.json").read_text())
    assert overview["name"] == open_campaign(file).owner.name
