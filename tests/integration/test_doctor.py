"""`pullet doctor`: each finding provoked for real, and nothing said where all is well."""
import ctypes
import email.utils
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import threading
import time

import harness
import test_tls
from harness import Agent, FaultServer, PULLET, good, needs
from test_curve import Keys, Publisher

NOBODY = 65534
AS_NOBODY = ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups']
NOBODY_S_AGENT = (*AS_NOBODY, '--inh-caps=-all')


def named(body=b'a: 1\n', more='', date=None):
    """A good answer with an ETag and a Date."""
    def behave(connection, _head, _stopping):
        at = email.utils.formatdate(time.time() if date is None else date, usegmt=True)
        connection.sendall(f'HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nETag: "1"\r\nDate: {at}\r\n{more}\r\n'.encode() + body)
    return behave


def status(number):
    return good(b'no', status=f'{number} No')


class Case(harness.Case):
    def doctor(self, *args, prefix=(), env=None, code=None, path=None):
        """The findings; `code` is the exit code that is expected."""
        done = self.run_doctor('--json', *args, prefix=prefix, env=env, path=path)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stderr, '')
        findings = json.loads(done.stdout)
        for f in findings:
            self.assertEqual(set(f), {'check', 'subject', 'severity', 'finding', 'remedy'})
        return findings

    def run_doctor(self, *args, prefix=(), env=None, path=None):
        full = dict(os.environ, **(env or {}))
        return subprocess.run([*prefix, PULLET, 'doctor', '-c', path or self.path('pullet.yaml'), *args], capture_output=True, text=True, env=full,
                              timeout=harness.DEADLINE * 3, check=False)

    def one(self, findings, severity, pattern, check=None, remedy='.', subject=''):
        """The one finding that has the pattern; its severity, remedy and subject."""
        found = [f for f in findings if re.search(pattern, f['finding']) and (check is None or f['check'] == check)]
        self.assertEqual([f['severity'] for f in found], [severity], f'{pattern} in\n' + '\n'.join(map(str, findings)))
        if remedy != '.' or (severity in ('warning', 'error') and found[0]['check'] != 'configuration'):
            self.assertRegex(found[0]['remedy'] or '', remedy, found[0])
        self.assertIn(subject, found[0]['subject'])
        return found[0]

    def none(self, findings, pattern):
        self.assertEqual([f for f in findings if re.search(pattern, f['finding'])], [])

    def worst(self, findings, *allowed):
        self.assertEqual([f for f in findings if f['severity'] not in allowed], [])

    def alone(self, config):
        """The configuration, without an agent."""
        self.write('pullet.yaml', config)

    def in_namespace(self, script):
        """A prefix that runs a command behind a script, in a mount namespace of its own."""
        return [*harness.own_mounts(), 'sh', '-ec', script + '\nexec "$@"', 'sh']

    def server(self, behave=None):
        s = FaultServer(self)
        s.behave = behave or named()
        return s

    def application(self):
        """A process of root's, whose number is in app.pid."""
        app = subprocess.Popen(['sleep', '1000'])
        self.addCleanup(app.wait)
        self.addCleanup(app.kill)
        self.write('app.pid', f'{app.pid}\n')
        return app

    def give(self, *names, uid=NOBODY):
        """Directories of another user's, as whom the agent or the doctor will run."""
        harness.need('to give files away', 'to become another user')
        os.chmod(self.dir, 0o755)
        for name in names:
            os.makedirs(self.path(name), exist_ok=True)
            os.chown(self.path(name), uid, uid)


class Operators(Case):
    """The group of agent.operators, and who of it comes near the socket; `pulletd -t` says the same. Users and groups are those of files laid over /etc."""
    USERS = ('ann', 64301, 64301), ('ben', 64302, 64302), ('eve', 64303, 64310)
    GROUPS = {'ops': (64310, 'ann'), 'readers': (64311, 'ben'), 'both': (64312, 'ann,ben'), 'empty': (64313, ''), 'bens': (64314, 'ben')}

    def setUp(self):
        super().setUp()
        harness.need('to mount', 'to give files away')
        self.write('passwd', 'root:x:0:0::/root:/bin/sh\n' + ''.join(f'{n}:x:{u}:{g}::/:/bin/sh\n' for n, u, g in self.USERS))
        self.write('group', 'root:x:0:\n' + ''.join(f'{n}:x:{g}:{m}\n' for n, (g, m) in self.GROUPS.items()))
        os.chmod(self.dir, 0o755)
        self.prefix = self.in_namespace(f'mount --bind {self.path("passwd")} /etc/passwd; mount --bind {self.path("group")} /etc/group')

    def say(self, group, readers=64311, mode=0o2750):
        """(what the doctor finds, its severity, what `pulletd -t` prints)."""
        os.makedirs(self.path('run'), exist_ok=True)
        os.chown(self.path('run'), 0, readers)
        os.chmod(self.path('run'), mode)
        self.alone(self.config('http://127.0.0.1:9/', agent=f'  operators: {group}'))
        (found,) = [f for f in self.doctor(prefix=self.prefix) if f['subject'] == 'operators' or group in f['finding']]
        test = subprocess.run([*self.prefix, harness.PULLETD, '-t', '-c', self.path('pullet.yaml')], capture_output=True, text=True, check=False,
                              timeout=harness.DEADLINE)
        if found['severity'] in ('warning', 'note'):
            self.assertEqual((test.returncode, test.stderr), (0, f'operators: {found["finding"]}: {found["remedy"]}\n'))
        return found['severity'], found['finding'], test.stderr

    def test_whoever_is_in_both_groups_can_open_it(self):
        self.assertEqual(self.say('both'), ('ok', 'they can open the control socket', ''))
        self.assertEqual(self.say('bens')[0], 'ok')
        self.assertEqual(self.say('ops', mode=0o2755)[0], 'warning')  # into the directory, and not to the socket

    def test_none_of_them_can(self):
        severity, finding, said = self.say('ops')
        self.assertEqual(severity, 'warning')
        self.assertEqual(finding, f'no member of the group ops can open the control socket: ann is stopped at {self.path("run")}')
        self.assertIn('usermod -aG readers ann', said)
        os.chmod(self.dir, 0o750)  # where the doctor and the agent pass
        self.assertRegex(self.say('both')[1], f'ann is stopped at {self.dir}$')

    def test_every_reader_is_an_operator(self):
        severity, finding, said = self.say('readers')
        self.assertEqual(severity, 'warning')
        self.assertIn('the group readers is that of the control socket too', finding)
        self.assertIn('name a group of its own', said)

    def test_nobody_is_one(self):
        self.assertEqual(self.say('empty')[:2], ('note', 'nobody is a member of the group empty'))
        self.assertEqual(self.say('64399')[:2], ('note', 'nobody is a member of the group 64399'))

    def test_there_is_no_such_group(self):
        severity, finding, said = self.say('operatrs')
        self.assertEqual((severity, 'names a group that does not exist here' in finding), ('error', True))
        self.assertIn('names a group that does not exist here', said)


class AllIsWell(Case):
    def test_with_a_running_agent_there_is_no_warning_and_nothing_is_changed(self):
        serve, url, endpoint = self.serve()
        self.write('www/web.yaml', 'a: 1\n')
        self.write('token', 'planted-token\n')
        os.chmod(self.path('token'), 0o640)
        self.write('schema.json', '{}')
        self.application()
        config = f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
push: [{{endpoint: "{endpoint}"}}]
servers:
  main: {{urls: ["{url}"], auth: {{bearer_file: {self.path("token")}, headers: {{X-Api-Key: planted-key}}}}}}
