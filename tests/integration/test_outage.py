"""An hour of outage at an interval of a second, and what the log says meanwhile: a line for each change of state, and two a minute for each cause.

The real agent, with real connections; hour.c lets its clocks jump whenever it has nothing to do, so that the hour takes seconds.
"""
import datetime
import itertools
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

import harness
from harness import Agent, FaultServer, good, reset

HOUR = 3600
AGAIN = 'recovered'


def at(line):
    return datetime.datetime.fromisoformat(json.loads(line)['time'].replace('Z', '+00:00')).timestamp()


def busy(connection, head, stopping):
    return good(b'later\n', status='503 Service Unavailable')(connection, head, stopping)


def broken(connection, head, stopping):
    return good(b'oops\n', status='500 Internal Server Error')(connection, head, stopping)


def missing(connection, head, stopping):
    return good(b'no\n', status='404 Not Found')(connection, head, stopping)


def silent(_connection, _head, stopping):
    stopping.wait(harness.DEADLINE * 10)
    return 'close'


class Outage(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.library = os.path.join(harness.BUILD, 'hour.so')
        subprocess.run(['cc', '-shared', '-fPIC', '-O2', '-D_GNU_SOURCE', '-o', cls.library, os.path.join(os.path.dirname(__file__), 'hour.c')], check=True)

    def setUp(self):
        super().setUp()
        self.server, self.number = FaultServer(self), itertools.count(2)

    def start(self, names=('web',), url=None, more='', servers='', patience=1000, published=True, env=None, interval='1s', of=None):
        """An agent that has published each config, and whose clocks jump."""
        os.makedirs(self.path('out'), exist_ok=True)
        configs = ''.join(f'''
  {name}:
    {f'from: [{{server: {of}, path: /{name}.yaml}}]' if of else f'url: {url or self.server.url}/{name}.yaml'}
    file: {self.path("out/" + name)}
    interval: {interval}
    timeout: 900ms
{more}''' for name in names)
        self.agent = Agent(self, f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
  log: {{level: info, format: json}}
{servers}
configs:{configs}''', env={'LD_PRELOAD': self.library, 'HOUR_PATIENCE_MS': str(patience), **(env or {})})
        for name in names if published else ():
            self.agent.log.wait(f'"published","config":"{name}"')
        self.agent.ready()

    def ask(self, path):
        """What the agent answers; when its clock jumps over all its patience with a client, it is asked again."""
        for _ in range(50):
            try:
                return json.loads(self.agent.get(path)[1])
            except ConnectionError:  # of which http.client's RemoteDisconnected is one
                continue
        raise AssertionError('it never answers')

    def pass_time(self, seconds):
        """Lets so much time pass, on the agent's clock; the lines of its log meanwhile, as (moment, line)."""
        first, begin, deadline = self.agent.log.count, None, time.monotonic() + 15 * harness.DEADLINE
        while begin is None or now < begin + seconds * 1000:
            now = self.ask('/v1/status')['uptime_ms']
            begin = now if begin is None else begin
            self.agent.log._more(time.monotonic() + 0.02)
            self.assertLess(time.monotonic(), deadline, 'the clock does not jump')
        return [(at(line), line) for line in self.agent.log.seen[first:]]

    def lines_of(self, lines, message):
        return [(moment, line) for moment, line in lines if json.loads(line)['message'].startswith(message)]

    def quiet(self, lines, causes=1, changes=0):
        """At most two lines a minute of each message, for each of so many causes, beside so many changes of state; of all messages of a failure at
        most two for each cause, as well."""
        for message in {json.loads(line)['message'] for _, line in lines}:
            moments = [moment for moment, _ in self.lines_of(lines, message)][changes:]
            for i, moment in enumerate(moments):
                within = [other for other in moments[i:] if other < moment + 59.9]
                self.assertLessEqual(len(within), 2 * causes, f'{len(within)} lines within a minute: {message}')
        self.assertLessEqual(len(lines), changes + 2 * causes * (lines[-1][0] - lines[0][0]) / 60 + 4, '\n'.join(line for _, line in lines[:20]))

    def outage(self, message, runs=50, causes=1, seconds=HOUR, **labels):
        """Of an hour that has begun: told at once, and quietly; so many runs failed, at least."""
        before = self.failures()
        lines = self.pass_time(seconds)
        found = self.lines_of(lines, message)
        self.assertTrue(found, lines[:10])
        self.quiet(lines, causes, **labels)
        self.assertGreater(self.failures() - before, runs, 'this outage was none')
        return lines

    def failures(self, name='web'):
        runs = self.ask(f'/v1/configs/{name}')['runs']
        return runs['failed'] + runs['timeouts'] + runs['not_started']

    def recover(self, behave=good(b'n: 99\n', 'ETag: "v99"\r\n')):
        """The server is well again: that is said once, and then nothing more."""
        self.server.behave = behave
        first = self.agent.log.count
        self.pass_time(900)  # the longest hold, several times
        lines = [json.loads(line)['message'] for line in self.agent.log.seen[first:]]
        self.assertEqual(len([m for m in lines if m == AGAIN]), 1, lines)
        self.assertFalse(self.pass_time(600), 'all is well, and there is nothing to say')

    def test_the_server_turns_pulls_away(self):
        self.start()
        self.server.behave = busy
        self.outage('pull failed')
        self.recover()

    def test_the_server_fails(self):
        self.start()
        self.server.behave = broken
        self.outage('pull failed')
        self.recover()

    def test_the_connection_is_reset(self):
        self.start()
        self.server.behave = reset
        self.outage('pull failed')
        self.recover()

    def refuse(self, server):
        """Nobody listens there, and nobody else will."""
        server.close()
        taken = socket.socket()
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(('127.0.0.1', server.port))
        self.addCleanup(taken.close)

    def test_the_connection_is_refused(self):
        self.start()
        self.refuse(self.server)
        self.outage('pull failed')

    def test_a_rest_that_nobody_asked_for_costs_at_most_an_interval(self):
        self.start(interval='5s')
        rests = set()
        for _ in range(6):
            self.server.behave = reset
            deadline, begin = time.monotonic() + 15 * harness.DEADLINE, self.ask('/v1/status')['uptime_ms']
            while True:  # the growth would be at 32 s and more
                status = self.ask('/v1/status')
                rests.add(status['servers'][0]['backoff_ms'])
                self.agent.log._more(time.monotonic() + 0.005)  # while it is asked, it does not jump
                if status['uptime_ms'] > begin + 90_000 and status['servers'][0]['addresses'][0]['failures_in_a_row'] > 8:
                    break
                self.assertLess(time.monotonic(), deadline)
            first = self.agent.log.count
            self.server.behave = good(b'n: 1\n')
            again = self.agent.log.wait(AGAIN, first)
            last = self.ask('/v1/configs/web')['last_error_ms'] / 1000
            self.assertLess(at(again) - last, 6, 'from the last pull that failed to the next one')
        self.assertLessEqual(max(rests), 5000)
        self.assertGreater(max(rests), 1000)

    def test_no_rest_that_nobody_asked_for_puts_a_pull_off_beyond_its_bound(self):
        """One slot, so that the server rests twenty times for each round of the line."""
        names = [f'c{i}' for i in range(20)]
        self.start(names, servers=f"""servers:
  main: {{urls: ["{self.server.url}"], max_in_flight: 1}}
""", more='    backoff_bound: 2\n', of='main')
        self.server.behave = reset

        def runs():
            status = self.ask('/v1/status')
            return status['uptime_ms'], {c['name']: c['runs']['failed'] for c in status['configs']}
        begin, before = runs()
        self.pass_time(300)
        end, after = runs()
        for name in names:
            self.assertGreaterEqual(after[name] - before[name], (end - begin) / 2000 * 0.95 - 1, name)

    def test_nothing_is_answered(self):
        self.start(patience=5)
        self.server.behave = silent
        self.outage('the server timed out', runs=300)

    def test_its_name_is_not_found(self):
        self.start(url='http://nowhere.example:80', published=False, env={'HOUR_NO_NAME': 'nowhere.example'})
        self.outage('pull failed')

    def test_each_document_is_bad_in_another_way(self):
        self.start()

        def bad(connection, head, stopping):
            n = next(self.number)
            return good(f'key{n}: 1\nkey{n}: 2\n'.encode())(connection, head, stopping)
        self.server.behave = bad
        lines = self.outage('rejected by the syntax', runs=3000)
        self.assertGreater(len(lines), 60, 'what is refused is named, though not each time')
        self.recover()

    def test_causes_that_take_turns(self):
        self.start()
        turns = itertools.cycle((missing, good(b'a: [\n'), good(b'')))

        def one_after_the_other(connection, head, stopping):
            return next(turns)(connection, head, stopping)
        self.server.behave = one_after_the_other
        lines = self.outage('pull failed', runs=3000, causes=3)
        whys = {json.loads(line).get('why') for _, line in lines}
        self.assertGreaterEqual(len(whys), 3, 'each cause is named')

    def test_a_server_that_flaps_is_told_of_at_each_change_and_not_more_often(self):
        self.start()
        turns = itertools.cycle([missing] * 10 + [good(b'a: 1\n')] * 10)

        def flaps(connection, head, stopping):
            return next(turns)(connection, head, stopping)
        self.server.behave = flaps
        lines = self.pass_time(HOUR)
        failed, well = self.lines_of(lines, 'pull failed'), self.lines_of(lines, AGAIN)
        self.assertLessEqual(abs(len(failed) - len(well)), 1)
        self.assertAlmostEqual(len(failed), HOUR / 20, delta=20)
        self.assertEqual(len(lines), len(failed) + len(well))

    def test_twenty_configs_of_one_server(self):
        names = [f'config-{i}' for i in range(20)]
        self.start(names)
        self.server.behave = missing
        before = self.failures('config-0')
        lines = self.pass_time(HOUR / 6)
        self.assertGreater(self.failures('config-0') - before, 500)
        self.quiet(lines, changes=20)
        self.assertEqual({json.loads(line)['config'] for _, line in self.lines_of(lines, 'pull failed')}, set(names), 'each says that it fails')
        self.assertGreater(len(lines), 20 + 8, 'and one of them that it goes on')

    def test_a_thousand_configs_of_one_server(self):
        """One line at once, one with their number, one a minute, one when it is over; and the status names each."""
        place = tempfile.mkdtemp(prefix='pullet-outage-', dir=harness.memory() or self.dir)  # a thousand fsyncs are not what is looked at
        self.addCleanup(shutil.rmtree, place)
        names = [f'config-{i}' for i in range(1000)]
        agent = Agent(self, f'agent: {{state_dir: {place}/state, runtime_dir: {self.path("run")}, log: {{format: json}}}}\nconfigs:\n' + ''.join(
            f'  {name}: {{url: "{self.server.url}/{name}.yaml", interval: 5s}}\n' for name in names))
        for name in names:
            agent.log.wait(f'"published","config":"{name}"')
        first = agent.log.count
        self.server.behave = reset
        agent.log.wait('"pull failed.*"failing_configs":"(?!1")', first)
        configs = json.loads(agent.get('/v1/status')[1])['configs']
        self.server.behave = good(b'a: 1\n')
        over = json.loads(agent.log.wait('"recovered"', first))
        said = [json.loads(line) for line in agent.log.seen[first:]]
        failed = [line for line in said if line['message'].startswith('pull failed')]
        self.assertEqual([line['server_configs'] for line in failed], ['1000', '1000'], said)
        self.assertEqual(failed[0]['failing_configs'], '1')
        # beside them: the server is in backoff, it answers again (twice where the last resets come behind the first good answer), and all is over
        about_server = [line for line in said if 'config' not in line]
        self.assertEqual(len(said), len(failed) + len(about_server), said)
        self.assertLessEqual(len(about_server), 5, said)
        count = int(failed[1]['failing_configs'])
        self.assertGreater(count, 1)
        self.assertEqual((over['server'], int(over['failing_configs']) >= count), (self.server.url, True), over)
        self.assertGreaterEqual(sum(bool(c['last_error']) for c in configs), count)  # no refusal is hidden
        agent.stop()

    def test_the_disk_is_full(self):
        self.start(env={'HOUR_FULL': self.path('full')})
        self.write('full', '')
        self.server.behave = good(b'n: 2\n')
        lines = self.outage('', runs=300)
        self.assertIn('No space left on device', lines[0][1])
        os.unlink(self.path('full'))
        self.recover(good(b'n: 2\n'))
        self.assertEqual(self.read('out/web'), b'n: 2\n')

    def test_a_check_that_fails_each_time_for_another_reason(self):
        self.write('check', '#!/bin/sh\necho "$(cat "$1")"\nexit 1\n')
        os.chmod(self.path('check'), 0o755)
        os.makedirs(self.path('out'))
        self.write('good', '#!/bin/sh\nexit 0\n')
        self.server.behave = good(b'n: 1\n')
        self.start(more=f'    check: [{self.path("check")}, "{{path}}"]\n', published=False)

        def other(connection, head, stopping):
            return good(f'n: {next(self.number)}\n'.encode())(connection, head, stopping)
        self.server.behave = other
        self.outage('rejected by the check', runs=200, seconds=HOUR / 12)

    def test_a_hook_that_fails_each_time(self):
        self.write('hook', '#!/bin/sh\necho "$PULLET_GENERATION"\nexit 1\n')
        os.chmod(self.path('hook'), 0o755)
        self.start(more=f'    reload: {{run: [{self.path("hook")}], debounce: 0s}}\n')
        lines = self.pass_time(HOUR)
        self.assertTrue(self.lines_of(lines, 'reload failed'))
        self.quiet(lines)
        self.assertGreater(self.ask('/v1/configs/web')['reload']['failed'], 10)

    def test_etcd_is_down_with_a_watch_and_the_receipts(self):
        closed = FaultServer(self)
        self.refuse(closed)
        more = f'servers: {{store: {{kind: etcd, urls: ["{closed.url}"], watch: true}}}}\nreport: {{server: store, host: here}}'
        self.start(servers=more)
        with open(self.agent.config_path, encoding='utf-8') as f:
            text = f.read()
        self.agent.close()
        self.agent = Agent(self, text + f'''
  keys:
    from: [{{server: store, path: /a}}]
    file: {self.path("out/keys")}
    interval: 1s
''', env={'LD_PRELOAD': self.library})
        self.agent.ready()
        lines = self.pass_time(HOUR)
        for message in ('watch failed', 'cannot write the receipt', 'pull failed'):
            self.assertTrue(self.lines_of(lines, message) or message in ''.join(self.agent.log.seen), message)
        self.quiet(lines, causes=2)

    def test_what_the_server_asks_for_is_heard_by_every_request_to_it(self):
        """Pulls, watches, logins and receipts of one address, in three sections: the first that is rejected speaks for all."""
        self.write('password', 'secret\n')
        asked, url = [], self.server.url

        def turn_away(connection, head, stopping):
            asked.append(head.split(' ')[1])
            return good(b'{}', 'Retry-After: 40\r\n', '503 Service Unavailable')(connection, head, stopping)
        self.server.behave = turn_away
        names = [f'c{i}' for i in range(6)]
        self.start(names, of='store', published=False, servers=f"""servers:
  store: {{kind: etcd, urls: ["{url}"], watch: true, auth: {{basic: {{user: root, password_file: {self.path("password")}}}}}}}
  other: {{kind: consul, urls: ["{url.upper().replace("HTTP", "http")}/prefix"], watch: true}}
report: {{server: store, host: here}}""")
        self.agent.close()
        with open(self.agent.config_path, encoding='utf-8') as f:
            text = f.read() + f'  more: {{from: [{{server: other, path: /a}}], file: {self.path("out/more")}, interval: 1s, timeout: 900ms}}\n'
        asked.clear()
        self.agent = Agent(self, text, env={'LD_PRELOAD': self.library, 'HOUR_PATIENCE_MS': '1000'})
        self.agent.ready()
        first, seen, deadline = [], list(asked), time.monotonic() + 15 * harness.DEADLINE
        while (status := self.ask('/v1/status'))['uptime_ms'] < 40_000:
            first, seen = seen, list(asked)  # what was asked before that
            self.assertLess(time.monotonic(), deadline)
        self.assertTrue(first)
        self.assertLessEqual(len(first), 3, f'{first}: those that were under way together')
        self.assertEqual({s['name']: s['addresses'][0]['error'] for s in status['servers']}, {'store': 'it answered 503', 'other': 'it answered 503'})
        while not {'/v3/auth/authenticate', '/prefix/v1/kv/a'} <= {path.split('?')[0] for path in asked[len(first):]}:  # then they come again
            self.ask('/v1/status')
            self.assertLess(time.monotonic(), deadline, asked)


if __name__ == '__main__':
    harness.main()
