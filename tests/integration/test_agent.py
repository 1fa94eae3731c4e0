"""The agent as an operator meets it: start from the last known good, bad configurations, signals, once, dry run, drift, permissions."""
import hashlib
import json
import os
import signal
import subprocess

import harness
from harness import PULLET, PULLETD, Agent, FaultServer, good, needs


def identity(path):
    """Changes with whatever is done to a file but reading it: the agent reads it, and that may move the access time."""
    st = os.stat(path)
    return st.st_ino, st.st_size, st.st_mode, st.st_mtime_ns, st.st_ctime_ns


class Operator(harness.Case):
    def setUp(self):
        super().setUp()
        self.server = FaultServer(self)
        self.set(1)

    def set(self, n):
        self.server.behave = good(f'n: {n}\n'.encode(), f'ETag: "v{n}"\r\n')

    def start(self, more='    interval: 1h\n', **kw):
        return Agent(self, self.config(self.server.url + '/web.yaml', more), **kw)

    def run_agent(self, *args, config=None, env=None):
        if config is not None:
            self.write('pullet.yaml', config)
        return subprocess.run([PULLETD, '-c', self.path('pullet.yaml'), *args], capture_output=True, text=True,
                              timeout=harness.DEADLINE * 2, check=False, env=dict(os.environ, **(env or {})))

    # ---- last known good

    def test_starts_from_the_last_known_good_when_the_server_is_down(self):
        agent = self.start()
        agent.log.wait('published.*generation=1')
        agent.signal(signal.SIGKILL)
        agent.wait()
        os.unlink(self.path('out/web.yaml'))
        self.server.close()
        agent = self.start()
        agent.log.wait('last known good')
        self.assertEqual(self.read('out/web.yaml'), b'n: 1\n')
        agent.refresh()  # the first pull by itself is splayed
        agent.log.wait('refused')
        self.assertEqual(agent.get('/readyz'), (200, 'ok\n'))
        status = agent.status()
        self.assertEqual((status['generation'], status['state']), (1, 'failing'))
        agent.stop()

    def test_a_restart_asks_conditionally_and_generations_go_on(self):
        agent = self.start()
        agent.log.wait('published.*generation=1')
        agent.stop()
        heads = []

        def same(connection, head, _stopping):
            heads.append(head)
            connection.sendall(b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n')
        self.server.behave = same
        before = identity(self.path('out/web.yaml'))
        agent = self.start()
        agent.log.wait('last known good')
        self.assertEqual(agent.refresh()['outcome'], 'unchanged')
        self.assertIn('If-None-Match: "v1"', heads[0])
        self.assertEqual(identity(self.path('out/web.yaml')), before, 'a file that is current is left alone')
        self.set(2)
        self.assertEqual(agent.refresh()['generation'], 2)
        agent.stop()

    def test_no_name_of_a_config_is_that_of_a_file_of_the_agents(self):
        names = ('lock', 'left', 'ledger.json', 'control', 'control.sock', 'web.gen', 'web', 'true', '1e5')
        text = self.config(self.server.url + '/web.yaml', '    interval: 1h\n', name=names[0])
        for name in names[1:]:
            text += f"  {name}: {{url: '{self.server.url}/web.yaml', file: {self.path('out/' + name + '.yaml')}, interval: 1h}}\n"
        self.write('pullet.yaml', text)
        for _ in range(2):  # from the server, then from the last known good
            agent = Agent(self, text)
            for name in names:
                agent.log.wait(rf'(published|last known good) config={name} generation=1 ')
                self.assertEqual(self.read(f'out/{name}.yaml'), b'n: 1\n', name)
            agent.stop()

    def test_a_damaged_state_file_is_set_aside_and_the_older_one_used(self):
        agent = self.start()
        agent.log.wait('published.*generation=1')
        self.set(2)
        agent.refresh()
        agent.stop()
        newest = sorted(f for f in os.listdir(self.path('state/web')) if f.isdigit())[-1]
        data = bytearray(self.read('state/web/' + newest))
        data[-2] ^= 1
        self.write('state/web/' + newest, bytes(data))
        self.server.close()
        agent = self.start()
        agent.log.wait('damaged')
        agent.log.wait('last known good.*generation=1')
        self.assertEqual(self.read('out/web.yaml'), b'n: 1\n')
        agent.stop()

    def test_stale_temporary_files_are_removed_at_start(self):
        agent = self.start()
        agent.log.wait('published')
        agent.stop()
        for name in ('out/.web.yaml.pullet-0123456789abcdef', 'state/web/.00000000000000000002.pullet-0123456789abcdef'):
            self.write(name, 'half')
        self.write('out/.other.pullet-0123456789abcdef', "somebody else's")
        agent = self.start()
        agent.log.wait('last known good')
        self.assertEqual(sorted(os.listdir(self.path('out'))), ['.other.pullet-0123456789abcdef', 'web.yaml'])
        self.assertFalse([f for f in os.listdir(self.path('state/web')) if 'pullet-' in f])
        agent.stop()

    def test_durability_strict_publishes_too(self):
        agent = self.start('    interval: 1h\n    durability: strict\n')
        agent.log.wait('published.*generation=1')
        self.set(2)
        self.assertEqual(agent.refresh()['outcome'], 'published')
        self.assertEqual(self.read('out/web.yaml'), b'n: 2\n')
        agent.stop()

    # ---- limits

    @harness.one_thread  # that sanitizer has large files of its own
    def test_a_limit_of_the_size_of_files_is_an_error_of_what_it_stops(self):
        self.prefix = ['prlimit', '--fsize=600:']
        agent = self.start()
        agent.log.wait('cannot publish here.*File too large: raise the limit of the size of files')
        self.assertEqual(agent.status()['state'], 'waiting')
        subprocess.run(['prlimit', '--pid', str(agent.pid), '--fsize=unlimited:'], check=True)
        agent.refresh()  # unless it tried again by itself, and that was published
        self.assertEqual(self.read('out/web.yaml'), b'n: 1\n')
        agent.stop()

    # ---- mounts

    def start_in_mounts(self, script):
        """With the mounts that the script makes, of file systems that are not the test's."""
        self.prefix = [*harness.unshare('mount')[0], 'sh', '-ec', f'{script}; exec "$@"', 'sh']
        return self.start()

    @needs('mounts of its own')
    def test_replaces_a_file_on_an_overlay_of_two_file_systems(self):
        os.makedirs(self.path('upper'))
        over = self.path('upper')
        agent = self.start_in_mounts(f'mount -t tmpfs none {over}; mkdir -p {self.path("out")} {self.path("lower")} {over}/up {over}/work; '
                                     f'mount -t overlay -o lowerdir={self.path("lower")},upperdir={over}/up,workdir={over}/work,xino=off none {self.path("out")}')
        agent.log.wait('published.*generation=1')
        self.set(2)
        self.assertEqual(agent.refresh()['outcome'], 'published')
        self.assertEqual((agent.status()['generation'], agent.status()['state']), (2, 'ok'))
        agent.stop()

    @needs('mounts of its own')
    def test_never_replaces_a_file_that_is_mounted(self):
        self.write('out/web.yaml', 'n: 0\n')
        os.makedirs(self.path('other'))
        agent = self.start_in_mounts(f'mount -t tmpfs none {self.path("other")}; echo "n: 0" >{self.path("other/file")}; '
                                     f'mount --bind {self.path("other/file")} {self.path("out/web.yaml")}')
        agent.log.wait('it is a mount point of its own; mount the directory instead')
        agent.stop()
        self.assertEqual(self.read('out/web.yaml'), b'n: 0\n')

    # ---- drift

    def test_a_file_that_somebody_changed_or_removed_is_put_back(self):
        agent = self.start()
        agent.log.wait('published')
        self.server.behave = good(b'', status='304 Not Modified')
        for harm in (lambda: self.write('out/web.yaml', 'n: 666\n'), lambda: os.unlink(self.path('out/web.yaml')),
                     lambda: os.chmod(self.path('out/web.yaml'), 0o666)):
            harm()
            self.assertIn(agent.refresh()['outcome'], ('published', 'unchanged'))  # by the run, or by inotify before it
            self.assertEqual(self.read('out/web.yaml'), b'n: 1\n')
            self.assertEqual(os.stat(self.path('out/web.yaml')).st_mode & 0o7777, 0o640)
        self.assertEqual(agent.status()['restored'], 3)
        self.assertEqual(agent.status()['generation'], 1)
        agent.stop()

    def test_a_file_that_somebody_cuts_short_and_keeps_open_is_put_back_at_once(self):
        agent = self.start('    interval: 1h\n')
        agent.log.wait('published')
        for n in (1, 2):  # the file that was put back is watched as the first one was
            with open(self.path('out/web.yaml'), 'r+b') as held:
                held.truncate(0)
                self.until(lambda: self.read('out/web.yaml') == b'n: 1\n', 'the file is whole')
                held.write(b'n: 666\n')  # in the file that was: nobody reads it
                held.flush()
                self.assertEqual(self.read('out/web.yaml'), b'n: 1\n')
            self.until(lambda n=n: agent.status()['restored'] == n, 'it is counted')
        self.set(2)
        self.assertEqual(agent.refresh()['outcome'], 'published')
        with open(self.path('out/web.yaml'), 'ab') as held:
            held.write(b'm: 666\n')
            held.flush()
            self.until(lambda: agent.status()['restored'] == 3, 'it is counted')
            self.until(lambda: self.read('out/web.yaml') == b'n: 2\n', 'the file is whole')
        agent.stop()

    # ---- bad places

    def test_a_directory_that_is_not_there_yet_is_said_and_taken_when_it_comes(self):
        config = self.config(self.server.url + '/web.yaml', '    interval: 1h\n').replace('/out/', '/none/deep/')
        agent = Agent(self, config)
        agent.log.wait('none/deep')
        self.assertEqual(agent.refresh()['outcome'], 'failed')
        os.makedirs(self.path('none/deep'))
        self.assertEqual(agent.refresh()['outcome'], 'published')
        agent.stop()

    def test_a_symlink_as_target_is_refused(self):
        self.write('elsewhere', 'keep\n')
        os.makedirs(self.path('out'))
        os.symlink('../elsewhere', self.path('out/web.yaml'))
        agent = self.start()
        agent.log.wait('symlink|symbolic link')
        self.assertEqual(self.read('elsewhere'), b'keep\n')
        agent.stop()

    def test_one_bad_config_does_not_stop_the_others(self):
        text = self.config(self.server.url + '/web.yaml', '    interval: 1h\n')
        text += f'  bad:\n    url: http://127.0.0.1:9/x.yaml\n    file: {self.path("none/deep/x.yaml")}\n'
        agent = Agent(self, text)
        agent.log.wait('published.*config=web|config=web.*published|published config=web')
        status = json.loads(agent.get('/v1/status')[1])
        self.assertEqual([c['state'] for c in status['configs']], ['ok', 'waiting'])
        code, body = agent.get('/readyz')
        self.assertEqual(code, 503)
        self.assertIn('bad:', body)
        agent.stop()

    def test_two_agents_on_one_state_directory(self):
        agent = self.start()
        agent.log.wait('published')
        second = self.run_agent()
        self.assertEqual(second.returncode, 1)
        self.assertRegex(second.stderr, 'another pulletd')
        agent.stop()

    # ---- the configuration

    def test_t_prints_every_error_with_its_place_and_exits_78(self):
        done = self.run_agent('-t', config='configs:\n  web:\n    urll: http://x/\n    interval: 10\n    file: relative\n  bad/name: {}\n')
        self.assertEqual(done.returncode, 78)
        self.assertRegex(done.stderr, r"pullet.yaml:3:5: .*urll.*url")
        self.assertRegex(done.stderr, r'pullet.yaml:4:15: ')
        self.assertRegex(done.stderr, r'pullet.yaml:5:11: ')
        self.assertRegex(done.stderr, r'pullet.yaml:6:3: ')
        self.assertEqual(self.run_agent().returncode, 78)

    def test_t_on_a_good_one_and_on_a_missing_one(self):
        done = self.run_agent('-t', config=self.config('http://127.0.0.1:9/web.yaml'))
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        done = subprocess.run([PULLETD, '-t', '-c', self.path('none.yaml')], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 78)
        self.assertIn('none.yaml', done.stderr)

    def test_the_environment_names_the_configuration(self):
        self.write('other.yaml', self.config('http://127.0.0.1:9/web.yaml'))
        done = subprocess.run([PULLETD, '-t'], capture_output=True, text=True, check=False,
                              env=dict(os.environ, PULLET_CONFIG=self.path('other.yaml')))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_misspelt_key_is_refused_with_the_right_one(self):
        done = self.run_agent('-t', config=self.config('http://127.0.0.1:9/web.yaml', '    relaod: {run: [/bin/true]}\n'))
        self.assertEqual(done.returncode, 78)
        self.assertRegex(done.stderr, 'unknown key "relaod".*did you mean "reload"')

    def test_usage_errors_exit_64(self):
        for args in (['--none'], ['extra'], ['--log-level', 'loud'], ['-c']):
            self.assertEqual(subprocess.run([PULLETD, *args], capture_output=True, check=False).returncode, 64, args)
        for args in ([], ['none'], ['status', '--none'], ['publish'], ['serve']):
            self.assertEqual(subprocess.run([PULLET, *args], capture_output=True, check=False).returncode, 64, args)

    def test_help_and_version(self):
        for program in (PULLETD, PULLET):
            for option, text in (('--help', 'Usage'), ('--version', '0.1.0')):
                done = subprocess.run([program, option], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ''))
                self.assertIn(text, done.stdout)

    # ---- once, dry run

    def test_once_publishes_and_exits(self):
        done = self.run_agent('--once', config=self.config(self.server.url + '/web.yaml'))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read('out/web.yaml'), b'n: 1\n')
        self.server.behave = good(b'x', status='500 Internal Server Error')
        self.assertEqual(self.run_agent('--once').returncode, 1)
        self.assertEqual(self.read('out/web.yaml'), b'n: 1\n')

    def test_once_that_a_signal_ends_before_its_pull_has_failed(self):
        self.write('pullet.yaml', self.config(self.server.url + '/web.yaml'))
        self.server.behave = lambda connection, head, stopping: stopping.wait()
        for option in ('--once', '--dry-run'):
            before = self.server.requests
            agent = harness.Program([PULLETD, '-c', self.path('pullet.yaml'), option])
            self.until(lambda: self.server.requests > before, 'a request')
            agent.signal(signal.SIGTERM)
            self.assertEqual(agent.wait(), 1, option)
            agent.close()

    def test_dry_run_writes_nothing(self):
        done = self.run_agent('--dry-run', config=self.config(self.server.url + '/web.yaml'))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, 'would publish')
        self.assertNotRegex(done.stderr, 'started|generation=')
        self.assertRegex(done.stdout, rf'^web: would publish 5 bytes, sha256 {hashlib.sha256(b"n: 1" + bytes([10])).hexdigest()[:12]}, to {self.path("out/web.yaml")}\n\+ n: 1\n$')
        self.server.behave = good(b'n: [1\n')
        done = self.run_agent('--dry-run', config=self.config(self.server.url + '/web.yaml'))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r'^web: rejected: invalid YAML, line 1, column 4: ')
        self.assertNotRegex(done.stderr, 'started|keeping|generation=')
        self.server.behave = good(b'x', status='500 Internal Server Error')
        done = self.run_agent('--dry-run', config=self.config(self.server.url + '/web.yaml'))
        self.assertRegex(done.stdout, r'^web: failed: .*500')
        self.assertEqual(sorted(os.listdir(self.dir)), ['out', 'pullet.yaml'])
        self.assertEqual(os.listdir(self.path('out')), [])

    def test_output_that_cannot_be_written_is_no_success(self):
        path = self.path('pullet.yaml')
        self.write('pullet.yaml', self.config(self.server.url + '/web.yaml'))
        for args in (('--dry-run', '-c', path), ('-t', '-c', path), ('--version',), ('--help',)):
            with self.subTest(args=args), open('/dev/full', 'wb') as full:
                done = subprocess.run([PULLETD, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=harness.DEADLINE, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn('standard output cannot be written to', done.stderr)

    # ---- signals

    def test_usr1_pulls_now(self):
        agent = self.start()
        agent.log.wait('published.*generation=1')
        self.set(2)
        agent.signal(signal.SIGUSR1)
        agent.log.wait('published.*generation=2')
        agent.stop()

    def test_hup_takes_a_good_configuration_and_refuses_a_bad_one(self):
        agent = self.start()
        agent.log.wait('published.*generation=1')
        good_one = self.read('pullet.yaml')
        self.write('pullet.yaml', b'configs: {web: {url: 1}}\n')
        agent.signal(signal.SIGHUP)
        agent.log.wait('nothing was changed')
        self.assertEqual(agent.refresh()['outcome'], 'unchanged')
        self.write('pullet.yaml', good_one + f'  more:\n    url: {self.server.url}/more.yaml\n    file: {self.path("out/more.yaml")}\n'.encode())
        at = agent.log.count
        agent.signal(signal.SIGHUP)
        agent.log.wait('the new configuration is applied.*unchanged=1 added="1: more"', at)
        agent.log.wait('published.*config=more', at)
        self.assertEqual(self.read('out/more.yaml'), b'n: 1\n')
        self.assertEqual(agent.status('web')['generation'], 1)
        agent.stop()

    # ---- control and command line

    def test_the_control_api_answers_errors_as_json(self):
        agent = self.start()
        agent.log.wait('published')
        self.assertEqual(os.stat(agent.socket).st_mode & 0o777, 0o660)
        for method, path, status in (('GET', '/v1/configs/none', 404), ('POST', '/v1/configs/none/refresh', 404), ('GET', '/none', 404),
                                     ('POST', '/v1/status', 405), ('GET', '/v1/configs/web/refresh', 405)):
            code, body = agent.request(method, path)
            self.assertEqual(code, status, path)
            self.assertIn('error', json.loads(body))
        self.assertEqual(agent.get('/livez'), (200, 'ok\n'))
        agent.stop()
        self.assertFalse(os.path.exists(agent.socket))

    def test_listen_serves_only_the_gets(self):
        import re
        import socket
        import urllib.error
        import urllib.request
        with socket.create_server(('127.0.0.1', 0)) as probe:
            port = probe.getsockname()[1]
        agent = Agent(self, self.config(self.server.url + '/web.yaml', agent=f'  listen: 127.0.0.1:{port}\n  labels: {{zone: "eu \\"1\\""}}'))
        agent.log.wait('published')
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/v1/status', timeout=harness.DEADLINE) as r:
            self.assertEqual(json.load(r)['labels'], {'zone': 'eu "1"'})
        with self.assertRaises(urllib.error.HTTPError) as e:
            urllib.request.urlopen(f'http://127.0.0.1:{port}/v1/configs/web/refresh', data=b'', timeout=harness.DEADLINE)
        self.assertEqual(e.exception.code, 403)
        e.exception.close()
        self.assertTrue(re)
        agent.stop()

    def test_pullet_status_and_refresh(self):
        agent = self.start()
        agent.log.wait('published')
        _, out, _ = agent.cli('status', check=0)
        self.assertRegex(out, r'web +ok +1 ')
        _, out, _ = agent.cli('status', 'web', check=0)
        self.assertIn(self.path('out/web.yaml'), out)
        self.set(2)
        _, out, _ = agent.cli('refresh', 'web', '--wait', check=0)
        self.assertRegex(out, 'web.*published')
        self.assertEqual(self.read('out/web.yaml'), b'n: 2\n')
        self.server.behave = good(b'x', status='500 Internal Server Error')
        _, out, err = agent.cli('refresh', '--wait', check=1)
        self.assertIn('500', out + err)
        agent.cli('status', 'none', check=2)
        agent.cli('refresh', 'none', check=2)
        self.server.behave = harness.drip(b'')
        agent.cli('refresh', '--wait', '--timeout', '100ms', check=4)
        agent.stop()
        agent.cli('status', check=3)
        agent.cli('refresh', check=3)

    def test_json_log(self):
        text = self.config(self.server.url + '/web.yaml').replace('format: text', 'format: json')
        agent = Agent(self, text)
        line = json.loads(agent.log.wait('"published"'))
        self.assertEqual((line['level'], line['message'], line['config'], line['generation']), ('info', 'published', 'web', '1'))
        agent.stop()
        for line in agent.log.seen:
            json.loads(line)


if __name__ == '__main__':
    harness.main()