configs:
  web:
    from: [{{server: main, path: /web.yaml}}, {{server: main, path: /more.yaml, optional: true}}]
    file: {self.path("out/web.yaml")}
    schema: {self.path("schema.json")}
    check: [/bin/true, "{{path}}"]
    reload: {{signal: CONT, pidfile: {self.path("app.pid")}}}
'''
        os.makedirs(self.path('out'))
        agent = Agent(self, config)
        agent.log.wait('reload succeeded')
        agent.refresh()  # what follows from the first publication is written down by now
        os.chmod(agent.config_path, 0o640)
        before = self.tree()
        findings = self.doctor(code=0)
        self.worst(findings, 'ok', 'note')
        self.one(findings, 'ok', 'heartbeat came', 'push')
        self.one(findings, 'ok', '^2 documents came', 'servers')
        self.one(findings, 'ok', 'stand as they should', 'agent')
        self.one(findings, 'ok', 'with the rights of this user, who runs the agent', 'files')
        self.one(findings, 'ok', 'programs and processes are there', 'hooks')
        self.assertEqual(self.tree(), before)
        text = self.run_doctor()
        self.assertEqual(text.returncode, 0)
        self.assertRegex(text.stdout, r'^configuration\n  ok      \S*pullet.yaml: 1 config, no error\n')
        self.assertRegex(text.stdout, r'\n0 errors, 0 warnings, \d notes?, \d+ good\n$')
        self.assertNotIn('\x1b', text.stdout)
        self.assertNotIn('planted', text.stdout + json.dumps(findings))
        agent.stop()
        serve.close()

    def tree(self):
        """Names, modes and times of all that is there, but for what the agent itself writes."""
        found = {}
        for folder, _, files in os.walk(self.dir):
            for name in [folder, *(os.path.join(folder, f) for f in files)]:
                s = os.lstat(name)
                found[name] = s.st_mode, s.st_uid, s.st_mtime_ns if not name.startswith((self.path('run'), self.path('state'))) else 0
        return found


class Configuration(Case):
    def test_a_bad_file_is_told_whole_and_ends_with_78(self):
        self.alone('agnt: {}\nconfigs:\n  web:\n    url: ftp://x\n    intervall: 3s\n')
        findings = self.doctor(code=78)
        self.assertEqual([f['subject'].split('pullet.yaml')[1] for f in findings if f['severity'] == 'error'], [':1:1', ':4:10', ':5:5'])
        self.one(findings, 'note', 'with 3 errors in it, servers, push, hooks and published files were not looked at')
        self.assertEqual([f for f in findings if f['check'] in ('servers', 'push', 'hooks')], [])
        self.assertEqual(self.run_doctor().returncode, 78)

    def test_a_slip_in_the_file_of_a_running_agent_hides_neither_it_nor_its_configs(self):
        server = self.server(status(404))
        agent = Agent(self, self.config(server.url + '/web.yaml'))
        agent.log.wait('answered 404')
        good_text = self.read('pullet.yaml').decode()
        for slip in good_text + 'agnt: {}\n', '# runtime_dir: /nowhere\n' + good_text + 'x: "never closed\n':
            self.write('pullet.yaml', slip)
            for reload in False, True:
                if reload:
                    at = agent.log.count
                    agent.signal(signal.SIGHUP)
                    agent.log.wait('nothing was changed', at)
                findings = self.doctor(code=78)
                self.assertEqual(len([f for f in findings if f['check'] == 'configuration' and f['severity'] == 'error']), 1)
                self.one(findings, 'note', r'^the agent goes on with what it read at \S+Z, and refuses to reload this', 'agent')
                self.one(findings, 'error', 'nothing is published yet: .*404', 'agent', remedy='put the configuration right')
                self.assertEqual({f['severity'] for f in findings if f['subject'] == self.path('state')}, {'ok'})
                self.assertEqual([f for f in findings if f['severity'] == 'warning'], [])
        self.write('pullet.yaml', good_text)
        found = [f for f in self.doctor(code=1) if f['subject'].endswith('pullet.yaml') and f['check'] == 'agent']
        self.assertEqual([(f['severity'], f['finding'][:35]) for f in found], [('error', 'the agent refused it when it was la')])
        agent.stop()

    @needs('to become another user')
    def test_a_file_that_one_may_not_read_is_not_judged(self):
        self.alone(self.config('http://127.0.0.1:1/'))
        os.chmod(self.dir, 0o755)
        os.chmod(self.path('pullet.yaml'), 0o600)
        findings = self.doctor(prefix=AS_NOBODY, code=1)
        self.one(findings, 'error', 'you may not read it')
        self.assertEqual([f['check'] for f in findings if f['severity'] == 'error'], ['configuration'])

    def test_what_is_allowed_and_seldom_meant(self):
        self.write('pullet.yaml', f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, listen: "0.0.0.0:9377", log: {{level: debug}}}}
push: [{{endpoint: "tcp://192.0.2.1:7377", insecure: true}}]
servers:
  far: {{urls: ["http://192.0.2.1"], connect_timeout: 100ms, auth: {{headers: {{X-Auth-Token: planted}}}}}}
configs:
  web: {{from: [{{server: far, path: /a.yaml}}], file: {self.path("out/a")}, interval: 100ms, timeout: 200ms, jitter: 0%, drift: leave, history: 1}}
''')
        os.chmod(self.path('pullet.yaml'), 0o646)
        self.none(self.doctor('--timeout', '2s'), 'everybody on this host')  # nobody else gets into the directory
        os.chmod(self.dir, 0o755)
        findings = self.doctor('--timeout', '2s', code=1)
        for severity, pattern in (('warning', 'plain http from another host, unsigned'), ('note', 'timeout is longer than interval'),
                                  ('note', 'jitter is 0%'), ('note', 'drift: leave'), ('note', 'history is 1'),
                                  ('warning', r'0\.0\.0\.0:9377 can be reached'), ('warning', 'plain text from another host'), ('note', 'level is debug'),
                                  ('warning', 'X-Auth-Token is in the configuration'), ('error', 'everybody on this host can write in it')):
            self.one(findings, severity, pattern, 'configuration')
        self.assertNotIn('planted', json.dumps(findings))

    def test_a_long_interval_with_nothing_to_tell_of_changes(self):
        url = self.server().url
        self.alone(self.config(url + '/a.yaml', '    interval: 10m\n    probe: {run: [/bin/true]}\n'))
        findings = self.doctor(code=0)
        self.one(findings, 'note', 'nothing tells the agent of a change')
        self.one(findings, 'note', 'not notified of the change')

    def test_usage(self):
        self.alone(self.config(self.server().url + '/a.yaml'))
        self.assertEqual(self.run_doctor('nothing').returncode, 2)
        self.assertEqual(self.run_doctor('a', 'b').returncode, 64)
        self.assertEqual(self.run_doctor('--timeout', 'x').returncode, 64)
        self.assertIn('Usage: pullet doctor', self.run_doctor('--help').stdout)

    def test_one_config_alone_is_looked_at(self):
        server = self.server()
        self.alone(self.config(server.url + '/web.yaml') + f'  other: {{url: "http://127.0.0.1:1/", file: {self.path("out/other")}}}\n')
        self.doctor(code=1)
        findings = self.doctor('web', code=0)
        self.none(findings, 'refused')
        self.assertEqual({f['subject'] for f in findings if f['check'] == 'servers'}, {server.url})


