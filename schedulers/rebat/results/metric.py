# SPDX-License-Identifier: Apache-2.0
"""A metric with its title, unit and definition, and the flat form of a summary.

The fields of a summary declare metrics in their types, like ``Annotated[float, Metric(...)]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import structs

from rebat.core.declared import without_none
from rebat.core.numbers import Form, duration, hundredths, number, percent

Name = tuple[str, str | None]
"""The name of a metric, and the size class of its jobs."""

Values = Mapping[Name, float]
"""All metrics of one run."""

Unit = Literal["share", "time", "factor", "count", "node time"]
"""Type of a value, like a share, seconds or node-seconds. It determines the format."""

UNITS: dict[Unit, str] = {
    "share": "share",
    "time": "s",
    "factor": "factor",
    "count": "count",
    "node time": "node-s",
}
"""The unit of a value in files. In files, a share of 50 % is 0.5."""

FORMS: dict[Unit, Form] = {
    "share": percent,
    "time": duration,
    "factor": hundredths,
    "count": number,
    "node time": number,
}
"""How values of a unit are written for readers. Comparisons show node time as a share."""

Whole = Literal[
    "",
    "node time",
    "all node time",
    "node time that was up",
    "core time",
    "time",
    "time of spare nodes",
]
"""The total to which a share refers."""


class Metric(msgspec.Struct, frozen=True):
    """A metric.

    Attributes
    ----------
    title : str
        A readable title, indented if the metric is a detail of the metric above it.
    unit : Unit
    better : {"low", "high", ""}
        Whether low or high values are better. Empty if neither is better.
    whole : Whole
        The denominator of a share. Comparisons show the unit ``node time`` as a share of the
        window's node time.
    definition : str
        One line for the documentation, in Markdown.
    only_with : tuple of str
        Comparisons list the metric only if at least one of these metrics is not 0 for a policy.
    of : callable, optional
        Function that computes the value for comparisons from the metrics of a run.
    listed : bool
        Whether comparisons list the metric. They show other metrics only if ``--columns`` selects
        them.
    derived : bool
        Whether the metric exists only in comparisons (computed by `of`), not in the files of a run.
    name : str
        The name in ``comparison.csv`` and ``results.parquet``, which follows from the field; ``*``
        means any partition or purpose.
    by_class : bool
        Whether the metric is measured by size class.
    """

    title: str
    unit: Unit
    better: Literal["low", "high", ""] = ""
    whole: Whole = ""
    definition: str = ""
    only_with: tuple[str, ...] = ()
    of: Callable[[Values], float | None] | None = None
    listed: bool = True
    derived: bool = False
    name: str = ""
    by_class: bool = False

    @property
    def heading(self) -> str:
        """The title. If the metric is a share, its denominator follows."""
        return f"{self.title}, share of {self.whole}" if self.whole else self.title

    def recorded(self, size_class: str | None) -> str:
        """Return a short heading for values in files, in which node time is in node-seconds."""
        if self.unit == "node time":
            heading = f"{self.title.strip()}, node-seconds"
        elif self.whole == "node time that was up":  # a utilisation
            heading = self.title
        else:
            heading = self.heading.strip()
        return heading if size_class in (None, "all") else f"{heading}, jobs {size_class}"

    def printed(self, size_class: str | None) -> str:
        """Return the heading in a printed comparison, whose caption explains node time."""
        usual = self.whole in ("node time", "node time that was up")
        heading = self.title if usual else self.heading
        return heading if size_class in (None, "all") else f"{heading}, jobs {size_class}"

    @property
    def form(self) -> Form:
        """How values are written for readers."""
        return FORMS[self.unit]

    def named(self, name: str) -> Metric | None:
        """Replace ``*`` so that the metric is called ``name``. If this is impossible, return None.

        >>> Metric("drains of *", "time", name="drains_*_s").named("drains_gpu_s").title
        'drains of gpu'
        """
        before, star, after = self.name.partition("*")
        if not star or name == self.name:
            return self if name == self.name else None
        part = name[len(before) : len(name) - len(after)]
        if not (part and name == before + part + after):
            return None
        return structs.replace(self, name=name, title=self.title.replace("*", part))

    def compared(self, values: Values, size_class: str | None = None) -> float | None:
        """Return the value for comparisons, with node time as a share of the window's node time."""
        value = values.get((self.name, size_class)) if self.of is None else self.of(values)
        if value is None or self.unit != "node time":
            return value
        total = values["platform_total", None]
        return value / total if total else 0.0

    @property
    def compared_unit(self) -> Unit:
        """The unit of `compared`."""
        return "share" if self.unit == "node time" else self.unit


