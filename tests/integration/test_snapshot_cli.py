"""`pullet get`, `list`, `export` and `watch` on snapshots that a stand-in for the agent publishes: by lib/FORMAT.md alone, no pulletd."""
import ctypes
import importlib.util
import json
import mmap
import os
import platform
import signal
import struct
import subprocess
import sys
import time

import yaml

import harness
from harness import PULLET, Program

SPEC = importlib.util.spec_from_file_location('golden', os.path.join(harness.ROOT, 'tests/golden/make.py'))
golden = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(golden)

FUTEX = {'x86_64': 202, 'aarch64': 98}
LIBRARIES = os.path.join(harness.ROOT, 'build')  # a sanitized one is not for a plain program
SHELLS = ('/bin/dash', '/bin/bash', '/bin/sh')
HOSTILE = {
    'quote': "it's '' \"q\" '", 'lines': 'a\nb\n\n', 'command': '$(touch pwned) `id` ${HOME} $X; exit 1 & | > f', 'backslash': 'a\\nb\\',
    'utf8': 'häß € 😀', 'empty': '', 'blanks': '  a\tb ', 'dash': '-n', 'bang': '!! #x', 'cr': 'a\rb', 'star': '* ~ [a]',
}


def entries(value, key=None, out=None):
    """A tree as entries for golden.Image."""
    out = [] if out is None else out
    escape = lambda k: k.replace('\\', '\\\\').replace('.', '\\.')  # noqa: E731
    if isinstance(value, (dict, list)):
        pairs = list(value.items()) if isinstance(value, dict) else [(str(i), v) for i, v in enumerate(value)]
        if key is not None:
            out.append((key, 'map' if isinstance(value, dict) else 'list', '', len(pairs)))
        for k, v in pairs:
            entries(v, escape(k) if key is None else key + '.' + escape(k), out)
    elif value is None:
        out.append((key, 'null', '', 0))
    elif isinstance(value, bool):
        out.append((key, 'bool', 'true' if value else 'false', 0))
    else:
        kind = {int: 'int', float: 'double', str: 'string'}[type(value)]
        out.append((key, kind, '.inf' if value == float('inf') else str(value), 0))
    return out


class FakeAgent:
    """Publishes as the agent does: image by rename, then the page's generation, then its futex, then the wake."""

    def __init__(self, test, name='web'):
        self.dir, self.name, self.generation = test.path('run'), name, 0
        os.makedirs(self.dir, exist_ok=True)
        page = struct.pack('<8sQIIQQ', golden.PAGE_MAGIC, 0, 0, 0, 0, 0)
        with open(f'{self.dir}/{name}.gen', 'wb') as f:
            f.write(page.ljust(4096, b'\0'))
        with open(f'{self.dir}/{name}.gen', 'r+b') as f:
            self.page = mmap.mmap(f.fileno(), 4096)
        self.futex = ctypes.c_uint32.from_buffer(self.page, 16)
        test.addCleanup(self.close)

    def close(self):
        del self.futex
        self.page.close()

    @property
    def path(self):
        return f'{self.dir}/{self.name}.snap'

    def write(self, data):
        with open(self.path + '.new', 'wb') as f:
            f.write(data)
        os.rename(self.path + '.new', self.path)

    def publish(self, tree, version=None):
        self.generation += 1
        self.write(golden.Image(entries(tree), self.generation, version=version or f'v{self.generation}').bytes())
        self.page[8:16] = struct.pack('<Q', self.generation)
        self.wake()

    def withdraw(self):
        os.unlink(self.path)
        self.page[20:24] = struct.pack('<I', 1)
        self.wake()
        with open(f'{self.dir}/{self.name}.gen', 'r+b'):
            pass  # for inotify, which sees no mapping

    def wake(self):
        self.futex.value += 1
        libc = ctypes.CDLL(None)
        libc.syscall(ctypes.c_long(FUTEX[platform.machine()]), ctypes.byref(self.futex), 1, 2147483647, None, None, 0)


class CliCase(harness.Case):
    def setUp(self):
        super().setUp()
        self.env = {**os.environ, 'PULLET_RUNTIME_DIR': self.path('run'), 'LC_ALL': 'C.UTF-8'}

    def run_cli(self, *args, code=0):
        done = subprocess.run([PULLET, *args], env=self.env, capture_output=True, timeout=harness.DEADLINE, check=False)
        out, err = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, code, f'{args}: {out}{err}')
        self.assertEqual(bool(err), code != 0, f'{args}: {err}')
        self.assertTrue(code == 0 or not out, f'{args}: an error and output: {out}')
        return err if code else out

    def publish(self, tree):
        agent = FakeAgent(self)
        agent.publish(tree)
        return agent


