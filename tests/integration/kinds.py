"""One agent before one configuration server of some kind: what the tests of the kinds share.

Every test ends with an orderly stop of its agents, and with a search for the secrets that it planted: in the log (level debug), in what the
status, the metrics and the page say, in the state and the runtime directory. `Leaks` in test_nacos.py shows that the search finds what is there.
"""
import base64
import os
import subprocess
import time
import urllib.parse

import harness
from harness import PULLETD, Agent

TIMEOUT = '5s' if harness.SANITIZED else '2s'


def spellings(secret):
    """As it is, and as it may stand in a URL, a form, a JSON text or a header."""
    yield secret
    yield urllib.parse.quote(secret, safe='')
    yield urllib.parse.quote_plus(secret)
    yield secret.replace('\\', '\\\\').replace('"', '\\"')
    for offset in range(3):  # base64 of a text that holds it: all but the letters at its ends
        text = base64.b64encode(b'\0' * offset + secret.encode()).decode()
        if len(text) > 12:
            yield text[4 if offset else 0:-4]


class Case(harness.Case):
    """The config web in out/web.yaml, which nothing pulls but what the test does: the interval is an hour."""

    def setUp(self):
        super().setUp()
        self.agent, self.agents, self.secrets = None, [], []

    def tearDown(self):
        for agent in self.agents:
            self.end(agent)
        super().tearDown()

    # -- agents

    def settings(self, server, path='/none', more='', configs='', timeout=TIMEOUT, agent=''):
        """`server`: what stands between the braces; `path`: of the document, or a list of them, the later ones win."""
        os.makedirs(self.path('out'), exist_ok=True)
        paths = [path] if isinstance(path, str) else path
        layers = ''.join(f'\n      - {p if p.startswith("{") else "{server: main, path: " + chr(34) + p + chr(34) + "}"}' for p in paths)
        return f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
  log: {{level: debug, format: text}}
{agent}
servers:
  main: {{{server}}}
