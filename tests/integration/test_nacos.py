"""Nacos behind the agent: documents, long polls, users, namespaces; and the API of Nacos 3, which is polled."""
import hashlib
import json
import signal
import subprocess
import time

import harness
import kinds
from servers.nacos import Nacos

MD5_OF = {n: hashlib.md5(f'n: {n}\n'.encode()).hexdigest() for n in range(10)}


def is_listen(request):
    return request.path.endswith('/configs/listener')


def is_read(request):
    return request.method == 'GET' and request.path.endswith(('/cs/configs', '/cs/config'))


def is_login(request):
    return request.path.endswith(('/auth/login', '/user/login'))


class Lenient(Nacos):
    """What speaks Nacos' language without its rule for names."""

    def _names(self, request):
        p = request.parameters
        return self._key(p['dataId'], p['group'], p.get('tenant', ''))


class Case(kinds.Case):
    def setUp(self):
        super().setUp()
        self.server = Nacos(self)

    def put(self, n, data_id='web.yaml', **kw):
        return self.server.put(data_id, f'n: {n}\n', 'G', **kw)

    def begin_nacos(self, keys='watch: true', path='/G/web.yaml', url=None, **kw):
        return self.begin(f'kind: nacos, urls: ["{url or self.server.url}"], {keys}', path, **kw)

    def last_list(self):
        return [r for r in self.server.requests if is_listen(r)][-1].form['Listening-Configs']

    def held_md5(self):
        """What the last listener request said is held."""
        return self.last_list().split('\2')[2].split('\1')[0]

    def tearDown(self):
        self.hide(*(r.get('accessToken') for r in self.server.requests if r.get('accessToken')))
        super().tearDown()


