# SPDX-License-Identifier: Apache-2.0
"""Events of nodes on the embedded engine."""

from __future__ import annotations

import pytest

from rebat.core.errors import InputError
from tests.support.scenarios import fails, flows, machine, run


def test_an_event_of_the_last_node_is_valid_and_of_the_next_node_is_an_error() -> None:
    workload = machine(4, (4, 10))
    assert flows(run("easy", workload, fails(3, 4, 6))) == {"1": 16}
    with pytest.raises(InputError, match="the machine has no node 4"):
        run("easy", workload, fails(4, 4, 6))
