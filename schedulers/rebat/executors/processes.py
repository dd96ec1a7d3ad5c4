# SPDX-License-Identifier: Apache-2.0
"""Tasks on processes of this machine.

Tasks may contain objects of classes that a script or notebook defines, because cloudpickle sends
these classes by value. Structs of msgspec are an exception, because the fields of a struct are
fixed when its class is created. Therefore, this module sends the class of a struct as its fields,
followed by its other attributes. Workers read only data that this process sends.

If a worker process dies, another worker tries its task once more. If this worker also dies, the
function ``lost`` receives the task and returns its outcome. Other tasks are not affected.
"""

from __future__ import annotations

import gc
import inspect
import io
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import SpawnContext
from typing import Any, Generic, NamedTuple

import cloudpickle
import msgspec

from rebat.core.errors import InputError, RebatError
from rebat.executors.resources import Lost, R, Resources, T, Work, reason

TRIES = 2
"""Maximum number of attempts for a task whose worker dies."""


class _Worker(Generic[T]):
    """A process that performs one task at a time, and the pipe to it."""

    def __init__(self, context: SpawnContext, work: Work[T, Any]) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        # Block signals until the worker ignores them. The parent handles interrupts and the signals
        # that terminals send to all processes of a command.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
        try:
            with _without_main():
                self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.task: T | None = None
        self.tries = 0

    def give(self, task: T, tries: int) -> None:
        """Send a task. (If the worker is dead, this is detected when its answer is read.)"""
        from rebat.executors.processes import by_value

        self.task, self.tries = task, tries
        try:
            content = by_value(task)
        except Exception as error:
            problem = f"cannot send a task to worker processes: {reason(error)}"
            expected = "`--workers 1`, or only objects that cloudpickle can pickle"
            raise InputError(problem, expected=expected) from None
        with suppress(OSError):
            self.pipe.send_bytes(content)

    def death(self) -> str:
        """Wait until the process ends, and return a text that states how it died."""
        self.process.join(10)
        code = self.process.exitcode
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def stop(self) -> None:
        """Terminate the process."""
        self.pipe.close()
        self.process.terminate()
        self.process.join(10)


@contextmanager
def _without_main() -> Iterator[None]:
    """Prevent processes that are started in the block from running the user's script again.

    multiprocessing finds the main module through ``__file__`` and ``__spec__`` (see
    `multiprocessing.spawn.get_preparation_data`). Tasks do not need the main module.
    """
    main = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.pop("__file__", None)
    main["__spec__"] = None
    try:
        yield
    finally:
        main.pop("__spec__")
        main.update(hidden)


def _serve(pipe: Any, work: Work[Any, Any]) -> None:
    """Receive tasks and send outcomes until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
    threading.Thread(target=_die_with_parent, daemon=True).start()
    imported = False
    with suppress(OSError):
        while True:
            try:
                task = pipe.recv()
            except (EOFError, OSError):
                break
            except Exception as error:  # this process cannot create the task's class
                pipe.send(_Trouble(reason(error)))
            else:
                pipe.send(_answer(work, task))
                if not imported:  # exclude imported modules from garbage collection
                    gc.collect()
                    gc.freeze()
                    imported = True


class _Trouble(NamedTuple):
    """An error in a worker, which is sent instead of an outcome."""

    text: str


def _answer(work: Work[Any, Any], task: Any) -> Any:
    try:
        return work(task)
    except Exception as error:
        return _Trouble(reason(error))


def _die_with_parent() -> None:
    """Exit when the parent process dies, so that no workers are left."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def on_processes(
    tasks: Sequence[T], work: Work[T, R], lost: Lost[T, R], resources: Resources
) -> Generator[R]:
    """Yield outcomes as they complete, from new processes on this machine."""
    context = get_context("spawn")
    waiting = deque((task, 1) for task in tasks)
    crew: list[_Worker[T]] = []
    try:
        for _ in range(min(resources.workers, len(tasks))):
            crew.append(_Worker(context, work))
            crew[-1].give(*waiting.popleft())
        while crew:
            ready = connection.wait([worker.pipe for worker in crew])
            for worker in [worker for worker in crew if worker.pipe in ready]:
                yield from _collect(worker, crew, waiting, context, work, lost)
    finally:
        for worker in crew:
            worker.stop()


def _collect(
    worker: _Worker[T],
    crew: list[_Worker[T]],
    waiting: deque[tuple[T, int]],
    context: SpawnContext,
    work: Work[T, R],
    lost: Lost[T, R],
) -> Iterator[R]:
    """Handle the outcome or death of a worker. Send the next task to it or to its replacement."""
    task = worker.task
    assert task is not None
    try:
        outcome = worker.pipe.recv()
        if isinstance(outcome, _Trouble):
            raise RebatError(outcome.text)
        yield outcome
    except (EOFError, OSError):
        crew.remove(worker)
        how = worker.death()
        worker.stop()
        if worker.tries < TRIES:
            waiting.appendleft((task, worker.tries + 1))
        else:
            yield lost(task, f"the worker died ({how}), {TRIES} times")
        if not waiting:
            return
        worker = _Worker(context, work)
        crew.append(worker)
    if waiting:
        worker.give(*waiting.popleft())
    else:
        crew.remove(worker)
        worker.stop()


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
