"""What users feel beside the flow: how long jobs wait, and how much longer that makes them."""

from __future__ import annotations

import msgspec
import numpy as np

from rebat.metrics.jobs import JobRows

SHORT_S = 10.0
"""Jobs that hold nodes for less count as if they held them so long (bounded slowdown, Feitelson and
Rudolph 1998)."""


class Service(msgspec.Struct, frozen=True):
    """Waiting times in seconds and slowdowns of the jobs whose flow is measured.

    A job waits whenever it holds no nodes. Its slowdown is its flow over the time for which it held
    nodes, all attempts together; the bounded one at least 1.
    """

    wait_mean_s: float
    wait_p95_s: float
    wait_max_s: float
    slowdown_mean: float
    bounded_slowdown_mean: float


def service_of(rows: JobRows) -> Service | None:
    """Of these finished jobs; None when there are none."""
    if not rows:
        return None
    waits, flows = rows.column("waiting_time"), rows.column("flow")
    held = np.maximum(flows - waits, 1e-6)
    bounded = np.maximum(1.0, flows / np.maximum(held, SHORT_S))
    return Service(
        float(waits.mean()), float(np.quantile(waits, 0.95)), float(waits.max()),
        float((flows / held).mean()), float(bounded.mean()),
    )  # fmt: skip
