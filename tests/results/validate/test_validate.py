# SPDX-License-Identifier: Apache-2.0
"""A possible table has no findings; each error of a table has its own finding."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebat.campaign.batsched import VARIANTS, recorded
from rebat.core.files import names
from rebat.core.nodes import NodeSet
from rebat.core.units import to_us
from rebat.models.failures.events import MachineEvent, in_order, read_events
from rebat.results.files.batsim_csv import jobs_csv
from rebat.results.files.batsim_files import REQUIRED, JobRecord, read_jobs
from rebat.results.validate.attempts import split_attempt
from rebat.results.validate.findings import KINDS, Reference
from rebat.results.validate.validate import sweep, validate
from rebat.workloads.batsim_json import read_workload
from tests.support.amount import few
from tests.support.recordings import beside, folder_of
from tests.support.scenarios import failures, run, workloads
from tests.support.tables import TOY, TOY_EVENTS, edited, only, table, toy_csv, without

TOY_REFERENCE = Reference(8, read_events(TOY_EVENTS), read_workload(TOY))


def kinds(folder: Path, text: str, reference: Reference = TOY_REFERENCE) -> set[str]:
    return {finding.kind for finding in validate(table(folder, text), reference)}


def test_the_toy_example_is_clean(tmp_path: Path) -> None:
    assert kinds(tmp_path, toy_csv()) == set()
    assert kinds(tmp_path, only(toy_csv(), *REQUIRED)) == set()


def moved(job_id: str, start: float, end: float, submit: float = 0) -> str:
    """Return the toy table with a row at another time; all cells of the row are consistent."""
    return edited(
        toy_csv(), job_id, starting_time=f"{start}", finish_time=f"{end}",
        execution_time=f"{end - start}", waiting_time=f"{start - submit}",
        turnaround_time=f"{end - submit}", stretch=f"{(end - submit) / (end - start)}",
    )  # fmt: skip


# Change of the valid table -> (changed table, kinds of findings).
MUTATIONS = {
    "another job's node": (lambda: edited(toy_csv(), "1", allocated_resources="3"), {"overlap"}),
    "it starts while another is there": (lambda: moved("3#1", 5.0, 15.0, submit=1), {"overlap"}),
    "on the dead node": (lambda: moved("2#1", 5.0, 10.0, submit=1), {"dead node"}),
    "it outlives its node": (
        lambda: moved("3", 0, 1.5), {"dead node", "overlap", "attempts", "times"},
    ),
    "outside the machine": (lambda: edited(toy_csv(), "1", allocated_resources="8"), {"outside"}),
    "one node too many": (
        lambda: edited(toy_csv(), "4", allocated_resources="0-1 3-7"), {"size"},
    ),
    "one node too few": (lambda: edited(toy_csv(), "4", allocated_resources="3-7"), {"size"}),
    "no node": (lambda: edited(toy_csv(), "4", allocated_resources=""), {"size"}),
    "another request than the workload's": (
        lambda: edited(toy_csv(), "4", requested_number_of_resources="5",
                       allocated_resources="3-7"), {"size"},
    ),
    "beyond its walltime": (lambda: moved("4", 40.0, 50.1), {"walltime"}),
    "before its submission": (
        lambda: edited(toy_csv(), "1", submission_time="0.5"), {"early start", "times"},
    ),
    "finished before it started": (
        lambda: edited(toy_csv(), "4", finish_time="0"), {"negative run", "times"},
    ),
    "wrong execution time": (lambda: edited(toy_csv(), "1", execution_time="7"), {"times"}),
    "wrong waiting time": (lambda: edited(toy_csv(), "1", waiting_time="7"), {"times"}),
    "wrong turnaround": (lambda: edited(toy_csv(), "1", turnaround_time="7"), {"times"}),
    "a job is lost": (lambda: without(toy_csv(), "4"), {"lost"}),
    "a job is lost with its attempts": (lambda: without(toy_csv(), "3", "3#1"), {"lost"}),
    "a job of nobody": (lambda: edited(toy_csv(), "4", job_id="77"), {"lost", "unknown"}),
    "a job twice": (
        lambda: toy_csv() + toy_csv().splitlines()[-1] + "\n", {"doubled", "overlap"},
    ),
    "the first attempt is missing": (lambda: without(toy_csv(), "3"), {"lost", "attempts"}),
    "an attempt is skipped": (
        lambda: edited(toy_csv(), "3#1", job_id="3#2", profile="3#2:10s"), {"attempts"},
    ),
    "resubmitted after success": (
        lambda: edited(toy_csv(), "3", final_state="COMPLETED_SUCCESSFULLY", success="1"),
        {"attempts", "run time"},
    ),
    "half the run, yet a success": (lambda: moved("4", 11, 16), {"run time"}),
    "half the run of a resubmission": (lambda: moved("2#1", 6, 8.5, submit=1), {"run time"}),
    "a longer run than the profile's": (lambda: moved("4", 11, 21.005), {"run time"}),
    "killed after its end": (
        lambda: without(edited(moved("3", 0, 10.005), "3", final_state="COMPLETED_KILLED"), "1"),
        {"run time", "dead node", "overlap", "attempts", "lost", "times"},
    ),
    "the last resubmission is deleted": (lambda: without(toy_csv(), "3#1"), {"attempts"}),
    "all resubmissions are deleted": (lambda: without(toy_csv(), "2#1", "3#1"), {"attempts"}),
    "killed without a failure": (
        lambda: edited(toy_csv(), "4", final_state="COMPLETED_KILLED", success="0"), {"attempts"},
    ),
    "a success without success": (lambda: edited(toy_csv(), "4", success="0"), {"state"}),
    "a failure with success": (
        lambda: edited(toy_csv(), "4", final_state="COMPLETED_KILLED"), {"attempts", "state"},
    ),
    "failed without a reason": (
        lambda: edited(toy_csv(), "4", final_state="COMPLETED_FAILED", success="0"), {"state"},
    ),
    "ended at a walltime not reached": (
        lambda: edited(toy_csv(), "4", final_state="COMPLETED_WALLTIME_REACHED", success="0"),
        {"state"},
    ),
    "ended at no walltime": (
        lambda: edited(toy_csv(), "4", final_state="COMPLETED_WALLTIME_REACHED", success="0",
                       requested_time="-1.000000"), {"state", "request"},
    ),
    "another walltime than the workload's": (
        lambda: edited(toy_csv(), "4", requested_time="11.010000"), {"request"},
    ),
    "no walltime, the workload has one": (
        lambda: edited(toy_csv(), "4", requested_time="-1.000000"), {"request"},
    ),
    "another profile than the workload's": (
        lambda: edited(toy_csv(), "4", profile="8s"), {"request"},
    ),
    "a wrong stretch": (lambda: edited(toy_csv(), "4", stretch="2.100004"), {"times"}),
    "a stretch of a job that ran": (lambda: edited(toy_csv(), "4", stretch="-1.000000"), {"times"}),
    "a node twice": (lambda: edited(toy_csv(), "4", allocated_resources="0-5 2"), {"node twice"}),
    "a node twice, for another": (
        lambda: edited(toy_csv(), "4", allocated_resources="0-4 4"), {"node twice", "size"},
    ),
}  # fmt: skip

NAMED = (
    "half the run, yet a success", "half the run of a resubmission",
    "the last resubmission is deleted", "killed without a failure", "a success without success",
    "another walltime than the workload's", "a wrong stretch", "a node twice",
)  # fmt: skip
"""Corruptions of a single row; the only finding names the job of this row."""


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_way_to_break_a_table_is_found(tmp_path: Path, name: str) -> None:
    mutate, expected = MUTATIONS[name]
    assert kinds(tmp_path, mutate()) == expected


@pytest.mark.parametrize("name", NAMED)
def test_the_finding_names_the_job(tmp_path: Path, name: str) -> None:
    mutate, _ = MUTATIONS[name]
    (finding,) = validate(table(tmp_path, mutate()), TOY_REFERENCE)
    of = {"half the run of a resubmission": "2#1", "the last resubmission is deleted": "3"}
    assert f"job w0!{of.get(name, '4')}" in finding.text


def test_every_kind_has_a_mutation() -> None:
    """The toy example has no dependencies: see ``tests/session/test_dependencies.py``."""
    every = set().union(*(expected for _, expected in MUTATIONS.values()))
    assert every == KINDS.keys() - {"dependency"}


def test_what_is_not_given_is_not_checked(tmp_path: Path) -> None:
    assert kinds(tmp_path, moved("2#1", 5.0, 10.0, submit=1), Reference()) == set()
    assert kinds(tmp_path, without(toy_csv(), "4"), Reference()) == set()


def test_an_extract_takes_sizes_and_walltimes_from_the_workload(tmp_path: Path) -> None:
    small = only(edited(toy_csv(), "4", allocated_resources="3-7"), *REQUIRED)
    assert kinds(tmp_path, small) == {"size"}
    late = only(moved("4", 40.0, 50.1), *REQUIRED)
    assert kinds(tmp_path, late) == {"walltime"}


def test_slack_forgives_the_time_of_a_kill(tmp_path: Path) -> None:
    """Over a network the kill is some messages later than the failure."""
    late = moved("3", 0, 1.0012)
    within = Reference(8, TOY_REFERENCE.events, None, slack_us=to_us(0.002))
    assert "dead node" in kinds(tmp_path, late)
    assert "dead node" not in kinds(tmp_path, late, within)


def test_findings_say_line_jobs_node_and_date(tmp_path: Path) -> None:
    jobs = table(tmp_path, moved("2#1", 5.0, 10.0, submit=1))
    (finding,) = validate(jobs, TOY_REFERENCE)
    assert finding.line == 7
    assert finding.text == "job w0!2#1 runs on node 2, which is down, from 5 s"


@pytest.mark.parametrize(
    ("name", "found"),
    [("12#3", ("12", 3)), ("12", ("12", 0)), ("#1", ("#1", 0)), ("a#b", ("a#b", 0)),
     ("a#b#2", ("a#b", 2))],
)  # fmt: skip
def test_attempt_numbers(name: str, found: tuple[str, int]) -> None:
    assert split_attempt(name) == found


# Outputs of the real Batsim. It does not kill jobs when a node fails: Batsched's filler lets them
# complete on dead nodes, which is the finding.
RECORDED = {
    "conservative_bf_250": 128, "easy_bf_250": 128, "dyn_full": 4, "dyn_requeue": 4, "dyn_same": 4,
    "dyn_submitter": 4, "kill_basic": 4, "kill_exec_same_msg_flat": 4, "kill_killer": 4,
    "kill_killer2": 4, "py_fault": 4, "walltime": 4, "events_filler": 4, "events_filler_flat": 4,
    "events_unavail_running": 4, "generic_events": 10, "migrate_resize": 4, "moldable_start": 4,
    **{f"ties_{run}_{policy}": nodes for policy in ("sfsj", "h322")
       for run, nodes in ((701, 10), (703, 4), (704, 32), (706, 32), (707, 4), (709, 32))},
}  # fmt: skip
ON_DEAD_NODES = {
    "events_filler": ["3", "4", "6"], "events_filler_flat": ["4", "6"],
    "events_unavail_running": ["d", "p"],
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_outputs_of_batsim(name: str) -> None:
    folder = folder_of(name)
    jobs = read_jobs(folder / f"{name}_jobs.csv")
    events = folder / f"{name}.events"
    workload = read_workload(folder / f"{name}.workload.json")
    machine_events = read_events(events) if events.exists() else ()
    findings = validate(jobs, Reference(RECORDED[name], machine_events, workload))
    ids = {record.line: record.job_id for record in jobs.records}
    assert {finding.kind for finding in findings} <= {"dead node"}
    assert [ids[finding.line] for finding in findings] == ON_DEAD_NODES.get(name, [])


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["kth-sp2-2000", "kth-sp2-2000-int", "sdsc-blue-3000", "mira-2018-11"])  # noqa: E501  # fmt: skip
@pytest.mark.parametrize("variant", VARIANTS.values())
def test_runs_of_batsim_and_batsched_on_traces(workload: str, variant: str) -> None:
    folder = beside("golden/batsched")
    jobs = read_jobs(folder / f"{workload}.{variant}.csv.gz")
    known = read_workload(folder / f"{workload}.json.gz")
    assert validate(jobs, Reference(known.n_nodes, (), known)) == []


@pytest.mark.parametrize("name", recorded())
@pytest.mark.parametrize("policy", VARIANTS)
def test_recorded_runs_of_batsim_and_batsched(name: str, policy: str) -> None:
    known = read_workload(names("workloads", ".json")[name])
    jobs = read_jobs(recorded()[name][policy])
    assert validate(jobs, Reference(known.n_nodes, (), known)) == []


@pytest.mark.parametrize(("run_s", "found"), [(1e-5, set()), (1.1e-5, {"overlap"})])
def test_only_what_ran_for_no_time_shares_a_node(tmp_path: Path, run_s: float, found) -> None:
    """Batsim writes a run time of 0.00001 s for an attempt that held no node."""
    text = moved("1", 15.0, 15.0 + run_s)  # while other jobs have its nodes
    short = edited(text, "1", final_state="COMPLETED_KILLED", success="0")
    assert kinds(tmp_path, short, Reference(8, resubmits=False)) == found


@settings(max_examples=few(40))
@given(workload=workloads(), events=failures(), policy=st.sampled_from(["baseline", "sfsj"]))
def test_what_our_schedulers_do_is_clean(tmp_path_factory, workload, events, policy: str) -> None:
    events = in_order(events)
    text = "".join(f"{line}\n" for line in jobs_csv(run(policy, workload, events).jobs))
    assert kinds(tmp_path_factory.mktemp("t"), text, Reference(10, events, workload)) == set()


# The sweep compared with a plain check of every node and every pair of rows.

spans = st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda p: (p[0], p[0] + p[1]))
node_sets = st.sets(st.integers(0, 7), min_size=1).map(NodeSet.of)


@st.composite
def records(draw) -> list[JobRecord]:
    drawn = draw(st.lists(st.tuples(spans, node_sets), max_size=8))
    return [
        JobRecord(line, "w0", str(line), "COMPLETED_KILLED", start, end, nodes)
        for line, ((start, end), nodes) in enumerate(drawn)
    ]


def plain(rows: list[JobRecord], outages: list[tuple[int, int, int]]) -> set[tuple]:
    clashes: set[tuple] = set()
    for one in rows:
        for other in rows:
            apart = one.end_us <= other.start_us or other.end_us <= one.start_us
            empty = one.start_us == one.end_us or other.start_us == other.end_us
            shared_nodes = set(one.nodes) & set(other.nodes)
            if one.line < other.line and not apart and not empty and shared_nodes:
                clashes.add(("overlap", frozenset((one.line, other.line))))
        for node, down, up in outages:
            if node in one.nodes and one.start_us < up and down < one.end_us > one.start_us:
                clashes.add(("dead node", one.line))
    return clashes


@settings(max_examples=few(300))
@given(rows=records(), outages=st.lists(st.tuples(st.integers(0, 7), spans), max_size=4))
def test_the_sweep_finds_what_a_plain_check_finds(rows, outages) -> None:
    """The sweep is exact up to the first overlap; it then follows only the later job."""
    unique = {node: (down, up + 1) for node, (down, up) in outages}
    flat = [(node, down, up) for node, (down, up) in unique.items()]
    events = in_order(
        MachineEvent(at, back, NodeSet.of([node]))
        for node, down, up in flat
        for at, back in ((down, False), (up, True))
    )
    found = {
        (c.kind, frozenset((c.row.line, c.other.line)) if c.other else c.row.line)
        for c in sweep(rows, events)
    }
    expected = plain(rows, flat)
    if "overlap" in {kind for kind, _ in expected}:
        assert found <= expected
        assert "overlap" in {kind for kind, _ in found}
    else:
        assert found == expected
