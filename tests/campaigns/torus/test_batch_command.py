# SPDX-License-Identifier: Apache-2.0
"""``rebat batch``: its table, its output, and its errors."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rebat.cli.main import main
from rebat.models.batch import POLICIES, Batch, run_batch
from rebat.models.failures.laws import parse_law
from rebat.models.topology import Torus
from rebat.shipped.campaigns.torus import commands as torus
from tests.support.choices import choices

LAW = "weibull:scale=50h,shape=4,scale_sigma=2h"
SMALL = ["--torus", "4x4x2", "--size", "8", "--jobs", "30", "--law", LAW]
FOUR = ["-p", "slurm-linear", "-p", "rps", "-p", "faps", "-p", "ceiling"]


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "batch.csv").open() as file:
        return list(csv.DictReader(file))


def test_the_command_line_knows_every_policy() -> None:
    assert tuple(POLICIES) == choices(torus.batch, "policies")


def test_a_line_for_each_policy_list_duration_and_seed(tmp_path: Path, capsys) -> None:
    lists = ["--list", "16", "--list", "aligned", "--list", "all"]
    main(["batch", *SMALL, *FOUR, *lists, "--duration", "2h", "--duration", "30min",
          "--seeds", "3", "--out", str(tmp_path / "o")])  # fmt: skip
    found = rows(tmp_path / "o")
    assert tuple(found[0]) == torus.COLUMNS
    assert len(found) == (1 + 3 + 3 + 1) * 2 * 3
    for row in found:
        batch = Batch(
            Torus((4, 4, 2)), 8, 30, float(row["duration_s"]), parse_law(LAW), row["policy"],
            row["list"], int(row["seed"]),
        )  # fmt: skip
        result = run_batch(batch)
        assert float(row["completion_s"]) == result.completion_s
        assert int(row["aborts"]) == result.aborts
    text = capsys.readouterr().out
    of_faps = [
        float(row["completion_s"])
        for row in found
        if (row["policy"], row["list"], row["duration_s"]) == ("faps", "all", "7200.0")
    ]
    (line,) = (line for line in text.splitlines() if line.split()[:4] == ["2", "h", "faps", "all"])
    assert f"{sum(of_faps) / 3 / 3600:.1f}" in line
    first = text.splitlines()[0]
    assert first.endswith("(jobs of 2 h, 3 seeds, too few for an interval)")
    assert f"results in {tmp_path / 'o'}" in text


def test_all_boxes_and_five_seeds_unless_told_otherwise(tmp_path: Path) -> None:
    main(["batch", *SMALL, "-p", "faps", "--duration", "2h", "--out", str(tmp_path / "o")])
    found = rows(tmp_path / "o")
    assert [(row["list"], row["seed"]) for row in found] == [("all", str(s)) for s in range(5)]
    main(["batch", *SMALL, "-p", "faps", "--duration", "2h", "--seed", "3",
          "--out", str(tmp_path / "one")])  # fmt: skip
    assert rows(tmp_path / "one") == found[3:4]


def test_the_repair_is_the_laws_downtime_unless_told_otherwise(tmp_path: Path) -> None:
    written = []
    for law, more in ((LAW, []), (LAW, ["--repair", "5h"]), (f"{LAW},downtime=5h", [])):
        out = tmp_path / str(len(written))
        main(["batch", *SMALL[:-1], law, "-p", "slurm-linear", "--duration", "9h", *more,
              "--seed", "1", "--out", str(out)])  # fmt: skip
        written.append((out / "batch.csv").read_bytes())
    assert written[0] != written[1] == written[2]


def test_same_input_same_bytes_and_force(tmp_path: Path, capsys) -> None:
    asked = ["batch", *SMALL, *FOUR, "--duration", "2h", "--out", str(tmp_path / "o")]
    main(asked)
    before = (tmp_path / "o" / "batch.csv").read_bytes()
    with pytest.raises(SystemExit) as left:
        main(asked)
    assert left.value.code == 2
    assert "contains an earlier result" in capsys.readouterr().err
    main([*asked, "--force"])
    assert (tmp_path / "o" / "batch.csv").read_bytes() == before


def asked(**changed: str) -> list[str]:
    """Return a valid command line with some options changed."""
    good = {"torus": "4x4", "size": "4", "jobs": "3", "duration": "1h", "law": LAW, "policy": "rps"}
    return [text for name, value in (good | changed).items() for text in (f"--{name}", value)]


BAD = {
    "size beyond the torus": (asked(size="17"), "no box of 17 nodes is possible (expected 1 to 16"),
    "size zero": (asked(size="0"), "--size"),
    "extent of zero": (asked(torus="4x0"), "--torus: invalid torus: 4x0"),
    "no extents": (asked(torus="4,4"), "--torus: invalid dimensions '4,4'"),
    "no jobs": (asked(jobs="0"), "--jobs"),
    "no duration": (asked(duration="0"), "--duration"),
    "duration no number": (asked(duration="nan"), "--duration"),
    "unknown law": (asked(law="x:scale=1h"), "--law: unknown failure law 'x'"),
    "law of the machine": (asked(law="poisson:mtbf=1h"), "law has no parameters per node"),
    "law that lacks a shape": (asked(law="weibull:scale=1h"), "parameter shape is missing"),
    "sigma too large": (asked(law="exponential:mean=1h,mean_sigma=9d"), "mean_sigma: is 7776"),
    "unknown policy": (asked(policy="best"), "--policy"),
    "unknown list": ([*asked(), "--list", "some"], "--list"),
    "list of linear": ([*asked(policy="slurm-linear"), "--list", "16"], "--list: has no effect"),
    "seed below zero": ([*asked(), "--seed", "-1"], "--seed"),
    "seed and seeds": ([*asked(), "--seed", "1", "--seeds", "2"], "--seed: contradicts --seeds"),
    "no repair": ([*asked(), "--repair", "0"], "--repair"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_writes_nothing(case: str, tmp_path, capsys) -> None:
    arguments, says = BAD[case]
    with pytest.raises(SystemExit) as left:
        main(["batch", *arguments, "--out", str(tmp_path / "o")])
    error = capsys.readouterr().err
    assert left.value.code == 2
    (line,) = (line for line in error.splitlines() if "rror: " in line)
    assert says in line
    assert "Traceback" not in error
    assert not (tmp_path / "o").exists()
