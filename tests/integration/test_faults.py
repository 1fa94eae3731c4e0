"""What becomes of the delay, of a start, of a stop and of the log while a server fails. In which ways it may fail is in test_misbehaviour.py."""
import os
import signal
import socket
import threading

import harness
from harness import Agent, FaultServer, drip, good


class Faults(harness.Case):
    def start(self, more=''):
        server = FaultServer(self)
        server.behave = good(b'a: 1 # good\n', 'ETag: "1"\r\n')
        agent = Agent(self, self.config(server.url + '/web.yaml', f'    interval: 1h\n    timeout: 2s\n{more}'))
        agent.log.wait('published.*generation=1')
        return server, agent

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
        listener = socket.create_server(('127.0.0.1', port))
        self.addCleanup(listener.close)

        def answer():
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na: 1\n')
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
        self.assertEqual(len([line for line in agent.log.seen if 'answered 500' in line and 'Z debug ' not in line]), 1)


if __name__ == '__main__':
    harness.main()
