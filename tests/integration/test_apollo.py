"""Apollo's config service behind the agent: namespaces of keys and of files, releases whole and in part, access keys, notifications."""
import json

import harness
import kinds
from servers.apollo import Apollo


def is_poll(request):
    return request.raw_path == '/notifications/v2'


def is_read(request):
    return request.raw_path.startswith('/configs/')


class Case(kinds.Case):
    PATH = '/app/default/application'

    def setUp(self):
        super().setUp()
        self.server = Apollo(self)

    def put(self, n, namespace='application', **kw):
        """The release key."""
        return self.server.put(namespace, {'n': str(n)}, **kw)[0]

    def begin_apollo(self, keys='watch: true', path=PATH, **kw):
        return self.begin(f'kind: apollo, urls: ["{self.server.url}"], {keys}', path, **kw)

    def document(self, name='web'):
        return json.loads(self.standing(name))

    def asked(self):
        """{namespace: id} of the last poll."""
        last = [r for r in self.server.requests if is_poll(r)][-1]
        return {n['namespaceName']: n['notificationId'] for n in json.loads(last.get('notifications'))}

    def reads(self):
        return [r for r in self.server.requests if is_read(r)]


class Releases(Case):
    def test_a_version_is_the_release_key_and_304_only_confirms(self):
        key = self.put(1)
        self.begin_apollo('max_in_flight: 2')
        self.assertEqual((self.document(), self.version()), ({'n': '1'}, key))
        self.agent.cli('wait', 'web', '--version', key, check=0)
        self.confirms()
        self.assertEqual((self.reads()[-1].get('releaseKey'), self.reads()[-1].status), (key, 304))
        key = self.put(2)
        self.assertEqual(self.refreshed('published')['version'], key)
        self.confirms()
        self.end(self.agent)
        self.again('last known good')
        self.confirms()
        self.assertEqual(self.reads()[-1].status, 304)

    def test_a_new_release_of_the_same_values_has_a_new_name_and_the_same_file(self):
        self.put(1)
        self.begin_apollo('max_in_flight: 2')
        before = self.agent.status()
        key = self.put(1)
        status = self.refreshed('unchanged')
        self.assertEqual((status['version'], status['generation']), (key, before['generation']))
        self.agent.cli('wait', 'web', '--version', key, check=0)

    def test_each_cause_has_a_name_and_a_sentence_of_its_own_and_the_version_stays(self):
        self.put(1)
        self.begin_apollo('max_in_flight: 2')
        self.server.delete('application')
        sentences = [self.fails('not found', 'no such namespace, or nothing was released in it')]
        self.server.put('application', {})
        sentences.append(self.fails('empty', 'its release has no keys'))
        self.put(1)
        self.server.secrets['app'] = ['whatever']
        sentences.append(self.fails('forbidden', 'wants requests to be signed .auth: access_key'))
        del self.server.secrets['app']
        self.server.down()
        sentences.append(self.fails('unreachable', 'refused'))
        self.server.up()
        self.assertEqual(len(set(sentences)), 4)
        for status, cause in ((503, 'overloaded'), (429, 'overloaded'), (500, 'bad answer'), (403, 'forbidden')):
            self.server.fault(when=is_read, status=status)
            self.fails(cause, str(status))
        for body in (b'<html>portal</html>', b'[]', b'{}', b'{"configurations":{"a":1},"releaseKey":"x"}', b'{"configurations":{"a":"1"},"releaseKey":""}',
                     b'{"configurations":{"a":"1"},"releaseKey":"' + b'k' * 300 + b'"}', b'{"configurations":{"a":"1"}'):
            self.server.fault(when=is_read, status=200, body=body)
            self.fails('bad answer', 'Apollo|not text|too long')
        self.server.fault(when=is_read, cut=30)
        self.fails('unreachable', 'cut short')
        self.refreshed('unchanged')

    def test_nothing_yet_and_then_something(self):
        self.begin_apollo(wait=None)
        self.fails_at_first('not found', 'check the app, the cluster and the namespace')
        self.server.wait_holding(1)
        key = self.put(1)
        self.stands(key)

    def test_keys_become_a_tree(self):
        self.server.put('application', {'db.host': 'ä "q" \\ 名', 'db.port': '5432', 'servers[0]': 'a', 'servers[1]': 'b', 'a': '1', 'a.b': '2', 'empty': ''})
        self.begin_apollo('max_in_flight: 2')
        self.assertEqual(self.document(), {'db': {'host': 'ä "q" \\ 名', 'port': '5432'}, 'servers': ['a', 'b'], 'a': '1', 'a.b': '2', 'empty': ''})

    def test_a_namespace_that_is_a_file_is_that_file(self):
        text = 'n: 1 # a remark\nname: "ü"\n'
        key, _ = self.server.put('web.yml', text)
        self.begin_apollo(path='/app/default/web.yml')
        self.assertEqual((self.standing(), self.version()), (text, key))
        self.server.wait_holding(1)
        key, _ = self.server.put('web.yml', 'n: 2\n')
        self.stands(key)
        self.assertEqual(self.standing(), 'n: 2\n')
        self.server.put('web.yml', '')
        self.until(lambda: self.agent.status()['cause'] == 'empty')
        self.assertEqual(self.standing(), 'n: 2\n')

    def test_the_size_is_that_of_the_document_not_of_the_answer(self):
        self.server.gzip_over = 0
        self.server.put('web.yml', 'n: 1\n' + '#"\n' * 330)
        self.put(1)
        self.begin_apollo('max_size: 1KiB', path=['/app/default/web.yml', self.PATH])
        self.server.put('web.yml', 'n: 2 #' + 'x' * 1100)
        self.fails('bad answer', '^/app/default/web.yml: larger than max_size')
        self.server.put('web.yml', 'n: 2\n')
        self.server.put('application', {f'k{i}': 'x' * 20 for i in range(60)})
        self.fails('bad answer', '^/app/default/application: .*more than max_size')

    def test_the_cluster_and_the_data_center_count(self):
        self.put(1)
        self.put(2, cluster='eu')
        self.begin_apollo('datacenter: eu, watch: true')
        self.assertEqual(self.document(), {'n': '2'})
        self.server.wait_holding(1)
        self.stands(self.put(3, cluster='eu'))

    def test_a_public_namespace_lies_below_the_applications_own(self):
        self.server.share('common', 'platform')
        self.server.put('common', {'a': '1', 'b': '1'}, app='platform')
        own, _ = self.server.put('common', {'b': '2'})
        self.begin_apollo(path='/app/default/common')
        self.assertEqual(self.document(), {'a': '1', 'b': '2'})
        self.assertTrue(self.version().startswith(own + '+'), self.version())
        self.confirms()
        self.assertEqual(self.reads()[-1].status, 304)
        self.server.wait_holding(1)
        self.server.put('common', {'a': '3', 'b': '1'}, app='platform')
        self.agent.log.wait('generation=2')
        self.assertEqual(self.document(), {'a': '3', 'b': '2'})


