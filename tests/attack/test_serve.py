"""A hostile client of `pullet serve DIR`: nothing outside of DIR, nothing hidden, and its server goes on whatever is sent; and a program of the host
that renames files in DIR as fast as it can."""
import contextlib
import mmap
import os
import re
import socket
import statistics
import threading
import time

import attack
import harness

SECRET = 'outside-8f1c'


class Serve(harness.Case):
    def setUp(self):
        super().setUp()
        self.write('outside/secret.yaml', f'a: {SECRET}\n')
        self.write('www/web.yaml', 'a: 1\n')
        self.server, self.url, _ = self.serve()
        self.port = int(self.url.rsplit(':', 1)[1].strip('/').split('/')[0])
        reader = threading.Thread(target=self.read_log)  # a storm of changes is one of lines, which somebody must read
        reader.start()
        self.addCleanup(reader.join)
        self.addCleanup(self.server.process.kill)

    def read_log(self):
        while self.server.process.poll() is None:
            self.server.log.drain()

    def told(self, path, start=0):
        self.until(lambda: any(f'path={path} ' in line for line in self.server.log.seen[start:]), f'{path} is not told')

    def raw(self, request, wait=True):
        """(status, everything that came)"""
        with socket.create_connection(('127.0.0.1', self.port), harness.DEADLINE) as s:
            with contextlib.suppress(OSError):
                s.sendall(request if isinstance(request, bytes) else request.encode('latin-1'))
            data = b''
            with contextlib.suppress(OSError):
                while wait and (more := s.recv(65536)):
                    data += more
            found = re.match(rb'HTTP/1\.[01] (\d+)', data)
            return int(found[1]) if found else None, data

    def get(self, target):
        return self.raw(f'GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n\r\n')

    def serves(self):
        self.assertEqual(self.get('/web.yaml')[0], 200)


class Outside(Serve):
    def test_no_way_of_writing_a_path_leads_out(self):
        self.write('www/.hidden.yaml', f'a: {SECRET}\n')
        self.write('www/.git/config.yaml', f'a: {SECRET}\n')
        self.write('www/sub/in.yaml', 'a: 1\n')
        dots = ('..', '%2e%2e', '.%2e', '%252e%252e', '..%00', '..;', '%c0%ae%c0%ae')
        slashes = ('/', '%2f', '/./', '\\')
        for dot in dots:
            for slash in slashes:
                for front in ('/', '//', '/sub/../'):
                    for what in (f'{front}{dot}{slash}outside{slash}secret.yaml', f'{front}{dot}{slash}{dot}{slash}outside{slash}secret.yaml'):
                        status, answer = self.get(what)
                        self.assertNotIn(SECRET.encode(), answer, what)
                        self.assertNotEqual(status, 200, what)
        for what in ('/.hidden.yaml', '/%2ehidden.yaml', '/.git/config.yaml', '/sub/../.git/config.yaml', '/./.hidden.yaml', self.path('outside/secret.yaml'),
                     '/' + self.path('outside/secret.yaml'), f'http://127.0.0.1{self.path("outside/secret.yaml")}', '/web.yaml%00.html', '*', ''):
            self.assertNotIn(SECRET.encode(), self.get(what)[1], what)
        self.serves()

    def test_links_that_lead_out_are_not_served(self):
        os.symlink(self.path('outside/secret.yaml'), self.path('www/link.yaml'))
        os.symlink('../outside/secret.yaml', self.path('www/relative.yaml'))
        os.symlink(self.path('outside'), self.path('www/folder'))
        os.symlink('/proc/self/cwd', self.path('www/magic'))
        for what in ('/link.yaml', '/relative.yaml', '/folder/secret.yaml', f'/magic{self.path("outside/secret.yaml")}', '/magic/etc/hostname'):
            status, answer = self.get(what)
            self.assertIn(status, (403, 404), what)
            self.assertNotIn(SECRET.encode(), answer, what)
        self.serves()

    def test_what_is_no_file_does_not_hold_it(self):
        os.mkfifo(self.path('www/fifo.yaml'))
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.path('www/socket.yaml'))
            for what in ('/fifo.yaml', '/socket.yaml', '/'):
                self.assertIn(self.get(what)[0], (403, 404), what)
        self.serves()

    def test_a_folder_that_is_swapped_for_a_link(self):
        """While requests run, as fast as it goes."""
        os.makedirs(self.path('www/sub'))
        self.write('www/sub/secret.yaml', 'a: 1\n')
        os.symlink(self.path('outside'), self.path('www/other'))

        def swap(_number):
            attack.exchange(self.path('www/sub'), self.path('www/other'))
        swapper = attack.Other(self, os.getuid(), swap, gid=os.getgid())
        seen, end = set(), time.monotonic() + harness.DEADLINE
        for turn in range(2000):
            status, answer = self.get('/sub/secret.yaml')
            self.assertNotIn(SECRET.encode(), answer)
            seen.add(status)
            if time.monotonic() > end or turn > 300 and {200, 403} <= seen:
                break
        swapper.stop()
        self.assertLessEqual({200, 403}, seen)


