#!/usr/bin/python3
"""Writes the golden images beside itself, from lib/FORMAT.md alone: shares nothing with lib/snapshot.c. Needs python3-xxhash.

    make.py            writes NAME.snap with NAME.json (what readers of all languages must find in it), types.gen with types.gen.json
                       (a control page), bad/NAME.snap with bad/bad.json (what readers must refuse, and how), and the seed corpus
                       of tests/fuzz/fuzz_snapshot.c
    make.py --check    does so in a temporary directory and compares all bytes
    make.py --random DIR [SEED]
                       writes random.snap and random.tsv there, made like values.*, of thousands of texts; prints the seed

NAME.json: {"generation", "created_ms", "version", "keys": [[key, type, text, value], ...] in key order, "absent": [key, ...]}.
type is a name; value is a text: "" of null and string, true or false of bool, decimal of int, the shortest that reads back of
double (nan and inf as such), the count of list and map.

values.snap with values.tsv: what the typed getters answer. A line for each key: key, type ("absent": there is none), text (with %XX
for what is not plain), then what get_int, get_double (the shortest that reads back), get_bool, get_duration_ms and get_size answer;
"-" means the fallback. A language whose own type cannot hold an answer gives the fallback instead. Lines with '#' are for people.

bad.json: {name: {"error": "EBADMSG", "EPROTO" or null = either}}: the image is refused; or {name: {"keys": [key, ...], "good":
[[key, text], ...]}}: the image opens, and those keys are not found, nor listed; the good ones are.
"""
import filecmp
import json
import math
import os
import random
import re
import struct
import sys
import tempfile
import urllib.parse

import xxhash

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "..", "fuzz", "corpus", "snapshot")
TYPES = ["null", "bool", "int", "double", "string", "list", "map"]
MAGIC = b"PULSNAP\x01"
PAGE_MAGIC = b"PULGENP\x01"
HEADER = struct.Struct("<8sQQQQIIIIII")  # the digest is the second
RECORD = struct.Struct("<8sI3sB")


def pad(data, to):
    return data + b"\0" * (-len(data) % to)


def value_bytes(kind, text, count):
    if kind == "bool":
        return struct.pack("<Q", {"true": 1, "false": 0}[text.lower()])
    if kind == "int":
        return struct.pack("<q", number(kind, text))
    if kind == "double":
        return struct.pack("<d", number(kind, text))
    return struct.pack("<Q", count)


def number(kind, text):
    if kind == "double":
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    for prefix, base in (("0x", 16), ("0o", 8)):
        if text.startswith(prefix):
            return int(text[2:], base)
    return int(text)


def value_text(kind, text, count):
    if kind == "bool":
        return text.lower()
    if kind == "int":
        return str(number(kind, text))
    if kind == "double":
        return repr(number(kind, text))
    return str(count) if kind in ("list", "map") else ""


