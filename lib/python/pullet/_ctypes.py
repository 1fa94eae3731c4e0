"""Handle and Key as _native.c has them, through ctypes: where that is not built, and slower.

What surprises: Python's own code runs while there are pointers into the open version, so a signal
handler or another thread may come between any two steps.  Hence a lock, and a count of those who
read, which a handler may not move or close under.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import functools
import os
import threading
from datetime import timedelta
from typing import Any, Callable, Optional

_NULL, _BOOL, _INT, _DOUBLE, _STRING, _LIST, _MAP = range(7)
_INT64_MIN = -(2**63)
_ABSENT = object()


class _Content(ctypes.Union):
    _fields_ = [
        ("boolean", ctypes.c_bool),
        ("integer", ctypes.c_int64),
        ("number", ctypes.c_double),
        ("count", ctypes.c_uint64),
    ]


class _Value(ctypes.Structure):
    """struct pullet_value."""

    _anonymous_ = ("content",)
    _fields_ = [
        ("type", ctypes.c_int),
        ("len", ctypes.c_size_t),
        ("text", ctypes.c_void_p),
        ("content", _Content),
    ]


_Visit = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_Value), ctypes.c_void_p
)

_HANDLE, _KEY = ctypes.c_void_p, ctypes.c_char_p
# name: (may it take long?, result, arguments)
_FUNCTIONS = {
    "open": (True, ctypes.c_int, _KEY, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p)),
    "refresh": (True, ctypes.c_int, _HANDLE),
    "wait": (True, ctypes.c_int, _HANDLE, ctypes.c_int),
    "fd": (False, ctypes.c_int, _HANDLE),
    "close": (False, None, _HANDLE),
    "get": (False, ctypes.c_int, _HANDLE, _KEY, ctypes.c_size_t, ctypes.POINTER(_Value)),
    "get_string": (False, ctypes.c_char_p, _HANDLE, _KEY, ctypes.c_char_p),
    "get_int": (False, ctypes.c_int64, _HANDLE, _KEY, ctypes.c_int64),
    "get_double": (False, ctypes.c_double, _HANDLE, _KEY, ctypes.c_double),
    "get_bool": (False, ctypes.c_bool, _HANDLE, _KEY, ctypes.c_bool),
    "get_duration_ms": (False, ctypes.c_int64, _HANDLE, _KEY, ctypes.c_int64),
    "get_size": (False, ctypes.c_int64, _HANDLE, _KEY, ctypes.c_int64),
    "each": (False, ctypes.c_int, _HANDLE, _KEY, _Visit, ctypes.c_void_p),
    "generation": (False, ctypes.c_uint64, _HANDLE),
    "version": (False, ctypes.c_char_p, _HANDLE),
    "count": (False, ctypes.c_size_t, _HANDLE),
    "age_ms": (False, ctypes.c_int64, _HANDLE),
    "stale": (False, ctypes.c_bool, _HANDLE),
    "withdrawn": (False, ctypes.c_bool, _HANDLE),
    "strerror": (False, ctypes.c_char_p, ctypes.c_int),
    "explain": (True, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t),
}


class _Library:
    """The C functions: long ones let other Python threads run, short ones keep the GIL."""

    def __init__(self, path: str) -> None:
        self._path = path
        slow, fast = ctypes.CDLL(path), ctypes.PyDLL(path)
        for name, (is_slow, result, *arguments) in _FUNCTIONS.items():
            function = getattr(slow if is_slow else fast, "pullet_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)


@functools.lru_cache(maxsize=None)
def _library() -> Any:
    name = os.environ.get("PULLET_LIBRARY")
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_library.so")
    if name or os.path.exists(bundled):
        return _Library(name or bundled)
    try:
        return _Library("libpullet.so.0")
    except OSError:
        found = ctypes.util.find_library("pullet")
        if not found:
            raise
        return _Library(found)


def strerror(error: int) -> str:
    """Return the sentence of an error."""
    return _library().strerror(error).decode()


def explain(config_or_path: bytes, error: int) -> str:
    """Return the sentence of an error of opening it."""
    text = ctypes.create_string_buffer(512)
    return _decode(_library().explain(config_or_path, error, text, len(text)))


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _encode(key: str) -> bytes:
    if not isinstance(key, str):
        raise TypeError("a key is a str")
    return key.encode("utf-8", "surrogateescape")


def _scalar(value: _Value) -> Any:
    """Of a list or map: how many items or members."""
    kind = value.type
    if kind == _STRING:
        return _decode(ctypes.string_at(value.text, value.len))
    if kind == _INT:
        return value.integer
    if kind == _BOOL:
        return value.boolean
    if kind == _DOUBLE:
        return value.number
    return value.count if kind >= _LIST else None


class Handle:
    """One struct pullet."""

    def __new__(cls, *_: object, **__: object) -> Handle:
        self = super().__new__(cls)
        self._handle: Optional[int] = None
        self._closing = False
        self._reading = 0  # calls that point into the open version; a signal handler can be inside
        self._lock = threading.RLock()
        self._c = _library()
        self._value = _Value()
        self._ref = ctypes.byref(self._value)
        return self

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def close(self) -> None:
        """Free the handle; a second time does nothing."""
        self._closing = True
        with self._lock:
            if self._handle:
                if self._reading:
                    self._closing = False
                    self._not_reading()
                handle, self._handle = self._handle, None
                self._c.close(handle)

    def __getitem__(self, key: str) -> Any:
        found = self._read(key)
        if found is _ABSENT:
            raise KeyError(key)
        return found

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value, or default."""
        found = self._read(key)
        return default if found is _ABSENT else found

    def get_str(self, key: str, default: Any = None) -> Any:
        """Return the text of any scalar as it was written, or default."""
        with self._lock:
            self._reading += 1
            try:
                data = self._c.get_string(self._open_handle(), self._name_of(key), None)
            finally:
                self._reading -= 1
        return default if data is None else _decode(data)

    def get_int(self, key: str, default: Any = None) -> Any:
        """Return an integer, or a string that is one; otherwise default."""
        return self._typed(self._c.get_int, key, _INT64_MIN, 0, default)

    def get_float(self, key: str, default: Any = None) -> Any:
        """Return a number, or a string that is one; otherwise default."""
        return self._typed(self._c.get_double, key, 0.0, 1.0, default)

    def get_bool(self, key: str, default: Any = None) -> Any:
        """Return true or false, or a string that is one; otherwise default."""
        return self._typed(self._c.get_bool, key, False, True, default)

    def get_duration(self, key: str, default: Any = None) -> Any:
        """Return a timedelta of a string such as "500ms", "10s", "5m", "1h"; otherwise default.

        One that no timedelta can hold (a billion days) is default, too.
        """
        found = self._typed(self._c.get_duration_ms, key, _INT64_MIN, 0, None)
        try:
            return default if found is None else timedelta(milliseconds=found)
        except OverflowError:
            return default

    def get_size(self, key: str, default: Any = None) -> Any:
        """Return the bytes of a string such as "64KiB", or of an integer; otherwise default."""
        return self._typed(self._c.get_size, key, _INT64_MIN, 0, default)

    def key(self, key: str) -> Key:
        """Return a Key, for a key that is read often."""
        return Key(self, key)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        data, value = _encode(key), _Value()
        with self._lock:
            handle = self._open_handle()
            return self._c.get(handle, data, len(data), ctypes.byref(value)) == 0

    def __len__(self) -> int:
        with self._lock:
            return self._c.count(self._open_handle())

    def refresh(self) -> bool:
        """Move to the newest version; tell whether there was one.

        When there is nothing newer this costs one load from memory and the call.  After an Error
        the version that was open stays in use.  Withdrawn is raised each time until the
        configuration comes back: whether to go on with the last values is for you to decide.
        """
        rc = self._move(self._c.refresh)
        if rc < 0:
            self._failed(rc)
        return rc > 0

    def fileno(self) -> int:
        """Return a descriptor that is readable when there may be another version.

        For event loops: refresh() once when it is readable.  It is that of pullet_fd(3), and is
        closed with the configuration.
        """
        fd = self._move(self._c.fd)
        if fd < 0:
            self._failed(fd)
        return fd

    @property
    def generation(self) -> int:
        """The generation that is open; 0 when nothing is yet."""
        with self._lock:
            return self._c.generation(self._open_handle())

    @property
    def version(self) -> str:
        """The server's name for it (ETag or revision), or an empty string."""
        with self._lock:
            self._reading += 1
            try:
                return _decode(self._c.version(self._open_handle()))
            finally:
                self._reading -= 1

    @property
    def stale(self) -> bool:
        """True when the age is longer than the agent's longest delay, or not known."""
        with self._lock:
            return self._c.stale(self._open_handle())

    @property
    def withdrawn(self) -> bool:
        """True while the agent publishes it no more; as it is now, without a refresh."""
        with self._lock:
            return self._c.withdrawn(self._open_handle())

    # For Config, which inherits this and has _failed() and _container().

    _failed: Callable[[int], None]
    _container: Callable[[list], Any]

    def _open(self, name: bytes, flags: int) -> int:
        """Return 0 or -errno."""
        if b"\0" in name:
            raise ValueError("embedded null byte")
        handle = ctypes.c_void_p()
        rc = self._c.open(name, flags, ctypes.byref(handle))
        if rc == 0 and (self._handle or self._closing):
            self._c.close(handle)
            raise ValueError("a configuration is opened once")
        if rc == 0:
            self._handle = handle.value
        return rc

    def _wait(self, timeout_ms: int) -> int:
        """Return 1, 0 or -errno."""
        return self._move(self._c.wait, timeout_ms)

    @property
    def _age_ms(self) -> int:
        with self._lock:
            return self._c.age_ms(self._open_handle())

    def _entries(self, prefix: str) -> list:
        """How many keys there are; then type, key and value of each that begins so."""
        data = _encode(prefix)
        with self._lock:
            return self._below(data)

    # Below: the lock is held where the handle is used.

    def _open_handle(self) -> int:
        if self._handle is None or self._closing:
            raise ValueError("operation on a closed configuration")
        return self._handle

    def _not_reading(self) -> None:
        if self._reading:
            raise RuntimeError("a signal handler moves or closes what it interrupted")

    def _move(self, function: Callable[..., int], *arguments: int) -> int:
        with self._lock:
            self._not_reading()
            return function(self._open_handle(), *arguments)

    @staticmethod
    def _name_of(key: str) -> bytes:
        """The key for a function that takes no length; none has a NUL inside."""
        data = _encode(key)
        return b"\\" if b"\0" in data else data  # a lone backslash is never a key

    def _typed(
        self, function: Callable[..., Any], key: str, one: Any, other: Any, default: Any
    ) -> Any:
        """The library's typed getter: it was a fallback if it answers with two different ones."""
        data = self._name_of(key)
        with self._lock:
            handle = self._open_handle()
            found = function(handle, data, one)
            if found == one:
                found = function(handle, data, other)
                if found == other:
                    return default
        return found

    def _read(self, key: str) -> Any:
        """The value, lists and maps built, or _ABSENT."""
        data = _encode(key)
        with self._lock:
            self._reading += 1
            try:
                # A signal handler may read in between: only the outermost uses the shared value.
                value, ref = self._value, self._ref
                if self._reading > 1:
                    value = _Value()
                    ref = ctypes.byref(value)
                if self._c.get(self._open_handle(), data, len(data), ref):
                    return _ABSENT
                kind, found = value.type, _scalar(value)
                if kind < _LIST:
                    return found
                entries = self._below(data + b".")
            finally:
                self._reading -= 1
        return self._container([*entries, kind, key, found])

    def _below(self, prefix: bytes) -> list:
        failure: list[BaseException] = []
        entries = [self._c.count(self._open_handle())]

        def visit(key: int, key_len: int, value: Any, _: Any) -> int:
            try:
                name = _decode(ctypes.string_at(key, key_len))
                entries.extend((value.contents.type, name, _scalar(value.contents)))
                return 0
            except BaseException as e:  # nothing may pass through C
                failure.append(e)
                return 1

        if b"\0" in prefix:
            return entries
        self._reading += 1
        try:
            self._c.each(self._open_handle(), prefix, _Visit(visit), None)
        finally:
            self._reading -= 1
        if failure:
            raise failure[0]
        return entries


