# SPDX-License-Identifier: Apache-2.0
"""Records as a failure law: automatic import, mapping, seeds, and campaigns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rebat.campaign.opening import open_campaign
from rebat.cli.main import main
from rebat.core.errors import InputError
from rebat.models.failures.correlated import Correlation, correlated
from rebat.models.failures.events import check_alternation, read_events, write_events
from rebat.models.failures.law import generate_events
from rebat.models.failures.laws import parse_law
from rebat.models.failures.recorded import Recorded
from rebat.models.failures.records.formats import detected
from rebat.models.failures.renewal import Poisson
from tests.support.campaigns import GRID, campaign_file, run_here
from tests.support.recordings import beside

LANL = "traces/LA-UR-05-7318-failure-data-1996-2005.csv.xz"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """Write the failures of 16 nodes as an event file and as a table."""
    events = generate_events(Poisson(3600.0, 600.0), 16, horizon_s=1e5)
    write_events(events, tmp_path / "r.events")
    main(["failures", "export", str(tmp_path / "r.events"), "-o", str(tmp_path / "r.csv")])
    return tmp_path / "r.events"


def test_on_its_own_machine_it_is_the_file(record: Path) -> None:
    law = Recorded(str(record), size=16)
    assert list(law.events(16)) == list(law.events(16, seed=5))
    table = Recorded(str(record.with_suffix(".csv")), format="csv", size=16)
    assert list(table.events(16)) == list(law.events(16))
    assert list(law.events(16)) == read_events(record)


@pytest.mark.parametrize("way", ["rank", "share", "rate"])
@pytest.mark.parametrize("n_nodes", [5, 16, 40])
def test_on_other_machines_it_is_what_the_command_writes(record, tmp_path, way, n_nodes) -> None:
    law = parse_law(f"record:file={record},size=16,map={way},turn=true")
    events = list(law.events(n_nodes, seed=2))
    check_alternation(events, n_nodes)
    out = tmp_path / "m.events"
    main([
        "failures", "map", str(record), "--from-nodes", "16", "--nodes", str(n_nodes),
        "--by", way, "--turn", "--seed", "2", "-o", str(out),
    ])  # fmt: skip
    assert read_events(out) == events
    assert events != list(law.events(n_nodes, seed=3))


def test_a_horizon_ends_it(record: Path) -> None:
    law = Recorded(str(record), size=16)
    downs = [e.at_us for e in law.events(16, horizon_s=5e4) if not e.available]
    assert downs == [e.at_us for e in law.events(16) if not e.available and e.at_us < 5e10]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("format=x", "unknown format 'x'"),
        ("map=x", "unknown map 'x'"),
        ("maintained=x", "unknown maintained 'x'"),
        ("size=-1", "size: is -1"),
        ("turn=perhaps", "turn: is 'perhaps'"),
    ],
)
def test_what_cannot_be(record: Path, text: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        parse_law(f"record:file={record},{text}")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("size=3", "node .* is not on the machine"),
        ("system=3", "options of records have no effect"),
        ("format=csv,system=3", "no effect with --format csv"),
        ("format=lanl", "no column System"),
    ],
)
def test_what_is_found_as_it_is_read(record: Path, text: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        list(parse_law(f"record:file={record},{text}").events(16))


def test_the_format_is_detected(record: Path) -> None:
    """An event file and a table of the same failures give the same events."""
    assert detected(record) == "events"
    for file in (record, record.with_suffix(".csv")):
        found = parse_law(f"record:file={file},size=16").events(16)
        assert list(found) == read_events(record)


@pytest.mark.parametrize("way", ["rank", "share", "rate"])
@pytest.mark.parametrize("n_nodes", [16, 40])
def test_a_record_has_an_mtbf_of_the_machine(record: Path, way: str, n_nodes: int) -> None:
    law = parse_law(f"record:file={record},size=16,map={way}")
    events = read_events(record)
    own_s = events[-1].at_us / 1e6 / len({e.at_us for e in events if not e.available})
    assert law.mtbf_on(n_nodes) == pytest.approx(own_s * (16 / n_nodes if way == "rate" else 1))
    if way == "rate":
        failed = {e.at_us for e in law.events(n_nodes, seed=1) if not e.available}
        assert events[-1].at_us / 1e6 / len(failed) == pytest.approx(law.mtbf_on(n_nodes), rel=0.15)


def test_nothing_has_no_mtbf(tmp_path: Path) -> None:
    (tmp_path / "none.events").write_text("")
    with pytest.raises(InputError):
        Recorded(str(tmp_path / "none.events"), format="events", size=2).mtbf_on(2)


def test_young_daly_takes_the_records_mtbf_and_says_so(record: Path, tmp_path, capsys) -> None:
    law = parse_law(f"record:file={record},size=16,map=rate")
    base = ["run", "toy", "-p", "sfsj", "--checkpoint", "young-daly", "--checkpoint-cost", "1"]
    main([*base, "--law", f"record:file={record},size=16,map=rate", "--out", str(tmp_path / "o")])
    mtbf_s = law.mtbf_on(8)
    assert f"the MTBF of the failure law: {mtbf_s:.12g} s" in capsys.readouterr().err
    options = json.loads((tmp_path / "o/sfsj/summary.json").read_text())["options"]
    assert options["mtbf"] == mtbf_s
    main([*base, "--law", f"record:file={record},size=16,map=rate", "--mtbf", f"{mtbf_s!r}",
          "--out", str(tmp_path / "p")])  # fmt: skip
    assert "MTBF of the failure law" not in capsys.readouterr().err
    same = [(tmp_path / name / "sfsj/jobs.csv").read_bytes() for name in "op"]
    assert same[0] == same[1]


def test_a_record_is_no_law(record: Path) -> None:
    with pytest.raises(InputError, match="no failure probability"):
        Recorded(str(record)).survival(0.0, 1.0, 16)


def test_a_campaign_imports_it_itself(record: Path) -> None:
    """A unit's key depends on the content of the record, not on its name.

    If the record is rotated, seeds differ.
    """
    folder = record.parent
    failures = 'law = "record"\nfile = "r.csv"\nformat = "csv"\nsize = 16\nturn = true\n'
    head = GRID.partition("[grid.failures]")[0]
    grid = f'{head}[grid.failures]\n{failures}map = "rate"\nseeds = [0, 1]\n'
    file = campaign_file(folder, grid)
    status, _ = run_here(file, folder / "results")
    assert (status.ok, status.failed) == (10, 0)
    units = open_campaign(file).units
    told = "file=r.csv,format=csv,map=rate,size=16,turn=true"
    assert {unit.labels["law"] for unit in units} == {None, told}
    (folder / "r.csv").rename(folder / "other.csv")
    renamed = campaign_file(folder, grid.replace("r.csv", "other.csv"))
    assert [unit.key for unit in open_campaign(renamed).units] == [unit.key for unit in units]
    (folder / "other.csv").write_text("node,down,up\n1,2,3\n")
    changed = open_campaign(renamed).units
    assert sum(new.key != old.key for new, old in zip(changed, units, strict=True)) == 8


@pytest.mark.slow
def test_los_alamos_on_a_machine_eight_times_as_large() -> None:
    """Eight copies of 512 nodes fail eight times as often, except for outages cut or joined."""
    law = parse_law(f"record:file={beside(LANL)},format=lanl,system=20,map=rate")
    failed = sum(len(e.nodes) for e in law.events(4096, seed=1) if not e.available)
    assert abs(failed - 8 * 2461) <= 7 * 512
    assert abs(failed - 8 * 2461) <= 40


def test_a_record_in_groups(record: Path) -> None:
    """If a node fails in the record, its entire group of 8 fails."""
    together = correlated(Recorded(str(record), size=16), Correlation(group=8))
    events = list(together.events(16))
    check_alternation(events, 16)
    assert {str(event.nodes) for event in events} <= {"0-7", "8-15", "0-15"}
    firsts = {e.at_us for e in events if not e.available}
    assert firsts <= {e.at_us for e in read_events(record) if not e.available}