class Image:
    """Header, index, list, records, version, in the order in which pullet, too, writes them; entries: (key, type, text, count)."""

    def __init__(self, entries, generation, created_ms=0, version="", slot_count=None):
        self.entries = sorted(entries, key=lambda e: e[0].encode())
        self.generation, self.created_ms, self.version = generation, created_ms, version
        keys = [e[0].encode() for e in self.entries]
        assert len(set(keys)) == len(keys)
        if slot_count is None:
            slot_count = 2
            while slot_count < 2 * len(keys):
                slot_count *= 2
        assert slot_count > len(keys) and slot_count & (slot_count - 1) == 0
        self.slot_count = slot_count
        self.slots = 64
        self.order = self.slots + 8 * slot_count
        self.records = self.order + 4 * len(keys) + 4 * (len(keys) % 2)
        records, self.offset = b"", {}
        for key, (name, kind, text, count) in zip(keys, self.entries):
            body = text.encode()
            assert b"\0" not in key + body
            self.offset[name] = self.records + len(records)
            records += pad(RECORD.pack(value_bytes(kind, text, count), len(body), struct.pack("<I", len(key))[:3],
                                       TYPES.index(kind)) + key + b"\0" + body + b"\0", 8)
        self.version_at = self.records + len(records)
        slots, self.wraps, self.slot_of = [b"\0" * 8] * slot_count, 0, {}
        for name, key in zip(self.offset, keys):
            h = xxhash.xxh3_64_intdigest(key)
            at = h % slot_count
            while slots[at] != b"\0" * 8:
                at = (at + 1) % slot_count
                self.wraps += at == 0
            slots[at] = struct.pack("<II", h >> 32, self.offset[name])
            self.slot_of[name] = at
        order = struct.pack("<%dI" % len(keys), *self.offset.values())
        self.fields = dict(magic=MAGIC, file_size=None, generation=generation, created_ms=created_ms, key_count=len(keys),
                           slot_count=slot_count, slots=self.slots, order=self.order, records=self.records,
                           version=self.version_at)
        self.body = bytearray(b"".join(slots) + pad(order, 8) + records + pad(version.encode() + b"\0", 8))

    def put(self, at, data):
        """Overwrites bytes; at counts from the beginning of the file."""
        self.body[at - 64:at - 64 + len(data)] = data
        return self

    def bytes(self, **changed):
        f = dict(self.fields, **changed)
        size = 64 + len(self.body) if f["file_size"] is None else f["file_size"]
        rest = HEADER.pack(f["magic"], 0, size, f["generation"], f["created_ms"], f["key_count"], f["slot_count"], f["slots"],
                           f["order"], f["records"], f["version"])[16:] + bytes(self.body)
        return f["magic"] + struct.pack("<Q", xxhash.xxh64_intdigest(rest)) + rest

    def json(self, absent):
        keys = [[k, t, text, value_text(t, text, n)] for k, t, text, n in self.entries]
        assert not {k[0] for k in keys} & set(absent)
        lines = ",\n".join("  " + json.dumps(k) for k in keys)
        return ('{"generation": %d, "created_ms": %d, "version": %s,\n"keys": [\n%s\n],\n"absent": %s}\n' %
                (self.generation, self.created_ms, json.dumps(self.version), lines, json.dumps(absent))).encode()


def e(key, kind, text="", count=0):
    return key, kind, text, count


def types():
    return [
        e("null.plain", "null"), e("null", "map", count=1),
        e("bool", "map", count=2), e("bool.yes", "bool", "true"), e("bool.no", "bool", "false"),
        e("int", "map", count=9), e("int.min", "int", "-9223372036854775808"), e("int.max", "int", "9223372036854775807"),
        e("int.zero", "int", "0"), e("int.one", "int", "1"), e("int.minus", "int", "-1"), e("int.plus", "int", "+7"),
        e("int.hex", "int", "0x1F"), e("int.octal", "int", "0o17"), e("int.zeros", "int", "007"),
        e("double", "map", count=10), e("double.tenth", "double", "0.1"), e("double.minus_zero", "double", "-0.0"),
        e("double.small", "double", "1e-300"), e("double.subnormal", "double", "5e-324"),
        e("double.largest", "double", "1.7976931348623157e308"), e("double.third", "double", "0.3333333333333333"),
        e("double.exponent", "double", "12E03"), e("double.inf", "double", ".inf"), e("double.minus_inf", "double", "-.Inf"),
        e("double.nan", "double", ".NaN"),
        e("string", "map", count=13), e("string.empty", "string", ""), e("string.host", "string", "db.example.com"),
        e("string.long", "string", "0123456789abcdef" * 192), e("string.utf8", "string", "gr\u00fc\u00dfe \u65e5\u672c \U0001f414"),
        e("string.lines", "string", "one\ntwo\n\ttab \"quote\" \\ "), e("string.control", "string", "\x01\x1f\x7f"),
        e("string.like_int", "string", "42"), e("string.like_bool", "string", "true"), e("string.like_double", "string", "2.5"),
        e("string.duration", "string", "1500ms"), e("string.size", "string", "64KiB"), e("string.seven", "string", "7 bytes"),
        e("string.space", "string", " 42"),
        e("list", "map", count=3), e("list.empty", "list", count=0), e("list.servers", "list", count=2),
        e("list.servers.0", "map", count=1), e("list.servers.0.host", "string", "a"), e("list.servers.1", "map", count=1),
        e("list.servers.1.host", "string", "b"),
        e("list.many", "list", count=12), *[e("list.many.%d" % i, "int", str(i * i)) for i in range(12)],
        e("map", "map", count=1), e("map.empty", "map", count=0),
        e("a\\.b", "map", count=2), e("a\\.b.c\\\\d", "string", "dot and backslash"), e("a\\.b.\\.\\.", "string", "two dots"),
        e("a", "string", "a"), e("a.", "string", "an empty segment"), e("a b", "string", "a space"), e("A", "string", "upper"),
        e("deep", "map", count=1), *[e("deep" + ".d" * i, "map", count=1) for i in range(1, 40)], e("deep" + ".d" * 40, "string", "bottom"),
        # the order of bytes is neither that of UTF-16 units nor that of a locale
        e("k\u00e4se", "string", "umlaut"), e("k\ue000", "string", "private"), e("k\uff5e", "string", "wide tilde"),
        e("k\U0001f414", "string", "hen"), e("kz", "string", "z"),
        e("x" * 200, "string", "a long key"),
    ]


