"""`pullet status` and `pullet top` as people see them: on terminals of several sizes, in colour, with few configs and with thousands.

An agent that runs says what it says; a stage repeats that, multiplied and changed, for what a real agent does not come to in a test.
"""
import copy
import grp
import http.server
import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import termios
import threading
import time

import harness
from harness import PULLET, Agent, FaultServer, good
from terminal import Screen, Terminal

COLOUR = '\x1b['


def plain(text):
    return re.sub('\x1b\\[[0-9;?]*[a-zA-Z]', '', text)


class Stage:
    """Answers GET /v1/status on a control socket with `status`; `hang` is an event that keeps the answer back until it is set."""

    def __init__(self, test, path):
        self.status, self.code, self.hang, self.open, stage = {}, 200, None, [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def setup(self):
                super().setup()
                stage.open.append(self.connection)

            def do_GET(self):
                body = json.dumps(stage.status).encode()
                if stage.hang:
                    stage.hang.wait(harness.DEADLINE)
                self.send_response(stage.code)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

            def address_string(self):
                return ''

        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(path, Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.05})
        self.thread.start()
        test.addCleanup(self.close)

    def close(self):
        if self.server:
            if self.hang:
                self.hang.set()
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()
            for connection in self.open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has ended
            os.unlink(self.server.server_address)
            self.server = None


class Case(harness.Case):
    said = None

    def setUp(self):
        super().setUp()
        self.socket = self.path('s')
        if Case.said is None:
            Case.said = self.what_an_agent_says()
        self.stage = Stage(self, self.socket)
        self.stage.status = self.configs(3)

    def what_an_agent_says(self):
        """In a directory of its own, so that the first test finds as little as all others."""
        whole, self.dir = self.dir, self.path('said')
        os.mkdir(self.dir)
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        _, _, endpoint = self.serve()
        agent = Agent(self, self.config(server.url + '/web.yaml', push=f'push:\n  - endpoint: {endpoint}\n'))
        agent.refresh()
        agent.log.wait('push channel connected')
        said = json.loads(agent.get('/v1/status')[1])
        agent.stop()
        self.dir = whole
        return said

    def configs(self, count, **changed):
        """The status with so many configs; `changed`: name to members that are others."""
        status = copy.deepcopy(Case.said)
        status['configs'] = [copy.deepcopy(Case.said['configs'][0]) | {'name': f'c{i}', 'age_ms': 3000, 'next_pull_in_ms': 20000, 'running': False}
                             for i in range(count)]
        for name, members in changed.items():
            next(c for c in status['configs'] if c['name'] == name).update(members)
        return status

    def failing(self, **more):
        return {'state': 'failing', 'cause': 'unreachable', 'last_error': 'connection refused: is the server running?', 'age_ms': 7200000,
                'confirmed_ms': 1795000000000, 'next_pull_in_ms': 12000, **more}

    def run_cli(self, *args, code=0, env=None):
        done = subprocess.run([PULLET, args[0], '--socket', self.socket, *args[1:]], capture_output=True, text=True, timeout=harness.DEADLINE,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, **(env or {})), check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code in (0, 1) and not done.stderr else done.stderr

    def on_terminal(self, *args, columns=80, rows=24, code=0, env=None):
        """What such a terminal has got when the program has ended, and its lines without colours."""
        t = Terminal(self, [PULLET, args[0], '--socket', self.socket, *args[1:]], columns, rows, env)
        self.assertEqual(t.end(), code, t.raw)
        return t.raw, plain(t.raw).splitlines()


