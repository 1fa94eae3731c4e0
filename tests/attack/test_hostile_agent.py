#!/usr/bin/env python3
"""Who owns the runtime directory answers root's `pullet` in the agent's place: with answers that are large, deep, of millions of values, or of no meaning."""
import json
import os
import resource
import socket
import subprocess

import attack
import harness

COMMANDS = (('status',), ('status', '--json'), ('status', '--check'), ('status', '--names'), ('status', 'web'), ('wait', 'web', '--generation', '1'), ('refresh', 'web'), ('refresh', 'web', '--wait'), ('refresh',),
            ('rollback', 'web'), ('pin', 'web'), ('unpin', 'web'), ('override', 'web', 'a=1', '--for', '1m'), ('suspend', 'web'), ('resume', 'web'), ('history', 'web'),
            ('diff', 'web'), ('explain', 'web', 'a'))
CONFIG = {'name': 'web', 'state': 'ok'}
MEANINGLESS = {
    'an empty map': {}, 'another map': {'a': 1}, 'only ok': {'ok': True}, 'an error': {'error': 'none'},
    'other types': {'name': 1, 'ok': 'yes', 'generation': '1', 'outcome': 3, 'fired': 'no', 'configs': {}, 'configuration': [], 'versions': 'v', 'layers': 1, 'found': 1, 'equal': 0, 'state': 7},
    'lists of others': {'name': None, 'configs': [1], 'configuration': {}, 'versions': [[]], 'layers': ['x'], 'found': None},
    'configs without a name': {'configs': [{'state': 'ok'}], 'configuration': {}},
}
BOUND_KB = 1 << 19


class Hostile(harness.Case):
    def answered_by(self, body, status='200 OK'):
        """A socket that answers everything so."""
        path = self.path('s')
        if os.path.exists(path):
            os.unlink(path)
        head = f'HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n'.encode()

        def answer(peer):
            attack.request_head(peer)
            peer.sendall(head + body)
            peer.recv(1)
        listener = attack.Listener(self, answer, socket.AF_UNIX, path)
        self.addCleanup(listener.close)
        return path

    def pullet(self, path, *args):
        done = attack.run(harness.PULLET, args[0], '--socket', path, *args[1:], timeout=harness.DEADLINE * 2)
        return done[0], done[1] + done[2]

    def test_answers_of_no_meaning_are_no_success(self):
        for what, body in MEANINGLESS.items():
            path = self.answered_by(json.dumps(body).encode())
            for command in COMMANDS:
                with self.subTest(answer=what, command=command):
                    code, said = self.pullet(path, *command)
                    self.assertEqual(code, 1, said)
                    self.assertIn("the agent's answer cannot be read", said)

    def test_what_is_no_json_is_no_success(self):
        for body in (b'', b'ok\n', b'[]', b'{"ok":true,"name":"web","generation":1,', b'{"ok":true}' * 2, b'[' * 100000, b'\xff\xfe{}'):
            path = self.answered_by(body)
            for command in COMMANDS:
                with self.subTest(answer=body[:20], command=command):
                    code, said = self.pullet(path, *command)
                    self.assertEqual(code, 1, said)
                    self.assertIn("the agent's answer cannot be read", said)

    def test_a_refresh_that_is_not_waited_for_has_not_ended(self):
        path = self.answered_by(b'{"fired":true}', '202 Accepted')
        self.assertEqual(self.pullet(path, 'refresh', 'web')[0], 0)
        code, said = self.pullet(path, 'refresh', 'web', '--wait')
        self.assertEqual(code, 1)
        self.assertIn("the agent's answer cannot be read", said)

    def test_good_answers_are_taken(self):
        path = self.answered_by(json.dumps({'ok': True, 'name': 'web', 'generation': 3, 'origin': None, 'newer': {'a': []}}).encode())
        for command in (('wait', 'web', '--generation', '1'), ('rollback', 'web'), ('pin', 'web'), ('resume', 'web')):
            self.assertEqual(self.pullet(path, *command)[0], 0, command)

    def test_too_large_is_said(self):
        path = self.answered_by(b'{"a":"' + b'x' * (33 << 20) + b'"}')
        for command in COMMANDS:
            code, said = self.pullet(path, *command)
            self.assertEqual((code, said), (1, f"pullet {command[0]}: the agent's answer is too large\n"))

    def peak_kb(self, path, *args):
        with subprocess.Popen([harness.PULLET, args[0], '--socket', path, *args[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              preexec_fn=None if harness.SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))) as p:
            _, status, used = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
        return p.returncode, used.ru_maxrss

    def test_memory_is_bounded(self):
        size = 32 << 20
        worst = {'numbers': b'{"configs":[' + b'0,' * (size // 2 - 100) + b'0]}', 'lists': b'{"configs":[' + b'[],' * (size // 3 - 100) + b'0]}',
                 'maps': b'{"configs":[' + b'{"":{}},' * (size // 8 - 100) + b'0]}'}
        values = (1 << 20) - 200  # as many as pass, and as many bytes as those need
        worst |= {what: (b'{"configs":[' + item * (values // count - 10) + b'0]}').ljust(8 * values) for what, item, count in (
            ('texts', b'"345678901234",', 1), ('small maps', b'{"":{"":0}},', 3), ('a map of four', b'{"a":1,"b":2,"c":3,"d":"e"},', 5))}
        for what, body in worst.items():
            with self.subTest(what):
                code, kb = self.peak_kb(self.answered_by(body), 'status')
                self.assertEqual(code, 1)
                if not harness.SANITIZED:
                    self.assertLess(kb, BOUND_KB)

    def test_ten_thousand_configs_are_shown(self):
        configs = [{**CONFIG, 'name': f'config-{i:05}', 'url': 'https://configuration.example/' + 'x' * 200, 'last_error': None, 'runs': {'success': i}, 'generation': 1,
                    **{f'member_{n}': n for n in range(30)}} for i in range(10000)]
        path = self.answered_by(json.dumps({'configuration': {}, 'configs': configs}).encode())
        code, said = self.pullet(path, 'status', '--names')
        self.assertEqual((code, said.count('\n')), (0, 10000))


if __name__ == '__main__':
    harness.main()
