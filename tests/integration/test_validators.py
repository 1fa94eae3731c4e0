"""What a server names its versions by, and what of it may be sent back: a date of whole seconds that comes twice, entity tags that are none, and the
servers people have: python3 -m http.server, nginx, pullet serve.
"""
import email.utils
import os
import re
import sys
import time

import harness
from harness import Agent, Nginx, Program
from servers.wire import Wire, counted, head

NOW = 1_790_000_000  # the server's clock: it need not be this host's


def date(moment):
    return email.utils.formatdate(moment, usegmt=True)


class Case(harness.Case):
    def agent(self, url, more=''):
        agent = Agent(self, self.config(url, '    interval: 1h\n    type: yaml\n' + more))
        agent.log.wait('published.*generation=1')
        return agent

    def agents(self, server, number):
        """One agent, a config for each place of the server."""
        os.makedirs(self.path('out'), exist_ok=True)
        configs = ''.join(f'  c{i}: {{url: "{server.urls[i]}/web.yaml", file: {self.path(f"out/{i}")}, interval: 1h, type: yaml}}\n' for i in range(number))
        agent = Agent(self, f'agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}}}\nconfigs:\n{configs}')
        return agent

    def published(self, agent, body, path='out/web.yaml', name='web'):
        outcome = agent.refresh(name)
        self.assertEqual((outcome['outcome'], self.read(path)), ('published', body), outcome)


class Dates(Case):
    """A server that tells Last-Modified, and answers 304 whenever its document is not newer than what was asked for."""

    def test_a_date_that_may_come_twice_is_never_sent_back(self):
        http_850 = time.strftime('%A, %d-%b-%y %H:%M:%S GMT', time.gmtime(NOW))
        asctime = time.asctime(time.gmtime(NOW))
        cases = {  # Last-Modified, Date, whether it may be sent back (None: either way is right)
            'the second of the answer': (date(NOW), date(NOW), False), 'a second after the answer': (date(NOW + 1), date(NOW), False), 'an hour after it': (date(NOW + 3600), date(NOW), False),
            'the last second': (date(NOW - 1), date(NOW), None), 'an hour before': (date(NOW - 3600), date(NOW), True), 'years before': (date(NOW - 10 ** 8), date(NOW), True),
            'no date of the answer': (date(NOW - 3600), None, False), 'a date of the answer that is none': (date(NOW - 3600), 'now', False), 'an empty one': (date(NOW - 3600), '', False),
            'a date that is none': ('yesterday', date(NOW), False), 'empty': ('', date(NOW), False), 'a number': (str(NOW), date(NOW), False), 'of ISO 8601': ('2026-09-01T00:00:00Z', date(NOW), False),
            'another zone': (date(NOW - 3600).replace('GMT', '+0200'), date(NOW), False), '1970': (date(0), date(NOW), None), 'before 1970': ('Wed, 31 Dec 1969 23:59:59 GMT', date(NOW), None),
            'a month that is none': (date(NOW - 3600).replace('Sep', 'Spt'), date(NOW), False), 'the 31st of February': ('Sat, 31 Feb 2026 00:00:00 GMT', date(NOW), None),
            'another weekday': (date(NOW - 3600).replace(date(NOW)[:3], 'Xyz'), date(NOW), None), 'RFC 850, the second of the answer': (http_850, date(NOW), False),
            'asctime, the second of the answer': (asctime, date(NOW), False), 'both in 2100': (date(4102444800), date(4102444800), False), 'two dates': (f'{date(NOW - 3600)}, {date(NOW)}', date(NOW), False),
            'with a tag that is made of it': (date(NOW), date(NOW), False),
        }
        names, stage, asked = list(cases), [1], {}

        def answer(ask):
            modified, sent, _ = cases[names[ask.place]]
            asked.setdefault(ask.place, []).append(ask.headers)
            lines = [f'Last-Modified: {modified}'] + ([f'Date: {sent}'] if sent is not None else [])
            if 'tag' in names[ask.place]:
                lines.append(f'ETag: "{modified}"')  # as nginx makes it
            if 'if-modified-since' in ask.headers or 'if-none-match' in ask.headers:
                return [head(*lines, status='304 Not Modified')]
            return [counted(b'a: %d\n' % stage[0], *lines)]
        server = Wire(self, answer, places=len(names))
        agent = self.agents(server, len(names))
        for i in range(len(names)):
            agent.log.wait(f'published config=c{i} ')
        stage[0] = 2
        for i, name in enumerate(names):
            with self.subTest(name):
                agent.refresh(f'c{i}')
                back, found = asked[i][-1].get('if-modified-since'), self.read(f'out/{i}')
                if cases[name][2] is not None:
                    self.assertEqual(back, cases[name][0] if cases[name][2] else None)
                if not cases[name][2] and back is None:
                    self.assertEqual(found, b'a: 2\n')
        # whatever was sent back, this is whole
        for i, name in enumerate(names):
            with self.subTest(name):
                code, out, error = agent.cli('refresh', f'c{i}', '--force', '--wait')
                self.assertEqual((code, self.read(f'out/{i}')), (0, b'a: 2\n'), out + error)
                self.assertFalse({'if-modified-since', 'if-none-match'} & set(asked[i][-1]))
        agent.stop()

    def test_a_date_that_was_weak_is_strong_when_it_is_told_again_later(self):
        clock, asked = [NOW], []

        def answer(ask):
            asked.append(ask.headers.get('if-modified-since'))
            if asked[-1]:
                return [head(f'Date: {date(clock[0])}', status='304 Not Modified')]
            return [counted(b'a: 1\n', f'Last-Modified: {date(NOW)}', f'Date: {date(clock[0])}')]
        agent = self.agent(Wire(self, answer).url + '/web.yaml')
        outcomes = [agent.refresh()['outcome']]
        clock[0] += 3600
        outcomes += [agent.refresh()['outcome'] for _ in range(2)]
        self.assertEqual((asked, outcomes), ([None, None, None, date(NOW)], ['unchanged'] * 3))
        agent.stop()


