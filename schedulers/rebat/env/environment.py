# SPDX-License-Identifier: Apache-2.0
"""The Gymnasium environment: an agent makes one kind of decision of a batch scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, SupportsFloat

import msgspec
import numpy as np

from rebat.core.declared import converted
from rebat.core.errors import InputError, not_installed, unknown_name
from rebat.core.jobs import Workload
from rebat.core.units import parse_duration, to_s
from rebat.env.decisions import K
from rebat.env.observation import LAYOUTS, ActionMask, Observation
from rebat.env.rewards import Reward, reward_of
from rebat.runs.scenario import MEASURED, OPTIONS, ScenarioOptions
from rebat.state.ledger import Ledger

try:
    import gymnasium
    from gymnasium import spaces

    from rebat.env.episodes import Draw, Episode, Episodes, EpisodeSetting, WorkloadLike
except ImportError as error:
    raise not_installed(str(error.name), "rebat.env", "rl") from error

MOST_EMPTY = 100
"""A reset skips random episodes without a decision, up to this number."""

DEFAULTS = {"mtbf": "1h", "checkpoint": "young-daly"}
"""Options whose defaults differ from those of `rebat run`."""

UNUSED = {"operations", "seed"} | MEASURED
"""Options of a scenario that an environment does not support."""

Workloads = WorkloadLike | Sequence[WorkloadLike]


class BatchScheduling(gymnasium.Env[Observation, Any]):
    """A simulation of a window of a workload, in which an agent makes one kind of decision.

    A reset draws a workload, a window and a failure seed. The machine is empty at the start of the
    window. The episode ends when all jobs of the window have ended.

    Parameters
    ----------
    decision : {'victim', 'queue'}
        The agent chooses the job to interrupt for a job that lost a node, or the next queued
        attempt.
    workload : Workload, str, Path, or a sequence
        One or several workloads, each as in `rebat.run`.
    window : str or float, optional
        Length of a window, like "1d", above 0. If None, the window is the entire workload.
    base : str
        The scheduler that makes all other decisions (see `AgentPolicy`).
    candidates : int
        Maximum number of candidates in an observation (K), at least 3.
    reward : str or function
        A name in `REWARDS`, or a function of `Totals`.
    validate : bool
        Whether to check the invariants of the session after each message (slow).
    **options
        Options of the scenario, as in `rebat.run` and `rebat.failures`: ``nodes``, ``mtbf``
        (default: 1 h), ``downtime``, ``checkpoint`` (default: young-daly, or the checkpoints of the
        workload if it has any), ``law``, ....

    Raises
    ------
    InputError
        If an option is unknown or invalid.

    Notes
    -----
    Observations are described in `rebat.env.observation`. The action is the row of a candidate, or
    K for no candidate. ``info["action_mask"]`` and `action_masks` mark the valid actions. If an
    action is invalid, the environment carries out K instead, and sets ``info["invalid_action"]``.
    If K is also invalid, it carries out the first valid action. ``info["draw"]`` identifies the
    episode. To repeat it, call ``reset(options=info["draw"])``.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (declared by Gymnasium)

    def __init__(
        self,
        decision: str = "victim",
        workload: Workloads = "synthetic-small",
        *,
        window: str | float | None = None,
        base: str = "",
        candidates: int = K,
        reward: str | Reward = "flow",
        validate: bool = False,
        render_mode: None = None,
        **options: Any,
    ) -> None:
        self.render_mode = render_mode
        self._setting = EpisodeSetting.of(decision, base, candidates, validate)
        self._reward = reward_of(reward)
        window_s = None if window is None else parse_duration(window)
        self._episodes = Episodes(
            _listed(workload), _scenario_options(options), window_s, "checkpoint" not in options
        )
        size = LAYOUTS[decision].size(candidates)
        self.observation_space = spaces.Box(0.0, 1.0, (size,), np.float32)
        self.action_space = spaces.Discrete(candidates + 1)
        self._episode: Episode | None = None
        self._mask = np.zeros(candidates + 1, dtype=np.int8)
        self._value = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode. Return the first observation and its ``info``.

        To repeat the episode of an earlier reset, pass its ``info["draw"]`` as ``options``.

        Raises
        ------
        InputError
            If the selected episode has no decision, or if `MOST_EMPTY` consecutive random episodes
            have none.
        """
        super().reset(seed=seed)
        for _ in range(1 if options else MOST_EMPTY):
            self.close()
            if options:
                draw = self._episodes.chosen(options)
            else:
                draw = self._episodes.draw(self.np_random)
            self._episode = Episode(*self._episodes.stage(draw), self._setting)
            question = self._episode.start()
            if question:
                self._value = 0.0
                observation, self._mask = question
                return observation, self._info(draw)
        expected = "more failures (mtbf), a longer window or more load"
        raise InputError("the episode has no decision for the agent", "rebat.env", expected)

    def step(self, action: Any) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Continue with an action until the next decision, or until the end of the episode."""
        if self._episode is None:
            raise InputError("no episode is running", "step", "reset() first")
        number, invalid = self._valid(action)
        try:
            question = self._episode.answer(number)
        except Exception:
            self.close()
            raise
        totals = self._episode.totals
        value = self._reward(totals)
        reward, self._value = value - self._value, value
        if question:
            observation, self._mask = question
            info = self._info()
        else:
            observation, self._mask = self._over()
            info = self._info() | {"totals": msgspec.structs.asdict(totals)}
            self.close()
        if invalid:
            info["invalid_action"] = True
        return observation, reward, question is None, False, info

    def _valid(self, action: Any) -> tuple[int, bool]:
        """Return the action to carry out, and whether ``action`` is invalid."""
        none = len(self._mask) - 1
        if self.action_space.contains(action) and self._mask[int(action)]:
            return int(action), False
        return (none if self._mask[none] else int(self._mask.argmax())), True

    def _over(self) -> tuple[Observation, ActionMask]:
        """Return an empty observation, in which only the action K is valid."""
        mask = np.zeros_like(self._mask)
        mask[-1] = 1
        return np.zeros(self.observation_space.shape or (), dtype=np.float32), mask

    def _info(self, draw: Draw | None = None) -> dict[str, Any]:
        assert self._episode is not None
        info = {"action_mask": self._mask, "time": to_s(self._episode.now_us)}
        return info | ({"draw": msgspec.structs.asdict(draw)} if draw else {})

    def action_masks(self) -> ActionMask:
        """Return a mask of shape (K + 1,), with 1 for each action that is valid now."""
        return self._mask

    @property
    def ledger(self) -> Ledger:
        """The records of the running episode. They stay available after its end."""
        if self._episode is None:
            raise InputError("no episode is running", "ledger", "reset() first")
        return self._episode.session.ledger

    @property
    def n_jobs(self) -> int:
        """The number of jobs of the running episode."""
        if self._episode is None:
            raise InputError("no episode is running", "n_jobs", "reset() first")
        return self._episode.n_jobs

    def close(self) -> None:
        """End the episode."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None


def _listed(workload: Workloads) -> list[WorkloadLike]:
    return [workload] if isinstance(workload, Workload | str | Path) else list(workload)


def _scenario_options(options: dict[str, Any]) -> ScenarioOptions:
    """Return the options of the scenario, with the environment's defaults."""
    names = [name for name in OPTIONS if name not in UNUSED]
    for name in options:
        if name not in names:
            raise unknown_name("option", name, names)
    own = {"law", "failures"} & options.keys()
    defaults = {name: value for name, value in DEFAULTS.items() if not (own and name == "mtbf")}
    return converted(defaults | options, ScenarioOptions)