class Documents(Case):
    def test_a_version_is_the_md5_and_the_same_document_is_only_confirmed(self):
        self.put(1)
        self.begin_nacos('max_in_flight: 2')
        self.assertEqual((self.standing(), self.version()), ('n: 1\n', MD5_OF[1]))
        self.assertEqual(self.agent.cli('wait', 'web', '--version', MD5_OF[1])[:2], (0, 'web: generation 1 is current\n'))
        self.confirms()
        self.put(2)
        self.assertEqual(self.refreshed('published')['version'], MD5_OF[2])
        self.assertEqual(self.standing(), 'n: 2\n')
        self.confirms()

    def test_a_document_that_is_not_there_at_first_comes_when_it_is_put(self):
        self.begin_nacos(wait=None)
        self.fails_at_first('not found', 'check the group, the data id and the namespace')
        self.server.wait_holding(1)
        self.put(1)
        self.agent.log.wait('published config=web generation=1')
        self.watching()  # a poll that was answered is the proof

    def test_each_cause_has_a_name_and_a_sentence_of_its_own_and_the_version_stays(self):
        self.put(1)
        self.begin_nacos('max_in_flight: 2')
        self.server.delete('web.yaml', 'G')
        sentences = [self.fails('not found', 'there is no such document')]
        self.server.put('web.yaml', '', 'G')
        sentences.append(self.fails('empty', 'the body is empty'))
        self.put(1)
        self.server.auth = True
        sentences.append(self.fails('forbidden', 'wants a user and a password .auth: basic'))
        self.server.auth = False
        self.server.down()
        sentences.append(self.fails('unreachable', 'connection refused'))
        self.server.up()
        self.assertEqual(len(set(sentences)), 4)
        self.confirms()

    def test_a_server_that_cannot_now_says_so(self):
        self.put(1)
        self.begin_nacos('max_in_flight: 2')
        for status, cause, words in ((503, 'overloaded', '503.*overloaded'), (429, 'overloaded', '429.*overloaded'), (500, 'bad answer', '500.*failed'),
                                     (502, 'unreachable', '502')):
            self.server.fault(when=is_read, status=status)
            self.fails(cause, words)
        self.server.fault(times=None, when=is_read, reset=True)
        self.fails('unreachable', 'reset|Empty reply')
        self.server.clear_faults()
        self.server.fault(when=is_read, hang=True)
        self.fails('timeout', 'time')
        self.confirms()

    def test_while_it_is_dumped_it_is_asked_for_again(self):
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        self.server.dump('web.yaml', group='G')
        self.put(2)
        self.until(lambda: self.agent.status()['cause'] == 'bad answer')
        self.assertIn('being changed on the server at this moment', self.agent.status()['last_error'])
        self.assertEqual(self.standing(), 'n: 1\n')
        self.server.dump('web.yaml', False, group='G')
        self.stands(MD5_OF[2])

    def test_what_was_damaged_on_the_way_is_refused(self):
        self.put(1)
        self.begin_nacos('max_in_flight: 2')
        self.put(2)
        self.server.content_md5 = '0' * 32
        self.fails('bad answer', 'MD5 is not the one that the server tells')
        self.server.content_md5 = None
        self.server.fault(when=is_read, change=lambda answer: setattr(answer, 'body', b'n: 3\n'))
        self.fails('bad answer', 'MD5')
        self.server.fault(when=is_read, cut=5)
        self.fails('unreachable', 'cut short')
        self.server.fault(when=is_read, raw=b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nn: 3\n')
        self.fails('bad answer', 'without a length or chunking')
        self.server.content_md5 = ''  # of servers that tell none
        self.assertEqual(self.refreshed('published')['version'], MD5_OF[2])

    def test_compressed_on_the_way_it_is_the_same(self):
        self.server.gzip_over = 0
        self.put(1)
        self.begin_nacos()
        self.assertEqual((self.standing(), self.version()), ('n: 1\n', MD5_OF[1]))
        self.server.wait_holding(1)
        self.put(2)
        self.stands(MD5_OF[2])

    def test_one_that_is_too_large_says_so(self):
        self.put(1)
        self.begin_nacos('max_size: 1KiB')
        self.server.put('web.yaml', 'n: 2 #' + 'x' * 1100, 'G')
        self.fails('bad answer', 'the document is larger than max_size')
        self.server.put('web.yaml', 'n: 2 #' + 'x' * 1000, 'G')
        self.refreshed('published')

    def test_what_is_not_nacos_never_makes_an_optional_document_vanish(self):
        self.put(1)
        self.put(2, 'more.yaml')
        self.begin_nacos('max_in_flight: 2', ['/G/web.yaml', '{server: main, path: /G/more.yaml, optional: true}'])
        self.assertEqual(self.standing(), "n: 2\n")
        self.server.fault(when=lambda r: r.get('dataId') == 'more.yaml', status=404, body='<html>nginx</html>')
        self.fails('not found', '404, but not as Nacos says')
        self.server.context = '/elsewhere'
        self.fails('not found', "check the url's path, and whether the server wants api: 3")
        self.server.context = '/nacos'
        self.server.version, self.server.v1 = 3, False
        self.fails('not found', 'wants api: 3')
        self.server.version, self.server.v1 = 2, True
        self.confirms()
        self.server.delete('more.yaml', 'G')
        self.refreshed('published')
        self.assertEqual(self.standing(), "n: 1\n")

    def test_namespaces_are_apart(self):
        self.put(1)
        self.put(2, tenant='dev')
        self.begin_nacos('namespace: dev, watch: true')
        self.assertEqual(self.version(), MD5_OF[2])
        self.server.wait_holding(1)
        self.put(3)
        self.server.still_holding(1)
        self.put(4, tenant='dev')
        self.stands(MD5_OF[4])
        self.assertEqual(self.standing(), 'n: 4\n')

    def test_public_is_the_namespace_without_a_name(self):
        self.put(1)
        self.begin_nacos('namespace: public, watch: true')
        self.server.wait_holding(1)
        self.put(2)
        self.stands(MD5_OF[2])

    def test_a_path_of_the_url_is_the_context(self):
        self.server.context = '/config/nacos2'
        self.put(1)
        self.begin_nacos(url=self.server.url + '/config/nacos2/')
        self.server.wait_holding(1)
        self.put(2)
        self.stands(MD5_OF[2])


class Names(Case):
    def test_letters_of_any_script_are_found_and_watched(self):
        self.server.put('größe-名.yaml', 'n: 1\n', 'Gruppe.Ä', tenant='dev')
        self.begin_nacos('namespace: dev, watch: true', '/Gruppe.Ä/größe-名.yaml')
        self.server.wait_holding(1)
        self.server.put('größe-名.yaml', 'n: 2\n', 'Gruppe.Ä', tenant='dev')
        self.stands(MD5_OF[2])

    def test_a_name_that_nacos_does_not_allow_is_refused_and_not_absent(self):
        self.put(1)
        self.begin_nacos('max_in_flight: 2', ['/G/web.yaml', '{server: main, path: /G/a+b.yaml, optional: true}'], wait=None)
        self.fails_at_first('bad answer', r'^/G/a\+b.yaml: the server answered 400')

    def test_percent_plus_and_others_arrive_as_they_are_written(self):
        self.server.close()
        self.server = Lenient(self)
        for name in ('a%b.yaml', 'a+b.yaml', 'a%20b.yaml', 'a%2Bb.yaml', '100%.yaml', 'a&b=c;d.yaml', 'a~b(c)!.yaml', '%01%02.yaml'):
            with self.subTest(name=name):
                self.server.put(name, 'n: 1\n', 'G+%')
                self.begin_nacos('watch: true', f'/G+%/{name}')
                self.assertEqual(self.standing(), 'n: 1\n')
                self.server.wait_holding(1)
                self.server.put(name, 'n: 2\n', 'G+%')
                self.stands(MD5_OF[2])
                self.end(self.agent)
                subprocess.run(['rm', '-r', self.path('state'), self.path('out/web.yaml')], check=True)


class Watch(Case):
    def test_a_change_is_there_although_the_interval_is_an_hour(self):
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        for n in (2, 3, 4):
            self.put(n)
            self.stands(MD5_OF[n])
            self.server.wait_holding(1)
            self.until(lambda n=n: self.held_md5() == MD5_OF[n])
        self.assertEqual(self.watching()['documents'], 1)
        self.assertEqual(self.agent.status()['runs']['failed'], 0)

    def test_a_change_is_one_pull_and_one_poll(self):
        """Also when the pull is spread: a poll that went out before it would be answered at once."""
        for spread in ('0s', '1500ms'):
            with self.subTest(spread=spread):
                self.put(1)
                self.begin_nacos(more=f'    push_spread: {spread}\n', wait='published config=web')
                self.server.wait_holding(1)
                self.until(lambda: self.held_md5() == MD5_OF[1])
                first, told = self.server.count, self.agent.status()['watch']['changes']
                for n in (2, 3, 4):
                    self.put(n)
                    self.until(lambda n=n: self.server.holding == 1 and self.held_md5() == MD5_OF[n])
                requests = self.server.requests[first:]
                self.assertEqual([is_listen(r) for r in requests], 3 * [False, True])
                self.assertEqual(self.agent.status()['watch']['changes'], told + 3)
                self.end(self.agent)

    def test_others_of_the_same_list_are_not_kept_waiting_by_a_pull_that_hangs(self):
        self.put(1)
        self.put(1, 'more.yaml')
        self.begin_nacos('watch: true, max_in_flight: 4', configs=self.others({'more': '/G/more.yaml'}), timeout='1m')
        self.agent.log.wait('published config=more generation=1')
        self.until(lambda: self.server.holding == 1 and self.last_list().count(MD5_OF[1]) == 2)
        self.server.fault(when=lambda r: is_read(r) and r.get('dataId') == 'web.yaml', hang=True)
        self.put(2)
        self.until(lambda: self.agent.status()['watch']['changes'])
        self.until(lambda: 'web.yaml' not in self.last_list())
        with kinds.Window(self.server, 3) as window:
            pass
        self.assertEqual(window.count(is_listen), 0)  # not each second again
        self.put(2, 'more.yaml')
        self.agent.log.wait('published config=more generation=2')
        web = self.agent.status()
        self.assertEqual((web['generation'], web['running']), (1, True))

    def test_after_a_restart_nothing_has_changed(self):
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        self.end(self.agent)
        self.server.wait_holding(0)
        self.again('last known good')
        self.server.wait_holding(1)
        self.assertEqual(self.held_md5(), MD5_OF[1])
        self.assertEqual(self.agent.status()['watch']['changes'], 0)
        self.put(2)
        self.stands(MD5_OF[2])

    def test_a_change_while_the_agent_was_away_is_seen_at_once(self):
        self.put(1)
        self.begin_nacos()
        self.end(self.agent)
        self.put(2)
        self.again('last known good')
        self.stands(MD5_OF[2])

    def test_an_optional_document_comes_and_goes(self):
        self.put(1)
        self.begin_nacos('watch: true', ['/G/web.yaml', '{server: main, path: /G/more.yaml, optional: true}'])
        self.server.wait_holding(1)
        self.server.put('more.yaml', 'm: 1\n', 'G')
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.standing(), "n: 1\nm: 1\n")
        self.server.wait_holding(1)
        self.server.delete('more.yaml', 'G')
        self.agent.log.wait('published config=web generation=3')
        self.assertEqual(self.standing(), "n: 1\n")

    def test_a_document_that_was_deleted_is_waited_for_without_a_storm(self):
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        self.server.delete('web.yaml', 'G')
        self.until(lambda: self.agent.status()['cause'] == 'not found')
        self.server.wait_holding(1)
        with kinds.Window(self.server, 3) as window:
            self.server.still_holding(1)
        self.assertEqual(window.requests, [])
        self.assertEqual((self.standing(), self.watching()['state']), ('n: 1\n', 'watching'))
        self.put(1)  # the same as before: nobody but the error has to go
        self.until(lambda: self.agent.status()['cause'] is None)
        self.server.wait_holding(1)
        self.put(2)
        self.stands(MD5_OF[2])
        self.assertEqual(self.agent.status()['generation'], 2)

    def test_a_document_that_cannot_be_taken_is_asked_for_once_a_second(self):
        """Known only to the server's MD5, so that each poll is answered at once."""
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        self.server.content_md5 = '0' * 32
        self.put(2)
        self.until(lambda: self.agent.status()['cause'] == 'bad answer')
        with kinds.Window(self.server, 3) as window:
            pass
        self.assertGreaterEqual(window.count(is_listen), 2)
        self.assertLessEqual(window.count(is_listen), 3 + 3)
        self.assertLessEqual(window.count(is_read), 3 + 3)
        self.server.content_md5 = None
        self.stands(MD5_OF[2])

    def test_a_version_that_was_refused_is_not_told_of_again(self):
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        bad = self.server.put('web.yaml', 'n: [\n', 'G')
        self.agent.log.wait('rejected by the syntax')
        self.until(lambda: self.held_md5() == bad)
        self.server.wait_holding(1)
        self.is_quiet()
        self.put(3)
        self.stands(MD5_OF[3])

    def test_a_pinned_config_is_told_of_each_version_once(self):
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        self.agent.cli('pin', 'web', check=0)
        for n in (2, 3):
            self.put(n)
            self.until(lambda n=n: self.server.holding == 1 and self.held_md5() == MD5_OF[n])
        self.is_quiet()
        self.agent.cli('unpin', 'web', check=0)
        self.stands(MD5_OF[3])

    def test_what_was_rolled_back_is_not_told_of_again(self):
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        self.put(2)
        self.stands(MD5_OF[2])
        self.agent.cli('rollback', 'web', check=0)
        self.assertEqual(self.standing(), 'n: 1\n')
        self.again('last known good')
        self.until(lambda: 'rejected' in self.agent.status())  # what is held may be a poll of the agent before
        self.until(lambda: self.server.holding == 1 and self.held_md5() == MD5_OF[2])
        self.is_quiet()
        self.put(3)
        self.stands(MD5_OF[3])

    def test_new_settings_go_on_with_the_watch(self):
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        self.reload(self.read('pullet.yaml').replace(b'interval: 1h', b'interval: 2h'), 'changed="1: web"')
        self.server.wait_holding(1)
        self.put(2)
        self.stands(MD5_OF[2])

    def is_quiet(self):
        with kinds.Window(self.server, 2) as window:
            self.server.still_holding(1)
        self.assertEqual(window.requests, [])
        self.assertEqual(self.standing(), 'n: 1\n')

    def reload(self, text, expected):
        seen = self.agent.log.count
        self.write('pullet.yaml', text)
        self.agent.signal(signal.SIGHUP)
        self.assertIn(expected, self.agent.log.wait('the new configuration is applied', start=seen))

    def test_new_settings_leave_one_request_of_those_that_stay_and_those_that_come(self):
        for name in ('web', 'stays', 'goes', 'comes'):
            self.put(1, name + '.yaml')
        self.begin_nacos(configs=self.others({'stays': '/G/stays.yaml', 'goes': '/G/goes.yaml'}), wait=None)
        for name in ('web', 'stays', 'goes'):
            self.agent.log.wait(f'published config={name} ')
        self.until(lambda: self.server.holding == 1 and self.last_list().count('\1') == 3 and self.last_list().count(MD5_OF[1]) == 3)
        text = self.read('pullet.yaml').decode()
        self.reload(text.replace('goes', 'comes'), 'unchanged=2 added="1: comes" removed="1: goes"')
        self.agent.log.wait('published config=comes ')
        self.until(lambda: self.server.holding == 1 and 'comes.yaml' in self.last_list() and self.last_list().count(MD5_OF[1]) == 3)
        self.assertNotIn('goes.yaml', self.last_list())
        with kinds.Window(self.server, 1) as window:
            for name in ('stays', 'comes'):
                self.put(2, name + '.yaml')
                self.stands(MD5_OF[2], name)
        self.assertEqual({r.get('dataId') for r in window.requests if is_read(r)}, {'stays.yaml', 'comes.yaml'})

    def test_many_documents_are_one_request(self):
        names = [f'c{i}' for i in range(30)]
        for name in names:
            self.put(1, name + '.yaml')
        self.put(1)
        self.begin_nacos(configs=self.others({name: f'/G/{name}.yaml' for name in names}), wait=None)
        for name in (*names, 'web'):
            self.agent.log.wait(f'published config={name} ')
        self.until(lambda: self.server.holding == 1 and all(f'c{i}' in self.last_list() and MD5_OF[1] in self.last_list() for i in range(30)))
        self.assertEqual(self.last_list().count('\1'), 31)
        with kinds.Window(self.server, 2) as window:
            self.put(2, 'c17.yaml')
            self.stands(MD5_OF[2], 'c17')
        reads = [r.get('dataId') for r in window.requests if is_read(r)]
        self.assertEqual(set(reads), {'c17.yaml'}, 'the others are not pulled')
        self.assertLessEqual(len(reads), 3)
        self.assertLessEqual(window.count(is_listen), 4)
        self.server.still_holding(1)

    def test_two_configs_of_one_document_are_both_told(self):
        self.put(1)
        self.begin_nacos(configs=self.others({'twin': '/G/web.yaml'}))
        self.agent.log.wait('published config=twin')
        self.server.wait_holding(1)
        self.put(2)
        self.stands(MD5_OF[2])
        self.stands(MD5_OF[2], 'twin')

    def test_more_than_fit_into_one_request_are_two(self):
        names = [f'c{i}' for i in range(64)]
        for name in (*names, 'web'):
            self.put(1, name + '.yaml')
        self.begin_nacos(configs=self.others({name: f'/G/{name}.yaml' for name in names}), wait=None)
        for name in (*names, 'web'):
            self.agent.log.wait(f'published config={name} ')
        self.server.wait_holding(2)
        for name in ('c0', 'c63', 'web'):
            self.put(2, name + '.yaml')
            self.stands(MD5_OF[2], name)

    def test_a_server_that_goes_down_and_comes_up_is_watched_again(self):
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        with kinds.Window(self.server, 1) as window:
            self.server.down()
            self.watching('failing')
            self.assertRegex(self.agent.status()['watch']['error'], 'refused|Empty reply')
            self.put(2)
            self.server.up()
        self.stands(MD5_OF[2])
        self.assertLessEqual(len(window.requests), 6)
        self.watching()
        self.assertIsNone(self.agent.status()['watch']['error'])
        self.put(3)
        self.stands(MD5_OF[3])

    def test_connections_that_are_cut_again_and_again_are_no_storm(self):
        self.put(1)
        self.begin_nacos()
        self.server.wait_holding(1)
        self.server.fault(times=None, when=is_listen, reset=True)
        self.server.drop()
        self.watching('failing')
        with kinds.Window(self.server, 2) as window:
            pass
        self.assertLessEqual(len(window.requests), 6)
        self.server.clear_faults()
        self.put(2)
        self.stands(MD5_OF[2])

    def test_an_overloaded_server_is_asked_less_and_the_pulls_go_on(self):
        self.server.overloaded, self.server.overload_delay = True, (0, 0)
        self.put(1)
        self.begin_nacos()
        self.watching('failing')
        self.assertRegex(self.agent.status()['watch']['error'], '503 to the watch: it cannot now')
        self.put(2)
        self.stands(MD5_OF[2])  # it differs from what is held, which is answered before the load is looked at
        with kinds.Window(self.server, 3) as window:
            pass
        self.assertLessEqual(window.count(is_listen), 5)
        self.server.overloaded = False
        self.server.wait_holding(1)
        self.put(3)
        self.stands(MD5_OF[3])
        self.watching()

    def test_answers_that_are_none_are_failures_and_no_news(self):
        self.put(1)
        for body in (b'something else\n', b'<html></html>', b'other.yaml%02G%01\n', b'web.yaml%02G%02dev%01\n', b'%0', b'web.yaml%02G'):
            self.server.fault(when=is_listen, status=200, body=body)
        self.begin_nacos()
        self.watching('failing')
        self.assertRegex(self.agent.status()['watch']['error'], 'no list of what was asked for')
        self.assertEqual(self.agent.status()['watch']['changes'], 0)
        self.server.clear_faults()
        self.server.wait_holding(1)
        self.put(2)
        self.stands(MD5_OF[2])

    def test_a_poll_that_hangs_is_given_up_and_meanwhile_pulls_go_on(self):
        """Half a minute of holding and ten seconds more: the longest test here."""
        self.put(1)
        hung = self.server.fault(when=is_listen, hang=True)
        self.begin_nacos()
        self.server.wait(1, is_listen)
        start = time.monotonic()
        self.put(2)
        self.refreshed('published')
        self.server.wait_answered(1, is_listen, timeout=60)
        self.assertGreater(time.monotonic() - start, 30, 'the server may hold it for so long')
        self.put(3)
        self.stands(MD5_OF[3])
        self.assertEqual(hung.hits, 1)

    def test_the_end_of_a_hold_is_no_news(self):
        self.server.min_hold, self.server.early = 0.3, 40.0
        self.put(1)
        self.begin_nacos()
        with kinds.Window(self.server, 3) as window:
            self.server.wait_answered(3, is_listen)
        self.assertEqual(window.count(is_read), 0)
        self.assertLessEqual(window.count(is_listen), 3 + 3)
        self.assertEqual(self.watching()['changes'], 0)
        self.assertEqual(self.agent.status()['runs']['success'], 1)


