"""Spring Cloud Config behind the agent: sources that become one document, profiles, labels, users, and what its errors mean."""
import json

import harness
import kinds
from servers.spring import Spring


class Case(kinds.Case):
    def setUp(self):
        super().setUp()
        self.server = Spring(self)

    def begin_spring(self, keys='', path='/app/prod', url=None, **kw):
        return self.begin(f'kind: spring, urls: ["{url or self.server.url}"]{", " if keys else ""}{keys}', path, **kw)

    def document(self):
        return json.loads(self.standing())


class Sources(Case):
    def test_the_first_source_that_has_a_name_wins(self):
        self.server.put('application', {'a': 'shared', 'b': 'shared', 'c': 'shared', 'd': {'e': 'shared', 'f': 1}})
        self.server.put('application', {'b': 'shared-prod', 'c': 'shared-prod'}, 'prod')
        self.server.put('app', {'c': 'app', 'd': {'e': 'app'}})
        self.server.put('app', {'g': True, 'h': 1.5}, 'prod')
        self.begin_spring()
        self.assertEqual(self.document(), {'a': 'shared', 'b': 'shared-prod', 'c': 'shared-prod', 'd': {'e': 'app', 'f': 1}, 'g': True, 'h': 1.5})

    def test_the_last_profile_wins(self):
        self.server.put('app', {'a': 'eu', 'b': 'eu'}, 'eu')
        self.server.put('app', {'a': 'prod', 'c': 'prod'}, 'prod')
        self.begin_spring(path='/app/eu,prod')
        self.assertEqual(self.document(), {'a': 'prod', 'b': 'eu', 'c': 'prod'})

    def test_lists_come_from_one_source_and_values_keep_their_types(self):
        self.server.put('application', {'servers': ['a', 'b', 'c'], 'more': [{'x': 1}, {'x': 2}], 'none': [1]})
        self.server.put('app', {'servers': ['z'], 'none': [], 'int': 9007199254740993, 'text': '1', 'null': None, 'yes': True,
                                'deep': {'list': [[1, 2], [3]], 'name with.dots': 1, 'ü': '名 "q" \\'}})
        self.begin_spring(path='/app/default')
        self.assertEqual(self.document(), {
            'servers': ['z'], 'more': [{'x': 1}, {'x': 2}], 'none': '', 'int': 9007199254740993, 'text': '1', 'null': '', 'yes': True,
            'deep': {'list': [[1, 2], [3]], 'name with': {'dots': 1}, 'ü': '名 "q" \\'}})
        self.assertIn('9007199254740993', self.standing(), 'not through a double')

    def test_a_version_is_the_servers_and_the_same_is_only_confirmed(self):
        version = self.server.put('app', {'n': 1}, 'prod')
        self.begin_spring()
        self.assertEqual(self.version(), version)
        self.agent.cli('wait', 'web', '--version', version, check=0)
        self.confirms()
        version = self.server.put('app', {'n': 2}, 'prod')
        self.assertEqual(self.refreshed('published')['version'], version)
        self.assertEqual(self.document(), {'n': 2})
        self.confirms()
        other = self.server.put('nobody', {'x': 1})  # another commit, the same values
        self.assertEqual(self.refreshed('unchanged')['version'], other)
        self.agent.cli('wait', 'web', '--version', other, check=0)
        self.end(self.agent)
        self.again('last known good')
        self.assertEqual(self.refreshed('unchanged')['version'], other)
        self.confirms()

    def test_without_a_version_the_content_is_one(self):
        self.server.versions['main'] = None
        self.server.put('app', {'n': 1}, 'prod')
        self.begin_spring()
        first = self.version()
        self.assertRegex(first, '^[0-9a-f]{64}$')
        self.confirms()
        self.server.put('app', {'n': 2}, 'prod')
        self.assertNotEqual(self.refreshed('published')['version'], first)

    def test_a_version_that_stays_while_the_values_change_hides_nothing(self):
        self.server.versions['main'] = 'always'
        self.server.put('app', {'n': 1}, 'prod')
        self.begin_spring()
        self.confirms()
        self.server.put('app', {'n': 2}, 'prod')
        self.assertEqual(self.refreshed('published')['version'], 'always')
        self.assertEqual(self.document(), {'n': 2})

    def test_the_size_is_that_of_the_document_not_of_the_answer(self):
        self.server.gzip_over = 0
        for profile in ('a', 'b', 'prod'):
            self.server.put('app', {'text': profile * 200}, profile)
        self.begin_spring('max_size: 1KiB', path='/app/a,b,prod')
        self.assertEqual(self.document(), {'text': 'prod' * 200})
        self.server.put('app', {'text': 'x' * 1100}, 'prod')
        self.fails('bad answer', "the property 'text' is more than fits: raise max_size")

    def test_what_was_not_decrypted_is_refused_by_name(self):
        self.server.put('app', {'db': {'password': 'good'}, 'n': 1}, 'prod')
        self.begin_spring()
        self.server.put('app', {'db': {'password': '{cipher}AQA1b2c3d4e5f6'}, 'n': 2}, 'prod')
        self.hide('AQA1b2c3d4e5f6')
        self.fails('bad answer', "the property 'db.password' is encrypted")
        self.server.put('app', {'invalid.db.password': '<n/a>', 'n': 2}, 'prod')
        self.fails('bad answer', "the property 'db.password' is encrypted")
        self.server.put('app', {'db.url': '${HOST}/x', 'n': 2}, 'prod')
        self.refreshed('published')
        self.agent.log.wait("a placeholder is passed on as it is: property 'db.url'")


