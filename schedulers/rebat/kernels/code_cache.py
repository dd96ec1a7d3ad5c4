# SPDX-License-Identifier: Apache-2.0
"""A cache on disk for the machine code of the kernels, so that they are compiled only once."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary, ll
from numba.core.compiler import Compiler
from numba.core.runtime import _nrt_python
from numba.misc.appdirs import AppDirs

from rebat.kernels.compiling import compiling

FOLDERS = "kernels", "models", "rules", "drive"
"""The folders of the package with compiled functions."""

_MARKS = "kernel|inlined|step|inner|loop|rule|inlined_rule|whole_rule"
# no file begins with these lines, and a pattern that begins with ^ takes fifty times as long
_COMPILED = re.compile(rf"\n@({_MARKS})\b")
_IMPORT = re.compile(r"\nfrom (rebat[\w.]*) import (\([^)]*\)|.*)")
_CONSTANT = re.compile(r"\b[A-Z][A-Z0-9_]*\b")


def _short_name(record: Any, *arguments: Any) -> None:
    """Initialize numba's type of a record with a short name.

    By default, the name contains all fields, and so does each symbol of the machine code. This
    doubles its size.
    """
    _INITIALIZE(record, *arguments)
    record.name = f"Record{sha256(record.name.encode()).hexdigest()[:16]}"


_INITIALIZE = numba.types.Record.__init__
numba.types.Record.__init__ = _short_name


class CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """A file of numba's cache with a checksum, so that damaged files are not loaded."""

    def _save_data(self, name: str, data: Any) -> None:
        code = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(code + sha256(code).digest())  # numba ignores trailing bytes

    def _load_data(self, name: str) -> Any:
        content = Path(self._data_path(name)).read_bytes()
        if sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
            raise ValueError(f"{name} is damaged")
        return super()._load_data(name)


_DIGEST = 32
"""Length of a sha256 in bytes."""