class Users(Case):
    """Nacos with authentication on."""

    def setUp(self):
        super().setUp()
        self.password = 'pa55+w/ört "of" nobody'
        self.server.add_user('agent', self.password)
        self.put(1)

    def begin_user(self, keys='watch: true', name='agent', password=None, **kw):
        path = self.plant('password', password or self.password)
        return self.begin_nacos(f'{keys}, auth: {{basic: {{user: {name}, password_file: {path}}}}}', **kw)

    def logins(self):
        return sum(map(is_login, self.server.requests))

    def refusals(self):
        return [r for r in self.server.requests if r.status == 403]

    def test_a_token_serves_pulls_and_watches(self):
        self.begin_user()
        self.server.wait_holding(1)
        self.put(2)
        self.stands(MD5_OF[2])
        self.confirms()
        self.assertEqual((self.logins(), self.refusals()), (1, []))

    def test_a_token_that_ended_is_renewed_within_the_run(self):
        self.begin_user('max_in_flight: 2')
        for end in (self.server.expire_tokens, self.server.forget_tokens):
            end()
            self.confirms()
        runs = self.agent.status()['runs']
        self.assertEqual((runs['failed'], runs['not_started'], runs['timeouts']), (0, 0, 0))
        self.assertEqual((self.logins(), len(self.refusals())), (3, 2))

    def test_a_token_that_ended_is_renewed_by_the_watch(self):
        self.begin_user()
        self.server.wait_holding(1)
        self.server.expire_tokens()
        self.server.drop()
        self.server.wait(1, lambda r: is_listen(r) and r.status == 403)
        self.server.wait_holding(1)
        self.put(2)
        self.stands(MD5_OF[2])
        self.assertEqual((self.logins(), len(self.refusals())), (2, 1))

    def test_a_token_near_its_end_is_not_used(self):
        self.server.token_ttl = 1
        self.begin_user('max_in_flight: 2')
        time.sleep(0.95)  # the age of the token is what is tested
        self.confirms()
        self.assertEqual((self.logins(), self.refusals()), (2, []))

    def test_a_wrong_password_says_so_and_a_right_one_is_taken_at_the_next_pull(self):
        self.begin_user('max_in_flight: 2', password='not that one', wait=None)
        self.fails_at_first('forbidden', '403 to the login: it refuses the user')
        before = self.logins()
        self.agent.refresh()
        self.assertEqual(self.logins(), before + 1)
        self.plant('password', self.password)
        self.refreshed('published')
        self.plant('password', 'wrong again')
        self.confirms()  # the token is still good
        self.server.expire_tokens()
        self.fails('forbidden', 'refuses the user')

    def test_a_wrong_password_is_no_storm(self):
        self.begin_user(password='not that one', wait=None)
        self.watching('failing')
        with kinds.Window(self.server, 4) as window:
            pass
        self.assertLessEqual(len(window.requests), 6)
        self.assertRegex(self.agent.status()['watch']['error'], 'refuses the user')

    def test_a_user_who_may_not_read_is_refused_without_end_of_logins(self):
        self.server.add_user('guest', self.password, allowed=False)
        self.begin_user('max_in_flight: 2', name='guest', wait=None)
        self.fails_at_first('forbidden', 'the user may not read this')
        self.assertEqual((self.logins(), sum(map(is_read, self.server.requests))), (2, 2))

    def test_one_login_for_all(self):
        names = [f'c{i}' for i in range(20)]
        for name in names:
            self.put(1, name + '.yaml')
        self.begin_user(configs=self.others({name: f'/G/{name}.yaml' for name in names}), wait=None)
        for name in (*names, 'web'):
            self.agent.log.wait(f'published config={name} ')
        self.server.wait_holding(1)
        self.assertEqual((self.logins(), self.refusals()), (1, []))

    def test_a_login_that_fails_for_another_reason_is_not_the_users_fault(self):
        self.begin_user('max_in_flight: 2')
        for what, cause, words in (({'status': 503}, 'overloaded', 'overloaded'), ({'status': 500}, 'bad answer', 'failed'),
                                   ({'reset': True}, 'unreachable', 'reset|Empty reply'), ({'hang': True}, 'timeout', 'time'),
                                   ({'status': 404, 'body': 'x'}, 'bad answer', "404 to the login: check the url's path"),
                                   ({'status': 200, 'body': '{}'}, 'bad answer', 'has no token'),
                                   ({'status': 200, 'body': '<html>'}, 'bad answer', 'has no token')):
            with self.subTest(**what):
                self.server.forget_tokens()
                self.server.fault(when=is_login, **what)
                self.fails(cause, words)
        self.confirms()