class Incremental(Case):
    """A server that answers with what changed."""

    def setUp(self):
        super().setUp()
        self.server.incremental = True
        self.server.put('application', {'a': '1', 'b': '1', 'c': '1'})

    def kinds_of_answers(self):
        return [(r.get('releaseKey') is not None, r.status) for r in self.reads()]

    def test_changes_are_asked_for_again_as_a_whole(self):
        self.begin_apollo('max_in_flight: 2')
        self.confirms()
        self.server.put('application', {'a': '1', 'b': '2', 'd': '1'})
        self.refreshed('published')
        self.assertEqual(self.document(), {'a': '1', 'b': '2', 'd': '1'})
        self.assertEqual(self.kinds_of_answers(), [(False, 200), (True, 304), (True, 200), (False, 200)])
        self.confirms()
        runs = self.agent.status()['runs']
        self.assertEqual((runs['failed'], runs['not_started']), (0, 0))

    def test_a_release_the_server_forgot_is_answered_whole(self):
        self.begin_apollo('max_in_flight: 2')
        self.server.put('application', {'a': '2'})
        self.server.forget_releases()
        self.refreshed('published')
        self.assertEqual(self.document(), {'a': '2'})
        self.assertEqual(self.kinds_of_answers(), [(False, 200), (True, 200)])
        self.confirms()

    def test_a_server_that_never_sends_the_whole_is_refused(self):
        self.begin_apollo('max_in_flight: 2')
        changes = {'appId': 'app', 'cluster': 'default', 'namespaceName': 'application', 'configurations': None, 'releaseKey': 'new',
                   'configSyncType': 'IncrementalSync', 'configurationChanges': [{'key': 'a', 'newValue': '2', 'configurationChangeType': 'MODIFIED'}]}
        self.server.fault(times=2, when=is_read, status=200, body=json.dumps(changes))
        self.fails('bad answer', 'a change is not one of a key that was added')
        self.confirms()

    def test_with_a_watch_and_files(self):
        self.server.put('web.yaml', 'n: 1\n')
        self.begin_apollo(path='/app/default/web.yaml')
        self.server.wait_holding(1)
        for n in (2, 3):
            key, _ = self.server.put('web.yaml', f'n: {n}\n')
            self.stands(key)
            self.assertEqual(self.standing(), f'n: {n}\n')
            self.server.wait_holding(1)


