# SPDX-License-Identifier: Apache-2.0
"""Platform files: writing, reading, and errors for malicious or invalid files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from rebat.core.errors import InputError
from rebat.models.topology import MIRA
from rebat.platforms.simgrid_read import (
    ZERO_LATENCY,
    Hardware,
    first_radical,
    platform_xml,
    read_platform,
    write_platform,
)
from rebat.platforms.specs import parse_spec

ROOT = Path(__file__).parents[2]
SHIPPED = {
    "mira": "mira", "intrepid": "intrepid", "torus-8x8x8x8": "torus:8,8,8,8", "flat-4": "flat:4",
}  # fmt: skip

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
MASTER = (
    '<cluster id="m" prefix="master_host" suffix="" radical="0-0" speed="1Gf" bw="1GBps" lat="0">'
    '<prop id="role" value="master"/></cluster>'
)


def cluster(radical: str = "0-11", extra: str = "", prefix: str = "n") -> str:
    return (
        f'<cluster id="c" prefix="{prefix}" suffix="" radical="{radical}" speed="1Gf" bw="1GBps" '
        f'lat="1us" {extra}/>'
    )


def torus(sizes: str) -> str:
    return f'topology="TORUS" topo_parameters="{sizes}"'


def platform(*elements: str) -> str:
    inner = "".join(elements)
    return f'{HEAD}<platform version="4.1"><zone id="r" routing="Full">{inner}</zone></platform>'


def read(tmp_path: Path, text: str):
    path = tmp_path / "p.xml"
    path.write_text(text)
    return read_platform(path)


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("spec", ["mira", "intrepid", "torus:8,8,8,8", "torus:3,5", "flat:7"])
def test_what_is_written_is_read_back(tmp_path: Path, spec: str, zero: bool) -> None:
    made = parse_spec(spec)
    write_platform(made, tmp_path / "p.xml", ZERO_LATENCY if zero else None)
    facts = read_platform(tmp_path / "p.xml")
    assert facts.n_hosts == made.n_nodes
    assert facts.torus == made.torus
    assert facts.latency_s == (0 if zero else pytest.approx(1e-6))
    assert facts.in_order


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("zero", [False, True])
def test_the_shipped_files_are_what_the_generator_writes(name: str, zero: bool) -> None:
    path = ROOT / "platforms" / f"{name}{'-zero-latency' if zero else ''}.xml"
    made = platform_xml(parse_spec(SHIPPED[name]), ZERO_LATENCY if zero else None)
    assert path.read_text() == made


def test_a_machine_of_49152_nodes_is_a_small_file() -> None:
    assert len(platform_xml(parse_spec("mira"))) < 1500


@pytest.mark.parametrize("n_nodes", [1, 2, 9, 10, 11, 99, 100, 101, 4096, 49_152])
def test_the_alphabetical_order_of_names_is_the_order_of_nodes(n_nodes: int) -> None:
    """Batsim numbers hosts in the order of their names. With the recorded n0 n1 n10 n100, the
    nodes of a torus would be in the wrong order."""
    first = first_radical(n_nodes)
    names = [f"n{number}" for number in range(first, first + n_nodes)]
    assert names == sorted(names)


def test_the_gateway_of_a_torus_is_its_first_host() -> None:
    text = platform_xml(parse_spec("torus:3,2,2"))
    assert 'radical="100-111"' in text
    assert 'gw_src="n100"' in text


def test_hardware_is_checked() -> None:
    for wrong in ({"speed": "0f"}, {"bandwidth": "fast"}, {"latency": "-1us"}, {"speed": '"1'}):
        with pytest.raises(InputError):
            Hardware(**wrong)


def test_a_foreign_file_is_understood(tmp_path: Path) -> None:
    """Batsim's cluster512.xml has the old tag, and the names do not sort by number."""
    text = platform(cluster("0-511", prefix="a"), MASTER).replace("zone", "AS")
    facts = read(tmp_path, text)
    assert (facts.n_hosts, facts.torus, facts.in_order) == (512, None, False)


def test_single_hosts_and_lists_of_numbers_count(tmp_path: Path) -> None:
    hosts = '<host id="master_host" speed="1f"/><host id="a" speed="1f"/><host id="b" speed="1f"/>'
    assert read(tmp_path, platform(hosts)).n_hosts == 2
    assert read(tmp_path, platform(cluster("0-3,7,10-11"), MASTER)).n_hosts == 7


def test_the_torus_of_two_clusters_is_not_guessed(tmp_path: Path) -> None:
    one, two = cluster("0-11", torus("3,2,2")), cluster("0-3", prefix="x")
    facts = read(tmp_path, platform(one, two, MASTER))
    assert (facts.n_hosts, facts.torus) == (16, None)


def test_gz_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.xml.gz"
    path.write_bytes(gzip.compress(platform_xml(parse_spec("mira")).encode()))
    assert read_platform(path).torus == MIRA


LAUGHS = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform [<!ENTITY a "ha">'
    '<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
    '<platform version="4.1"><zone id="&c;" routing="Full"/></platform>'
)
EXTERNAL = (
    '<?xml version="1.0"?>\n<!DOCTYPE platform [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    '<platform version="4.1"><zone id="r" routing="Full">&x;</zone></platform>'
)

BAD = {
    "empty": ("", "broken XML"),
    "cut off": (HEAD + "<platform><zone", "broken XML"),
    "no XML": ("hello", "broken XML"),
    "another document": ("<html/>", "<html>"),
    "entity bomb": (LAUGHS, "contains XML that rebat refuses"),
    "external entity": (EXTERNAL, "contains XML that rebat refuses"),
    "no cluster": (platform(MASTER), "0 compute hosts"),
    "no radical": (platform('<cluster id="c" prefix="n" suffix=""/>'), "radical"),
    "broken radical": (platform(cluster("0-x")), "0-x"),
    "radical backwards": (platform(cluster("5-1")), "5-1"),
    "radical beyond reason": (platform(cluster("0-999999999")), "999999999"),
    "wrong dimensions": (platform(cluster("0-11", torus("3,2")), MASTER), "radical has 12"),
    "broken dimensions": (platform(cluster("0-11", torus("3;4")), MASTER), "3;4"),
    "no dimensions": (platform(cluster("0-11", 'topology="TORUS"')), "topo_parameters"),
    "huge dimensions": (platform(cluster("0-11", torus("9999999,9999999"))), "invalid torus"),
    "broken latency": (platform(cluster(extra='bb_lat="slow"')), "slow"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_told_with_their_name(tmp_path: Path, name: str) -> None:
    text, told = BAD[name]
    with pytest.raises(InputError) as error:
        read(tmp_path, text)
    assert "p.xml" in str(error.value)
    assert told in str(error.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent"):
        read_platform(tmp_path / "absent.xml")


def test_zero_latency_files_take_no_time_at_all() -> None:
    """With 1e6 GBps each byte advances Batsim's clock, so that one instant becomes several."""
    for path in sorted((ROOT / "platforms").glob("*-zero-latency.xml")):
        text = path.read_text()
        assert 'bw="1e30GBps"' in text and 'bandwidth="1e30GBps"' in text, path.name
