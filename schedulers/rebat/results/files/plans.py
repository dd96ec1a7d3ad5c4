# SPDX-License-Identifier: Apache-2.0
"""The file of recorded plans, rebat_plans.npz: columns of plans and of their changes.

The arrays ``plan_*`` have an entry for each plan with changes (`session.plan_record.PLAN_COLUMNS`).
The arrays ``row_*`` have an entry for each change (`ROW_COLUMNS`). ``attempt_serials`` and
``attempt_ids`` are the serial numbers and ids of the attempts. ``texts`` are the reasons that a
custom policy stated. Equal records produce equal files.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from rebat.core.errors import InputError
from rebat.core.files import write_bytes
from rebat.session.plan_record import PLAN_COLUMNS, ROW_COLUMNS, PlanRecord

PLANS = "rebat_plans.npz"

_ROW_TYPES = (np.int32, np.int32, np.int8, np.int64)
"""Data types of the arrays ``row_*`` in the file."""


def write_plans(folder: Path, record: PlanRecord) -> None:
    """Write the record of plans to a folder."""
    buffer = io.BytesIO()
    columns: dict[str, Any] = {
        **{f"plan_{name}": record.plans[:, at] for at, name in enumerate(PLAN_COLUMNS)},
        **{
            f"row_{name}": record.rows[:, at].astype(kind)
            for at, (name, kind) in enumerate(zip(ROW_COLUMNS, _ROW_TYPES, strict=True))
        },
        "attempt_serials": record.serials,
        "attempt_ids": np.array(record.ids, dtype=np.str_),
        "texts": np.array(record.texts, dtype=np.str_),
    }
    np.savez(buffer, **columns)
    write_bytes(folder / PLANS, (buffer.getbuffer().tobytes(),))


def read_plans(folder: Path) -> PlanRecord:
    """Read the record of plans in the folder of a policy."""
    path = folder / PLANS
    if not path.is_file():
        expected = "a run that recorded its plans: run again with --explain"
        raise InputError(f"contains no {PLANS}", str(folder), expected)
    try:
        with np.load(path, allow_pickle=False) as file:
            return PlanRecord(
                np.stack([file[f"plan_{name}"] for name in PLAN_COLUMNS], axis=1),
                np.stack([file[f"row_{name}"] for name in ROW_COLUMNS], axis=1, dtype=np.int64),
                file["attempt_serials"],
                file["attempt_ids"].tolist(),
                file["texts"].tolist(),
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"broken record of plans: {error}", str(path)) from None
