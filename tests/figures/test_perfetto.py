# SPDX-License-Identifier: Apache-2.0
"""The trace for Perfetto has the attempts, outages, holds and steals of the result."""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebat.cli.main import main
from rebat.core.nodes import NodeSet
from rebat.core.numbers import file_size
from rebat.figures.perfetto import nodes_per_track, number, run_trace, steals_of, varint
from rebat.models.checkpoint import add_young_daly
from rebat.models.failures.law import generate_events
from rebat.models.failures.renewal import Authors
from rebat.policies.presets import preset
from rebat.results.files.run_folder import read_timeline
from rebat.results.measures.timeline import CAUSES, Timeline, series_of, timeline_of
from rebat.runs.single import simulate
from rebat.workloads.generate import synthetic
from tests.support.perfetto_reader import ReadTrace, Slice, fields, read_trace
from tests.support.random_runs import random_run, varied_run

TIMES = ("submission_time", "queued_time", "kept_seconds", "lost_later_seconds")


def trace_of(timeline: Timeline, most_tracks: int = 256) -> ReadTrace:
    return read_trace(b"".join(run_trace(timeline, (), most_tracks).parts()))


def nodes_in(slices: list[Slice]) -> set[int]:
    """Return the nodes of slices; check that each node is listed once."""
    listed = Counter(n for s in slices for n in NodeSet.parse(s.arguments["nodes"]))
    assert not listed or max(listed.values()) == 1
    return set(listed)


def nodes_of(timeline: Timeline, row: int) -> set[int]:
    blocks = timeline.blocks
    return {
        node
        for at in np.flatnonzero(blocks.owner == row)
        for node in range(blocks.first[at], blocks.last[at] + 1)
    }


def check_attempts(timeline: Timeline, trace: ReadTrace) -> None:
    """Check that exactly the attempts that ran have slices, with their nodes, times and columns."""
    slices: dict[tuple[str, int], list[Slice]] = defaultdict(list)
    for found in trace.slices:
        if found.category == "attempt":
            assert found.depth == 0
            slices[found.name.removeprefix("job "), found.arguments["attempt"]].append(found)
    rows = np.flatnonzero(timeline.ran)
    keys = [(timeline.job_id[row], int(timeline.number[row])) for row in rows]
    assert sorted(slices) == sorted(keys)
    for row, key in zip(rows, keys, strict=True):
        own = slices[key]
        span = (int(timeline.start_us[row]) * 1000, int(timeline.end_us[row]) * 1000)
        assert {(s.begin, s.end) for s in own} == {span}
        assert nodes_in(own) == nodes_of(timeline, row)
        for found in own:
            assert found.arguments["cause"] == str(CAUSES[timeline.cause[row]])
            assert found.arguments.get("why", "") == timeline.why[row]
        (first,) = (s for s in own if "kept_seconds" in s.arguments)
        assert first.arguments["job_id"] == key[0]
        assert first.arguments["size"] == timeline.sizes[row]
        columns = timeline.submit_us, timeline.queued_us, timeline.kept_us, timeline.lost_us
        wanted = [column[row] / 1e6 for column in columns]
        assert [first.arguments[name] for name in TIMES] == wanted


def check_spans(trace: ReadTrace, category: str, spans) -> None:
    """Check that outages or holds have the nodes and times of the run."""
    wanted = Counter(
        (begin * 1000, end * 1000, node)
        for begin, end, first, last in zip(*(column.tolist() for column in spans), strict=True)
        for node in range(first, last + 1)
    )
    found = Counter(
        (s.begin, s.end, node)
        for s in trace.slices
        if s.category == category
        for node in NodeSet.parse(s.arguments["nodes"])
    )
    assert found == wanted


def check_rows(trace: ReadTrace) -> None:
    """Check that the outer slices of a track do not overlap."""
    by_track = defaultdict(list)
    for found in trace.slices:
        if found.depth == 0:
            by_track[found.track].append((found.begin, found.end))
    for spans in by_track.values():
        for one, other in pairwise(sorted(spans)):
            assert one[1] <= other[0]