class Three(Case):
    """Nacos 3: JSON around the document, no long polls over HTTP."""

    def setUp(self):
        super().setUp()
        self.server.version, self.server.v1 = 3, False

    def begin_nacos(self, keys='', **kw):
        return super().begin_nacos(f'api: 3{", " if keys else ""}{keys}', **kw)

    def test_it_is_polled_and_its_version_is_the_md5(self):
        self.put(1)
        self.begin_nacos()
        self.assertEqual((self.standing(), self.version()), ('n: 1\n', MD5_OF[1]))
        self.confirms()
        self.put(2)
        self.refreshed('published')
        self.agent.cli('wait', 'web', '--version', MD5_OF[2], check=0)
        self.assertEqual(sum(map(is_listen, self.server.requests)), 0)

    def test_each_cause(self):
        self.put(1)
        self.begin_nacos()
        self.server.delete('web.yaml', 'G', 'public')
        sentences = [self.fails('not found', 'there is no such document')]
        self.server.put('web.yaml', '', 'G')
        sentences.append(self.fails('empty', 'it is there, and it is empty|it is empty'))
        self.put(1)
        self.server.auth = True
        sentences.append(self.fails('forbidden', 'auth: basic'))
        self.server.auth = False
        self.server.down()
        sentences.append(self.fails('unreachable', 'refused'))
        self.server.up()
        self.assertEqual(len(set(sentences)), 4)
        self.server.content_md5 = 'f' * 32
        self.put(2)
        self.fails('bad answer', 'MD5')
        self.server.content_md5 = None
        for code, cause, words in ((20005, 'bad answer', 'being changed'), (22001, 'not found', 'no such namespace'), (30000, 'bad answer', 'the code 30000')):
            self.server.fault(when=is_read, status=200, body=json.dumps({'code': code, 'message': 'x', 'data': None}))
            self.fails(cause, words)
        for body in (b'', b'[]', b'{}', b'{"code":"0"}', b'{"code":0}', b'{"code":0,"data":[]}', b'{"code":0,"data":{"content":1}}', b'n: 1\n', b'{"code":0,'):
            self.server.fault(when=is_read, status=200, body=body)
            self.fails('bad answer', 'Nacos 3')
        self.server.fault(when=is_read, cut=20)
        self.fails('unreachable', 'cut short')
        self.refreshed('published')

    def test_the_size_is_that_of_the_document_not_of_the_answer(self):
        self.server.put('web.yaml', 'n: 1\n' + '#"\n' * 330, 'G')
        self.begin_nacos('max_size: 1KiB')
        self.server.put('web.yaml', 'n: 2 #' + 'x' * 1100, 'G')
        self.fails('bad answer', 'max_size')

    def test_text_of_any_kind_comes_whole(self):
        text = 'ä: "quotes \\" and 名"\nlines: |\n  one\n  two\n'
        self.server.put('web.yaml', text, 'G', kind='yaml')
        self.begin_nacos()
        self.assertEqual(self.standing(), text)

    def test_namespaces(self):
        self.put(1)
        self.put(2, tenant='dev')
        self.begin_nacos('namespace: dev')
        self.assertEqual(self.version(), MD5_OF[2])
        self.end(self.agent)
        subprocess.run(['rm', '-r', self.path('state'), self.path('out')], check=True)
        self.begin_nacos('namespace: public')
        self.assertEqual(self.version(), MD5_OF[1])

    def test_a_server_of_2_says_which_key_is_wrong(self):
        self.put(1)
        self.server.version, self.server.v1 = 2, True
        self.begin_nacos(wait=None)
        self.fails_at_first('not found', "no answer of the API of Nacos 3: check the url's path, and api:")

    def test_users(self):
        self.put(1)
        self.server.add_user('agent', 'secret of three')
        self.begin_nacos(f'auth: {{basic: {{user: agent, password_file: {self.plant("password", "secret of three")}}}}}')
        self.server.forget_tokens()
        self.confirms()
        self.plant('password', 'another of three')
        self.server.expire_tokens()
        self.fails('forbidden', 'refuses the user')

    def test_a_watch_is_refused_where_it_is_written(self):
        code, text = self.complaints(f'kind: nacos, api: 3, watch: true, urls: ["{self.server.url}"]', '/G/web.yaml')
        self.assertEqual(code, 78, text)
        self.assertRegex(text, r'checked\.yaml:\d+:\d+: Nacos 3 cannot be watched over HTTP')
        for bad, words in (('api: 2', 'api is 1'), ('region: eu', 'region means nothing'), ('namespace: "a b"', 'is not a name')):
            code, text = self.complaints(f'kind: nacos, {bad}, urls: ["{self.server.url}"]', '/G/web.yaml')
            self.assertEqual(code, 78, text)
            self.assertRegex(text, words)
        for path in ('/web.yaml', '/G/web.yaml/x', '/G//web.yaml', '/G/', 'G/web.yaml', '/G/a b.yaml'):
            self.assertEqual(self.complaints(f'kind: nacos, urls: ["{self.server.url}"]', path)[0], 78, path)


class Leaks(Case):
    """The search for secrets finds what is there: else it would prove nothing."""

    def test_a_secret_that_is_written_somewhere_is_found(self):
        self.server.put('web.yaml', 'n: my%20secret\n', 'G')
        self.begin_nacos('max_in_flight: 2')
        self.search({})
        self.secrets = ['my secret']
        for told in ({}, {'x': 'a my secret'}, {'x': 'a my+secret'}, {'x': base64_of('user:my secret')}):
            with self.assertRaises(AssertionError):
                self.search(told)
        self.secrets = ['another']
        self.search({'x': base64_of('user:my secret')})
        self.secrets = [self.server.url]  # which the status shows
        with self.assertRaises(AssertionError):
            self.end(self.agent)
        self.secrets = []


def base64_of(text):
    return kinds.base64.b64encode(text.encode()).decode()


if __name__ == '__main__':
    harness.main()