def many():
    """The same rule is in tests/unit/lib/test_snapshot.c."""
    entries = []
    for i in range(2000):
        key = "section%d.key%d" % (i % 13, i)
        if i % 3 == 0:
            entries.append(e(key, "int", str(i * 37 - 1000)))
        elif i % 3 == 1:
            entries.append(e(key, "string", "value %d" % i))
        else:
            entries.append(e(key, "bool", "true" if i % 2 else "false"))
    return entries


# ---- typed getters: what lib/pullet.h says, written a second time

INT64 = (-(1 << 63), (1 << 63) - 1)
DURATIONS = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "d": 86400000}
SIZES = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
UNITS = re.compile(r"([+-]?[0-9]+)([A-Za-z]*)")


def whole(kind, text, units, plain):
    """An integer with one of the units behind it, in 64 bits; plain: an int counts as well."""
    if kind == "int" and plain:
        return number(kind, text)
    m = UNITS.fullmatch(text) if kind == "string" else None
    n = int(m[1]) * units[m[2]] if m and m[2] in units else None
    return n if n is not None and INT64[0] <= n <= INT64[1] else None


def duration(kind, text):
    """Integers with units, the greatest first and each once, in 64 bits; the sign in front is that of all."""
    m = re.fullmatch(r"([+-]?)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?", text, re.ASCII) if kind == "string" else None
    parts = [(int(p.rstrip("dhms")), f) for p, f in zip(m.groups()[1:], sorted(DURATIONS.values(), reverse=True)) if p] if m else []
    n = sum(part * factor for part, factor in parts) * (-1 if m and m[1] == "-" else 1)
    return n if parts and INT64[0] <= n <= INT64[1] else None


def real(kind, text):
    if kind in ("int", "double"):
        return float(number(kind, text))
    n = float(text) if kind == "string" and DECIMAL.fullmatch(text) else math.inf
    return n if math.isfinite(n) else None


def truth(kind, text):
    return {"true": "true", "false": "false"}.get(text.lower() if kind == "bool" else text) if kind in ("bool", "string") else None


def answers(kind, text):
    got = (whole(kind, text, {"": 1}, True), real(kind, text), truth(kind, text),
           duration(kind, text), whole(kind, text, SIZES, True))
    return ["-" if a is None else str(a) for a in got]


def values_table(entries, remark):
    lines = ["# key\ttype\ttext\tint\tdouble\tbool\tduration_ms\tsize\n# %s\n" % remark]
    for key, kind, text, _ in sorted(entries, key=lambda e: e[0].encode()):
        quoted = urllib.parse.quote(text, safe="+.,:;'\"/()*<>=")
        lines.append("\t".join([key, kind, quoted] + answers(kind, text)) + "\n")
    return "".join(lines + ["absent\tabsent\t\t-\t-\t-\t-\t-\n"]).encode()


