# SPDX-License-Identifier: Apache-2.0
"""Agents: rules of schedulers, a random agent, and a linear agent with weights from a file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from rebat.core.errors import InputError
from rebat.core.files import file_hash
from rebat.env.decisions import Agent
from rebat.env.observation import LAYOUTS, VICTIM, ActionMask, Observation, ObservationLayout

_NAMES = list(VICTIM.candidate)


def _first_of_rank(observation: Observation, mask: ActionMask, rank: str) -> int:
    """Choose the candidate that a victim rule ranks first, or none if it is invalid."""
    candidates, _ = VICTIM.split(observation)
    ranks = np.where(candidates[:, 0] > 0, candidates[:, _NAMES.index(rank)], np.inf)
    row = int(ranks.argmin())
    return row if mask[row] else len(mask) - 1


def fewest_nodes(observation: Observation, mask: ActionMask) -> int:
    """Choose the victim of rule V1 (see `RANKS`)."""
    return _first_of_rank(observation, mask, "rank V1")


def latest_release(observation: Observation, mask: ActionMask) -> int:
    """Choose the victim of rule V2 (see `RANKS`)."""
    return _first_of_rank(observation, mask, "rank V2")


def least_lost_work(observation: Observation, mask: ActionMask) -> int:
    """Choose the victim of the rule least-lost-work."""
    return _first_of_rank(observation, mask, "rank lost")


def first_fit(observation: Observation, mask: ActionMask) -> int:
    """Choose the first valid candidate, or none if no candidate is valid."""
    return int(mask.argmax())


RULES: dict[str, Agent] = {
    "fewest-nodes": fewest_nodes,
    "latest-release": latest_release,
    "least-lost-work": least_lost_work,
    "first-fit": first_fit,
}
"""Agents that apply the rule of a scheduler. The scheduler 'greedy' uses 'first-fit'."""


class LinearAgent(msgspec.Struct, frozen=True):
    """An agent that chooses the valid action with the largest score.

    The score is a linear function of the features.

    Attributes
    ----------
    decision : str
        'victim' or 'queue' (see `AgentPolicy`).
    candidate : float64 array, shape (F,)
        Weights of the features of a candidate.
    context : float64 array, shape (C + 1,)
        Weights of the context features, followed by a constant. They determine the score of the
        action "no candidate".
    """

    decision: str
    candidate: npt.NDArray[np.float64]
    context: npt.NDArray[np.float64]

    def __call__(self, observation: Observation, mask: ActionMask) -> int:
        """Return the valid action with the largest score. If several have it, return the first."""
        candidates, context = self.layout.split(observation.astype(np.float64))
        scores = np.append(
            (candidates * self.candidate).sum(axis=1),
            (context * self.context[:-1]).sum() + self.context[-1],
        )
        return int(np.where(mask > 0, scores, -np.inf).argmax())

    @property
    def layout(self) -> ObservationLayout:
        """The layout of the observations."""
        return LAYOUTS[self.decision]

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """All weights, shape (F + C + 1,)."""
        return np.concatenate([self.candidate, self.context])

    @staticmethod
    def of_weights(decision: str, weights: npt.NDArray[np.float64]) -> LinearAgent:
        """Return the agent with these weights, shape (F + C + 1,).

        Raises
        ------
        InputError
            If the number of weights is wrong, or if a weight is not finite.
        """
        layout = LAYOUTS[decision]
        n_candidate, n = len(layout.candidate), len(layout.candidate) + len(layout.context) + 1
        if weights.shape != (n,) or not np.isfinite(weights).all():
            bad = f"has weights of shape {weights.shape}"
            problem = bad if weights.shape != (n,) else "has a weight that is not finite"
            raise InputError(problem, "agent", f"{n} finite weights")
        return LinearAgent(decision, weights[:n_candidate], weights[n_candidate:])

    def save(self, path: Path) -> None:
        """Write the agent to a file (.npz) with its features."""
        names = [*self.layout.candidate, *self.layout.context]
        with path.open("wb") as file:
            np.savez(
                file,
                decision=np.array(self.decision),
                features=np.array(names),
                weights=self.weights,
            )

    @staticmethod
    def load(path: str | Path, sha256: str = "") -> LinearAgent:
        """Read an agent from a file. If ``sha256`` is set, the file must have this hash.

        Raises
        ------
        InputError
            If the file cannot be read, has another hash, or was trained with other features.
        """
        expected = "a file of LinearAgent.save"
        try:
            if sha256 and file_hash(Path(path)) != sha256:
                raise InputError("has changed", str(path), f"sha256 {sha256}")
            with np.load(path, allow_pickle=False) as file:
                decision, names = str(file["decision"]), file["features"].tolist()
                weights = file["weights"].astype(np.float64)
        except OSError as error:
            reason = "no such file" if isinstance(error, FileNotFoundError) else str(error)
            raise InputError(reason, str(path), expected) from None
        except (KeyError, ValueError, AttributeError, zipfile.BadZipFile) as error:
            raise InputError(f"cannot be read: {error}", str(path), expected) from None
        layout = LAYOUTS.get(decision)
        if layout is None or names != [*layout.candidate, *layout.context]:
            problem = (
                "was trained with input features that differ from those of this version of rebat"
            )
            raise InputError(problem, str(path), "an agent trained with this version")
        return LinearAgent.of_weights(decision, weights)
