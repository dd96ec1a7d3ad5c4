# SPDX-License-Identifier: Apache-2.0
"""The version of rebat."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def rebat_version() -> str:
    """Return the installed version."""
    try:
        return version("rebat")
    except PackageNotFoundError:
        return "0+unknown"