def limit_texts(units, limits):
    """Around each limit, in each unit: the last number that fits, and the first that does not."""
    for unit, factor in units.items():
        for limit in limits:
            last = limit // factor if limit > 0 else -(-limit // factor)
            for n in (last - 1, last, last + 1):
                yield "%d%s" % (n, unit)


VALUE_TEXTS = """0 -0 +0 7 +7 -7 007 -007 42 9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
18446744073709551615 18446744073709551616 99999999999999999999999999 00000000000000000000000000000042 + - ++1 +-1 1+ 1- 1_000 1,000 0x1f 0X1F 0o17
0b1 1e5 1E5 1.0 1. 1.10 12345678901234567890.0 0.1 .5 -.5 +.5 5. -5. . -. +. e E e5 .e5 1e 1e+ 1e- 1e+5 1e-5 1E+05 1e5.0 1.5e3 1..2 1.2.3 --1.5 1-1
1e400 -1e400 1e-400 -1e-400 1e308 1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 5e-324 2.5e-324 2.4e-324 2.2250738585072011e-308
0.1000000000000000055511151231257827 9007199254740993.0 1e1000000000 0e1000000000 1e-1000000000 1e99999999999999999999 inf Infinity -inf .inf -.inf +.inf .Inf nan
NaN .nan .NaN nan(1) 0x1p3 0x1.8p1 1d 1f 1L 1D 1F true false TRUE True FALSE False yes no on off null ~ t f
500ms 10s 5m 1h 2d 0s 0 -5s +5s 5 5S 5MS 5M 5H 5D 1h5m 1.5h 5us 5ns 5w 5y 5sec ms s -ms +s 5mss 5e3s 0x5s 106751d 106752d -106751d -106752d
1h30m -1h30m +1h30m 1d2h3m4s5ms 1d5ms 30m1h 1h1h 1h0m 0h 1h30 1h-5m 1h+5m 1h5 1h.5m 1h5m5 h5m 1hm -0h5m 1m1ms 1ms1s 106751d23h47m16s854ms -106751d23h47m16s854ms 106751d23h47m16s855ms
9223372036854775807ms 106751991167d7h12m55s807ms 106751991167d7h12m55s808ms -106751991167d7h12m55s808ms -106751991167d7h12m55s809ms
-0s9223372036854775808ms -0s9223372036854775809ms 0s9223372036854775808ms -0d0h9223372036854775808ms -1s9223372036854774808ms -1s9223372036854774809ms
999999999d 1000000000d -999999999d -1000000000d 64B 64KiB 8MiB 2GiB 1TiB 64kB 64KB 64k 64K 64Ki 64kib 64KIB 64b 1PiB 1.5KiB B KiB -1KiB +1KiB 1BB 1KiBB 1.0""".split()
VALUE_TEXTS += ["", " ", " 42", "42 ", "\t42", "42\n", "4 2", "+ 7", " true", "true ", "5 s", "5s ", " 5s", "1 KiB", "\u0664\u0662", "\uff14\uff12", "\u22121",
                "\u0664s", "gr\u00fc\u00dfe", "1" + "0" * 308, "1" + "0" * 309, "0." + "0" * 330 + "1", "1" + "0" * 3000, "0" * 3000 + "7s", "%41"]