class Layers(Case):
    PATHS = ['/app/default/base', '/app/default/web.yml', '{server: main, path: /app/default/own, optional: true}']

    def test_namespaces_are_merged_in_their_order_and_one_poll_watches_them(self):
        self.server.put('base', {'a': 'base', 'b': 'base', 'c.d': 'base'})
        self.server.put('web.yml', 'b: file\nc: {e: file}\n')
        self.begin_apollo(path=self.PATHS, more='    format: json\n')
        self.assertEqual(self.document(), {'a': 'base', 'b': 'file', 'c': {'d': 'base', 'e': 'file'}})
        self.server.wait_holding(1)
        self.until(lambda: self.server.holding == 1 and self.asked()['base'] > 0)
        self.assertEqual(self.agent.status()['watch']['documents'], 3)
        self.server.put('own', {'b': 'own'})
        self.agent.log.wait('published config=web generation=2')
        self.assertEqual(self.document()['b'], 'own')
        self.server.wait_holding(1)
        self.server.put('base', {'a': 'new', 'b': 'new'})
        self.agent.log.wait('published config=web generation=3')
        self.assertEqual(self.document(), {'a': 'new', 'b': 'own', 'c': {'e': 'file'}})
        self.server.wait_holding(1)
        self.server.delete('own')
        self.agent.log.wait('published config=web generation=4')
        self.assertEqual(self.document(), {'a': 'new', 'b': 'file', 'c': {'e': 'file'}})
        self.server.wait_holding(1)

    def test_one_that_fails_fails_all_and_is_named(self):
        self.server.put('base', {'a': '1'})
        self.server.put('web.yml', 'b: 1\n')
        self.begin_apollo('max_in_flight: 2', path=self.PATHS)
        self.server.put('base', {'a': '2'})
        self.server.fault(when=lambda r: r.path.endswith('/web.yml'), status=503)
        self.fails('overloaded', '^/app/default/web.yml: the server answered 503')
        self.server.delete('web.yml')
        self.fails('not found', '^/app/default/web.yml: there is no such namespace')

    def test_namespaces_of_other_applications_are_polled_apart(self):
        self.server.put('base', {'a': '1'})
        self.server.put('application', {'b': '1'}, app='other')
        self.begin_apollo(path=['/app/default/base', '/other/default/application'])
        self.server.wait_holding(2)
        self.server.put('application', {'b': '2'}, app='other')
        self.agent.log.wait('published config=web generation=2')
        self.server.wait_holding(2)
        self.server.put('base', {'a': '2'})
        self.agent.log.wait('published config=web generation=3')