class OfServers(Case):
    def look(self, url, more='', code=None, args=(), env=None):
        self.alone(self.config(url, more))
        return [f for f in self.doctor(*args, code=code, env=env) if f['check'] == 'servers']

    def test_nobody_there(self):
        with socket.create_server(('127.0.0.1', 0)) as s:
            port = s.getsockname()[1]
        self.one(self.look(f'http://127.0.0.1:{port}/a', code=1), 'error', 'unreachable: connection refused')

    def test_statuses(self):
        server = self.server()
        for number, pattern in ((401, 'forbidden: the server answered 401'), (404, 'not found: the server answered 404'),
                                (503, 'overloaded: the server answered 503'), (302, 'a redirect is not followed')):
            server.behave = status(number)
            self.one(self.look(server.url + '/a.yaml', code=1), 'error', pattern)

    def test_a_server_that_hangs_costs_one_timeout_for_all_its_documents(self):
        server = self.server(lambda connection, head, stopping: stopping.wait(60) and 'close')
        layers = ''.join(f'      - {{server: main, path: /{i}.yaml}}\n' for i in range(10))
        self.alone(f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{main: {{urls: ["{server.url}"], max_in_flight: 2}}}}
configs:
  web:
    file: {self.path("web")}
    timeout: 1s
    from:
{layers}''')
        begin = time.monotonic()
        findings = self.doctor(code=1)
        self.one(findings, 'error', r'^timeout: timed out: .* \(8 more documents not asked for\)')
        self.assertLess(time.monotonic() - begin, 4 if not harness.SANITIZED else 20)
        self.assertEqual(server.requests, 2)

    def test_no_check_takes_longer_than_timeout(self):
        server = self.server(lambda connection, head, stopping: stopping.wait(60) and 'close')
        begin = time.monotonic()
        self.one(self.look(server.url, '    timeout: 1h\n    interval: 2h\n', args=('--timeout', '1s')), 'error', 'no answer in the 1000 ms')
        self.assertLess(time.monotonic() - begin, 4 if not harness.SANITIZED else 20)

    def test_the_clock_of_a_server(self):
        server = self.server(named(date=time.time() + 7200))
        f = self.one(self.look(server.url), 'warning', r"the server's clock is 7\d\d\d s ahead of this host's")
        self.assertEqual(f['subject'], server.url)
        server.behave = named(date=time.time() - 30)
        self.one(self.look(server.url), 'note', 'behind this host')
        server.behave = named()
        self.none(self.look(server.url), 'clock')

    def test_a_document_without_a_name_a_large_one_and_one_that_cannot_be_read(self):
        server = self.server(good(b'a: 1\n'))
        self.one(self.look(server.url + '/a.yaml'), 'note', 'neither ETag nor Last-Modified')
        server.behave = named(b'a: b: c\n')
        self.one(self.look(server.url + '/a.yaml', code=1), 'error', 'line 1, column 5', remedy='put it right at its source')
        server.behave = named(b'{"\\u001b[31m": 1, "\\u001b[31m": 2}')
        self.one(self.look(server.url + '/a.json', code=1), 'error', 'twice|duplicate')
        self.assertNotIn('\x1b', self.run_doctor().stdout)
        server.behave = named(b'a: ' + b'x' * 950 + b'\n')
        self.alone(self.layered([server.url], 'max_size: 1KiB'))
        self.one(self.doctor(), 'warning', r'has 954 of the 1024 bytes')
        server.behave = named(b'a: ' + b'x' * 2000 + b'\n')
        self.one(self.doctor(code=1), 'error', 'larger than the limit of 1024 bytes', remedy='raise max_size')

    def layered(self, urls, server='', config=''):
        return f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{main: {{urls: {json.dumps(urls)}, {server}}}}}
configs: {{web: {{from: [{{server: main, path: /a.yaml}}], file: {self.path("web")}, {config}}}}}
'''

    def test_what_another_address_has_is_only_a_warning(self):
        one, two = self.server(), self.server(status(404))
        self.alone(self.layered([one.url, two.url, 'http://127.0.0.1:1']))
        findings = self.doctor(code=0)
        self.one(findings, 'warning', 'not found')
        self.one(findings, 'warning', 'refused.*; the agent goes to another address')
        two.behave = named(b'a: 2\n')
        self.one(self.doctor(), 'warning', 'have different contents at /a.yaml')
        two.behave = named()
        self.none(self.doctor(), 'different')

    def test_a_slow_server(self):
        server = self.server(lambda c, h, stopping: (stopping.wait(0.7), named()(c, h, stopping))[1])
        self.one(self.look(server.url, '    timeout: 1200ms\n'), 'warning', r'took \d+ ms of the 1200')

    def test_proxies_are_said_to_be_unused(self):
        server = self.server()
        f = self.one(self.look(server.url, code=0, env={'https_proxy': 'http://127.0.0.1:1'}), 'note', 'never uses a proxy')
        self.assertEqual(f['subject'], 'https_proxy')

    def test_secrets_that_are_missing_empty_or_refused(self):
        server = self.server(named())
        self.alone(self.layered([server.url], f'auth: {{bearer_file: {self.path("token")}}}'))
        findings = self.doctor(code=1)
        self.one(findings, 'error', 'yaml: this host$', 'servers')
        self.one(findings, 'error', 'No such file')  # once
        self.write('token', 'planted\n')
        os.chmod(self.path('token'), 0o644)
        self.none(self.doctor(code=0), 'everybody on this host')
        os.chmod(self.dir, 0o755)
        self.one(self.doctor(code=0), 'warning', 'everybody on this host can read it', 'files')

    def test_signatures(self):
        subprocess.run(['minisign', '-G', '-W', '-p', self.path('k.pub'), '-s', self.path('k.key')], check=True, capture_output=True)
        public = self.read('k.pub').decode().splitlines()[1]
        server, answers = self.server(), {'/a.yaml': b'a: 1\n'}
        server.behave = lambda c, head, s: (named(answers[p]) if (p := head.split()[1]) in answers else status(404))(c, head, s)
        self.alone(self.layered([server.url], config=f'verify: {{public_key: {public}}}'))
        self.one(self.doctor(code=1), 'error', 'a.yaml.minisig is not there')
        self.write('a.yaml', 'a: 1\n')
        for comment, severity, pattern in (('timestamp:1', 'note', 'no rev='), ('rev=1 expires=2020-01-01T00:00:00Z', 'error', 'expired on 2020-01-01'),
                                           (f'rev=1 expires={int(time.time()) + 3600}', 'warning', 'good for less than a day')):
            subprocess.run(['minisign', '-S', '-W', '-s', self.path('k.key'), '-t', comment, '-m', self.path('a.yaml')], check=True, capture_output=True)
            answers['/a.yaml.minisig'] = self.read('a.yaml.minisig')
            self.one(self.doctor(code=1 if severity == 'error' else 0), severity, pattern, 'servers')
        answers['/a.yaml'] = b'a: 2\n'
        self.one(self.doctor(code=1), 'error', 'signature', 'servers')


class Tls(Case):
    @classmethod
    def setUpClass(cls):
        cls.authorities = test_tls.Authorities()
        cls.addClassCleanup(shutil.rmtree, cls.authorities.dir)

    def look(self, name, ca='ca.pem', code=1):
        server = test_tls.Https(self, self.authorities)
        server.show(name)
        self.alone(f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{main: {{urls: ["{server.url}"], tls: {{ca: {self.authorities.path(ca)}}}}}}}