@pytest.mark.parametrize("make", [random_run, varied_run])
@pytest.mark.parametrize("seed", range(12))
def test_slices_are_the_attempts_outages_and_holds(make, seed: int, tmp_path: Path) -> None:
    make(seed, tmp_path)
    timeline = read_timeline(tmp_path)
    for most_tracks in (256, 3, 1):
        trace = trace_of(timeline, most_tracks)
        check_attempts(timeline, trace)
        check_spans(trace, "down", timeline.outages)
        check_spans(trace, "held", timeline.held)
        check_rows(trace)
        titles = {trace.title(s.track) for s in trace.slices}
        assert len(titles) <= most_tracks


def test_tracks_have_the_nodes_of_their_title(tmp_path: Path) -> None:
    random_run(1, tmp_path)
    trace = trace_of(read_timeline(tmp_path), 3)
    assert trace.slices
    for found in trace.slices:
        if found.depth == 0:
            bounds = NodeSet.parse(trace.title(found.track).split()[1])
            assert set(NodeSet.parse(found.arguments["nodes"])) <= set(bounds)


def test_tracks_have_the_names_of_nodes(tmp_path: Path) -> None:
    random_run(1, tmp_path)
    timeline = read_timeline(tmp_path)
    names = [f"n{node:03}" for node in range(timeline.n_nodes)]
    for most_tracks, title in ((256, "n000"), (1, f"n000 to {names[-1]}")):
        trace = read_trace(b"".join(run_trace(timeline, names, most_tracks).parts()))
        assert title in {trace.title(track) for track in trace.tracks}


def test_curves_are_those_of_the_explorer(tmp_path: Path) -> None:
    random_run(3, tmp_path)
    timeline = read_timeline(tmp_path)
    trace = trace_of(timeline)
    by_title = {trace.title(track): values for track, values in trace.counts.items()}
    assert list(by_title) == ["nodes in use", "attempts in the queue", "free nodes"]
    for values, steps in zip(by_title.values(), series_of(timeline), strict=True):
        wanted = zip((steps[0] * 1000).tolist(), steps[1].tolist(), strict=True)
        assert sorted(values) == sorted(wanted)


@pytest.fixture(scope="module")
def stealing() -> Timeline:
    jobs = add_young_daly(synthetic(0, 200), n_nodes=128, mtbf_s=600)
    events = generate_events(Authors(600, 600), 128, horizon_s=1e6)
    result = simulate(jobs, preset("sfsj"), machine_events=events)
    return timeline_of("sfsj", result.ledger, 128)


def test_an_arrow_leads_from_each_victim_to_the_job_that_takes_its_nodes(
    stealing: Timeline,
) -> None:
    trace = trace_of(stealing)
    begins = {flow: s for s in trace.slices for flow in s.flows}
    ends = {flow: s for s in trace.slices for flow in s.ended_flows}
    victims = [s for s in trace.slices if "kept_seconds" in s.arguments]
    victims = [s for s in victims if s.arguments["cause"] == "stolen"]
    assert begins.keys() == ends.keys() and len(begins) == len(victims) > 10
    for flow, victim in begins.items():
        successor = ends[flow]
        assert victim.arguments["cause"] == "stolen"
        assert victim.arguments["why"] == f"for {successor.name.removeprefix('job ')}"
        assert successor.begin >= victim.end


