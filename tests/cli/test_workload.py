"""The commands of `rebat workload`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebat.cli.main import main

ROOT = Path(__file__).parents[2]
SMALL = str(ROOT / "workloads/synthetic-small.json")
EVENTS = str(ROOT / "failure_events/synthetic-small.events")

PREPARATIONS = {
    "checkpoints": (
        ["--checkpoint", "young-daly", "--mtbf", "20min", "--checkpoint-cost", "70s",
         "--recovery-cost", "11s"], ["baseline", "sfsj", "h213"],
    ),
    "fewer checkpoints on a larger machine": (
        ["--checkpoint", "young-daly", "--mtbf", "1h", "--checkpoint-rounding", "floor",
         "--nodes", "200"], ["easy-sfsj"],
    ),
    "errors": (["--silent-errors", "1e-5", "--seed", "3"], ["r-list-q", "baseline"]),
    "both": (
        ["--checkpoint", "young-daly", "--mtbf", "30min", "--silent-error-probability", "0.2"],
        ["r-shelf-b", "sfsj:silent_errors=retry"],
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, *arguments: str) -> str:
    """The one line that a command ends with."""
    with pytest.raises(SystemExit) as exit_:
        main(list(arguments))
    told = capsys.readouterr().err
    assert exit_.value.code == 2
    assert sum(line.lower().find("error:") >= 0 for line in told.splitlines()) == 1, told
    return told


@pytest.mark.parametrize("name", PREPARATIONS)
def test_a_run_of_what_is_prepared_is_the_same_run(name: str) -> None:
    options, policies = PREPARATIONS[name]
    main(["workload", "prepare", SMALL, *options, "-o", "prepared.json.gz"])
    chosen = [argument for policy in policies for argument in ("-p", policy)]
    main(["run", SMALL, *options, *chosen, "--failures", EVENTS, "--out", "one"])
    main(["run", "prepared.json.gz", *chosen, "--failures", EVENTS, "--out", "other"])
    tables = sorted(Path("one").glob("*/jobs.csv"))
    assert len(tables) == len(policies)
    for table in tables:
        again = Path("other") / table.relative_to("one")
        assert again.read_bytes() == table.read_bytes()
        main(["validate", str(table), "--workload", "prepared.json.gz", "--events", EVENTS])
        with pytest.raises(SystemExit) as exit_:  # jobs of other lengths, or that must not fail
            main(["validate", str(table), "--workload", SMALL, "--events", EVENTS])
        assert exit_.value.code == 1


def test_what_is_prepared_says_how(folder: Path) -> None:
    options, _ = PREPARATIONS["fewer checkpoints on a larger machine"]
    main(["workload", "prepare", SMALL, *options, "-o", "prepared.json"])
    document = json.loads(Path("prepared.json").read_text())
    assert document["nb_res"] == 200
    assert document["notes"][-1] == (
        "prepared for 200 nodes: young-daly checkpoints, MTBF 3600 s, checkpoint 300 s, "
        "recovery 300 s, floor"
    )


BAD_PREPARATIONS = {
    "nothing asked for": ([], "nothing to prepare"),
    "no period": (["--checkpoint", "young-daly"], "needs --mtbf"),
    "no checkpoints": (["--mtbf", "1h", "--silent-errors", "1e-6"], "--mtbf: has no effect"),
    "no rate": (["--silent-errors", "nan"], "finite"),
    "an infinite rate": (["--silent-errors", "inf"], "finite"),
    "two kinds of errors": (
        ["--silent-errors", "1e-6", "--silent-error-probability", "0.1"], "give one of",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PREPARATIONS)
def test_bad_preparations(name: str, capsys) -> None:
    options, told = BAD_PREPARATIONS[name]
    assert told in refused(capsys, "workload", "prepare", SMALL, *options, "-o", "p.json")
    assert not Path("p.json").exists()
