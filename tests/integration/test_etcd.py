"""A real etcd behind the agent: keys and prefixes, users, certificates, several members, and what each failure is called. Faults in between
are in test_etcd_faults.py.
"""
import json
import os
import re
import subprocess
import sys
import time

import etcd
import harness
from harness import Agent

KEY = '/app/web.yaml'


READER = '''
import json, os, sys, threading
ending = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ending.set()), daemon=True).start()
last, reads, torn, back = 0, 0, [], []
print("reading", flush=True)
while True:
    ends = ending.is_set() and reads > 0  # then one more: this process may have been asleep for long
    with open(sys.argv[1]) as f:
        document = json.load(f)
    seen = {int(v) for part in document.values() for v in (part.values() if isinstance(part, dict) else [part])}
    if len(seen) != 1:
        torn.append(document)
    if max(seen) < last:
        back.append((last, max(seen)))
    last, reads = max(seen), reads + 1
    if ends:
        break
print(json.dumps({"reads": reads, "last": last, "torn": torn[:3], "back": back[:3]}))
'''


class Reader:
    """A process that reads a JSON file again and again, as fast as it can. All values in it are one number, else it is torn, and that never goes back.
    """

    def __init__(self, test, path):
        self.test = test
        self.process = subprocess.Popen([sys.executable, '-c', READER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.process.kill)
        test.addCleanup(self.process.stdout.close)
        test.assertEqual(self.process.stdout.readline(), 'reading\n')

    def end(self, last):
        """Nothing it saw was torn or went back, and the last is `last`."""
        self.process.stdin.close()
        seen = json.loads(self.process.stdout.readline())
        self.process.wait(harness.DEADLINE)
        self.test.assertEqual((seen['torn'], seen['back'], seen['last']), ([], [], last))
        self.test.assertGreater(seen['reads'], 100)


class Case(harness.Case):
    """One config, web, that nothing pulls but its watch: the interval is an hour."""

    def begin(self, server, more='', path=KEY, wait='published config=web generation=1', configs='', **kw):
        """`server`: what stands between the braces of the server's settings. `path`: None if `more` has `from`."""
        os.makedirs(self.path('out'), exist_ok=True)
        self.agent = Agent(self, self.settings(server, more, path, configs), **kw)
        if wait:
            self.agent.log.wait(wait)
        return self.agent

    def settings(self, server, more='', path=KEY, configs=''):
        origin = f'    from: [{{server: main, path: "{path}"}}]\n' if path else ''
        return f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
servers:
  main: {{{server}}}
configs:
  web:
{origin}    file: {self.path("out/web.yaml")}
    interval: 1h
    timeout: 5s
{more}
{configs}'''

    def standing(self):
        return self.read('out/web.yaml').decode()

    def watching(self, name='web', changes=0):
        """Until the config's watch stands and has told of that many changes; its part of the status."""
        end = time.monotonic() + harness.DEADLINE
        while True:
            watch = self.agent.status(name)['watch']
            if watch['state'] == 'watching' and watch['changes'] >= changes:
                return watch
            self.assertLess(time.monotonic(), end, watch)

    def settled(self):
        """The watch stands, and the pull that it caused at first is over. The number of pulls so far."""
        self.watching(changes=1)
        self.assertIn(self.agent.refresh()['outcome'], ('unchanged', 'published'))
        return self.pulls()

    def pulls(self):
        runs = self.agent.status()['runs']
        self.assertEqual((runs['failed'], runs['timeouts'], runs['not_started']), (0, 0, 0), runs)
        return runs['success']

    def stands(self, version, name='web'):
        """Until this version stands; nobody asks for it."""
        self.agent.stands(str(version), name)

    def fails(self, cause):
        """A pull fails for that cause, and what stood still stands."""
        before = self.standing(), self.agent.status()['generation']
        outcome = self.agent.refresh()
        status = self.agent.status()
        self.assertEqual((outcome['outcome'], status['cause'], status['state']), ('failed', cause, 'failing'), status)
        self.assertEqual((self.standing(), status['generation']), before)
        self.assertIn(cause, self.agent.cli('status')[1])
        return status['last_error']


class Etcd(Case):
    def begin_etcd(self, more='', keys='', watch=True, urls=None, **kw):
        urls = ', '.join(f'"{u}"' for u in urls or self.etcd.urls)
        return self.begin(f'kind: etcd, urls: [{urls}]{", watch: true" if watch else ""}{keys}', more, **kw)


class Keys(Etcd):
    def setUp(self):
        super().setUp()
        self.etcd = etcd.Etcd(self)

    def test_a_version_is_the_revision_of_the_keys_last_change(self):
        self.etcd.put('/app/other', 'x')
        revision = self.etcd.put(KEY, 'n: 1\n')
        self.etcd.put('/app/other', 'y')
        self.begin_etcd(watch=False)
        self.assertEqual((self.standing(), self.agent.status()['version']), ('n: 1\n', str(revision)))
        self.assertEqual(self.agent.cli('wait', 'web', '--version', str(revision))[:2], (0, 'web: generation 1 is current\n'))
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        revision = self.etcd.put(KEY, 'n: 1\n')  # the same value under a new revision: nothing to publish
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.stands(revision)
        self.assertEqual(self.agent.status()['generation'], 1)

    def test_a_change_is_published_without_an_interval(self):
        self.etcd.put(KEY, 'n: 1\n')
        self.begin_etcd()
        before = self.settled()
        for n in range(2, 22):
            self.stands(self.etcd.put(KEY, f'n: {n}\n'))
            self.assertEqual(self.standing(), f'n: {n}\n')
        self.assertLessEqual(self.pulls() - before, 20)
        self.agent.stop()

    def test_a_thousand_writes_of_others_pull_nothing(self):
        self.etcd.put(KEY, 'n: 1\n')
        self.begin_etcd()
        before = self.settled()
        for i in range(10):
            self.etcd.put_all({f'/app/web.yaml{i}{k}': 'x' for k in range(100)})
        self.stands(self.etcd.put(KEY, 'n: 2\n'))
        self.assertEqual(self.pulls() - before, 1)

    def test_a_key_that_is_made_later_is_published_then(self):
        self.begin_etcd(wait='pull failed')
        self.watching(changes=1)
        self.assertEqual((self.agent.status()['state'], self.agent.status()['cause']), ('waiting', 'not found'))
        self.stands(self.etcd.put(KEY, 'n: 1\n'))
        self.assertEqual((self.standing(), self.agent.status()['cause']), ('n: 1\n', None))

    def test_a_prefix_is_published_at_one_revision_and_never_half(self):
        names = [f'/app/web/{part}/{name}' for part in ('db', 'cache') for name in ('host', 'port', 'note')]
        self.etcd.put_all({name: '0' for name in names})
        self.begin_etcd(path='/app/web/')
        self.settled()

        reader = Reader(self, self.path('out/web.yaml'))
        for n in range(1, 201):
            revision = self.etcd.put_all({name: str(n) for name in names})
        self.stands(revision)
        reader.end(200)
        self.assertGreater(self.agent.status()['generation'], 2)

    def test_keys_that_come_and_go_below_a_prefix_are_changes(self):
        self.etcd.put_all({'/app/web/a': '1', '/app/web/b/c': '2'})
        self.etcd.put('/app/webx', 'not of it')
        self.begin_etcd(path='/app/web/')
        self.settled()
        self.assertEqual(json.loads(self.standing()), {'a': '1', 'b': {'c': '2'}})
        self.etcd.delete('/app/web/b/c')
        self.agent.log.wait('generation=2')
        self.assertEqual(json.loads(self.standing()), {'a': '1'})
        self.stands(self.etcd.put('/app/web/b/d', '3'))
        self.assertEqual(json.loads(self.standing()), {'a': '1', 'b': {'d': '3'}})

    def test_names_that_need_quotes_everywhere(self):
        key = '/app/w%2Féb"x"\\ünd~?&+=.yaml'
        self.etcd.put(key, 'n: 1\n')
        self.begin_etcd(path=key.replace('\\', '\\\\').replace('"', '\\"'))
        self.settled()
        self.stands(self.etcd.put(key, 'n: 2\n'))
        self.assertEqual(self.standing(), 'n: 2\n')

    def test_bytes_of_any_kind(self):
        blob = bytes(range(256)) * 5
        self.etcd.put('/blob', blob)
        self.begin_etcd('    type: bytes\n', path='/blob')
        self.settled()
        self.assertEqual(self.read('out/web.yaml'), blob)
        self.stands(self.etcd.put('/blob', blob[::-1]))
        self.assertEqual(self.read('out/web.yaml'), blob[::-1])

    def test_documents_up_to_the_limit_are_taken_and_watched(self):
        """What etcd wraps them in does not count."""
        def text(n):
            return f'n: {n}\nblob: '.ljust(100 * 1024 - 1, 'x') + '\n'
        self.etcd.put(KEY, text(1))
        self.begin_etcd(keys=', max_size: 100KiB')
        self.settled()
        self.stands(self.etcd.put(KEY, text(2)))
        self.etcd.put(KEY, text(3) + '#')
        self.agent.log.wait('pull failed')
        self.assertEqual((self.standing(), self.agent.status()['cause']), (text(2), 'bad answer'))
        self.stands(self.etcd.put(KEY, text(4)))

    def test_each_of_many_documents_is_watched(self):
        names = [f'c{i}' for i in range(70)]
        self.etcd.put_all({f'/app/{n}': 'n: 1\n' for n in names})
        self.etcd.put(KEY, 'n: 1\n')
        self.begin_etcd(configs=''.join(f'  {n}: {{from: [{{server: main, path: /app/{n}}}], interval: 1h}}\n' for n in names))
        for n in names:
            self.watching(n, changes=1)
        revision = self.etcd.put_all({f'/app/{n}': 'n: 2\n' for n in names})
        for n in names:
            self.stands(revision, n)
        self.agent.stop()

    def test_each_layer_is_watched(self):
        self.etcd.put('/base', 'a: 1\nb: 1\n')
        self.begin_etcd('    from: [{server: main, path: /base}, {server: main, path: /more/, optional: true}]\n', path=None)
        self.settled()
        self.assertEqual(self.agent.status()['watch']['documents'], 2)
        self.stands(self.etcd.put('/more/b', '2'))
        self.assertEqual(self.standing(), "a: 1\nb: '2'\n")
        self.stands(self.etcd.put('/base', 'a: 3\nb: 1\n'))
        self.assertEqual(self.standing(), "a: 3\nb: '2'\n")
        self.etcd.delete('/more/', prefix=True)
        self.agent.log.wait('generation=4')
        self.assertEqual(self.standing(), "a: 3\nb: 1\n")

    def test_an_agent_that_starts_again_goes_on(self):
        self.etcd.put(KEY, 'n: 1\n')
        self.begin_etcd()
        self.settled()
        self.agent.stop()
        revision = self.etcd.put(KEY, 'n: 2\n')
        self.begin_etcd(wait='last known good')
        self.stands(revision)
        self.assertEqual(self.standing(), 'n: 2\n')


class Causes(Etcd):
    def test_each_has_a_name_of_its_own_and_the_version_stays(self):
        self.etcd = etcd.Etcd(self)
        self.etcd.put(KEY, 'n: 1\n')
        self.etcd.enable_auth(users={'web': ('secret', ['/app/'])})
        self.write('password', 'secret\n')
        self.begin_etcd(keys=f', auth: {{basic: {{user: web, password_file: {self.path("password")}}}}}')
        self.settled()

        self.etcd.delete(KEY)
        self.agent.log.wait('pull failed')
        self.assertEqual((self.agent.status()['cause'], self.standing()), ('not found', 'n: 1\n'))
        self.fails('not found')

        self.etcd.put(KEY, '')
        self.agent.log.wait('pull failed.*empty')
        self.fails('empty')

        self.stands(self.etcd.put(KEY, 'n: 2\n'))
        self.assertIsNone(self.agent.status()['cause'])
        # the right to read it goes, and comes back
        rights = {'role': 'read-web', 'key': etcd.b64('/app/'), 'range_end': etcd.b64('/app0')}
        self.etcd.call('auth/role/revoke', rights)
        self.assertIn('permission denied', self.fails('forbidden'))
        self.etcd.call('auth/role/grant', {'name': 'read-web', 'perm': {'permType': 'READ', 'key': rights['key'], 'range_end': rights['range_end']}})
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')

        self.etcd.kill(0)
        self.assertIn('refused', self.fails('unreachable'))
        self.etcd.restart(0)
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertEqual(self.agent.status()['state'], 'ok')
        self.stands(self.etcd.put(KEY, 'n: 3\n'))

    def test_a_server_that_hangs_is_a_timeout(self):
        self.etcd = etcd.Etcd(self)
        self.etcd.put(KEY, 'n: 1\n')
        self.begin_etcd()
        self.settled()
        self.etcd.pause(0)
        self.addCleanup(self.etcd.resume, 0)
        self.fails('timeout')
        self.etcd.resume(0)
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')

    def test_what_is_no_etcd_is_a_bad_answer(self):
        server = harness.FaultServer(self)
        server.behave = harness.good(b'404 page not found\n', status='404 Not Found')
        self.etcd = etcd.Etcd(self)
        self.etcd.put(KEY, 'n: 1\n')
        layers = '    from: [{server: main, path: /none, optional: true}, {server: main, path: /app/web.yaml, optional: true}]\n'
        self.begin_etcd(layers, path=None, watch=False)
        self.agent.stop()
        # never taken for a key that is not there, not even where that is no error
        self.begin_etcd(layers, path=None, watch=False, urls=[server.url], wait='pull failed')
        self.assertIn('no v3 JSON gateway', self.fails('bad answer'))


class Users(Etcd):
    def setUp(self):
        super().setUp()
        self.etcd = etcd.Etcd(self)
        self.etcd.put(KEY, 'n: 1\n')
        self.write('password', 'planted\n')

    def begin_as(self, user='web', **kw):
        return self.begin_etcd(keys=f', auth: {{basic: {{user: {user}, password_file: {self.path("password")}}}}}', **kw)

    def enable(self):
        self.etcd.enable_auth(users={'web': ('planted', ['/app/'])})

    def test_a_user_reads_and_watches(self):
        self.enable()
        self.begin_as()
        self.settled()
        for n in range(2, 7):
            self.stands(self.etcd.put(KEY, f'n: {n}\n'))
        self.pulls()
        self.assertNotIn('planted', ' '.join(self.agent.log.seen))

    def test_tokens_that_are_known_no_more_are_renewed_and_no_run_fails(self):
        self.enable()
        self.begin_as(watch=False)
        for end in (lambda: self.etcd.set_password('web', 'planted'), lambda: self.etcd.restart(0)):
            end()
            self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
            self.pulls()

    def test_a_watch_whose_token_nobody_knows_any_more_goes_on(self):
        self.enable()
        self.begin_as()
        self.settled()
        for n, end in enumerate((lambda: self.etcd.set_password('web', 'planted'), lambda: self.etcd.restart(0))):
            end()
            self.stands(self.etcd.put(KEY, f'n: {n + 2}\n'))
            self.pulls()

    def test_long_tokens_that_end_by_themselves(self):
        """JSON web tokens, which no use renews; the watch is older than each."""
        etcd.openssl(self, 'genrsa', '-out', 'jwt.key', '2048')
        etcd.openssl(self, 'rsa', '-in', 'jwt.key', '-pubout', '-out', 'jwt.pem')
        keys = f'pub-key={self.path("jwt.pem")},priv-key={self.path("jwt.key")}'
        self.etcd = etcd.Etcd(self, args=['--auth-token', f'jwt,{keys},sign-method=RS256,ttl=1s'])
        self.etcd.put(KEY, 'n: 1\n')
        self.enable()
        self.begin_as()
        self.settled()
        token, end = self.etcd.authenticate('web'), time.monotonic() + harness.DEADLINE
        while self.etcd.request('POST', '/v3/kv/range', {'key': etcd.b64(KEY)}, token=token)[0] == 200:
            self.assertLess(time.monotonic(), end)
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        for n in range(2, 4):
            self.stands(self.etcd.put(KEY, f'n: {n}\n'))
        self.pulls()

    def test_a_token_that_expired_is_renewed_and_no_run_fails(self):
        self.etcd = etcd.Etcd(self, args=['--auth-token-ttl', '1'])
        self.etcd.put(KEY, 'n: 1\n')
        self.enable()
        self.begin_as(watch=False)
        end = time.monotonic() + harness.DEADLINE
        while not re.search('deleted a simple token.*"web"', self.etcd.members[0].tail()):  # its use would renew it
            self.assertLess(time.monotonic(), end)
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.pulls()

    def test_a_wrong_password_is_forbidden_until_it_is_put_right(self):
        self.enable()
        self.begin_as()
        self.settled()
        self.etcd.set_password('web', 'other')
        self.assertIn('authentication failed', self.fails('forbidden'))
        self.write('password', 'other\n')  # no restart, no signal
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.stands(self.etcd.put(KEY, 'n: 2\n'))

    def test_what_may_not_be_read_keeps_nobody_else_from_being_watched(self):
        """They share a session."""
        self.enable()
        names = [f'c{i}' for i in range(6)]
        self.etcd.put_all({f'/app/{n}': 'n: 1\n' for n in names})
        paths = {n: f'/app/{n}' for n in names} | {'forbidden': '/other'}
        self.begin_as(configs=''.join(f'  {n}: {{from: [{{server: main, path: {p}}}], interval: 1h}}\n' for n, p in paths.items()))
        for n in names:
            self.watching(n, changes=1)
        revision = self.etcd.put_all({f'/app/{n}': 'n: 2\n' for n in names})
        for n in names:
            self.stands(revision, n)
        self.assertIn('permission denied', self.agent.status('forbidden')['watch']['error'])

    def test_a_wrong_password_from_the_start(self):
        self.enable()
        self.write('password', 'wrong\n')
        self.begin_as(wait='pull failed')
        self.assertEqual(self.agent.status()['cause'], 'forbidden')
        self.write('password', 'planted\n')
        # the watch may be at it with the old one: who needs a token then shares what comes of that
        end = time.monotonic() + harness.DEADLINE
        while self.agent.refresh()['outcome'] != 'published':
            self.assertLess(time.monotonic(), end)

    def test_users_that_are_switched_on_later(self):
        self.begin_as()
        self.settled()
        self.enable()
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.stands(self.etcd.put(KEY, 'n: 2\n'))
        self.pulls()

    def test_nobody_is_forbidden(self):
        self.enable()
        self.begin_etcd(wait='pull failed')
        self.assertEqual(self.agent.status()['cause'], 'forbidden')


class Certificates(Etcd):
    def test_a_client_certificate(self):
        self.etcd = etcd.Etcd(self, tls='mutual')
        self.etcd.put(KEY, 'n: 1\n')
        tls = f'ca: {self.path("ca.pem")}, cert: {self.path("client.pem")}, key: {self.path("client.key")}'
        self.begin_etcd(keys=f', tls: {{{tls}}}')
        self.settled()
        self.stands(self.etcd.put(KEY, 'n: 2\n'))
        self.agent.stop()
        for wrong in (f'ca: {self.path("ca.pem")}', f'ca: {self.path("other.pem")}, cert: {self.path("client.pem")}, key: {self.path("client.key")}'):
            if not os.path.exists(self.path('other.pem')):
                etcd.openssl(self, 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'other.key',
                             '-out', 'other.pem', '-subj', '/CN=another authority')
            self.begin_etcd(keys=f', tls: {{{wrong}}}', wait='last known good')
            self.fails('unreachable')
            self.assertEqual(self.agent.status()['watch']['state'] == 'watching', False)
            self.agent.stop()


class Members(Etcd):
    def setUp(self):
        super().setUp()
        self.etcd = etcd.Etcd(self, members=3)
        self.etcd.put(KEY, 'n: 1\n')

    def in_use(self):
        """The number of the member that the last pull went to."""
        return next(i for i, url in enumerate(self.etcd.urls) if self.agent.status()['url'].startswith(url))

    def test_the_member_in_use_dies_and_no_run_fails(self):
        """But one, while the others elect a leader."""
        self.begin_etcd()
        self.settled()
        number = self.in_use()
        leads = self.etcd.leader() == number
        self.etcd.kill(number)
        outcome = self.agent.refresh()
        if not leads:
            self.assertEqual(outcome['outcome'], 'unchanged', outcome)
        self.etcd.leader()
        self.stands(self.etcd.put(KEY, 'n: 2\n'))
        runs = self.agent.status()['runs']
        self.assertEqual((runs['timeouts'], runs['not_started']), (0, 0), runs)
        self.assertLessEqual(runs['failed'], 1 if leads else 0)

    def test_any_order_of_deaths(self):
        """One after the other is killed and comes back: each change is seen by the watch."""
        self.begin_etcd()
        self.settled()
        for n in range(3):
            self.etcd.kill(n)
            self.etcd.leader()
            self.stands(self.etcd.put(KEY, f'n: {n + 2}\n'))
            self.etcd.restart(n)
        self.assertEqual(self.standing(), 'n: 4\n')

    def test_without_a_quorum_the_version_stays_and_it_is_said(self):
        """Also by the watch, whose connection stands, and by which nothing would come any more."""
        self.begin_etcd(urls=self.etcd.urls[:1])
        self.settled()
        for n in (1, 2):
            self.etcd.kill(n)
        self.agent.log.wait('watch failed.*no leader')
        self.assertIn('no leader', self.fails('unreachable'))
        for n in (1, 2):
            self.etcd.restart(n, wait=False)
        self.etcd.wait_healthy()
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.stands(self.etcd.put(KEY, 'n: 2\n'))


if __name__ == '__main__':
    harness.main()
