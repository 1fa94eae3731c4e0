#!/usr/bin/env python3
"""The secret key of signatures and its password: whatever `pullet keygen --sign` and `pullet sign` are given, they are in no output, no command line, no core and not left in memory;
and an agent that takes what the key has signed knows nothing of it. Who may see what is the table WHO SEES WHAT of pulletd(8), row "signing key"."""
import base64
import contextlib
import hashlib
import json
import os
import signal
import subprocess

import attack
import harness
from test_change import Origin
from test_secrets import Case

LOOK = harness.LOOK
NAMES = ('plain', 'sealed')


class Keys(Case):
    def setUp(self):
        super().setUp()
        os.chown(self.dir, attack.AGENT, attack.AGENT)
        self.file('password', 'signing key')
        os.chown(self.path('password'), attack.AGENT, attack.AGENT)
        self.write('doc.yaml', 'n: 1\n')

    def of(self, name):
        """Options for a key."""
        return ('--password-file', self.path('password')) if name == 'sealed' else ()

    def pullet_(self, *args, code=1):
        """Runs it, and looks at what it says."""
        got, out, err = attack.run(self.pullet, *args, user=(attack.AGENT,), cwd=self.dir)
        self.assertEqual(got, code, (args, out, err))
        self.secrets.look('OPERATOR', args, out + err)
        return out + err

    def know(self, name):
        """Remembers the secrets of a key: what is in its file, and what the password opens of that."""
        box = base64.b64decode(self.read(name).split(b'\n')[1])
        self.assertEqual(len(box), 158)
        seed = box[62:94]
        if name == 'sealed':
            self.secrets.adopt(seed, 'signing key')
            stream = hashlib.scrypt(self.secrets['password'].encode(), salt=box[6:38], n=1 << 17, r=8, p=1, maxmem=1 << 28, dklen=104)
            seed = bytes(a ^ b for a, b in zip(seed, stream[8:40], strict=True))
        for half in (seed[:16], seed[16:]):
            self.secrets.adopt(half, 'signing key')
        return seed

    def make(self):
        said = {name: self.pullet_('keygen', '--sign', name, *self.of(name), code=0) for name in NAMES}
        for name in NAMES:
            self.know(name)
            self.secrets.look('OPERATOR', 'pullet keygen', said[name])

    def sign(self, name, *more, code=1, key=None):
        said = self.pullet_('sign', 'doc.yaml', '-s', key or name, *self.of(name), *more, code=code)
        with contextlib.suppress(FileNotFoundError):
            self.secrets.look('FILE', 'the signature', self.read('doc.yaml.minisig'))
        return said

    def secret(self, name, text):
        self.write(name, text)
        os.chmod(self.path(name), 0o600)
        os.chown(self.path(name), attack.AGENT, attack.AGENT)

    def test_what_is_said(self):
        self.make()
        for name in NAMES:
            self.pullet_('keygen', '--sign', name, *self.of(name))
            self.assertIn('rev=1', self.sign(name, '--rev', '1', code=0))
            self.assertIn('rev=2', self.sign(name, code=0))
            for text, why in self.bad(self.read(name)).items():
                self.secret('bad', text)
                self.assertIn(why, self.sign(name, key='bad'))
        self.assertIn('none is known', self.pullet_('sign', 'doc.yaml', '-s', 'sealed'))
        self.write('open', self.read('plain'))
        self.assertIn('by others', self.sign('plain', key='open'))
        self.confuse()

    @staticmethod
    def bad(text):
        """{a file that is no key any more: what is said of it}"""
        first, second = text.split(b'\n')[:2]
        swapped = second[:90] + second[100:110] + second[90:100] + second[110:]
        sealed = b'encrypted' in first
        return {second: 'line 1', first + b'\n' + second[:150] + b'\n': 'line 2', text + second: 'goes on', first + b'\nA' + second[1:] + b'\n': 'another algorithm',
                first + b'\n' + swapped + b'\n': 'not its password' if sealed else 'damaged', text * 20: 'goes on' if len(text) * 20 <= 4096 else 'too large',
                b'x' + text: 'line 1', first + second: 'line 1', first + b'\n!' + second + b'\n': 'line 2'}

    def confuse(self):
        """Each file in the place of another."""
        curve, free = self.path('curve'), '127.0.0.1:0'
        self.pullet_('keygen', 'curve', code=0)
        for name in NAMES:
            self.pullet_('sign', 'doc.yaml', '-s', 'sealed', '--password-file', name)
            self.pullet_('sign', name, '-s', name, *self.of(name), code=0)
            self.secrets.look('FILE', 'a signature of a key', self.read(name + '.minisig'))
            for command in (('serve', self.dir, '--http', free), ('publish', 'a'), ('relay', '--dir', self.dir)):
                at = ('--endpoint' if command[0] == 'publish' else '--push', f'tcp://{free}')
                self.pullet_(*command, *at, '--curve-secret-key', name)
                self.pullet_(*command, *at, '--curve-secret-key', curve, '--curve-allow', name)
            self.pullet_('fleet', '--etcd', f'http://{free[:-1]}9', '--user', 'u', '--password-file', name)
        for user in ('password', curve, 'doc.yaml'):
            self.pullet_('sign', 'doc.yaml', '-s', user, *self.of('sealed'))

    def test_an_agent_knows_nothing_of_it(self):
        self.make()
        origin = Origin(self)
        public = self.read('plain.pub').decode().split('\n')[1]
        configs = {'web': {'url': origin.url + '/doc.yaml', 'file': self.path('out/web'), 'interval': '1h', 'verify': {'public_keys': [public]}}}

        origin.put('/doc.yaml', self.read('doc.yaml'))
        signatures = {}
        for name in NAMES:
            self.sign(name, code=0)
            signatures[name] = self.read('doc.yaml.minisig')
        os.chown(self.dir, 0, 0)
        origin.put('/doc.yaml.minisig', signatures['plain'])
        self.start(json.dumps({'agent': self.of_agent(), 'configs': configs}))
        self.agent.log.wait('published.*config=web')
        origin.put('/doc.yaml', b'n: 2\n')
        origin.put('/doc.yaml.minisig', signatures['sealed'])
        self.assertIn('sign', self.refresh('web')['error'])
        self.look('a signature of another key')
        for name in NAMES:  # a secret key in the place of a public one
            at = self.agent.log.count
            text = self.read(name).decode().split('\n')[1]
            configs['web']['verify']['public_keys'] = [text]
            self.write('pullet.yaml', json.dumps({'agent': self.of_agent(), 'configs': configs}))
            self.agent.signal(signal.SIGHUP)
            self.agent.log.wait('nothing was changed', at)
            _, out, err = attack.run(harness.PULLETD, '-t', '-c', self.agent.config_path)
            self.assertIn('is not a public key', out + err)
            self.secrets.look('OPERATOR', 'pulletd -t', out + err)
            self.look(f'the secret key {name} as a public one', commands=False)
        self.end()

    @contextlib.contextmanager
    def held(self, *args, made):
        """A command at its end: nobody reads what it says, and the file that it makes is there."""
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(writer, b'x' * 4096):
                pass
        with contextlib.suppress(BlockingIOError):
            while os.write(writer, b'x'):
                pass
        os.set_blocking(writer, True)
        p = subprocess.Popen(['prlimit', '--core=unlimited:unlimited', *attack.as_user(attack.AGENT), self.pullet, *args], cwd=self.dir,
                             stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.DEVNULL)
        try:
            self.until(lambda: os.path.exists(self.path(made)), f'{made} is not made')
            yield p
        finally:
            p.kill()
            p.wait()
            os.close(reader)
            os.close(writer)

    @staticmethod
    def memory(pid):
        """What it may write to."""
        found = []
        with open(f'/proc/{pid}/maps', encoding='utf-8') as maps, open(f'/proc/{pid}/mem', 'rb') as memory:
            for line in maps:
                where, rights, *_ = line.split()
                if rights[1] == 'w':
                    begin, end = (int(n, 16) for n in where.split('-'))
                    memory.seek(begin)
                    found.append(memory.read(end - begin))
        return b''.join(found)

    @harness.needs(LOOK)
    def test_nothing_of_it_is_left_in_a_process(self):
        commands = {**{('keygen', '--sign', name, *self.of(name)): f'{name}.pub' for name in NAMES},
                    **{('sign', 'doc.yaml', '-s', name, *self.of(name), '-o', f'{name}.sig'): f'{name}.sig' for name in NAMES}}
        for args, made in commands.items():
            with self.subTest(args=args), self.held(*args, made=made) as p:
                seed = self.know(args[2] if args[0] == 'keygen' else args[3])
                for what in ('cmdline', 'environ'):
                    with open(f'/proc/{p.pid}/{what}', 'rb') as f:
                        self.secrets.look('HOOK', f'{what} of {args}', f.read())
                if harness.SANITIZED:  # which has memory and signal handlers of its own, and has itself dumped to look for leaks
                    continue
                self.assertEqual(os.stat(f'/proc/{p.pid}/environ').st_uid, 0, 'others may look into it')
                self.assertIn(made.encode(), self.memory(p.pid))
                for secret in (self.secrets['password'].encode()[:18], seed[:16], seed[16:], *self.secrets.never):
                    self.until(lambda: secret not in self.memory(p.pid), f'{args}: {secret} stays in memory')  # noqa: B023
                p.send_signal(signal.SIGSEGV)
                self.assertFalse(os.WCOREDUMP(os.waitpid(p.pid, 0)[1]))
                p.returncode = -signal.SIGSEGV
        self.secrets.check()


if __name__ == '__main__':
    harness.main()