configs: {{web: {{from: [{{server: main, path: /a.yaml}}], file: {self.path("web")}}}}}
''')
        return self.doctor(code=code)

    def test_certificates_that_are_bad_and_one_that_soon_will_be(self):
        self.authorities.sign('old', start=test_tls.LONG_PAST, end=test_tls.PAST)
        self.one(self.look('old'), 'error', 'unreachable: .*certificate has expired', 'servers')
        self.authorities.sign('elsewhere', names='DNS:other.example')
        self.one(self.look('elsewhere'), 'error', "is for another name than the url's", 'servers')
        self.authorities.sign('good')
        self.one(self.look('good', ca='other.pem'), 'error', 'name the authority', 'servers')
        findings = self.look('good', ca='missing.pem')
        self.one(findings, 'error', 'yaml: this host$', 'servers', remedy='see files')
        self.one(findings, 'error', 'tls.ca: No such file', 'files')
        self.one(self.look('good', code=0), 'warning', r'expires on 20..-..-.. \([12] days? left\)', 'servers')

    def test_a_long_lived_one_is_not_spoken_of(self):
        self.authorities.sign('long', end=test_tls.FAR_FUTURE)
        findings = self.look('long', code=0)
        self.none(findings, 'expires')
        self.one(findings, 'ok', '1 document came')


class Certificates(Case):
    """Files that tls: names, looked at by themselves; what a server makes of them is another matter."""

    @classmethod
    def setUpClass(cls):
        cls.authorities = a = test_tls.Authorities()
        cls.addClassCleanup(shutil.rmtree, a.dir)
        for name, start, end in (('good', None, test_tls.FAR_FUTURE), ('old', test_tls.LONG_PAST, test_tls.PAST), ('next', test_tls.FUTURE, test_tls.FAR_FUTURE),
                                 ('soon', cls.day(-100), cls.day(13.5)), ('later', cls.day(-100), cls.day(15)), ('short', None, cls.day(2)),
                                 ('short-soon', cls.day(-1.5), cls.day(0.5))):
            a.sign(name, start=start, end=end)

    @staticmethod
    def day(days):
        return time.strftime('%Y%m%d%H%M%SZ', time.gmtime(time.time() + days * 86400))

    def pem(self, *names):
        """A file of several."""
        with open(self.path('together.pem'), 'w', encoding='ascii') as f:
            for name in names:
                with open(self.authorities.path(name), encoding='ascii') as part:
                    f.write(part.read())
        os.chmod(f.name, 0o640)
        return f.name

    def look(self, **tls):
        keys = ', '.join(f'{k}: {v if os.path.isabs(v) else self.authorities.path(v)}' for k, v in tls.items())
        self.alone(f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{main: {{urls: ["https://127.0.0.1:1"], tls: {{{keys}}}}}}}
configs: {{web: {{from: [{{server: main, path: /a.yaml}}], file: {self.path("web")}}}}}
''')
        return [f for f in self.doctor() if f['check'] == 'files']

    def of(self, name):
        return self.look(cert=name + '.pem', key=name + '.key')

    def test_until_when_they_are_good(self):
        for name, severity, pattern, remedy in (
                ('good', 'ok', '^tls.cert: it is good until 2041-01-01$', '^$'), ('later', 'ok', 'good until', '^$'), ('short', 'ok', 'good until', '^$'),
                ('old', 'error', r'^tls.cert: it expired on 2020-02-01: the server refuses this host$', 'renew it, and put it there with its key'),
                ('soon', 'warning', r'^tls.cert: it expires on 20..-..-.. \(13 days left\): then the server refuses this host$', 'renew it'),
                ('short-soon', 'warning', r'\(0 days left\)', 'renew it'),
                ('next', 'error', 'not good yet, but from 2040-01-01 on', "set this host's clock right")):
            with self.subTest(name=name):
                findings = self.of(name)
                self.one(findings, severity, pattern, remedy=remedy, subject=self.authorities.path(name + '.pem'))
                self.none(findings, 'tls.key: it is not')

    def test_the_first_of_a_chain_to_expire_counts(self):
        self.one(self.look(cert=self.pem('good.pem', 'old.pem'), key='good.key'), 'error', 'it expired on 2020-02-01')

    def test_keys(self):
        self.one(self.look(cert='good.pem', key='old.key'), 'error', r'^tls.key: it is not the key of the first certificate in \S+/good.pem', remedy='as they were made together',
                 subject='old.key')
        self.one(self.look(cert=self.pem('good.pem', 'old.pem'), key='old.key'), 'error', 'it is not the key')
        both = self.pem('good.key', 'good.pem')
        self.none(self.look(cert=both), 'key')
        os.chmod(both, 0o644)
        os.chmod(os.path.dirname(both), 0o755)
        os.chmod(self.dir, 0o755)
        self.one(self.look(cert=both), 'warning', 'tls.cert: everybody on this host can read it', remedy='chmod o-rwx')
        self.one(self.look(cert='good.pem'), 'error', 'tls.key: there is no key in it', subject='good.pem')
        self.authorities.openssl('pkey', '-in', 'good.key', '-aes256', '-passout', 'pass:x', '-out', 'locked.key')
        self.one(self.look(cert='good.pem', key='locked.key'), 'error', 'no key in it that can be read', remedy='without a passphrase')

    def test_authorities(self):
        self.one(self.look(ca='good.pem'), 'ok', '^tls.ca: it is good until 2041-01-01$')
        self.one(self.look(ca='old.pem'), 'error', '^tls.ca: it expired on 2020-02-01: no server is believed$', remedy='the authority that signs')
        self.one(self.look(ca=self.pem('old.pem', 'good.pem')), 'ok', 'good until 2041')
        self.one(self.look(ca=self.pem('next.pem', 'good.pem')), 'ok', 'good until 2041')
        self.one(self.look(ca=self.pem('old.pem', 'soon.pem')), 'warning', r'\(13 days left\): then no server')
        self.one(self.look(ca='good.key'), 'error', 'tls.ca: there is no certificate in it', remedy='as PEM')

    def test_what_several_servers_use_is_told_once(self):
        ca = self.authorities.path('old.pem')
        self.alone(f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{one: {{urls: ["https://127.0.0.1:1"], tls: {{ca: {ca}}}}}, two: {{urls: ["https://127.0.0.1:2"], tls: {{ca: {ca}}}}}}}
