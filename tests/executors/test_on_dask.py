# SPDX-License-Identifier: Apache-2.0
"""A task that Dask drops while its cluster runs is submitted again."""

from __future__ import annotations

from typing import Any

import pytest

from rebat.core.errors import RebatError
from rebat.executors.on_dask import on_dask, outcomes
from rebat.executors.resources import Resources

distributed = pytest.importorskip("distributed")


def test_a_task_that_is_dropped_is_submitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        submitted: list[Any] = []
        submit = client.submit

        def recorded(*arguments: Any, **options: Any) -> Any:
            submitted.append(submit(*arguments, **options))
            return submitted[-1]

        def drop_all_once() -> None:
            if len(submitted) == 3:
                client.cancel(submitted)

        monkeypatch.setattr(client, "submit", recorded)
        found = outcomes(client, [1, 2, 3], str, lambda task, reason: reason, drop_all_once)
        assert sorted(found) == ["1", "2", "3"]
        assert len(submitted) > 3


def test_a_worker_that_is_killed_at_the_start_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(**options: Any) -> None:
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", fails)
    with pytest.raises(RebatError, match=r"no run has begun.*Nanny failed to start"):
        list(on_dask([1], str, lambda task, reason: reason, Resources(workers=1)))
