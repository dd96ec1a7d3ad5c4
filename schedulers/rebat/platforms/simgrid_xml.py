# SPDX-License-Identifier: Apache-2.0
"""Writer of SimGrid platform files for Batsim 4: a machine, and a host for Batsim itself.

`read_platform` (`rebat.platforms.simgrid_read`) reads these files.

A Full zone has two clusters: the machine (a torus, or a plain cluster), and one host for Batsim
itself, the *master*. A zoneRoute connects them. A torus has no router, so its gateway is a host.

Batsim numbers hosts in the alphabetical order of their names (``n0 n1 n10 n100 ...``), not in the
order of their ranks in the cluster. In the written files, all names have the same length, so that
both orders are equal. For example, the host of node 42 of Mira is ``n100042``.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from rebat.core.files import write_text
from rebat.platforms.quantities import parse_quantity
from rebat.platforms.simgrid_read import PlatformFacts, read_platform
from rebat.platforms.specs import PlatformSpec

__all__ = [
    "ZERO_LATENCY",
    "Hardware",
    "PlatformFacts",
    "first_radical",
    "platform_xml",
    "read_platform",
    "write_platform",
]


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
