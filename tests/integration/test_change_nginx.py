"""nginx as the application: its configuration is pulled, checked by nginx itself, told by a signal, watched through HTTP, and rolled back."""
import os
import re
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import harness
from harness import Program
from test_change import Case, Hook

NGINX = '/usr/sbin/nginx'
FOR = 10  # seconds that a version is watched


class Application(Program):
    """nginx with the published configuration, as an operator would start it; its socket is bound before, so that no port is lost to a race."""

    def __init__(self, test, listener):
        os.set_inheritable(listener.fileno(), True)
        super().__init__([NGINX, '-p', test.path('work'), '-c', test.path('out/nginx.conf')], env={'NGINX': f'{listener.fileno()};'},
                         pass_fds=[listener.fileno()])
        test.addCleanup(self.close)

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                pass
        super().close()


class NginxItself(Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        os.makedirs(self.path('work'))
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(self.listener.close)
        self.port = self.listener.getsockname()[1]
        self.url = f'http://127.0.0.1:{self.port}/health'
        self.put('one')

    def put(self, word, server=None):
        """A configuration that answers with the word; or, of a bad one, what stands in its place."""
        temps = ''.join(f'{k}_temp_path {self.path("work")}/{k};' for k in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        location = server or f'location = /health {{ return 200 "{word}\\n"; }}'
        self.conf = f'''daemon off; worker_processes 1; pid {self.path("work/pid")}; error_log stderr emerg;
{'user root;' if os.geteuid() == 0 else ''}
events {{ worker_connections 64; }}
http {{ access_log off; {temps}
  server {{ listen 127.0.0.1:{self.port};
    {location} }} }}
'''.encode()
        self.origin.put('/nginx.conf', self.conf)

    def begin(self, **more):
        """Agent and application, the application told of generation 1."""
        config = {'type': 'bytes', 'file': self.path('out/nginx.conf'), 'snapshot': False, 'mode': '0644',
                  'check': [NGINX, '-t', '-q', '-p', self.path('work'), '-c', '{path}'], 'reload': {'signal': 'HUP', 'pidfile': self.path('work/pid')},
                  'probe': {'url': self.url, 'for': f'{FOR}s', 'every': '100ms', 'timeout': '2s', 'failures': 2}, **more}
        config = {key: value for key, value in config.items() if value is not None}
        self.write('out/nginx.conf', self.conf)  # as its package brought it
        os.chmod(self.path('out/nginx.conf'), 0o644)
        self.nginx = Application(self, self.listener)
        self.serves('one')
        self.start('/nginx.conf', **config)
        self.told(1)

    def told(self, generation):
        return self.until(lambda s: s['reload']['notified'] >= generation and s['reload']['state'] == 'idle')

    def answer(self):
        try:
            with urllib.request.urlopen(self.url, timeout=harness.DEADLINE) as response:
                return response.read().decode().strip()
        except urllib.error.HTTPError as e:
            e.close()
            return e.code
        except OSError as e:  # the old workers end while the new ones begin
            return repr(e)

    def serves(self, wanted):
        """Until nginx answers so, and no worker of before does."""
        deadline, pace = time.monotonic() + harness.DEADLINE, threading.Event()
        while (answer := (self.answer(), len(harness.children(self.nginx.pid)))) != (wanted, 1):
            self.assertLess(time.monotonic(), deadline, answer)
            pace.wait(0.01)

    def standing(self):
        return re.search(rb'return 200 "(\w+)', self.read('out/nginx.conf'))[1].decode()

    def test_a_good_one_is_served(self):
        self.begin()
        for n, word in enumerate(('two', 'three'), 2):
            self.put(word)
            self.assertEqual(self.agent.refresh()['generation'], n)
            self.told(n)
            self.serves(word)
            self.assertEqual(self.read('out/nginx.conf'), self.conf)
        self.assertEqual((self.status()['rejections'], self.status()['probe']['failed']), (0, 0))

    def test_a_broken_one_is_never_published(self):
        check = Hook(self, 'check', f'exec {NGINX} -t -q -p {self.path("work")} -c "$1"')
        self.begin(check=[check.path, '{path}'])
        broken = (('location = /health { retrun 200; }', 'unknown directive "retrun"'), ('location = /health {', 'unexpected end'),
                  ('listen 127.0.0.1:99999;', 'invalid port'), ('root /; root /;', 'duplicate'))
        for n, (server, why) in enumerate(broken):
            self.put('two', server)
            outcome = self.agent.refresh()
            self.assertEqual((outcome['outcome'], outcome['generation']), ('failed', 1))
            self.assertRegex(outcome['error'], 'check exited with 1: .*' + why)
            self.assertEqual(self.agent.refresh()['outcome'], 'failed')
            self.assertEqual((self.standing(), self.answer(), check.runs), ('one', 'one', n + 2))
        self.assertEqual((self.status()['rejections_by'], self.status()['reload']['notified'], self.strays()), ({'check': 4}, 1, []))
        self.put('three')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.serves('three')

    def test_one_that_passes_the_check_and_breaks_the_application_is_taken_back(self):
        self.begin()
        self.put('two', 'nonsense;')
        self.assertRegex(self.agent.refresh()['error'], '^nginx exited with 1: .*unknown directive')
        last = 1
        for server, why in (('location = /heath { return 200; }', 'answered 404'), ('location = /health { return 500; }', 'answered 500'),
                            (f'location = /health {{ proxy_pass http://127.0.0.1:{self.unused()}; }}', 'answered 502')):
            with self.subTest(why=why):
                self.put('two', server)
                begin = time.monotonic()
                self.assertEqual(self.agent.refresh()['generation'], last + 1)
                self.assertEqual(self.read('out/nginx.conf'), self.conf)
                status = self.until(lambda s, last=last: s['generation'] == last + 2)
                self.assertLess(time.monotonic() - begin, FOR + 2)
                self.assertRegex(status['probe']['error'], why)
                last += 2
                self.told(last)
                self.serves('one')
                self.assertEqual(self.standing(), 'one')
                for _ in range(2):  # it is still on the server
                    self.assertRegex(self.agent.refresh()['error'], why)
                self.assertEqual((self.status()['generation'], self.status()['rejected']['by'], self.standing()), (last, 'probe', 'one'))
        self.put('four')
        self.assertEqual(self.agent.refresh()['generation'], last + 1)
        self.serves('four')

    def unused(self):
        """A port that refuses, and that nobody else gets."""
        s = socket.socket()
        self.addCleanup(s.close)
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]

    def test_an_application_that_is_down_is_told_when_it_is_back(self):
        self.begin(probe=None)
        self.nginx.close()
        self.put('two')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        status = self.until(lambda s: s['reload']['state'] == 'failed')
        self.assertRegex(status['reload']['error'], 'pidfile')
        self.nginx = Application(self, self.listener)
        self.serves('two')
        self.assertEqual(self.told(2)['reload']['error'], None)

    def test_without_check_and_probe_the_bad_ones_are_seen(self):
        """Nothing else than the check and the probe keeps them away: the tests above can fail."""
        self.begin(check=None, probe=None)
        self.put('two', 'location = /health { return 500; }')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.serves(500)
        self.put('three', 'nonsense;')
        self.assertEqual(self.agent.refresh()['outcome'], 'published')
        self.told(3)
        self.nginx.log.wait('unknown directive "nonsense"')
        done = subprocess.run([NGINX, '-t', '-q', '-p', self.path('work'), '-c', self.path('out/nginx.conf')], capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)


if __name__ == '__main__':
    harness.main()