class Storm(Serve):
    """A program renames as fast as it can. How long answers take is compared with the same while it does so elsewhere."""
    BLOCKS, REQUESTS, FACTOR = 5, 60, 50

    def setUp(self):
        super().setUp()
        for where in ('outside', 'www'):
            for name in ('one.yaml', 'other.yaml', 'new0.yaml', 'folder/in.yaml', *(f'many/{i}.yaml' for i in range(300))):
                self.write(f'{where}/{name}', f'a: {name}\n')
        self.told('many/299.yaml')

    def files(self, place, _number):
        attack.exchange(place + '/one.yaml', place + '/other.yaml')

    def folder(self, place, number):
        os.rename(*(place + ('/folder', '/moved')[(number + i) % 2] for i in range(2)))

    def names(self, place, number):
        os.rename(f'{place}/new{number}.yaml', f'{place}/new{number + 1}.yaml')

    def block(self):
        """The median of some requests, in seconds; of fewer, where they take long."""
        took, end = [], time.monotonic() + 2
        while len(took) < self.REQUESTS and time.monotonic() < end:
            begin = time.monotonic()
            self.serves()
            took.append(time.monotonic() - begin)
        return statistics.median(took)

    def best(self, storm, where):
        """The best of some blocks while the storm is there."""
        start, renames = self.server.log.count, mmap.mmap(-1, 8)

        def turn(number):
            storm(self.path(where), number)
            renames[0:8] = number.to_bytes(8, 'little')
        other = attack.Other(self, os.getuid(), turn, gid=os.getgid())
        self.until(lambda: int.from_bytes(renames[0:8], 'little') > 1000, 'there is no storm')
        found = min(self.block() for _ in range(self.BLOCKS))
        if where == 'www':
            self.write('www/web.yaml', f'a: {start}\n')
            self.told('web.yaml', start)
        other.stop()
        return found

    def test_answers_do_not_wait_for_it(self):
        storms = (self.files, self.folder, self.names)
        elsewhere = [self.best(storm, 'outside') for storm in storms]
        memory = attack.memory_kb(self.server.pid)
        for storm, calm in zip(storms, elsewhere, strict=True):
            with self.subTest(storm=storm.__name__):
                self.assertLess(self.best(storm, 'www'), self.FACTOR * calm)
        self.write('www/last.yaml', 'a: 1\n')
        self.told('last.yaml')
        self.assertTrue(harness.SANITIZED or attack.memory_kb(self.server.pid) - memory < 20000)


class Names(Serve):
    def test_a_page_with_a_name_of_its_own_cannot_read_it(self):
        for host, status in (('evil.example', 421), (f'evil.example:{self.port}', 421), (f'127.0.0.1.evil.example:{self.port}', 421), ('', 421),
                             (f'127.0.0.1:{self.port}', 200), (f'localhost:{self.port}', 200), ('[::1]', 200), ('upstream', 200)):
            with self.subTest(host=host):
                self.assertEqual(self.raw(f'GET /web.yaml HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n')[0], status)
        self.assertEqual(self.raw('GET /web.yaml HTTP/1.0\r\n\r\n')[0], 200)  # no browser leaves it out
        self.server.log.wait('request refused: this host does not go by that name name=evil.example')
        url = self.serve('--http-name', 'a.example', '--http-name', 'b.example')[1]
        self.port = int(url.rsplit(':', 1)[1].strip('/').split('/')[0])
        for host, status in (('b.example', 200), ('c.example', 421)):
            self.assertEqual(self.raw(f'GET /web.yaml HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n')[0], status)


class Inotify(harness.Case):
    LIMITED = 'echo $1 >/proc/sys/user/max_inotify_instances && echo $2 >/proc/sys/user/max_inotify_watches && shift 2 && exec "$@"'

    def limited(self, instances, watches, *command):
        return ['unshare', '--user', '--map-root-user', 'sh', '-c', self.LIMITED, 'sh', str(instances), str(watches), *command]

    def test_a_limit_is_named(self):
        if refused := harness.refusal(*self.limited(9, 9, 'true')):
            self.skipTest(f'limits of inotify of its own: {refused}')
        self.write('www/a/b.yaml', 'a: 1\n')
        for limits, says in (((0, 9), 'inotify instances left.*raise fs.inotify.max_user_instances'), ((9, 1), 'changes there will not be published.*raise fs.inotify.max_user_watches')):
            for command in (('serve', self.path('www'), '--http', '127.0.0.1:0'), ('relay', '--dir', self.path('www'))):
                with self.subTest(limits=limits, command=command):
                    p = harness.Program(self.limited(*limits, harness.PULLET, *command, '--push', 'tcp://127.0.0.1:0'), read='both')
                    self.addCleanup(p.close)
                    p.log.wait(says)


class Requests(Serve):
    def test_hostile_requests(self):
        big = 'x' * 70000
        for request in (b'\0' * 5000, b'GET', b'GET /\r\n', b'\r\n' * 10000, f'GET /{big} HTTP/1.1\r\nHost: a\r\n\r\n', f'GET /web.yaml HTTP/1.1\r\nHost: 127.0.0.1\r\nA: {big}\r\n\r\n',
                        'GET /web.yaml HTTP/1.1\r\nHost: 127.0.0.1\r\n' + 'A: b\r\n' * 100000 + '\r\n', 'POST /web.yaml HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n' + big,
                        'GET /web.yaml HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n', 'GET /web.yaml HTTP/9.9\r\n\r\n', 'PUT /web.yaml HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n',
                        'DELETE /web.yaml HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n', b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + os.urandom(500)):
            with socket.create_connection(('127.0.0.1', self.port), harness.DEADLINE) as s:
                with contextlib.suppress(OSError):
                    s.sendall(request if isinstance(request, bytes) else request.encode())
                    s.shutdown(socket.SHUT_WR)
                    while s.recv(65536):
                        pass
            self.serves()
        self.assertEqual(self.read('www/web.yaml'), b'a: 1\n')
        self.assertIsNone(self.server.process.poll())


if __name__ == '__main__':
    harness.main()