configs:
  web:
    from:{layers}
    file: {self.path("out/web.yaml")}
    interval: 1h
    timeout: {timeout}
{more}
{configs}
'''

    def others(self, paths, more=''):
        """More configs, {name: path}, each in a file of its own."""
        return ''.join(f"""  {name}:
    from: [{{server: main, path: "{path}"}}]
    file: {self.path(f"out/{name}.yaml")}
    interval: 1h
{more}""" for name, path in paths.items())

    def begin(self, server, path, wait='published config=web generation=1', **kw):
        return self.run_agent(self.settings(server, path, **kw), wait)

    def run_agent(self, text, wait=None):
        self.agent = Agent(self, text)
        self.agents.append(self.agent)
        if wait:
            self.agent.log.wait(wait)
        return self.agent

    def again(self, wait=None):
        """Another agent with the same settings, after the last one has ended."""
        self.end(self.agent)
        return self.run_agent(self.read('pullet.yaml').decode(), wait)

    def complaints(self, server, path, **kw):
        """What `pulletd -t` has against these settings."""
        self.write('checked.yaml', self.settings(server, path, **kw))
        done = subprocess.run([PULLETD, '-t', '-c', self.path('checked.yaml')], capture_output=True, text=True, timeout=harness.DEADLINE, check=False)
        return done.returncode, done.stdout + done.stderr

    def end(self, agent):
        """Stops it, if nobody has; then nothing of it may hold a secret."""
        if agent.process.poll() is None:
            told = {} if not self.secrets else {
                'pullet status --json': agent.cli('status', '--json')[1], 'pullet status': agent.cli('status')[1],
                **{page: agent.get(page)[1] for page in ('/v1/status', '/metrics', '/readyz', '/')}}
            agent.stop()
            self.search(told)
        self.search({'the log': '\n'.join(agent.log.drain())})

    # -- secrets

    def plant(self, name, secret):
        """A file with that secret, which is searched for at the end; its path."""
        self.write(name, secret + '\n')
        self.hide(secret)
        return self.path(name)

    def hide(self, *secrets):
        """These are searched for as well."""
        self.secrets += [s for s in secrets if s not in self.secrets]

    def search(self, told):
        told = {where: text.encode() for where, text in told.items()}
        for top in ('state', 'run', 'out'):
            for folder, _, names in os.walk(self.path(top)):
                for name in names:
                    path = os.path.join(folder, name)
                    if os.path.isfile(path):
                        with open(path, 'rb') as f:
                            told[path[len(self.dir):]] = f.read()
        for secret in self.secrets:
            for spelling in spellings(secret):
                for where, text in told.items():
                    self.assertNotIn(spelling.encode(), text, f'{where} holds the secret {secret}')

    # -- what stands

    def standing(self, name='web'):
        return self.read(f'out/{name}.yaml').decode()

    def version(self, name='web'):
        return self.agent.status(name)['version']

    def stands(self, version, name='web'):
        """Until that version stands; nobody asks for it."""
        self.agent.stands(version, name)

    def refreshed(self, outcome, name='web'):
        got = self.agent.refresh(name)
        self.assertEqual(got['outcome'], outcome, got)
        return self.agent.status(name)

    def confirms(self, name='web'):
        """A pull finds the same, which counts as seen now, and publishes nothing."""
        before = self.agent.status(name)
        identity = os.stat(before['file'])
        after = self.refreshed('unchanged', name)
        self.assertGreater(after['confirmed_ms'], before['confirmed_ms'] or 0)
        self.assertEqual((after['generation'], after['version'], after['state'], after['cause'], after['last_error']),
                         (before['generation'], before['version'], 'ok', None, None))
        self.assertEqual((identity.st_ino, identity.st_mtime_ns), (os.stat(before['file']).st_ino, os.stat(before['file']).st_mtime_ns))

    def fails(self, cause, words, name='web'):
        """A pull fails for that cause, says these words, and what stood still stands; the whole sentence."""
        before = self.standing(name), self.agent.status(name)['generation']
        status = self.refreshed('failed', name)
        self.assertEqual((status['cause'], status['state']), (cause, 'failing'), status)
        self.assertRegex(status['last_error'], words)
        self.assertEqual((self.standing(name), status['generation']), before)
        self.assertIn(cause, self.agent.cli('status')[1])
        return status['last_error']

    def fails_at_first(self, cause, words, name='web'):
        """The first pull failed for that cause, and nothing is published."""
        self.agent.log.wait('pull failed|pull could not')
        status = self.agent.status(name)
        self.assertEqual((status['cause'], status['generation']), (cause, 0), status)
        self.assertRegex(status['last_error'], words)
        self.assertFalse(os.path.exists(self.path(f'out/{name}.yaml')))
        return status['last_error']

    def until(self, ready, what='it'):
        super().until(ready, lambda: f'{what} never came: {self.agent.get("/v1/status")[1]}')

    def quiet(self, server, seconds=1):
        """Until nothing has come to a server for so long: what a start or a message made the agent do is over, what the floor between pulls held up too."""
        end, requests = time.monotonic() + harness.DEADLINE, [None]
        while requests:
            self.assertLess(time.monotonic(), end, f'never quiet: {requests[-9:]}')
            with Window(server, seconds) as window:
                pass
            requests = window.requests

    def watching(self, state='watching', name='web'):
        self.until(lambda: self.agent.status(name)['watch']['state'] == state, f'the watch {state}')
        return self.agent.status(name)['watch']


class Window:
    """The requests that come to a server while it is open: `with Window(server, seconds) as w: ...; w.count(when)`. Its length is what is tested."""

    def __init__(self, server, seconds):
        self.server, self.seconds, self.requests = server, seconds, []

    def __enter__(self):
        self.start, self.first = time.monotonic(), self.server.count
        return self

    def __exit__(self, *_):
        time.sleep(max(0, self.start + self.seconds - time.monotonic()))
        self.requests = self.server.requests[self.first:]

    def count(self, when):
        return sum(1 for r in self.requests if when(r))
