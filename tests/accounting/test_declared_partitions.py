# SPDX-License-Identifier: Apache-2.0
"""Partitions that Slurm and PBS declare, and how a workload uses them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.core.jobs import Job, Workload
from rebat.core.units import to_us
from rebat.policies.presets import preset
from rebat.records.queues import read_queues
from rebat.runs.staging import on_machine
from rebat.workloads.machine import origin_of, partitions_in_use
from tests.support.inputs import MADE

SLURM = """PartitionName=short
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   DefaultTime=00:30:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=4 MaxTime=1-02:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=n[1-3,7]
   PriorityJobFactor=1 PriorityTier=5 RootOnly=NO ReqResv=NO OverSubscribe=NO
   State=UP TotalCPUs=16 TotalNodes=4 SelectTypeParameters=NONE

PartitionName=all MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=ALL PriorityJobFactor=9
PartitionName=empty Nodes=(null) MaxTime=INFINITE
"""
PBS = """Queue: workq
    queue_type = Execution
    Priority = 20
    total_jobs = 3
    resources_max.nodect = 8
    resources_max.walltime = 48:00:00
    resources_default.walltime = 01:00:00
    enabled = True

Queue: route
    queue_type = Route
"""


def read(folder: Path, text: str) -> dict:
    (folder / "partitions.txt").write_text(text)
    return read_queues(folder / "partitions.txt")


def test_partitions_of_slurm(tmp_path: Path) -> None:
    assert read(tmp_path, SLURM) == {
        "short": {
            "nodes": "n[1-3,7]", "tier": 5, "max_nodes": 4, "max_time": "93600s",
            "default_time": "30min",
        },
        "all": {"nodes": "ALL", "weight": 9},
        "empty": {},
    }  # fmt: skip


def test_queues_of_pbs(tmp_path: Path) -> None:
    assert read(tmp_path, PBS) == {
        "workq": {"tier": 20, "max_nodes": 8, "max_time": "2d", "default_time": "1h"},
        "route": {},
    }


@pytest.mark.parametrize("text", ["", "JobID|State\n1|COMPLETED\n", "NodeName=n1 State=IDLE\n"])
def test_other_files_are_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no partitions"):
        read(tmp_path, text)


def test_the_import_states_declared_partitions(tmp_path: Path, capsys) -> None:
    MADE["jobs.txt"](tmp_path / "jobs.txt")
    (tmp_path / "partitions.txt").write_text("PartitionName=batch Nodes=ALL PriorityTier=2\n")
    out = tmp_path / "jobs.json"
    command = ["workload", "import", str(tmp_path / "jobs.txt"), "-o", str(out)]
    main([*command, "--partitions", str(tmp_path / "partitions.txt")])
    machine = msgspec.json.decode(out.read_bytes())["machine"]
    assert machine["partitions"]["batch"] == {"nodes": machine["nodes"], "tier": 2}
    capsys.readouterr()
    main(["workload", "describe", str(out)])
    assert "batch (tier 2)" in capsys.readouterr().out


def test_partitions_belong_to_accounting_records(tmp_path: Path, capsys) -> None:
    (tmp_path / "p.txt").write_text(SLURM)
    (tmp_path / "t.swf").write_text("; MaxNodes: 4\n1 0 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n")
    with pytest.raises(SystemExit) as exit_:
        command = ["workload", "import", str(tmp_path / "t.swf"), "-o", str(tmp_path / "o.json")]
        main([*command, "--partitions", str(tmp_path / "p.txt")])
    assert exit_.value.code == 2
    assert "--partitions: has no effect with --format swf" in capsys.readouterr().err


# ---- their use


def workload(partitions: dict, *jobs: tuple[str, int]) -> Workload:
    rows = tuple(
        Job(str(i), size, 0, to_us(100), "d", {"queue": queue})
        for i, (queue, size) in enumerate(jobs)
    )
    machine = {"nodes": "n[1-8]", "partitions": partitions}
    return Workload("w", 8, rows, {"d": {"type": "delay", "delay": 5}}, machine=machine)


def used(partitions: dict, *jobs: tuple[str, int]) -> str:
    chosen = on_machine(preset("easy"), workload(partitions, *jobs), 8)
    return chosen.point.partitions


def test_declared_nodes_are_exact_and_observed_ones_are_joined() -> None:
    declared = {"a": {"nodes": "n[1-4]", "tier": 2}, "b": {"nodes": "n[3-8]"}}
    assert used(declared, ("a", 1)) == "a:0-3:2+b:2-7"
    seen = {"a": "n[1-3]", "b": "n[3-4]", "c": "n[5-8]"}
    assert used(seen, ("a", 4), ("c", 1)) == "a:0-3+b:0-3+c:4-7"
    limited = {"a": {"seen": "n[1-3]", "max_nodes": 2}, "b": {"seen": "n[3-4]"}}
    assert used(limited, ("a", 1)) == "a:0-3:max_nodes=2+b:0-3"


def test_a_limit_that_a_recorded_job_exceeds_is_left_out() -> None:
    row = {"nodes": "n[1-8]", "max_nodes": 2, "max_time": "50s"}
    assert used({"a": row}, ("a", 2)) == "a:0-7:max_nodes=2"
    assert used({"a": row}, ("a", 3)) == "a:0-7"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tier", "reversed"),
        ("tier", -1),
        ("order", "fcfs+z:all"),
        ("max_nodes", "abc"),
        ("max_nodes", None),
        ("max_nodes", 0),
        ("max_time", []),
        ("default_time", "soon"),
    ],
)
def test_an_invalid_field_of_a_partition_is_an_error(field: str, value: object) -> None:
    with pytest.raises(InputError, match=f"partition 'a': {field}"):
        used({"a": {"nodes": "n[1-8]", field: value}}, ("a", 1))


def test_limits_are_nodes_although_jobs_request_cores() -> None:
    chosen, row = preset("easy:placement=cluster"), {"nodes": "n[1-8]", "max_nodes": 2}
    for size, limit in ((8, ":max_nodes=2"), (9, "")):
        made = workload({"a": row}, ("a", size))
        assert on_machine(chosen, made, 32, 4).point.partitions == "a:0-7" + limit
    seen = workload({"a": "n[1-4]", "b": "n[5-8]"}, ("a", 16), ("b", 1))
    assert on_machine(chosen, seen, 32, 4).point.partitions == "a:0-3+b:4-7"


def test_dates_that_do_not_exist_are_unknown() -> None:
    assert origin_of({"origin_s": 1.5e9}) == 1.5e9
    for value in ("abc", 1e20, float("nan"), -1, None):
        assert origin_of({"origin_s": value}) is None


def test_other_policies_and_other_machines_have_no_partitions() -> None:
    made = workload({"a": "n[1-4]", "b": "n[5-8]"}, ("a", 1), ("b", 1))
    assert len(partitions_in_use(made)) == 2
    for policy, n_nodes in (("easy:partitions=none", 8), ("easy", 6), ("sa", 8)):
        chosen = preset(policy)
        placed = on_machine(chosen, made, n_nodes)
        assert placed.point.parted == (policy == "sa")


def test_a_campaign_reads_a_site(tmp_path: Path) -> None:
    from rebat.workloads.batsim_json import write_workload

    made = workload({"a": "n[1-4]", "b": "n[5-8]"}, ("a", 3), ("a", 3), ("b", 1))
    write_workload(made, tmp_path / "jobs.json")
    (tmp_path / "site.toml").write_text('jobs = "jobs.json"\n')
    (tmp_path / "c.toml").write_text(
        'name = "c"\n[workloads.w]\nfile = "site.toml"\n[[grid]]\nname = "g"\n'
        'workloads = ["w"]\npolicies = ["easy", "easy:partitions=none"]\n'
    )
    main(["campaign", "run", str(tmp_path / "c.toml"), "--results", str(tmp_path / "out")])
    table = (tmp_path / "out").glob("**/results.parquet")
    import pandas as pd

    rows = pd.read_parquet(next(table))
    flows = rows[(rows.metric == "flow_max_s")].groupby("policy").value.max()
    assert flows["easy"] == 10 and flows["easy:partitions=none"] == 5
