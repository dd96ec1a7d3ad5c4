# SPDX-License-Identifier: Apache-2.0
"""Tasks in jobs of a batch system (Slurm, PBS, SGE or LSF), through Dask.

This process runs the Dask scheduler, which listens on the network. Connections need TLS keys in
both directions. Each start creates new keys in the results folder. The jobs are cancelled when the
process ends. If the process is killed, connected workers end immediately. Jobs that start later end
after Dask's death timeout.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rebat.core.errors import InputError, not_installed, one_line
from rebat.executors.crew import Crew
from rebat.executors.on_dask import SILENT, out_of_reach, outcomes, without_pages
from rebat.executors.resources import Lost, R, Resources, T, Work
from rebat.executors.systems import System, cores_per_job, job_options, jobqueue

KEYS = ".keys"
ROLES = ("client", "scheduler", "worker")
LOGS = "jobs"


def on_cluster(
    system: System, tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], resources: Resources
) -> Generator[R]:
    """Yield outcomes as they complete, from workers in the jobs of a batch system."""
    _check(system, resources)
    from distributed import Client

    per_job = cores_per_job(system, resources.jobs)
    n_jobs = -(-min(resources.workers or per_job, len(tasks)) // per_job)
    with _keys(resources.folder) as keys, _scheduler(system, resources, keys) as cluster:
        new_job = partial(_new_job, system, resources, keys, cluster.scheduler_address)
        crew = Crew(cluster, new_job, system, per_job, resources)
        try:
            crew.begin(n_jobs)
            with Client(cluster, set_as_default=False) as client:
                yield from outcomes(client, tasks, work, lost, crew.watch)
        finally:
            crew.end()


def _check(system: System, resources: Resources) -> None:
    where = f"executor {system.name}"
    try:
        jobqueue()
        import cryptography  # noqa: F401
        from dask.utils import parse_bytes
    except ImportError as error:
        raise not_installed(str(error.name), where, "cluster") from None
    for program in (system.submit, system.listing[0]):
        if shutil.which(program) is None:
            raise InputError(f"{program} is not on the PATH of this machine", where)
    if shlex.quote(str(resources.folder)) != str(resources.folder):
        problem = "job scripts cannot use a folder with spaces or quotes in its name"
        raise InputError(problem, str(resources.folder), "another --results")
    try:
        parse_bytes(resources.jobs.memory or 0)
    except ValueError as error:
        raise InputError(str(error), "--job-memory", "a size like '4 GiB'") from None


@contextmanager
def _keys(folder: Path) -> Iterator[Any]:
    """Yield new keys in a private folder. Remove keys of earlier processes that were killed."""
    from distributed.security import Security

    keys = folder / KEYS
    shutil.rmtree(keys, ignore_errors=True)
    keys.mkdir(mode=0o700)
    try:
        security = Security.temporary()
        parts = ("ca_file", "worker_cert", "worker_key")
        ca, cert, key = (_written(keys / part, getattr(security, f"tls_{part}")) for part in parts)
        yield Security(
            require_encryption=True,
            tls_ca_file=ca,
            **{f"tls_{role}_cert": cert for role in ROLES},
            **{f"tls_{role}_key": key for role in ROLES},
        )
    finally:
        shutil.rmtree(keys, ignore_errors=True)


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@contextmanager
def _scheduler(system: System, resources: Resources, keys: Any) -> Iterator[Any]:
    """Run a Dask scheduler in this process, at an address that nodes can reach."""
    from dask import config
    from distributed import Scheduler, SpecCluster

    options = {
        "protocol": "tls",
        "security": keys,
        "host": _address(system, resources.jobs.interface),
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",
        **config.get(f"{system.section}.scheduler-options", {}),
    }
    with out_of_reach(), without_pages():
        try:
            cluster = SpecCluster(
                scheduler={"cls": Scheduler, "options": options},
                security=keys,
                silence_logs=SILENT,
            )
        except RuntimeError as error:
            raise InputError(one_line(error), f"executor {system.name}") from None
    with cluster:
        yield cluster


def _address(system: System, interface: str | None) -> str:
    from dask import config
    from distributed.utils import get_ip, get_ip_interface

    name = interface or config.get(f"{system.section}.interface", None)
    try:
        return str(get_ip() if name is None else get_ip_interface(name))
    except ValueError as error:
        raise InputError(str(error), "--interface") from None


def _new_job(system: System, resources: Resources, keys: Any, address: str, name: str) -> Any:
    """Return a job of the batch system. It is not submitted yet."""
    from dask import config

    options = job_options(system, resources.jobs)
    if config.get(f"{system.section}.log-directory", None) is None:
        options["log_directory"] = str(resources.folder / LOGS)
    job = getattr(jobqueue(), system.cluster).job_cls
    return job(address, name, security=keys, protocol="tls", **options)