configs: {{web: {{from: [{{server: one, path: /a.yaml}}, {{server: two, path: /a.yaml}}], file: {self.path("web")}}}}}
''')
        self.one(self.doctor(code=1), 'error', 'tls.ca: it expired')

    def test_a_file_that_is_not_there_is_told_once(self):
        findings = self.look(cert='none.pem', key='none.key', ca='none.ca')
        self.assertEqual(sorted(f['finding'] for f in findings if 'tls.' in f['finding']), [f'tls.{k}: No such file or directory' for k in ('ca', 'cert', 'key')])

    @needs('to become another user')
    def test_a_file_that_one_may_not_read(self):
        a = self.authorities
        os.chmod(a.dir, 0o755)
        findings = []
        self.look(cert='good.pem', key='good.key')
        os.chmod(self.dir, 0o755)
        os.chmod(self.path('pullet.yaml'), 0o644)
        os.chmod(a.path('good.key'), 0o600)
        agent = Agent(self, self.read('pullet.yaml').decode())
        agent.log.wait('refused')
        os.chmod(self.path('pullet.yaml'), 0o644)
        findings = self.doctor(prefix=AS_NOBODY)
        self.one(findings, 'note', 'tls.key: you may not read it', 'files', remedy='run this as root', subject='good.key')
        self.one(findings, 'ok', 'tls.cert: it is good until', 'files')


class OfPush(Case):
    def look(self, endpoint, more='', code=None, heartbeat='100ms'):
        server = self.server()
        self.alone(self.config(server.url + '/a.yaml', push=f'push: [{{endpoint: "{endpoint}", heartbeat: {heartbeat}{more}}}]'))
        return [f for f in self.doctor(code=code) if f['check'] == 'push']

    def test_keys_that_do_not_fit(self):
        right, wrong = Keys(self, 'right'), Keys(self, 'wrong')
        publisher = Publisher(self, right)
        self.one(self.look(publisher.endpoint, f", curve: {{server_key: '{right.public}'}}", 0), 'note', 'no heartbeat came')
        self.one(self.look(publisher.endpoint, f", curve: {{server_key: '{wrong.public}'}}", 1), 'error', "refused: .*server_key is not its public key")
        begin = time.monotonic()
        self.one(self.look(publisher.endpoint, code=1, heartbeat='1m'), 'error', 'refused: .*wants CURVE')
        self.assertLess(time.monotonic() - begin, 8, 'what is refused is not waited for')
        plain = Publisher(self)
        self.one(self.look(plain.endpoint, f", curve: {{server_key: '{right.public}'}}", 1), 'error', 'refused: .*does not use CURVE')

    def test_nobody_there_and_a_key_that_cannot_be_read(self):
        with socket.create_server(('127.0.0.1', 0)) as s:
            port = s.getsockname()[1]
        self.one(self.look(f'tcp://127.0.0.1:{port}', code=1), 'error', 'no connection')
        keys = Keys(self, 'right')
        publisher = Publisher(self, keys)
        self.one(self.look(publisher.endpoint, f", curve: {{server_key: '{keys.public}', secret_key_file: {self.path('none')}}}", 1), 'error', 'refused: ')


class Files(Case):
    def setUp(self):
        super().setUp()
        self.url = self.server().url + '/web.yaml'
        os.chmod(self.dir, 0o755)

    def look(self, script, more='', code=None):
        self.alone(self.config(self.url, more))
        os.makedirs(self.path('state'), mode=0o700, exist_ok=True)
        os.makedirs(self.path('run'), mode=0o750, exist_ok=True)
        return [f for f in self.doctor(prefix=self.in_namespace(script) if script else (), code=code) if f['check'] == 'files']

    def test_a_file_that_is_a_mount_point(self):
        self.write('out/web.yaml', 'a: 1\n')
        self.write('source', 'a: 1\n')
        self.one(self.look(f'mount --bind {self.path("source")} {self.path("out/web.yaml")}', code=1), 'error',
                 r'/out/web.yaml is a mount point by itself: it cannot be replaced', remedy='mount its directory instead.*no subPath', subject='web')
        self.none(self.look('', code=0), 'mount point')
        os.makedirs(self.path('other'))
        self.one(self.look(f'mount --bind {self.path("other")} {self.path("out")}', code=0), 'ok', 'can be replaced in one step')

    def test_read_only(self):
        self.one(self.look(f'mount -t tmpfs -o ro none {self.path("out")}', code=1), 'error', 'web: the file system is read-only', remedy='mount it writable',
                 subject=self.path('out'))

    def test_state_in_memory(self):
        self.one(self.look(f'mount -t tmpfs -o mode=700 none {self.path("state")}', code=0), 'warning', r'state_dir: it is in memory \(tmpfs\): after a reboot',
                 remedy='name a directory on a disk', subject=self.path('state'))
        self.one(self.look(f'mount -t ramfs -o mode=700 none {self.path("state")}; chmod 700 {self.path("state")}', code=0), 'warning', r'it is in memory \(ramfs\)')
        self.one(self.look('', code=0), 'note', 'runtime_dir: it is on a disk', remedy='name a directory on tmpfs', subject=self.path('run'))
        self.one(self.look(f'mount -t tmpfs -o mode=750 none {self.path("run")}', code=0), 'ok', 'runtime_dir is as it should be')

    def believe(self, magic, *names):
        """A prefix: the kernel's answer to a program of what kind of file system these directories lie on is changed."""
        paths = [option for name in names for option in ('-P', self.path(name))]
        return ['strace', '-f', '-qq', '-o', '/dev/null', *paths, '-e', 'trace=fstatfs',
                '-e', 'inject=fstatfs:poke_exit=@arg2=' + struct.pack('<Q', magic).hex()]

    def without_leaks(self):
        """What looks for leaks cannot be traced."""
        return {'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':detect_leaks=0'}

    @needs('to trace')
    def test_what_comes_over_a_network(self):
        self.alone(self.config(self.url))
        os.makedirs(self.path('state'), mode=0o700)
        os.makedirs(self.path('run'), mode=0o750)
        for magic, name in ((0x6969, 'NFS'), (0xff534d42, 'CIFS'), (0xfe534d42, 'SMB'), (0x517b, 'SMB'), (0x01021997, '9p'), (0x00c36400, 'Ceph'),
                            (0x5346414f, 'AFS'), (0x65735546, 'FUSE')):
            with self.subTest(name=name):
                findings = self.doctor(prefix=self.believe(magic, 'state', 'run', 'out'), env=self.without_leaks(), code=1)
                self.one(findings, 'warning', f'^state_dir: it is on {name}: the agent hangs when that does$', remedy='name a local directory', subject=self.path('state'))
                self.one(findings, 'error', f'^runtime_dir: it is on {name}: readers of snapshots may be killed', remedy='/run/pullet', subject=self.path('run'))
                says = ', where a rename may fail' if name == 'NFS' else ': whether .*, and the agent, with all its configs, hangs when that does$'
                self.one(findings, 'error' if name == 'NFS' else 'warning', f'/out is on {name}{says}', remedy='publish into a local directory', subject='web')

    @needs(harness.LOOK)
    def test_on_nfs_the_agent_does_refuse(self):
        self.alone(self.config(self.url))
        done = subprocess.run([*self.prefix, *self.believe(0x6969, 'out'), harness.PULLETD, '-c', self.path('pullet.yaml'), '--once'], capture_output=True, text=True,
                              env=dict(os.environ, **self.without_leaks()), timeout=harness.DEADLINE, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('it is on NFS, where a rename may fail and have happened', done.stderr)

    def test_full(self):
        out = self.path('out')
        self.one(self.look(f'mount -t tmpfs -o size=64k,mode=755 none {out}; head -c 65536 /dev/zero > {out}/x', code=1), 'error', ' full: 0 bytes')
        self.one(self.look(f'mount -t tmpfs -o size=64k,mode=755 none {out}', code=0), 'warning', 'nearly full: 64 KiB')
        self.one(self.look(f'mount -t tmpfs -o nr_inodes=2,mode=755 none {out}; touch {out}/x', code=1), 'error', '0 of 2 inodes left')
        self.one(self.look(f'mount -t tmpfs -o size=64m,mode=755 none {out}; head -c 66000000 /dev/zero > {out}/x', code=0), 'warning', 'nearly full')

    def test_an_overlay(self):
        os.makedirs(self.path('over'))  # in memory: what lies on an overlay itself is none to lay another on
        script = ('mount -t tmpfs none {0}; cd {0}; mkdir -m 700 lower upper work; '
                  'mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none {1}').format(self.path('over'), self.path('state'))
        self.one(self.look(script, code=0), 'note', "state_dir: it is in a container's own layer, and gone with the container", remedy='mount a volume there',
                 subject=self.path('state'))

    def test_what_stands_where_the_file_is_to_be(self):
        os.makedirs(self.path('out/web.yaml'))
        self.one(self.look('', code=1), 'error', 'is a directory')
        os.rmdir(self.path('out/web.yaml'))
        os.symlink('elsewhere', self.path('out/web.yaml'))
        self.one(self.look('', code=0), 'warning', 'is a symlink')
        os.unlink(self.path('out/web.yaml'))
        os.mkfifo(self.path('out/web.yaml'))
        self.one(self.look('', code=0), 'warning', 'no regular file')
        os.unlink(self.path('out/web.yaml'))
        self.write('out/web.yaml', 'a: 1\n')
        os.chmod(self.path('out/web.yaml'), 0o600)
        self.one(self.look('', '    mode: "0640"\n', code=0), 'note', 'it has 0600')

    def test_directories_that_others_can_write_in(self):
        os.makedirs(self.path('out'))
        os.chmod(self.path('out'), 0o777)
        self.one(self.look('', code=1), 'error', 'group or others can write in')
        os.chmod(self.path('out'), 0o1777)
        self.none(self.look('', code=0), 'can write in')
        os.chmod(self.path('out'), 0o755)
        os.chmod(self.path('state'), 0o777)
        os.chmod(self.path('run'), 0o777)
        findings = self.look('', code=1)
        self.one(findings, 'error', 'state_dir: everybody can write in it')
        self.one(findings, 'error', 'runtime_dir: everybody can write in it')

    def test_directories_that_are_missing(self):
        self.alone(self.config(self.url).replace(self.path('out/'), self.path('deep/down/')).replace(self.path('state'), self.path('new')))
        findings = self.doctor(code=1)
        self.one(findings, 'error', 'nor is the directory it would lie in')
        self.one(findings, 'note', 'state_dir: it is not there; the agent makes it')

    def fuse(self):
        """The kernel's, if /dev has it or not."""
        if os.path.exists('/dev/fuse'):
            return '/dev/fuse'
        os.mknod(self.path('fuse'), 0o600 | stat.S_IFCHR, os.makedev(10, 229))
        return self.path('fuse')

    @needs('to mount')
    def test_a_mount_that_hangs(self):
        """A FUSE file system that nobody answers for."""
        self.alone(self.config(self.url))
        os.makedirs(self.path('run'), mode=0o750)
        fd = os.open(self.fuse(), os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        where = self.path('out').encode()
        self.assertEqual(libc.mount(b'none', where, b'fuse', 0, f'fd={fd},rootmode=40000,user_id=0,group_id=0'.encode()), 0, os.strerror(ctypes.get_errno()))
        self.addCleanup(lambda: (os.close(fd), libc.umount2(where, 2)))
        begin = time.monotonic()
        findings = self.doctor('--timeout', '1s', code=1)
        f = self.one(findings, 'error', 'the file system does not answer', 'files')
        self.assertTrue(f['subject'].startswith(self.path('out')), f)
        self.one(findings, 'ok', 'document came', 'servers')
        self.assertLess(time.monotonic() - begin, 10)

    def test_group_that_the_agent_cannot_give_a_file_to(self):
        self.give('state', 'run', 'out')
        agent = Agent(self, self.config(self.url, '    owner: ":1"\n'), valgrind=NOBODY_S_AGENT)
        agent.ready()
        self.one(self.doctor(code=1), 'error', 'cannot give a file to a group that it is not in', 'files')


class OfTheAgent(Case):
    """What depends on who the agent is: it runs as nobody, the doctor as root."""

    def start(self, more='', prefix=NOBODY_S_AGENT, url=None):
        self.give('state', 'run', 'out')
        agent = Agent(self, self.config(url or self.server().url + '/web.yaml', more), valgrind=prefix)
        agent.ready()
        return agent

    def test_its_rights_count_not_ours(self):
        agent = self.start()
        agent.log.wait('published')
        self.worst(self.doctor(code=0), 'ok', 'note')
        os.chown(self.path('out'), 0, 0)
        os.chown(self.path('state/web'), 0, 0)
        findings = self.doctor(code=1)
        f = self.one(findings, 'error', 'nobody may not write in it: Permission denied')
        self.assertEqual(f['subject'], self.path('out'))
        self.one(findings, 'error', 'it belongs to uid 0, the agent is nobody')
        entries = (1, 7, -1), (2, 7, NOBODY), (4, 5, -1), (16, 7, -1), (32, 5, -1)  # u::rwx, u:nobody:rwx, g::r-x, m::rwx, o::r-x
        os.setxattr(self.path('out'), 'system.posix_acl_access', struct.pack('<i', 2) + b''.join(struct.pack('<HHi', *e) for e in entries))
        self.none(self.doctor(), 'may not write')

    def test_root_without_its_capabilities_has_the_rights_of_anybody(self):
        self.give('out')
        self.give('state', 'run', uid=0)
        Agent(self, self.config(self.server().url + '/web.yaml'), valgrind=('setpriv', '--bounding-set=-all', '--inh-caps=-all')).ready()
        findings = self.doctor(code=1)
        f = self.one(findings, 'error', '^web: root may not write in it: Permission denied')
        self.assertEqual(f['subject'], self.path('out'))

    def test_an_agent_of_another_version_and_what_comes_from_elsewhere_is_no_terminal_s_business(self):
        self.alone(self.config(self.server().url + '/web.yaml'))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path('sock'))
        listener.listen()
        body = b'{"version": "9\\u001b[31m", "started_ms": 1, "configs": [], "push": []}'

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    if connection.recv(65536):
                        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % len(body) + body)
        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(listener.close)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        self.one(self.doctor('--socket', self.path('sock')), 'warning', 'it runs version 9\x1b.31m, installed is', 'agent')
        text = self.run_doctor('--socket', self.path('sock')).stdout
        self.assertIn(r'it runs version 9\x1b[31m, installed is', text)
        self.assertNotIn('\x1b', text)

    def test_a_secret_that_it_may_not_read(self):
        agent = self.start()
        self.write('token', 'planted\n')
        os.chmod(self.path('token'), 0o600)
        server = self.server()
        self.write('pullet.yaml', f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{main: {{urls: ["{server.url}"], auth: {{bearer_file: {self.path("token")}}}}}}}
configs: {{web: {{from: [{{server: main, path: /web.yaml}}], file: {self.path("out/web.yaml")}}}}}
''')
        self.one(self.doctor(code=1), 'error', 'bearer_file: nobody may not read it: Permission denied', 'files')
        os.chown(self.path('token'), 0, NOBODY)
        os.chmod(self.path('token'), 0o640)
        self.none(self.doctor(), 'may not read')
        agent.stop()

    def test_as_the_agent_s_user(self):
        agent = self.start()
        agent.log.wait('published')
        os.chmod(self.path('pullet.yaml'), 0o644)
        self.worst(self.doctor(prefix=AS_NOBODY, code=0), 'ok', 'note')
        os.chown(self.path('out'), 0, 0)
        self.one(self.doctor(prefix=AS_NOBODY, code=1), 'error', 'nobody may not write in it')

    def test_an_open_volume_of_a_container(self):
        """Nobody in there can change whose it is, nor its mode: no error, and no such remedy."""
        self.give('out')
        self.alone(self.config('http://127.0.0.1:1/web.yaml'))
        os.chmod(self.path('pullet.yaml'), 0o644)
        mounts = self.in_namespace('\n'.join(f'mkdir -p {self.path(name)}; mount -t tmpfs -o mode=2777 none {self.path(name)}' for name in ('state', 'run')))
        findings = self.doctor(prefix=[*mounts, *AS_NOBODY], env={'KUBERNETES_SERVICE_HOST': '192.0.2.1'})
        for name in ('state', 'run'):
            self.one([f for f in findings if f['subject'] == self.path(name)], 'warning', 'it is a volume in which everybody can write', remedy='no other container')
        self.none(findings, 'it belongs to uid')
        self.one(self.doctor(prefix=[*mounts, *AS_NOBODY], code=1), 'error', 'state_dir: everybody can write in it')  # /dev/shm of a host, say

    @needs('to become another user')
    def test_as_somebody_else_it_says_what_was_not_looked_at_and_guesses_nothing(self):
        self.write('token', 'planted\n')
        os.chmod(self.path('token'), 0o600)
        server = self.server(status(401))
        os.makedirs(self.path('out'))
        os.makedirs(self.path('state'), mode=0o700)
        shutil.copy('/bin/true', self.path('systemctl'))
        config = f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{main: {{urls: ["{server.url}"], auth: {{bearer_file: {self.path("token")}}}}}}}
