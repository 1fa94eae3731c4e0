"""What a composed document says is what its layers said, to readers of YAML 1.1 and of 1.2: each scalar that was not changed keeps its text and its type."""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time

import yaml

import harness
from harness import PULLET, PULLETD, Agent

SEED = int(os.environ.get('PULLET_SEED', time.time_ns() // 1000))
DOCUMENTS = int(os.environ.get('PULLET_DOCUMENTS', 200))
BATCH = 100  # documents of one agent


# ---- readers

class Reader11(yaml.SafeLoader):
    """YAML 1.1 as PyYAML reads it: yes, 0644, 12:30:45, 1_000, 2001-12-14, = and << have types."""


class Reader12(yaml.SafeLoader):
    """The 1.2 core schema (chapter 10.3.2), with merge keys."""
    yaml_implicit_resolvers = {}


for kind, pattern in (
        ('null', r'null|Null|NULL|~|'),
        ('bool', r'true|True|TRUE|false|False|FALSE'),
        ('int', r'[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+'),
        ('float', r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)'),
        ('merge', r'<<')):
    Reader12.add_implicit_resolver('tag:yaml.org,2002:' + kind, re.compile(f'(?:{pattern})$'), None)

READERS = (Reader11, Reader12)


def scalar(node):
    kind = node.tag.rsplit(':', 1)[-1]
    return (kind, '' if kind == 'null' else node.value)


def members(node):
    """(key, value) of a mapping, merge keys resolved: explicit keys and earlier mappings win."""
    merged, own = {}, {}
    for key, value in node.value:
        if key.tag.endswith(':merge'):
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                for k, v in members(source):
                    merged.setdefault(k, v)
        else:
            own[scalar(key)[0], key.value] = value  # null in another spelling is another key of the agent's, and of a reader's the last one counts
    return list({**merged, **own}.items())


def flat(text, reader):
    """{path: (type, text)} of each scalar and each empty collection."""
    found = {}

    def walk(node, path):
        if isinstance(node, yaml.ScalarNode):
            found[path] = scalar(node)
            return
        children = members(node) if isinstance(node, yaml.MappingNode) else list(enumerate(node.value))
        if not children:
            found[path] = ('empty', node.id)
        for key, child in children:
            walk(child, path + (key,))
    walk(yaml.compose(text, reader), ())
    return found


# ---- what readers differ on

TRAPS = '''
yes Yes YES no No NO on On ON off Off OFF y Y n N true True TRUE tRUE false False FALSE null Null NULL nULL ~
0 -0 +0 1 +1 -1 007 010 0644 -0644 +0644 08 09 0o17 0o18 0O17 0x1F 0x1f -0x1f 0X1F 0xG 0b101 0B1 1_000 _1 1__0 0x_1f 9223372036854775807 -9223372036854775808
1.10 1.0 1. .5 -.5 +.5 .5e3 1e3 1E5 1e+3 1.5e3 1.5e+3 1.5E-3 12345678901234567890.0 1_000.5 6.8523015e+5 685_230.15 1e-400 .inf .Inf -.INF +.inf .nan .NaN .NAN nan NaN inf Infinity . .. ... -. +
12:30 12:30:45 190:20:30 190:20:30.15 -1:30 1:60 0:0 22:30:45.5
2001-12-14 2001-1-1 2001-12-14t21:59:43.10-05:00 2001-12-14T21:59:43Z 2001-12-15 99-12-14
= << < >x - -- --- -a ?a :a a:b a:b:c a#b /x @x `x %x !x &x *x |x 'x "x [x {x ,x x, x] x} ]x }x #x
'''.split() + ['', ' ', ' lead', 'trail ', 'a b', 'a: b', 'a #b', 'a:', '- a', '? a', 'tab\there', 'two\nlines', 'two\nlines\n', '\n', 'a\n\n', '\n\na', ' x\ny', 'x\n y', 'x \ny',
               'x\n  \ny', 'é', '日本', '😀', '\x07', '\x7f', '\x85', '\u2028', 'a \u2029 b', '\ufeff', 'a\ufeffb', '"', "'", '\\', '\\n', '\'"', 'key: value', '1 2', 'x' * 200, 'y ' * 100]


def is_plain(text):
    """Can this stand alone behind "k: "?"""
    if not text or text != text.strip() or '\n' in text or not text.isprintable():
        return False
    for reader in READERS:
        try:
            node = yaml.compose(f'k: {text}\n? {text}\n: [{text}, 1]\n', reader)
        except yaml.YAMLError:
            return False
        if len(node.value) != 2 or len(node.value[1][1].value) != 2:
            return False
        for found in (node.value[0][1], node.value[1][0], node.value[1][1].value[0]):
            if not isinstance(found, yaml.ScalarNode) or found.value != text:
                return False
    return True


def as_refused(text):
    """Numbers that are too large are refused."""
    return bool(re.fullmatch(r'[-+]?[0-9]{19,}', text)) and abs(int(text)) >= 2**63


PLAIN = [t for t in TRAPS if is_plain(t)] + ['word', 'two words', 'http://h/a?b=c&d', 'a-b_c.d', '10s', '64KiB', '1.2.3', '127.0.0.1']


# ---- documents

class Writer:
    """Writes a random document; `names` are the keys of its root that no reader differs on."""

    def __init__(self, rng):
        self.rng, self.lines, self.names, self.anchors, self.counter = rng, [], [], [], 0
        for _ in range(rng.randint(3, 12)):
            self.names.append(self.name())
            self.member(self.names[-1], 0, 0)
        for text in rng.sample(PLAIN, 4):
            if text != '<<':
                self.member(text if rng.random() < 0.8 else "'" + text + "'", 0, 0)
        if rng.random() < 0.3:
            self.lines.append(rng.choice(('? |\n  a key\n  of lines\n: 1', '? "a key"\n: - x', '!!int 77: x', '!!str 78: x', "!!str 7e1: 'yes'", '?\n: no key', '"a\\nb": c')))
        self.text = '\n'.join(self.lines) + '\n'

    def name(self):
        self.counter += 1
        return f'k{self.counter}'

    def comment(self):
        return self.rng.choice(('', '', '', '  # yes: no', ' # é'))

    def quoted(self, text, double):
        if not double and text.isprintable():
            return "'" + text.replace("'", "''") + "'"
        text = json.dumps(text, ensure_ascii=self.rng.random() < 0.5)
        text = text.replace('\x7f', '\\x7F').replace('\x85', '\\N').replace('\u2028', '\\L').replace('\u2029', '\\P').replace('\ufeff', '\\uFEFF')
        return re.sub(r'\\ud([89ab]..)\\ud(...)', lambda m: '\\U%08X' % (0x10000 + ((int(m[1], 16) & 0x3ff) << 10) + (int(m[2], 16) & 0x3ff)), text)

    def flow(self, depth):
        """A value in one line."""
        rng = self.rng
        choice = rng.random()
        if choice < 0.45:
            return rng.choice(PLAIN)
        if choice < 0.75:
            return self.quoted(rng.choice(TRAPS), rng.random() < 0.5)
        if choice < 0.82:
            # not "! 5": a string to YAML, and to us; no tag at all to PyYAML
            return rng.choice(('!!str 123', '!!str yes', "!!int '5'", '!!float 5', '!!float 0o17', '!!int 0o17', "!!null ''", '!!bool "true"', "! 'x'", '!!str ""', '!!str ~', '!!float "1.10"'))
        if choice < 0.86 and self.anchors:
            return '*' + rng.choice(self.anchors) + ' '
        if depth > 3:
            return 'deep'
        if choice < 0.93:
            return '[' + ', '.join(self.flow(depth + 1) for _ in range(rng.randint(0, 3))) + ']'
        return '{' + ', '.join(f'{self.name()}: {self.flow(depth + 1)}' for _ in range(rng.randint(0, 3))) + '}'

    def block(self, indent):
        """A block scalar."""
        rng = self.rng
        pieces = ['line', 'yes', '1', 'a: b', '# no comment', '', '  deeper', '- x', 'trail  ', 'é 😀', '\ttab']
        lines = [rng.choice(pieces) for _ in range(rng.randint(1, 5))]
        while lines and not lines[0].strip():
            lines.pop(0)
        lines = lines or ['one']
        lines[0] = lines[0].strip() + rng.choice(('', ' '))
        lines += [''] * rng.choice((0, 0, 1, 2))
        return rng.choice('|>') + rng.choice(('', '-', '+')) + ''.join('\n' + (' ' * (indent + 2) + line if line else '') for line in lines)

    def member(self, key, indent, depth):
        rng, pad = self.rng, ' ' * indent
        choice = rng.random()
        if choice < 0.15 and depth < 4:
            anchor = ' &' + self.name() if rng.random() < 0.4 else ''
            self.lines.append(f'{pad}{key}:{anchor}{self.comment()}')
            if rng.random() < 0.3 and self.anchors and depth:
                self.lines.append(f'{pad}  <<: *{rng.choice(self.anchors)}')
            for _ in range(rng.randint(1, 4)):
                self.member(self.name(), indent + 2, depth + 1)
            if rng.random() < 0.5:
                self.member(rng.choice([t for t in PLAIN if t != '<<']), indent + 2, depth + 1)
            if anchor:
                self.anchors.append(anchor[2:])
        elif choice < 0.3 and depth < 4:
            self.lines.append(f'{pad}{key}:{self.comment()}')
            for _ in range(rng.randint(1, 4)):
                item = rng.choice(('', self.flow(0), self.block(indent), f'{self.name()}: {self.flow(0)}'))
                self.lines.append(f'{pad}- {item}')
        elif choice < 0.45:
            self.lines.append(f'{pad}{key}: {self.block(indent)}')
        elif choice < 0.5:
            self.lines.append(f'{pad}{key}:{self.comment()}')  # null
        elif choice < 0.55:
            self.lines.append(f'{pad}{key}: some words\n{pad}  that go on\n\n{pad}  and on')
        elif choice < 0.58:
            self.lines.append(f'{pad}{key}: "quoted\n{pad}  lines \\\n{pad}   x\n\n{pad}  end"')
        elif choice < 0.61:
            self.lines.append(f"{pad}{key}: 'quoted\n{pad}  lines\n\n{pad}  it''s the end '")
        else:
            value = self.flow(0)
            self.lines.append(f'{pad}{key}: {value}{self.comment()}')


def readable(rng):
    """A document that PyYAML can read (it is stricter than YAML here and there)."""
    while True:
        document = Writer(rng)
        try:
            for reader in READERS:
                flat(document.text, reader)
            return document
        except yaml.YAMLError:
            pass


def second_layer(rng, names):
    """(type, text, the keys of the root that it touches)."""
    unrelated = rng.choice((('yaml', 'zz1: yes\nzz2: {zz3: 0644}\n'), ('json', '{"zz1": "yes", "zz2": {"zz3": 1E5}}'), ('yaml', '{}\n'), ('json', '{}')))
    touched = rng.sample(names, rng.randint(1, min(3, len(names))))
    changes = {name: rng.choice((None, 'changed', 1, [1, 'no'], {'zz': {'on': True}}, {})) for name in touched}
    if rng.random() < 0.4:
        return (*unrelated, set())
    if rng.random() < 0.5:
        return 'json', json.dumps(changes), set(touched)
    return 'yaml', yaml.safe_dump(changes), set(touched)


class Case(harness.Case):
    def compose(self, documents):
        """Publishes each (layers, format), in order; a layer is (type, text). Returns the files' texts."""
        os.makedirs(self.path('out'), exist_ok=True)
        configs = []
        for i, (layers, how) in enumerate(documents):
            sources = []
            for n, (kind, text) in enumerate(layers):
                name = f'src/{i}-{n}.{kind}'
                self.write(name, text)
                sources.append(f'      - {{server: disk, path: "{self.path(name)}"}}')
            configs.append(f'  c{i}:\n    file: {self.path(f"out/{i}")}\n{how}    from:\n' + '\n'.join(sources))
        self.write('pullet.yaml', f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
  log: {{level: warn}}
servers:
  disk: {{kind: file, max_in_flight: 50}}
configs:
''' + '\n'.join(configs) + '\n')
        done = subprocess.run([PULLETD, '-c', self.path('pullet.yaml'), '--once'], capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return [self.read(f'out/{i}').decode() for i in range(len(documents))]

    def unchanged(self, source, composed, touched=(), more=''):
        for reader in READERS:
            before, after = flat(source, reader), flat(composed, reader)
            untouched = {path: value for path, value in before.items() if not (path and path[0][1] in touched)}
            found = {path: after.get(path) for path in untouched}
            if found != untouched:
                path = next(path for path in untouched if found[path] != untouched[path])
                self.fail(f'{more}\n{reader.__name__}: {path}: {untouched[path]} became {found[path]}\n--- source\n{source}\n--- composed\n{composed}')
            new = {path[0][1] for path in set(after) - set(untouched) if path}
            self.assertLessEqual(new, set(touched) | {'zz1', 'zz2'}, f'{more}\n{source}\n---\n{composed}')


class Documents(Case):
    def test_what_was_not_changed_reads_the_same_to_readers_of_1_1_and_1_2(self):
        print(f'# PULLET_SEED={SEED} repeats this', file=sys.stderr)
        for start in range(0, DOCUMENTS, BATCH):
            batch = []
            shutil.rmtree(self.path('state'), ignore_errors=True)
            for n in range(start, start + BATCH):
                rng = random.Random(SEED + n)
                document = readable(rng)
                layers, how, touched = [('yaml', document.text)], '', set()
                if rng.random() < 0.2:
                    how = '    format: yaml\n'
                else:
                    kind, text, touched = second_layer(rng, document.names)
                    layers.append((kind, text))
                batch.append((layers, how, touched))
            texts = self.compose([(layers, how) for layers, how, _ in batch])
            for n, ((layers, _, touched), text) in enumerate(zip(batch, texts), start):
                self.unchanged(layers[0][1], text, touched, f'PULLET_SEED={SEED + n}')

    def test_the_comparison_sees_each_kind_of_change(self):
        """Else it would prove nothing."""
        source = 'a: 0644\nb: yes\nc: 1.10\nd: 12:30:45\ne: "1"\non: {x: ~}\nf: [1, {}]\n'
        self.unchanged(source, source)
        for old, new in (('0644', '644'), ('0644', "'0644'"), ('yes', "'yes'"), ('yes', 'true'), ('1.10', '1.1'), ('12:30:45', '"12:30:45"'), ('"1"', '1'), ('on:', '"on":'), ('~', '""'),
                         ('{}', '[]'), ('1, {}', '{}, 1'), ('f: [1, {}]\n', ''), ('a: 0', 'z: 1\na: 0')):
            with self.assertRaises(AssertionError, msg=(old, new)):
                self.unchanged(source, source.replace(old, new, 1))


class Traps(Case):
    """Each value that readers differ on, as it may come."""

    def test_plain_ones_keep_their_text(self):
        plain = [t for t in PLAIN if t != '<<' and not as_refused(t)]
        source = ''.join(f'k{i}: {text}\n' for i, text in enumerate(plain)) + 'keys:\n' + ''.join(f'  {text}: x\n' for text in plain) + 'list:\n' + ''.join(f'- {text}\n' for text in plain)
        documents = [([('yaml', source)], '    format: yaml\n')]
        documents += [([('yaml', source), second], '') for second in (('yaml', 'zz1: 1\n'), ('json', '{"zz1": 1}'), ('yaml', 'keys: {zz: 1}\n'), ('json', '{"keys": {"on": "changed"}}'))]
        texts = self.compose(documents)
        for text in texts[:3]:
            self.unchanged(source, text)
            for line in source.splitlines():
                if line.isascii() and '...' not in line and '---' not in line and len(line) < 100:  # libyaml writes these in quotes, or as "? KEY"
                    self.assertIn(line.removesuffix(' x'), text)
        self.unchanged(source, texts[3], {'keys'})
        for reader in READERS:  # a key keeps its text and type where its value is another one
            self.assertEqual(flat(source.replace('  on: x', '  on: changed'), reader), flat(texts[4], reader))

    def test_strings_of_json_are_strings_to_each_reader(self):
        strings = {f'k{i}': text for i, text in enumerate(TRAPS)}
        tree = {**strings, 'list': TRAPS, 'keys': dict.fromkeys(TRAPS, 'x')}
        texts = self.compose([([('json', json.dumps(tree))], '    format: yaml\n'),
                              ([('yaml', json.dumps(tree)), ('json', '{"zz1": 1}')], ''),
                              ([('yaml', 'zz1: 1\n'), ('json', json.dumps(tree, ensure_ascii=False))], '')])
        for text in texts:
            for reader in READERS:
                found = flat(text, reader)
                for i, value in enumerate(TRAPS):
                    self.assertEqual(found[(('str', f'k{i}'),)], ('str', value), text)
                    self.assertEqual(found[(('str', 'list'), i)], ('str', value))
                    self.assertEqual(found[(('str', 'keys'), ('str', value))], ('str', 'x'))

    def test_numbers_of_json_keep_their_text(self):
        numbers = ['1.10', '12345678901234567890.0', '1E5', '-0', '0.0', '-0.0', '1e-400', '2.50E+03', '9223372036854775807', '0']
        source = '{' + ', '.join(f'"k{i}": {n}' for i, n in enumerate(numbers)) + '}'
        for how in ('yaml', 'json', 'env', 'properties'):
            for kind in ('json', 'yaml'):
                text, = self.compose([([(kind, source)], f'    format: {how}\n')])
                for i, n in enumerate(numbers):
                    self.assertRegex(text, rf'(?mi)^\W*k{i}\W+{re.escape(n)},?$')

    def test_texts_of_yaml_in_formats_and_commands(self):
        table = {'0o17': '15', 'TRUE': 'true', '1.10': '1.10', '+1': '1', '.5': '0.5', '0x1F': '31', '1.': '1.0', '010': '10', '-0': '-0', '1E5': '1E5', '01.5': '1.5'}
        source = ''.join(f'k{i}: {text}\n' for i, text in enumerate(table))
        env, as_json = self.compose([([('yaml', source)], '    format: env\n'), ([('yaml', source)], '    format: json\n')])
        for command, expected in ((['get', '{}', 'k{}'], '{text}\n'), (['get', '{}', 'k{}', '--json'], '{json}\n')):
            for i, (text, in_json) in enumerate(table.items()):
                done = subprocess.run([PULLET, *(c.format(self.path('run/c0.snap') if c == '{}' else i) for c in command)], capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout, expected.format(text=text, json=in_json))
        export = {how: subprocess.run([PULLET, 'export', self.path('run/c0.snap'), '--format', how], capture_output=True, text=True, check=True).stdout
                  for how in ('yaml', 'json', 'env', 'properties', 'sh')}
        listed = subprocess.run([PULLET, 'list', self.path('run/c0.snap')], capture_output=True, text=True, check=True).stdout
        for i, (text, in_json) in enumerate(table.items()):
            self.assertIn(f'\nK{i}={text}\n', '\n' + env)
            self.assertIn(f'"k{i}": {in_json}', as_json)
            self.assertIn(f'"k{i}": {in_json}', export['json'])
            self.assertIn(f'\nk{i}: {text}\n', '\n' + export['yaml'])
            self.assertIn(f'\nK{i}={text}\n', '\n' + export['env'])
            self.assertIn(f'\nk{i}={text}\n', '\n' + export['properties'])
            self.assertIn(f"\nexport K{i}='{text}'\n", '\n' + export['sh'])
            self.assertIn(f'\nk{i}={text}\n', '\n' + listed)

    def test_what_an_operator_overrides_with_is_what_each_reader_gets(self):
        os.makedirs(self.path('out'))
        self.write('src/web.yaml', 'mode: 0644\nenabled: yes\nat: 12:30:45\n')
        agent = Agent(self, f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{disk: {{kind: file}}}}
configs:
  web:
    from: [{{server: disk, path: "{self.path("src/web.yaml")}"}}]
    file: {self.path("out/web.yaml")}
''')
        agent.log.wait('published config=web')
        for i, (value, kind, text) in enumerate((('no', 'str', 'no'), ("'0644'", 'str', '0644'), ('1.10', 'float', '1.10'), ('"\\ud83d\\ude00"', 'str', '😀'), ('12:30', 'str', '12:30'))):
            agent.cli('override', 'web', f'k{i}={value}', '--for', '1h', '--reason', 'test', check=0)
            composed = self.read('out/web.yaml').decode()
            self.unchanged('mode: 0644\nenabled: yes\nat: 12:30:45\n', composed, {f'k{n}' for n in range(i + 1)})
            for reader in READERS:
                self.assertEqual(flat(composed, reader)[(('str', f'k{i}'),)], (kind, text))


if __name__ == '__main__':
    harness.main()