class Keys(Case):
    """With access keys."""
    SECRET = 'df23df3f59884980844ff3dada30fa97'

    def setUp(self):
        super().setUp()
        self.put(1)
        self.server.secrets['app'] = [self.SECRET]

    def begin_key(self, keys='watch: true', secret=SECRET, **kw):
        return self.begin_apollo(f'{keys}, auth: {{access_key: {{secret_file: {self.plant("secret", secret)}}}}}', **kw)

    def test_pulls_and_polls_are_signed(self):
        self.begin_key('datacenter: eu-1, watch: true')
        self.server.wait_holding(1)
        self.stands(self.put(2))
        self.confirms()
        self.server.wait_holding(1)
        self.assertEqual([r for r in self.server.requests if r.status == 401], [])

    def test_names_of_any_kind_are_signed_as_they_are_sent(self):
        app = 'größe+%20 1&x=,:'.replace(' ', '_')
        self.server.secrets[app] = [self.SECRET]
        self.server.put('n a+m%e'.replace(' ', '_'), {'n': '1'}, app=app)
        self.begin_key(path=f'/{app}/default/n_a+m%e', wait=None)
        # a header holds ASCII, so that the application's name cannot be there as it is: what the server makes of it is its business
        self.server.wait_answered(1, is_read)
        request = self.reads()[0]
        self.assertEqual(request.path, f'/configs/{app}/default/n_a+m%e')
        signed = request.headers['Authorization'].rsplit(':', 1)[1]
        self.assertEqual(signed, self.server.sign(self.SECRET, request.headers['Timestamp'], request.target))

    def test_a_wrong_secret_and_a_wrong_clock_say_so_and_a_right_one_is_taken(self):
        self.begin_key('max_in_flight: 2')
        self.plant('secret', 'not-the-secret-that-is-meant')
        self.put(2)
        self.fails('forbidden', "refuses the signature: check the access key, and this host's clock")
        self.plant('secret', self.SECRET)
        self.refreshed('published')
        self.server.tolerance = -1  # whatever the time, it is not the server's
        self.fails('forbidden', 'clock')
        self.server.tolerance = 60
        self.server.secrets['app'] = ['a-new-one', self.SECRET]  # two of them while they are changed
        self.confirms()

    def test_a_secret_that_cannot_be_read_is_named(self):
        self.begin_key('max_in_flight: 2')
        self.write('secret', '')
        self.fails('this host', 'secret is empty')
        self.write('secret', 'two\nlines\n')
        self.fails('this host', 'second line')
        self.plant('secret', self.SECRET)
        self.confirms()

    def test_a_watch_that_is_refused_is_no_storm(self):
        self.begin_key()
        self.server.wait_holding(1)
        self.server.secrets['app'] = ['changed-by-somebody']
        self.server.drop()
        # first the one that was held ends
        self.until(lambda: 'refuses the signature' in (self.agent.status()['watch']['error'] or ''), 'the refusal')
        with kinds.Window(self.server, 2) as window:
            pass
        self.assertLessEqual(len(window.requests), 4)
        self.server.secrets['app'] = [self.SECRET]
        self.stands(self.put(3))

    def test_keys_that_mean_nothing_are_refused(self):
        for keys, words in (('id: x, secret_file: /s', 'knows only the secret'), ('session_token_file: /s, secret_file: /s', 'knows only the secret'),
                            ('id: x', 'secret_file')):
            code, text = self.complaints(f'kind: apollo, urls: ["{self.server.url}"], auth: {{access_key: {{{keys}}}}}', self.PATH)
            self.assertEqual(code, 78, text)
            self.assertRegex(text, words)
        for path in ('/app/default', '/app', '/app/default/a/b', '/app//application', '/app/default/'):
            self.assertEqual(self.complaints(f'kind: apollo, urls: ["{self.server.url}"]', path)[0], 78, path)


