"""The documents of the soak: what is in a version, how each form writes it, and what a reader checks.

A version is texts: n counts up, k0 to k11 follow from its name and n, pad makes some large, end says whether it is the last one, and sum is
FNV-1a (32 bits) over all of these in that order, each with a newline, in decimal. Every reader, in whatever language, computes sum again.
"""
import json
import random
import re

KEYS = ['n', *(f'k{i}' for i in range(12)), 'pad', 'end']
LINE = re.compile(r'^(\w+)(?:: |=)"?([^"\n]*)"?$', re.M)


def fnv(text):
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xffffffff
    return value


def checksum(values):
    return str(fnv(''.join(values[key] + '\n' for key in KEYS)))


def make_version(name, n, end=False, large=False):
    """{key: text}, all of it."""
    pick = random.Random(f'{name} {n}')
    values = {'n': str(n), **{f'k{i}': f'v{pick.getrandbits(92):023x}' for i in range(12)}}
    values.update(pad='p' * (20000 if large else pick.randrange(40)), end='yes' if end else 'no')
    return {**values, 'sum': checksum(values)}


def write_yaml(values):
    return ''.join(f'{key}: "{text}"\n' for key, text in values.items())


def write_json(values):
    return json.dumps(values, indent=1) + '\n'


def parse(text):
    """{key: text} of a file in any of the forms."""
    if text.startswith('{'):
        return json.loads(text)
    return {key.lower(): value for key, value in LINE.findall(text)}


def flaw_of(values):
    """Why this is no whole version; None when it is one."""
    missing = [key for key in [*KEYS, 'sum'] if key not in values]
    if missing:
        return f'no {" ".join(missing)}'
    sum_ = checksum(values)
    return None if values['sum'] == sum_ else f'sum is {values["sum"]}, of what is there {sum_}'
