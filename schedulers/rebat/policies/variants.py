# SPDX-License-Identifier: Apache-2.0
"""Declaration and checks of the options of plannings, placements and reactions.

A variant is a struct in its own module. Its tag is the name of the variant, its docstring the help
text. Each field is an option; its annotation holds the choices or the range, and the description.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args

import msgspec
from msgspec import Meta

from rebat.core.dialect import Dialect
from rebat.core.errors import InputError, unknown_name
from rebat.models.migration import read_cost
from rebat.policies.own import is_own, own_rule


def choice(
    names: Iterable[str], description: str, custom: Callable[[Any], Any] | None = None
) -> Meta:
    """Describe an option that names a row of a table.

    ``custom`` creates a rule from a function of the user's file; without it, files are rejected.
    """
    return Meta(description=description, extra={"choices": names, "custom": custom})


def number(least: float, most: float, unit: str, description: str) -> Meta:
    """Describe an option that is a number within a range."""
    return Meta(ge=least, le=most, description=description, extra={"unit": unit})


def text(check: Callable[[Any], Any], description: str, names: Iterable[str] = ()) -> Meta:
    """Describe an option with its own notation; ``check`` raises InputError.

    ``names`` are the values that are words, for shell completion.
    """
    return Meta(description=description, extra={"check": check, "names": names})


def several(names: Iterable[str], description: str) -> Meta:
    """Describe an option that names several rows of a table, joined by +."""
    return Meta(description=description, extra={"choices": names, "several": True})


def price(option: str, cost: str | float) -> None:
    """Check the cost of a resize or a migration; raise InputError if it is not valid."""
    try:
        read_cost(str(cost))
    except InputError as error:
        raise error.at(f"axis {option}") from None


def parts(text: str) -> list[str]:
    """Split a text at its + signs.

    >>> parts("replacement+stealing")
    ['replacement', 'stealing']
    """
    return [part for part in text.split("+") if part]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a variant."""

    boxless: ClassVar[str] = ""
    """Why the variant cannot be combined with boxes of a torus; empty if it can."""

    uncustom: ClassVar[bool] = False
    """Whether the variant cannot be combined with user-defined placements either."""

    @property
    def name(self) -> str:
        """The name of the variant in text."""
        return str(type(self).__struct_config__.tag)

    def idle(self) -> frozenset[str]:
        """Return the options without an effect, depending on the other options."""
        return frozenset()

    def check(self) -> None:
        """Raise InputError for options that do not fit together."""

    def rule(self, name: str) -> Any:
        """Return the row that an option names, or the rule from the user's file."""
        value, extra = getattr(self, name), fields(type(self))[name].extra
        if is_own(value):
            return own_rule(name, value, extra["custom"])
        return extra["choices"][value]


Difference = Annotated[str, Meta(extra={"dialect": True})]
"""An option of the dialect: 'auto', or a choice of the field of `Dialect` with the same name."""


def difference(name: str) -> Meta:
    """Describe an option of the dialect."""
    (field,) = (field for field in msgspec.structs.fields(Dialect) if field.name == name)
    literal, meta = get_args(field.type)
    return choice(("auto", *get_args(literal)), meta.description)


class OptionField(msgspec.Struct, frozen=True):
    """One option: its type without the annotation, its default, and the annotation."""

    name: str
    type: Any
    default: Any
    meta: Meta

    @property
    def extra(self) -> dict[str, Any]:
        """Entries of `choice`, `number`, `text` or `several`."""
        return self.meta.extra or {}

    @property
    def names(self) -> list[str]:
        """The values that are words: all choices, or the names of a notation."""
        return [*(self.extra.get("choices") or self.extra.get("names") or ())]

    def convert(self, value: Any) -> Any:
        """Convert and check a value, which may be text.

        Raises
        ------
        InputError
            For a value of another type, outside the range, or not among the choices.
        """
        try:
            value = msgspec.convert(value, self.type, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(f"policy options: {error} - at `$.{self.name}`") from None
        if "check" in self.extra:
            self.extra["check"](value)
        elif self.extra.get("several"):
            _check_parts(self.name, value, self.extra["choices"])
        elif "choices" in self.extra:
            self._check_choice(value)
        elif self.meta.ge is not None and not self.meta.ge <= value <= self.meta.le:
            expected = f"{self.extra['unit']}, {self.meta.ge:g} to {self.meta.le:g}"
            raise InputError(f"{self.name} {value!r}", expected=expected)
        return value

    def _check_choice(self, value: str) -> None:
        if self.extra["custom"] and is_own(value):
            own_rule(self.name, value, self.extra["custom"])
        elif value not in self.extra["choices"]:
            raise unknown_name(self.name, value, self.extra["choices"])


def _check_parts(option: str, text: str, choices: Iterable[str]) -> None:
    """Check that each part exists and occurs once; 'requeue' must be the only part."""
    names = parts(text)
    for name in names:
        if name not in choices:
            raise unknown_name(option, name, choices)
    alone = "requeue" in names and len(names) > 1
    if len(set(names)) < len(names) or alone or (option == "react" and not names):
        expected = "choices joined by +, each at most once; requeue only alone"
        raise InputError(f"{option} {text!r}", expected=expected)


@lru_cache
def fields(kind: type[Options]) -> dict[str, OptionField]:
    """Return the options of a variant by name."""
    rows = {}
    for info in msgspec.structs.fields(kind):
        if annotation := get_args(info.type):
            bare, meta = annotation
            if (meta.extra or {}).get("dialect"):
                meta = difference(info.name)
            rows[info.name] = OptionField(info.name, bare, info.default, meta)
    return rows


Kind = TypeVar("Kind", bound=type[Options])


def table(*kinds: Kind) -> dict[str, Kind]:
    """Return variants by name."""
    return {str(kind.__struct_config__.tag): kind for kind in kinds}
