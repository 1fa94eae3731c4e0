#!/usr/bin/env python3
"""A user of the machine who swaps directories for links, and other directories, as fast as he can (RENAME_EXCHANGE), while an agent with
the rights of root publishes, tries, and keeps state there. Outside of his own directories nothing may change; where a directory is honest
the agent goes on. PULLET_ATTACK_SECONDS: how long (10)."""
import hashlib
import json
import os
import subprocess
import threading
import time

import attack
import harness
from attack import MALLORY, Other, exchange

SECONDS = float(os.environ.get('PULLET_ATTACK_SECONDS', '10'))
REFUSED = 'will not use the directory'


def manifest(root):
    """All that can be seen of a tree: {path: facts}."""
    seen = {}
    for folder, folders, names in os.walk(root):
        for name in ['.', *folders, *names]:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            content = None
            if os.path.islink(path):
                content = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, 'rb') as f:
                    content = hashlib.sha256(f.read()).hexdigest()
            seen[os.path.relpath(path, root)] = (st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_nlink, st.st_mtime_ns, content)
    return seen


class Hostile(harness.Case):
    """`victim` is root's, and has in it all that an agent would replace, remove, or take for its own; `home` is Mallory's."""

    @attack.needs_users
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest('it needs an agent with the rights of root')
        os.chmod(self.dir, 0o755)
        for name in ('victim', 'honest', 'sticky', 'open'):
            os.mkdir(self.path(name), 0o755)
        os.chmod(self.path('sticky'), 0o1777)
        os.chmod(self.path('open'), 0o777)
        os.mkdir(self.path('home'), 0o755)
        os.chown(self.path('home'), MALLORY, MALLORY)
        for folder in ('.', 'web', '..7-0123456789abcdef', '..check-0123456789abcdef'):
            folder = os.path.normpath(self.path(os.path.join('victim', folder)))
            os.makedirs(folder, exist_ok=True)
            for name in ('web.yaml', 'one.yaml', '.web.yaml.pullet-0123456789abcdef', '00000000000000000007', 'ledger', '.lock', 'x.gen', 'x.snap'):
                with open(os.path.join(folder, name), 'wb') as f:
                    f.write(b'of root\n')
                os.chmod(os.path.join(folder, name), 0o600)
        os.chmod(self.path('victim'), 0o755)
        self.before = manifest(self.path('victim'))
        self.swappers = []

    def hostile(self, name, uid=MALLORY):
        """A directory that changes places with a link to the victim's."""
        place = self.path(name)
        os.makedirs(place, exist_ok=True)
        os.chown(place, uid, uid)
        os.symlink(self.path('victim'), place + '.link')
        os.lchown(place + '.link', MALLORY, MALLORY)
        return place

    def swap(self, *names):
        places = [self.path(n) for n in names]
        self.swappers.append(Other(self, MALLORY, lambda n: exchange(places[n % len(places)], places[n % len(places)] + '.link')))

    def calm(self):
        for swapper in self.swappers:
            swapper.stop()
        self.swappers = []

    def untouched(self):
        after = manifest(self.path('victim'))
        changed = sorted(n for n in {*self.before, *after} if self.before.get(n) != after.get(n))
        self.assertEqual(changed, [], f'{len(changed)} of the victim\'s files were touched')

    def origin(self):
        """Says another thing each time."""
        server, counter = harness.FaultServer(self), iter(range(1, 1 << 40))

        def behave(connection, head, stopping):
            body = f'a: {next(counter)}\n'.encode()
            return harness.good(body, 'Content-Type: application/yaml\r\n')(connection, head, stopping)
        server.behave = behave
        return server

    def settings(self, url, configs, state='state', run='run'):
        return f'''agent:
  state_dir: {self.path(state)}
  runtime_dir: {self.path(run)}
  log: {{level: info, format: text}}
servers:
  a: {{kind: http, urls: ["{url}"]}}
configs:
''' + ''.join(self.one(name, more.splitlines()) for name, more in configs.items())

    @staticmethod
    def one(name, lines):
        layer = '{server: a, path: /web.yaml' + (', as: one.yaml}' if any(line.startswith('dir:') for line in lines) else '}')
        return '\n    '.join([f'  {name}:', 'interval: 100ms', f'snapshot: {str("snapshot" in lines).lower()}', f'from: [{layer}]',
                              *(line for line in lines if line != 'snapshot')]) + '\n'


