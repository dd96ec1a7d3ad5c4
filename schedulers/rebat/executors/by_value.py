# SPDX-License-Identifier: Apache-2.0
"""Tasks as bytes for worker processes, including classes that a script or notebook defines.

cloudpickle can serialise these classes. Structs of msgspec are an exception, because the fields of
a struct are fixed when its class is created. Therefore, this module serialises the class of a
struct as its fields, followed by its other attributes.
"""

from __future__ import annotations

import inspect
import io
import sys
from typing import Any

import cloudpickle
import msgspec

_CONFIG = ("frozen", "forbid_unknown_fields", "tag", "tag_field", "omit_defaults", "array_like")
_OF_MSGSPEC = {
    "__struct_fields__",
    "__struct_config__",
    "__match_args__",
    "__struct_defaults__",
    "__struct_encode_fields__",
    "__annotations__",
    "__dict__",
    "__weakref__",
    "__slots__",
    "__module__",
    "__qualname__",
}


def by_value(task: Any) -> bytes:
    """Return an object as bytes that `pickle.loads` reads in another process."""
    buffer = io.BytesIO()
    _Pickler(buffer).dump(task)
    return buffer.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, obj: Any) -> Any:
        """Return how to serialise an object, or NotImplemented to let cloudpickle decide."""
        if isinstance(obj, type) and issubclass(obj, msgspec.Struct) and not _importable(obj):
            return _struct, _creation(obj), _other_attributes(obj), None, None, _add
        return super().reducer_override(obj)


def _importable(kind: type) -> bool:
    """Return whether another process can import a class by its name."""
    module = sys.modules.get(kind.__module__)
    return kind.__module__ != "__main__" and getattr(module, kind.__name__, None) is kind


def _creation(kind: type[msgspec.Struct]) -> tuple[Any, ...]:
    """Return the arguments with which `_struct` creates a class again."""
    own = inspect.get_annotations(kind)
    fields = [_parts(field) for field in msgspec.structs.fields(kind) if field.name in own]
    config = {name: getattr(kind.__struct_config__, name) for name in _CONFIG}
    at_once = {name: kind.__dict__[name] for name in ("__post_init__",) if name in kind.__dict__}
    return kind.__name__, fields, kind.__bases__, at_once, config


def _parts(field: msgspec.structs.FieldInfo) -> tuple[str, Any, dict[str, Any]]:
    """Return name, type and default of a field."""
    defaults = {"default": field.default, "default_factory": field.default_factory}
    given = {name: value for name, value in defaults.items() if value is not msgspec.NODEFAULT}
    return field.name, field.type, given


def _struct(name: str, fields: Any, bases: Any, namespace: Any, config: Any) -> type:
    made = [(label, of, msgspec.field(**given)) for label, of, given in fields]
    return msgspec.defstruct(name, made, bases=bases, namespace=namespace, **config)


def _other_attributes(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return methods, properties and class variables of a class."""
    skipped = _OF_MSGSPEC | set(kind.__struct_fields__) | {"__post_init__"}
    return {name: value for name, value in kind.__dict__.items() if name not in skipped}


def _add(kind: type, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        setattr(kind, name, value)
