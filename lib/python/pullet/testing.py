"""Configurations for tests of applications: no agent, the library's own getters.

    from pullet.testing import Fake

    with Fake({"db": {"host": "test"}, "poll": "10s"}) as config:
        app = App(config)                       # it is a pullet.Config
        config.publish({"db": {"host": "b"}})   # the next version: refresh(), wait(), watch() see it
        config.withdraw()                       # and this as well
        config.confirm(stale=True)              # as if the server had been silent for long

The snapshot is a file of its own, in a temporary directory that close() removes.
"""

from __future__ import annotations

import ctypes
import os
import struct
import tempfile
import time
from datetime import timedelta
from typing import Any, Iterator, Mapping, Optional

from pullet import Config, Error
from pullet import _ctypes as _c
from pullet._decode import escape, join

__all__ = ["Fake", "write"]

_PAGE = b"PULGENP\x01".ljust(4096, b"\0")
_GENERATION, _FUTEX, _WITHDRAWN = (8, "<Q"), (16, "<I"), (20, "<I")
_CONFIRMED, _STALE = (24, "<Q"), (32, "<Q")


class _Entry(ctypes.Structure):
    """struct pullet_entry."""

    _fields_ = [("key", ctypes.c_char_p), ("key_len", ctypes.c_size_t), ("value", _c._Value)]


def _flatten(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        members = [(escape(str(name)), member) for name, member in value.items()]
    elif isinstance(value, (list, tuple)):
        members = [(str(number), item) for number, item in enumerate(value)]
    else:
        members = []
    for segment, member in members:
        at = join(key, segment) if key else segment
        yield at, member
        yield from _flatten(member, at)


def _fill(entry: _Entry, key: str, value: Any, keep: list[Any]) -> None:
    name, text = _c._encode(key), b""
    to = entry.value
    if value is None:
        to.type = _c._NULL
    elif isinstance(value, bool):
        to.type, to.boolean, text = _c._BOOL, value, b"true" if value else b"false"
    elif isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise OverflowError(f"{key}: not an integer of 64 bits")
        to.type, to.integer, text = _c._INT, value, str(value).encode()
    elif isinstance(value, float):
        to.type, to.number, text = _c._DOUBLE, value, repr(value).encode()
    elif isinstance(value, str):
        to.type, text = _c._STRING, _c._encode(value)
    elif isinstance(value, (Mapping, list, tuple)):
        to.type, to.count = _c._MAP if isinstance(value, Mapping) else _c._LIST, len(value)
    else:
        as_text = ": write a text such as '90s' or '1h30m'" if isinstance(value, timedelta) else ""
        raise TypeError(f"{key}: a configuration has no {type(value).__name__}{as_text}")
    if b"\0" in name or b"\0" in text:
        raise ValueError(f"{key}: a configuration has no NUL")
    held = ctypes.create_string_buffer(text)
    keep.append(held)
    to.text, to.len = ctypes.addressof(held), len(text)
    entry.key, entry.key_len = name, len(name)


def write(path: str, values: Mapping[str, Any], version: str = "") -> None:
    """Write a snapshot of the values to a path, in place of the one there; for pullet.open(path)."""
    flat, keep = list(_flatten(values, "")), []  # type: ignore[var-annotated]
    entries = (_Entry * max(1, len(flat)))()
    for entry, (key, value) in zip(entries, flat):
        _fill(entry, key, value, keep)
    function = ctypes.CDLL(_c._library()._path).pullet_write
    function.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Entry), ctypes.c_size_t, ctypes.c_char_p]
    rc = function(os.fsencode(path), entries, len(flat), version.encode())
    if rc < 0:
        raise Error(-rc, _c.strerror(rc), path)


class Fake(Config):
    """A Config of these values, which the test changes."""

    def __init__(self, values: Optional[Mapping[str, Any]] = None, version: str = "") -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="pullet-fake-")
        self._path = os.path.join(self._directory.name, "fake.snap")
        self._page = os.path.join(self._directory.name, "fake.gen")
        self._published = 0
        with open(self._page, "wb") as f:
            f.write(_PAGE)
        if values is not None:  # else nothing is published yet
            self.publish(values, version)
        super().__init__(self._path, wait_first=values is None)

    def publish(self, values: Mapping[str, Any], version: str = "") -> None:
        """Make the next version of these values, as the agent would; whoever waits is woken."""
        write(self._path, values, version)
        self._published += 1
        self.confirm()
        self._tell((_WITHDRAWN, 0), (_GENERATION, self._published))

    def withdraw(self) -> None:
        """Publish it no more: refresh() and wait() raise Withdrawn until the next publish()."""
        if os.path.exists(self._path):
            os.unlink(self._path)
        self._tell((_WITHDRAWN, 1), (_CONFIRMED, 0))

    def confirm(self, age: timedelta = timedelta(0), stale: bool = False) -> None:
        """Set `age`, and whether it is `stale`."""
        now_ms = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000) - int(stale)
        confirmed_ms = max(1, now_ms - age // timedelta(milliseconds=1))
        self._write((_CONFIRMED, confirmed_ms), (_STALE, int(stale)))

    def close(self) -> None:
        """Close it, and remove its file."""
        super().close()
        self._directory.cleanup()

    def _tell(self, *fields: tuple[tuple[int, str], int]) -> None:
        with open(self._page, "rb") as f:
            (futex,) = struct.unpack_from("<I", f.read(), 16)
        self._write(*fields, (_FUTEX, (futex + 1) % 2**32))

    def _write(self, *fields: tuple[tuple[int, str], int]) -> None:
        with open(self._page, "r+b", buffering=0) as f:
            for (at, form), value in fields:
                f.seek(at)
                f.write(struct.pack(form, value))
