# SPDX-License-Identifier: Apache-2.0
"""Lines that ``rebat serve`` prints on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rebat.core.formatting import counted
from rebat.core.units import to_s

if TYPE_CHECKING:
    from rebat.session.ledger import Ledger
    from rebat.session.session import Session

WAITS = "Batsim waits for a reply and does not end; if it still runs, stop it with Ctrl-C or kill"
"""What the user must do if this process ends before the simulation."""


def log(text: str) -> None:
    """Print a line on standard error."""
    click.echo(f"rebat: {text}", err=True)


class Refusals:
    """Prints the proposals that the session refused."""

    MOST = 20

    def __init__(self) -> None:
        self._printed = 0

    def print_new(self, session: Session | None) -> None:
        """Print the proposals refused since the last call, at most ``MOST`` in total."""
        refusals = session.ledger.refusals if session else []
        for at_us, attempt, reason in refusals[self._printed : self.MOST]:
            log(f"refused at {to_s(at_us):.6f} s: {attempt} {reason}")
        if self._printed < self.MOST < len(refusals):
            log(f"more than {self.MOST} proposals were refused; the others are not printed")
        self._printed = len(refusals)


def launch_commands(address: str, protocol: int | None) -> list[str]:
    """Return the commands that start Batsim: one for each version that can connect."""
    where = address.replace("0.0.0.0", "localhost")
    commands = {
        4: "mkdir -p out && batsim -p PLATFORM.xml -w WORKLOAD.json [--events FAILURES] -e out/run "
        "--enable-dynamic-jobs --acknowledge-dynamic-jobs --enable-profile-reuse "
        f"-s {where}",
        5: "mkdir -p out && batsim -p PLATFORM.xml -w WORKLOAD.json [--ee FAILURES] -e out/ "
        f'-s {where} ""',
    }
    if protocol:
        return [commands[protocol]]
    return [commands[4], f"or, with Batsim 5: {commands[5]}"]


def warn_of_other_machines(session: Session | None) -> None:
    """Warn if a workload is for another number of hosts than the platform of Batsim."""
    from rebat.wire.conversation import other_machines

    for text in other_machines(session.began) if session and session.began else ():
        log(f"warning: {text}")


def warn_of_missing_jobs(session: Session) -> None:
    """Warn if the simulation ended without a job, or before all jobs had ended."""
    waiting, running = len(session.queue), len(session.running)
    if waiting or running:
        log(
            f"warning: the simulation ended while {counted(running, 'job')} ran and {waiting} waited"
        )
    elif not len(session.ledger.attempts):
        log("warning: the simulation ended without a job; check the workload of Batsim")


def rejected(ledger: Ledger) -> str:
    """Return a clause with the number of rejected jobs and the first reason, or ''."""
    if not ledger.rejections:
        return ""
    (job_id, reason), n_jobs = ledger.rejections[0], counted(len(ledger.rejections), "job")
    return f", {n_jobs} rejected (first: {job_id}: {reason})"
