"""Configuration values that the pullet agent keeps up to date.

    import pullet

    with pullet.open("web") as config:
        host = config.get_str("db.host", "localhost")
        ...
        config.refresh()            # now and then: is there a newer version?

This is libpullet (``libpullet.so.0``, or what ``$PULLET_LIBRARY`` names) through ctypes.  A
`Config` reads one version of one configuration, whole, until `Config.refresh` or `Config.wait`
moves it to a newer one.  What it returns are ordinary Python objects, copied: they stay valid.

A key is its segments joined with dots, as in ``servers.0.host``; a dot inside a segment is
written ``\\.`` and a backslash ``\\\\``.

Threads: one `Config` per thread, do not share one.  A lock inside keeps a mistake from crashing
the interpreter, no more: a thread that waits keeps the others out, and two reads in a row may
see two versions.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import functools
import math
import os
import threading
import time
from datetime import timedelta
from typing import Any, Callable, Iterator, Optional, Union

__all__ = ["Config", "Damaged", "Error", "NotPublished", "Withdrawn", "open"]

Value = Union[None, bool, int, float, str, list, dict]

_NULL, _BOOL, _INT, _DOUBLE, _STRING, _LIST, _MAP = range(7)
_WAIT_FIRST = 1
_SLICE_MS = 200  # of a wait: how long a signal that another thread took may go unnoticed
_INT64_MIN = -(2**63)


class Error(OSError):
    """A configuration cannot be opened or moved; ``errno`` and ``strerror`` say why."""


class NotPublished(Error, FileNotFoundError):
    """The agent has published nothing under this name."""


class Withdrawn(NotPublished):
    """The agent publishes it no more: it was removed, or says ``snapshot: false``."""


class Damaged(Error):
    """The file is damaged, is not a snapshot, or has a layout this library does not know."""


_CLASSES = {
    errno.ENOENT: NotPublished,
    errno.EIDRM: Withdrawn,
    errno.EBADMSG: Damaged,
    errno.EPROTO: Damaged,
}


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
}


class _Library:
    """The C functions: long ones let other Python threads run, short ones keep the GIL."""

    def __init__(self, path: str) -> None:
        slow, fast = ctypes.CDLL(path), ctypes.PyDLL(path)
        for name, (is_slow, result, *arguments) in _FUNCTIONS.items():
            function = getattr(slow if is_slow else fast, "pullet_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)


@functools.lru_cache(maxsize=None)
def _library() -> Any:
    name = os.environ.get("PULLET_LIBRARY")
    if name:
        return _Library(name)
    try:
        return _Library("libpullet.so.0")
    except OSError:
        found = ctypes.util.find_library("pullet")
        if not found:
            raise
        return _Library(found)


def _error(library: Any, rc: int, name: Optional[str] = None) -> Error:
    text = library.strerror(rc).decode("utf-8", "replace")
    return _CLASSES.get(-rc, Error)(-rc, text, *([name] if name is not None else []))


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _encode(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")


def _split(key: str) -> tuple[Optional[str], str]:
    """The key of what holds this one (None = the root), and the last segment, unescaped."""
    at = key.rfind(".")
    while at >= 0 and (at - len(key[:at].rstrip("\\"))) % 2:  # an escaped dot
        at = key.rfind(".", 0, at)
    parent, segment = (key[:at], key[at + 1 :]) if at >= 0 else (None, key)
    if "\\" in segment:
        segment = "\\".join(piece.replace("\\.", ".") for piece in segment.split("\\\\"))
    return parent, segment


def open(config_or_path: Union[str, os.PathLike[str]], wait_first: bool = False) -> Config:
    """Open a configuration by its name or, with a slash in it, a snapshot file by its path.

    With wait_first, this succeeds before the agent has published anything; the configuration is
    empty until there is something.  Raise NotPublished, Damaged or another Error.
    """
    return Config(config_or_path, wait_first)


class Config:
    """One version of one configuration, and the way to the next.

    Not for sharing between threads.  After close() everything but close() raises ValueError.
    """

    def __init__(
        self, config_or_path: Union[str, os.PathLike[str]], wait_first: bool = False
    ) -> None:
        self._handle: Optional[int] = None
        self._closing = False
        self._reading = 0  # calls that point into the open version; a signal handler can be inside
        self._lock = threading.RLock()
        self._name = os.fspath(config_or_path)
        self._c = _library()
        self._value = _Value()
        self._ref = ctypes.byref(self._value)
        name = os.fsencode(self._name)
        if b"\0" in name:
            raise ValueError("embedded null byte")
        handle = ctypes.c_void_p()
        rc = self._c.open(name, _WAIT_FIRST if wait_first else 0, ctypes.byref(handle))
        if rc < 0:
            raise _error(self._c, rc, self._name)
        self._handle = handle.value

    def __enter__(self) -> Config:
        self._open_handle()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def __repr__(self) -> str:
        state = f"generation {self.generation}" if self._handle else "closed"
        return f"<pullet.Config {self._name!r}, {state}>"

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

    # Reading

    def __getitem__(self, key: str) -> Value:
        """Return the value with the type it has; a list or map is built from the keys below it.

        Raise KeyError when there is no such key.
        """
        data = _encode(key)
        with self._lock:
            self._reading += 1
            try:
                # A signal handler may read in between: only the outermost uses the shared value.
                value, ref = self._value, self._ref
                if self._reading > 1:
                    value = _Value()
                    ref = ctypes.byref(value)
                rc = self._c.get(self._handle or self._open_handle(), data, len(data), ref)
                if rc == 0:
                    if value.type < _LIST:
                        return self._scalar(value)
                    return self._container(key, value)
            finally:
                self._reading -= 1
        if rc != -errno.ENOENT:
            raise _error(self._c, rc, self._name)
        raise KeyError(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value as config[key] does, or default when there is no such key."""
        try:
            return self[key]
        except KeyError:
            return default

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

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        data, value = _encode(key), _Value()
        with self._lock:
            handle = self._open_handle()
            return self._c.get(handle, data, len(data), ctypes.byref(value)) == 0

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        with self._lock:
            return self._c.count(self._open_handle())

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with prefix, lists and maps among them, in byte order."""
        found: list[str] = []
        self._each(prefix, lambda key, value: found.append(key))
        return found

    def items(self, prefix: str = "") -> list[tuple[str, Value]]:
        """Return (key, value) for each key that begins with prefix, all of one version."""
        return self._collect(prefix, {})

    def as_dict(self) -> dict[str, Value]:
        """Return the whole configuration as nested dicts and lists."""
        root: dict[str, Value] = {}
        self._collect("", {None: root})
        return root

    # Moving on

    def refresh(self) -> bool:
        """Move to the newest version; tell whether there was one.

        When there is nothing newer this costs one load from memory and the call.  After an Error
        the version that was open stays in use.  Withdrawn is raised each time until the
        configuration comes back: whether to go on with the last values is for you to decide.
        """
        return self._move(self._c.refresh)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Sleep until there is a newer version and move to it; False after timeout seconds.

        Other threads run meanwhile, and signal handlers do, Ctrl-C among them.  Withdrawn is raised
        once; the next wait lasts until the configuration comes back.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_MS
            if end is not None:
                left = min(left, max(0, math.ceil((end - time.monotonic()) * 1000)))
            if self._move(self._c.wait, left):
                return True
            if end is not None and time.monotonic() >= end:
                return False

    def watch(self) -> Iterator[Config]:
        """Yield self whenever there is a newer version, until it is closed."""
        while not self._closing:
            try:
                self.wait()
            except ValueError:
                if self._closing:
                    return
                raise
            yield self

    # What is open

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
    def age(self) -> Optional[timedelta]:
        """Time since the server last confirmed the newest version; None when that is not known."""
        with self._lock:
            age_ms = self._c.age_ms(self._open_handle())
        return None if age_ms < 0 else timedelta(milliseconds=age_ms)

    @property
    def stale(self) -> bool:
        """True when that is longer than the agent's longest delay, or not known."""
        with self._lock:
            return self._c.stale(self._open_handle())

    @property
    def withdrawn(self) -> bool:
        """True while the agent publishes it no more; as it is now, without a refresh."""
        with self._lock:
            return self._c.withdrawn(self._open_handle())

    # Below: the lock is held where the handle is used.

    def _open_handle(self) -> int:
        if self._handle is None or self._closing:
            raise ValueError("operation on a closed configuration")
        return self._handle

    def _not_reading(self) -> None:
        if self._reading:
            raise RuntimeError("a signal handler moves or closes what it interrupted")

    def _move(self, function: Callable[..., int], *arguments: int) -> bool:
        with self._lock:
            self._not_reading()
            rc = function(self._open_handle(), *arguments)
        if rc < 0 and rc != -errno.EINTR:
            raise _error(self._c, rc, self._name)
        return rc > 0

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

    @staticmethod
    def _scalar(value: _Value) -> Value:
        kind = value.type
        if kind == _STRING:
            return _decode(ctypes.string_at(value.text, value.len))
        if kind == _INT:
            return value.integer
        if kind == _BOOL:
            return value.boolean
        return value.number if kind == _DOUBLE else None

    def _empty(self, value: _Value) -> Union[list, dict]:
        if value.type == _MAP:
            return {}
        if value.count > self._c.count(self._handle):
            raise Damaged(errno.EBADMSG, "a list with more items than there are keys", self._name)
        return [None] * value.count

    def _container(self, key: str, value: _Value) -> Value:
        top = self._empty(value)
        self._collect(key + ".", {key: top})
        return top

    def _collect(self, prefix: str, holders: dict[Optional[str], Any]) -> list[tuple[str, Value]]:
        """The keys that begin with prefix; each also put into its list or map, if known."""
        found: list[tuple[str, Value]] = []

        def visit(key: str, value: _Value) -> None:
            item: Value
            if value.type < _LIST:
                item = self._scalar(value)
            else:
                item = holders[key] = self._empty(value)
            found.append((key, item))
            parent, segment = _split(key)
            holder = holders.get(parent)
            if isinstance(holder, dict):
                holder[segment] = item
            elif holder is not None:
                holder[int(segment)] = item

        self._each(prefix, visit)
        return found

    def _each(self, prefix: str, function: Callable[[str, _Value], None]) -> None:
        failure: list[BaseException] = []

        def visit(key: int, key_len: int, value: Any, _: Any) -> int:
            try:
                function(_decode(ctypes.string_at(key, key_len)), value.contents)
                return 0
            except BaseException as e:  # nothing may pass through C
                failure.append(e)
                return 1

        data = _encode(prefix)
        if b"\0" in data:
            return
        with self._lock:
            self._reading += 1
            try:
                rc = self._c.each(self._open_handle(), data, _Visit(visit), None)
            finally:
                self._reading -= 1
        if failure:
            raise failure[0]
        if rc < 0:
            raise _error(self._c, rc, self._name)