TREE = {'db': {'host': 'localhost', 'port': 5432, 'ratio': 0.1, 'on': True, 'off': 'false', 'none': None, 'wait': '5m', 'room': '8MiB',
               'number': '17', 'pool': {'min': 1}}, 'servers': ['a', 'b'], 'a.b': 'dotted', 'void': {}, 'bare': []}


class Get(CliCase):
    def test_scalars_as_they_were_written(self):
        self.publish(TREE)
        for key, text in (('db.host', 'localhost'), ('db.port', '5432'), ('db.ratio', '0.1'), ('db.on', 'true'), ('db.none', ''),
                          ('servers.1', 'b'), ('a\\.b', 'dotted')):
            self.assertEqual(self.run_cli('get', 'web', key), text + '\n')

    def test_a_path_is_a_config(self):
        agent = self.publish(TREE)
        self.assertEqual(self.run_cli('get', agent.path, 'db.host'), 'localhost\n')

    def test_a_file_here_is_named_with_its_path(self):
        agent = self.publish(TREE)
        os.rename(agent.path, self.path('w.snap'))
        out = subprocess.run([PULLET, 'get', 'w.snap', 'db.host'], cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(out.returncode, 2)
        self.assertIn(': the file here is ./w.snap', out.stderr)

    def test_types_convert(self):
        self.publish(TREE)
        for key, kind, text in (('db.port', 'int', '5432'), ('db.port', 'string', '5432'), ('db.port', 'double', '5432'),
                                ('db.ratio', 'double', '0.1'), ('db.on', 'bool', 'true'), ('db.off', 'bool', 'false'),
                                ('db.wait', 'duration', '300000'), ('db.room', 'size', '8388608'), ('db.number', 'int', '17')):
            self.assertEqual(self.run_cli('get', 'web', key, '--type', kind), text + '\n')

    def test_another_type_is_an_error_that_names_both(self):
        self.publish(TREE)
        text, integer = 'a text of another form', 'an integer such as 17'
        for key, wanted, kind, found in (('db.host', integer, 'int', text), ('db.on', integer, 'int', 'true or false'), ('db.host', 'true or false', 'bool', text),
                                         ('db.none', integer, 'int', 'null'), ('db.port', 'a duration such as 10s or 1h30m', 'duration', 'an integer'),
                                         ('db.host', 'a size such as 64KiB', 'size', text), ('db.on', 'a number such as 0.5', 'double', 'true or false'),
                                         ('db', 'a text', 'string', 'a mapping'), ('servers', integer, 'int', 'a list')):
            error = self.run_cli('get', 'web', key, '--type', kind, code=1)
            self.assertIn(f"'{key}' must be {wanted}, but is {found}", error)

    def test_json(self):
        self.publish(TREE)
        for key, value in (('db', TREE['db']), ('servers', ['a', 'b']), ('db.host', 'localhost'), ('db.port', 5432), ('db.none', None),
                           ('void', {}), ('bare', []), ('db.on', True), ('a\\.b', 'dotted')):
            self.assertEqual(json.loads(self.run_cli('get', 'web', key, '--json')), value)
        self.assertEqual(json.loads(self.run_cli('get', 'web', 'db.number', '--json', '--type', 'string')), '17')
        self.assertEqual(json.loads(self.run_cli('get', 'web', 'db.number', '--json', '--type', 'int')), 17)

    def test_a_map_needs_json(self):
        self.publish(TREE)
        self.assertIn('--json', self.run_cli('get', 'web', 'db', code=1))

    def test_a_missing_key_is_2_and_names_its_neighbours(self):
        self.publish(TREE)
        self.assertIn('db.port', self.run_cli('get', 'web', 'db.prot', code=2))
        self.assertIn('pullet list', self.run_cli('get', 'web', 'xyz', code=2))
        self.assertEqual(self.run_cli('get', 'web', 'xyz', '--default', 'd v'), 'd v\n')
        self.assertEqual(self.run_cli('get', 'web', 'db.host', '--default', 'd'), 'localhost\n')

    def test_a_missing_config_is_2_and_says_what_to_do(self):
        self.publish(TREE)
        for args in (('get', 'wbe', 'a'), ('list', 'wbe'), ('export', 'wbe', '--format', 'sh')):
            self.assertIn(f"no snapshot of 'wbe' in {self.path('run')}: did you mean 'web'?", self.run_cli(*args, code=2))
        self.assertIn('there is web\n', self.run_cli('get', 'something', 'a', code=2))
        self.assertIn('no snapshot ./none', self.run_cli('get', './none', 'a', code=2))
        self.env['PULLET_RUNTIME_DIR'] = self.path('none')
        self.assertRegex(self.run_cli('get', 'web', 'a', code=2), "of 'web' in .*/none, nor of any config: 'pullet status'")
        self.env['PULLET_RUNTIME_DIR'] = self.path('run')
        self.assertEqual(self.run_cli('get', 'other', 'a', '--default', 'd'), 'd\n')

    def test_a_damaged_snapshot_is_1(self):
        agent = self.publish(TREE)
        agent.write(agent.generation.to_bytes(1, 'little') * 200)
        self.assertIn('not a snapshot', self.run_cli('get', 'web', 'db.host', code=1))
        self.run_cli('get', 'web', 'db.host', '--default', 'd', code=1)

    def test_a_name_that_is_like_none_gets_all_of_them_if_they_are_few(self):
        for name in ('db', 'cache', 'mail', 'proxy', 'queue'):
            FakeAgent(self, name).publish(TREE)
        self.assertIn(': there are cache, db, mail, proxy, queue\n', self.run_cli('get', 'something', 'a', code=2))
        FakeAgent(self, 'store').publish(TREE)
        self.assertIn(": 'pullet status --names' lists the 6 that there are\n", self.run_cli('get', 'something', 'a', code=2))
        self.assertIn("did you mean 'mail'?", self.run_cli('get', 'mial', 'a', code=2))

    def test_usage_is_64(self):
        for command, says in ((('get', 'web'), 'an argument is missing'), (('get', 'web', 'a', 'b'), "'b' is one argument too many"),
                              (('list',), 'an argument is missing'), (('list', 'web', 'a', 'b'), "'b' is one argument too many"),
                              (('export', 'web'), '--format is needed'), (('export', '--format', 'sh'), 'name a config'), (('watch',), 'name a config')):
            lines = self.run_cli(*command, code=64).splitlines()
            self.assertEqual(lines[0], f'pullet {command[0]}: {says}')
            self.assertRegex(lines[1], f'^Usage: pullet {command[0]} CONFIG')
            self.assertEqual(lines[2:], [f"Try 'pullet {command[0]} --help'."])
        for args in ((), ('web',), ('web', 'a', 'b'), ('web', 'a', '--type', 'date'), ('web', 'a', '--wrong'), ('we b', 'a')):
            self.run_cli('get', *args, code=64)
        for command in ('get', 'list', 'export', 'watch'):
            self.assertIn(f'Usage: pullet {command}', self.run_cli(command, '--help'))


class List(CliCase):
    def test_lines_in_key_order(self):
        self.publish({'b': {'y': 1, 'x': 'two'}, 'b-c': None, 'a': [True, 'l\nm\t\\\x01'], 'e': {}, 'd.t': 'ü'})
        self.assertEqual(self.run_cli('list', 'web'), 'a.0=true\na.1=l\\nm\\t\\\\\\x01\nb-c=\nb.x=two\nb.y=1\nd\\.t=ü\n')
        self.assertEqual(self.run_cli('list', 'web', 'b.'), 'b.x=two\nb.y=1\n')
        self.run_cli('list', 'web', 'zz', code=2)
        self.run_cli('list', 'other', code=2)
        self.run_cli('list', code=64)
        self.run_cli('list', 'web', 'a', 'b', code=64)

    def test_json_is_one_object_of_typed_values(self):
        self.publish(TREE)
        flat = json.loads(self.run_cli('list', 'web', '--json'))
        self.assertEqual(flat['db.port'], 5432)
        self.assertEqual((flat['db.none'], flat['void'], flat['bare'], flat['servers.0'], flat['a\\.b']), (None, {}, [], 'a', 'dotted'))
        self.assertNotIn('db', flat)
        self.assertEqual(list(flat), sorted(flat, key=str.encode))

    def test_an_empty_config(self):
        self.publish({})
        self.assertEqual((self.run_cli('list', 'web'), json.loads(self.run_cli('list', 'web', '--json'))), ('', {}))


def systemd_value(text):
    """What EnvironmentFile= makes of a value without quotes: blanks around it and backslashes go."""
    return text.strip(' \t').replace('\\', '')


def properties(text):
    """A small java.util.Properties.load()."""
    result = {}

    def clear(s):
        out, i = [], 0
        while i < len(s):
            if s[i] != '\\':
                out.append(s[i])
                i += 1
            elif s[i + 1] == 'u':
                out.append(chr(int(s[i + 2:i + 6], 16)))
                i += 6
            else:
                out.append({'n': '\n', 't': '\t', 'r': '\r', 'f': '\f'}.get(s[i + 1], s[i + 1]))
                i += 2
        return ''.join(out).encode('utf-16', 'surrogatepass').decode('utf-16')

    for line in text.encode('ascii').decode().split('\n')[:-1]:
        assert line[0] not in ' #!', line
        i = 0
        while line[i] not in '=: ':
            i += 2 if line[i] == '\\' else 1
        assert line[i] == '=', line
        result[clear(line[:i])] = clear(line[i + 1:].lstrip(' \t\f'))
    return result


class Export(CliCase):
    def export(self, form, *args, code=0):
        return self.run_cli('export', 'web', '--format', form, *args, code=code)

    def test_sh_through_the_shells(self):
        self.publish({'x': HOSTILE, 'l': ['one', 'two'], '9a': 3, 'nil': None, 'ä-b': 'u'})
        self.write('env.sh', self.export('sh'))
        wanted = {**{'X_' + k.upper(): v for k, v in HOSTILE.items()}, 'L_0': 'one', 'L_1': 'two', '_9A': '3', 'NIL': '', '__B': 'u'}
        for shell in SHELLS:
            for name, value in wanted.items():
                done = subprocess.run([shell, '-euc', '. ./env.sh; printf "%s" "$' + name + '"'], cwd=self.dir, capture_output=True, check=True)
                self.assertEqual((done.stdout.decode(), done.stderr), (value, b''), (shell, name))
            done = subprocess.run([shell, '-c', '. ./env.sh; exec env -0'], cwd=self.dir, capture_output=True, check=True)
            exported = dict(v.split('=', 1) for v in done.stdout.decode().split('\0') if v)
            self.assertEqual({k: exported.get(k) for k in wanted}, wanted)
            self.assertFalse(os.path.exists(self.path('pwned')))

    def test_equal_names_are_an_error_that_names_both(self):
        self.publish({'a-b': 1, 'a_b': 2, 'c': 3})
        for form in ('sh', 'env'):
            error = self.export(form, code=1)
            self.assertTrue("'a-b'" in error and "'a_b'" in error and 'A_B' in error, error)
        self.assertEqual(self.export('sh', 'a-', 'c'), "export A_B='1'\nexport C='3'\n")

    def test_prefixes(self):
        self.publish(TREE)
        self.assertEqual(self.export('env', '--prefix', 'APP_', 'servers', 'db.po'),
                         'APP_DB_POOL_MIN=1\nAPP_DB_PORT=5432\nAPP_SERVERS_0=a\nAPP_SERVERS_1=b\n')
        self.assertEqual(json.loads(self.export('json', 'servers.1', 'db.pool', 'bare')), {'bare': [], 'db': {'pool': {'min': 1}}, 'servers': ['b']})
        self.export('json', 'nothing', code=2)
        self.export('sh', '--prefix', '1a', code=64)
        self.export('sh', '--prefix', 'a b', code=64)
        self.export('json', '--prefix', 'A', code=64)

    def test_env_line_by_line(self):
        values = {k: v for k, v in HOSTILE.items() if k not in ('lines', 'cr')}
        self.publish({**values, 'nil': None})
        read = dict(line.split('=', 1) for line in self.export('env').split('\n')[:-1])
        self.assertEqual(read, {**{k.upper(): v for k, v in values.items()}, 'NIL': ''})
        for name in ('utf8', 'command', 'dash', 'bang', 'star', 'empty'):
            self.assertEqual(systemd_value(read[name.upper()]), values[name])

    def test_env_refuses_a_line_break(self):
        for value in ('a\nb', 'a\r'):
            with self.subTest(value):
                self.publish({'key': {'bad': value}, 'good': 1})
                self.assertIn("'key.bad'", self.export('env', code=1))

    def test_json_and_yaml_give_the_tree_back(self):
        tree = {'s': HOSTILE, 'n': [0, -5, 2**63 - 1, -2**63, 1.5, 2.5e300, True, None], 'l': [str(i) for i in range(12)],
                'deep': [[{'a': [{'b': [[]]}]}], {}], 'a': {'x': 1}, 'a-b': 2, 'a.b': {'c\\d': 'e', '': 'empty'}, '': {'': 'root'},
                'yes': 'no', 'null': '~', '1': '0x10'}
        self.publish(tree)
        self.assertEqual(json.loads(self.export('json')), tree)
        self.assertEqual(yaml.safe_load(self.export('yaml')), tree)
        self.assertEqual(json.loads(self.export('json', 'deep', 'l.1')), {'deep': tree['deep'], 'l': ['1', '10', '11']})

    def test_numbers_keep_their_text(self):
        agent = FakeAgent(self)
        agent.write(golden.Image([('d', 'double', '1.50', 0), ('i', 'int', '42', 0)], 1).bytes())
        self.assertEqual(self.export('yaml'), 'd: 1.50\ni: 42\n')
        self.assertEqual(self.export('env'), 'D=1.50\nI=42\n')

    def test_infinity_is_no_json(self):
        self.publish({'a': 1.0, 'deep': {'inf': float('inf')}})
        self.assertIn("'deep.inf'", self.export('json', code=1))
        self.assertIn("'deep.inf'", self.run_cli('list', 'web', '--json', code=1))
        self.assertEqual(yaml.safe_load(self.export('yaml')), {'a': 1.0, 'deep': {'inf': float('inf')}})

    def test_properties(self):
        self.publish({'s': HOSTILE, 'l': ['x', 'y'], 'k =:#!\t': ' v=:#! ', '#c': '!', 'dot.ted': 'ü', 'ключ': '\U0010ffff', 'nil': None})
        read = properties(self.export('properties'))
        self.assertEqual(read, {**{'s.' + k: v for k, v in HOSTILE.items()}, 'l.0': 'x', 'l.1': 'y', 'k =:#!\t': ' v=:#! ', '#c': '!',
                                'dot\\.ted': 'ü', 'ключ': '\U0010ffff'})

    def test_a_child_without_its_parent_is_refused_whole(self):
        agent = FakeAgent(self)
        for keys in ([('a.b', 'int', '1', 0)], [('a', 'int', '1', 0), ('a.b', 'int', '1', 0)]):
            agent.write(golden.Image(keys, 1).bytes())
            self.assertIn("'a.b'", self.export('yaml', code=1))

    def test_too_deep_is_refused(self):
        agent = FakeAgent(self)
        agent.write(golden.Image([('.'.join('a' * n), 'map', '', 1) for n in range(1, 200)], 1).bytes())
        self.assertIn('too deep', self.export('json', code=1))
        self.assertIn('too deep', self.export('yaml', code=1))

    def test_usage_and_not_found(self):
        self.publish({'a': 1})
        self.run_cli('export', 'web', code=64)
        self.run_cli('export', '--format', 'sh', code=64)
        self.export('toml', code=64)
        self.run_cli('export', 'other', '--format', 'sh', code=2)

    def test_a_full_disk_is_1(self):
        self.publish({'a': 'x' * 100000})
        for args in (('get', 'web', 'a'), ('list', 'web'), ('export', 'web', '--format', 'sh'), ('help',), ('--version',), ('get', '--help')):
            with open('/dev/full', 'wb') as full:
                self.assertEqual(subprocess.run([PULLET, *args], env=self.env, stdout=full, stderr=subprocess.DEVNULL, check=False).returncode, 1)


SCRIPT = '''#!/bin/sh
echo "run $PULLET_CONFIG_NAME $PULLET_GENERATION $PULLET_VERSION $(wc -c)"
while :; do read -r word < "$1"; [ "$word" ] && break; done
echo "end $word"
exit $word
'''


class Watch(CliCase):
    def watch(self, *args, read='both'):
        p = Program([PULLET, 'watch', *args], env=self.env, read=read)
        self.addCleanup(p.close)
        return p

    def end(self, p, number=signal.SIGTERM, code=0):
        p.signal(number)
        lines = p.log.drain()
        self.assertEqual(p.wait(), code, lines)
        return lines

    def blocked(self, agent):
        """A watch with a command that waits at a FIFO; publish makes it run."""
        self.write('cmd', SCRIPT)
        os.chmod(self.path('cmd'), 0o755)
        os.mkfifo(self.path('fifo'))
        p = self.watch('web', '--now', '--', self.path('cmd'), self.path('fifo'))
        p.log.wait(f'^run web {agent.generation} v{agent.generation} 0$')
        return p

    def release(self, word):
        with open(self.path('fifo'), 'w', encoding='ascii') as f:
            f.write(word + '\n')

    def test_a_line_for_each_generation(self):
        agent = self.publish({'a': 1})
        p = self.watch('web')
        p.log.wait('^1 v1$')
        for n in range(2, 6):
            agent.publish({'a': n})
            p.log.wait(f'^{n} v{n}$')
        self.assertEqual(self.end(p), [f'{n} v{n}' for n in range(1, 6)])

    def test_waits_for_the_first(self):
        p = self.watch('web')
        p.log.wait('nothing is published as web yet')
        agent = self.publish({'a': 1})
        p.log.wait('^1 v1$')
        agent.publish({'a': 2})
        p.log.wait('^2 v2$')
        self.end(p, signal.SIGINT)

    def test_a_path_without_a_page(self):
        agent = self.publish({'a': 1})
        os.unlink(agent.path[:-5] + '.gen')
        p = self.watch(agent.path)
        p.log.wait('^1 v1$')
        agent.publish({'a': 2})
        p.log.wait('^2 v2$')
        self.end(p)

    def test_a_command_runs_alone_and_what_comes_meanwhile_is_one_run(self):
        agent = self.publish({'a': 1})
        p = self.blocked(agent)
        for n in range(50):
            agent.publish({'a': n})
        self.release('0')
        p.log.wait('^end 0$')
        p.log.wait('^run web 51 v51 0$')
        self.release('7')
        p.log.wait('exit 7 at generation 51')
        agent.publish({'a': 0})
        p.log.wait('^run web 52 v52 0$')
        self.release('0')
        p.log.wait('^end 0$', start=p.log.count - 1)
        lines = self.end(p)
        self.assertEqual([line for line in lines if line.startswith('run')], [f'run web {n} v{n} 0' for n in (1, 51, 52)])

    def test_not_for_the_present_one_without_now(self):
        agent = self.publish({'a': 1})
        p = self.watch('web', '--', '/bin/sh', '-c', 'echo "run $PULLET_GENERATION"')
        self.wait_until_it_waits(p)
        agent.publish({'a': 2})
        p.log.wait('^run ')
        self.assertEqual(self.end(p), ['run 2'])

    def wait_until_it_waits(self, p):
        """Until the process is in futex_wait: the version that stood is behind it."""
        deadline = time.monotonic() + harness.DEADLINE
        number = str(FUTEX[platform.machine()])
        while time.monotonic() < deadline:
            with open(f'/proc/{p.pid}/syscall', encoding='ascii') as f:
                if f.read().split()[0] == number:
                    return
            os.sched_yield()
        self.fail('it does not wait')

    def test_term_and_int_reach_the_command_and_end_the_watch(self):
        # sigwait: a shell's trap would wait for its read if the signal came just before that
        command = ('import signal as s; both = {s.SIGTERM, s.SIGINT}; s.pthread_sigmask(s.SIG_BLOCK, both); print("ready", flush=True); '
                   'print("got", s.sigwait(both).name, flush=True)')
        self.publish({'a': 1})
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                p = self.watch('web', '--now', '--', '/usr/bin/python3', '-c', command)
                p.log.wait('^ready$')
                self.assertEqual(self.end(p, number), ['ready', f'got {number.name}'])

    def test_a_command_that_is_not_there_is_told_and_watch_goes_on(self):
        agent = self.publish({'a': 1})
        p = self.watch('web', '--now', '--', './no such command')
        p.log.wait('cannot start ./no such command: No such file')
        p.log.wait('exit 127 at generation 1')
        agent.publish({'a': 2})
        p.log.wait('exit 127 at generation 2')
        self.end(p)

    def test_a_command_that_a_signal_ends_is_told(self):
        self.publish({'a': 1})
        p = self.watch('web', '--now', '--', '/bin/sh', '-c', 'kill -9 $$')
        p.log.wait('ended by signal 9 at generation 1')
        self.end(p)

    def test_signal_to_a_pidfile(self):
        agent = self.publish({'a': 1})
        target = Program([sys.executable, '-c', 'import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [1])\nprint("ready", flush=True)\n'
                                                'while True:\n    signal.sigwait([1])\n    print("hup", flush=True)'], read='stdout')
        self.addCleanup(target.close)
        target.log.wait('^ready$')
        p = self.watch('web', '--signal', 'SIGHUP', '--pidfile', self.path('pid'), '--now')
        p.log.wait('pid: No such file')
        for text in ('x\n', '0\n', '-1\n', '', '12 34\n'):
            self.write('pid', text)
            agent.publish({'a': 2})
            p.log.wait('is not one line with a number over 1', start=p.log.count)
        self.write('pid', f'{target.pid}\n')
        agent.publish({'a': 3})
        target.log.wait('^hup$')
        agent.publish({'a': 4})
        target.log.wait('^hup$', start=target.log.count)
        self.end(p)

    def test_timeout_is_4(self):
        self.publish({'a': 1})
        p = self.watch('web', '--timeout', '50ms')
        self.assertEqual(p.log.drain(), ['1 v1', 'pullet watch: nothing newer has come in that time'])
        self.assertEqual(p.wait(), 4)
        p = self.watch('other', '--timeout', '50ms')
        p.log.drain()
        self.assertEqual(p.wait(), 4)

    def test_a_damaged_version_is_told_and_the_next_good_one_taken(self):
        agent = self.publish({'a': 1})
        p = self.watch('web')
        p.log.wait('^1 v1$')
        os.rename(agent.path, agent.path + '.old')
        agent.write(b'PULSNAP\x01' + bytes(100))
        agent.generation = 2
        agent.page[8:16] = struct.pack('<Q', 2)
        agent.futex.value += 1
        p.log.wait('the snapshot is damaged')
        agent.publish({'a': 3})
        p.log.wait('^3 v3$')
        self.end(p)

    def test_usage_is_64(self):
        for args in ((), ('web', '--signal', 'HUP'), ('web', '--pidfile', 'x'), ('web', '--signal', 'NONE', '--pidfile', 'x'), ('web', '--now'),
                     ('web', '--timeout', 'x'), ('web', '--signal', 'HUP', '--pidfile', 'x', '--', 'true'), ('w b',), ('web', '--wrong')):
            self.run_cli('watch', *args, code=64)


class Application(CliCase):
    """The C program of lib/GUIDE.md, beside what blocks of it are run with in test_blocks.py."""

    def setUp(self):
        super().setUp()
        with open(os.path.join(harness.ROOT, 'lib/GUIDE.md'), encoding='utf-8') as f:
            text = f.read().split("cat >app.c <<'END'\n", 1)[1].split('\nEND\n', 1)[0]
        self.write('app.c', text)
        subprocess.run(['cc', '-o', self.path('app'), self.path('app.c'), f'-I{harness.ROOT}/lib', '-L', LIBRARIES, '-lpullet',
                        f'-Wl,-rpath,{LIBRARIES}'], check=True, timeout=harness.DEADLINE)

    def begin(self, name):
        program = Program([self.path('app'), name], env=self.env, read='both')
        self.addCleanup(program.close)
        return program

    def test_withdrawn_is_said_once_whatever_its_neighbours_do(self):
        agent = self.publish({'greeting': 'hi'})
        program = self.begin('web')
        program.log.wait('generation 1: hi')
        agent.withdraw()
        program.log.wait('withdrawn')
        for n in range(20):
            self.write('run/other.new', str(n))
            os.rename(self.path('run/other.new'), self.path('run/other.snap'))
        agent.page[20:24] = bytes(4)
        agent.publish({'greeting': 'back'})
        program.log.wait('generation 2: back')
        self.assertEqual([line for line in program.log.seen if 'withdrawn' in line][1:], [])

    def test_what_is_not_published_is_said(self):
        self.publish({'greeting': 'hi'})
        self.begin('wbe').log.wait(r"wbe\.snap: nothing is published under this name in .*: did you mean 'web'\?")
        self.begin('./none.snap').log.wait(r'\./none\.snap: there is no snapshot at this path')


if __name__ == '__main__':
    harness.main()
