# SPDX-License-Identifier: Apache-2.0
"""The Dask cluster of a campaign: users without its keys cannot run code, read pages or find
ports."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from rebat.campaign.opening import open_campaign
from rebat.campaign.run import run_campaign
from rebat.core.errors import InputError
from rebat.executors import on_dask

distributed = pytest.importorskip("distributed")
psutil = pytest.importorskip("psutil")


@contextmanager
def own_cluster() -> Iterator[Any]:
    """Yield the client of a cluster that is started like with ``--executor dask``."""
    with on_dask._client(2, None) as client:
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with own_cluster() as found:
        yield found


def doors(client: Any) -> list[str]:
    """Return the addresses of the scheduler, the workers and their nannies."""
    info = client.scheduler_info(n_workers=-1)
    workers = info["workers"].items()
    return [info["address"], *(a for a, _ in workers), *(w["nanny"] for _, w in workers)]


def listening(process: Any) -> list[Any]:
    """Return the sockets on which a process or its children listen."""
    family = [process, *process.children(recursive=True)]
    found = [socket for one in family for socket in one.net_connections("inet")]
    return [socket.laddr for socket in found if socket.status == psutil.CONN_LISTEN]


@pytest.mark.slow
def test_the_campaign_itself_is_let_in(client: Any) -> None:
    assert client.submit(sum, [1, 2]).result(timeout=60) == 3


def test_every_door_asks_for_the_keys(client: Any) -> None:
    addresses = doors(client)
    assert len(addresses) == 5
    assert {address.partition("127")[0] for address in addresses} == {"tls://"}
    for address in addresses:
        assert refused(address.replace("tls://", "tcp://"), None)
        assert refused(address, distributed.Security.temporary())


def refused(address: str, keys: Any) -> bool:
    """Return whether a client with other keys, or without keys, gets no answer at an address."""
    args = {} if keys is None else keys.get_connection_args("client")

    async def ask() -> bool:
        try:
            comm = await distributed.comm.connect(address, timeout=3, **args)
            await comm.write({"op": "identity", "reply": True})
            await comm.read()
        except OSError:
            return True
        return False

    loop = distributed.utils.LoopRunner()
    loop.start()
    try:
        return bool(distributed.utils.sync(loop.loop, ask))
    finally:
        loop.stop()


def test_all_that_listens_is_on_this_machine_and_has_no_pages(client: Any) -> None:
    client.submit(sum, [1, 2]).result(timeout=60)
    sockets = listening(psutil.Process())
    assert len(sockets) >= 8  # five addresses and three web servers
    assert {socket.ip for socket in sockets} == {"127.0.0.1"}
    spoken = {int(address.rpartition(":")[2]) for address in doors(client)}
    pages = [s.port for s in sockets if s.port not in spoken and answers_http(s.port)]
    assert len(pages) == 3
    for port in pages:
        for path in ("", "health", "info/main/workers.html", "json/identity.json", "metrics"):
            with pytest.raises(HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10)


def answers_http(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
    except HTTPError:
        return True
    except OSError:
        return False
    return True


STRANGER = """
import asyncio, os, sys
from distributed import Client, Security
from distributed.comm import connect

async def answer(address):
    keys = Security.temporary().get_connection_args("client") if address[:3] == "tls" else {}
    comm = await connect(address, timeout=3, **keys)
    await comm.write({"op": "identity", "reply": True})
    return await comm.read()

async def run(address):
    async with Client(address, timeout=3, asynchronous=True, set_as_default=False) as client:
        return await client.submit(os.getuid)

async def attempt(what, address):
    try:
        told = await asyncio.wait_for(what(address), 15)
    except (OSError, asyncio.TimeoutError) as error:
        print("refused", address, type(error).__name__)
    else:
        print("let in", address, what.__name__, str(told)[:80])

async def every(scheduler, *others):
    await attempt(run, scheduler.replace("tls", "tcp"))
    for address in (scheduler, *others):
        await attempt(answer, address)
        await attempt(answer, address.replace("tls", "tcp"))

os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
asyncio.run(every(*sys.argv[2:]))
print("all tried as", os.getuid(), flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_another_user_of_the_machine_runs_no_code(client: Any) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root: only root may become another user")
    stranger = pwd.getpwnam("nobody").pw_uid
    done = subprocess.run(
        [sys.executable, "-c", STRANGER, str(stranger), *doors(client)],
        capture_output=True, text=True, check=True, timeout=240, cwd="/",
    )  # fmt: skip
    *tries, last = done.stdout.splitlines()
    assert last == f"all tried as {stranger}"
    assert len(tries) == 11
    assert [line for line in tries if not line.startswith("refused ")] == []


def test_files_of_workers_are_the_campaigns_alone(client: Any) -> None:
    workers = client.scheduler_info()["workers"].values()
    (folder,) = {Path(worker["local_directory"]).parents[1] for worker in workers}
    assert folder.name.startswith("rebat-dask-")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_without_the_means_to_make_keys_there_is_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbroken
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(InputError, match=r"cryptography is not installed; .*'rebat\[campaign\]'"):
        run_campaign(open_campaign(unbroken[0]), tmp_path / "r", executor="dask", limit=1)