class Tags(Case):
    def test_a_tag_is_sent_back_as_it_came_or_not_at_all(self):
        legal = [b'"a"', b'""', b'W/"a"', b'"\xe4\xff"', b'"a\\"', b'"*"', b"\"it's\"", b'"!#$%&()+,-./:;<=>?@[]^_`{|}~"', b'"' + b'x' * 200 + b'"']
        other = [b'*', b'W/*', b'a', b'', b'"', b'"a', b'a"', b'W/a', b'w/"a"', b'W/ "a"', b'"a", "b"', b'"a""b"', b'"a b"', b'"a" x', b'"a\rX-Evil: 1"', b'"a\x01"', b'"a\x1b[31m"', b'"a\x7f"', b'"a\tb"',
                 b'"a"\rX-Evil: 1', b"'a'", b'\xe2\x80\x9ca\xe2\x80\x9d', b'"a"b"', b'W/W/"a"', b'"' + b'x' * 5000 + b'"', b'*, "a"', b'"a\0b"']
        cases, stage, heads = legal + other, [1], {}

        def answer(ask):
            heads.setdefault(ask.place, []).append(ask.head)
            if b'\r\nIf-None-Match' in ask.head and ask.headers['if-none-match'] == '*':
                return [head(status='304 Not Modified')]  # there is one: that is what an asterisk asks
            return [counted(b'a: %d\n' % stage[0], b'ETag: ' + cases[ask.place])]
        server = Wire(self, answer, places=len(cases))
        agent = self.agents(server, len(cases))
        agent.ready()
        deadline = time.monotonic() + harness.DEADLINE
        while min(len(heads.get(i, ())) for i in range(len(cases))) < 1 and time.monotonic() < deadline:
            agent.log._more(time.monotonic() + .02)
        stage[0] = 2
        for i, tag in enumerate(cases):
            with self.subTest(tag[:40]):
                outcome = agent.refresh(f'c{i}')
                again = heads[i][-1]
                self.assertGreater(len(heads[i]), 1)
                for line in again.split(b'\r\n'):
                    self.assertNotRegex(line, rb'[\x00-\x1f\x7f]|Evil', 'nothing gets into a request')
                back = re.search(rb'^If-None-Match: (.*?)\r?$', again + b'\r', re.M)
                if tag in legal:
                    self.assertEqual((outcome['outcome'], self.read(f'out/{i}')), ('published', b'a: 2\n'), outcome)
                    self.assertEqual(back and back[1], tag)
                else:
                    self.assertIsNone(back)
                    if os.path.exists(self.path(f'out/{i}')):
                        self.assertEqual((outcome['outcome'], self.read(f'out/{i}')), ('published', b'a: 2\n'), outcome)
                    else:
                        self.assertEqual(outcome['outcome'], 'failed')
        agent.stop()
        told = '\n'.join(agent.log.seen)
        self.assertNotRegex(told, '[\x00-\x08\x0b-\x1f\x7f-\x9f]', 'nor to a terminal')

    def test_force_is_never_conditional_and_a_plain_refresh_is(self):
        asked = []

        def answer(ask):
            asked.append('if-none-match' in ask.headers)
            if asked[-1]:
                return [head('ETag: "1"', status='304 Not Modified')]  # the server is wrong: the document has changed
            return [counted(b'a: %d\n' % len(asked), 'ETag: "1"')]
        agent = self.agent(Wire(self, answer).url + '/web.yaml')
        self.assertEqual(agent.refresh()['outcome'], 'unchanged')
        agent.cli('refresh', 'web', '--force', '--wait', check=0)
        self.assertEqual((asked, self.read('out/web.yaml')), ([False, True, False], b'a: 3\n'))
        agent.stop()

    def test_a_304_with_another_tag_confirms_nothing(self):
        asked = []

        def answer(ask):
            asked.append(ask.headers.get('if-none-match'))
            if asked[-1]:
                return [head('ETag: "2"', status='304 Not Modified')]
            return [counted(b'a: %d\n' % len(asked), f'ETag: "{min(len(asked), 2)}"')]
        agent = self.agent(Wire(self, answer).url + '/web.yaml')
        self.published(agent, b'a: 3\n')
        self.assertEqual(asked, [None, '"1"', None], 'asked again, for the whole')
        self.assertEqual(agent.refresh()['outcome'], 'unchanged')
        agent.stop()

    def test_a_304_to_what_was_not_conditional_is_not_taken(self):
        stage = ['first']

        def answer(ask):
            if stage[0] == 'first':
                return [counted(b'a: 1\n', 'ETag: "1"')]
            return [head(status='304 Not Modified')]
        agent = self.agent(Wire(self, answer).url + '/web.yaml')
        stage[0] = 'forced'
        outcome = agent.post('/v1/configs/web/refresh?wait=1&force=1')
        self.assertRegex(outcome[1], '"failed".*304')
        self.assertEqual(self.read('out/web.yaml'), b'a: 1\n')
        agent.stop()


