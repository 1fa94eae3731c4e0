"""Python: pullet.py, dict, os.environ, PyYAML with libyaml (its fast loader). Called by languages.py."""
import os
import sys
import time

import yaml

import pullet

ROUNDS = 5
folder, *keys = sys.argv[1:]


def parse():
    with open(os.path.join(folder, 'config.yaml'), encoding='utf-8') as f:
        return yaml.load(f, Loader=yaml.CSafeLoader)


def read_named(keys, turns):
    for _ in range(turns):
        for key in keys:
            key.get_str()


def rounds_of(read, n):
    """Nanoseconds of n reads; all keys in one turn of the loop, which is slow in this language."""
    turns = max(1, n // len(keys))
    begin = time.process_time_ns()
    if read is read_named:
        read_named(named, turns)
    else:
        for _ in range(turns):
            for key in keys:
                read(key)
    return (time.process_time_ns() - begin) / (turns * len(keys))


def measure(read):
    n = len(keys)
    while rounds_of(read, n) * n < 50e6:
        n *= 2
    return sorted(rounds_of(read, n) for _ in range(ROUNDS))[ROUNDS // 2]


config = pullet.open(os.path.join(folder, 'config.snap'))
everything = parse()
refresh = config.refresh
named = [config.key(key) for key in keys]
print(measure(config.get_str), measure(read_named), measure(lambda key: refresh()), measure(everything.__getitem__), measure(os.environ.__getitem__),
      measure(lambda key: parse()[key]), 'YAML, PyYAML with libyaml')
