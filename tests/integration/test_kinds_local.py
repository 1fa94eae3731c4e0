"""What stands between the server and a publication since there are kinds of servers: rollouts, the bootstrap, local files, `pullet wait`."""
import json
import os
import signal
import subprocess
import threading
import time
import urllib.request

import harness
from harness import PULLET, Agent, FaultServer, good


class Case(harness.Case):
    def begin(self, servers, config, agent='', wait='published config=web generation=1', top=''):
        """An agent with one config, web, in out/web.yaml."""
        os.makedirs(self.path('out'), exist_ok=True)
        self.agent = Agent(self, f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
{agent}
servers:
{servers}
{top}
configs:
  web:
    file: {self.path("out/web.yaml")}
    interval: 1h
{config}
''')
        self.agent.log.wait(wait)
        return self.agent

    def standing(self):
        return self.read('out/web.yaml').decode()


class LocalFiles(Case):
    def source(self, more='', **kw):
        self.write('src/web.yaml', 'n: 1\n')
        return self.begin('  disk: {kind: file, watch: true}', f'    from: [{{server: disk, path: {self.path("src/web.yaml")}}}]\n{more}', **kw)

    def is_watching(self):
        """It may begin to, or begin again, a moment after the publication."""
        deadline, pace = time.monotonic() + harness.DEADLINE, threading.Event()
        while (watch := self.agent.status()['watch'])['state'] != 'watching':
            self.assertLess(time.monotonic(), deadline, watch)
            pace.wait(0.01)

    def test_a_replaced_file_is_published_at_once(self):
        self.source()
        self.is_watching()
        self.write('src/web.yaml', 'n: 2\n')
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.standing(), 'n: 2\n')
        self.is_watching()

    def test_a_volume_as_kubernetes_mounts_it_is_followed(self):
        os.makedirs(self.path('src/..one'))
        self.write('src/..one/web.yaml', 'n: 1\n')
        os.symlink('..one', self.path('src/..data'))
        os.symlink('..data/web.yaml', self.path('src/web.yaml'))
        self.begin('  disk: {kind: file, watch: true}', f'    from: [{{server: disk, path: {self.path("src/web.yaml")}}}]')
        os.makedirs(self.path('src/..two'))
        self.write('src/..two/web.yaml', 'n: 2\n')
        os.symlink('..two', self.path('src/..tmp'))
        os.rename(self.path('src/..tmp'), self.path('src/..data'))
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.standing(), 'n: 2\n')

    def test_each_cause_is_a_state_of_its_own_and_the_version_stays(self):
        self.source()
        path = self.path('src/web.yaml')
        os.unlink(path)
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')
        self.assertEqual(self.agent.status()['cause'], 'not found')
        self.write('src/web.yaml', '')
        self.agent.refresh()
        self.assertEqual(self.agent.status()['cause'], 'empty')
        os.unlink(path)
        os.mkdir(path)
        self.agent.refresh()
        self.assertEqual(self.agent.status()['cause'], 'bad answer')
        self.assertIn('bad answer: the file cannot be read', self.agent.cli('status')[1])
        os.rmdir(path)
        self.assertEqual(self.standing(), 'n: 1\n')
        self.write('src/web.yaml', 'n: 1\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertIsNone(self.agent.status()['cause'])

    def test_since_when_it_fails(self):
        self.source()
        self.assertIsNone(self.agent.status()['failing_since_ms'])
        os.unlink(self.path('src/web.yaml'))
        before = time.time() * 1000
        self.agent.refresh()
        first = self.agent.status()
        self.assertLess(abs(first['failing_since_ms'] - before), 60000)
        self.assertLessEqual(first['failing_since_ms'], first['last_error_ms'])
        self.write('src/web.yaml', '')  # another failure, the same row
        while self.agent.status()['last_error_ms'] == first['last_error_ms']:
            self.agent.refresh()
        second = self.agent.status()
        self.assertEqual((second['cause'], second['failing_since_ms']), ('empty', first['failing_since_ms']))
        self.assertRegex(self.agent.cli('status')[1], r'failing for \d+m?s; generation 1 stays')
        self.write('src/web.yaml', 'n: 1\n')
        self.agent.refresh()
        well = self.agent.status()
        self.assertEqual((well['state'], well['failing_since_ms']), ('ok', None))
        self.assertNotIn('failing', self.agent.cli('status')[1])

    def test_a_fifo_hangs_nobody(self):
        self.source()
        os.unlink(self.path('src/web.yaml'))
        os.mkfifo(self.path('src/web.yaml'))
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')
        self.agent.stop()

    def test_paths_lie_below_the_url(self):
        self.write('src/deep/web.yaml', 'n: 1\n')
        self.begin(f'  disk: {{kind: file, urls: ["file://{self.path("src")}"]}}', '    from: [{server: disk, path: /deep/web.yaml}]')
        self.assertEqual(self.standing(), 'n: 1\n')

    def test_a_version_is_that_of_the_origin(self):
        """The same bytes have the same name, whether they come from a disk or from `pullet serve`."""
        self.source()
        self.write('www/web.yaml', 'n: 1\n')
        _, url, _ = self.serve()
        with urllib.request.urlopen(f'{url}/web.yaml', timeout=harness.DEADLINE) as answer:
            self.assertIn(self.agent.status()['version'].strip('"'), answer.headers['ETag'])


class Wait(Case):
    def begin_waiting(self, *args):
        """`pullet wait` in a thread; the list gets (exit code, stdout, stderr) when it has ended."""
        done = []
        thread = threading.Thread(target=lambda: done.append(self.agent.cli('wait', 'web', *args)))
        thread.start()
        self.addCleanup(thread.join)
        return thread, done

    def setUp(self):
        super().setUp()
        self.write('src/web.yaml', 'n: 1\n')
        self.begin('  disk: {kind: file}', f'    from: [{{server: disk, path: {self.path("src/web.yaml")}}}]')

    def version_of(self, text):
        return subprocess.run(['sha256sum'], input=text.encode(), capture_output=True, check=True).stdout.decode()[:32]

    def test_what_stands_already_is_told_at_once(self):
        for args in (('--generation', '1'), ('--version', self.version_of('n: 1\n')), ('--version', f'"{self.version_of("n: 1" + chr(10))}"')):
            code, out, _ = self.agent.cli('wait', 'web', *args)
            self.assertEqual((code, out), (0, 'web: generation 1 is current\n'), args)

    def test_it_waits_until_the_version_stands(self):
        thread, done = self.begin_waiting('--version', self.version_of('n: 2\n'))
        self.assertEqual(self.agent.refresh()['outcome'], 'unchanged')
        self.assertEqual(done, [])
        self.write('src/web.yaml', 'n: 2\n')
        self.agent.refresh()
        thread.join()
        self.assertEqual(done[0][:2], (0, 'web: generation 2 is current\n'))

    def test_a_change_by_an_operator_counts(self):
        self.write('src/web.yaml', 'n: 2\n')
        self.agent.refresh()
        thread, done = self.begin_waiting('--generation', '3')
        self.agent.cli('rollback', 'web', check=0)
        thread.join()
        self.assertEqual(done[0][0], 0)

    def test_it_times_out_with_4(self):
        code, _, err = self.agent.cli('wait', 'web', '--generation', '9', '--timeout', '50ms')
        self.assertEqual(code, 4, err)

    def test_bad_questions(self):
        for args, code in ((('web',), 64), (('web', '--generation', 'x'), 64), (('web', '--generation', '0'), 64), (('web', '--version', ''), 64),
                           (('web', '--generation', '1', '--version', 'x'), 64), (('none', '--generation', '1'), 2), (('--generation', '1'), 64)):
            self.assertEqual(self.agent.cli('wait', *args)[0], code, args)

    def test_an_agent_that_is_not_there(self):
        self.agent.stop()
        code = subprocess.run([PULLET, 'wait', 'web', '--generation', '1', '--socket', self.agent.socket], capture_output=True, check=False).returncode
        self.assertEqual(code, 3)


class Bootstrap(Case):
    """The first server is one that fails; the second a directory."""

    def begin_with(self, server, more='', **kw):
        self.write('mirror/web.yaml', 'n: 7\n')
        return self.begin(f'  main: {{urls: ["{server.url}"]}}\n  mirror: {{kind: file}}', f'''    from: [{{server: main, path: /web.yaml}}]
    bootstrap: {{server: mirror, path: {self.path("mirror/web.yaml")}}}
    timeout: 300ms
{more}''', **kw)

    def test_a_new_host_starts_while_the_server_is_down_and_says_so(self):
        server = FaultServer(self)
        server.behave = harness.reset
        self.begin_with(server)
        self.assertEqual(self.standing(), 'n: 7\n')
        self.agent.log.wait('published from the bootstrap server')
        status = self.agent.status()
        self.assertEqual((status['state'], status['cause']), ('failing', 'unreachable'))
        server.behave = good(b'n: 8\n')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.assertEqual(self.standing(), 'n: 8\n')
        self.assertEqual(self.agent.status()['state'], 'ok')

    def test_a_server_that_hangs_slows_the_pulls_as_ever(self):
        server = FaultServer(self)
        server.behave = lambda _connection, _head, stopping: stopping.wait()
        self.begin_with(server)
        self.agent.log.wait('published from the bootstrap server')
        self.assertEqual(self.standing(), 'n: 7\n')
        self.assertEqual(self.agent.status()['runs']['timeouts'], 1)

    def test_with_a_last_known_good_it_is_not_asked(self):
        server = FaultServer(self)
        server.behave = good(b'n: 8\n')
        self.begin_with(server)
        server.behave = harness.reset
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')
        self.assertEqual(self.standing(), 'n: 8\n')
        self.agent.stop()
        with open(self.agent.config_path, encoding='utf-8') as f:
            text = f.read()
        self.agent = Agent(self, text)
        self.agent.log.wait('last known good')
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')
        self.assertEqual(self.standing(), 'n: 8\n')

    def test_when_both_fail_both_reasons_are_told(self):
        server = FaultServer(self)
        server.behave = harness.reset
        self.begin_with(server, wait='published config=web|trying the bootstrap server', more='    schema: /nonexistent\n')
        line = self.agent.log.wait('nothing is published yet')
        self.assertFalse(os.path.exists(self.path('out/web.yaml')))
        self.assertIn('schema', line)
        os.unlink(self.path('mirror/web.yaml'))
        self.agent.refresh()
        error = self.agent.status()['last_error']
        self.assertRegex(error, '.+; bootstrap: .*no such document')

    def test_it_stands_for_all_layers(self):
        server = FaultServer(self)
        server.behave = harness.reset
        self.write('mirror/web.yaml', 'n: 7\n')
        self.begin(f'  main: {{urls: ["{server.url}"]}}\n  mirror: {{kind: file}}', f'''    from: [{{server: main, path: /base.yaml}}, {{server: main, path: /web.yaml}}]
    bootstrap: {{server: mirror, path: {self.path("mirror/web.yaml")}}}''')
        self.assertEqual(self.standing(), "n: 7\n")
        self.agent.stop()
        with open(self.agent.config_path, encoding='utf-8') as f:
            text = f.read()
        self.agent = Agent(self, text)
        self.agent.log.wait('last known good')
        self.assertEqual(self.standing(), "n: 7\n")


class Rollout(Case):
    """This host is called h7: with the salt "web" it is at 71.51 %."""

    def begin_with(self, rollout, more='', agent='  labels: {zone: eu-1}'):
        self.write('src/web.yaml', 'n: 1\n')
        if rollout is not None:
            self.write('src/web.rollout', rollout)
        return self.begin('  disk: {kind: file}\n  store: {kind: etcd, urls: ["http://127.0.0.1:1"]}',
                          f'''    from: [{{server: disk, path: {self.path("src/web.yaml")}}}]
    rollout: {{server: disk, path: {self.path("src/web.rollout")}}}
{more}''', agent=agent, top='report: {server: store, host: h7}')

    def put(self, text, rollout=None):
        if rollout is not None:
            self.write('src/web.rollout', rollout)
        self.write('src/web.yaml', text)
        return self.agent.refresh()['outcome']

    def test_a_host_outside_stays_and_says_so_until_it_is_its_turn(self):
        self.begin_with(None)
        self.assertEqual(self.put('n: 2\n', 'percent: 71\n'), 'held')
        self.assertEqual(self.standing(), 'n: 1\n')
        away = self.agent.status()['rejected']
        self.assertEqual((away['by'], away['why']), ('rollout', 'this host is at 71.51 %, the rollout at 71 %'))
        self.assertEqual(self.agent.status()['state'], 'ok')
        self.assertIn('is held by the rollout', self.agent.cli('status')[1])
        self.assertEqual(self.agent.refresh()['outcome'], 'held')
        self.write('src/web.rollout', 'percent: 72\n')
        self.agent.refresh()
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.standing(), 'n: 2\n')
        self.assertIsNone(self.agent.status().get('rejected'))

    def test_a_restart_changes_nothing(self):
        self.begin_with(None)
        self.put('n: 2\n', 'percent: 71\n')
        self.agent.signal(harness.signal.SIGKILL)
        self.agent.wait()
        with open(self.agent.config_path, encoding='utf-8') as f:
            text = f.read()
        self.agent = Agent(self, text)
        self.agent.log.wait('last known good')
        self.assertEqual(self.agent.refresh()['outcome'], 'held')
        self.assertEqual(self.standing(), 'n: 1\n')

    def test_a_host_that_has_nothing_takes_what_there_is(self):
        self.begin_with('percent: 0\n')
        self.assertEqual(self.standing(), 'n: 1\n')

    def test_a_question_that_is_lost_at_the_limit_ends_its_run_once(self):
        """The agent is stopped over both moments, the end of its server's rest and the run's limit: they come in one turn of the loop."""
        self.write('src/web.yaml', 'n: 1\n')
        server = FaultServer(self)
        server.behave = good(b'', 'Retry-After: 2\r\n', '503 Service Unavailable')
        self.begin(f'  disk: {{kind: file}}\n  asked: {{urls: ["{server.url}"]}}', f'''    from: [{{server: disk, path: {self.path("src/web.yaml")}}}]
    rollout: {{server: asked, path: /rollout}}
    timeout: 4s''')
        self.assertEqual(self.put('n: 2\n'), 'failed')
        self.agent.post('/v1/configs/web/refresh')
        self.until_pending('asked')
        self.agent.signal(signal.SIGSTOP)
        threading.Event().wait(4.1)  # the time is what is tested
        self.agent.signal(signal.SIGCONT)
        self.agent.log.wait('the rollout cannot be read.*did not take it in time')
        self.assertEqual(server.requests, 1)
        runs = self.agent.status()['runs']
        self.assertEqual((runs['not_started'], runs['timeouts']), (1, 0), runs)
        server.behave = good(b'', status='404 Not Found')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.assertEqual(self.standing(), 'n: 2\n')
        self.agent.stop()

    def until_pending(self, name):
        """Until a request waits in the line of this server."""
        def pending():
            return next(s['pending'] for s in json.loads(self.agent.get('/v1/status')[1])['servers'] if s['name'] == name)
        deadline = time.monotonic() + harness.DEADLINE
        while pending() != 1:
            self.assertLess(time.monotonic(), deadline)

    def test_labels_decide(self):
        self.begin_with(None)
        self.assertEqual(self.put('n: 2\n', 'labels: {zone: us-1}\n'), 'held')
        self.assertEqual(self.put('n: 3\n', 'labels: {zone: eu-1}\n'), 'published')

    def test_what_cannot_be_read_reaches_nobody(self):
        self.begin_with(None)
        self.assertEqual(self.put('n: 2\n', 'precent: 10\n'), 'failed')
        self.assertIn('there is no key precent', self.agent.status()['last_error'])
        os.unlink(self.path('src/web.rollout'))
        os.mkdir(self.path('src/web.rollout'))
        self.assertEqual(self.agent.refresh()['outcome'], 'failed')
        self.assertEqual(self.standing(), 'n: 1\n')
        os.rmdir(self.path('src/web.rollout'))
        self.agent.refresh()
        self.agent.log.wait('published config=web generation=2')

    def test_force_takes_it_now(self):
        self.begin_with(None)
        self.assertEqual(self.put('n: 2\n', 'percent: 0\n'), 'held')
        self.agent.cli('refresh', 'web', '--force', '--wait', check=0)
        self.assertEqual(self.standing(), 'n: 2\n')

    def test_a_version_held_back_by_a_pin_waits_for_both(self):
        self.begin_with(None)
        self.agent.cli('pin', 'web', check=0)
        self.assertEqual(self.put('n: 2\n', 'percent: 0\n'), 'held')
        self.assertEqual(self.agent.status()['rejected']['by'], 'pin')
        self.agent.cli('unpin', 'web', check=0)
        self.agent.log.wait('not rolled out to this host yet')
        self.assertEqual(self.standing(), 'n: 1\n')

    def test_an_override_is_possible_while_one_is_held_back(self):
        self.begin_with(None)
        self.put('n: 2\n', 'percent: 0\n')
        self.agent.cli('override', 'web', 'n=9', '--for', '1h', check=0)
        self.assertIn("n: 9", self.standing())
        self.assertEqual(self.agent.refresh()['outcome'], 'held')
        self.assertIn("n: 9", self.standing())


if __name__ == '__main__':
    harness.main()