configs: {{web: {{from: [{{server: main, path: /web.yaml}}], file: {self.path("out/web.yaml")}, reload: {{run: [{self.path('systemctl')}, reload, x]}}}}}}
'''
        agent = Agent(self, config)
        agent.log.wait('answered 401')
        requests = server.requests
        os.chmod(self.dir, 0o755)
        os.chmod(self.path('pullet.yaml'), 0o644)
        findings = self.doctor(prefix=AS_NOBODY, code=0)
        self.worst(findings, 'ok', 'note')
        self.one(findings, 'note', 'you may not ask the agent')
        self.one(findings, 'note', "not looked at: you may not read a secret that the agent's user uses here")
        self.one(findings, 'note', 'you cannot try what this user may')
        self.assertEqual(server.requests, requests)

    def test_a_configuration_that_the_agent_has_not_read(self):
        agent = self.start()
        agent.log.wait('published')
        self.none(self.doctor(), 'had read it')
        config = self.read('pullet.yaml')
        self.write('pullet.yaml', config)
        self.one(self.doctor(code=0), 'warning', 'it was changed after the running agent had read it', 'agent')
        os.utime(self.path('pullet.yaml'), (1, 1))
        self.one(self.doctor(code=0), 'note', 'it was replaced, or its rights changed, after', 'agent')
        agent.signal(signal.SIGHUP)
        agent.log.wait('the new configuration runs')
        self.none(self.doctor(code=0), 'had read it')
        self.write('conf.d/more.yaml', '# nothing\n')
        self.one(self.doctor(code=0), 'warning', 'it was changed after', 'agent')
        shutil.rmtree(self.path('conf.d'))
        self.write('pullet.yaml', config + b'  web2: {url: 3}\n')
        agent.signal(signal.SIGHUP)
        agent.log.wait('nothing was changed')
        self.write('pullet.yaml', config)
        self.one(self.doctor(code=1), 'error', 'the agent refused it when it was last reloaded', 'agent')
        shutil.copy(self.path('pullet.yaml'), self.path('other.yaml'))
        self.one(self.doctor(path=self.path('other.yaml')), 'warning', 'the agent that runs reads .*pullet.yaml', 'agent')
        agent.stop()

    def test_the_path_of_an_agent_that_was_given_a_relative_one(self):
        agent = self.start()
        agent.log.wait('published')
        agent.stop()
        near = harness.Program([*NOBODY_S_AGENT, harness.PULLETD, '-c', './pullet.yaml'], cwd=self.dir)
        self.addCleanup(near.close)
        near.log.wait('last known good')
        shutil.copy(self.path('pullet.yaml'), self.path('other.yaml'))
        self.one(self.doctor(path=self.path('other.yaml')), 'warning', f'the agent that runs reads {self.path("pullet.yaml")}$', 'agent')

    def test_states_of_configs(self):
        server = self.server(status(404))
        agent = self.start(url=server.url + '/web.yaml')
        agent.log.wait('answered 404')
        self.one(self.doctor(code=1), 'error', '^nothing is published yet$', 'agent', remedy='see servers')
        server.behave = named()
        self.assertEqual(agent.refresh()['outcome'], 'published')
        agent.cli('pin', 'web', '--reason', 'a reason', check=0)
        agent.cli('override', 'web', 'a=2', '--for', '1h', check=0)
        server.behave = status(500)
        agent.refresh()
        findings = self.doctor(code=1)
        self.one(findings, 'note', 'pinned by .*reason', 'agent')
        self.one(findings, 'note', 'overridden on this host', 'agent')
        self.one(findings, 'warning', '^failing$', 'agent', remedy='see servers')
        self.assertNotIn('\x1b', self.run_doctor().stdout)

    def test_a_cause_is_said_once(self):
        """Of a server that is down, and of a program that is not there: where it was found, not with each config and document."""
        with socket.create_server(('127.0.0.1', 0)) as s:
            down = f'http://127.0.0.1:{s.getsockname()[1]}'
        up = self.server()
        agent = Agent(self, self.config(f'{down}/a.yaml') + f"""  db: {{url: "{down}/b.yaml", file: {self.path("out/db")}}}
  other: {{url: "{up.url}/c.yaml", file: {self.path("out/other")}, reload: {{run: [{self.path("none")}]}}}}
""")
        for name in 'web', 'db':
            agent.log.wait(f'config={name} .*connection refused|failing_configs=2')
        agent.log.wait('reload failed')
        findings = self.doctor(code=1)
        self.one(findings, 'error', 'connection refused', 'servers')
        self.assertEqual({f['subject']: f['severity'] for f in findings if f['finding'] == 'nothing is published yet'}, {'web': 'error', 'db': 'error'})
        self.one(findings, 'warning', '^the reload after the last change failed$', 'agent', remedy='see hooks')
        self.one(findings, 'error', self.path('none'), 'hooks')
        agent.stop()

    def test_a_socket_without_an_agent_and_an_agent_that_hangs(self):
        self.alone(self.config(self.server().url + '/web.yaml'))
        self.one(self.doctor('--socket', '/' + 'x' * 200, code=1), 'error', 'cannot be asked: File name too long', 'agent', remedy='--socket')
        agent = self.start()
        agent.log.wait('published')
        agent.signal(signal.SIGSTOP)
        self.one(json.loads(self.run_doctor('--json', '--timeout', '1s').stdout), 'error', 'does not answer as it should', 'agent')
        agent.close()
        self.one(self.doctor(code=0), 'warning', 'no agent runs here: the socket is left from one that died', 'agent')


class Hooks(Case):
    def start(self, more, prefix=NOBODY_S_AGENT):
        for name in ('state', 'run'):  # an agent with root's rights uses nobody else's
            shutil.rmtree(self.path(name), ignore_errors=True)
        self.give('state', 'run', 'out', **({} if prefix else {'uid': 0}))
        agent = Agent(self, self.config(self.server().url + '/web.yaml', more), valgrind=prefix)
        agent.ready()
        return agent

    def look(self, more, **kw):
        agent = self.start(more, **kw)
        findings = [f for f in self.doctor() if f['check'] == 'hooks']
        agent.stop()
        return findings

    def test_programs(self):
        self.write('plain', 'x')
        os.chmod(self.path('plain'), 0o644)
        self.write('closed', '#!/bin/sh\n')
        os.chmod(self.path('closed'), 0o700)
        self.write('open', '#!/bin/sh\n')
        os.chmod(self.path('open'), 0o777)
        findings = self.look(f'    check: [{self.path("none")}, "{{path}}"]\n    reload: {{run: [{self.path("plain")}]}}\n    probe: {{run: [{self.path("closed")}]}}\n'
                             f'    format: {{run: [{self.path("open")}]}}\n')
        self.one(findings, 'error', 'check: there is no program')
        self.one(findings, 'error', 'reload: .*plain is not a program')
        self.one(findings, 'error', 'probe: nobody may not run .*closed: Permission denied')
        self.one(findings, 'error', 'format: everybody can change')

    @needs('set-user-ID programs')
    def test_what_needs_more_rights_than_the_agent_has(self):
        shutil.copy('/bin/true', self.path('systemctl'))
        self.one(self.look(f'    reload: {{run: [{self.path("systemctl")}, reload, nginx]}}\n'), 'warning', 'will refuse nobody, who is not root')
        shutil.copy('/bin/true', self.path('sudo'))
        os.chmod(self.path('sudo'), 0o4755)
        more = f'    reload: {{run: [{self.path("sudo")}]}}\n'
        self.one(self.look(more, prefix=(*NOBODY_S_AGENT, '--no-new-privs')), 'error', 'set-user-ID, which the service forbids')
        self.one(self.look(more), 'ok', 'programs and processes are there')

    def test_signals(self):
        pidfile = self.path('app.pid')
        more = f'    reload: {{signal: CONT, pidfile: {pidfile}}}\n'
        self.one(self.look(more), 'warning', 'changes are not notified')
        app = self.application()
        self.one(self.look(more), 'error', rf'nobody may not signal process {app.pid}, which belongs to another user \(uid 0\)')
        self.one(self.look(more, prefix=()), 'ok', 'programs and processes')
        for capability, severity, pattern in (('kill', 'ok', 'programs and processes'), ('chown', 'error', 'may not signal')):
            prefix = (*AS_NOBODY, f'--inh-caps=-all,+{capability}', f'--ambient-caps=-all,+{capability}')
            self.one(self.look(more, prefix=prefix), severity, pattern)
        os.chmod(pidfile, 0o666)
        self.one(self.look(more, prefix=()), 'error', r'cannot read the pidfile .*group or others can write it \(mode 0666\)')
        os.chmod(pidfile, 0o644)
        os.chown(pidfile, 64104, 64104)
        self.one(self.look(more, prefix=()), 'warning', f'in the hands of uid 64104, and process {app.pid} belongs to uid 0')
        os.chown(pidfile, 0, 0)
        self.write('app.pid', '4194304\n')
        self.one(self.look(more), 'warning', 'names process 4194304, which is not there')
        self.write('app.pid', 'x\n')
        self.one(self.look(more), 'error', 'does not hold the number')
        os.chmod(pidfile, 0o600)
        self.one(self.look(more), 'error', 'nobody may not read .*app.pid')


class Service(Case):
    """What systemd says, said here by a program in its place; and the view of an agent that runs in a mount namespace of its own."""

    def look(self, unit, more='', code=None, file=None, after=''):
        text = '\n'.join(f'{k}={v}' for k, v in {'LoadState': 'loaded', 'ActiveState': 'inactive', 'MainPID': 0, 'NRestarts': 0, 'User': 'nobody',
                                                  'WatchdogUSec': '1min', 'MemoryMax': 'infinity', 'MemoryCurrent': '[not set]', **unit}.items())
        config = self.config(self.server().url + '/web.yaml', more).replace(self.path('out/web.yaml'), file or self.path('out/web.yaml'))
        self.write('etc/pullet.yaml', config)
        os.makedirs(self.path('over'), exist_ok=True)
        above = os.path.dirname(os.path.dirname(self.default()))
        self.write('bin/systemctl', f'#!/bin/sh\ncat <<E\n{text}\nE\n')
        os.chmod(self.path('bin/systemctl'), 0o755)
        self.give('state', 'run', 'out')
        script = f'''
            mkdir -p {self.path("booted/systemd/system")}
            mount --bind {self.path("booted")} /run
            mount -t overlay -o lowerdir={self.path("bin")}:/usr/bin none /usr/bin
            mount -t tmpfs none {self.path("over")}
            mkdir {self.path("over/upper")} {self.path("over/work")}
            mount -t overlay -o lowerdir={above},upperdir={self.path("over/upper")},workdir={self.path("over/work")} none {above}
            mkdir -p {os.path.dirname(self.default())}
            cp {self.path("etc/pullet.yaml")} {self.default()}
            {after}'''
        return self.doctor(prefix=self.in_namespace(script), code=code, path=self.default())

    def test_the_configuration_is_not_for_the_service_s_user(self):
        door = os.path.dirname(self.default())
        for after, part in ((f'chmod 640 {self.default()}', self.default()), (f'chmod 750 {door}', door)):
            found = self.one(self.look({}, code=1, after=after), 'error', 'may not read the configuration', 'files', subject=self.default())
            self.assertRegex(found['finding'], rf'^nobody may not read the configuration: {part} is of root \(uid 0\) and the group root \(gid 0\), mode 0[67][45]0$')
        self.none(self.look({}, after=f'chmod 755 {door}'), 'may not read the configuration')

    def default(self):
        """Where the programs were built to look."""
        text = subprocess.run([PULLET, 'doctor', '--help'], capture_output=True, text=True, check=True).stdout
        return re.search(r'\n +(/\S+/pullet.yaml)', text)[1]

    def test_a_service_that_does_not_run_yet(self):
        strict = {'ProtectSystem': 'strict', 'ProtectHome': 'yes', 'PrivateTmp': 'yes', 'RuntimeDirectory': 'pullet', 'StateDirectory': 'pullet'}
        findings = self.look({**strict, 'ReadWritePaths': f'-{self.path("out")}'}, file='/srv/app/web.yaml', code=1)
        self.one(findings, 'error', r'may not write at /srv/app/web.yaml \(ProtectSystem=strict')
        self.one(findings, 'ok', 'whom User= of pullet.service names', 'files')
        self.assertEqual(self.one(findings, 'warning', 'no agent runs here')['remedy'], 'systemctl start pullet')
        findings = self.look(strict, file='/root/web.yaml', code=1)
        self.one(findings, 'error', 'may not write at /root/web.yaml')

    def test_what_a_unit_lacks(self):
        findings = self.look({'User': 'no-such-user', 'NeedDaemonReload': 'yes', 'ActiveState': 'failed', 'NRestarts': 7, 'WatchdogUSec': 0, 'MemoryMax': 1 << 26, 'MemoryCurrent': 63 << 20})
        self.one(findings, 'error', 'there is no user no-such-user')
        self.one(findings, 'error', 'the service has failed')
        self.one(findings, 'warning', 'changed after systemd had read it')
        self.one(findings, 'warning', 'start it again 7 times')
        self.one(findings, 'note', 'no watchdog')
        self.one(findings, 'warning', 'uses 63 MiB of the 64')

    def test_a_socket_that_another_user_left(self):
        os.makedirs(self.path('run'), exist_ok=True)
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.path('run/control.sock'))
        self.one(self.look({}, code=1), 'error', r'left by another user \(uid 0\): nobody cannot listen there', 'files')

    @needs('to mount')  # and to become another user behind that
    def test_an_agent_that_sees_another_file_system(self):
        self.give('state', 'run', 'out', 'ro')
        os.chmod(self.dir, 0o755)
        config = self.config(self.server().url + '/web.yaml')
        script = f'mount -t tmpfs -o mode=755,uid={NOBODY} none {self.path("out")}'
        agent = Agent(self, config, valgrind=[*self.in_namespace(script), *NOBODY_S_AGENT])
        agent.log.wait('published')
        self.one(self.doctor(code=0), 'warning', "another directory for the agent's service than for everybody else", 'files')
        agent.stop()
        agent = Agent(self, config, valgrind=[*self.in_namespace(f'mount --bind {self.path("out")} {self.path("out")}; mount -o remount,ro,bind {self.path("out")}'),
                                              *NOBODY_S_AGENT])
        agent.ready()
        self.one(self.doctor(code=1), 'error', 'read-only', 'files')


if __name__ == '__main__':
    harness.main()