class Watch(Case):
    def test_a_release_is_there_although_the_interval_is_an_hour(self):
        self.put(1)
        self.begin_apollo()
        for n in (2, 3, 4):
            self.server.wait_holding(1)
            self.stands(self.put(n))
        self.assertEqual(self.watching()['documents'], 1)
        self.assertEqual(self.agent.status()['runs']['failed'], 0)

    def test_when_it_begins_nothing_is_lost_and_nothing_comes_twice(self):
        self.put(1)
        self.begin_apollo()
        self.watching()
        self.server.wait_holding(1)
        self.assertEqual(self.agent.status()['generation'], 1)
        self.quiet(self.server)
        with kinds.Window(self.server, 2) as window:
            self.server.still_holding(1)
        self.assertEqual(window.requests, [])
        self.assertLessEqual(len(self.server.requests), 5)

    def test_the_end_of_a_hold_is_no_news(self):
        self.server.hold_time = 0.2
        self.put(1)
        self.begin_apollo()
        self.server.wait_answered(1, lambda r: is_poll(r) and r.status == 304)
        self.until(lambda: not self.agent.status()['running'])
        with kinds.Window(self.server, 3) as window:
            pass
        self.assertEqual(window.count(is_read), 0)
        self.assertLessEqual(window.count(is_poll), 3 + 3)
        self.stands(self.put(2))

    def test_ids_that_begin_anew_are_news(self):
        for n in range(1, 8):
            self.put(n)
        self.begin_apollo()
        self.watching()
        self.server.wait_holding(1)
        self.assertEqual(self.asked(), {'application': 7})
        self.server.renumber(1)
        self.stands(self.put(9))
        self.server.wait_holding(1)
        self.until(lambda: self.asked() == {'application': 2})
        self.stands(self.put(10))

    def test_a_namespace_that_is_deleted_is_waited_for_without_a_storm(self):
        self.put(1)
        self.begin_apollo()
        self.watching()
        self.server.wait_holding(1)
        self.server.delete('application')
        self.until(lambda: self.agent.status()['cause'] == 'not found')
        self.server.wait_holding(1)
        with kinds.Window(self.server, 2) as window:
            self.server.still_holding(1)
        self.assertEqual(window.requests, [])
        self.assertEqual(self.document(), {'n': '1'})
        self.stands(self.put(2))

    def test_the_ending_properties_and_other_letters_are_the_same_namespace(self):
        self.put(1)
        self.begin_apollo(path='/app/default/Application.properties')
        self.assertEqual(self.document(), {'n': '1'})
        self.watching()
        self.server.wait_holding(1)
        self.stands(self.put(2))

    def test_many_namespaces_are_one_poll(self):
        names = [f'ns{i}' for i in range(30)]
        for name in names:
            self.put(1, name)
        self.put(1)
        self.begin_apollo(configs=self.others({name: f'/app/default/{name}' for name in names}), wait=None)
        for name in (*names, 'web'):
            self.agent.log.wait(f'published config={name} ')
        self.until(lambda: self.server.holding == 1 and set(self.asked().values()) == set(range(1, 32)))
        self.quiet(self.server)
        with kinds.Window(self.server, 2) as window:
            self.stands(self.put(2, 'ns17'), 'ns17')
        self.assertEqual({r.path for r in window.requests if is_read(r)}, {'/configs/app/default/ns17'})
        self.assertLessEqual(len(window.requests), 4)

    def test_a_server_that_goes_down_and_comes_up_is_watched_again(self):
        self.put(1)
        self.begin_apollo()
        self.server.wait_holding(1)
        with kinds.Window(self.server, 1) as window:
            self.server.down()
            self.watching('failing')
            self.assertRegex(self.agent.status()['watch']['error'], 'refused|Empty reply')
            key = self.put(2)
            self.server.up()
        self.stands(key)
        self.assertLessEqual(len(window.requests), 6)
        self.server.wait_holding(1)
        self.stands(self.put(3))

    def test_answers_that_are_none_are_failures_and_no_news(self):
        self.put(1)
        bodies = [b'', b'{}', b'[]', b'[1]', b'[{"namespaceName":"other","notificationId":7}]', b'[{"namespaceName":"application"}]',
                  b'[{"namespaceName":"application","notificationId":-5}]', b'[{"namespaceName":"application","notificationId":"7"}]', b'<html>', b'[{']
        self.begin_apollo('max_in_flight: 2')
        self.end(self.agent)
        for body in bodies[:4]:
            self.server.fault(when=is_poll, status=200, body=body)
        self.begin_apollo(wait='last known good')
        self.watching('failing')
        self.assertRegex(self.agent.status()['watch']['error'], 'no list of what was asked for')
        self.server.clear_faults()
        self.server.fault(when=is_poll, status=404, body='x')
        for status in (500, 503, 400):
            self.server.fault(when=is_poll, status=status)
        self.assertEqual(self.agent.status()['watch']['changes'], 0)
        self.server.clear_faults()
        self.stands(self.put(2))

    def test_connections_that_are_cut_again_and_again_are_no_storm(self):
        self.put(1)
        self.begin_apollo()
        self.server.wait_holding(1)
        self.server.fault(times=None, when=is_poll, reset=True)
        self.server.drop()
        self.watching('failing')
        with kinds.Window(self.server, 2) as window:
            pass
        self.assertLessEqual(len(window.requests), 6)
        self.server.clear_faults()
        self.stands(self.put(2))


if __name__ == '__main__':
    harness.main()
