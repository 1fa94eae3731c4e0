"""The status page in headless Chromium, on a real agent: what it shows, that it follows, that it asks nobody else, and that everybody can use it."""
import http.server
import json
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest
from base64 import b64decode

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'integration'))
import harness  # noqa: E402
from harness import Agent, Case, FaultServer, good  # noqa: E402

ARGUMENTS = ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking',
             '--disable-component-update', '--disable-sync', '--disable-extensions', '--no-proxy-server', '--hide-scrollbars', '--host-resolver-rules=MAP *.example 127.0.0.1')
PICTURES = os.path.join(harness.BUILD, 'packages', 'page')  # to be looked at

# every visible text whose contrast with what is behind it is too small: [text, ratio]
CONTRAST = '''
const parse = (c) => { const p = c.match(/[\\d.]+/g).map(Number); return [p[0], p[1], p[2], p.length > 3 ? p[3] : 1]; };
const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
const found = [];
let seen = 0;
for (const e of document.querySelectorAll('body *')) {
  const own = [...e.childNodes].filter((n) => n.nodeType === 3 && n.data.trim()).map((n) => n.data.trim()).join(' ');
  if (!own || !e.checkVisibility() || e.closest('.unseen, .skip, noscript')) continue;
  const s = getComputedStyle(e);
  const [a, b] = [light(parse(s.color)), light(ground(e))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  seen++;
  if (ratio < 4.5) found.push([own, ratio]);
}
return [seen, found];
'''