VALUE_TEXTS += limit_texts(DURATIONS, INT64 + ((1 << 63) // 1000000, -(1 << 63) // 1000000, 86399999999999999, -86399999913600000))
VALUE_TEXTS += limit_texts(SIZES, INT64)
VALUE_INTS = "0 -0 +7 007 -1 0x1f 0x1F 0o17 255 9007199254740991 9007199254740992 9007199254740993 -9007199254740993 9223372036854775807 -9223372036854775808".split()
VALUE_INTS += ["%d" % (s * (1 << n) + d) for n in (7, 8, 15, 16, 31, 32) for s in (1, -1) for d in (-1, 0)]
VALUE_DOUBLES = """0.0 -0.0 0.1 1.0 1.10 -1.50 1E5 1e5 1e+5 12345678901234567890.0 0.30000000000000004 5e-324 1.7976931348623157e308 3.4028234663852886e+38 3.5e38
-3.5e38 1e300 1e-300 .5 5. .inf +.inf -.inf .Inf -.INF .nan .NaN .NAN""".split()


def value_entries(texts, ints, doubles):
    plain = [("null", ""), ("list", ""), ("map", "")] + [("bool", t) for t in ("true", "false", "True", "FALSE", "TRUE")]
    plain += [("int", t) for t in ints] + [("double", t) for t in doubles] + [("string", t) for t in dict.fromkeys(texts)]
    return [e("%s.%04d" % (kind, i), kind, text) for i, (kind, text) in enumerate(plain)]


def random_text(r):
    units = list(DURATIONS) + list(SIZES)
    digits = "".join(r.choices("0123456789", k=r.choice((1, 1, 2, 3, 5, 10, 17, 18, 19, 20, 25))))
    near = r.choice(INT64) // r.choice(list(DURATIONS.values()) + list(SIZES.values())) + r.randint(-2, 2)
    text = r.choice((str(near), r.choice(("", "", "+", "-")) + digits))
    if r.random() < 0.4:
        text += r.choice((".", "")) + r.choice((digits[:3], "")) + r.choice(("", "e", "E")) + r.choice(("", "+", "-")) + str(r.randint(0, 400))
    text += r.choice(units + [""] * 6)
    if r.random() < 0.2:
        text += "".join("%d%s" % (r.randint(0, 99), u) for u in ("d", "h", "m", "s", "ms") if r.random() < 0.4)
    while r.random() < 0.3:
        at = r.randint(0, len(text))
        text = text[:at] + r.choice("+-.eE019xobsmhdKMGTiB \t_\u00e9\u0664") * r.randint(0, 1) + text[at + r.randint(0, 1):]
    return text


def random_values(to, seed):
    r = random.Random(seed)
    ints = [str(r.choice(INT64) >> r.randint(0, 63)) for _ in range(500)]
    doubles = (struct.unpack("<d", r.randbytes(8))[0] for _ in range(500))
    entries = value_entries([random_text(r) for _ in range(8000)], ints, [repr(d) for d in doubles if math.isfinite(d)])
    write(os.path.join(to, "random.snap"), Image(entries, 1).bytes())
    write(os.path.join(to, "random.tsv"), values_table(entries, "make.py --random DIR %d" % seed))
    print("make.py: %d random values, seed %d" % (len(entries), seed))


def good():
    """name: (image, absent keys)"""
    images = {
        "types": (Image(types(), 7, 1700000000123, "W/7-gr\u00fc\u00dfe"), [
            "", "nul", "null.", "null.plain.", "null.plainx", "int.mi", "int.minn", "int.Min", ".", "a.b", "a\\", "a\\.", "a\\.b.",
            "list.many.12", "list.many.00", "deep" + ".d" * 41, "k", "k\u00e4", "x" * 199, "x" * 201, "zzz", "\U0010ffff"]),
        "empty": (Image([], 3, 1700000000000, "none"), ["", "a"]),
        "one": (Image([e("only", "string", "value")], 1), ["", "o", "onl", "only.", "Only", "onlyx", "p"]),
        "many": (Image(many(), 4294967296 + 5, 1732180000000, "v" * 255),
                 ["section0.key1", "section12.key2000", "section13.key13", "section0.", "section"]),
        "collide": (Image([e("", "string", "the empty key")] + [e("c%d" % i, "int", str(i)) for i in range(14)], (1 << 64) - 1,
                          (1 << 63) - 1, "c", slot_count=16), ["c", "c14", "c15", "c16", "c17", "c18", "c19", "c00"]),
    }
    for name in ("many", "collide"):
        assert images[name][0].wraps, name
    assert math.isnan(number("double", ".NaN"))
    return images


def small():
    return Image([e("a", "string", "first"), e("b", "int", "2"), e("c", "bool", "true")], 5, 0, "v5")


def bad():
    """name: (bytes, what readers do)"""
    s, made = small(), {}
    size, a, b, c = 64 + len(s.body), s.offset["a"], s.offset["b"], s.offset["c"]

    def whole(name, error="EBADMSG", data=None, **changed):
        made[name] = (small().bytes(**changed) if data is None else data, {"error": error})

    def record(name, image, keys, good_keys, **changed):
        made[name] = (image.bytes(**changed), {"keys": keys, "good": good_keys})

    whole("magic", "EPROTO", magic=b"PULSNAB\x01")
    whole("layout-version", "EPROTO", magic=b"PULSNAP\x02")
    whole("no-bytes", None, data=b"")
    whole("only-magic", None, data=MAGIC)
    whole("short-header", None, data=small().bytes()[:63])
    whole("digest", data=small().bytes()[:8] + b"\0" * 8 + small().bytes()[16:])
    whole("file-size-less", file_size=size - 8)
    whole("file-size-more", file_size=size + 8)
    whole("file-size-upper-half", file_size=size + (1 << 32))
    for n in (0, 1, 2, 3):
        whole("slot-count-%d" % n, slot_count=n)
    whole("slot-count-not-power", slot_count=6)
    whole("slot-count-huge", slot_count=1 << 31)
    whole("slot-count-overflows", slot_count=1 << 29)
    tight = Image(s.entries, 5, 0, "v5", slot_count=4)  # all else fits
    whole("key-count-is-slot-count", data=tight.bytes(key_count=4))
    whole("key-count-huge", key_count=0xffffffff)
    whole("key-count-overflows", key_count=1 << 30, slot_count=1 << 31)
    for field, step in (("slots", 64), ("order", 8), ("records", 8)):
        whole(field + "-outside", **{field: size + -size % step + step})
        whole(field + "-far-outside", **{field: 0x100000000 - step})
        whole(field + "-misaligned", **{field: s.fields[field] + step // 2})
    whole("slots-end-outside", slots=size // 64 * 64)
    whole("order-end-outside", order=size // 8 * 8 - 8)
    whole("version-outside", version=size)
    whole("version-far-outside", version=0xffffffff)
    whole("version-without-nul", data=small().put(size - 8, b"xxxxxxxx").bytes())
    whole("generation-0", generation=0)

    rest = [["a", "first"], ["c", "true"]]
    word = lambda n: struct.pack("<I", n)

    def point_b(at):
        """An image whose index and list look for b's record elsewhere."""
        return small().put(s.order + 4, word(at)).put(s.slots + 8 * s.slot_of["b"] + 4, word(at))

    record("record-outside", point_b(size), ["b"], rest)
    record("record-far-outside", point_b(0xfffffff8), ["b"], rest)
    record("record-cut", point_b(size - 8), ["b"], rest)
    record("record-without-key", point_b(size - 16), ["b"], rest)
    record("record-misaligned", point_b(b + 4), ["b"], rest)
    record("record-in-header", point_b(8), ["b"], rest)
    record("record-0", point_b(0), ["b"], rest)
    record("key-len-outside", small().put(b + 12, b"\xff\xff\xff"), ["b"], rest)
    record("key-len-to-end", small().put(c + 12, struct.pack("<I", size - c - 16)[:3]), ["c"], [["a", "first"], ["b", "2"]])
    record("key-without-nul", small().put(b + 17, b"x"), ["b"], rest)
    record("text-len-outside", small().put(b + 8, word(size)), ["b"], rest)
    record("text-len-to-end", small().put(c + 8, word(size - c - 18)), ["c"], [["a", "first"], ["b", "2"]])
    record("text-len-overflows", small().put(b + 8, b"\xff\xff\xff\xff"), ["b"], rest)
    record("text-without-nul", small().put(b + 19, b"x"), ["b"], rest)
    record("type-7", small().put(b + 15, b"\x07"), ["b"], rest)
    record("type-255", small().put(b + 15, b"\xff"), ["b"], rest)
    full = small()  # no slot is empty: a search for what is not there must end all the same
    for at in range(full.slot_count):
        if at not in full.slot_of.values():
            full.put(full.slots + 8 * at, word(xxhash.xxh3_64_intdigest(b"absent") >> 32) + word(full.offset["a"]))
    record("no-empty-slot", full, ["absent", "nothing", ""], [["a", "first"], ["b", "2"], ["c", "true"]])
    return made


def page(generation, futex, confirmed_ms, stale_ms):
    return (PAGE_MAGIC + struct.pack("<QIIQQ", generation, futex, 0, confirmed_ms, stale_ms)).ljust(4096, b"\0")


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def seed(mode, key, image):
    """As fuzz_snapshot.c reads it: mode (odd: digest and file_size are mended), length of a key, key, image."""
    return bytes([mode, len(key)]) + key + image


def generate(here, corpus):
    values = value_entries(VALUE_TEXTS, VALUE_INTS, VALUE_DOUBLES)
    write(os.path.join(here, "values.snap"), Image(values, 1).bytes())
    write(os.path.join(here, "values.tsv"), values_table(values, "made by make.py from lib/pullet.h"))
    for name, (image, absent) in good().items():
        write(os.path.join(here, name + ".snap"), image.bytes())
        write(os.path.join(here, name + ".json"), image.json(absent))
        if name != "many":
            for mode in (0, 1):
                key = image.entries[-1][0].encode()[:255] if image.entries else b""
                write(os.path.join(corpus, "%s-%s" % (name, "mended" if mode else "as-is")), seed(mode, key, image.bytes()))
    expected = {}
    for name, (data, what) in bad().items():
        write(os.path.join(here, "bad", name + ".snap"), data)
        expected[name] = what
        key = what.get("keys", ["b"])[0].encode()
        write(os.path.join(corpus, "bad-" + name), seed(1, key, data))
    lines = ",\n".join("  %s: %s" % (json.dumps(n), json.dumps(w)) for n, w in sorted(expected.items()))
    write(os.path.join(here, "bad", "bad.json"), ("{\n%s\n}\n" % lines).encode())
    fields = dict(generation=7, futex=42, confirmed_ms=123456789012, stale_ms=90000)
    write(os.path.join(here, "types.gen"), page(**fields))
    write(os.path.join(here, "types.gen.json"), (json.dumps(fields) + "\n").encode())


def tree(top):
    return sorted(os.path.relpath(os.path.join(d, f), top) for d, _, files in os.walk(top) for f in files)


BY_HAND = {"documents.tsv", "cases.json"}


def check():
    wrong = 0
    with tempfile.TemporaryDirectory() as t:
        pairs = ((os.path.join(t, "golden"), HERE), (os.path.join(t, "corpus"), CORPUS))
        generate(pairs[0][0], pairs[1][0])
        for new, old in pairs:
            for name in tree(new):
                if not os.path.exists(os.path.join(old, name)) or not filecmp.cmp(os.path.join(new, name),
                                                                                  os.path.join(old, name), shallow=False):
                    print("make.py: differs or is missing: " + os.path.normpath(os.path.join(old, name)))
                    wrong += 1
            for name in set(tree(old)) - set(tree(new)):
                if name.endswith((".snap", ".gen", ".json", ".tsv")) and name not in BY_HAND and not name.startswith("state-"):
                    print("make.py: nobody makes " + os.path.normpath(os.path.join(old, name)))
                    wrong += 1
    return wrong > 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    if sys.argv[1:2] == ["--random"] and len(sys.argv) in (3, 4):
        sys.exit(random_values(sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else random.SystemRandom().getrandbits(32)))
    if sys.argv[1:]:
        sys.exit(__doc__)
    generate(HERE, CORPUS)
