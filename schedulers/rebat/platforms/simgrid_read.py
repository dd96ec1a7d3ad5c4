# SPDX-License-Identifier: Apache-2.0
"""Reader of SimGrid platform files. It reads only what a batch scheduler needs.

It uses defusedxml, which expands no entities and opens no other files.

Writer of SimGrid platform files for Batsim 4: a machine, and a host for Batsim itself.

`read_platform` (`rebat.platforms.simgrid_read`) reads these files.

A Full zone has two clusters: the machine (a torus, or a plain cluster), and one host for Batsim
itself, the *master*. A zoneRoute connects them. A torus has no router, so its gateway is a host.

Batsim numbers hosts in the alphabetical order of their names (``n0 n1 n10 n100 ...``), not in the
order of their ranks in the cluster. In the written files, all names have the same length, so that
both orders are equal. For example, the host of node 42 of Mira is ``n100042``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from rebat.core.cores import MAX_NODES
from rebat.core.errors import InputError
from rebat.core.files import read_text, write_text
from rebat.models.topology import Torus, parse_sizes
from rebat.platforms.specs import PlatformSpec, parse_quantity

MASTER = "master_host"
"""Default name of the host on which Batsim itself runs."""

COMPUTE = "compute_node"
"""Role of compute hosts in Batsim. Hosts without a role are also compute hosts."""

_RADICAL = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?\Z")


class PlatformFacts(msgspec.Struct, frozen=True):
    """Properties of a platform.

    Attributes
    ----------
    n_hosts : int
        Number of compute hosts: hosts without the property ``role``, or with the role compute_node.
    n_other : int
        Number of hosts with another role, such as storage, without the host on which Batsim runs
        (the master).
    speed_flops : float or None
        Speed of the compute hosts in flop/s (of one core), or None if the hosts differ.
    torus : Torus or None
        The torus, if the compute hosts form one TORUS cluster. Otherwise None.
    latency_s : float
        Maximum latency of a link. If it is 0, Batsim's messages take no time.
    in_order : bool
        Whether the file lists the hosts in the order of their names. Batsim numbers hosts in the
        order of their names, but torus coordinates depend on the order in the file.
    """

    n_hosts: int
    torus: Torus | None
    latency_s: float
    in_order: bool
    n_other: int = 0
    speed_flops: float | None = 1e9


class _Group(msgspec.Struct):
    """The hosts of one XML element."""

    element: Any
    names: list[str]


def read_platform(path: Path) -> PlatformFacts:
    """Read a platform file, plain or .gz."""
    root = _parse(Path(path))
    try:
        return _facts(root)
    except InputError as error:
        raise error.at(str(path)) from None


def _parse(path: Path) -> Any:
    try:
        text = read_text(path).lstrip()  # some of Batsim's platforms begin with an empty line
        root = fromstring(text, forbid_dtd=False, forbid_external=True)
    except ParseError as error:
        raise InputError(f"broken XML: {error}", str(path), "a SimGrid platform") from None
    except DefusedXmlException as error:
        error_text = f"contains XML that rebat refuses: {type(error).__name__}"
        raise InputError(error_text, str(path), "a SimGrid platform without entities") from None
    if root.tag != "platform":
        raise InputError(f"the root element is <{root.tag}>", str(path), "<platform>")
    return root


def _facts(root: Any) -> PlatformFacts:
    others = [group for group in _groups(root) if not _is_master(group)]
    groups = [group for group in others if _is_compute(group)]
    names = [name for group in groups for name in group.names]
    n_hosts = len(names)
    if not 1 <= n_hosts <= MAX_NODES:
        raise InputError(f"contains {n_hosts} compute hosts", expected=f"1 to {MAX_NODES}")
    tori = [torus for torus in map(_torus, groups) if torus is not None]
    return PlatformFacts(
        n_hosts=n_hosts,
        torus=tori[0] if len(groups) == len(tori) == 1 else None,
        latency_s=max(_latencies(root), default=0.0),
        in_order=names == sorted(names),
        n_other=sum(len(group.names) for group in others) - n_hosts,
        speed_flops=_single(_speed(group) for group in groups),
    )


def _groups(root: Any) -> Iterator[_Group]:
    for element in root.iter():
        if element.tag in ("host", "peer"):
            yield _Group(element, [_attribute(element, "id")])
        elif element.tag in ("cluster", "cabinet"):
            yield _Group(element, _cluster_names(element))


def _cluster_names(element: Any) -> list[str]:
    prefix, suffix = _attribute(element, "prefix"), _attribute(element, "suffix")
    spans = _spans(element)
    numbers = (number for first, last in spans for number in range(first, last + 1))
    return [f"{prefix}{number}{suffix}" for number in numbers]


def _roles(group: _Group) -> list[str]:
    props = (p for p in group.element.iter("prop") if p.get("id") == "role")
    return [role.strip() for p in props for role in p.get("value", "").split(",")]


def _is_master(group: _Group) -> bool:
    return group.names == [MASTER] or "master" in _roles(group)


def _is_compute(group: _Group) -> bool:
    roles = _roles(group)
    return COMPUTE in roles or not any(roles)


def _single(values: Iterable[float]) -> float | None:
    """Return the value that all elements have, or None if they differ."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def _speed(group: _Group) -> float:
    """Return the speed of a core in flop/s: the first, if a host has several power states."""
    text = group.element.get("speed") or group.element.get("power") or "1Gf"
    where = f"<{group.element.tag}> speed"
    return parse_quantity("speed", text.split(",")[0].strip(), where)


