"""A document that names the variables of whoever takes it into an environment: PATH, LD_PRELOAD, IFS and their like are refused, in `pullet
export` and in files that the agent writes; with a prefix they are harmless names."""
import os
import shutil
import subprocess

import attack  # noqa: F401: finds the harness
import harness
from harness import Agent, FaultServer, good

NAMES = ('path', 'PATH', 'Path', 'ld_preload', 'ld.preload', 'ld-library.path', 'ifs', 'env', 'bash_env', 'bash.func.ls', 'shellopts', 'ps4', 'pythonpath',
         'perl5opt', 'node.options', 'java_tool_options', '_java_options', 'gconv-path', 'git.ssh.command', 'home', 'terminfo', 'dyld_insert_libraries',
         'glibc_tunables', 'prompt.command')


class Shell(harness.Case):
    def setUp(self):
        super().setUp()
        self.server, self.turn = FaultServer(self), 0

    def show(self, text):
        self.turn += 1
        self.server.behave = good(text.encode(), f'ETag: "{self.turn}"\r\n')

    def export(self, *args):
        return subprocess.run([harness.PULLET, 'export', self.path('run/web.snap'), *args], capture_output=True, text=True, check=False)

    def test_export_refuses_names_of_the_shell(self):
        self.show('a: 1\n')
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n'))
        agent.refresh()
        for name in NAMES:
            with self.subTest(name):
                self.show(f'"{name}": /tmp/evil\nharmless: 2\n')
                agent.refresh()
                for form in ('sh', 'env'):
                    done = self.export('--format', form)
                    self.assertEqual((done.returncode, done.stdout), (1, ''))
                    self.assertRegex(done.stderr, r'would be the variable [A-Z0-9_]+, which .*--prefix')
                    self.assertIn('/tmp/evil', self.export('--format', form, '--prefix', 'APP_').stdout)
        self.show('ath: /tmp/evil\n')
        agent.refresh()
        self.assertEqual(self.export('--format', 'sh', '--prefix', 'P').returncode, 1, 'the whole name counts')
        agent.stop()

    def test_a_shell_that_takes_it_all_keeps_its_own(self):
        self.show('"path": /tmp/evil\nld: {preload: /tmp/evil.so}\nifs: /\n"a b": "$(touch %s) `touch %s`; \'x\\n"\n' % ((self.path('pwned'),) * 2))
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n'))
        agent.refresh()
        for shell in filter(shutil.which, ('sh', 'bash', 'dash')):
            script = f'eval "$({harness.PULLET} export {self.path("run/web.snap")} --format sh --prefix APP_)"; echo "$PATH|$LD_PRELOAD|$APP_LD_PRELOAD|$APP_PATH"'
            done = subprocess.run([shell, '-c', script], capture_output=True, text=True, check=True, env={'PATH': os.defpath})
            self.assertEqual(done.stdout, f'{os.defpath}||/tmp/evil.so|/tmp/evil\n')
        self.assertFalse(os.path.exists(self.path('pwned')))
        agent.stop()

    def test_a_published_env_file_has_none_of_them(self):
        """systemd's EnvironmentFile= would take them as they are."""
        self.show('app: {path: /opt}\n')
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    format: env\n    interval: 1h\n'))
        agent.refresh()
        self.assertEqual(self.read('out/web.yaml'), b'APP_PATH=/opt\n')
        for name in ('path', 'ld_preload', 'pythonpath'):
            self.show(f'"{name}": /tmp/evil\n')
            agent.refresh()
            self.assertEqual(self.read('out/web.yaml'), b'APP_PATH=/opt\n')
            self.assertIn('would be the variable', agent.cli('status', 'web')[1])
        agent.stop()


if __name__ == '__main__':
    harness.main()