class Status(Case):
    def test_all_good_is_one_line_and_the_table(self):
        out = self.run_cli('status').splitlines()
        self.assertRegex(out[0], r'^3 configs: all ok; push connected; pulletd [0-9.]+ up \S+$')
        self.assertEqual(out[1].split(), ['NAME', 'STATE', 'GENERATION', 'AGE', 'NEXT', 'VERSION'])
        self.assertEqual(out[2].split(), ['c0', 'ok', '1', '3s', '20s', 'v1'])
        self.assertEqual(len(out), 5)

    def test_the_worst_first_with_its_error_and_what_is_done(self):
        self.stage.status = self.configs(40, c7=self.failing(), c9=self.failing(state='stale', age_ms=9000000),
                                         c11={'state': 'waiting', 'generation': 0, 'age_ms': None, 'cause': 'not found', 'last_error': 'gone'})
        out = self.run_cli('status').splitlines()
        self.assertRegex(out[0], r'^40 configs: 37 ok, 1 waiting, 1 stale, 1 failing; the worst is c11 \(waiting\)')
        self.assertEqual([line.split()[0] for line in out[2:] if not line.startswith(' ')][:4], ['c11', 'c9', 'c7', 'c0'])
        self.assertRegex(out[3], r'^  not found: gone \(at http://127\.0\.0\.1:\d+\)$')
        self.assertEqual(out[4:5], ['  nothing is published; next pull in 20s'])
        self.assertRegex(out[9], r'^  unreachable: connection refused: is the server running\? \(at http://127\.0\.0\.1:\d+\)$')
        self.assertEqual(out[10:11], ['  generation 1 stays, last confirmed 2h ago (2026-11-18T11:06:40Z); next pull in 12s'])

    def test_a_real_failure(self):
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        self.dir_of_agent = self.path('')
        agent = Agent(self, self.config(server.url + '/web.yaml', '    interval: 1h\n'))
        agent.refresh()
        agent.cli('status', '--check', '--ready', check=64)
        agent.cli('status', '--check', check=0)
        self.assertEqual(agent.cli('status', '--ready', check=0)[1:], ('', ''))
        server.behave = good(b'x', status='404 Not Found')
        agent.refresh()
        _, out, _ = agent.cli('status', '--check', check=1)
        self.assertRegex(out, r'(?m)^1 config: 0 ok, 1 failing; pulletd')
        self.assertRegex(out, r'(?m)^web +failing +1 .*\n  not found: .*404.*\n  failing for \d+m?s; generation 1 stays, last confirmed \d+m?s ago \(.*Z\); next pull in \d+m$')
        agent.cli('status', '--ready', check=0)
        _, out, _ = agent.cli('status', 'web', check=0)
        self.assertRegex(out, r'(?s)web +failing.*  not found.*\n\nname: web\nstate: failing\n')
        self.assertEqual(agent.cli('status', 'web', '--names', check=0)[1], 'web\n')
        agent.stop()
        agent.cli('status', '--check', check=3)
        agent.cli('status', '--ready', check=3)

    def test_ready_names_what_is_not_published(self):
        server = FaultServer(self)
        server.behave = good(b'x', status='404 Not Found')
        agent = Agent(self, self.config(server.url + '/web.yaml'))
        agent.refresh()
        code, out, err = agent.cli('status', '--ready')
        self.assertEqual((code, out), (1, ''))
        self.assertRegex(err, r'^pullet status: not ready: web: nothing is published yet: .*404.*\n$')
        agent.stop()

    def test_what_is_to_be_known_is_counted_and_comes_before_the_quiet_ones(self):
        marks = {'pinned': {'pin': {'by': 'uid 0', 'reason': '', 'until_ms': None}},
                 'overridden': {'overrides': [{'key': 'a', 'by': 'uid 0', 'reason': '', 'until_ms': 1}]},
                 'held by the rollout': {'rejected': {'by': 'rollout', 'version': '"2"', 'sha256': '', 'why': 'w'}},
                 'with a reload pending': {'reload': {'state': 'failed', 'next_ms': 5, 'error': 'e'}},
                 'that failed a probe': {'probe': {'state': 'failed', 'generation': 2, 'error': 'e'}},
                 'whose file somebody changed': {'drifted': True},
                 'whose watch fails': {'watch': {'state': 'failing', 'error': 'e'}},
                 'whose signature expires soon': {'expires_ms': int(time.time() * 1000) + 3600000}}
        for words, members in marks.items():
            with self.subTest(words):
                self.stage.status = self.configs(3, c2=members)
                out = self.run_cli('status').splitlines()
                self.assertIn(f'3 configs: all ok; 1 {words}; push', out[0])
                self.assertTrue(out[2].startswith('c2 '), out)
                self.assertTrue(out[3].startswith('  '), out)
        self.stage.status = self.configs(3, c2={'expires_ms': int(time.time() * 1000) + 9 * 86400000})
        self.assertNotIn('expires', self.run_cli('status'))

    def test_servers_push_and_receipts_only_when_something_is_wrong(self):
        status = self.configs(1)
        status['servers'][0].update(name='main', backoff_ms=4000, pending=2)
        status['servers'][0]['addresses'][0].update(backoff_ms=4000, failures_in_a_row=3, error='connection refused')
        status['push'][0].update(state='silent', last_message_ago_ms=60000)
        status['report'] = {'server': 'etcd', 'state': 'failing', 'error': 'forbidden'}
        self.stage.status = status
        out = self.run_cli('status').splitlines()
        url = status['servers'][0]['addresses'][0]['url']
        self.assertEqual(out[1:4], [f'server main: in backoff for 4s, 2 pulls queued; {url} is in backoff for 4s after 3 failures in a row: connection refused',
                                    f'push {status["push"][0]["endpoint"]}: silent, last message 60s ago; changes come with the interval',
                                    'receipts to the server etcd fail: forbidden'])
        self.assertNotIn('push connected', out[0])

    def test_a_server_without_a_name_is_its_address_as_in_the_log(self):
        status = self.configs(1)
        status['servers'][0].update(name=None, backoff_ms=4000, pending=1)
        self.stage.status = status
        url = status['servers'][0]['addresses'][0]['url']
        self.assertEqual(self.run_cli('status').splitlines()[1], f'server {url}: in backoff for 4s, 1 pull queued')

    def test_a_pull_that_is_due_while_its_server_rests_comes_after_that(self):
        status = self.configs(3, c0=self.failing(next_pull_in_ms=432), c1={'next_pull_in_ms': 9000}, c2={'next_pull_in_ms': 432, 'url': 'http://other/x'})
        status['servers'][0].update(name=None, backoff_ms=4589, pending=0)
        self.stage.status = status
        out = self.run_cli('status')
        self.assertRegex(out, r'(?m)^c0 .* 4s +v1$')
        self.assertIn('; next pull in 4s\n', out)
        self.assertRegex(out, r'(?m)^c1 .* 9s +v1$')
        self.assertRegex(out, r'(?m)^c2 .* 432ms +v1$')
        status['servers'][0]['name'] = 'main'
        status['configs'][2]['server'] = 'main'
        out = self.run_cli('status')
        self.assertRegex(out, r'(?m)^c0 .* 432ms +v1$')
        self.assertRegex(out, r'(?m)^c2 .* 4s +v1$')

    def test_all_of_one_as_people_write_it(self):
        one = self.configs(1, c0={'published_ms': 1795291429253, 'last_error_ms': 1795291429253, 'last_error': 'gone', 'age_ms': 0, 'delay_ms': 30000,
                                  'pin': {'by': 'uid 0', 'reason': '', 'until_ms': 1795291429253},
                                  'rejected': {'by': 'pin', 'version': '"v2"', 'why': 'pinned'}})['configs'][0]
        self.stage.status = one
        out = self.run_cli('status', 'c0').split('\n\n')[1].splitlines()
        for line in ('version: v1', 'published: 2026-11-21T20:03:49Z', 'last_error: gone', 'last_error_at: 2026-11-21T20:03:49Z', 'age: 0ms', 'delay: 30s',
                     'next_pull_in: 20s', 'generation: 1', 'pin.until: 2026-11-21T20:03:49Z', 'rejected.version: v2', 'runs.failed: 0'):
            self.assertIn(line, out)
        self.assertNotIn('_ms', '\n'.join(out))
        self.assertEqual(json.loads(self.run_cli('status', 'c0', '--json')), one, 'for programs it stays')

    def test_a_configuration_that_is_refused(self):
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        text = self.config(server.url + '/web.yaml', '    interval: 1h\n')
        agent = Agent(self, text)
        agent.refresh()
        self.assertEqual(len(agent.cli('status', '--check', check=0)[1].splitlines()), 3)
        self.write('pullet.yaml', text + '    intervall: 1\n    mode: 1\n')
        agent.signal(signal.SIGHUP)
        agent.log.wait('the new configuration is invalid')
        out = agent.cli('status', '--check', check=1)[1].splitlines()
        self.assertRegex(out[0], '^1 config: ok; ')
        self.assertRegex(out[1], r'^the new configuration is rejected, keeping the old one: .*:\d+:\d+: .*intervall.* \(2 errors; pulletd -t prints them\)$')
        self.write('pullet.yaml', text)
        agent.signal(signal.SIGHUP)
        agent.log.wait('the new configuration is applied')
        self.assertEqual(len(agent.cli('status', '--check', check=0)[1].splitlines()), 3)
        agent.stop()

    def test_lines_are_as_wide_as_the_terminal_and_never_wider(self):
        long = 'a sentence that goes on ' * 12
        name = 'n' * 64
        self.stage.status = self.configs(40, c7=self.failing(last_error=long), c9=self.failing(), c3={'version': '"' + 'v' * 200 + '"'},
                                         c5={'name': name})
        self.stage.status['push'][0].update(state='refused', error=long)
        for columns in (80, 200, 40):
            with self.subTest(columns):
                _, lines = self.on_terminal('status', '--all', columns=columns)
                text = ' '.join(' '.join(lines).split())
                self.assertIn('unreachable: ' + long.strip(), text)
                self.assertIn('...', text)
        _, lines = self.on_terminal('status', '--all', columns=200)
        self.assertTrue(any(name in line for line in lines), 'there is room for the whole name')
        out = self.run_cli('status')
        self.assertNotIn('...', out)
        for whole in (long, name, 'v' * 200):
            self.assertIn(whole, out)

    def test_what_does_not_fit_is_counted(self):
        self.stage.status = self.configs(1000, c7=self.failing(), c9=self.failing())
        _, lines = self.on_terminal('status', rows=24)
        self.assertLessEqual(len(lines), 23)
        self.assertEqual(lines[-1], f'and {1000 - 2 - sum(re.match("c[0-9]+ +ok", x) is not None for x in lines)} more, all ok: --all lists them')
        self.assertRegex(lines[0], '^1000 configs: 998 ok, 2 failing; the worst is c7 .failing.; push connected;')
        self.assertEqual(len(self.on_terminal('status', '--all', columns=200)[1]), 1 + 1 + 1000 + 4)
        self.assertEqual(len(self.run_cli('status').splitlines()), 1 + 1 + 1000 + 4)
        self.stage.status = self.configs(1000, **{f'c{i}': self.failing() for i in range(1000)})
        _, lines = self.on_terminal('status', rows=24)
        self.assertLessEqual(len(lines), 23)
        self.assertRegex(lines[-1], r'^and 99\d more, 99\d of them not ok: --all lists them$')

    def test_ten_thousand_configs(self):
        self.stage.status = self.configs(10000, c9999=self.failing())
        begin = time.monotonic()
        out = self.run_cli('status').splitlines()
        took = time.monotonic() - begin
        print(f'10,000 configs: {took:.2f} s')
        self.assertRegex(out[0], '^10000 configs: 9999 ok, 1 failing; the worst is c9999')
        self.assertEqual(len(out), 10004)
        self.assertEqual(len(self.run_cli('status', '--names').splitlines()), 10000)

    def test_colour_only_on_a_terminal_that_wants_it(self):
        self.stage.status = self.configs(3, c1=self.failing())
        self.assertNotIn(COLOUR, self.run_cli('status'))
        raw, _ = self.on_terminal('status')
        self.assertIn('\x1b[33mfailing\x1b[0m', raw)
        self.assertIn('\x1b[32mok\x1b[0m', raw)
        for env in ({'NO_COLOR': '1'}, {'TERM': 'dumb'}):
            self.assertNotIn(COLOUR, self.on_terminal('status', env=env)[0])
        self.assertIn(COLOUR, self.on_terminal('status', env={'NO_COLOR': ''})[0])

    def test_nothing_that_was_sent_reaches_the_terminal_as_it_is(self):
        evil = 'a\x1b]0;x\x07\x9b31m\rb\nc'
        self.stage.status = self.configs(2, c1=self.failing(name=evil, version=evil, last_error=evil, cause=evil))
        self.stage.status['push'][0].update(state='refused', endpoint=evil, error=evil)
        self.stage.status['servers'][0].update(name=evil, backoff_ms=1)
        for args in (('status',), ('status', '--names'), ('top', '-b', '-n', '1')):
            out = self.run_cli(*args)
            self.assertNotRegex(out, '[\x00-\x09\x0b-\x1f\x7f-\x9f]')
        raw, _ = self.on_terminal('status', env={'NO_COLOR': '1'})
        self.assertNotRegex(raw, '[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]')

    def test_wide_characters_count_as_two(self):
        self.stage.status = self.configs(2, c0={'name': '設定' * 8, 'version': '版' * 60}, c1=self.failing(last_error='誤り ' * 60))
        screen = Screen(80, 24)
        raw, _ = self.on_terminal('status', env={'NO_COLOR': '1'})
        screen.feed(raw)
        self.assertEqual(screen.bad, [])

    def test_wrong_usage(self):
        for args in (('a', 'b'), ('--ready', 'web'), ('--json', '--names'), ('--none',)):
            self.run_cli('status', *args, code=64)