class Tunnel:
    """What `ssh -L PORT:SOCKET` does: a TCP port whose connections are those of a Unix socket."""

    def __init__(self, test, path):
        self.path = path
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url = f'http://localhost:{self.listener.getsockname()[1]}/'
        self.open = []
        threading.Thread(target=self.accept, daemon=True).start()
        test.addCleanup(self.close)

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self.path)
            except OSError:
                return
            self.open += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    @staticmethod
    def pump(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        for s in (self.listener, *self.open):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()


BROWSERS = []  # one for all tests: it takes longer to start than most of them


def browser():
    if not BROWSERS:
        directory = tempfile.TemporaryDirectory(prefix='pullet-test-')
        options = Options()
        options.binary_location = '/usr/bin/chromium'
        for argument in (*ARGUMENTS, f'--user-data-dir={directory.name}'):
            options.add_argument(argument)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
        found = webdriver.Chrome(service=Service('/usr/bin/chromedriver'), options=options)
        # counted before any script of the page runs
        found.execute_cdp_cmd('Page.addScriptToEvaluateOnNewDocument', {'source': 'window.violations = []; window.mistakes = [];'
                              'addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI)); '
                              'addEventListener("error", (e) => mistakes.push(String(e.message))); '
                              'addEventListener("unhandledrejection", (e) => mistakes.push(String(e.reason)));'})
        unittest.addModuleCleanup(directory.cleanup)
        unittest.addModuleCleanup(found.quit)
        BROWSERS.append(found)
    return BROWSERS[0]


class PageCase(Case):
    def setUp(self):
        super().setUp()
        self.server = FaultServer(self)
        self.documents = {}
        self.server.behave = lambda connection, head, stopping: self.documents.get(head.split()[1], good(b'a: 1\n'))(connection, head, stopping)
        with socket.create_server(('127.0.0.1', 0)) as probe:
            self.port = probe.getsockname()[1]
        self.url = f'http://127.0.0.1:{self.port}/'

    def agent(self, names, more='', agent='', push='', interval='1h', second=''):
        """Each config pulls /NAME.yaml of the one server, which may have a second address."""
        configs = ''.join(f'  {n}: {{from: [{{server: main, path: /{n}.yaml}}], interval: {interval}{more}}}\n' for n in names)
        program = Agent(self, f'''agent:
  state_dir: {self.path("state")}
  runtime_dir: {self.path("run")}
  listen: 127.0.0.1:{self.port}
  labels: {{zone: eu-1}}
  log: {{level: debug}}
{agent}
{push}
servers: {{main: {{urls: ["{self.server.url}"{second}], max_in_flight: 16}}}}
configs:
{configs}''')
        program.ready()
        return program

    def published(self, agent, *names):
        for name in names:
            agent.log.wait(rf'published.*config={name}\b')

    def put(self, agent, name, text):
        self.documents[f'/{name}.yaml'] = good(text.encode())
        return agent.refresh(name)

    def open(self, url=None, dark=False, width=None, features=()):
        self.browser = browser()
        self.browser.get('about:blank')
        for kind in ('browser', 'performance'):
            self.browser.get_log(kind)  # of what was before
        self.cdp('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}, *features])
        self.cdp('Emulation.setDeviceMetricsOverride', width=width or 1280, height=900, deviceScaleFactor=1, mobile=bool(width))
        self.browser.get(url or self.url)
        self.addCleanup(self.browser.get, 'about:blank')
        self.until(lambda: self.text('#heard') == 'live', 'the page is live')

    def cdp(self, command, **arguments):
        return self.browser.execute_cdp_cmd(command, arguments)

    def js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.js('const e = document.querySelector(arguments[0]); return e && e.checkVisibility() ? e.innerText : ""', selector)

    def row(self, name, table='#config-rows'):
        """The texts of a row, by its name: state, name cell, numbers; None = there is none."""
        return self.js('''for (const tr of document.querySelectorAll(arguments[0] + ' > tr'))
                            if (tr.querySelector('.name').textContent === arguments[1]) return [...tr.children].map((c) => c.innerText);
                          return null;''', table, name)

    def until(self, condition, what):
        deadline = time.monotonic() + harness.DEADLINE
        while not condition():
            if time.monotonic() > deadline:
                self.fail(f'{what}\n{self.text("body")}')
            threading.Event().wait(0.03)

    def picture(self, name):
        os.makedirs(PICTURES, exist_ok=True)
        size = self.cdp('Page.getLayoutMetrics')['cssContentSize']
        clip = {'x': 0, 'y': 0, 'width': size['width'], 'height': min(size['height'], 3000), 'scale': 1}
        with open(os.path.join(PICTURES, name + '.png'), 'wb') as f:
            f.write(b64decode(self.cdp('Page.captureScreenshot', captureBeyondViewport=True, clip=clip)['data']))

    def check(self, *expected, config=None):
        """Nothing was logged but what is expected, no policy was broken, nobody else was asked; below /v1/configs for this one only."""
        self.assertEqual(self.js('return window.violations'), [])
        self.assertEqual(self.js('return window.mistakes'), [])
        logged = [e['message'] for e in self.browser.get_log('browser')]
        self.assertEqual([m for m in logged if not any(e in m for e in expected)], [])
        asked = set()
        for entry in self.browser.get_log('performance'):
            message = json.loads(entry['message'])['message']
            if message['method'] == 'Network.requestWillBeSent':
                asked.add(message['params']['request']['url'])
        base = self.browser.current_url.split('#')[0]
        self.assertGreaterEqual(len(asked), 4)
        self.assertEqual({u for u in asked if not u.startswith((base, 'data:,'))}, set())
        ours = {base + p for p in ('', 'page.css', 'page.js', 'detail.js', 'v1/status', 'v1/changes')}
        if config:
            ours |= {f'{base}v1/configs/{config}{tail}' for tail in ('', '/history', '/events', '/diff')}
        self.assertEqual({u.split('#')[0].split('?')[0] for u in asked if u.startswith(base)} - ours, set())


class Shows(PageCase):
    def test_what_there_is(self):
        self.documents['/db.yaml'] = good(b'x', status='500 Internal Server Error')
        agent = self.agent(('web', 'db', 'mail'), push='push: [{endpoint: "tcp://127.0.0.1:1"}]')
        self.published(agent, 'web', 'mail')
        self.put(agent, 'web', 'a: 2\nb: {c: x}\n')
        agent.post('/v1/configs/web/pin?for_ms=7200000&reason=incident')
        agent.refresh('db')
        self.open()
        status = json.loads(agent.get('/v1/status')[1])
        self.assertEqual(self.text('h1'), status['host'])
        self.assertIn(status['version'], self.text('#facts'))
        self.assertIn('zone=eu-1', self.text('#facts'))
        self.assertRegex(self.text('#facts'), r'up \d+ s')
        self.assertEqual(self.text('#overall'), '1 waiting of 3')
        self.assertIn(status['host'], self.browser.title)
        self.assertEqual([e.text for e in self.find('#config-rows .name')], ['db', 'mail', 'web'], 'what needs attention first')
        state, cell, generation, published, confirmed, due = self.row('web')
        self.assertEqual((state, generation), ('ok', '2'))
        self.assertIn(f'{self.server.url}/web.yaml', cell)
        self.assertRegex(cell, r'pinned for (2 h|1 h 59 min)')
        self.assertRegex(published, r'^(just now|\d+ s ago)$')
        self.assertRegex(confirmed, r'^(just now|\d+ s ago)$')
        self.assertRegex(due, r'^in \d+ (min|h)')
        state, cell, generation, published, confirmed, _ = self.row('db')
        self.assertEqual((state, generation, published, confirmed), ('waiting', '\u2013', 'never', 'never'))
        self.assertIn('bad answer', cell)
        newest = self.text('#changes > li:first-child')
        for part in ('web', 'generation 1 \u2192 2', '~', 'a', '***', '+', 'b.c'):
            self.assertIn(part, newest)
        self.assertEqual(len(self.find('#changes > li')), 3)
        server = self.row('main', '#server-rows')
        self.assertIn(self.server.url, server[1])
        self.assertRegex(server[4], r'^\d+$')
        self.assertIn(self.row('tcp://127.0.0.1:1', '#push-rows')[0], ('connecting', 'refused'))
        self.assertEqual(self.find('#report')[0].is_displayed(), False)
        for link in self.find('footer a'):
            code, _ = agent.get('/' + link.get_attribute('href').removeprefix(self.url))
            self.assertIn(code, (200, 503))
        self.assertEqual(self.js('return document.querySelector("link[rel=icon]").href'), 'data:,', 'else a browser asks for one')
        self.picture('light')
        self.check()
        agent.stop()

    def test_follows_changes_and_pushes_without_a_reload(self):
        _, url, endpoint = self.serve()
        self.write('www/web.yaml', 'n: 1\n')
        self.write('www/db.yaml', 'n: 1\n')
        agent = Agent(self, f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, listen: "127.0.0.1:{self.port}"}}
push: [{{endpoint: {endpoint}}}]
servers: {{main: {{urls: ["{url}"]}}}}
configs:
  web: {{from: [{{server: main, path: /web.yaml}}], interval: 1h}}
  db: {{from: [{{server: main, path: /db.yaml}}], interval: 1h}}
''')
        self.published(agent, 'web', 'db')
        self.open()
        self.until(lambda: self.row(endpoint, '#push-rows')[0] == 'connected', 'the push channel is connected')
        self.js('window.kept = document.querySelector("#config-rows > tr"); document.querySelector("#filter").focus()')
        self.write('www/web.yaml', 'n: 2\nnew: true\n')  # pushed
        self.until(lambda: self.row('web')[2] == '2', 'the new generation is shown')
        self.until(lambda: 'generation 1 \u2192 2' in self.text('#changes > li:first-child'), 'and what changed')
        self.assertIn('new', self.text('#changes > li:first-child'))
        self.assertEqual(self.row('db')[2], '1')
        agent.cli('rollback', 'web', '--reason', 'a test', check=0)
        self.until(lambda: 'a test' in self.text('#changes > li:first-child'), 'the rollback is shown')
        self.assertTrue(self.js('return window.kept.isConnected'), 'rows are changed in place')
        self.assertEqual(len(self.find('#config-rows > tr')), 2)
        self.assertEqual(self.js('return document.activeElement.id'), 'filter')
        self.until(lambda: int(self.row(endpoint, '#push-rows')[3]) >= 1, 'the message is counted')
        self.check()
        agent.stop()

    def test_what_operators_did_is_shown(self):
        agent = self.agent(('web', 'db'))
        self.published(agent, 'web', 'db')
        agent.cli('pin', 'web', '--for', '2h', '--reason', 'incident 4711', check=0)
        for i in range(5):
            agent.cli('override', 'db', f'k{i}={i}', '--for', '1h', '--reason', f'reason {i}', check=0)
        self.open()
        self.assertEqual(self.text('#overall'), 'all 2 ok', 'what was decided is no trouble')
        self.assertEqual({e.get_attribute('data-state') for e in self.find('#config-rows .state')}, {'ok'})
        self.put(agent, 'web', 'a: 2\n')
        self.until(lambda: 'another version' in self.row('web')[1], 'the held version is shown')
        self.assertRegex(self.row('web')[1], rf'the server has another version, held by the pin\npinned by \S+ \(uid {os.geteuid()}\): incident 4711$')
        agent.cli('unpin', 'web', check=0)
        agent.refresh('web')
        agent.cli('rollback', 'web', '--reason', 'too slow', check=0)
        agent.refresh('web')
        self.until(lambda: 'rolled back by an operator' in self.row('web')[1], 'so is what was rolled back')
        self.assertEqual({e.get_attribute('class') for e in self.find('#config-rows .why')}, {'why note'}, 'it does not look like an error')
        self.assertEqual((self.row('web')[0], self.text('#overall')), ('ok', 'all 2 ok'))
        self.assertEqual({e.get_attribute('data-state') for e in self.find('#config-rows .state')}, {'ok'})
        self.picture('decided')
        cell = self.row('db')[1]
        self.assertEqual(len(re.findall(rf'(?m)^k\d is overridden for (1 h|59 min) by \S+ \(uid {os.geteuid()}\): reason \d$', cell)), 3)
        self.assertIn('and 2 other overrides', cell)
        self.check()
        agent.stop()

    def test_trouble_of_a_config_that_is_ok_is_seen_above(self):
        self.documents['/web.yaml'] = good(b'a: 1\n')
        agent = self.agent(('web', 'db'), more=', reload: {run: [/bin/false]}')
        self.published(agent, 'web', 'db')
        self.put(agent, 'web', 'a: 2\n')
        agent.log.wait('reload failed.*config=web')
        self.open()
        self.until(lambda: 'the reload failed' in self.row('web')[1], 'the reason is told')
        self.assertRegex(self.text('#overall'), '^all 2 ok, [12] with trouble$')
        self.assertEqual(self.find('#overall')[0].get_attribute('data-state'), 'warn')
        self.check()
        agent.stop()

    def test_asks_for_changes_only_when_there_are_any(self):
        agent = self.agent(('web',))
        self.published(agent, 'web')
        self.open()
        count = '''return performance.getEntriesByType('resource').filter((e) => e.name.endsWith(arguments[0])).length'''
        self.until(lambda: self.js(count, '/v1/status') >= 3, 'it polls')
        self.assertEqual(self.js(count, '/v1/changes'), 1)
        self.put(agent, 'web', 'a: 2\n')
        self.until(lambda: self.js(count, '/v1/changes') == 2, 'asked again')
        self.check()
        agent.stop()

    def test_asks_nothing_while_nobody_looks(self):
        agent = self.agent(('web',))
        self.published(agent, 'web')
        self.open()
        count = '''return performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/v1/status')).length'''
        # headless windows are never hidden: what the page is told is the same
        self.js('window.away = true; Object.defineProperty(document, "hidden", {get: () => window.away}); document.dispatchEvent(new Event("visibilitychange"))')
        asked = self.js(count)
        begin = time.monotonic()
        self.until(lambda: time.monotonic() - begin > 4.5, 'two intervals, in which nothing is to come')
        self.assertLessEqual(self.js(count), asked + 1)
        self.js('window.away = false; document.dispatchEvent(new Event("visibilitychange"))')
        self.until(lambda: self.js(count) > asked, 'it goes on')
        agent.stop()


class Errors(PageCase):
    def test_why_something_fails_is_shown_and_goes_away(self):
        agent = self.agent(('web', 'db'))
        self.published(agent, 'web', 'db')
        self.open()
        self.assertEqual(self.text('#overall'), 'all 2 ok')
        self.documents['/web.yaml'] = good(b'a: [1\n')
        agent.refresh('web')
        self.until(lambda: self.row('web')[0] == 'failing', 'it fails')
        self.assertIn('rejected by the syntax', self.row('web')[1])
        self.assertEqual(self.text('#overall'), '1 failing of 2')
        self.assertEqual(self.find('#config-rows .name')[0].text, 'web')
        self.assertTrue(self.browser.title.startswith('1 failing of 2'))
        self.until(lambda: self.js('return document.querySelector("#announce").textContent') == 'web is failing', 'it is announced')
        self.picture('failing')
        before = self.js('window.kept = document.querySelector("#config-rows .why"); return kept.textContent')
        self.until(lambda: self.text('#config-rows .why') != before, 'it says how long ago')
        self.assertTrue(self.js('return window.kept.isConnected'), 'a text that is selected stays')
        self.put(agent, 'web', 'a: 2\n')
        self.until(lambda: self.row('web')[0] == 'ok' and self.text('#overall') == 'all 2 ok', 'it is good again')
        self.assertEqual(self.find('.why'), [])
        self.check()
        agent.stop()

    def test_a_cause_a_check_and_a_rejected_version_are_shown(self):
        self.write('schema.json', '{"properties": {"n": {"type": "integer"}}}')
        self.documents['/gone.yaml'] = good(b'x', status='404 Not Found')
        agent = self.agent(('web', 'gone'), more=f', schema: {self.path("schema.json")}')
        self.published(agent, 'web')
        self.documents['/web.yaml'] = good(b'n: text\n', headers='ETag: "v2"\r\n')
        agent.refresh('web')
        agent.refresh('gone')
        self.open()
        why = '#config-rows > tr:nth-child({}) .why'
        self.until(lambda: 'schema' in self.row('web')[1], 'it is refused')
        self.assertRegex(self.row('web')[1], r'the server has version v2, rejected by the schema: see the control socket for the reason \((just now|\d+ s ago)\)$')
        self.assertRegex(self.row('gone')[1], r'(?m)^not found: there is no such document \((just now|\d+ s ago)\)$')
        for i in (1, 2):
            self.assertEqual([e.get_attribute('class') for e in self.find(why.format(i))], ['why bad'], 'and once')
        for width in (1280, 360):
            self.open(width=width if width < 1000 else None)
            self.until(lambda: 'schema' in self.row('web')[1], 'it is refused')
            self.picture(f'refused-{width}')
        self.check()
        agent.stop()

    def test_a_configuration_that_was_rejected(self):
        agent = self.agent(('web',))
        self.published(agent, 'web')
        self.open()
        self.assertFalse(self.find('#reload')[0].is_displayed())
        text = self.read('pullet.yaml').decode()
        self.write('pullet.yaml', text.replace('interval', 'intervall'))
        agent.signal(signal.SIGHUP)
        self.until(lambda: 'pulletd -t' in self.text('#reload'), 'the error is shown')
        self.assertEqual(self.js('return document.querySelector("#announce").textContent'), 'the configuration was rejected')
        self.write('pullet.yaml', text)
        agent.signal(signal.SIGHUP)
        self.until(lambda: not self.find('#reload')[0].is_displayed(), 'and goes away')
        self.check()
        agent.stop()

    def test_a_connection_that_is_lost_and_comes_back(self):
        agent = self.agent(('web',))
        self.published(agent, 'web')
        self.open()
        agent.signal(signal.SIGKILL)
        agent.wait()
        self.until(lambda: self.text('#overall') == 'connection lost', 'it is lost')
        self.assertIn('does not answer', self.text('#lost'))
        self.assertIn('last answer', self.text('#heard'))
        self.assertEqual(self.row('web')[0], 'ok', 'what was known stays')
        self.picture('lost')
        agent = self.agent(('web',))
        self.until(lambda: self.text('#heard') == 'live' and self.text('#overall') == 'all 1 ok', 'it is back')
        self.assertFalse(self.find('#lost')[0].is_displayed())
        self.check('net::ERR_CONNECTION_REFUSED', 'net::ERR_CONNECTION_RESET', 'net::ERR_EMPTY_RESPONSE')
        agent.stop()

    def test_an_agent_that_hangs_is_a_lost_connection(self):
        agent = self.agent(('web',))
        self.published(agent, 'web')
        self.open()
        agent.signal(signal.SIGSTOP)
        self.until(lambda: self.text('#overall') == 'connection lost', 'it is lost')
        agent.signal(signal.SIGCONT)
        self.until(lambda: self.text('#heard') == 'live', 'it is back')
        self.assertEqual(self.js('return document.querySelector("#announce").textContent'), 'the agent answers again')
        self.check()
        agent.stop()

    def test_what_looks_like_markup_stays_text(self):
        evil = '<script>window.harmed = 1</script><img src=x onerror="window.harmed = 1">'
        self.documents['/web.yaml'] = good(json.dumps({evil: evil, 'a': 1}).encode())
        agent = self.agent(('web', 'db'))
        self.published(agent, 'web', 'db')
        tunnel = Tunnel(self, agent.socket)
        self.put(agent, 'web', json.dumps({evil: 'other ' + evil, 'a': 2}))
        agent.cli('rollback', 'web', '--reason', evil, check=0)
        agent.cli('pin', 'web', '--reason', evil, check=0)
        self.documents['/db.yaml'] = good(f'{json.dumps(evil)}: 1\n{json.dumps(evil)}: 2\n'.encode())
        agent.refresh('db')
        self.open(tunnel.url)
        self.until(lambda: self.row('db')[0] == 'failing', 'the error is there')
        self.assertIn('<script>', self.row('db')[1])
        self.assertIn(evil, self.text('#changes'))
        self.assertIn('"other <script>window.harmed = 1</script><img', self.js('return document.querySelector("#changes").textContent'))
        self.assertEqual(self.js('return [document.scripts.length, document.images.length, typeof window.harmed]'), [2, 0, 'undefined'])
        self.check()
        agent.stop()


class Values(PageCase):
    def test_over_tcp_there_are_none(self):
        self.documents['/web.yaml'] = good(b'a: alpha-value\n')
        agent = self.agent(('web',))
        self.published(agent, 'web')
        self.put(agent, 'web', 'a: beta-value\nb: gamma-value\n')
        self.open()
        self.until(lambda: '***' in self.text('#changes'), 'the changes are there')
        page = self.js('return document.documentElement.outerHTML')
        for value in ('alpha-value', 'beta-value', 'gamma-value'):
            self.assertNotIn(value, page)
        self.assertEqual(self.text('#changes > li:first-child .changed').count('***'), 1, 'once is enough')
        host = json.loads(agent.get('/v1/status')[1])['host']
        self.assertEqual(' '.join(self.text('#masked').split()), 'Values are not shown over TCP. On your own machine, '
                         f'ssh -L 8377:{agent.socket} {host} shows them at http://localhost:8377/.')
        self.check()
        agent.stop()

    def test_what_cannot_be_compared_says_why(self):
        self.documents['/web.yaml'] = good(b'a: 1\n')
        agent = self.agent(('web',), more=', history: 2')
        self.published(agent, 'web')
        for n in range(2, 6):
            self.put(agent, 'web', f'a: {n}\n')
        agent.stop()
        agent = self.agent(('web',), more=', history: 2')
        self.open()
        self.until(lambda: 'is no longer stored' in self.text('#changes > li:last-child'), 'the oldest has nothing before it')
        self.assertNotIn('kept', self.text('#changes > li:first-child'))
        self.check()
        agent.stop()

    def test_through_a_tunnel_to_the_control_socket_there_are(self):
        self.documents['/web.yaml'] = good(b'a: alpha-value\npassword: secret-one\n')
        agent = self.agent(('web',), more=', mask: [password]')
        self.published(agent, 'web')
        self.put(agent, 'web', 'a: beta-value\npassword: secret-two\n')
        self.open(Tunnel(self, agent.socket).url)
        self.until(lambda: 'beta-value' in self.text('#changes'), 'the values are there')
        self.assertIn('"alpha-value"', self.text('#changes'))
        self.assertEqual(self.text('#masked'), '', 'what the mask hides is no reason to say how to see it')
        page = self.js('return document.documentElement.outerHTML')
        self.assertNotIn('secret', page)
        self.check()
        # the page of the tunnel may look, and change nothing
        for method, path in (('POST', 'v1/configs/web/pin'), ('POST', 'v1/configs/web/refresh')):
            answer = self.browser.execute_async_script('''const done = arguments[2];
                fetch(arguments[1], {method: arguments[0]}).then((r) => done(r.status), (e) => done(String(e)))''', method, path)
            self.assertEqual(answer, 403)
        self.assertNotIn('"pin"', agent.get('/v1/status')[1])
        agent.stop()

    def test_a_name_that_somebody_pointed_here_is_refused(self):
        agent = self.agent(('web',), agent='  listen_names: [ours.example]')
        self.published(agent, 'web')
        self.open(f'http://ours.example:{self.port}/')
        self.check()
        for port in (self.port, int(Tunnel(self, agent.socket).url.split(':')[2].strip('/'))):
            self.browser.get(f'http://evil.example:{port}/')
            self.assertIn('does not have the requested name', self.text('body'))
            answer = self.browser.execute_async_script('fetch("/v1/status").then((r) => r.text().then((t) => arguments[0]([r.status, t])))')
            self.assertEqual((answer[0], list(json.loads(answer[1]))), (421, ['error']))
        agent.stop()

    def test_another_page_learns_nothing_through_the_tunnel(self):
        """A page of somebody else's, in the browser of who has the tunnel open."""
        agent = self.agent(('web',))
        self.published(agent, 'web')
        tunnel = Tunnel(self, agent.socket)
        harness_dir = self.path('other')
        os.makedirs(harness_dir)
        self.write('other/index.html', '<!DOCTYPE html><title>other</title><link rel="icon" href="data:,">')

        class Quiet(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args):
                super().__init__(*args, directory=harness_dir)

            def log_message(self, *_):
                pass
        other = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Quiet)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        self.open()
        self.browser.get(f'http://127.0.0.1:{other.server_port}/')
        ask = '''const [method, url, mode, done] = arguments;
                 fetch(url, {method, mode}).then((r) => r.text().then((t) => done([r.type, r.status, t])), (e) => done([String(e)]))'''
        self.assertIn('TypeError', self.browser.execute_async_script(ask, 'GET', tunnel.url + 'v1/status', 'cors')[0])
        for method in ('GET', 'POST'):
            answer = self.browser.execute_async_script(ask, method, tunnel.url + 'v1/configs/web/pin', 'no-cors')
            self.assertTrue('TypeError' in answer[0] or answer[1:] == [0, ''], answer)
        framed = self.browser.execute_async_script('''const done = arguments[1], f = document.createElement('iframe');
            f.onload = () => { let seen; try { seen = f.contentDocument ? f.contentDocument.title : null; } catch (e) { seen = null; } done(seen); };
            f.src = arguments[0]; document.body.append(f)''', tunnel.url)
        self.assertIsNone(framed)
        self.assertNotIn('"pin"', agent.get('/v1/status')[1])
        agent.stop()


