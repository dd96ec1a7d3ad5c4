# SPDX-License-Identifier: Apache-2.0
"""The commands of docker-compose.yml as processes, and errors of the script for one machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wire.test_processes import free_port

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/one-machine-docker.sh"
REBAT = [sys.executable, "-m", "rebat"]
SMALL = ["--workload", "workloads/synthetic-small.json",
         "--events", "failure_events/synthetic-small.events"]  # fmt: skip


def services(policy: str = "sfsj") -> dict[str, dict]:
    """Return the services of compose with this policy and default values for all else."""
    text = (ROOT / "docker-compose.yml").read_text().replace("${REBAT_POLICY:-sfsj}", policy)
    return yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text))["services"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make the folder that containers see as /project."""
    for name in ("platforms", "workloads", "failure_events"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "results/batsim").mkdir(parents=True)
    return tmp_path


def arguments(service: dict, port: int) -> list[str]:
    """Return a service's arguments with the loopback interface as its endpoint."""
    return [
        re.sub(r"tcp://[\w.-]+:28000", f"tcp://127.0.0.1:{port}", a) for a in service["command"]
    ]


def rebat(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*REBAT, *command], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_files_that_compose_names_exist() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    named = set(re.findall(r"(?:platforms|workloads|failure_events)/[\w.-]+\.\w+", text))
    assert len(named) == 3
    assert all((ROOT / name).is_file() for name in named)
    assert (ROOT / "results/batsim").is_dir()


@pytest.mark.slow
def test_the_campaign_is_that_of_the_embedded_engine(project: Path) -> None:
    """Run Baseline and another policy with ``rebat simulate`` instead of Batsim."""
    found, port = services("easy-sfsj"), free_port()
    instead = yaml.safe_load((ROOT / "scripts/docker-compose.simulate.yml").read_text())["services"]
    order = ["batsim-baseline", "batsim-policy"]
    batsims = [name for name in found if name.startswith("batsim-")]
    assert order == [name for name in batsims if "profiles" not in found[name]]
    assert instead.keys() - {"batsched"} == set(batsims)
    (after,) = found["batsim-policy"]["depends_on"].items()
    assert after == ("batsim-baseline", {"condition": "service_completed_successfully"})
    with subprocess.Popen(
        [*REBAT, *arguments(found["scheduler"], port)], cwd=project,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as scheduler:  # fmt: skip
        for name in order:
            entrypoint, *command = instead[name]["entrypoint"]
            assert entrypoint == "rebat"
            done = rebat(project, *command, *arguments(found[name], port))
            assert (done.returncode, done.stdout) == (0, ""), done.stderr
        table, _ = scheduler.communicate(timeout=60)
    assert scheduler.returncode == 0
    assert "easy-sfsj against baseline: useful utilisation" in table
    assert rebat(project, *found["embedded"]["command"]).returncode == 0
    results = project / "results"
    for name in ("comparison.csv", "baseline/rebat_attempts.csv", "easy-sfsj/rebat_jobs.csv"):
        assert (results / "campaign" / name).read_bytes() == (
            results / "embedded" / name
        ).read_bytes()
    page = (results / "campaign/report.html").read_text()
    assert "synthetic-small.json" in page
    assert "easy-sfsj against baseline: " in page
    for policy in ("baseline", "easy-sfsj"):
        jobs, run = f"results/batsim/{policy}_jobs.csv", f"results/embedded/{policy}"
        assert rebat(project, "validate", jobs, *SMALL).returncode == 0
        assert rebat(project, "compare", jobs, run, "--allocations").returncode == 0


@pytest.mark.slow
def test_batsched_and_rebat_run_side_by_side(project: Path) -> None:
    """Replace Batsched and Batsim by ``rebat serve`` and ``rebat simulate``; run all services."""
    found = services()
    instead = yaml.safe_load((ROOT / "scripts/docker-compose.simulate.yml").read_text())["services"]
    assert found["batsched"]["command"][:2] == ["-v", "easy_bf"]
    for scheduler, batsim in (("batsched", "batsim-batsched"), ("rebat-easy", "batsim-rebat-easy")):
        assert found[batsim]["depends_on"] == [scheduler]
        assert f"tcp://{scheduler}:28000" in found[batsim]["command"]
        port = free_port()
        serve = arguments({**found[scheduler], **instead.get(scheduler, {})}, port)
        with subprocess.Popen([*REBAT, *serve], cwd=project, stderr=subprocess.DEVNULL) as process:
            done = rebat(project, instead[batsim]["entrypoint"][1], *arguments(found[batsim], port))
            assert process.wait(timeout=60) == 0
        assert done.returncode == 0, done.stderr
    compare = found["compare-batsched"]
    assert set(compare["depends_on"]) == {"batsim-batsched", "batsim-rebat-easy"}
    done = rebat(project, *compare["command"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "100 jobs" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-p", "easy", "-p", "easy"], "easy is a duplicate"),
        (["--force"], "--force: has no effect"),
        (["--out", "docs"], "docs: exists and contains no earlier result"),
    ],
)
def test_serve_says_what_it_cannot_do_before_it_waits(options: list[str], told: str) -> None:
    done = rebat(ROOT, "serve", "--endpoint", "tcp://127.0.0.1:*", *options)
    assert done.returncode == 2
    assert told in done.stderr
    assert "waits at" not in done.stderr


def script(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, command], env=os.environ | environment, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


def test_the_script_touches_nothing_that_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    done = script("down", DOCKER_DIR=str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is not removed" in done.stderr
    assert (tmp_path / "mine").read_text() == "kept"
    assert script("down", DOCKER_DIR=str(tmp_path / "absent")).returncode == 0
    for command in ("up", "check"):
        done = script(command, DOCKER_DIR=str(tmp_path))
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert (tmp_path / "mine").read_text() == "kept"


def test_the_script_says_what_it_expects() -> None:
    done = script("sideways")
    assert done.returncode == 2
    assert "expected check, up, run or down" in done.stderr
