# SPDX-License-Identifier: Apache-2.0
"""What determines the results of a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rebat.core.files import file_hash
from rebat.policies.axes import own_sources
from rebat.policies.choosing import effective
from rebat.policies.own import OwnCode, OwnPolicy
from rebat.policies.placement.table import is_file
from rebat.policies.presets import Preset


def identity(chosen: Preset | OwnPolicy) -> Any:
    """What of a scheduler determines its results: axes with an effect, contents of files."""
    if isinstance(chosen, OwnPolicy):
        return _content(chosen.sources[0])
    axes, known = chosen.axes, effective(chosen.axes)
    found = {axis: v for axis, v in msgspec.to_builtins(axes).items() if axis in known}
    if "foresight" in known and is_file(axes.foresight):
        found["foresight"] = {"sha256": file_hash(Path(axes.foresight))}
    own = own_sources(axes)
    return found | {axis: _content(source) for axis, source in own.items()}


def _content(source: OwnCode) -> dict[str, str]:
    return {"name": source.name, "sha256": source.sha256}