class _Folders(FunctionCache._impl_class):  # type: ignore[misc]
    """The folders of the cache: next to the package, or in the user's cache folder.

    Without a home folder, numba would create a folder called ~ in the working directory.
    """

    _locator_classes: ClassVar[list[Any]] = [
        locator
        for locator in FunctionCache._impl_class._locator_classes
        if "UserWide" not in locator.__name__
        or Path(AppDirs("numba", False).user_cache_dir).is_absolute()
    ]


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache with two changes: it loads faster, and checks the sources of all kernels.

    Before numba's cache loads code, it imports all modules that compilation needs, including scipy.
    These imports take longer than the simulation of a month. This cache imports only the modules of
    the code and numba's runtime. If a function has to be compiled, numba imports the rest.

    numba checks only whether the file of a function has changed, but kernels inline functions from
    other files. Therefore, this cache uses a hash of all files, the *stamp*.

    If no folder is writable, nothing is cached, and every process compiles.
    """

    _impl_class = _Folders

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            super().__init__(function)
        except RuntimeError:  # no folder is writable
            self._cache_path, self._cache_file = None, None
            self.disable()
            return
        base = self._impl.filename_base
        self._cache_file = CacheFile(self._cache_path, base, sources_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for a signature, or None if it is not in the cache."""
        _add_runtime()
        code = None
        if self._enabled:
            try:
                with self._guard_against_spurious_io_errors():
                    code = self._load_overload(sig, target_context)
            except Exception:  # unpickling a damaged or older file can raise anything
                with suppress(OSError):
                    self.flush()
        if code is None:
            compiling.begins(self._enabled)
        return code

    def signatures(self) -> list[Any]:
        """Return the types of arguments for which machine code is on disk."""
        file = self._cache_file
        try:
            return [] if file is None else [key[0] for key in file._load_index()]
        except Exception:  # unpickling a damaged or older file can raise anything
            return []

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code. If the cache is not writable, do nothing.

        In this case, every process compiles the function again.
        """
        with suppress(OSError):
            super().save_overload(sig, data)


@cache
def _add_runtime() -> None:
    """Add the functions of numba's runtime that are written in C, for code from the cache.

    The runtime's other functions are in this code already. numba compiles them again before it
    compiles its first function.
    """
    for name, address in _nrt_python.c_helpers.items():
        ll.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@cache
def sources_stamp() -> str:
    """Return the hash of the sources of all kernels and of the constants in them."""
    sources = sources_of_kernels(Path(__file__).parents[1])
    digest = sha256()
    for file in sorted(sources):
        digest.update(sources[file].encode())
    return digest.hexdigest()


def sources_of_kernels(package: Path) -> dict[Path, str]:
    """Return the files with compiled functions, and those whose constants they use, with contents.

    numba copies the values of constants to the machine code. Therefore, the files include each
    module from which one of these files imports a constant, or which it imports as a module.
    """
    sources: dict[Path, str] = {}
    for folder in FOLDERS:
        for file in (package / folder).glob("*.py"):
            text = file.read_bytes().decode()
            # jit.py and code_cache.py decide how functions are compiled
            if folder == "kernels" or _COMPILED.search(text):
                sources[file] = text
    remaining = [*sources.values()]
    while remaining:
        for module, names in _IMPORT.findall(remaining.pop()):
            path = package.joinpath(*module.split(".")[1:])
            files = [path / f"{name}.py" for name in re.findall(r"\w+", names)]
            if _CONSTANT.search(names):
                files += [path.with_suffix(".py"), path / "__init__.py"]
            for file in files:
                if file not in sources and file.is_file():
                    sources[file] = file.read_text()
                    remaining.append(sources[file])
    return sources


def is_compiled_for(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    """Return whether machine code of a kernel for these arguments is in memory or in the cache."""
    compiled = getattr(kernel, "compiled", kernel)  # the compiled function replaces the kernel
    return _types(arguments) in compiled.overloads or is_cached_for(compiled.py_func, arguments)


def is_cached_for(function: Callable[..., Any], arguments: tuple[Any, ...] | None) -> bool:
    """Return whether machine code of a function is on disk, for these arguments or for any."""
    signatures = KernelCache(function).signatures()
    return bool(signatures) if arguments is None else _types(arguments) in signatures


def _types(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(numba.typeof(argument) for argument in arguments)


def machine_code(
    function: Callable[..., Any], part: bool = False, whole: bool = False, **options: Any
) -> Any:
    """Return ``function`` compiled with this cache and the options of ``numba.njit``.

    A ``part`` is only compiled together with a function that calls it. Only Python calls a
    ``whole`` function.
    """
    if part or whole:
        options["pipeline_class"] = _PartCompiler if part else _WholeCompiler
    compiled = numba.njit(nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=part, **options)(
        function
    )
    if not numba.config.DISABLE_JIT:
        if not part:
            compiled._cache = KernelCache(function)
        compiled.get_call_template = _without_literals(compiled.get_call_template)
    return compiled


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """LLVM code that other functions contain. Alone, it is neither optimized nor machine code.

    numba optimizes each function with all that it calls, and makes machine code of it. A part would
    be optimized again in each of its callers, and in their callers.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: the function that contains the part has an environment."""


class _PartCompiler(Compiler):  # type: ignore[misc]
    def __init__(self, typing: Any, target: Any, library: Any, *arguments: Any) -> None:
        library = library or _Part(target.codegen(), "part")
        super().__init__(typing, target, library, *arguments)


class _Whole(JITCodeLibrary):  # type: ignore[misc]
    """Machine code that is stored without its LLVM code, because no other function contains it.

    Reading the LLVM code of the loop would take longer than simulating a month. Functions that do
    nothing replace it: numba reads the names of the functions from it.
    """

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        self._ensure_finalized()
        names = [each.name for each in self._final_module.functions if not each.is_declaration]
        text = "\n".join(f'define void @"{name}"() {{ ret void }}' for name in names)
        return (
            self.name,
            "object",
            (self._compiled_object, ll.parse_assembly(text).as_bitcode()),
        )


class _WholeCompiler(Compiler):  # type: ignore[misc]
    def __init__(self, typing: Any, target: Any, library: Any, *arguments: Any) -> None:
        library = library or _Whole(target.codegen(), "whole")
        library.enable_object_caching()
        super().__init__(typing, target, library, *arguments)


def _without_literals(template: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that chooses the machine code for a call by the types of its arguments.

    Otherwise, numba also compiles the function for each constant that it is called with, for the
    first values of variables, and for numbers of 32 bits. This doubles the time to compile the
    loop.
    """

    def plain(kind: Any) -> Any:
        return numba.int64 if kind == numba.int32 else numba.types.unliteral(kind)

    def chosen(args: Any, kws: Any) -> Any:
        return template(tuple(map(plain, args)), {name: plain(kind) for name, kind in kws.items()})

    return chosen
