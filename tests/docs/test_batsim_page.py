# SPDX-License-Identifier: Apache-2.0
"""The commands for a real Batsim are run with ``rebat simulate`` in Batsim's place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rebat.campaign.batsched import recorded
from rebat.core.files import names
from rebat.workloads.batsim_json import read_workload
from tests.support.pages import DOCS, blocks
from tests.support.recordings import beside

BATSIM = """#!/bin/bash
# Batsim refuses an output in a folder that does not exist.
set -eu
options=("$@")
for ((at = 0; at < $#; at++)); do
    if [ "${{options[at]}}" = -e ]; then test -d "$(dirname "${{options[at + 1]}}x")"; fi
done
if [[ " $* " == *" --ee "* ]]; then
    test -z "${{options[-1]}}"  # the text after the address
    exec {python} -m rebat simulate --protocol 5 "${{@:1:$#-1}}"
fi
exec {python} -m rebat simulate "$@"
"""


@pytest.fixture
def batsim(tmp_path: Path, monkeypatch) -> None:
    """Put a program called batsim on the PATH."""
    program = tmp_path / "bin/batsim"
    program.parent.mkdir()
    program.write_text(BATSIM.format(python=sys.executable))
    program.chmod(0o755)
    for folder in (Path(sys.executable).parent, program.parent):
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.slow
@pytest.mark.usefixtures("batsim")
def test_the_first_example_works_when_it_is_followed_literally(tmp_path: Path) -> None:
    """The platform, the workload and the failures are for the same number of nodes."""
    page = (DOCS / "how-to/batsim.md").read_text()
    before = page.count("\n", 0, page.index("## Batsim 4 and 5"))
    example = [block for block in blocks(DOCS / "how-to/batsim.md") if block.line < before]
    assert sum("batsim -p" in block.text for block in example) == 2
    printed = ""
    for block in example:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text], cwd=tmp_path, capture_output=True,
            text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
        assert "warning" not in done.stderr
        printed += done.stdout
    assert printed.count("The runs are equal: 1,138 rows (jobs and resubmissions).") == 2
    assert "out/batsim4_jobs.csv: valid: 1,138 rows, without " in printed
    assert "probes of rebat serve, 0 findings" in printed


def test_the_table_of_equality_has_the_recorded_workloads() -> None:
    """Each row of coming-from/batsched.md states the size of a workload with recordings.

    `tests/policies/test_batsched_parity.py` compares the schedules.
    """
    text = (DOCS / "coming-from/batsched.md").read_text()
    rows = re.findall(r"^\| (.+?) \| ([\d,]+) \| ([\d,]+) \| 3 of 3 equal \|$", text, re.MULTILINE)
    stated = {name.strip("`"): (jobs, nodes) for name, jobs, nodes in rows}
    shipped = names("workloads", ".json")
    for name, files in recorded().items():
        workload = read_workload(shipped[name])
        assert len(files) == 3
        assert stated.pop(name) == (f"{len(workload.jobs):,}", f"{workload.n_nodes:,}")
    traces = [read_workload(file) for file in sorted(beside("golden/batsched").glob("*.json.gz"))]
    assert sorted(stated.values()) == sorted((f"{len(w.jobs):,}", f"{w.n_nodes:,}") for w in traces)
