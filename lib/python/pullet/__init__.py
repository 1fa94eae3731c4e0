"""Configuration values that the pullet agent keeps up to date.

    import pullet

    with pullet.open("web") as config:
        host = config.get_str("db.host", "localhost")
        ...
        config.refresh()            # now and then: is there a newer version?

This is libpullet.  A `Config` reads one version of one configuration, whole, until
`Config.refresh` or `Config.wait` moves it to a newer one.  What it returns are ordinary Python
objects, copied: they stay valid.

A key is its segments joined with dots, as in ``servers.0.host``; a dot inside a segment is
written ``\\.`` and a backslash ``\\\\``.  For a key that is read often, ``config.key("db.host")``
is a `Key`: looked up once a version.

The way to the library is an extension, or ctypes where that was not built: `implementation` is
"native" or "ctypes".  Both answer the same; ctypes takes ten times as long.  The library is
``libpullet.so.0``, or what ``$PULLET_LIBRARY`` names.

Threads: one `Config` per thread, do not share one.  What keeps a mistake from crashing the
interpreter does no more: a thread that waits keeps the others out, and two reads in a row may see
two versions.
"""

from __future__ import annotations

import errno
import math
import os
import time
import warnings
from datetime import timedelta
from typing import TYPE_CHECKING, Any, AsyncIterator, Iterator, Optional, TypeVar, Union

from pullet._decode import DecodeError, Size

__all__ = ["Config", "Damaged", "DecodeError", "Error", "Forbidden", "Key", "NotPublished", "Size",
           "Value", "Withdrawn", "implementation", "open"]

Value = Union[None, bool, int, float, str, list, dict]

if TYPE_CHECKING:
    import asyncio

_T = TypeVar("_T")

_LIST, _MAP = 5, 6  # enum pullet_type
_WAIT_FIRST = 1
_SLICE_MS = 200  # of a wait: how long a signal that another thread took may go unnoticed


def _load_native() -> Any:
    """The extension, or None where there is none."""
    library = os.environ.get("PULLET_LIBRARY")
    if library:  # loaded before, it is the one that the extension is linked with
        import ctypes

        ctypes.CDLL(library)
    try:
        import pullet._native as native
    except ModuleNotFoundError:
        return None
    except ImportError as e:
        warnings.warn(f"reading configurations through ctypes, ten times slower: {e}",
                      RuntimeWarning, stacklevel=3)
        return None
    return native


implementation = "native"
if TYPE_CHECKING:
    from pullet._ctypes import Handle, Key, explain, strerror
else:
    _native = _load_native()
    if _native:
        Handle, Key, strerror = _native.Handle, _native.Key, _native.strerror
        explain = _native.explain
    else:
        from pullet._ctypes import Handle, Key, explain, strerror

        implementation = "ctypes"


class Error(OSError):
    """A configuration cannot be opened or moved; ``errno`` and ``strerror`` say why."""


class NotPublished(Error, FileNotFoundError):
    """The agent has published nothing under this name."""


class Withdrawn(NotPublished):
    """The agent publishes it no more: it was removed, or says ``snapshot: false``."""


class Forbidden(Error, PermissionError):
    """The file, or the directory around it, may not be read."""


class Damaged(Error):
    """The file is damaged, is not a snapshot, or has a layout this library does not know."""


_CLASSES = {
    errno.ENOENT: NotPublished,
    errno.EIDRM: Withdrawn,
    errno.EACCES: Forbidden,
    errno.EBADMSG: Damaged,
    errno.EPROTO: Damaged,
}


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


