# SPDX-License-Identifier: Apache-2.0
"""A task that Dask drops while its cluster runs is submitted again."""

from __future__ import annotations

from typing import Any

import pytest

from rebat.executors.on_dask import outcomes

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
