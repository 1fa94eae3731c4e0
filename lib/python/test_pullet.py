"""Tests of the module against the golden images and an agent of twenty lines.

    PULLET_LIBRARY=/path/to/libpullet.so.0 /usr/bin/python3 lib/python/test_pullet.py

That is through ctypes; with PULLET_PYTHON=build/python, where the extension is, it is through that.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import gc
import json
import math
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from datetime import timedelta
from urllib.parse import unquote

HERE = os.path.dirname(os.path.abspath(__file__))
WHERE = os.path.abspath(os.environ.get("PULLET_PYTHON") or HERE)
sys.path.insert(0, WHERE)

import pullet  # noqa: E402

NATIVE = pullet.implementation == "native"

GOLDEN = os.path.join(HERE, "..", "..", "tests", "golden")
DEADLINE = 5.0  # seconds: generous for a busy machine, and a failure when it passes
LIBC = ctypes.CDLL(None, use_errno=True)
SYS_FUTEX = {"x86_64": 202, "aarch64": 98}[os.uname().machine]
FUTEX_WAKE = 1


def xxh64(data: bytes) -> int:
    """XXH64 of at least 32 bytes, seed 0, as its specification has it."""
    mask, (p1, p2, p3, p4, p5) = 2**64 - 1, (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5)

    def turn(x: int, n: int) -> int:
        return (x << n | x >> (64 - n)) & mask

    def step(acc: int, lane: int) -> int:
        return turn((acc + lane * p2) & mask, 31) * p1 & mask

    lanes, at = [(p1 + p2) & mask, p2, 0, -p1 & mask], 0
    while at + 32 <= len(data):
        lanes = [step(a, n) for a, n in zip(lanes, struct.unpack_from("<4Q", data, at))]
        at += 32
    acc = sum(turn(a, n) for a, n in zip(lanes, (1, 7, 12, 18))) & mask
    for lane in lanes:
        acc = ((acc ^ step(0, lane)) * p1 + p4) & mask
    acc = (acc + len(data)) & mask
    while at + 8 <= len(data):
        acc = (turn(acc ^ step(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & mask
        at += 8
    if at + 4 <= len(data):
        acc = (turn(acc ^ struct.unpack_from("<I", data, at)[0] * p1 & mask, 23) * p2 + p3) & mask
        at += 4
    for byte in data[at:]:
        acc = turn(acc ^ byte * p5 & mask, 11) * p1 & mask
    acc = (acc ^ acc >> 33) * p2 & mask
    acc = (acc ^ acc >> 29) * p3 & mask
    return acc ^ acc >> 32


class Agent:
    """Publishes types.snap again and again: only the generation and the value of int.one change."""

    def __init__(self, directory: str, name: str = "web", stale_ms: int = 60000) -> None:
        self.path = os.path.join(directory, name + ".snap")
        with open(os.path.join(GOLDEN, "types.snap"), "rb") as f:
            self.image = bytearray(f.read())
        at = self.image.index(b"int.one\0")
        self.one_at = at - 16
        with open(os.path.join(directory, name + ".gen"), "w+b") as f:
            page = b"PULGENP\x01" + struct.pack("<QIIQQ", 0, 0, 0, 0, stale_ms)
            f.write(page.ljust(4096, b"\0"))
            f.flush()
            self.page = mmap.mmap(f.fileno(), 4096)
        self.generation = 0

    def close(self) -> None:
        self.page.close()

    def publish(self, generation: int = 0) -> int:
        self.generation = generation or self.generation + 1
        struct.pack_into("<Q", self.image, 24, self.generation)
        struct.pack_into("<q", self.image, self.one_at, self.generation)
        struct.pack_into("<Q", self.image, 8, xxh64(bytes(self.image[16:])))
        with open(self.path + ".new", "wb") as f:
            f.write(self.image)
        os.rename(self.path + ".new", self.path)
        self.announce(self.generation)
        return self.generation

    def announce(self, generation: int) -> None:
        self.confirm()
        struct.pack_into("<I", self.page, 20, 0)
        struct.pack_into("<Q", self.page, 8, generation)
        self.wake(generation & 0xFFFFFFFF)

    def withdraw(self) -> None:
        os.unlink(self.path)
        struct.pack_into("<I", self.page, 20, 1)
        struct.pack_into("<Q", self.page, 24, 0)
        self.wake(1000 + self.generation)

    def wake(self, futex: int) -> None:
        struct.pack_into("<I", self.page, 16, futex)
        word = ctypes.c_char.from_buffer(self.page, 16)
        LIBC.syscall(SYS_FUTEX, ctypes.byref(word), FUTEX_WAKE, 2**31 - 1, None, None, 0)
        del word

    def confirm(self, ago_ms: int = 0) -> None:
        now_ms = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)
        struct.pack_into("<Q", self.page, 24, now_ms - ago_ms)


def golden(name: str) -> tuple[str, dict]:
    with open(os.path.join(GOLDEN, name + ".json"), encoding="utf-8") as f:
        return os.path.join(GOLDEN, name + ".snap"), json.load(f)


def tables() -> list[str]:
    """The golden table of values, and those that $PULLET_VALUES names, without their endings."""
    more = os.environ.get("PULLET_VALUES", "").split(":")
    return [os.path.join(GOLDEN, "values"), *filter(None, more)]


def answer(text: str, convert):
    """What a getter answers by the table: None is the default."""
    try:
        return None if text == "-" else convert(text)
    except OverflowError:
        return None


def expected(kind: str, text: str, value: str):
    scalars = {"null": None, "string": text}
    if kind in scalars:
        return scalars[kind]
    return {"bool": lambda: value == "true", "int": lambda: int(value),
            "double": lambda: float(value)}[kind]()


def same(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


class TestCase(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = scratch.name
        self.addCleanup(os.environ.pop, "PULLET_RUNTIME_DIR", None)
        os.environ["PULLET_RUNTIME_DIR"] = self.directory

    def agent(self, name: str = "web", **more: int) -> Agent:
        agent = Agent(self.directory, name, **more)
        self.addCleanup(agent.close)
        return agent


class OpenErrors(TestCase):
    def test_the_directory_and_what_was_meant_are_named(self):
        self.agent("web").publish()
        with self.assertRaises(pullet.NotPublished) as raised:
            pullet.open("wbe")
        self.assertEqual(str(raised.exception), f"[Errno 2] nothing is published under this name in {self.directory}: did you mean 'web'?: 'wbe'")
        os.environ["PULLET_RUNTIME_DIR"] = "/none\udcff"
        with self.assertRaises(pullet.NotPublished) as raised:
            pullet.open("web")
        self.assertIn("/none\udcff: No such file or directory: is the agent running?", str(raised.exception))


class Golden(TestCase):
    def test_the_content_is_that_of_the_json(self):
        for name in sorted(n[:-5] for n in os.listdir(GOLDEN)
                           if n.endswith(".json") and ".gen." not in n and n != "cases.json"):
            path, want = golden(name)
            with self.subTest(name), pullet.open(path) as config:
                self.assertEqual(config.generation, want["generation"])
                self.assertEqual(config.version, want["version"])
                self.assertEqual(len(config), len(want["keys"]))
                self.assertEqual(list(config), [k[0] for k in want["keys"]])
                for key, kind, text, value in want["keys"]:
                    self.assertIn(key, config)
                    if kind in ("list", "map"):
                        self.assertIsInstance(config[key], list if kind == "list" else dict)
                        self.assertIsNone(config.get_str(key), key)
                    else:
                        self.assertTrue(same(config[key], expected(kind, text, value)), key)
                        self.assertEqual(config.get_str(key), None if kind == "null" else text)
                    if kind == "list":
                        self.assertEqual(len(config[key]), int(value))
                for key in want["absent"]:
                    self.assertNotIn(key, config)

    def test_what_is_bad_is_refused(self):
        with open(os.path.join(GOLDEN, "bad", "bad.json"), encoding="utf-8") as f:
            cases = json.load(f)
        self.assertTrue(cases)
        for name, want in cases.items():
            path = os.path.join(GOLDEN, "bad", name + ".snap")
            with self.subTest(name):
                if "error" in want:
                    with self.assertRaises(pullet.Damaged) as raised:
                        pullet.open(path)
                    names = [want["error"]] if want["error"] else ["EBADMSG", "EPROTO"]
                    self.assertIn(errno.errorcode[raised.exception.errno], names)
                    self.assertEqual(raised.exception.filename, path)
                    continue
                with pullet.open(path) as config:
                    for key in want["keys"]:
                        self.assertNotIn(key, config)
                        self.assertEqual(config.get(key, "fallback"), "fallback")
                    for key, text in want["good"]:
                        self.assertEqual(config.get_str(key), text)
                    config.as_dict()

    def test_lists_and_maps_are_built(self):
        with pullet.open(golden("types")[0]) as config:
            self.assertEqual(config["list.many"], [i * i for i in range(12)])
            self.assertEqual(config["list"], {"empty": [], "many": [i * i for i in range(12)],
                                              "servers": [{"host": "a"}, {"host": "b"}]})
            self.assertEqual(config["list.servers.1"], {"host": "b"})
            self.assertEqual(config["map"], {"empty": {}})
            self.assertEqual(config["a\\.b"], {"..": "two dots", "c\\d": "dot and backslash"})
            tree = config.as_dict()
            self.assertEqual(tree["list"], config["list"])
            self.assertEqual(tree["a.b"], config["a\\.b"])
            self.assertNotIn("list.many", tree)
            deep = tree
            for _ in range(41):
                deep = deep["deep" if deep is tree else "d"]
            self.assertEqual(deep, "bottom")
            self.assertEqual(dict(config.items("list."))["list.servers"], config["list.servers"])

    def test_a_prefix_selects(self):
        path, want = golden("types")
        with pullet.open(path) as config:
            for prefix in ("int.", "k", "list.many.1", "none", "käse", "x\0y", "\udcff"):
                keys = [k[0] for k in want["keys"] if k[0].startswith(prefix)]
                self.assertEqual(config.keys(prefix), keys)
                self.assertEqual([k for k, _ in config.items(prefix)], keys)


class Types(TestCase):
    def setUp(self):
        super().setUp()
        self.config = pullet.open(golden("types")[0])
        self.addCleanup(self.config.close)

    def check(self, get, good, bad, default):
        named = getattr(pullet.Key, get.__name__)
        for key, want in good.items():
            handle = self.config.key(key)
            for _ in range(2):  # the second time it is known
                self.assertTrue(same(named(handle), want), key)
                self.assertTrue(same(named(handle, default=default), want), key)
            self.assertTrue(same(get(key), want), key)
            self.assertTrue(same(get(key, default), want), key)
        for key in [*bad, "absent", "", "int.one\0", "null.plain", "map"]:
            self.assertIsNone(get(key), key)
            self.assertIs(get(key, default), default, key)
            self.assertIs(get(default=default, key=key), default, key)
            handle = self.config.key(key)
            for _ in range(2):
                self.assertIsNone(named(handle), key)
                self.assertIs(named(handle, default), default, key)

    def test_str(self):
        self.check(self.config.get_str, {"int.hex": "0x1F", "bool.no": "false", "string.empty": ""},
                   ["list"], "x")

    def test_int(self):
        self.check(self.config.get_int, {
            "int.zero": 0, "int.max": 2**63 - 1, "int.min": -(2**63), "string.like_int": 42,
        }, ["string.space", "string.seven", "double.tenth", "bool.yes"], 5)

    def test_float(self):
        self.check(self.config.get_float, {
            "double.tenth": 0.1, "int.one": 1.0, "int.zero": 0.0, "double.minus_zero": -0.0,
            "double.nan": math.nan, "double.inf": math.inf, "string.like_double": 2.5,
        }, ["string.seven", "bool.yes"], 0.5)

    def test_bool(self):
        self.check(self.config.get_bool, {
            "bool.yes": True, "bool.no": False, "string.like_bool": True,
        }, ["int.one", "string.host"], True)

    def test_duration(self):
        self.check(self.config.get_duration, {"string.duration": timedelta(seconds=1.5)},
                   ["int.one", "string.size"], timedelta(1))

    def test_size(self):
        self.check(self.config.get_size, {"string.size": 65536, "int.one": 1, "int.zero": 0,
                                          "int.min": -(2**63)},
                   ["string.duration", "double.tenth"], 7)

    def test_the_table_of_values(self):
        for stem in tables():
            with pullet.open(stem + ".snap") as config, open(stem + ".tsv", encoding="utf-8") as f:
                rows = [line.rstrip("\n").split("\t") for line in f if line[0] != "#"]
                self.assertEqual(len(rows), len(config) + 1)  # one is absent
                for key, kind, text, whole, real, truth, duration, size in rows:
                    text = unquote(text) if kind in ("bool", "int", "double", "string") else None
                    for get, want in (
                        (config.get_str, text),
                        (config.get_int, answer(whole, int)),
                        (config.get_float, answer(real, float)),
                        (config.get_bool, answer(truth, lambda t: t == "true")),
                        (config.get_duration,
                         answer(duration, lambda t: timedelta(milliseconds=int(t)))),
                        (config.get_size, answer(size, int)),
                    ):
                        got, other = get(key), get(key, "another")
                        self.assertTrue(same(got, want), (stem, key, text, get, got))
                        self.assertTrue(same(other, "another" if want is None else want), key)
                        got = getattr(config.key(key), get.__name__)("another")
                        self.assertTrue(same(got, other), (stem, key, text, get, got))

    def test_key_errors(self):
        for key in ("absent", "", "int.one\0", "int.on"):
            with self.assertRaises(KeyError) as raised:
                self.config[key]
            self.assertEqual(raised.exception.args, (key,))
        self.assertNotIn(5, self.config)
        self.assertEqual(self.config.get("absent", 5), 5)
        self.assertIsNone(self.config.get("null.plain", 5))
        for key in ("list", "map.empty", "int.max", "a\\.b", "null.plain"):
            self.assertEqual(self.config.key(key).get(5), self.config[key])
        self.assertEqual(self.config.key("absent").get(5), 5)
        self.assertNotIn("\udcff", self.config)  # a byte that is not UTF-8

    def test_wrong_arguments(self):
        config, key = self.config, self.config.key("int.one")
        self.assertEqual((key.name, repr(key)), ("int.one", "<pullet.Key 'int.one'>"))
        for use in (lambda: config.get_str(5), lambda: config[5], lambda: config[b"int.one"],
                    lambda: config.key(5), lambda: config.keys(5), lambda: config.get_int(),
                    lambda: config.get("a", 1, 2), lambda: config.get_int("a", key="b"),
                    lambda: config.get_bool("a", other=1), lambda: key.get_str(1, 2),
                    lambda: key.get_str(key="a"), lambda: key.get(other=1), config.key):
            with self.assertRaises(TypeError):
                use()


class Life(TestCase):
    def test_nothing_published(self):
        with self.assertRaises(pullet.NotPublished) as raised:
            pullet.open("web")
        self.assertIsInstance(raised.exception, FileNotFoundError)
        self.assertIn("web", str(raised.exception))
        for name in ("", ".hidden", "a b"):
            with self.assertRaises(pullet.Error):
                pullet.open(name)
        with self.assertRaises(ValueError):
            pullet.open("a\0b")

    def test_wait_first(self):
        with pullet.open("web", wait_first=True) as config:
            self.assertEqual((config.generation, config.version, len(config)), (0, "", 0))
            self.assertEqual(config.as_dict(), {})
            self.assertFalse(config.refresh())
            self.assertFalse(config.wait(0.01))
            self.agent().publish()
            self.assertTrue(config.wait(DEADLINE))
            self.assertEqual(config["int.one"], 1)

    def test_what_may_not_be_read_is_a_permission_error(self):
        class Closed(pullet.Config):
            def _open(self, *_):
                return -errno.EACCES

        with self.assertRaises(PermissionError) as raised:
            Closed("web")
        self.assertIsInstance(raised.exception, (pullet.Error, pullet.Forbidden))
        self.assertEqual(raised.exception.errno, errno.EACCES)

    def test_withdrawn(self):
        agent = self.agent()
        agent.publish()
        with pullet.open("web") as config:
            self.assertFalse(config.withdrawn)
            agent.withdraw()
            self.assertTrue(config.withdrawn)
            for _ in range(2):  # not once: nobody goes on without knowing
                with self.assertRaises(pullet.Withdrawn) as raised:
                    config.refresh()
            self.assertEqual(raised.exception.errno, errno.EIDRM)
            self.assertIsInstance(raised.exception, pullet.NotPublished)
            self.assertEqual((config["int.one"], config.stale, config.age), (1, True, None))
            with self.assertRaises(pullet.Withdrawn):
                pullet.open("web")
            with pullet.open("web", wait_first=True) as empty:
                self.assertFalse(empty.refresh())
                self.assertTrue(empty.withdrawn)
            self.assertFalse(config.wait(0.01))  # for its return: that it is gone was said
            agent.publish()
            self.assertTrue(config.wait(DEADLINE))
            self.assertFalse(config.refresh())
            self.assertEqual((config["int.one"], config.withdrawn, config.stale), (2, False, False))
            agent.withdraw()
            with self.assertRaises(pullet.Withdrawn):
                config.wait(DEADLINE)
            agent.publish()
            self.assertTrue(config.refresh())

    def test_closed(self):
        config = pullet.open(golden("types")[0])
        key = config.key("int.one")
        self.assertEqual(key.get_str(), "1")
        with self.assertRaises(ValueError):
            config.__init__(golden("types")[0])  # once only
        config.close()
        config.close()
        for use in (lambda: config["int"], lambda: config.get("int"), lambda: config.get_int("a"),
                    lambda: config.get_str("a"), lambda: "int" in config, lambda: len(config),
                    lambda: list(config), config.items, config.as_dict, config.refresh, config.wait,
                    lambda: config.generation, lambda: config.version, lambda: config.age,
                    lambda: config.stale, config.__enter__, lambda: config.key("int.one"),
                    key.get, key.get_str, key.get_int):
            with self.assertRaises(ValueError):
                use()
        self.assertEqual(list(config.watch()), [])
        self.assertIn("closed", repr(config))

    def test_a_key_moves_with_its_config(self):
        with pullet.open("web", wait_first=True) as config:
            one, absent = config.key("int.one"), config.key("absent")
            self.assertEqual((one.get_str(), one.get_int(7), one.get("x")), (None, 7, "x"))
            agent = self.agent()
            for generation in (1, 2, 3):
                agent.publish()
                self.assertEqual(one.get_int(), config.get_int("int.one"))  # not yet
                self.assertTrue(config.refresh() if generation % 2 else config.wait(DEADLINE))
                for _ in range(2):
                    self.assertEqual((one.get_int(), one.get()), (generation, generation))
                    self.assertEqual((one.get_str(), one.get_size()), ("1", generation))
                    self.assertIsNone(absent.get())

    def test_the_text_of_a_key_is_that_of_the_version(self):
        agent = self.agent()
        host = agent.image.index(b"string.host\0") + len(b"string.host\0")
        agent.publish()
        with pullet.open("web") as config:
            key = config.key("string.host")
            first = key.get_str()
            agent.image[host : host + 1] = b"#"
            agent.publish()
            self.assertEqual((key.get_str(), key.get_str()), (first, first))
            self.assertTrue(config.refresh())
            self.assertEqual((key.get_str(), key.get_str()), ("#" + first[1:],) * 2)

    def test_a_key_keeps_its_config(self):
        self.agent().publish()
        key = pullet.open("web").key("string.host")
        gc.collect()
        self.assertEqual(key.get_str(), pullet.open("web").get_str("string.host"))

    def test_refresh_and_what_was_read_stays(self):
        agent = self.agent()
        agent.publish()
        with pullet.open("web") as config:
            items, tree = config.items(), config.as_dict()
            self.assertFalse(config.refresh())
            agent.publish()
            self.assertEqual(config["int.one"], 1)
            self.assertTrue(config.refresh())
            self.assertEqual((config["int.one"], config.generation), (2, 2))
            self.assertEqual(config.version, golden("types")[1]["version"])
            self.assertEqual((dict(items)["int.one"], tree["int"]["one"]), (1, 1))

    def test_a_damaged_new_version_leaves_the_old_one(self):
        agent = self.agent()
        agent.publish()
        with pullet.open("web") as config:
            with open(agent.path + ".bad", "wb") as f:
                f.write(bytes(agent.image[:-1]) + b"!")
            os.rename(agent.path + ".bad", agent.path)
            for generation, move in ((2, config.refresh), (3, lambda: config.wait(DEADLINE))):
                agent.announce(generation)
                with self.assertRaises(pullet.Damaged):
                    move()
            self.assertEqual((config["int.one"], config.generation), (1, 1))
            agent.publish(4)
            self.assertTrue(config.refresh())

    def test_age_and_stale(self):
        with pullet.open(golden("one")[0]) as config:
            self.assertIsNone(config.age)
            self.assertTrue(config.stale)
        agent = self.agent(stale_ms=60000)
        agent.publish()
        with pullet.open("web") as config:
            self.assertLess(config.age, timedelta(seconds=30))
            self.assertFalse(config.stale)
            agent.confirm(ago_ms=70000)
            self.assertGreaterEqual(config.age, timedelta(seconds=70))
            self.assertTrue(config.stale)

    def test_nothing_leaks(self):
        def usage():
            with open("/proc/self/statm", encoding="ascii") as f:
                pages = int(f.read().split()[1])
            with open("/proc/self/maps", encoding="ascii") as f:
                return pages, len(f.readlines()), len(os.listdir("/proc/self/fd"))

        agent = self.agent()
        agent.publish()
        with open(golden("one")[0], "rb") as f:  # small: the digest in Python is slow
            agent.image = bytearray(f.read())
        agent.one_at = len(agent.image) - 8  # the padding of the last record
        with pullet.open("web") as config:
            for i in range(1100):
                if i == 100:
                    before = usage()
                agent.publish()
                self.assertTrue(config.refresh())
                config.as_dict()
                self.assertRaises(KeyError, lambda: config["absent"])
                key = config.key("x" * 10000)
                key.get_str("y" * 10000)
                config.key(next(iter(config))).get_str()
            after = usage()
        self.assertLess(after[0] - before[0], 256)
        self.assertLessEqual(after[1], before[1] + 2)
        self.assertEqual(after[2], before[2])


class Waiting(TestCase):
    def setUp(self):
        super().setUp()
        self.server = self.agent()
        self.server.publish()
        self.config = pullet.open("web")
        self.addCleanup(self.config.close)

    def later(self, function, *arguments, after=0.1):
        timer = threading.Timer(after, function, arguments)
        timer.start()
        self.addCleanup(timer.join)

    def test_a_timeout(self):
        begin = time.monotonic()
        self.assertFalse(self.config.wait(0.3))
        self.assertTrue(0.29 <= time.monotonic() - begin < DEADLINE)
        self.assertFalse(self.config.wait(0))
        self.assertFalse(self.config.wait(-1))

    def test_a_timeout_that_no_clock_has(self):
        self.later(self.server.publish)
        self.assertTrue(self.config.wait(math.inf))
        with self.assertRaises(ValueError):
            self.config.wait(math.nan)

    def test_it_wakes_and_other_threads_run(self):
        self.addCleanup(setattr, pullet, "_SLICE_MS", pullet._SLICE_MS)
        pullet._SLICE_MS = 60000  # so that it is the futex that wakes it
        self.later(self.server.publish)
        begin = time.monotonic()
        self.assertTrue(self.config.wait(60))
        self.assertEqual(self.config.generation, 2)
        self.assertLess(time.monotonic() - begin, DEADLINE)

    def test_watch(self):
        seen = []
        self.later(self.server.publish)
        for config in self.config.watch():
            seen.append(config["int.one"])
            if len(seen) == 3:
                self.later(config.close, after=0.01)
            else:
                self.server.publish()
        self.assertEqual(seen, [2, 3, 4])

    def test_a_signal_handler_runs_and_may_move_it(self):
        seen = []

        def handler(*_):
            self.server.publish()
            seen.append(self.config.refresh())
            self.server.publish()

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, handler))
        self.later(os.kill, os.getpid(), signal.SIGUSR1)
        self.assertTrue(self.config.wait(DEADLINE))
        self.assertEqual((seen, self.config.generation), ([True], 3))

    def test_control_c_ends_it(self):
        self.later(os.kill, os.getpid(), signal.SIGINT)
        begin = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            self.config.wait(2 * DEADLINE)
        self.assertLess(time.monotonic() - begin, DEADLINE)

    def test_control_c_ends_it_when_another_thread_took_the_signal(self):
        self.later(signal.raise_signal, signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            self.config.wait(DEADLINE)
        self.assertEqual(self.config["int.one"], 1)

    def test_threads_with_one_each(self):
        seen, ready = [], threading.Barrier(5)

        def reader():
            with pullet.open("web") as config:
                ready.wait()
                last = config.generation
                while last < 20 and config.wait(DEADLINE):
                    self.assertGreater(config.generation, last)
                    last = config.generation
                    self.assertEqual(config["int.one"], last)
                seen.append(last)

        threads = [threading.Thread(target=reader) for _ in range(4)]
        for thread in threads:
            thread.start()
        ready.wait()
        while self.server.generation < 20:
            self.server.publish()
        for thread in threads:
            thread.join()
        self.assertEqual(seen, [20] * 4)

    def test_threads_that_share_one_do_not_crash(self):
        config, stop, failures = self.config, threading.Event(), []
        use = [lambda: config["list"], lambda: config.get_str("string.host"), config.as_dict,
               config.refresh, lambda: config.wait(0.001), lambda: config.version]

        def loop(function):
            while not stop.is_set():
                try:
                    function()
                except ValueError:
                    return  # closed
                except Exception as e:
                    failures.append(e)
                    return

        threads = [threading.Thread(target=loop, args=(f,)) for f in use]
        for thread in threads:
            thread.start()
        for _ in range(20):
            self.server.publish()
        config.close()
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    @unittest.skipIf(NATIVE, "no code of Python runs within a read")
    def test_a_signal_handler_may_not_move_what_it_interrupted(self):
        seen, scalar = [], sys.modules["pullet._ctypes"]._scalar

        def interrupted(value):  # as if a handler ran between two steps of a read
            if not seen:
                seen.append(None)
                for move in (self.config.refresh, self.config.close):
                    with self.assertRaises(RuntimeError):
                        move()
                seen.append(self.config["int.one"])
            return scalar(value)

        self.addCleanup(setattr, sys.modules["pullet._ctypes"], "_scalar", scalar)
        sys.modules["pullet._ctypes"]._scalar = interrupted
        self.assertEqual(self.config.items("int.one"), [("int.one", 1)])
        self.assertEqual(seen, [None, 1])

    def test_a_finalizer_that_moves_it_within_a_read(self):
        """The garbage collector runs when something is made, that is, in the middle of reads."""
        moved = []

        def move(phase, _):
            if phase == "start" and self.server.generation < 60:
                self.server.publish()
                try:
                    moved.append(self.config.refresh())
                except RuntimeError:
                    pass  # through ctypes: refused

        self.addCleanup(gc.set_threshold, *gc.get_threshold())
        gc.callbacks.append(move)
        self.addCleanup(gc.callbacks.remove, move)
        gc.set_threshold(1)
        while self.server.generation < 60:
            one, below = self.config["int"]["one"], dict(self.config.items("int."))
            self.assertIn(one, range(61))
            self.assertEqual(self.config["list.many"], [i * i for i in range(12)])
            self.assertEqual(below["int.max"], 2**63 - 1)
            self.assertIn("int", self.config.as_dict())
        self.assertIn(True, moved)

    @unittest.skipUnless(NATIVE, "ctypes lets others run at a refresh")
    def test_reads_keep_the_other_threads_out(self):
        """Who lets the interpreter go waits for it again, up to 5 ms where others work."""
        go, seen = threading.Lock(), []
        go.acquire()
        key = self.config.key("string.host")

        def other():
            with go:
                seen.append(None)

        thread = threading.Thread(target=other)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(60)
        go.release()
        for _ in range(1000):
            self.config.refresh()
            self.config.get_str("string.host")
            key.get_str()
            self.config["int.one"]
        self.assertEqual(seen, [])

    def test_others_wait_for_a_thread_that_waits(self):
        self.later(self.server.publish)
        thread = threading.Thread(target=self.config.wait, args=(DEADLINE,))
        thread.start()
        while thread.is_alive():
            self.assertIn(self.config["int.one"], (1, 2))
        thread.join()
        self.assertEqual(self.config["int.one"], 2)

    @unittest.skipUnless(NATIVE, "through ctypes the child waits for a lock that nobody has")
    def test_a_fork_while_another_thread_waits(self):
        thread = threading.Thread(target=self.config.wait, args=(DEADLINE,))
        thread.start()
        answered = b"1"
        while answered == b"1" and thread.is_alive():  # until it forks while the thread waits
            r, w = os.pipe()
            pid = os.fork()
            if pid == 0:
                try:
                    os.write(w, str(self.config["int.one"]).encode())
                except BaseException as e:
                    os.write(w, type(e).__name__.encode())
                os._exit(0)
            os.close(w)
            with open(r, "rb") as f:
                answered = f.read()
            os.waitpid(pid, 0)
        self.server.publish()
        thread.join()
        self.assertEqual((answered, self.config["int.one"]), (b"RuntimeError", 2))

    def test_a_fork_reads_on(self):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if self.config.wait(DEADLINE) and self.config["int.one"] == 2 else 1)
        self.server.publish()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)


class Interpreter(TestCase):
    """What takes an interpreter of its own."""

    def python(self, script, where=WHERE):
        self.agent().publish()
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)],
                              env=dict(os.environ, PYTHONPATH=where), capture_output=True,
                              text=True, timeout=12 * DEADLINE)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout.split()

    def test_the_implementation_is_the_one_that_is_there(self):
        self.assertEqual(pullet.implementation,
                         "native" if os.environ.get("PULLET_PYTHON") else "ctypes")

    def test_an_end_while_handles_live(self):
        self.assertEqual(self.python("""
            import atexit, pullet, threading
            config, key = pullet.open("web"), pullet.open("web").key("int.one")
            started = threading.Event()
            def wait():
                with pullet.open("web") as own:
                    started.set()
                    own.wait()
            threading.Thread(target=wait, daemon=True).start()
            started.wait()
            atexit.register(lambda: print(config["int.one"], key.get_int()))
            """), ["1", "1"])

    @unittest.skipUnless(sys.version_info[:2] in ((3, 10), (3, 11), (3, 12)), "moved since")
    def test_interpreters_within_a_process(self):
        self.assertEqual(self.python("""
            import _xxsubinterpreters as interpreters
            import pullet
            config, key = pullet.open("web"), pullet.open("web").key("int.one")
            script = '\\n'.join((
                'import pullet',
                'config = pullet.open("web")',
                'try:',
                '    pullet.open("none")',
                'except pullet.NotPublished:',
                '    print(config["int.one"], config.get_duration("string.duration"),',
                '          config.key("int.one").get_int(), config.refresh(), flush=True)'))
            for _ in range(3):
                other = interpreters.create()
                interpreters.run_string(other, script)
                interpreters.destroy(other)
            print(config["int.one"], key.get_int())
            """), ["1", "0:00:01.500000", "1", "False"] * 3 + ["1", "1"])

    def test_an_extension_that_cannot_be_loaded_is_told_and_done_without(self):
        where = os.path.join(self.directory, "broken")
        shutil.copytree(os.path.join(HERE, "pullet"), os.path.join(where, "pullet"))
        with open(os.path.join(where, "pullet", "_native.abi3.so"), "wb") as f:
            f.write(b"not one")
        self.assertEqual(self.python("""
            import warnings
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                import pullet
            print(len(told), "ctypes" in str(told[0].message), pullet.implementation)
            print(pullet.open("web")["int.one"])
            """, where=where), ["1", "True", "ctypes", "1"])


def main() -> int:
    faulthandler.dump_traceback_later(90, exit=True)  # nothing hangs: it fails
    names = [__name__, "test_cases", "test_application"]
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=1).run(suite)
    bad = {getattr(test, "test_case", test) for test, _ in result.failures + result.errors}
    print(f"{max(0, result.testsRun - len(bad))} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
