"""`format: {template: FILE}`: what operators see of templates, and files for nginx, HAProxy and systemd, checked by these programs."""
import os
import re
import shutil
import signal
import subprocess

import harness
from harness import PULLETD, Agent

EXAMPLES = os.path.join(harness.ROOT, 'etc')


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        for d in ('src', 'tpl', 'out'):
            os.makedirs(self.path(d))
        os.chmod(self.dir, 0o755)

    def begin(self, configs, wait='published config=web generation=1'):
        config = f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}
servers: {{main: {{kind: file, urls: ["file://{self.path("src")}"]}}}}
configs:
{configs}'''
        self.agent = Agent(self, config)
        self.agent.log.wait(wait)

    def reload(self, wait):
        start = self.agent.log.count
        self.agent.signal(signal.SIGHUP)
        return self.agent.log.wait(wait, start=start)


class Templates(Case):
    CONFIG = '''  web:
    from: [{server: main, path: /web.yaml}]
    interval: 1h
    file: %s
    format: {template: %s}
'''

    def start(self, document='a: 1\nb: {c: x}\n', template='{{a}} {{b.c}}\n', **kw):
        self.write('src/web.yaml', document)
        self.write('tpl/web.mustache', template)
        self.begin(self.CONFIG % (self.path('out/web'), self.path('tpl/web.mustache')), **kw)

    def test_a_document_becomes_the_templates_text(self):
        self.write('tpl/part.mustache', 'part {{b.c}}\n')
        self.start(template='{{a}}\n  {{> part}}\n')
        self.assertEqual(self.read('out/web'), b'1\n  part x\n')
        self.write('src/web.yaml', 'a: 2\nb: {c: <&>}\n')
        self.agent.refresh()
        self.assertEqual(self.read('out/web'), b'2\n  part <&>\n')

    def test_a_changed_template_is_another_version_after_a_reload(self):
        self.write('tpl/part.mustache', 'one\n')
        self.start(template='{{a}}\n{{> part}}\n')
        self.reload('unchanged=1|configuration reloaded|reloaded')
        self.assertEqual(self.agent.status()['generation'], 1)
        self.write('tpl/part.mustache', 'two\n')
        self.reload('published config=web generation=2')
        self.assertEqual(self.read('out/web'), b'1\ntwo\n')

    def test_a_bad_template_is_a_bad_configuration(self):
        self.start()
        self.write('tpl/web.mustache', 'x\n{{#a}}\n')
        place = f'{self.path("tpl/web.mustache")}:2:1: the section \'a\' that begins here is not closed'
        self.assertIn(place, self.reload('is not closed'))
        self.assertEqual((self.read('out/web'), self.agent.status()['generation']), (b'1 x\n', 1))
        done = subprocess.run([PULLETD, '-t', '-c', self.agent.config_path], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertEqual(done.returncode, 78)
        self.assertRegex(done.stderr, f'pullet.yaml:[0-9]+:[0-9]+: {re.escape(place)}\n')
        os.unlink(self.path('tpl/web.mustache'))
        self.assertIn(f'cannot read {self.path("tpl/web.mustache")}', self.reload('cannot read'))

    def test_what_the_document_lacks_is_a_rejection_with_its_place(self):
        self.start()
        self.write('src/web.yaml', 'a: 2\nb: {d: secret}\n')
        self.agent.refresh()
        line = self.agent.log.wait('rejected by the format')
        self.assertIn('web.mustache:1:7: there is no \'b.c\' here', line)
        self.assertIn('(a changed template is read at SIGHUP, or with watch_config)', line)
        self.assertNotIn('secret', line)
        dry = subprocess.run([PULLETD, '--dry-run', '-c', self.agent.config_path], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        self.assertRegex(dry.stdout, r"web: rejected: .*there is no 'b\.c' here")
        self.assertNotIn('a changed template', dry.stdout)
        self.assertEqual(self.read('out/web'), b'1 x\n')
        self.write('tpl/web.mustache', '{{a}} {{b.d}}\n')
        self.reload('published config=web generation=[23]')
        self.assertEqual(self.read('out/web'), b'2 secret\n')

    def test_a_template_that_does_not_fit_the_document_leaves_what_is_published(self):
        """After a SIGHUP and after a start: the agent knows what readers have, and says why it is not what the template says."""
        self.start()
        self.write('tpl/web.mustache', '{{nothing}}\n')
        self.reload('rejected by the format')
        for again in (False, True):
            if again:
                self.agent.stop()
                os.unlink(self.path('out/web'))
                self.begin(self.CONFIG % (self.path('out/web'), self.path('tpl/web.mustache')), wait='rejected by the format')
            status = self.agent.status()
            self.assertEqual((status['state'], status['generation'], self.read('out/web')), ('failing', 1, b'1 x\n'))
            self.assertIn('nothing', status['last_error'])
        self.write('tpl/web.mustache', '{{a}}\n')
        self.reload('published config=web generation=2')
        self.assertEqual((self.read('out/web'), self.agent.status()['state']), (b'1\n', 'ok'))

    def test_a_value_stays_in_its_line(self):
        self.start(document='a: "1\\nevil 2"\nb: {c: x}\n', wait='rejected by the format')
        self.write('src/web.yaml', 'a: 1\nb: {c: x}\n')
        self.agent.refresh()
        self.assertEqual(self.read('out/web'), b'1 x\n')

    def test_the_last_known_good_is_rendered_again_at_a_start(self):
        self.start()
        self.agent.stop()
        os.unlink(self.path('out/web'))
        os.unlink(self.path('src/web.yaml'))
        self.write('tpl/web.mustache', 'now {{a}}\n')
        self.begin(self.CONFIG % (self.path('out/web'), self.path('tpl/web.mustache')), wait='published|generation=2')
        self.assertEqual(self.read('out/web'), b'now 1\n')


class Examples(Case):
    """etc/pullet.templates.yaml and what it names, as they stand but for the places."""

    def begin_example(self, name, template=None):
        with open(os.path.join(EXAMPLES, 'pullet.templates.yaml'), encoding='utf-8') as f:
            text = f.read()
        block = re.search(rf'^  {name}:\n(?:    .*\n)+', text, re.M)[0]
        block = re.sub(r'    reload: .*\n', '', block)
        block = re.sub(r'file: \S+/', f'file: {self.path("out")}/', block)
        block = block.replace('/etc/pullet/templates', self.path('tpl'))
        shutil.copytree(os.path.join(EXAMPLES, 'templates'), self.path('tpl'), dirs_exist_ok=True)
        shutil.copy(self.path(f'tpl/{name}.yaml'), self.path('src'))
        for file, before, after in template or []:
            self.write(f'tpl/{file}', self.read(f'tpl/{file}').decode().replace(before, after))
        self.begin(block, wait=f'published config={name} generation=1|rejected')
        self.assertEqual(self.agent.status(name)['generation'], 1, self.agent.log.seen)

    def rejects(self, name, before, after, says):
        """The program itself finds what is wrong with another version, and the file stays."""
        out = self.path('out/' + os.listdir(self.path('out'))[0])
        stands = self.read(out)
        document = self.read(f'src/{name}.yaml').decode()
        self.assertIn(before, document)
        self.write(f'src/{name}.yaml', document.replace(before, after))
        self.agent.refresh(name)
        self.assertRegex(self.agent.log.wait('rejected by the check'), says)
        self.assertEqual(self.read(out), stands)

    def test_nginx(self):
        temps = ''.join(f'{k}_temp_path {self.path(k)}; ' for k in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        self.begin_example('nginx', [('nginx.conf.mustache', 'access_log off;', f'access_log off; {temps}'),
                                     ('nginx.conf.mustache', '/run/nginx.pid', self.path('pid'))])
        text = self.read('out/nginx.conf').decode()
        self.assertIn('    upstream app {\n        server 127.0.0.1:9001 weight=3;\n        server 127.0.0.1:9002 backup;\n        keepalive 16;\n    }\n', text)
        self.assertIn('        location / {\n            proxy_pass http://app;\n        }\n        location /private/ {\n            return 404;\n', text)
        self.rejects('nginx', 'weight: 3', 'weight: heavy', 'invalid parameter')

    def test_haproxy(self):
        self.begin_example('haproxy')
        text = self.read('out/haproxy.cfg').decode()
        self.assertIn('    option httpchk GET /healthz\n    server one 127.0.0.1:9001 check weight 10\n    server two 127.0.0.1:9002 check weight 0\n', text)
        self.rejects('haproxy', 'balance: roundrobin', 'balance: fairly', 'balance only supports')

    def test_systemd(self):
        self.begin_example('myapp')
        text = self.read('out/myapp.service').decode()
        self.assertIn('After=network-online.target\n\n[Service]\nExecStart=/bin/sleep infinity\nEnvironment="GREETING=hello world"\nMemoryMax=64M\n', text)
        self.rejects('myapp', 'exec: /bin/sleep', 'exec: /none/sleep', 'none/sleep')


if __name__ == '__main__':
    harness.main()