def test_a_victim_and_its_successor_share_nodes_where_they_are_linked(stealing: Timeline) -> None:
    trace = trace_of(stealing, 8)
    begins = {flow: s for s in trace.slices for flow in s.flows}
    ends = {flow: s for s in trace.slices for flow in s.ended_flows}
    shared = [trace.title(s.track) == trace.title(ends[flow].track) for flow, s in begins.items()]
    steals = steals_of(stealing)
    common = [
        {n // 16 for n in nodes_of(stealing, one)} & {n // 16 for n in nodes_of(stealing, other)}
        for one, other in steals
    ]
    assert any(shared) and shared.count(True) == sum(map(bool, common))


@pytest.mark.slow
def test_checkpoints_and_recoveries_are_within_their_attempts(stealing: Timeline) -> None:
    trace = trace_of(stealing)
    found = Counter((s.category, s.begin, s.end) for s in trace.slices if s.depth == 1)
    wanted: Counter[tuple[str, int, int]] = Counter()
    p = stealing.pattern
    for row in np.flatnonzero(stealing.ran):
        start, end = int(stealing.start_us[row]), int(stealing.end_us[row])
        if p.recovery_us[row]:
            wanted["recovery", start * 1000, min(start + int(p.recovery_us[row]), end) * 1000] += 1
        at = start + int(p.recovery_us[row]) + int(p.first_us[row])
        while p.first_us[row] >= 0 and at < end:
            wanted["checkpoint", at * 1000, min(at + int(p.cost_us[row]), end) * 1000] += 1
            at += int(p.cost_us[row] + p.period_us[row])
    assert found == wanted
    assert {category for category, *_ in found} == {"recovery", "checkpoint"}


def test_the_number_of_nodes_per_track_is_the_smallest_power_of_2_that_fits() -> None:
    for n_nodes in (1, 2, 255, 256, 257, 1000, 49152):
        for most in (1, 3, 256):
            size = nodes_per_track(n_nodes, most)
            assert size & (size - 1) == 0 and -(-n_nodes // size) <= most
            assert size == 1 or -(-n_nodes // (size // 2)) > most


@given(st.integers(0, 2**64 - 1), st.integers(1, 1000))
def test_numbers_are_read_back(value: int, field: int) -> None:
    assert fields(number(field, value)) == {field: [value]}
    assert len(varint(value)) == max(1, -(-value.bit_length() // 7))


def test_google_reads_the_same_trace(stealing: Timeline) -> None:
    """In the schema of the package perfetto all fields are known, and slices are the same."""
    name = "perfetto.protos.perfetto.trace.perfetto_trace_pb2"
    schema = pytest.importorskip(name, reason="pip install perfetto protobuf")
    data = b"".join(run_trace(stealing).parts())
    trace = schema.Trace.FromString(data)
    trace.DiscardUnknownFields()
    assert len(trace.SerializeToString()) == len(data)
    begins = [p for p in trace.packet if p.track_event.type == 1]
    names = {e.iid: e.name for e in trace.packet[0].interned_data.event_names}
    found = Counter((names[p.track_event.name_iid], p.timestamp) for p in begins)
    assert found == Counter((s.name, s.begin) for s in read_trace(data).slices)


def test_the_command_writes_a_run_and_states_its_size(tmp_path: Path, capsys) -> None:
    random_run(1, tmp_path / "run")
    plain, packed = tmp_path / "run.pftrace", tmp_path / "run.pftrace.gz"
    main(["export", "--perfetto", str(tmp_path / "run"), "-o", str(plain)])
    attempts = int(read_timeline(tmp_path / "run").ran.sum())
    size = file_size(plain.stat().st_size)
    text = f"{plain}: {attempts} attempts, a node per track, {size}, perfetto\n"
    assert capsys.readouterr().out == text
    main(["export", "--perfetto", str(tmp_path / "run"), "-o", str(packed)])
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    main(["export", "--perfetto", str(tmp_path / "run"), "--tracks", "1", "-o", str(plain),
          "--force"])  # fmt: skip
    assert "16 nodes per track" in capsys.readouterr().out


def test_a_folder_of_several_policies_is_refused(tmp_path: Path, capsys) -> None:
    for name in ("a", "b"):
        random_run(1 if name == "a" else 2, tmp_path / "out" / name)
    with pytest.raises(SystemExit) as ended:
        main(["export", "--perfetto", str(tmp_path / "out"), "-o", str(tmp_path / "x")])
    assert ended.value.code == 2
    assert "contains several policies (expected one of them, such as" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
