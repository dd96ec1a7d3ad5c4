# SPDX-License-Identifier: Apache-2.0
"""Runs in which Python policies are asked, also those that the rules cover."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rebat.drive import choose, drivers
from rebat.runs import single


@contextmanager
def asked() -> Iterator[None]:
    """Let the session ask all policies, instead of the rules."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (choose, drivers):
            patch.setattr(module, "why_not_policy", lambda point: "policies are asked")
        yield


def simulate(workload: Any, policy: Any, *, how: str | None = None, **options: Any) -> Any:
    """Simulate like `rebat.runs.single.simulate`. ``how`` can also be "asked"."""
    if how != "asked":
        return single.simulate(workload, policy, how=how, **options)
    with asked():
        return single.simulate(workload, policy, **options)
