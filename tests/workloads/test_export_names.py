# SPDX-License-Identifier: Apache-2.0
"""``rebat workload export``: the ending of a name does not contradict the format."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebat.cli.main import main


@pytest.mark.parametrize(
    ("name", "form", "valid"),
    [
        ("w.swf", "swf", True),
        ("w.swf.gz", "swf", True),
        ("w.txt", "swf", True),
        ("w.json.gz", "batsim5", True),
        ("w.parquet", "parquet", True),
        ("w.parquet", "swf", False),
        ("w.json", "swf", False),
        ("w.swf", "batsim4", False),
        ("w.swf.gz", "parquet", False),
        ("w", "parquet", False),
    ],
)
def test_endings(tmp_path: Path, capsys, name: str, form: str, valid: bool) -> None:
    out = tmp_path / name
    arguments = ["workload", "export", "toy", "--format", form, "-o", str(out)]
    if valid:
        main(arguments)
        assert out.exists()
        return
    with pytest.raises(SystemExit) as error:
        main(arguments)
    assert error.value.code == 2
    assert f"--out: is {name}, but the format is {form}" in capsys.readouterr().err
    assert not out.exists()