class Labels(Case):
    def test_a_label_is_a_branch_and_a_slash_in_it_is_written_in_brackets(self):
        self.server.put('app', {'n': 'main'}, 'prod')
        self.server.put('app', {'n': 'branch'}, 'prod', 'feature/x')
        self.server.put('team/app', {'n': 'team'}, 'prod', 'ümlaut+%')
        self.begin_spring(path='/app/prod/feature(_)x')
        self.assertEqual(self.document(), {'n': 'branch'})
        self.assertEqual(self.version(), self.server.version('feature/x'))
        self.end(self.agent)
        self.begin_spring(path='/team(_)app/prod/%C3%BCmlaut+%25', wait='published config=web generation=2')
        self.assertEqual(self.document(), {'n': 'team'})

    def test_a_label_that_is_not_there_is_not_found(self):
        self.server.put('app', {'n': 1}, 'prod')
        self.begin_spring(path='/app/prod/nowhere', wait=None)
        self.fails_at_first('not found', '404: No such label: nowhere')

    def test_paths_that_are_none_are_refused(self):
        for path in ('/app', '/app/prod/label/file.txt', '/app//label', '/app/', '/app/prod/a b'):
            self.assertEqual(self.complaints(f'kind: spring, urls: ["{self.server.url}"]', path)[0], 78, path)
        code, text = self.complaints(f'kind: spring, watch: true, urls: ["{self.server.url}"]', '/app/prod')
        self.assertEqual(code, 78)
        self.assertIn('watch means nothing to a server of the kind spring', text)

    def test_a_prefix_belongs_to_the_url(self):
        self.server.prefix = '/config'
        self.server.put('app', {'n': 1}, 'prod')
        self.begin_spring(url=self.server.url + '/config')
        self.server.prefix = '/elsewhere'
        self.fails('not found', '404')


class Failures(Case):
    def setUp(self):
        super().setUp()
        self.server.put('app', {'n': 1}, 'prod')

    def test_each_cause_has_a_name_and_a_sentence_of_its_own_and_the_version_stays(self):
        self.begin_spring('auth: {basic: {user: me, password_file: %s}}' % self.plant('password', 'a pass:wörd "x"'))
        self.server.labels['main'].clear()
        sentences = [self.fails('empty', 'no properties, which is how the server answers for an unknown application: check the path')]
        self.server.accept_empty = False
        sentences.append(self.fails('not found', '404: Profile Not found'))
        self.server.put('app', {'n': 1}, 'prod')
        self.server.users['me'] = 'another'
        sentences.append(self.fails('forbidden', '401: Unauthorized'))
        self.server.users.clear()
        self.server.broken = 'Could not merge remote for main'
        sentences.append(self.fails('bad answer', '500: Could not merge remote for main'))
        self.server.broken = None
        self.server.down()
        sentences.append(self.fails('unreachable', 'refused'))
        self.server.up()
        self.server.fault(status=503, headers={'Retry-After': '1'})
        sentences.append(self.fails('overloaded', '503'))
        self.assertEqual(len(set(sentences)), 6)
        self.until(lambda: json.loads(self.agent.get('/v1/status')[1])['servers'][0]['backoff_ms'] == 0)
        self.confirms()

    def test_users(self):
        self.server.users['me'] = 'a pass:wörd "x"'
        self.begin_spring('auth: {basic: {user: me, password_file: %s}}' % self.plant('password', 'a pass:wörd "x"'))
        self.plant('password', 'wrong-password')
        self.fails('forbidden', '401')
        self.plant('password', 'a pass:wörd "x"')
        self.confirms()

    def test_without_a_user(self):
        self.server.users['me'] = 'secret'
        self.begin_spring(wait=None)
        self.fails_at_first('forbidden', '401')

    def test_a_repository_the_server_cannot_reach_is_no_absence(self):
        """Two layers, one optional: an outage of its repository must not make it vanish."""
        self.server.put('more', {'m': 1}, 'prod')
        self.begin_spring(path=['/app/prod', '{server: main, path: /more/prod/main, optional: true}'], more='    format: json\n')
        self.assertEqual(self.document(), {'n': 1, 'm': 1})
        for message, cause in (('Cannot clone or checkout repository: https://git.example/x', 'unreachable'), ('No such repository: https://x', 'unreachable')):
            body = json.dumps({'timestamp': 'x', 'status': 404, 'error': 'Not Found', 'message': message, 'path': '/more/prod/main'})
            self.server.fault(when=lambda r: r.path.startswith('/more'), status=404, body=body)
            self.fails(cause, '^/more/prod/main: the server answered 404')
        self.server.fault(when=lambda r: r.path.startswith('/more'), status=404, body='<html>nginx</html>')
        self.fails('not found', 'not as Spring Cloud Config does')
        self.confirms()
        self.server.fault(when=lambda r: r.path.startswith('/more'), status=404, body=json.dumps({'status': 404, 'message': 'No such label: main'}))
        self.refreshed('published')
        self.assertEqual(self.document(), {'n': 1})

    def test_what_is_no_environment_is_refused(self):
        self.begin_spring()
        for body in ('[]', '{}', '{"propertySources":{}}', '{"propertySources":[1]}', '{"propertySources":[{"name":"x"}]}',
                     '{"propertySources":[{"source":[]}]}', 'n: 2\n', '<html>', '{"propertySources":[{"source":{"a":1,"a":2}}]}', '{"propertySources":[{"source":{"":1}}]}',
                     '{"propertySources":[{"source":{"a\\u0000b":1}}]}'):
            with self.subTest(body=body):
                self.server.fault(status=200, body=body)
                self.fails('bad answer', '.')
        self.server.fault(cut=40)
        self.fails('unreachable', 'cut short')
        self.server.fault(status=200, body='')
        self.fails('empty', 'empty')
        self.confirms()


if __name__ == '__main__':
    harness.main()