class Config(Handle):
    """One version of one configuration, and the way to the next.

    ``config[key]`` is the value with the type it has; a list or map is built from the keys below
    it; KeyError when there is no such key.  ``key in config`` and ``len(config)`` are of keys.
    Not for sharing between threads.  After close() everything but close() raises ValueError.
    """

    def __init__(
        self, config_or_path: Union[str, os.PathLike[str]], wait_first: bool = False
    ) -> None:
        self._name = os.fspath(config_or_path)
        name = os.fsencode(self._name)
        rc = self._open(name, _WAIT_FIRST if wait_first else 0)
        if rc < 0:
            raise _CLASSES.get(-rc, Error)(-rc, explain(name, rc), self._name)

    def __enter__(self) -> Config:
        len(self)  # is it open?
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closing else f"generation {self.generation}"
        return f"<pullet.Config {self._name!r}, {state}>"

    def _failed(self, rc: int) -> None:
        raise _CLASSES.get(-rc, Error)(-rc, strerror(rc), self._name)

    # Reading

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with prefix, lists and maps among them, in byte order."""
        return self._entries(prefix)[2::3]

    def items(self, prefix: str = "") -> list[tuple[str, Value]]:
        """Return (key, value) for each key that begins with prefix, all of one version."""
        return self._build(self._entries(prefix), {})

    def as_dict(self) -> dict[str, Value]:
        """Return the whole configuration as nested dicts and lists."""
        root: dict[str, Value] = {}
        self._build(self._entries(""), {None: root})
        return root

    def decode(self, kind: type[_T], prefix: Optional[str] = None, *, strict: bool = False) -> _T:
        """Return this version, or what is below prefix, as a dataclass.

        Its fields are str, int, float, bool, timedelta, Size, Any, dataclasses, Optional[...],
        list[...] and dict[str, ...] of those; ``field(metadata={"key": "max-size"})`` names a key
        that is no identifier.  A key that is missing or null gives the field's default, and a
        dataclass without one is made as of an empty mapping.  Raise
        DecodeError for a missing one without default, for a value of another type and, if strict,
        for a key that a dataclass has no field for.
        """
        from pullet._decode import decode

        result: _T = decode(self, kind, prefix, strict, self._name, self._why_empty)
        return result

    def _why_empty(self) -> str:
        rc = -errno.EIDRM if self.withdrawn else -errno.ENOENT
        return explain(os.fsencode(self._name), rc)

    def _container(self, entries: list) -> Any:
        """The list or map that is last, and before it what is below it."""
        count, below, (kind, key, size) = entries[0], entries[:-3], entries[-3:]
        top = self._empty(kind, size, count)
        self._build(below, {key: top})
        return top

    def _build(
        self, entries: list, holders: dict[Optional[str], Any]
    ) -> list[tuple[str, Value]]:
        """The keys and values; each also put into its list or map, if that is among them."""
        count, found = entries[0], []
        for kind, key, item in zip(entries[1::3], entries[2::3], entries[3::3]):
            if kind >= _LIST:
                item = holders[key] = self._empty(kind, item, count)
            found.append((key, item))
            parent, segment = _split(key)
            holder = holders.get(parent)
            if isinstance(holder, dict):
                holder[segment] = item
            elif holder is not None:
                holder[int(segment)] = item
        return found

    def _empty(self, kind: int, size: int, count: int) -> Union[list, dict]:
        if kind == _MAP:
            return {}
        if size > count:
            raise Damaged(errno.EBADMSG, "a list with more items than there are keys", self._name)
        return [None] * size

    # Moving on

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Sleep until there is a newer version and move to it; False after timeout seconds.

        Other threads run meanwhile, and signal handlers do, Ctrl-C among them.  Withdrawn is raised
        once; the next wait lasts until the configuration comes back.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_MS
            if end is not None:
                left = max(0, math.ceil(min((end - time.monotonic()) * 1000, left)))
            rc = self._wait(left)
            if rc > 0:
                return True
            if rc < 0 and rc != -errno.EINTR:
                self._failed(rc)
            if end is not None and time.monotonic() >= end:
                return False

    async def wait_async(self, timeout: Optional[float] = None) -> bool:
        """Wait in asyncio's loop, without a thread, as wait() does; False after timeout seconds.

        One task at a time waits with one Config.
        """
        import asyncio

        if self._ready is not None:
            raise RuntimeError("another task waits with this configuration: open a second one "
                               "for this one, for each has its own")
        loop = asyncio.get_running_loop()
        end = math.inf if timeout is None else loop.time() + timeout
        while True:
            rc = self._wait(0)
            if rc > 0:
                return True
            if rc < 0 and rc != -errno.EINTR:
                self._failed(rc)
            if loop.time() >= end:
                return False
            self._ready = ready = loop.create_future()
            loop.add_reader(self.fileno(), self._wake)
            timer = None if timeout is None else loop.call_at(end, self._wake)
            try:
                await ready
            finally:
                if timer is not None:
                    timer.cancel()
                self._wake()

    def _wake(self) -> None:
        """End the wait of a task: there may be something, or it was cancelled, or this is closed."""
        ready, self._ready = self._ready, None
        if ready is not None:
            ready.get_loop().remove_reader(self.fileno())
            if not ready.done():
                ready.set_result(None)

    def close(self) -> None:
        """Free the handle, end waits and watches; a second time does nothing."""
        self._wake()
        super().close()

    def watch(self) -> _Watch:
        """Yield self whenever there is a newer version, until it is closed.

        ``for config in config.watch()`` sleeps in between, ``async for`` lets asyncio's loop run.
        """
        return _Watch(self)

    _ready: Optional[asyncio.Future[None]] = None  # of the task that waits

    @property
    def age(self) -> Optional[timedelta]:
        """Time since the server last confirmed the newest version; None when that is not known."""
        age_ms = self._age_ms
        return None if age_ms < 0 else timedelta(milliseconds=age_ms)


class _Watch:
    """What Config.watch() gives."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def __iter__(self) -> Iterator[Config]:
        return self

    def __next__(self) -> Config:
        try:
            self._config.wait()
        except ValueError:
            if self._config._closing:
                raise StopIteration from None
            raise
        return self._config

    def __aiter__(self) -> AsyncIterator[Config]:
        return self

    async def __anext__(self) -> Config:
        try:
            await self._config.wait_async()
        except ValueError:
            if self._config._closing:
                raise StopAsyncIteration from None
            raise
        return self._config