class TestSwappedDirectories(Hostile):
    def test_nothing_outside_is_touched_and_what_is_honest_is_published(self):
        server = self.origin()
        owner = f'owner: "{MALLORY}:{MALLORY}"'
        configs = {'honest': f'file: {self.path("honest/web.yaml")}\nsnapshot',
                   'vain': f'file: {self.path("sticky/root/web.yaml")}'}
        os.mkdir(self.path('sticky/root'), 0o755)
        os.symlink(self.path('victim'), self.path('sticky/root.link'))
        os.lchown(self.path('sticky/root.link'), MALLORY, MALLORY)
        hostile = ['sticky/root']
        for where, uid in (('home', MALLORY), ('sticky', MALLORY), ('open', 0)):
            for kind, more in (('file', f'file: DIR/web.yaml\n{owner}'), ('below', 'file: DIR/web/web.yaml'), ('set', 'dir: DIR'),
                               ('trial', 'dir: DIR\ncheck: [/bin/sh, -c, "sleep 0.003", "{path}"]'),
                               ('tried', f'file: DIR/web.yaml\n{owner}\ncheck: [/bin/sh, -c, "sleep 0.003", "{{path}}"]')):
                name = f'{where}/{kind}'
                place = self.hostile(name, uid)
                if kind == 'below':
                    os.mkdir(place + '/web', 0o755)
                hostile.append(name)
                configs[f'{kind}-{where}'] = more.replace('DIR', place)
        agent = harness.Agent(self, self.settings(server.url, configs))
        self.swap(*hostile[:len(hostile) // 2])
        self.swap(*hostile[len(hostile) // 2:])
        starts = self.restarts(server)
        agent.ready()
        seen = set()
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(.05)  # what is tested is what happens in a time
            seen.add(self.read('honest/web.yaml') if os.path.exists(self.path('honest/web.yaml')) else b'')
        self.calm()
        self.untouched()
        starts()
        log = agent.log
        agent.stop()
        self.untouched()
        self.assertGreater(len(seen), SECONDS, 'the honest directory gets new versions')
        for name in configs:
            refused = any(REFUSED in line and f'config={name}' in line for line in log.seen)
            self.assertEqual(refused, name not in ('honest', 'vain'), f'{name}: {log.seen[:20]}')

    def restarts(self, server):
        """Agents whose state or runtime directory is hostile, started again and again, as a service manager does."""
        jobs, over = [], threading.Event()
        for kind in ('state', 'run'):
            for where, uid in (('home', MALLORY), ('sticky', MALLORY), ('open', 0)):
                self.hostile(f'{where}/{kind}', uid)
                jobs.append((kind, where))
        self.swap(*(f'{where}/{kind}' for kind, where in jobs))
        files = []
        for kind, where in jobs:
            own = f'own-{kind}-{where}'
            places = {'state': f'{own}/state', 'run': f'{own}/run', kind: f'{where}/{kind}'}
            self.write(f'{own}/pullet.yaml', self.settings(server.url, {'web': f'file: {self.path(own + "/out/web.yaml")}\nsnapshot'}, **places))
            os.makedirs(self.path(own + '/out'))
            files.append(self.path(own + '/pullet.yaml'))
        codes = []

        def run():
            while not over.is_set():
                for path in files:
                    p = subprocess.run([harness.PULLETD, '-c', path, '--once'], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
                    codes.append((p.returncode, p.stderr))
        thread = threading.Thread(target=run)
        thread.start()

        def stop():
            over.set()
            thread.join()
            self.assertGreater(len(codes), len(files))
            for code, said in codes:
                self.assertNotEqual(code, 0)
                self.assertIn('cannot use the directory', said)
        self.addCleanup(over.set)
        return stop

    def test_a_refusal_is_told_beforehand_in_the_log_the_status_and_a_metric(self):
        server = self.origin()
        os.makedirs(self.path('home/app'))
        agent = harness.Agent(self, self.settings(server.url, {'web': f'file: {self.path("home/app/web.yaml")}'}))
        says = f'its part {self.path("home")} belongs to uid {MALLORY}'
        agent.log.wait(f'config=web why="will not use the directory {self.path("home/app")}: {says}')
        self.assertIn(says, json.dumps(agent.status()))
        self.assertRegex(agent.get('/metrics')[1], r'pullet_config_failure{config="web"} [1-9]')
        for command, code in (([harness.PULLET, 'doctor', '-c', agent.config_path], 1), ([harness.PULLETD, '-t', '-c', agent.config_path], 0)):
            done = attack.run(*command)
            self.assertEqual(done[0], code, done)
            self.assertIn(says, done[1] + done[2])
        agent.stop()


if __name__ == '__main__':
    harness.main()