def name_text(name: Name) -> str:
    """Return the name of a metric in the syntax of ``--columns`` and ``--until-metric``.

    >>> name_text(("flow_max_s", "all"))
    'flow_max_s:all'
    """
    return ":".join(filter(None, name))


def name_of(text: str) -> Name:
    """Parse the name of a metric. This is the inverse of `name_text`.

    >>> name_of("flow_max_s:[512, 2048)")
    ('flow_max_s', '[512, 2048)')
    """
    name, _, size_class = text.partition(":")
    return name, size_class or None


_BY_CLASS = {"flows": "flow", "service_classes": "service", "training_classes": "training"}
"""Prefix of metric names for each field of a summary that has metrics by size class."""


def flat_metrics(summary: dict[str, Any]) -> Iterator[tuple[str, str | None, float]]:
    """Yield name, size class and value of each metric of a summary.

    Metrics of the entire run have no size class.

    >>> list(flat_metrics({"jobs": 3, "flows": {"all": {"max_s": 2.0}}, "window_s": [0, 9]}))
    [('jobs', None, 3.0), ('flow_max_s', 'all', 2.0), ('window_first_s', None, 0.0), \
('window_last_s', None, 9.0)]
    """
    for name, value in summary.items():
        if name in _BY_CLASS:
            for size_class, of in value.items():
                prefix = _BY_CLASS[name]
                present = ((n, v) for n, v in (of or {}).items() if v is not None)
                yield from ((f"{prefix}_{n}", size_class, float(v)) for n, v in present)
        elif name == "window_s":
            yield "window_first_s", None, float(value[0])
            yield "window_last_s", None, float(value[1])
        elif isinstance(value, dict):
            for inner, size_class, number in flat_metrics(value):
                yield f"{name}_{inner}", size_class, number
        elif isinstance(value, int | float):
            yield name, None, float(value)


def metrics_of(kind: Any, prefix: str = "", by_class: bool = False) -> Iterator[Metric]:
    """Yield the metrics that the fields of a type declare, named as in `flat_metrics`.

    A dict of numbers has one metric, and a dict of structs can have a dict of metrics that replace
    those of the structs. In the names, ``*`` represents the key.
    """
    for field, hint in get_type_hints(kind, include_extras=True).items():
        bare, *declared = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        bare, name = without_none(bare), f"{prefix}{field}"
        if field in _BY_CLASS:
            of_class = without_none(get_args(bare)[1])
            yield from metrics_of(of_class, f"{_BY_CLASS[field]}_", by_class=True)
        elif field == "window_s":
            for end, metric in zip(("first", "last"), declared[0], strict=True):
                yield structs.replace(metric, name=f"window_{end}_s")
        elif isinstance(bare, type) and issubclass(bare, msgspec.Struct):
            yield from metrics_of(bare, f"{name}_")
        elif get_origin(bare) is dict and isinstance(declared[0], dict):
            for inner, metric in declared[0].items():
                yield structs.replace(metric, name=f"{name}_*_{inner}")
        else:
            name += "_*" if get_origin(bare) is dict else ""
            yield structs.replace(declared[0], name=name, by_class=by_class)
