# SPDX-License-Identifier: Apache-2.0
"""EASY backfilling with AccaSim, for ``benchmarks.bench_ways --rival``.

``pip install accasim`` in an environment of its own, then::

    python -m benchmarks.bench_ways kth jobs --rival 'ENVIRONMENT/bin/python \
        benchmarks/accasim_easy.py {swf}'

The number of nodes is in the header of the file. AccaSim writes no results.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import re
import sys
import tempfile
from pathlib import Path

for name in ("Mapping", "MutableMapping", "Iterable", "Callable", "Sequence"):
    setattr(collections, name, getattr(collections.abc, name))  # AccaSim 1.1.3 is for Python 3.9


def main(trace: Path) -> None:
    """Simulate the jobs of a trace in the Standard Workload Format."""
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import EASYBackfilling
    from accasim.base.simulator_class import Simulator

    with trace.open() as lines:
        header = "".join(line for line in lines if line.startswith(";"))
    n_nodes = re.search(r"MaxNodes: (\d+)", header)
    assert n_nodes
    with tempfile.TemporaryDirectory() as folder:
        machine = Path(folder) / "machine.json"
        groups = {"groups": {"n": {"core": 1}}, "resources": {"n": int(n_nodes[1])}}
        machine.write_text(json.dumps(groups))
        Simulator(
            str(trace), str(machine), EASYBackfilling(FirstFit()),
            scheduling_output=False, statistics_output=False, show_statistics=False,
        ).start_simulation()  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
