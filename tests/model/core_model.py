"""The table that decides, a second time: agent/config/decide.c in Python, for tests/model/core_same.py.

Facts and values have the names of situation_facts. A row is a guard; the first that holds, and does not rest, is the step that begins.
"""
from collections import namedtuple

FACTS = {
    'mode': ('active', 'retiring'),
    'request': ('none', 'rollback', 'overrides'),
    'pin': ('none', 'set'),
    'saved': ('none', 'wanted', 'held', 'late'),
    'current': ('none', 'good', 'harmful'),
    'older': ('none', 'there'),
    'latest': ('unknown', 'same', 'new'),
    'verdict': ('free', 'rejected', 'probe', 'operator'),
    'force': ('none', 'asked'),
    'rollout': ('none', 'in', 'out'),
    'overrides': ('same', 'other'),
    'settings': ('same', 'other'),
    'place': ('as published', 'changed'),
    'drift': ('heal', 'report', 'leave'),
}
Situation = namedtuple('Situation', list(FACTS))
Row = namedtuple('Row', 'name action origin holds')
ROWS = []
OUTCOMES = 'current', 'held', 'failing'  # enum decide_outcome


def row(action, origin):
    """Adds a function to the table, as its next row."""
    def add(guard):
        ROWS.append(Row(guard.__name__, action, origin, guard))
        return guard
    return add


@row('roll back', 'operator')
def operator_rolls_back(s):
    return s.request == 'rollback'


@row('recompose', 'operator')
def operator_overrides(s):
    return s.request == 'overrides'


@row('show', 'start')
def saved_is_shown(s):
    return s.saved == 'wanted'


@row('roll back', 'probe')
def harmful_is_rolled_back(s):
    return s.current == 'harmful' and s.older == 'there' and s.pin == 'none'


@row('publish', 'pull')
def latest_is_published(s):
    return s.latest == 'new' and may_commit(s, 'pull')


@row('recompose', 'overrides')
def other_overrides(s):
    return s.current != 'none' and s.overrides == 'other'


@row('recompose', 'start')
def other_settings(s):
    return s.current != 'none' and s.settings == 'other'


@row('heal', 'heal')
def changed_by_others(s):
    return s.current != 'none' and s.place == 'changed' and s.drift == 'heal'


def may_commit(s, origin):
    """The gate: asked by the table, and once more just before the commit."""
    if origin == 'probe':
        return s.pin == 'none'
    if origin != 'pull':
        return True
    if s.pin == 'set':
        return False
    if s.force == 'asked':
        return True
    return s.verdict == 'free' and (s.rollout != 'out' or s.current == 'none')


def holding(s):
    """The rows that hold, in the order of the table."""
    return [] if s.mode == 'retiring' else [r for r in ROWS if r.holds(s)]


def outcome(s):
    """What the status says of a version that the servers have and that is not current."""
    if s.latest != 'new':
        return 'current'
    if s.verdict in ('rejected', 'probe'):
        return 'failing'
    if s.pin == 'set' or s.verdict == 'operator' or s.rollout == 'out':
        return 'held'
    return 'current'
