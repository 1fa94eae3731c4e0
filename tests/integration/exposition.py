"""A strict reader of what /metrics answers: the Prometheus text format 0.0.4, and OpenMetrics 1.0 with `openmetrics`.

Stricter than Prometheus itself: whatever is not as the formats and their naming rules say is an AssertionError.
"""
import math
import re

NAME = r'[a-zA-Z_][a-zA-Z0-9_]*'
VALUE = r'(?:"((?:[^"\\\n]|\\\\|\\"|\\n)*)")'
SAMPLE = re.compile(rf'({NAME})(?:\{{({NAME}={VALUE}(?:,{NAME}={VALUE})*)\}})? (\d+(?:\.\d+)?)')
PAIR = re.compile(f'({NAME})={VALUE}')
ENDINGS = {'counter': ('_total',), 'info': ('_info',), 'histogram': ('_bucket', '_sum', '_count'), 'gauge': ('',)}
UNITS = ('seconds', 'bytes')


class Family:
    def __init__(self, name, kind):
        self.name, self.type, self.help, self.unit, self.samples = name, kind, None, None, {}


def unescape(text):
    return re.sub(r'\\(.)', lambda m: '\n' if m[1] == 'n' else m[1], text)


def labels_of(text):
    pairs = [(m[1], unescape(m[2])) for m in PAIR.finditer(text or '')]
    assert len({name for name, _ in pairs}) == len(pairs), f'a label stands twice in {text}'
    return tuple(sorted(pairs))


class Exposition:
    """`families` by name (without _total, _info and so on), `series` by (name, labels), where labels are sorted pairs."""

    def __init__(self, text, openmetrics=False):
        self.families, self.series, self.openmetrics = {}, {}, openmetrics
        assert text.endswith('\n') and '\r' not in text, 'lines end with a line feed'
        lines = text[:-1].split('\n')
        if openmetrics:
            assert lines.pop() == '# EOF', 'the last line is # EOF'
        family = None
        for line in lines:
            family = self._head(line, family) if line.startswith('#') else self._sample(line, family)
        self._end(family)

    def _head(self, line, family):
        m = re.fullmatch(rf'# (HELP|TYPE|UNIT) ({NAME}) (\S.*)', line)
        assert m, f'no good head: {line}'
        word, name, rest = m.groups()
        if word == 'HELP':
            self._end(family)
            assert name not in self.families, f'{name} stands in two places'
            assert rest.endswith('.') and '\\' not in rest, line
            family = self.families[name] = Family(name, None)
            family.help = rest
            return family
        assert family and name == family.name and not family.samples, f'out of place: {line}'
        if word == 'TYPE':
            assert family.type is None and rest in (('counter', 'gauge', 'histogram', 'info') if self.openmetrics else ('counter', 'gauge', 'histogram')), line
            family.type = rest
        else:
            assert self.openmetrics and family.type and family.unit is None and rest in UNITS and name.endswith('_' + rest), line
            family.unit = rest
        return family

    def _sample(self, line, family):
        m = SAMPLE.fullmatch(line)
        assert m, f'no good sample: {line}'
        name, labels, value = m[1], labels_of(m[2]), float(m[m.lastindex])
        assert family and family.type, f'without HELP and TYPE: {line}'
        ending = name[len(family.name):] if name.startswith(family.name) else None
        if self.openmetrics or family.type not in ('counter', 'info'):
            assert ending in ENDINGS[family.type], f'{line} in the family {family.name}, a {family.type}'
        else:
            assert ending == '' and (family.type != 'counter' or name.endswith('_total')), line
        if family.type == 'gauge':
            assert not re.search('_(total|sum|count|bucket)$', name), line
        assert (name, labels) not in self.series, f'twice: {line}'
        self.series[name, labels] = family.samples[name, labels] = value
        return family

    def _end(self, family):
        if family is None:
            return
        assert family.samples, f'{family.name} has no samples'
        base = re.sub('_total$', '', family.name)
        if self.openmetrics:
            assert family.unit == next((u for u in UNITS if base.endswith('_' + u)), None), f'the unit of {family.name}'
        if family.type == 'histogram':
            self._histogram(family)

    @staticmethod
    def _histogram(family):
        by = {}
        for (name, labels), value in family.samples.items():
            rest = tuple(pair for pair in labels if pair[0] != 'le')
            le = dict(labels).get('le')
            assert (le is not None) == name.endswith('_bucket'), name
            by.setdefault(rest, {})[(name[len(family.name):], le and float(le))] = value
        for labels, parts in by.items():
            buckets = [(le, value) for (part, le), value in parts.items() if part == '_bucket']
            bounds, counts = [le for le, _ in buckets], [value for _, value in buckets]
            assert bounds == sorted(set(bounds)) and bounds[-1] == math.inf, (family.name, labels, bounds)
            assert counts == sorted(counts), f'not cumulative: {family.name} {labels} {counts}'
            assert parts['_count', None] == counts[-1], (family.name, labels)
            total, low = parts['_sum', None], [0] + bounds[:-1]
            each = [b - a for a, b in zip([0] + counts, counts)]
            least = sum(n * le for n, le in zip(each, low))
            assert total + 1e-9 >= least - counts[-1] * 0.001, f'the sum is too small: {family.name} {labels}'
            if each[-1] == 0:
                assert total <= sum(n * le for n, le in zip(each, bounds) if n) + 1e-9, f'the sum is too large: {family.name} {labels}'

    def __getitem__(self, key):
        """By name, or by (name, {label: value}): the one series, or KeyError."""
        name, labels = key if isinstance(key, tuple) else (key, {})
        return self.series[name, tuple(sorted(labels.items()))]

    def get(self, key):
        try:
            return self[key]
        except KeyError:
            return None

    def one(self, name, **labels):
        """The label's value whose series is 1, of a metric that is a set of states: of the label that is not given."""
        found = [dict(pairs) for (n, pairs), value in self.series.items() if n == name and value == 1 and labels.items() <= dict(pairs).items()]
        assert len(found) <= 1, found
        if not found:
            return None
        rest = [value for key, value in found[0].items() if key not in labels]
        assert len(rest) == 1, found
        return rest[0]

    def counters(self):
        """Everything that may only grow."""
        return {key: value for family in self.families.values() if family.type in ('counter', 'histogram') for key, value in family.samples.items()}
