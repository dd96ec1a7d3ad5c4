# SPDX-License-Identifier: Apache-2.0
"""Results as JSON, in the format of ``--json``."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any

import msgspec


def json_text(value: Any) -> str:
    """Return a value as JSON, indented by 2, without a final newline.

    NaN and infinite numbers become null. Numbers of numpy become plain numbers, and paths become
    text.

    >>> print(json_text({"low": float("nan"), "n": 3}))
    {
      "low": null,
      "n": 3
    }
    """
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, PathLike):
        return fspath(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"JSON cannot represent {type(value).__name__}")