class ForEverybody(PageCase):
    def everything(self):
        """An agent with something of each kind and colour."""
        self.documents['/bad.yaml'] = good(b'x', status='500 Internal Server Error')
        agent = self.agent(('web', 'db', 'bad', 'worse'), push='push: [{endpoint: "tcp://127.0.0.1:1"}]', second=', "http://127.0.0.1:1"')
        self.published(agent, 'web', 'db', 'worse')
        self.put(agent, 'db', ''.join(f'key{i}: {i}\n' for i in range(30)))
        agent.cli('rollback', 'db', '--reason', 'a test', check=0)
        agent.cli('pin', 'web', check=0)
        agent.cli('override', 'web', 'a=2', '--for', '1h', check=0)
        self.documents['/worse.yaml'] = good(b'a: [')
        agent.refresh('worse')
        agent.refresh('bad')
        self.write('pullet.yaml', self.read('pullet.yaml') + b'surprise: 1\n')
        agent.signal(signal.SIGHUP)
        return agent

    def test_dark_and_light_are_both_readable(self):
        agent = self.everything()
        grounds = {}
        for dark in (False, True):
            self.open(dark=dark)
            self.until(lambda: self.find('#reload')[0].is_displayed(), 'the error of the configuration is there')
            for details in self.find('details'):
                self.js('arguments[0].open = true', details)
            seen, found = self.js(CONTRAST)
            self.assertGreater(seen, 60)
            self.assertEqual(found, [])
            grounds[dark] = self.js('return getComputedStyle(document.body).backgroundColor')
            self.picture('dark' if dark else 'everything')
            self.check()
        numbers = {d: sum(map(int, re.findall(r'\d+', c)[:3])) for d, c in grounds.items()}
        self.assertGreater(numbers[False], 600)
        self.assertLess(numbers[True], 150)
        agent.stop()

    def test_the_keyboard_is_enough(self):
        agent = self.everything()
        self.open()
        self.until(lambda: self.find('details'), 'the changes are there')
        reached, outlined = [], []
        keyboard = webdriver.ActionChains(self.browser)
        for _ in range(60):
            keyboard.send_keys(Keys.TAB).perform()
            what, outline = self.js('''const e = document.activeElement, s = getComputedStyle(e);
                return [e.id || e.className || e.tagName + ' ' + e.textContent, s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2]''')
            if what in reached and what == reached[0]:
                break
            reached.append(what)
            outlined.append((what, outline))
            if what.startswith('BODY'):
                break
        everything = self.js('return [...document.querySelectorAll("a, button, input, select, summary")].filter((e) => e.checkVisibility()).length')
        self.assertEqual(reached[0], 'skip')
        self.assertGreaterEqual(len([r for r in reached if not r.startswith('BODY')]), everything)
        self.assertEqual([w for w, o in outlined if not o and not w.startswith('BODY')], [], 'each shows that it has the focus')
        self.js('document.querySelector(".skip").focus()')
        keyboard.send_keys(Keys.ENTER).perform()
        self.assertEqual(self.js('return document.activeElement.id'), 'configs')
        self.js('[...document.querySelectorAll("#states button")].find((b) => b.textContent.startsWith("failing")).focus()')
        keyboard.send_keys(Keys.SPACE).perform()
        self.assertEqual(self.js('return document.activeElement.getAttribute("aria-pressed")'), 'true')
        self.assertEqual({e.text for e in self.find('#config-rows .state')}, {'failing'})
        self.js('[...document.querySelectorAll("#states button")].find((b) => b.textContent.startsWith("all")).focus()')
        keyboard.send_keys(Keys.ENTER).perform()
        self.js('document.querySelector("#filter").focus()')
        keyboard.send_keys('we').perform()
        self.assertEqual([e.text for e in self.find('#config-rows .name')], ['web'])
        keyboard.send_keys('x').perform()
        self.assertEqual(self.text('#configs-empty'), 'No config fits the filter.')
        self.js('document.querySelector("summary").focus()')
        keyboard.send_keys(Keys.ENTER).perform()
        self.assertTrue(self.js('return document.querySelector("details").open'))
        self.check()
        agent.stop()

    def tree(self):
        nodes = self.cdp('Accessibility.getFullAXTree')['nodes']
        return [(n['role']['value'], n.get('name', {}).get('value', ''), {p['name']: p['value'].get('value') for p in n.get('properties', [])})
                for n in nodes if not n.get('ignored')]

    def test_a_screen_reader_finds_names_for_everything(self):
        agent = self.everything()
        self.open()
        self.until(lambda: self.find('details'), 'the changes are there')
        tree = self.tree()
        roles = [r for r, _, _ in tree]
        for role in ('banner', 'main', 'contentinfo', 'navigation'):
            self.assertEqual(roles.count(role), 1, role)
        named = {(r, n) for r, n, _ in tree}
        for node in (('heading', 'Configs'), ('heading', 'Recent changes'), ('heading', 'Servers'), ('heading', 'Push channel'), ('region', 'Configs'),
                     ('table', 'Configs, those that need attention first'), ('table', 'Servers and each of their addresses'),
                     ('table', 'Publishers of changes'), ('group', 'Show configs by state'), ('navigation', 'The same for programs'),
                     ('searchbox', 'Filter configs by name or source'), ('link', 'Skip to the configs'), ('columnheader', 'Generation'),
                     ('columnheader', 'State')):
            self.assertIn(node, named)
        self.assertEqual([(r, n) for r, n, _ in tree if r in ('button', 'link', 'searchbox', 'table', 'rowheader', 'columnheader', 'heading') and not n.strip()], [])
        self.assertTrue(any(r == 'rowheader' and n.startswith('web') for r, n, _ in tree))
        self.assertEqual([p.get('live') for r, _, p in tree if r == 'alert'], [], 'no alarm while all is well')
        self.assertEqual(self.js('return document.querySelector("#announce").getAttribute("aria-live")'), 'polite')
        self.assertEqual(self.js('return [document.documentElement.lang, document.querySelectorAll("h1").length]'), ['en', 1])
        self.assertEqual(self.js('return [...document.querySelectorAll("th")].filter((e) => !e.scope).length'), 0)
        # shapes and signs are for the eye; words say the same
        text = ' '.join(n for _, n, _ in tree)
        for sign in '\u25cf\u25b2\u25c6\u25cb':
            self.assertNotIn(sign, text)
        self.check()
        agent.stop()

    def test_a_phone_has_it_all_without_scrolling_sideways(self):
        agent = self.everything()
        for width in (390, 320):
            self.open(width=width)
            self.until(lambda: self.find('details'), 'the changes are there')
            self.assertLessEqual(self.js('return document.documentElement.scrollWidth'), width)
            state, cell, *numbers = self.row('db')
            self.assertEqual(state, 'ok')
            self.assertIn(self.server.url, cell)
            self.assertEqual(numbers[0].split()[-1], '3')
            shown = self.js('''return [...document.querySelectorAll('#config-rows td.number')].filter((e) => e.checkVisibility()).length''')
            self.assertEqual(shown, 4 * 4)
            empty = self.js('return [...document.querySelectorAll("tbody .number")].filter((e) => e.checkVisibility() && !e.textContent).length')
            self.assertEqual(empty, 0, 'no label without its number')
            self.picture(f'phone-{width}')
            self.check()
        agent.stop()

    def test_motion_is_reduced_for_whom_it_disturbs(self):
        agent = self.agent(('web',))
        self.published(agent, 'web')
        for less in (False, True):
            self.open(features=[{'name': 'prefers-reduced-motion', 'value': 'reduce' if less else 'no-preference'}])
            before = int(self.row('web')[2])
            self.put(agent, 'web', f'a: {before + 10}\n')
            self.until(lambda: self.row('web')[2] == str(before + 1), 'it has changed')
            name = self.js('return getComputedStyle(document.querySelector("#config-rows > tr.new")).animationName')
            self.assertEqual(name, 'none' if less else 'new')
        agent.stop()


