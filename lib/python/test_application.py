"""What an application does: asyncio's loop, dataclasses, a fake in its own tests.  Run by test_pullet.py."""

from __future__ import annotations

import asyncio
import errno
import os
import selectors
import threading
import time
import unittest
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Optional, Union

import pullet
from pullet.testing import Fake, write

DEADLINE = 20


class Waiting(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.config = Fake({"n": 1})
        self.addCleanup(self.config.close)

    async def bounded(self, what: Any) -> Any:
        return await asyncio.wait_for(what, DEADLINE)

    async def test_async_for_sees_each_version_without_a_thread(self):
        threads, seen = threading.active_count(), []

        async def follow() -> None:
            self.config.publish({"n": 2})
            async for config in self.config.watch():
                seen.append((config.generation, config["n"]))
                if len(seen) == 20:
                    break
                self.config.publish({"n": config["n"] + 1})

        await self.bounded(follow())
        self.assertEqual(seen, [(n, n) for n in range(2, 22)])
        self.assertEqual(threading.active_count(), threads)

    async def test_the_loop_goes_on_meanwhile(self):
        waiting = asyncio.create_task(self.config.wait_async())
        turns = 0
        while turns < 100:
            await asyncio.sleep(0)
            turns += 1
        self.assertFalse(waiting.done())
        self.config.publish({"n": 2})
        await self.bounded(waiting)
        self.assertEqual(self.config["n"], 2)

    async def test_a_version_that_came_before_is_there_at_once(self):
        self.config.publish({"n": 2})
        await self.bounded(self.config.wait_async())
        self.assertEqual(self.config["n"], 2)

    async def test_a_timeout_or_a_cancellation_ends_it_and_it_goes_on_later(self):
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(self.config.wait_async(), 0.01)
        waiting = asyncio.create_task(self.config.wait_async())
        await asyncio.sleep(0)
        waiting.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await waiting
        self.config.publish({"n": 3})
        await self.bounded(self.config.wait_async())
        self.assertEqual(self.config["n"], 3)

    async def test_its_own_timeout_may_be_a_fraction_of_a_second(self):
        for timeout in (0, 0.001, 0.02):
            began = time.monotonic()
            self.assertIs(await self.bounded(self.config.wait_async(timeout)), False)
            self.assertGreaterEqual(time.monotonic() - began, timeout)
        waiting = asyncio.create_task(self.config.wait_async(DEADLINE + 0.5))
        await asyncio.sleep(0)
        self.config.publish({"n": 5})
        self.assertIs(await self.bounded(waiting), True)

    async def test_withdrawn_is_raised_once(self):
        self.config.withdraw()
        with self.assertRaises(pullet.Withdrawn):
            await self.bounded(self.config.wait_async())
        waiting = asyncio.create_task(self.config.wait_async())
        await asyncio.sleep(0)
        self.assertFalse(waiting.done())
        self.config.publish({"n": 4})
        await self.bounded(waiting)
        self.assertEqual(self.config["n"], 4)

    async def test_closing_ends_a_watch_and_a_wait(self):
        async def follow() -> int:
            return len([config async for config in self.config.watch()])

        watching = asyncio.create_task(follow())
        await asyncio.sleep(0)
        self.config.close()
        self.assertEqual(await self.bounded(watching), 0)
        with self.assertRaises(ValueError):
            await self.config.wait_async()

    async def test_two_tasks_with_one_are_refused(self):
        waiting = asyncio.create_task(self.config.wait_async())
        await asyncio.sleep(0)
        with self.assertRaisesRegex(RuntimeError, "another task waits .*: open a second one"):
            await self.config.wait_async()
        self.config.publish({"n": 5})
        await self.bounded(waiting)

    async def test_before_the_first_version(self):
        with Fake() as config:
            waiting = asyncio.create_task(config.wait_async())
            await asyncio.sleep(0)
            config.publish({"n": 1})
            await self.bounded(waiting)
            self.assertEqual((config["n"], config.generation), (1, 1))


class Descriptor(unittest.TestCase):
    def test_any_selector(self):
        with Fake({"n": 1}) as config, selectors.DefaultSelector() as selector:
            selector.register(config, selectors.EVENT_READ)
            config.refresh()
            config.publish({"n": 2})
            self.assertTrue(selector.select(DEADLINE))
            self.assertTrue(config.refresh())
            self.assertEqual(config.fileno(), config.fileno())
        with self.assertRaises(ValueError):
            config.fileno()

    def test_for_still_works(self):
        with Fake({"n": 1}) as config:
            config.publish({"n": 2})
            for newer in config.watch():
                self.assertIs(newer, config)
                config.close()
            self.assertEqual(list(config.watch()), [])


class Fakes(unittest.TestCase):
    def test_a_fake_is_a_config(self):
        values = {"text": "x", "yes": True, "none": None, "int": -1, "most": 2**63 - 1, "real": 0.1,
                  "list": [1, [2], {}], "map": {"a.b": {"\\": "c"}}, "": "empty", "wait": "10s",
                  "size": "64KiB", "k\u00e4se": "\U0001f414"}
        with Fake(values, "v1") as config:
            self.assertIsInstance(config, pullet.Config)
            self.assertEqual(config.as_dict(), values)
            self.assertEqual((config.version, config.generation, config.stale), ("v1", 1, False))
            self.assertEqual(config.get_duration("wait"), timedelta(seconds=10))
            self.assertEqual(config.get_size("size"), 65536)
            self.assertEqual(config.get_str("real"), "0.1")
            self.assertEqual(config["map.a\\.b.\\\\"], "c")
            self.assertEqual(config.key("most").get_int(), 2**63 - 1)
            directory = os.path.dirname(config._path)
        self.assertFalse(os.path.exists(directory))

    def test_it_can_be_stale_withdrawn_and_not_there(self):
        with Fake({"a": 1}) as config:
            config.confirm(timedelta(hours=1))
            self.assertGreaterEqual(config.age, timedelta(hours=1))
            self.assertFalse(config.stale)
            config.confirm(stale=True)
            self.assertTrue(config.stale)
            config.withdraw()
            for _ in range(2):
                with self.assertRaises(pullet.Withdrawn):
                    config.refresh()
            config.publish({"a": 2})
            self.assertTrue(config.refresh())
            self.assertEqual((config["a"], config.withdrawn), (2, False))
        with Fake() as config:
            self.assertEqual((config.generation, config.as_dict()), (0, {}))

    def test_what_no_configuration_has_is_refused(self):
        for values, error in (({"a": object()}, TypeError), ({"a": 2**63}, OverflowError),
                              ({"a": "\0"}, ValueError), ({"a": b"x"}, TypeError), ({"a": timedelta(1)}, TypeError)):
            with self.assertRaises(error):
                Fake(values)
        with self.assertRaisesRegex(TypeError, "write a text such as '90s'"):
            Fake({"a": timedelta(seconds=90)})
        with self.assertRaises(pullet.Error) as raised:
            write("no-slash.snap", {})
        self.assertEqual(raised.exception.errno, errno.EINVAL)


@dataclass
class Inner:
    host: str
    limit: pullet.Size = 7


@dataclass
class Outer:
    inner: Inner
    some: Optional[Inner] = None
    names: dict[str, list[int]] = field(default_factory=dict)
    wide: list[Optional[float]] = field(default_factory=list)
    size: int = field(default=1, metadata={"key": "max-size"})
    whatever: Any = None
    made: int = field(init=False, default=3)


@dataclass
class Endless:
    inner: Endless


class Decoding(unittest.TestCase):
    def decode(self, values: dict, kind: Any = Outer, prefix: Optional[str] = None) -> Any:
        with Fake(values) as config:
            return config.decode(kind, prefix)

    def test_all_kinds(self):
        values = {"inner": {"host": "a", "limit": "1KiB"}, "some": {"host": "b"}, "max-size": 9,
                  "names": {"x.y": [1, "2"]}, "wide": [1, None, 0.5], "whatever": {"a": [1]}, "more": 1}
        self.assertEqual(self.decode(values), Outer(
            Inner("a", 1024), Inner("b"), {"x.y": [1, 2]}, [1.0, None, 0.5], 9, {"a": [1]}))
        self.assertEqual(self.decode({"deep": values}, Inner, "deep.inner"), Inner("a", 1024))
        self.assertEqual(self.decode({"a": {"b": "3"}}, dict[str, int], "a"), {"b": 3})

    def test_what_requires_itself_is_missing(self):
        with self.assertRaisesRegex(pullet.DecodeError, "inner.inner is missing"):
            self.decode({}, Endless)

    def test_errors_name_the_key(self):
        for values, key, what in (
            ({}, "inner.host", "is missing"), ({"inner": None}, "inner.host", "is missing"),
            ({"iner": {"host": "a"}}, "inner.host", "is missing: did you mean iner?"),
            ({"inner": {"host": []}}, "inner.host", "must be a text, but is a list"),
            ({"inner": {"host": "a"}, "some": {}}, "some.host", "is missing"),
            ({"inner": {"ho st": "a"}}, "inner.host", "is missing"),
            ({"inner": {"host": "a"}, "names": {"x.y": [1, "z"]}}, "names.x\\.y.1", "must be an integer such as 17, but is a text of another form"),
            ({"inner": {"host": "a"}, "max-size": True}, "max-size", "must be an integer such as 17, but is true or false"),
            ({"inner": [1]}, "inner", "must be a mapping, but is a list"),
        ):
            with self.assertRaises(pullet.DecodeError) as raised:
                self.decode(values)
            self.assertEqual(raised.exception.key, key)
            self.assertTrue(str(raised.exception).endswith(f"generation 1: {key} {what}"), raised.exception)
        with self.assertRaises(pullet.DecodeError):
            self.decode({"a": 1}, Inner, "b")
        with self.assertRaises(pullet.DecodeError) as raised:
            self.decode({"inner": {"hots": "a", "limit": "1KB"}, "names": {"x": ["y"] * 9}})
        self.assertEqual(raised.exception.problems[:3], [
            ("inner.host", "is missing: did you mean inner.hots?"),
            ("inner.limit", 'must be a size such as 64KiB, but is a text of another form'),
            ("names.x.0", "must be an integer such as 17, but is a text of another form")])
        self.assertEqual((len(raised.exception.problems), str(raised.exception)[-12:]), (11, "; and 3 more"))
        for kind in (Union[int, str], set, dict[int, str], dict, list):
            with self.assertRaisesRegex(TypeError, r"^a: nothing can be decoded as .*: there are str, .* and dict\[str, \.\.\.\]$"):
                self.decode({"a": {}}, kind, "a")
