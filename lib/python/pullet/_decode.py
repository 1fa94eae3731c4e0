"""A version as a dataclass: Config.decode().

What surprises: each value is read by the getter of its type, so that "8080" is an integer here,
too; but what is of another type is an error, and never the default.
"""

from __future__ import annotations

import dataclasses
import typing
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Optional, Union

if TYPE_CHECKING:
    from pullet import Config

_SIZE = "pullet.Size"
Size = Annotated[int, _SIZE]  #: bytes, written "64KiB" or as an integer
_ABSENT = object()
_UNIONS = (Union, getattr(__import__("types"), "UnionType", Union))
_GETTERS = {
    str: ("get_str", "a text"),
    int: ("get_int", "an integer"),
    float: ("get_float", "a number"),
    bool: ("get_bool", "true or false"),
    timedelta: ("get_duration", 'a duration such as "10s"'),
    Size: ("get_size", 'a size such as "64KiB"'),
}
_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "another text",
          list: "a list", dict: "a mapping", type(None): "null"}


class DecodeError(ValueError):
    """A value is missing, or is not of the type.  ``key``, ``filename`` and ``generation`` say which."""

    def __init__(self, key: str, what: str, filename: str, generation: int) -> None:
        super().__init__(f"{filename}, generation {generation}: {key or 'the configuration'} {what}")
        self.key, self.filename, self.generation = key, filename, generation


def escape(segment: str) -> str:
    """Return a name as a segment of a key."""
    return segment.replace("\\", "\\\\").replace(".", "\\.")


def join(key: str, segment: str) -> str:
    """Return the key of a member or item."""
    return f"{key}.{segment}" if key else segment


class Decoder:
    """Reads one version."""

    def __init__(self, config: Config, filename: str) -> None:
        self.config, self.filename = config, filename

    def fail(self, key: str, what: str) -> DecodeError:
        return DecodeError(key, what, self.filename, self.config.generation)

    def raw(self, key: str, root: bool = False) -> Any:
        """The value with its own type; None also where there is none."""
        return self.config.as_dict() if root else self.config.get(key)

    def value(self, kind: Any, key: str, root: bool = False) -> Any:
        """The value as that type; a missing one is an error here."""
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in _UNIONS and len(arguments) == 2 and type(None) in arguments:
            if self.raw(key) is None:
                return None
            return self.value(next(a for a in arguments if a is not type(None)), key)
        if origin is Annotated and kind != Size:
            return self.value(arguments[0], key)
        raw = self.raw(key, root)
        if kind is Any:
            return raw
        if raw is None:
            raise self.fail(key, "is missing" if root or key not in self.config else "is null")
        if kind in _GETTERS:
            return self.scalar(kind, key, raw)
        if origin is list and isinstance(raw, list):
            return [self.value(arguments[0], join(key, str(i))) for i in range(len(raw))]
        if origin is dict and arguments[0] is str and isinstance(raw, dict):
            return {name: self.value(arguments[1], join(key, escape(name))) for name in raw}
        if dataclasses.is_dataclass(kind) and isinstance(raw, dict):
            return self.members(kind, key)
        if origin is list or origin is dict and arguments[0] is str or dataclasses.is_dataclass(kind):
            wanted = "a list" if origin is list else "a mapping"
            raise self.fail(key, f"must be {wanted}, but is {_NAMES[type(raw)]}")
        raise TypeError(f"{key or 'decode'}: nothing can be decoded as {kind!r}")

    def scalar(self, kind: Any, key: str, raw: Any) -> Any:
        getter, wanted = _GETTERS[kind]
        found = getattr(self.config, getter)(key, _ABSENT)
        if found is _ABSENT:
            raise self.fail(key, f"must be {wanted}, but is {_NAMES[type(raw)]}")
        return found

    def members(self, kind: Any, key: str) -> Any:
        hints = typing.get_type_hints(kind, include_extras=True)
        made = {}
        for field in dataclasses.fields(kind):
            if not field.init:
                continue
            at = join(key, escape(field.metadata.get("key", field.name)))
            has_default = (field.default is not dataclasses.MISSING
                           or field.default_factory is not dataclasses.MISSING)
            if has_default and self.raw(at) is None:
                continue
            made[field.name] = self.value(hints[field.name], at)
        return kind(**made)


def decode(config: Config, kind: Any, prefix: Optional[str], filename: str) -> Any:
    """What Config.decode() does."""
    decoder = Decoder(config, filename)
    return decoder.value(kind, prefix or "", root=prefix is None)
