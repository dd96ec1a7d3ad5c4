# SPDX-License-Identifier: Apache-2.0
"""The version of rebat."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

_VERSION = re.compile(r"^Version: *(.+?) *$", re.MULTILINE)


@cache
def rebat_version() -> str:
    """Return the installed version."""
    return version_of("rebat") or "0+unknown"


def version_of(package: str) -> str | None:
    """Return the version of an installed package, or None if it is not installed.

    ``importlib.metadata.version`` would also parse its description, which may be long.
    """
    try:
        installed = distribution(package)
    except PackageNotFoundError:
        return None
    line = _VERSION.search(installed.read_text("METADATA") or "")
    return line[1] if line else installed.version
