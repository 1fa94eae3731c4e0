"""A version as a dataclass: Config.decode().

What surprises: each value is read by the getter of its type, so that "8080" is an integer here,
too; but what is of another type is an error, and never the default.  One error lists all problems.
"""

from __future__ import annotations

import dataclasses
import typing
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Callable, Iterable, Optional, Union

if TYPE_CHECKING:
    from pullet import Config

_SIZE = "pullet.Size"
Size = Annotated[int, _SIZE]  #: bytes, written "64KiB" or as an integer
_ABSENT = object()
_UNIONS = (Union, getattr(__import__("types"), "UnionType", Union))
_GETTERS = {
    str: ("get_str", "a text"),
    int: ("get_int", "an integer such as 17"),
    float: ("get_float", "a number such as 0.5"),
    bool: ("get_bool", "true or false"),
    timedelta: ("get_duration", 'a duration such as 10s or 1h30m'),
    Size: ("get_size", 'a size such as 64KiB'),
}
_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a text",
          list: "a list", dict: "a mapping", type(None): "null"}


_MOST = 8  # problems in a message


class DecodeError(ValueError):
    """Values are missing, or are not of the type.

    ``problems`` has a (key, what is wrong) for each; ``key`` is the first one's, and ``filename`` and
    ``generation`` say where.
    """

    def __init__(self, problems: list[tuple[str, str]], filename: str, generation: int,
                 empty: str = "") -> None:
        told = [f"{key or 'the configuration'} {what}" for key, what in problems[:_MOST]]
        if len(problems) > _MOST:
            told.append(f"and {len(problems) - _MOST} more")
        super().__init__(f"{filename}: {empty}" if empty else
                         f"{filename}, generation {generation}: {'; '.join(told)}")
        self.key, self.problems = problems[0][0], problems
        self.filename, self.generation = filename, generation


def escape(segment: str) -> str:
    """Return a name as a segment of a key."""
    return segment.replace("\\", "\\\\").replace(".", "\\.")


def join(key: str, segment: str) -> str:
    """Return the key of a member or item."""
    return f"{key}.{segment}" if key else segment


def whole(made: Any, parts: Iterable[Any]) -> Any:
    """What was made of the parts, or _ABSENT where one is."""
    return _ABSENT if any(part is _ABSENT for part in parts) else made


def is_near(a: str, b: str) -> bool:
    """One character more, less or another one, or two swapped; not counting case, "-" and "_"."""
    a, b = (name.lower().replace("-", "").replace("_", "") for name in (a, b))
    same = 0
    while same < min(len(a), len(b)) and a[same] == b[same]:
        same += 1
    a, b = a[same:], b[same:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return len(a) <= 1 and len(b) <= 1 or len(a) == 2 and a == b[::-1]


def nearest(name: str, among: Iterable[str]) -> str:
    """The first that may have been meant by a name; "" for none."""
    return next((n for n in sorted(among) if len(name) >= 3 and is_near(n, name)), "")


class Decoder:
    """Reads one version."""

    def __init__(self, config: Config, strict: bool) -> None:
        self.config, self.strict = config, strict
        self.problems: list[tuple[str, str]] = []
        self.assumed: list[type] = []  # missing, and taken as empty: one in itself has no end

    def fail(self, key: str, what: str) -> object:
        self.problems.append((key, what))
        return _ABSENT

    def mismatch(self, key: str, wanted: str, raw: Any) -> object:
        found = _NAMES[type(raw)]
        if isinstance(raw, str) and wanted not in ("a list", "a mapping"):
            found += " of another form"
        return self.fail(key, f"must be {wanted}, but is {found}")

    def raw(self, key: str, root: bool = False) -> Any:
        """The value with its own type; None also where there is none."""
        return self.config.as_dict() if root else self.config.get(key)

    def value(self, kind: Any, key: str, root: bool = False, near: str = "", top: bool = False) -> Any:
        """The value as that type, or _ABSENT.

        near: the key to name where it is missing; top: what decode() is asked for, which must be
        there, while a nested dataclass that is missing is as an empty one.
        """
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in _UNIONS and len(arguments) == 2 and type(None) in arguments:
            if self.raw(key) is None:
                return None
            return self.value(next(a for a in arguments if a is not type(None)), key)
        if origin is Annotated and kind != Size:
            return self.value(arguments[0], key, root, near, top)
        raw = self.raw(key, root)
        if kind is Any:
            return raw
        if raw is None and dataclasses.is_dataclass(kind) and not top and kind not in self.assumed:
            self.assumed.append(kind)
            made = self.members(kind, key, {}, near)
            self.assumed.pop()
            return made
        if raw is None:
            missing = f"is missing: did you mean {near}?" if near else "is missing"
            return self.fail(key, missing if root or key not in self.config else "is null")
        if kind in _GETTERS:
            getter, wanted = _GETTERS[kind]
            found = getattr(self.config, getter)(key, _ABSENT)
            return self.mismatch(key, wanted, raw) if found is _ABSENT else found
        return self.container(kind, key, raw)

    def container(self, kind: Any, key: str, raw: Any) -> Any:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin is list:
            if not isinstance(raw, list):
                return self.mismatch(key, "a list", raw)
            items = [self.value(arguments[0], join(key, str(i))) for i in range(len(raw))]
            return whole(items, items)
        if not (origin is dict and arguments[0] is str or dataclasses.is_dataclass(kind)):
            raise TypeError(f"{key or 'decode'}: nothing can be decoded as {kind!r}: there are str, "
                            "int, float, bool, timedelta, pullet.Size, Any, dataclasses, Optional[...], "
                            "list[...] and dict[str, ...]")
        if not isinstance(raw, dict):
            return self.mismatch(key, "a mapping", raw)
        if origin is dict:
            made = {name: self.value(arguments[1], join(key, escape(name))) for name in raw}
            return whole(made, made.values())
        return self.members(kind, key, raw)

    def members(self, kind: Any, key: str, raw: dict[str, Any], around: str = "") -> Any:
        hints = typing.get_type_hints(kind, include_extras=True)
        fields = {field.metadata.get("key", field.name): field
                  for field in dataclasses.fields(kind) if field.init}
        made = {}
        for name, field in fields.items():
            at = join(key, escape(name))
            has_default = (field.default is not dataclasses.MISSING
                           or field.default_factory is not dataclasses.MISSING)
            if has_default and raw.get(name) is None:
                continue
            near = "" if name in raw else nearest(
                name, (n for n in raw if n not in fields and n.isprintable() and " " not in n))
            made[field.name] = self.value(hints[field.name], at,
                                          near=join(key, escape(near)) if near else around)
        for name in sorted(raw.keys() - fields.keys()) if self.strict else ():
            near = nearest(name, fields.keys() - raw.keys())
            self.fail(join(key, escape(name)), "is not known"
                      + (f": did you mean {join(key, escape(near))}?" if near else ""))
        return _ABSENT if whole(made, made.values()) is _ABSENT else kind(**made)


def decode(config: Config, kind: Any, prefix: Optional[str], strict: bool, filename: str,
           why_empty: Callable[[], str]) -> Any:
    """What Config.decode() does."""
    decoder = Decoder(config, strict)
    made = decoder.value(kind, prefix or "", root=prefix is None, top=True)
    if decoder.problems:
        empty = "" if config.generation else why_empty()
        raise DecodeError(decoder.problems, filename, config.generation, empty)
    return made