class Key:
    """A key of one Config, which Config.key() makes.  It moves with its Config, and ends with it."""

    def __init__(self, handle: Handle, name: str) -> None:
        _encode(name)
        handle._open_handle()
        self._handle, self._name = handle, name

    def __repr__(self) -> str:
        return f"<pullet.Key {self._name!r}>"

    @property
    def name(self) -> str:
        """The key."""
        return self._name

    def get(self, default: Any = None) -> Any:
        """Return the value, or default."""
        return self._handle.get(self._name, default)

    def get_str(self, default: Any = None) -> Any:
        """Return the text of any scalar as it was written, or default."""
        return self._handle.get_str(self._name, default)

    def get_int(self, default: Any = None) -> Any:
        """Return an integer, or a string that is one; otherwise default."""
        return self._handle.get_int(self._name, default)

    def get_float(self, default: Any = None) -> Any:
        """Return a number, or a string that is one; otherwise default."""
        return self._handle.get_float(self._name, default)

    def get_bool(self, default: Any = None) -> Any:
        """Return true or false, or a string that is one; otherwise default."""
        return self._handle.get_bool(self._name, default)

    def get_duration(self, default: Any = None) -> Any:
        """Return a timedelta of a string such as "500ms", "10s", "5m", "1h"; otherwise default."""
        return self._handle.get_duration(self._name, default)

    def get_size(self, default: Any = None) -> Any:
        """Return the bytes of a string such as "64KiB", or of an integer; otherwise default."""
        return self._handle.get_size(self._name, default)
