# SPDX-License-Identifier: Apache-2.0
"""Declarations and checks of the options of plannings, placements and reactions (*variants*).

A variant is a struct in its own module. Its tag is the name of the variant. Its docstring is the
help text. Each field is an option. The annotation of the field contains the description, and the
choices or the range.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args

import msgspec
from msgspec import Meta

from rebat.core.errors import InputError, unknown_name
from rebat.core.options import Dialect
from rebat.models.migration import read_cost
from rebat.policies.own import MARK, is_own, own_rule


def choice(
    names: Iterable[str],
    description: str,
    custom: Callable[[Any], Any] | None = None,
    other: Callable[[str], Any] | None = None,
) -> Meta:
    """Describe an option whose value is a key of a table.

    ``custom`` creates a rule from a function in the user's file. If it is not set, the option does
    not accept files. ``other`` raises InputError for a text that is not valid. If it is not set,
    the option accepts no other text.
    """
    extra = {"choices": names, "custom": custom, "other": other}
    return Meta(description=description, extra=extra)


def number(least: float, most: float, unit: str, description: str) -> Meta:
    """Describe an option that is a number within a range."""
    return Meta(ge=least, le=most, description=description, extra={"unit": unit})


def text(
    check: Callable[[Any], Any],
    description: str,
    names: Iterable[str] = (),
    custom: Callable[[Any], Any] | None = None,
) -> Meta:
    """Describe an option whose text has its own syntax.

    ``check`` raises InputError for an invalid text.

    ``names`` are the fixed words that the option accepts, for shell completion. ``custom``: see
    `choice`.
    """
    extra = {"check": check, "names": names, "custom": custom}
    return Meta(description=description, extra=extra)


def several(
    names: Iterable[str], description: str, custom: Callable[[Any], Any] | None = None
) -> Meta:
    """Describe an option whose value is one or more keys of a table, joined by +.

    ``custom``: see `choice`.
    """
    extra = {"choices": names, "several": True, "custom": custom}
    return Meta(description=description, extra=extra)


def price(option: str, cost: str | float) -> None:
    """Raise InputError if the cost of a resize or a migration is not valid."""
    try:
        read_cost(str(cost))
    except InputError as error:
        raise error.at(f"axis {option}") from None


def parts(text: str) -> list[str]:
    """Split a text at its + signs, except within the path of a FILE.py:NAME.

    >>> parts("replacement+stealing"), parts("stealing+/c++/mine.py:React")
    (['replacement', 'stealing'], ['stealing', '/c++/mine.py:React'])
    """
    return _PART.findall(text)


_PART = re.compile(rf"[\w-]+(?=\+|$)|[^+].*?{re.escape(MARK)}[^+]+|[^+]+")
"""A name, a user-defined rule, or another text without a + sign."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a variant."""

    boxless: ClassVar[str] = ""
    """Reason why the variant cannot be combined with boxes of a torus.

    The text is empty if it can be combined.
    """

    uncustom: ClassVar[bool] = False
    """Whether the variant also cannot be combined with user-defined placements."""

    @property
    def name(self) -> str:
        """The name of the variant, as in the text of options."""
        return str(type(self).__struct_config__.tag)

    def idle(self) -> frozenset[str]:
        """Return the options that have no effect, given the other options."""
        return frozenset()

    def check(self) -> None:
        """Raise InputError if options of the variant cannot be combined."""

    def rule(self, name: str) -> Any:
        """Return the table entry for the value of an option, or the rule from the user's file."""
        value, extra = getattr(self, name), fields(type(self))[name].extra
        if is_own(value):
            return own_rule(name, value, extra["custom"])
        return extra["choices"][value]


Difference = Annotated[str, Meta(extra={"dialect": True})]
"""An option with the name of a field of `Dialect`, the choices of this field, and 'auto'."""


def difference(name: str) -> Meta:
    """Describe an option of the dialect."""
    (field,) = (field for field in msgspec.structs.fields(Dialect) if field.name == name)
    literal, meta = get_args(field.type)
    return choice(("auto", *get_args(literal)), meta.description)


class OptionField(msgspec.Struct, frozen=True):
    """An option: its name, type, default and annotation."""

    name: str
    type: Any
    default: Any
    meta: Meta

    @property
    def extra(self) -> dict[str, Any]:
        """The data that `choice`, `number`, `text` or `several` added to the annotation."""
        return self.meta.extra or {}

    @property
    def names(self) -> list[str]:
        """The fixed words that the option accepts."""
        return [*(self.extra.get("choices") or self.extra.get("names") or ())]

    def convert(self, value: Any) -> Any:
        """Check a value, which may be text, and return it in the type of the option."""
        try:
            value = msgspec.convert(value, self.type, strict=False)
        except msgspec.ValidationError as error:
            raise InputError(f"policy options: {error} - at `$.{self.name}`") from None
        if "check" in self.extra:
            custom = self.extra["custom"]
            own = custom and is_own(value)
            _ = own_rule(self.name, value, custom) if own else self.extra["check"](value)
        elif self.extra.get("several"):
            self._check_parts(value)
        elif "choices" in self.extra:
            self._check_name(value)
        elif self.meta.ge is not None and not self.meta.ge <= value <= self.meta.le:
            expected = f"{self.extra['unit']}, {self.meta.ge:g} to {self.meta.le:g}"
            raise InputError(f"{self.name} is {value!r}", expected=expected)
        return value

    def _check_name(self, name: str) -> None:
        """Raise InputError if a text is neither a choice nor user-defined code."""
        choices, custom = self.extra["choices"], self.extra["custom"]
        if custom and is_own(name):
            own_rule(self.name, name, custom)
        elif name not in choices:
            if other := self.extra.get("other"):
                other(name)
                return
            raise unknown_name(self.name, name, [*choices, "FILE.py:NAME"] if custom else choices)

    def _check_parts(self, text: str) -> None:
        """Raise InputError for unknown or duplicate parts, and for 'requeue' with other parts."""
        names = parts(text)
        for name in names:
            self._check_name(name)
        alone = "requeue" in names and len(names) > 1
        if len(set(names)) < len(names) or alone or (self.name == "react" and not names):
            expected = "choices joined by +, without duplicates; requeue cannot be combined"
            raise InputError(f"{self.name} is {text!r}", expected=expected)


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