def _attribute(element: Any, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise InputError("is missing", f"<{element.tag}> {name}", "an attribute with this name")
    return str(value)


def _spans(element: Any) -> list[tuple[int, int]]:
    text = _attribute(element, "radical")
    matches = [_RADICAL.match(part) for part in text.split(",")]
    spans = [(int(m[1]), int(m[2] or m[1])) for m in matches if m]
    invalid = len(spans) < len(matches) or any(last < first for first, last in spans)
    if invalid or sum(last - first + 1 for first, last in spans) > MAX_NODES:
        raise InputError(
            f"invalid radical {text[:60]!r}", f"<{element.tag}>", "host numbers, like 0-127"
        )
    return spans


def _torus(group: _Group) -> Torus | None:
    element = group.element
    if element.get("topology", "FLAT").upper() != "TORUS":
        return None
    where = f"cluster {element.get('id')!r}"
    torus = parse_sizes(_attribute(element, "topo_parameters"), where)
    if torus.n_nodes != len(group.names):
        n_hosts = len(group.names)
        error = f"a torus of {torus} has {torus.n_nodes} nodes, but radical has {n_hosts} hosts"
        raise InputError(error, where, "the number of hosts that the dimensions require")
    return torus


def _latencies(root: Any) -> Iterator[float]:
    for element in root.iter():
        for name in ("lat", "latency", "bb_lat", "loopback_lat"):
            if element.get(name):
                yield parse_quantity("latency", element.get(name), f"<{element.tag}> {name}")


class Hardware(msgspec.Struct, frozen=True):
    """Capacity of nodes and links in SimGrid's notation. All values are round numbers.

    ``speed`` determines the run time of parallel profiles. It has no effect on delays. Batsim's own
    messages also use the network. If there is a latency, every decision takes simulated time.
    """

    speed: str = "1Gf"
    bandwidth: str = "2GBps"
    latency: str = "1us"

    def __post_init__(self) -> None:
        for kind in self.__struct_fields__:
            parse_quantity(kind, getattr(self, kind), f"platform {kind}")


ZERO_LATENCY = Hardware(bandwidth="1e30GBps", latency="0us")
"""Hardware with exact times: Batsim's messages take no time.

The bandwidth is unrealistically high on purpose. At 1e6 GBps, a byte would take 1e-15 s, which
changes Batsim's clock during the first several hundred seconds. Batsim would then split
simultaneous events into several messages. Therefore, a job could start on a node that Batsim has
already marked as unavailable.
"""

_FILE = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<!-- {name}: {n_nodes} nodes{shape}; written by rebat platform generate -->
<platform version="4.1">
  <zone id="root" routing="Full">
    <cluster id="nodes" prefix="n" suffix="" radical="{first}-{last}" {common}{topology}/>
    <cluster id="master" prefix="master_host" suffix="" radical="0-0" {common}>
      <prop id="role" value="master"/>
    </cluster>
    <link id="uplink" bandwidth="{bandwidth}" latency="{latency}"/>
    <zoneRoute src="nodes" dst="master" gw_src="{gateway}" gw_dst="master_hostmaster_router">
      <link_ctn id="uplink"/>
    </zoneRoute>
  </zone>
</platform>
"""
_COMMON = 'speed="{0}" bw="{1}" lat="{2}" loopback_bw="{1}" loopback_lat="0us"'


def platform_xml(spec: PlatformSpec, hardware: Hardware | None = None) -> str:
    """Return the text of the platform file."""
    hardware = hardware or Hardware()
    first = first_radical(spec.n_nodes)
    topology = shape = ""
    gateway = "nnodes_router"
    if spec.torus is not None:
        sizes = ",".join(map(str, spec.torus.sizes))
        topology = f' topology="TORUS" topo_parameters="{sizes}"'
        shape, gateway = f", torus {spec.torus}", f"n{first}"
    return _FILE.format(
        name=spec.name,
        n_nodes=spec.n_nodes,
        shape=shape,
        first=first,
        last=first + spec.n_nodes - 1,
        common=_COMMON.format(hardware.speed, hardware.bandwidth, hardware.latency),
        topology=topology,
        gateway=gateway,
        bandwidth=hardware.bandwidth,
        latency=hardware.latency,
    )


def first_radical(n_nodes: int) -> int:
    """Return the number of the first host, a power of ten. All host names then have equal length.

    >>> first_radical(4), first_radical(49152)
    (10, 100000)
    """
    return int(10 ** len(str(n_nodes - 1)))


def write_platform(spec: PlatformSpec, path: Path, hardware: Hardware | None = None) -> None:
    """Write the platform file atomically."""
    write_text(Path(path), platform_xml(spec, hardware))