class Servers(Case):
    """Documents of one length that follow each other within a second, with a pull after each."""

    def changes(self, url, name):
        self.write(f'www/{name}', 'n: 00\n')
        agent = self.agent(f'{url}/{name}')
        begin = time.time()
        for n in range(1, 25):
            self.write(f'www/{name}', f'n: {n:02}\n')
            self.published(agent, b'n: %02d\n' % n)
        self.assertLess(time.time() - begin, 24 / 2, 'several within a second')
        self.assertEqual(agent.refresh()['outcome'], 'unchanged')
        # in place, in the same second, as an editor does it
        with open(self.path(f'www/{name}'), 'w', encoding='ascii') as f:
            f.write('n: 98\n')
        self.published(agent, b'n: 98\n')
        self.write(f'www/{name}', 'n: 99\n')
        agent.cli('refresh', 'web', '--force', '--wait', check=0)
        self.assertEqual(self.read('out/web.yaml'), b'n: 99\n')
        agent.stop()

    def test_python_http_server(self):
        os.makedirs(self.path('www'))
        server = Program([sys.executable, '-u', '-m', 'http.server', '0', '--bind', '127.0.0.1', '--directory', self.path('www')], read='both')
        self.addCleanup(server.close)
        self.changes(re.search(r'http://[\d.:]+', server.log.wait('Serving HTTP'))[0], 'web.yaml')

    def test_nginx(self):
        self.changes(Nginx(self).url, 'web.yaml')

    def test_nginx_without_tags(self):
        self.changes(Nginx(self, server='etag off;').url, 'web.yaml')

    def test_nginx_that_packs(self):
        self.changes(Nginx(self, http='gzip on; gzip_min_length 1; gzip_types application/yaml;').url, 'web.yaml')

    def test_pullet_serve(self):
        self.changes(self.serve()[1], 'web.yaml')


if __name__ == '__main__':
    harness.main()
