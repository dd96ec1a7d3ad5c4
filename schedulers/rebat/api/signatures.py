# SPDX-License-Identifier: Apache-2.0
"""Displayed signatures of functions.

Functions like `rebat.run` receive options as ``**options``, because the options are declared in
structs. The displayed signature lists these options, for completion and help in notebooks. It has
no effect on calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, signature
from typing import Any, Literal, TypeVar

import msgspec

from rebat.api.failures import Duration
from rebat.core.declared import Declared, declared

Function = TypeVar("Function", bound=Callable[..., Any])


def lists(parameters: Iterable[Parameter], others: bool = False) -> Callable[[Function], Function]:
    """Replace ``**options`` in the displayed signature of a function with parameters.

    Parameters
    ----------
    parameters : iterable of Parameter
        Keyword-only parameters. Parameters that the function itself declares are ignored.
    others : bool
        Whether the function accepts further options, so that ``**options`` remains.
    """

    def decorated(function: Function) -> Function:
        shown = signature(function)
        own = [p for p in shown.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        rest = [p for p in shown.parameters.values() if p.kind is Parameter.VAR_KEYWORD]
        more = [p for p in parameters if p.name not in shown.parameters]
        listed = shown.replace(parameters=[*own, *more, *(rest if others else ())])
        function.__signature__ = listed  # type: ignore[attr-defined]
        return function

    return decorated


def options_in(struct: type[msgspec.Struct], *names: str) -> list[Parameter]:
    """Return options of a struct as parameters, with their types and defaults."""
    options = declared(struct)
    return [keyword(name, options[name].default, _type(options[name])) for name in names]


def _type(option: Declared) -> Any:
    kind = Literal[option.choices] if option.choices else option.kind
    kind = Duration if option.is_duration else kind
    return kind | None if option.default is None else kind


def keyword(name: str, default: Any, annotation: Any = Any) -> Parameter:
    """Return a keyword-only parameter. If the default is `msgspec.NODEFAULT`, it becomes None."""
    default = None if default is msgspec.NODEFAULT else default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