class Detail(PageCase):
    """The view of one config."""

    def view(self, name, url=None, **how):
        self.open((url or self.url) + '#config=' + name, **how)
        self.until(lambda: self.text('#detail-events'), f'{name} is shown')

    def cells(self, table):
        return self.js('return [...document.querySelectorAll(arguments[0] + " > tr")].map((tr) => [...tr.children].map((c) => c.innerText))', table)

    def facts(self):
        return dict(self.js('return [...document.querySelectorAll("#detail-facts > div")].map((d) => [d.children[0].innerText, d.children[1].innerText])'))

    def events(self):
        return self.js('return [...document.querySelectorAll("#detail-events > li")].map((li) => [li.mark.innerText, li.text.innerText])')

    def eventful(self, more=''):
        """An agent with something of each kind to show."""
        self.documents['/web.yaml'] = good(b'port: 1\npool: 10\n')
        agent = self.agent(('web', 'db'), more=', mask: [password], guard: {require: [port]}' + more)
        self.published(agent, 'web', 'db')
        self.put(agent, 'web', 'port: 2\npool: 10\npassword: planted-one\n')
        agent.cli('override', 'web', 'pool=20', '--for', '1h', '--reason', 'load test', check=0)
        self.put(agent, 'web', 'port: 3\npool: 11\npassword: planted-two\n')
        agent.cli('rollback', 'web', '3', '--reason', 'pages are slow', check=0)
        self.put(agent, 'web', 'no: port\n')
        return agent

    def test_over_tcp_all_but_values(self):
        agent = self.eventful(', reload: {run: [/bin/true]}')
        self.view('web')
        self.assertEqual(self.text('#detail-title'), 'web')
        self.assertEqual(self.find('#overview')[0].is_displayed(), False)
        facts = self.facts()
        self.assertEqual((facts['Generation'], facts['Probe']), ('5', 'not configured'))
        self.assertRegex(facts['Next pull'], r'^in \d+ (min|h).* \(every 1 h\)$')
        self.assertRegex(facts['Reload'], r'^generation 5 is in use .* 5 runs, 0 failed$')
        self.assertRegex(facts['Override of pool'], r'^by .*: load test, for (1 h|59 min)$')
        self.assertEqual(self.cells('#detail-layers'), [['1', '/web.yaml', 'main', 'yaml', '\u2013']])
        versions = self.cells('#detail-versions')
        self.assertEqual([v[0] for v in versions], ['\u2013', '5', '4', '3', '2', '1'], 'what is held back comes first')
        self.assertIn('rejected by the guard', versions[0][2])
        self.assertRegex(versions[1][2], r'^rollback to generation 3 by .*: pages are slow\s+current$')
        self.assertRegex(versions[2][2], r'^pull asked for by .*\s+rolled back by the operator$')
        self.assertRegex(versions[3][2], '^override of pool by .* for 1h: load test$')
        self.assertEqual(versions[5][2].strip(), 'pull at the start')
        checks = {c[0]: c[1:] for c in self.cells('#detail-checks')}
        self.assertEqual(checks['guard'][0], '1')
        self.assertIn('see the control socket for the reason', checks['guard'][1])
        self.assertEqual(checks['syntax'], ['0', 'no objection'])
        events = self.events()
        self.assertEqual(events[-1][0], 'agent started')
        self.assertIn(['rejected', 'by the guard: see the control socket for the reason'], events)
        self.assertTrue(any(word == 'published' and 'pages are slow' in text for word, text in events))
        self.assertIn('compared on the control socket only', self.text('#detail-diff'))
        self.assertIn('ssh -L 8377:', self.text('#detail-tunnel'))
        self.js('[...document.querySelectorAll("#detail-versions button")].find((b) => b.getAttribute("aria-label") === "Changes of generation 2").click()')
        self.until(lambda: 'password' in self.text('#detail-diff'), 'the last publications have their keys')
        page = self.js('return document.documentElement.outerHTML')
        for hidden in ('planted', 'port is not there'):
            self.assertNotIn(hidden, page)
        self.picture('detail')
        self.check(config='web')
        agent.stop()

    def test_through_a_tunnel_with_values_and_what_overrides_hide(self):
        agent = self.eventful()
        self.view('web', Tunnel(self, agent.socket).url)
        self.until(lambda: 'no' in self.text('#detail-diff'), 'what is held back is compared')
        self.assertEqual(self.text('#detail-diff-title'), 'Changes from generation 5 to the version that is held back')
        self.assertIn('the required key port is not there', self.text('#detail-versions'))
        lines = self.js('return [...document.querySelectorAll("#detail-diff li")].map((li) => li.innerText)')
        self.assertTrue(any('pool' in line and 'hidden by an override of pool: the value in effect stays' in line for line in lines), lines)
        press = '[...document.querySelectorAll("#detail-versions button")].find((b) => b.getAttribute("aria-label") === "Changes of generation 3").click()'
        self.js(press)
        self.until(lambda: 'the server has 10' in self.text('#detail-diff'), 'the server\'s value is named')
        self.assertEqual(self.text('#detail-diff-title'), 'Changes from generation 2 to 3')
        self.assertEqual(self.js('return document.querySelectorAll("#detail-versions button[aria-pressed=true]").length'), 1)
        self.assertNotIn('planted', self.js('return document.documentElement.outerHTML'), 'masked')
        self.check(config='web')
        # it follows, and keeps what was picked
        self.put(agent, 'web', 'port: 9\npool: 12\n')
        self.until(lambda: self.facts()['Generation'] == '6', 'a new version is shown')
        self.assertEqual(self.text('#detail-diff-title'), 'Changes from generation 2 to 3')
        self.until(lambda: any('generation 6' in text for _, text in self.events()), 'and is on the time line')
        agent.stop()

    def test_after_a_rollback_the_way_forward_is_there(self):
        agent = self.agent(('web',))
        self.published(agent, 'web')
        self.put(agent, 'web', 'a: 2\n')
        agent.cli('rollback', 'web', check=0)
        self.view('web')
        self.assertIn('`pullet refresh web --force`', self.text('#detail-remarks'))
        self.check(config='web')
        agent.stop()

    def test_texts_of_others_are_never_markup(self):
        evil = '<img src=x onerror="window.broken=1"><script>window.broken=2</script>'
        text = json.dumps({evil: evil, 'a': evil})
        self.documents['/web.yaml'] = good(b'a: 1\n', f'ETag: "{evil.replace(chr(34), chr(39))}"\r\n')
        agent = self.agent(('web',))
        self.published(agent, 'web')
        self.put(agent, 'web', text)
        agent.cli('override', 'web', f'b={json.dumps(evil)}', '--for', '1h', '--reason', evil, check=0)
        agent.cli('pin', 'web', '--reason', evil, check=0)
        self.put(agent, 'web', json.dumps({'a': evil + '!', 'c': evil}))
        for url in (self.url, Tunnel(self, agent.socket).url):
            self.view('web', url)
            if url != self.url:
                self.until(lambda: 'onerror' in self.text('#detail-diff'), 'the values are there, as text')
                self.js('[...document.querySelectorAll("#detail-versions button")].find((b) => b.getAttribute("aria-label") === "Changes of generation 2").click()')
                self.until(lambda: 'generation 1 to 2' in self.text('#detail-diff-title') and 'onerror' in self.text('#detail-diff'), 'another difference')
            self.assertTrue(any(evil in text for _, text in self.events()))
            self.assertIsNone(self.js('return window.broken || null'))
            self.assertEqual(self.js('return document.querySelectorAll("img, iframe, script:not([src])").length'), 0)
            self.check(config='web')
        for name in ('%3Cimg%20src=x%20onerror=broken%3E', '..%2F..%2Fmetrics', '%', 'web%00'):
            self.open(self.url + '#config=' + name)
            self.until(lambda: self.text('#detail-none'), 'there is no such config')
            self.assertEqual(self.js('return document.querySelectorAll("img").length'), 0)
            self.check()
        agent.stop()

    def test_the_keyboard_goes_there_and_back(self):
        agent = self.eventful()
        self.open()
        keyboard = webdriver.ActionChains(self.browser)
        self.js('[...document.querySelectorAll("#config-rows a")].find((a) => a.textContent === "web").focus()')
        keyboard.send_keys(Keys.ENTER).perform()
        self.until(lambda: self.text('#detail-events'), 'the view opens')
        self.assertEqual(self.js('return document.activeElement.id'), 'detail')
        reached = []
        for _ in range(20):
            keyboard.send_keys(Keys.TAB).perform()
            what = self.js('const e = document.activeElement; return [e.getAttribute("aria-label") || e.textContent, getComputedStyle(e).outlineStyle]')
            reached.append(what)
        names = [w for w, _ in reached]
        for name in ('All configs', 'Changes of the version that is held back', 'Changes of generation 5', 'Changes of generation 2'):
            self.assertIn(name, names)
        self.assertNotIn('Changes of generation 1', names, 'nothing is before it')
        self.assertNotIn('none', [o for w, o in reached if w.startswith('Changes of')], 'each shows that it has the focus')
        self.js('document.querySelector(".back a").focus()')
        keyboard.send_keys(Keys.ENTER).perform()
        self.until(lambda: self.text('#config-rows'), 'all configs again')
        self.assertEqual(self.js('return document.activeElement.textContent'), 'web', 'where it came from')
        self.browser.back()
        self.until(lambda: self.text('#detail-events'), 'the browser\'s way back')
        self.js('document.querySelector("#skip").focus()')
        keyboard.send_keys(Keys.ENTER).perform()
        self.assertEqual(self.js('return [document.activeElement.id, document.querySelector("#detail").hidden]'), ['detail', False])
        self.check(config='web')
        agent.stop()

    def test_a_screen_reader_finds_its_way(self):
        agent = self.eventful()
        self.view('web')
        tree = ForEverybody.tree(self)
        named = {(r, n) for r, n, _ in tree}
        for node in (('heading', 'web'), ('heading', 'Now'), ('heading', 'Layers'), ('heading', 'Versions'), ('heading', 'Checks'), ('heading', 'Time line'),
                     ('table', 'Versions, the newest first'), ('table', 'Checks of each new version, and what they said last'),
                     ('table', 'Documents that the config is made of'), ('button', 'Changes of generation 5'), ('link', 'All configs'), ('article', 'web')):
            self.assertIn(node, named)
        self.assertEqual([(r, n) for r, n, _ in tree if r in ('button', 'link', 'table', 'rowheader', 'columnheader', 'heading') and not n.strip()], [])
        self.assertTrue({'rejected', 'published', 'operator'} & {n for r, n, _ in tree if r == 'StaticText'}, 'states are words')
        for sign in '\u25cf\u25b2\u25c6\u25cb':
            self.assertNotIn(sign, ' '.join(n for _, n, _ in tree))
        self.check(config='web')
        agent.stop()

    def test_at_each_width_in_light_and_dark(self):
        agent = self.eventful()
        for width in (320, 400, 800, 1400):
            for dark in (False, True):
                self.view('web', Tunnel(self, agent.socket).url, dark=dark, width=width)
                self.until(lambda: self.text('#detail-diff'), 'the difference is there')
                self.assertLessEqual(self.js('return document.documentElement.scrollWidth'), width)
                seen, found = self.js(CONTRAST)
                self.assertGreater(seen, 60)
                self.assertEqual(found, [])
                self.picture(f'detail-{width}-{"dark" if dark else "light"}')
        self.check(config='web')
        agent.stop()


