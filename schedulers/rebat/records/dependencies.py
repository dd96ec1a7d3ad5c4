# SPDX-License-Identifier: Apache-2.0
"""Dependencies and limits of arrays in accounting records.

Slurm stores no dependencies, but the column ``SubmitLine`` (since version 21.08) contains the
command that submitted the job. Slurm joins the arguments of this command with spaces and without
quotes, so it cannot be split again. Therefore, the options are recognised by the form of their
values. The ``Q`` records of OpenPBS contain ``depend=``. Sources: Slurm's manual page *sbatch*,
records of Slurm 22.05, and ``accounting.c`` of OpenPBS.
"""

from __future__ import annotations

import re

_COMMAND = re.compile(r"\s*(?:\S*/)?(?:sbatch|srun|salloc)\s")
_IDS = r"(?::[0-9][0-9_*+\[\],\-]*?)"
_CONDITION = rf"[a-z]+{_IDS}*"
_DEPENDENCY = re.compile(
    rf"\s(?:-d ?|--depend[a-z]*[= ])[\"']?({_CONDITION}(?:[,?]{_CONDITION})*)(?=[\"'\s]|$)"
)
_ARRAY = re.compile(r"\s(?:-a ?|--arr[a-z]*[= ])[\"']?[0-9,:\-]+%([1-9][0-9]{0,5})(?=[\"'\s]|$)")
_SERVER = re.compile(r"(?<=[0-9\]])\.[^:,]*")


def dependency_option(line: str) -> str:
    """Return the value of the last option ``--dependency`` of a command, or an empty text.

    >>> dependency_option("sbatch -J x, y -d afterok:10:11_*,singleton job.sh -d 5")
    'afterok:10:11_*,singleton'
    """
    return _last(_DEPENDENCY, line)


def array_option(line: str) -> str:
    """Return the limit in the last option ``--array`` of a command, or an empty text.

    >>> array_option("sbatch --parsable --array=0-9,20%2 job.sh")
    '2'
    """
    return _last(_ARRAY, line)


def _last(option: re.Pattern[str], line: str) -> str:
    values = option.findall(line) if _COMMAND.match(line) else ()
    return values[-1] if values else ""


def depend_attribute(text: str) -> str:
    """Return the attribute ``depend`` of OpenPBS without the names of servers.

    >>> depend_attribute("afterok:12.pbs@pbs.site:13[].pbs@pbs.site,afterany:14.pbs@pbs.site")
    'afterok:12:13[],afterany:14'
    """
    return _SERVER.sub("", text)