class Reach(Case):
    """An agent that cannot be asked, or that has no such config: what to do about it."""

    def test_no_agent_is_3_and_says_how_to_start_it(self):
        self.stage.close()
        for args in (('status',), ('status', 'web'), ('refresh',), ('wait', 'web', '--generation', '1'), ('history', 'web')):
            error = self.run_cli(*args, code=3)
            self.assertRegex(error, fr'^pullet {args[0]}: no agent answers at {self.socket}: start it \(systemctl start pullet\), or .*--socket.*PULLET_RUNTIME_DIR')
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.socket)  # as one that was killed leaves it
        self.assertRegex(self.run_cli('status', code=3), fr'no agent answers at {self.socket}: start it \(systemctl start pullet\)$')

    def test_no_agent_of_this_users_own_is_started_otherwise(self):
        run = self.path('own')
        os.makedirs(run + '/pullet')
        prefix = []
        if os.geteuid() == 0:
            prefix = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
            for d in (run, run + '/pullet'):
                os.chown(d, 65534, 65534)
            os.chmod(self.dir, 0o755)
        env = {k: v for k, v in os.environ.items() if k != 'PULLET_RUNTIME_DIR'}
        done = subprocess.run([*prefix, PULLET, 'refresh'], env={**env, 'XDG_RUNTIME_DIR': run}, capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn(f'no agent answers at {run}/pullet/control.sock: start it (pulletd), or', done.stderr)

    def test_no_right_is_3_and_says_who_has_it(self):
        root = os.geteuid() == 0
        group = grp.getgrgid(1 if root else os.getegid())
        pullet = harness.for_anybody(self, PULLET)
        os.mkdir(self.path('run'))
        if root:
            os.chown(self.path('run'), 0, group.gr_gid)
        os.chmod(self.path('run'), 0o750 if root else 0)
        self.addCleanup(os.chmod, self.path('run'), 0o750)
        done = subprocess.run([pullet, 'status', '--socket', self.path('run/control.sock')], capture_output=True, text=True, check=False,
                              **({'user': 65534, 'group': 65534, 'extra_groups': []} if root else {}))
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr, f'pullet status: the control socket {self.path("run/control.sock")} may not be used by this user: '
                                      f'only by root and the group {group.gr_name}: usermod -aG {group.gr_name} USER, then log in again\n')

    def test_names_without_an_agent_are_those_of_the_snapshots(self):
        self.stage.close()
        for name in ('web.snap', 'billing.snap', 'billing.gen', 'web.snap.new', '.x.snap', 'a b.snap'):
            self.write(name, '')
        done = subprocess.run([PULLET, 'status', '--names', '--socket', self.socket], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (3, 'billing\nweb\n'))
        self.assertIn('no agent answers', done.stderr)

    def test_a_wrong_name_is_said_with_the_one_that_was_meant(self):
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        agent = Agent(self, self.config(server.url + '/web.yaml'))
        agent.refresh()
        for args in (('status',), ('refresh',), ('history',), ('diff',), ('rollback',), ('pin',), ('unpin',), ('explain', 'n'),
                     ('override', 'n=1', '--for', '1h'), ('wait', '--generation', '1')):
            _, _, error = agent.cli(args[0], 'wbe', *args[1:], check=2)
            self.assertEqual(error, f"pullet {args[0]}: there is no config of that name, 'wbe': did you mean 'web'?\n")
        for name in ('.', '..', 'web/', '%2e', ''):
            for args in (('status',), ('refresh',), ('pin',), ('rollback', '1')):
                self.assertEqual(agent.cli(args[0], name, *args[1:], check=2)[2].split("': ")[0], f"pullet {args[0]}: there is no config of that name, '{name}")
        self.assertIn("'x\\x1b': there is web", agent.cli('status', 'x\x1b', check=2)[2])
        self.assertIn('no generation 9', agent.cli('rollback', 'web', '9', check=2)[2], 'the config is there')
        agent.stop()

    def test_a_pin_is_said_by_refresh(self):
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        agent = Agent(self, self.config(server.url + '/web.yaml', '    interval: 1h\n'))
        self.assertEqual(agent.cli('refresh', 'web', '--wait', check=0)[1], 'web: unchanged, generation 1\n')
        agent.cli('pin', 'web', check=0)
        server.behave = good(b'n: 2\n', 'ETag: "v2"\r\n')
        self.assertEqual(agent.cli('refresh', 'web', '--wait', check=0)[1],
                         "web: held, generation 1: pinned\n  the pin holds the server's version: `pullet unpin web` publishes it\n")
        agent.stop()


