"""What servers do wrong: the good file stays, the log and the status say why, the next good answer is taken."""
import os
import signal

import harness
from harness import Agent, FaultServer, drip, endless, good, raw, reset

HEAD = b'HTTP/1.1 200 OK\r\n'
# name, behaviour, what the error must say, counted as
FAULTS = [
    ('no answer at all', drip(b''), r'time|timed out', 'timeouts'),
    ('slow headers', drip(HEAD, b'X-Slow: ' + b'y' * 1000), r'time|timed out', 'timeouts'),
    ('slow body', drip(HEAD + b'Content-Length: 1000\r\n\r\n', b'#' * 1000), r'time|timed out', 'timeouts'),
    ('body cut short, with a length', raw(HEAD + b'Content-Length: 100\r\n\r\na: 2\n'), r'short|cut|end', 'failed'),
    ('body cut short, without a length', raw(HEAD + b'\r\na: 2\n'), r'length', 'failed'),
    ('chunked body cut short', raw(HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\na: 2\n\r\n'), r'short|cut|end', 'failed'),
    ('endless body', endless, r'large|bytes', 'failed'),
    ('404', good(b'a: 2\n', status='404 Not Found'), r'404', 'failed'),
    ('403', good(b'a: 2\n', status='403 Forbidden'), r'403', 'failed'),
    ('500', good(b'a: 2\n', status='500 Internal Server Error'), r'500', 'failed'),
    ('503', good(b'a: 2\n', status='503 Service Unavailable'), r'503', 'failed'),
    ('206', good(b'a: 2\n', status='206 Partial Content'), r'206', 'failed'),
    ('an HTML page', good(b'<html><body>log in: here</body></html>\n', 'Content-Type: text/html\r\n'), r'HTML', 'failed'),
    ('an HTML page called yaml', good(b'<html><body>log in</body></html>\n'), r'mapping', 'failed'),
    ('an empty body', good(b''), r'empty', 'failed'),
    ('only comments', good(b'# nothing\n'), r'empty|no document|mapping', 'failed'),
    ('a list', good(b'- a\n- b\n'), r'line 1, column 1.*mapping', 'failed'),
    ('bad yaml', good(b'a: 1\nb: [\n'), r'line \d+, column \d+', 'failed'),
    ('a duplicate key', good(b'a: 1\nb: 2\na: 3\n'), r'line 3, column 1.*duplicate', 'failed'),
    ('a NUL', good(b'a: "x\\0y"\n'), r'NUL', 'failed'),
    ('not UTF-8', good(b'a: \xff\xfe\n'), r'UTF-8|utf-8', 'failed'),
    ('a redirect', good(b'', 'Location: /elsewhere.yaml\r\n', '302 Found'), r'302|redirect', 'failed'),
    ('a redirect to a file', good(b'', 'Location: file:///etc/passwd\r\n', '301 Moved Permanently'), r'301|redirect', 'failed'),
    ('a reset', reset, r'reset|closed|connection', 'failed'),
    ('not HTTP', raw(b'SSH-2.0-OpenSSH_9.2\r\n'), r'HTTP|protocol', 'failed'),
    ('an encoding nobody asked for', good(b'a: 2\n', 'Content-Encoding: br\r\n'), r'encod', 'failed'),
    ('a gzip bomb', None, r'large|bytes', 'failed'),
]


def bomb():
    import gzip
    return good(gzip.compress(b'\0' * (64 << 20)), 'Content-Encoding: gzip\r\n')


class Faults(harness.Case):
    def start(self, more=''):
        server = FaultServer(self)
        server.behave = good(b'a: 1 # good\n', 'ETag: "1"\r\n')
        agent = Agent(self, self.config(server.url + '/web.yaml', f'    interval: 1h\n    timeout: 2s\n{more}'))
        agent.log.wait('published.*generation=1')
        return server, agent

    def test_each_fault_keeps_the_good_file_says_why_and_the_next_good_answer_is_taken(self):
        server, agent = self.start()
        version = 1
        for name, behave, why, counter in FAULTS:
            with self.subTest(name):
                before, at = agent.status(), agent.log.count
                server.behave = behave or bomb()
                outcome = agent.refresh()
                self.assertEqual(outcome['outcome'], 'failed')
                self.assertRegex(outcome['error'], why)
                agent.log.wait(why, at)
                after = agent.status()
                self.assertEqual(after['runs'][counter], before['runs'][counter] + 1, after['runs'])
                self.assertEqual(after['generation'], before['generation'])
                self.assertEqual(after['last_error'], outcome['error'])
                self.assertEqual(self.read('out/web.yaml'), f'a: {version} # good\n'.encode())

                version += 1
                server.behave = good(f'a: {version} # good\n'.encode(), f'ETag: "{version}"\r\n')
                outcome = agent.refresh()
                self.assertEqual(outcome['outcome'], 'published', outcome)
                self.assertEqual(self.read('out/web.yaml'), f'a: {version} # good\n'.encode())
                self.assertIsNone(agent.status()['last_error'])
        self.assertEqual(sorted(os.listdir(self.path('out'))), ['web.yaml'])
        agent.stop()

    def test_a_304_that_nobody_asked_for_is_refused(self):
        server = FaultServer(self)
        server.behave = good(b'', status='304 Not Modified')
        agent = Agent(self, self.config(server.url + '/web.yaml', '    interval: 1h\n'))
        agent.log.wait('304.*nothing was asked')
        self.assertFalse(os.path.exists(self.path('out/web.yaml')))
        agent.stop()

    def test_connection_refused_leaves_the_delay_and_a_timeout_doubles_it_up_to_the_bound(self):
        server, agent = self.start('    backoff_bound: 4\n')
        hour = 3600 * 1000
        self.assertEqual(agent.status()['delay_ms'], hour)
        server.behave = drip(b'')
        delays = []
        for _ in range(4):
            agent.refresh()
            delays.append(agent.status()['delay_ms'] // hour)
        self.assertEqual(delays, [2, 4, 4, 4])
        server.close()
        outcome = agent.refresh()
        self.assertRegex(outcome['error'], 'refused')
        self.assertEqual(agent.status()['delay_ms'], 4 * hour)
        self.assertEqual(agent.status()['runs']['failed'], 1)
        agent.stop()

    def test_success_restores_the_interval(self):
        server, agent = self.start()
        server.behave = drip(b'')
        agent.refresh()
        self.assertEqual(agent.status()['delay_ms'], 2 * 3600 * 1000)
        server.behave = good(b'a: 2\n')
        agent.refresh()
        self.assertEqual(agent.status()['delay_ms'], 3600 * 1000)
        agent.stop()

    def test_a_stopped_server_is_a_timeout_and_its_return_is_taken(self):
        serve, url, _ = self.serve()
        self.write('www/web.yaml', 'a: 1\n')
        agent = Agent(self, self.config(url + '/web.yaml', '    interval: 200ms\n    timeout: 300ms\n'))
        agent.log.wait('published.*generation=1')
        serve.signal(signal.SIGSTOP)
        agent.log.wait('timed out')
        self.assertGreater(agent.status()['delay_ms'], 200)
        self.write('www/web.yaml', 'a: 2\n')
        serve.signal(signal.SIGCONT)
        agent.log.wait('published.*generation=2')
        self.assertEqual(self.read('out/web.yaml'), b'a: 2\n')
        self.assertEqual(agent.status()['delay_ms'], 200)
        agent.stop()

    def test_a_server_that_is_not_there_at_start_is_taken_when_it_comes(self):
        server = FaultServer(self)
        port = server.port
        server.close()
        agent = Agent(self, self.config(f'http://127.0.0.1:{port}/web.yaml', '    interval: 100ms\n'))
        agent.log.wait('refused')
        self.assertFalse(os.path.exists(self.path('out/web.yaml')))
        self.assertEqual(agent.get('/readyz')[0], 503)
        import socket
        import threading
        listener = socket.create_server(('127.0.0.1', port))
        self.addCleanup(listener.close)

        def answer():
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.sendall(HEAD + b'Content-Length: 5\r\n\r\na: 1\n')
            connection.close()
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        agent.log.wait('published.*generation=1')
        self.assertEqual(agent.get('/readyz'), (200, 'ok\n'))
        thread.join(5)
        agent.stop()

    def test_stop_is_quick_while_a_server_hangs(self):
        server, agent = self.start('')
        server.behave = drip(b'')
        self.assertEqual(agent.post('/v1/configs/web/refresh')[0], 202)
        agent.stop()

    def test_repeated_refusals_do_not_flood_the_log(self):
        server = FaultServer(self)
        server.behave = good(b'x', status='500 Internal Server Error')
        agent = Agent(self, self.config(server.url + '/web.yaml', '    interval: 1h\n'))
        agent.log.wait('500')
        for _ in range(50):
            agent.refresh()
        agent.stop()
        self.assertEqual(len([line for line in agent.log.seen if 'answered 500' in line and '<7>' not in line]), 1)


if __name__ == '__main__':
    harness.main()
