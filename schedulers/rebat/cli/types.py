# SPDX-License-Identifier: Apache-2.0
"""Option types: durations, numbers and paths."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from rebat.core.cores import check_machine
from rebat.core.durations import LARGEST_SEED
from rebat.core.errors import InputError
from rebat.core.files import located, names
from rebat.core.units import parse_duration


class DurationType(click.ParamType[float]):
    """A duration in seconds, from texts like '300', '5min', '1h30min', '2d'."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            seconds = parse_duration(value)
        except InputError as error:
            self.fail(str(error), param, ctx)
        if seconds <= 0:
            self.fail(f"must be above 0, not {value!r}", param, ctx)
        return seconds


class FiniteRange(click.FloatRange):
    """A finite number in a range. NaN is rejected, although it would pass the range check."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"must be a finite number, not {value!r}", param, ctx)
        return number


class Input(click.Path):
    """A file to read, or the name of a file included in rebat."""

    def __init__(self, kind: str, *endings: str) -> None:
        super().__init__(path_type=Path, dir_okay=False)
        self._kind, self._endings = kind, endings

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        """Complete the names of included files, and files."""
        from rebat.cli.completing import items_of

        included = dict.fromkeys(names(self._kind, *self._endings), "")
        return items_of(included, "", incomplete) + super().shell_complete(ctx, param, incomplete)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        path = located(Path(value), self._kind, *self._endings)
        return super().convert(path, param, ctx)


class WorkloadOrRun(Input):
    """A workload or trace, or the folder of a run."""

    def __init__(self) -> None:
        super().__init__("workloads", ".json")

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        folder = Path(value)
        return folder if folder.is_dir() else super().convert(value, param, ctx)


class WorkloadOut(click.Path):
    """A workload file to write.

    The name must end in .json, .json.gz or .parquet, unless the path is a pipe or a device.
    """

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        special = path.exists() and not path.is_file()
        if not special and not path.name.lower().endswith((".json", ".json.gz", ".parquet")):
            self.fail(f"{path.name!r} must end in .json, .json.gz or .parquet", param, ctx)
        return path


class MachineSize(click.IntRange):
    """The number of nodes of a machine."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        try:
            return check_machine(int(super().convert(value, param, ctx)))
        except InputError as error:
            self.fail(str(error), param, ctx)


DURATION = DurationType()
FILE = click.Path(path_type=Path, dir_okay=False)
WORKLOAD = Input("workloads", ".json")
WORKLOAD_OR_RUN = WorkloadOrRun()
EVENTS = Input("failure_events", ".events")
CAMPAIGN = Input("campaigns", ".toml")
PLATFORM = Input("platforms", ".xml")
WORKLOAD_OUT = WorkloadOut(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
SEED = click.IntRange(min=0, max=LARGEST_SEED)
NODES = click.IntRange(min=1)
PROTOCOL = click.Choice([4, 5])
"""Option type for a version of Batsim, as an integer."""
MACHINE = MachineSize()
