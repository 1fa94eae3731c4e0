"""The cases that every language answers alike: tests/golden/cases.json, which says how to read it.

    PULLET_CASES=build/cases PULLET_LIBRARY=/path/to/libpullet.so.0 /usr/bin/python3 lib/python/test_cases.py

That is through ctypes; with PULLET_PYTHON=build/python, where the extension is, it is through that.
test_pullet.py runs these as well.
"""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import sys
import tempfile
import unittest
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Optional

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.abspath(os.environ.get("PULLET_PYTHON") or HERE))

import pullet  # noqa: E402

GOLDEN = os.path.join(HERE, "..", "..", "tests", "golden")
CASES = os.environ["PULLET_CASES"]
FIELDS = {"magic": (0, "<Q"), "generation": (8, "<Q"), "futex": (16, "<I"), "withdrawn": (20, "<I"),
          "confirmed_ms": (24, "<Q"), "stale_ms": (32, "<Q")}
PAGE = b"PULGENP\x01".ljust(4096, b"\0")
GETTERS = {"string": "get_str", "int": "get_int", "double": "get_float", "bool": "get_bool",
           "duration_ms": "get_duration", "size": "get_size"}
TYPES = {"null": type(None), "bool": bool, "int": int, "double": float, "string": str,
         "list": list, "map": dict}
ABSENT = object()


def as_text(value: object) -> object:
    """A getter's answer as the file writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta):
        return str(value // timedelta(milliseconds=1))
    return str(value) if isinstance(value, (int, float)) else value


@dataclass
class Database:
    """Of the case's struct."""

    host: str
    port: int = 5432


@dataclass
class Server:
    """Of the case's struct."""

    host: str
    weight: int = 1


@dataclass
class Service:
    """The struct that cases.json describes."""

    name: str
    db: Database
    port: int = 80
    ratio: float = 0.5
    debug: bool = False
    timeout: timedelta = timedelta(seconds=5)
    limit: pullet.Size = 1 << 20
    note: Optional[str] = None
    tags: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    servers: list[Server] = field(default_factory=list)