class Usage(harness.Case):
    def run_cli(self, *args):
        done = subprocess.run([PULLET, *args], capture_output=True, text=True, timeout=harness.DEADLINE, stdin=subprocess.DEVNULL, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_help_is_help_however_it_is_asked_for(self):
        everything = self.run_cli('--help')
        self.assertEqual((everything[0], everything[2]), (0, ''))
        for args in (('help',), ('-h',), ('help', '--help'), ('help', 'help'), ('help', '-h')):
            self.assertEqual(self.run_cli(*args), everything, args)
        self.assertEqual(self.run_cli('help', 'get'), self.run_cli('get', '--help'))
        self.assertEqual(self.run_cli('help', 'none')[0], 64)

    def test_each_command_says_what_is_wrong_and_its_forms(self):
        for args, says in ((('history',), 'an argument is missing'), (('unpin', 'a', 'b'), "'b' is one argument too many"), (('status', 'a', 'b'), 'one config at most'),
                           (('publish',), 'name one topic'), (('serve',), 'name one directory'), (('keygen',), 'name one file'), (('top', '-b', 'x'), "'x' is one argument"),
                           (('wait', 'web'), 'say --generation N, --version V or --ready'), (('fleet', 'forget'), 'name one host'), (('relay',), 'there is nothing to relay'),
                           (('override', 'web', 'a=1'), '--for is needed')):
            code, out, error = self.run_cli(*args)
            command = 'pullet fleet forget' if args[0] == 'fleet' else f'pullet {args[0]}'
            lines = error.splitlines()
            self.assertEqual((code, out), (64, ''), args)
            self.assertTrue(lines[0].startswith(f'{command}: {says}'), error)
            self.assertTrue(lines[1].startswith(f'Usage: pullet {args[0]}'), error)
            self.assertTrue(all(x.startswith(' ') for x in lines[2:-1]), error)
            self.assertEqual(lines[-1], f"Try '{command} --help'.")

    def test_the_topic_of_heartbeats_is_not_published(self):
        self.assertEqual(self.run_cli('publish', 'pullet.heartbeat', '--endpoint', 'tcp://127.0.0.1:0', '--timeout', '0s'),
                         (64, '', "pullet publish: the topic 'pullet.heartbeat' is that of the heartbeats\n"))

    def test_a_wrong_option_is_told_by_the_whole_name(self):
        self.assertRegex(self.run_cli('history', '--foo')[2], "^pullet history: .*'--foo'\nTry 'pullet history --help'.\n$")
        self.assertRegex(self.run_cli('fleet', 'wait', '--foo')[2], "^pullet fleet wait: .*'--foo'\nTry 'pullet fleet wait --help'.\n$")

    def test_an_address_that_cannot_be_is_64_and_one_that_is_taken_1(self):
        taken = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(taken.close)
        port = taken.getsockname()[1]
        for args, code, says in ((('--http', '8080'), 64, "--http '8080' names no port: write HOST:PORT"), (('--http', 'a:b'), 64, 'no valid port'),
                                 (('--http', f'127.0.0.1:{port}'), 1, f'cannot listen on 127.0.0.1:{port}: another program has it: .*--http'),
                                 (('--http', '127.0.0.1:0', '--push', f'tcp://127.0.0.1:{port}'), 1, f'127.0.0.1:{port} is in use: .*--push'),
                                 (('--http', '127.0.0.1:0', '--push', 'tcp://0.0.0.0:0'), 64, '--insecure'),
                                 (('--http', '127.0.0.1:0', '--push', 'foo://x', '--insecure'), 64, "--push 'foo://x' must be tcp://HOST:PORT or ipc:///PATH"),
                                 (('--http', '127.0.0.1:0', '--push', 'foo'), 64, "--push 'foo' names no port: write tcp://HOST:PORT"),
                                 (('--http', '127.0.0.1:0', '--push', 'tcp://127.0.0.1:65536'), 64, "--push 'tcp://127.0.0.1:65536' has a port out of range")):
            got, out, error = self.run_cli('serve', self.dir, *args)
            self.assertEqual((got, out), (code, ''), error)
            self.assertRegex(error, '^pullet serve: .*' + says)
        self.assertRegex(self.run_cli('publish', 'web', '--endpoint', f'tcp://127.0.0.1:{port}')[2], 'is in use: .*--endpoint')
        self.assertEqual(self.run_cli('publish', 'web', '--endpoint', 'tcp://0.0.0.0:0')[0], 64)
        self.assertEqual(self.run_cli('publish', 'web', '--endpoint', 'tcp://127.0.0.1:70000')[0], 64)


class Top(Case):
    def top(self, *args, columns=100, rows=14, env=None):
        t = Terminal(self, [PULLET, 'top', '--socket', self.socket, '--interval', '100ms', *args], columns, rows, env)
        return t

    def test_shows_what_there_is_and_what_changes(self):
        self.stage.status = self.configs(40, c7=self.failing())
        t = self.top()
        text = t.until('^c7 +failing')
        self.assertRegex(text, r'(?s)^pulletd [0-9.]+ on \S+, pid \d+, up .*\n40 configs: 39 ok, 1 failing; the worst is c7 .failing.\npulls: .*push: 1 of 1 connected')
        self.assertRegex(text, r'(?m)^CONFIG +STATE +GEN +AGE +NEXT +RUNS +TIMEOUTS +REJECTED +LAST ERROR$')
        self.assertRegex(text, r'(?m)^c7 +failing +1 +2h +12s +\d+ +0 +0 +unreachable: connection refused')
        self.stage.status = self.configs(40, c7=self.failing(), c9=self.failing(state='stale'))
        t.until('^c9 +stale')
        t.until(r'^pulls: \d+ \(0\.0/s\)')
        t.press('q')
        self.assertEqual(t.end(), 0)
        t.is_restored()

    def test_real_agent(self):
        server = FaultServer(self)
        server.behave = good(b'n: 1\n', 'ETag: "v1"\r\n')
        agent = Agent(self, self.config(server.url + '/web.yaml', '    interval: 1h\n'))
        agent.refresh()
        self.socket = agent.socket
        t = self.top()
        t.until('^web +ok +1 ')
        server.behave = good(b'x', status='404 Not Found')
        agent.refresh()
        t.until('^web +failing +1 .*not found')
        agent.stop()
        t.until(r'\Ano answer for \S+, trying again: no agent answers at ')
        t.until('^web +failing')
        t.press('q')
        self.assertEqual(t.end(), 0)

    def test_order(self):
        self.stage.status = self.configs(3, c0={'age_ms': 1000, 'rejections': 5, 'next_pull_in_ms': 9000},
                                         c1={'age_ms': 9000, 'next_pull_in_ms': 1000, 'runs': {'success': 1, 'timeouts': 7}},
                                         c2=self.failing(age_ms=5000, runs={'success': 90}))
        t = self.top()
        t.until('order: state')
        for order, first in (('name', 'c0'), ('age', 'c1'), ('next', 'c1'), ('runs', 'c2'), ('timeouts', 'c1'), ('rejected', 'c0'), ('state', 'c2')):
            t.press('s')
            t.until(rf'(?s)order: {order} .*LAST ERROR\n{first} ')
        t.press('q')
        t.end()

    def test_filter(self):
        self.stage.status = self.configs(40, c7=self.failing())
        t = self.top(rows=50)
        t.until('^c39 ')
        t.press('/3')
        t.until(r'(?s)filter: 3_.*LAST ERROR\nc3 .*\nc13 .*\nc23 .*\nc30 .*\nc39 [^\n]*\n*\Z')
        t.press('9\x7f9q\x7f\r')
        t.until(r'(?s)filter: 39   q quit.*LAST ERROR\nc39 [^\n]*\n*\Z')
        t.press('/\x1b')
        t.until('^c38 ')
        t.press('/REFUSED\r')
        t.until(r'(?s)LAST ERROR\nc7 [^\n]*\n*\Z')
        t.press('q')
        self.assertEqual(t.end(), 0)

    def test_scrolling_and_another_size(self):
        self.stage.status = self.configs(100)
        t = self.top(rows=14)
        t.until('^c0 ')
        self.assertRegex(t.until('^c8 '), r'^pulletd')
        t.press('\x1b[B')
        t.until(r'(?s)LAST ERROR\nc1 .*\nc9 ')
        t.press('\x1b[6~')
        t.until(r'LAST ERROR\nc10 ')
        t.press('\x1bOB\x1b[A\x1b[5~')
        t.until(r'LAST ERROR\nc1 ')
        t.press('\x1b[F')
        t.until(r'(?s)LAST ERROR\nc91 .*\nc99 ')
        t.resize(60, 30)
        t.process.send_signal(signal.SIGWINCH)
        t.until(r'(?s)LAST ERROR\nc75 .*\nc99 ')
        t.press('\x1b[H')
        t.until(r'LAST ERROR\nc0 ')
        for columns, rows in ((20, 14), (20, 5), (9, 2), (1, 1), (300, 100)):
            t.resize(columns, rows)
            t.process.send_signal(signal.SIGWINCH)
            t.until(r'\A\S')
        t.until('^c94 ')
        t.press('q')
        t.end()

    def test_every_signal_that_ends_it_gives_the_terminal_back(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number):
                t = self.top()
                t.until('^c0 ')
                self.assertTrue(t.screen.alternate)
                self.assertFalse(t.screen.cursor)
                self.assertNotEqual(termios.tcgetattr(t.slave), t.before)
                t.process.send_signal(number)
                self.assertEqual(t.end(), 0)
                t.is_restored()
        t = self.top()
        t.until('^c0 ')
        t.press('\x03')
        self.assertEqual(t.end(), 0)
        t.is_restored()

    def test_stopped_and_continued(self):
        t = self.top()
        t.until('^c0 ')
        t.press('\x1a')
        deadline = time.monotonic() + harness.DEADLINE
        while not (pid := os.waitpid(t.pid, os.WUNTRACED | os.WNOHANG))[0]:
            self.assertLess(time.monotonic(), deadline)
            t.more(0.02)
        self.assertTrue(os.WIFSTOPPED(pid[1]))
        while t.more(0):
            pass
        t.is_restored()
        termios.tcsetattr(t.slave, termios.TCSANOW, t.before)  # as a shell does
        t.process.send_signal(signal.SIGCONT)
        t.until('^c0 ')
        self.assertTrue(t.screen.alternate)
        t.press('q')
        self.assertEqual(t.end(), 0, 'keys come one by one again')
        t.is_restored()

    def test_agent_gone_and_back(self):
        t = self.top(env={'NO_COLOR': '1'})
        t.until('^c0 ')
        self.stage.close()
        t.until(r'\Ano answer for \S+, trying again: no agent answers at .*: start it')
        self.assertIn('c0 ', t.screen.text, 'what was known stays')
        self.stage = Stage(self, self.socket)
        self.stage.status = self.configs(2)
        t.until(r'(?s)\Apulletd .*\n2 configs: all ok')
        self.stage.code = 500
        t.until(r'\Ano answer for \S+, trying again: the agent answered 500: ')
        t.press('q')
        self.assertEqual(t.end(), 0)
        self.assertNotRegex(t.raw, '\x1b\\[[0-9]*m')

    def test_agent_that_hangs(self):
        t = self.top()
        t.until('^c0 ')
        self.stage.hang = threading.Event()
        t.until(r'\Ano answer for \S+, trying again: the agent does not answer at ')
        t.press('s')
        t.until('order: name')
        begin = time.monotonic()
        t.press('q')
        self.assertEqual(t.end(), 0)
        self.assertLess(time.monotonic() - begin, 1 if not harness.SANITIZED else harness.DEADLINE)

    def test_terminal_that_is_gone(self):
        t = self.top()
        t.until('^c0 ')
        os.close(t.master)
        os.close(t.slave)
        self.assertIn(t.process.wait(harness.DEADLINE), (0, 1))

    def test_before_there_is_an_agent(self):
        self.stage.close()
        t = self.top('-n', '3')
        t.until(r'\Atrying again: no agent answers')
        self.assertEqual(t.end(), 3)
        t.is_restored()

    def test_batch(self):
        self.stage.status = self.configs(40, c7=self.failing(last_error='e' * 300))
        out = self.run_cli('top', '--batch', '-n', '2', '--interval', '100ms', env={'COLUMNS': '80'})
        self.assertEqual(out.count('pulletd '), 2)
        self.assertEqual(len(out.splitlines()), 2 * 44 + 1)
        self.assertIn('e' * 300, out)
        self.assertNotIn('\x1b', out)
        self.assertRegex(out.splitlines()[4], r'^c7 +failing')
        with open('/dev/full', 'w', encoding='utf-8') as full:
            self.assertEqual(subprocess.run([PULLET, 'top', '-bn1', '--socket', self.socket], stdout=full, stderr=subprocess.DEVNULL, check=False).returncode, 1)
        raw, _ = self.on_terminal('top', '-b', '-n', '1', columns=400)
        self.assertNotIn('\x1b', raw)
        self.stage.close()
        self.assertRegex(subprocess.run([PULLET, 'top', '-bn1', '--socket', self.socket], capture_output=True, text=True, check=False).stdout,
                         '^trying again: no agent answers at ')
        self.run_cli('top', '-bn1', code=3)

    def test_wrong_usage(self):
        self.assertIn('--batch', self.run_cli('top', code=64))
        for args in (('-n', '0'), ('-n', 'x'), ('--interval', '1ms'), ('--interval', 'x'), ('web',), ('--none',)):
            self.run_cli('top', '-b', *args, code=64)


if __name__ == '__main__':
    harness.main()