class Sorted(PageCase):
    def names(self):
        return [e.text for e in self.find('#config-rows .name')]

    def test_numbers_are_sorted_as_numbers(self):
        agent = self.agent(('web-2', 'web-10', 'web-1', 'never'))
        self.published(agent, 'web-2', 'web-10', 'web-1')
        self.documents['/never.yaml'] = good(b'x', status='500 Internal Server Error')
        for n in range(2, 11):
            self.put(agent, 'web-2', f'a: {n}\n')
        self.put(agent, 'web-10', 'a: 2\n')
        agent.stop()
        self.documents['/other.yaml'] = good(b'x', status='500 Internal Server Error')
        agent = self.agent(('web-2', 'web-10', 'web-1', 'other'))
        self.published(agent, 'other')
        self.open()
        self.assertEqual(self.names(), ['other', 'web-1', 'web-2', 'web-10'], 'by state, then as people count')
        heads = {e.text: e for e in self.find('.configs th button')}
        heads['Generation'].click()
        self.assertEqual(self.names(), ['web-2', 'web-10', 'web-1', 'other'], '10 is more than 2; what has none comes last')
        self.assertEqual(self.js('return document.querySelector("th[data-sort=generation]").getAttribute("aria-sort")'), 'descending')
        heads['Generation'].click()
        self.assertEqual(self.names(), ['web-1', 'web-10', 'web-2', 'other'])
        self.assertEqual(self.js('return document.querySelector("th[data-sort=generation]").getAttribute("aria-sort")'), 'ascending')
        heads['Config'].send_keys(Keys.ENTER)
        self.assertEqual(self.names(), ['other', 'web-1', 'web-2', 'web-10'])
        heads['Config'].send_keys(Keys.SPACE)
        self.assertEqual(self.names(), ['web-10', 'web-2', 'web-1', 'other'])
        self.assertEqual([e.get_attribute('aria-sort') for e in self.find('th[data-sort]')].count('none'), 5)
        self.check()
        self.open(width=390)  # without a head of the table
        self.js('const s = document.querySelector("#sort"); s.value = "generation"; s.dispatchEvent(new Event("change"))')
        self.assertEqual(self.names()[:2], ['web-2', 'web-10'])
        agent.stop()