class World:
    """A case's directory, and the handle."""

    def __init__(self, test: unittest.TestCase, name: str, directory: str) -> None:
        self.test, self.name, self.directory = test, name, directory
        self.path = os.path.join(directory, "web.snap")
        self.page = os.path.join(directory, "web.gen")
        self.config: pullet.Config = None  # type: ignore[assignment]

    # What is done

    def do_image(self, number: int, flip: object = None, cut: object = None) -> None:
        with open(os.path.join(CASES, f"{self.name}-{number}.snap"), "rb") as f:
            data = bytearray(f.read())
        if flip is not None:
            data[flip] ^= 1
        with open(self.path + ".new", "wb") as f:
            f.write(data[:cut])
        os.rename(self.path + ".new", self.path)

    def do_page(self, **fields: int) -> None:
        if not os.path.exists(self.page):
            with open(self.page, "wb") as f:
                f.write(PAGE)
        self.write_fields(self.page, fields)

    def do_new_page(self, **fields: int) -> None:
        with open(self.page + ".new", "wb") as f:
            f.write(PAGE)
        self.write_fields(self.page + ".new", fields)
        os.rename(self.page + ".new", self.page)

    @staticmethod
    def write_fields(path: str, fields: dict[str, int]) -> None:
        with open(path, "r+b", buffering=0) as f:
            for name, value in fields.items():
                at, form = FIELDS[name]
                f.seek(at)
                f.write(struct.pack(form, value))

    def do_remove(self, file: str) -> None:
        os.unlink(os.path.join(self.directory, file))

    # What is called

    def call_open(self, wait_first: bool = False) -> None:
        if self.config is not None:
            self.config.close()
        self.config = pullet.open(self.path, wait_first=wait_first)

    def call_refresh(self) -> bool:
        return self.config.refresh()

    def call_get(self, key: str) -> object:
        value = self.config.get(key, ABSENT)
        self.test.assertEqual(key in self.config, value is not ABSENT)
        if value is ABSENT:
            return None
        kind = next(k for k, t in TYPES.items() if type(value) is t)
        if kind in ("list", "map"):
            return [kind, "", str(len(value))]
        text = self.config.get_str(key, "")
        return [kind, text, "" if kind in ("null", "string") else as_text(value)]

    def call_keys(self, prefix: str) -> list[str]:
        return self.config.keys(prefix)

    def call_tree(self) -> object:
        return self.config.as_dict()

    def call_decode(self, strict: bool = False) -> object:
        made = dataclasses.asdict(self.config.decode(Service, strict=strict))
        made["timeout"] //= timedelta(milliseconds=1)
        return made

    def call_generation(self) -> int:
        return self.config.generation

    def call_version(self) -> str:
        return self.config.version

    def call_count(self) -> int:
        return len(self.config)

    def call_stale(self) -> bool:
        return self.config.stale

    def call_withdrawn(self) -> bool:
        return self.config.withdrawn

    def call_age(self) -> object:
        age = self.config.age
        return None if age is None else age / timedelta(milliseconds=1)

    def get_typed(self, call: str, key: str) -> object:
        answers = [getattr(self.config, GETTERS[call])(key, ABSENT),
                   getattr(self.config.key(key), GETTERS[call])(ABSENT)]
        self.test.assertEqual(*map(as_text, answers), key)
        return None if answers[0] is ABSENT else as_text(answers[0])

    def step(self, step: dict) -> None:
        """Do one step and compare."""
        arguments = {k: v for k, v in step.items() if k not in ("do", "call", "is", "error")}
        if "do" in step:
            getattr(self, "do_" + step["do"].replace(" ", "_"))(**arguments)
        elif "error" in step:
            self.check_error(step, arguments)
        else:
            call = step["call"]
            got = (self.get_typed(call, **arguments) if call in GETTERS
                   else getattr(self, "call_" + call)(**arguments))
            if call == "duration_ms" and not self.fits_timedelta(step["is"]):
                self.test.assertIsNone(got)
            else:
                self.test.assertEqual(got, step.get("is"))

    @staticmethod
    def fits_timedelta(ms: object) -> bool:
        return ms is None or abs(int(str(ms))) <= timedelta.max // timedelta(milliseconds=1)

    def check_error(self, step: dict, arguments: dict) -> None:
        if step["error"] == "decode":
            with self.test.assertRaises(pullet.DecodeError) as found:
                self.call_decode(step.get("strict", False))
            self.test.assertEqual(
                (found.exception.key, found.exception.filename, found.exception.generation),
                (step["key"], self.path, self.config.generation))
            if self.config.generation:  # else the message says that nothing is open, and why
                self.test.assertIn(f"generation {self.config.generation}: {step['key']} ",
                                   str(found.exception))
            self.test.assertEqual(sorted(key for key, _ in found.exception.problems),
                                  sorted(step.get("keys", [step["key"]])))
            for says in step.get("says", ()):
                self.test.assertIn(says, str(found.exception))
            return
        classes = {"not published": pullet.NotPublished, "withdrawn": pullet.Withdrawn,
                   "damaged": pullet.Damaged, "foreign": pullet.Damaged}
        with self.test.assertRaises(classes[step["error"]]) as raised:
            getattr(self, "call_" + step["call"])(**arguments)
        self.test.assertIs(type(raised.exception), classes[step["error"]])
        if classes[step["error"]] is pullet.Damaged:
            self.test.assertEqual(raised.exception.errno, {"damaged": 74, "foreign": 71}[step["error"]])
        self.test.assertEqual(raised.exception.filename, self.path)


class Cases(unittest.TestCase):
    """A test for each."""

    def run_case(self, case: dict) -> None:
        with tempfile.TemporaryDirectory() as directory:
            world = World(self, case["name"], directory)
            for number, step in enumerate(case["steps"]):
                with self.subTest(number=number, step=step):
                    world.step(step)
            world.config.close()


with open(os.path.join(GOLDEN, "cases.json"), encoding="utf-8") as golden:
    for each in json.load(golden)["cases"]:
        setattr(Cases, "test_" + each["name"].replace("-", "_"),
                lambda self, case=each: self.run_case(case))

if __name__ == "__main__":
    unittest.main()
