"""nginx as the configuration server: ETag, 304, gzip on the fly, TLS with HTTP/2, mode and formats of the published file."""
import json
import os
import pwd
import subprocess
import time

import harness
from harness import Agent, Nginx


def certificate(test, name='127.0.0.1', days='2'):
    cert, key = test.path(f'{name}.pem'), test.path(f'{name}.key')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', days,
                    '-keyout', key, '-out', cert, '-subj', f'/CN={name}', '-addext', f'subjectAltName=IP:{name}'],
                   check=True, capture_output=True)
    return cert, key


def requests(nginx):
    with open(nginx.access_log, encoding='utf-8') as f:
        return [line.split('"')[1:3] for line in f]


class WithNginx(harness.Case):
    def write_older(self, name, text, seconds=60):
        """Writes a file that was modified that long ago."""
        self.write(name, text)
        at = time.time() - seconds
        os.utime(self.path(name), (at, at))

    def test_two_changes_within_a_second_are_both_seen(self):
        for server in ('', 'etag off;'):
            nginx = Nginx(self, server=server)
            self.write('www/web.yaml', 'a: 0\n')
            agent = Agent(self, self.config(nginx.url + '/web.yaml', '    interval: 1h\n'))
            agent.log.wait('published.*generation=1')
            for n in range(1, 6):  # of the same length: nginx makes its ETag of that and of the second
                self.write('www/web.yaml', f'a: {n}\n')
                self.assertEqual((agent.refresh()['outcome'], self.read('out/web.yaml')), ('published', b'a: %d\n' % n))
            agent.stop()
            nginx.close()
            for d in ('out', 'state', 'run'):
                subprocess.run(['rm', '-rf', self.path(d)], check=True)

    def test_force_asks_for_the_whole_document(self):
        nginx = Nginx(self)
        self.write_older('www/web.yaml', 'a: 1\n')
        agent = Agent(self, self.config(nginx.url + '/web.yaml', '    interval: 1h\n'))
        agent.log.wait('published.*generation=1')
        at = os.stat(self.path('www/web.yaml')).st_mtime
        self.write('www/web.yaml', 'a: 2\n')
        os.utime(self.path('www/web.yaml'), (at, at))  # which nothing but the content tells
        self.assertEqual((agent.refresh()['outcome'], self.read('out/web.yaml')), ('unchanged', b'a: 1\n'))
        self.assertEqual(agent.post('/v1/configs/web/refresh?wait=1&force=1')[0], 200)
        self.assertEqual(self.read('out/web.yaml'), b'a: 2\n')
        agent.stop()

    def test_pull_then_304_then_the_new_version(self):
        nginx = Nginx(self)
        self.write_older('www/web.yaml', 'db:\n  host: one # comment\n')
        agent = Agent(self, self.config(nginx.url + '/web.yaml', '    interval: 1h\n'))
        agent.log.wait('published.*generation=1')
        self.assertEqual(self.read('out/web.yaml'), b'db:\n  host: one # comment\n')
        self.assertEqual(agent.refresh()['outcome'], 'unchanged')
        self.write('www/web.yaml', 'db:\n  host: number two\n')
        self.assertEqual(agent.refresh()['outcome'], 'published')
        self.assertEqual(self.read('out/web.yaml'), b'db:\n  host: number two\n')
        agent.stop()
        nginx.close()
        self.assertEqual([r[1].split()[0] for r in requests(nginx)], ['200', '304', '200'])

    def test_last_modified_alone_is_enough_for_304(self):
        nginx = Nginx(self, server='etag off;')
        self.write_older('www/web.yaml', 'a: 1\n')
        agent = Agent(self, self.config(nginx.url + '/web.yaml', '    interval: 1h\n'))
        agent.log.wait('published')
        self.assertEqual(agent.refresh()['outcome'], 'unchanged')
        agent.stop()
        nginx.close()
        self.assertEqual([r[1].split()[0] for r in requests(nginx)], ['200', '304'])

    def test_gzip_on_the_fly_is_decoded_and_its_weak_etag_gives_304(self):
        nginx = Nginx(self, http='gzip on; gzip_min_length 1; gzip_types application/yaml;')
        text = 'list:\n' + '  - the same line again and again\n' * 2000
        self.write_older('www/web.yaml', text)
        agent = Agent(self, self.config(nginx.url + '/web.yaml', '    interval: 1h\n'))
        agent.log.wait('published')
        self.assertEqual(self.read('out/web.yaml'), text.encode())
        self.assertTrue(agent.status()['version'].startswith('W/'), agent.status())
        self.assertEqual(agent.refresh()['outcome'], 'unchanged')
        agent.stop()
        nginx.close()
        first, second = requests(nginx)
        self.assertLess(int(first[1].split()[1]), 2000, 'the body went over the wire compressed')
        self.assertEqual(second[1].split()[0], '304')

    def test_tls_with_http_2(self):
        cert, key = certificate(self)
        nginx = Nginx(self, ssl=(cert, key))
        self.write('www/web.yaml', 'a: 1\n')
        agent = Agent(self, self.config(nginx.url + '/web.yaml', '    interval: 1h\n'), env={'SSL_CERT_FILE': cert})
        agent.log.wait('published')
        self.assertEqual(agent.refresh()['outcome'], 'unchanged')
        agent.stop()
        nginx.close()
        self.assertEqual([r[0] for r in requests(nginx)], ['GET /web.yaml HTTP/2.0'] * 2)

    def test_a_certificate_nobody_vouches_for_is_refused_and_named(self):
        nginx = Nginx(self, ssl=certificate(self))
        self.write('www/web.yaml', 'a: 1\n')
        agent = Agent(self, self.config(nginx.url + '/web.yaml', '    interval: 1h\n'))
        line = agent.log.wait('pull failed')
        self.assertRegex(line, 'certificate')
        self.assertFalse(os.path.exists(self.path('out/web.yaml')))
        agent.stop()

    def test_one_connection_is_kept_for_many_pulls(self):
        nginx = Nginx(self, http='log_format c "$connection"; access_log /dev/null c;',
                      server=f'access_log {self.path("connections")} c;')
        self.write('www/web.yaml', 'a: 1\n')
        agent = Agent(self, self.config(nginx.url + '/web.yaml', '    interval: 1h\n'))
        agent.log.wait('published')
        for _ in range(10):
            agent.refresh()
        agent.stop()
        nginx.close()
        seen = self.read('connections').split()
        self.assertEqual((len(seen), len(set(seen))), (11, 1))

    def test_the_environment_s_proxy_is_not_used(self):
        nginx = Nginx(self)
        self.write('www/web.yaml', 'a: 1\n')
        proxy = 'http://127.0.0.1:9'
        agent = Agent(self, self.config(nginx.url + '/web.yaml'), env={k: proxy for k in ('http_proxy', 'all_proxy', 'ALL_PROXY')})
        agent.log.wait('published')
        agent.stop()

    def test_formats_mode_and_json_numbers(self):
        nginx = Nginx(self)
        self.write('www/web.json', '{"b": 9007199254740993, "a": [1.5, true, null, "no"], "c": {"d": "x: y"}}')
        want = {'b': 9007199254740993, 'a': [1.5, True, None, 'no'], 'c': {'d': 'x: y'}}
        os.makedirs(self.path('out'))
        agent = Agent(self, f'''
agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
configs:
  j2y: {{url: "{nginx.url}/web.json", file: {self.path("out/a.yaml")}, format: yaml, mode: "0600"}}
  j2j: {{url: "{nginx.url}/web.json", file: {self.path("out/a.json")}, format: json, mode: 0644}}
  raw: {{url: "{nginx.url}/web.json", file: {self.path("out/raw.json")}}}
''')
        agent.log.wait('started')
        for name in ('j2y', 'j2j', 'raw'):
            agent.refresh(name)
        import yaml
        self.assertEqual(yaml.safe_load(self.read('out/a.yaml')), want)
        self.assertEqual(json.loads(self.read('out/a.json')), want)
        self.assertEqual(self.read('out/raw.json'), self.read('www/web.json'))
        self.assertEqual([oct(os.stat(self.path('out/' + f)).st_mode & 0o7777) for f in ('a.yaml', 'a.json', 'raw.json')],
                         ['0o600', '0o644', '0o640'])
        agent.stop()

    def test_owner(self):
        nginx = Nginx(self)
        self.write('www/web.yaml', 'a: 1\n')
        uid, gid = (os.getuid(), os.getgid()) if harness.lacks('to give files away') else (65534, 1234)
        agent = Agent(self, self.config(nginx.url + '/web.yaml', f'    owner: {pwd.getpwuid(uid).pw_name}:{gid}\n'))
        agent.log.wait('published')
        st = os.stat(self.path('out/web.yaml'))
        self.assertEqual((st.st_uid, st.st_gid), (uid, gid))
        agent.stop()

    def test_nginx_stopped_with_sigstop_then_continued(self):
        import signal
        nginx = Nginx(self)
        self.write('www/web.yaml', 'a: 1\n')
        agent = Agent(self, self.config(nginx.url + '/web.yaml', '    interval: 100ms\n    timeout: 300ms\n'))
        agent.log.wait('published')
        nginx.stop_all(signal.SIGSTOP)
        agent.log.wait('timed out')
        nginx.stop_all(signal.SIGCONT)
        self.write('www/web.yaml', 'a: 22\n')
        agent.log.wait('published.*generation=2')
        agent.stop()

    def test_hundred_changes_one_after_the_other(self):
        nginx = Nginx(self)
        self.write('www/web.yaml', 'n: 0\n')
        agent = Agent(self, self.config(nginx.url + '/web.yaml', '    interval: 1h\n'))
        agent.log.wait('published')
        for i in range(1, 101):
            self.write('www/web.yaml', f'n: {i}\npad: {"x" * i}\n')
            os.utime(self.path('www/web.yaml'), (time.time(), 1700000000 + i))
            self.assertEqual(agent.refresh()['generation'], i + 1)
            self.assertEqual(self.read('out/web.yaml').split()[1], str(i).encode())
        self.assertEqual(len([f for f in os.listdir(self.path('state/web')) if f.isdigit()]), 10, 'ten generations are kept')
        agent.stop()


if __name__ == '__main__':
    harness.main()