class Many(PageCase):
    def test_a_thousand_configs(self):
        names = [f'service-{i:04}' for i in range(1000)]
        self.documents['/service-0777.yaml'] = good(b'a: [')
        agent = self.agent(names)
        self.until_ready(agent)
        self.open()
        self.assertEqual(self.text('#overall'), '1 waiting of 1,000')
        rows = self.find('#config-rows > tr')
        self.assertLessEqual(len(rows), 100)
        self.assertEqual(self.find('#config-rows .name')[0].text, 'service-0777', 'the one that needs attention is the first')
        box = self.find('#filter')[0]
        box.send_keys('0999')
        self.assertEqual([e.text for e in self.find('#config-rows .name')], ['service-0999'])
        box.clear()
        box.send_keys(' ')
        self.picture('thousand')
        begin = time.monotonic()
        self.find('#configs-more')[0].click()
        self.assertEqual(self.js('return document.querySelectorAll("#config-rows > tr").length'), 1000)
        self.assertLess(time.monotonic() - begin, 3)
        # how long one answer keeps the page from doing anything else
        took = self.browser.execute_async_script('''const done = arguments[0];
            fetch('v1/status').then((r) => r.json()).then((s) => { const b = performance.now(); showStatus(s); done(performance.now() - b); })''')
        print(f'1,000 rows are brought up to date in {took:.0f} ms', file=sys.stderr)
        self.assertLess(took, 500)
        self.check()
        agent.stop()

    def until_ready(self, agent):
        deadline = time.monotonic() + harness.DEADLINE * 3
        while agent.get('/readyz')[1].count('\n') > 1:
            self.assertLess(time.monotonic(), deadline)
            threading.Event().wait(0.1)


if __name__ == '__main__':
    harness.main()
