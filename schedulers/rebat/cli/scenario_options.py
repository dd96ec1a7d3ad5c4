# SPDX-License-Identifier: Apache-2.0
"""Options of a scenario that commands share: failures of nodes, and preparation of a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from msgspec.structs import replace

from rebat.cli.command import Options, options_of, used_options
from rebat.runs.case import Door
from rebat.runs.scenario import OPTIONS, ScenarioOptions, grouped

LAW = grouped("law", "nodes", "correlation")
"""Options of a failure law, including the short form of the most common law."""

PREPARATION = grouped("preparation")
"""Options that add checkpoints and silent errors to a workload."""

RUN = grouped("run")
"""Options of the machine and of what is measured."""


def scenario_options(*names: str, **helps: str) -> Options:
    """Return the options of these fields of `ScenarioOptions`, in this order.

    ``helps`` replaces the help texts of options whose meaning is narrower in a command.
    """
    rows, make = options_of(ScenarioOptions, *names, **helps)
    law_name = {"values": "law_name"}
    rows = tuple(replace(r, extra=r.extra | law_name) if r.name == "model" else r for r in rows)
    return Options(rows, make)


def given_in(values: Mapping[str, Any]) -> tuple[dict[str, Any], Door]:
    """Return those of the options that are on this command line, and their spelling."""
    used = used_options()
    given = {name: value for name, value in values.items() if name in used and name in OPTIONS}
    return given, Door({**used, "policies": "--policy"})


def laws(formatter: click.HelpFormatter) -> None:
    """Write the failure laws at the end of a help text."""
    from rebat.models.failures.laws import described

    with formatter.section("Failure laws (--law)"):
        for line in described().splitlines():
            formatter.write(f"{'':>{formatter.current_indent}}{line}".rstrip() + "\n")
