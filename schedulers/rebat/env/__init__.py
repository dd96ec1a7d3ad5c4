# SPDX-License-Identifier: Apache-2.0
"""Reinforcement learning: a Gymnasium environment, and trained agents as policies.

Modules are imported on first use. Only `BatchScheduling` needs the extra ``rebat[rl]``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

with suppress(ImportError):  # agents can run as policies even if Gymnasium is not installed
    from rebat.env.registration import register

    register()

if TYPE_CHECKING:
    from rebat.env.agents import RULES as RULES
    from rebat.env.agents import LinearAgent as LinearAgent
    from rebat.env.decisions import AgentPolicy as AgentPolicy
    from rebat.env.environment import BatchScheduling as BatchScheduling
    from rebat.env.observation import LAYOUTS as LAYOUTS
    from rebat.env.rewards import REWARDS as REWARDS

_MODULES = {
    "AgentPolicy": "decisions",
    "BatchScheduling": "environment",
    "LAYOUTS": "observation",
    "LinearAgent": "agents",
    "REWARDS": "rewards",
    "RULES": "agents",
}
"""For each public name, its module."""

__all__ = [*_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module 'rebat.env' has no attribute {name!r}")
    return getattr(import_module(f"rebat.env.{_MODULES[name]}"), name)
