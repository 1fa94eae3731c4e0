#!/usr/bin/env python3
"""Who may do and see what over the control socket: the table of pulletd(8), RIGHTS, is walked cell by cell, endpoints and commands, with the users that it names and the
modes that a host has. The routes of agent/control/api.c, the commands of agent/cli/main.c and packaging/openapi.yaml are held against the same table."""
import contextlib
import functools
import http.client
import os
import re
import socket
import unittest
import unittest.mock

import yaml

import attack
import harness
from attack import AGENT, MALLORY, OPERATOR, OPERATORS, READER, READERS

VALUE = 'hunter2hunter2'
COLUMNS = ('ROOT', 'AGENT', 'OPERATOR', 'READER', 'OTHER', 'TCP')
WHO = {'ROOT': (0, 0, ()), 'AGENT': (AGENT, AGENT, ()), 'OPERATOR': (OPERATOR, OPERATOR, (READERS, OPERATORS)), 'READER': (READER, READER, (READERS,)),
       'OTHER': (MALLORY, MALLORY, ())}
LENT = (READER, OPERATORS, (READERS,))  # a reader, in a program that is setgid to the operators' group
ROUTE = re.compile(r'\{HTTPD_(GET|POST), (CONFIGS|"[^"]*"), (NULL|"[^"]*"), \w+, RIGHT_(\w+), (true|false),')
QUERIES = {'/diff': '?from=1&to=2', '/explain': '?key=secret', '/override': '?key=more&value=1&for_ms=3600000', '/wait': '?generation=1&timeout_ms=1'}
ARGUMENTS = {'top': ('--batch', '-n', '1'), 'status': ('web',), 'wait': ('web', '--generation', '1'), 'diff': ('web', '1', '2'), 'explain': ('web', 'secret'),
             'override': ('web', 'more=2', '--for', '1h'), 'pin': ('web', '--for', '1h'), 'suspend': ('web', '--for', '1h')}


def text_of(*names):
    with open(os.path.join(harness.ROOT, *names), encoding='utf-8') as f:
        return f.read()


@functools.lru_cache(None)
def section():
    return re.search(r'^\.Sh RIGHTS\n(.*?)^\.Sh ', text_of('agent', 'pulletd.8'), re.M | re.S)[1]


def table():
    """{'GET /v1/status' or 'pullet status': {column: cell}}, in its order."""
    rows = {}
    for line in section().splitlines():
        m = re.match(r'(GET|POST|pullet) +(\S+) +((?:yes|no|hidden|-)(?: +(?:yes|no|hidden|-))*)$', line)
        if m:
            rows[f'{m[1]} {m[2]}'] = dict(zip(COLUMNS, m[3].split(), strict=True))
        elif re.match(r'(ENDPOINT|COMMAND) ', line):
            assert tuple(line.split()[1:]) == COLUMNS, line
    return rows


def endpoints():
    return {row: cells for row, cells in table().items() if not row.startswith('pullet ')}


class Tables(unittest.TestCase):
    """What the source and the documents say is what the man page says."""

    def test_the_routes(self):
        routes = ROUTE.findall(text_of('agent', 'control', 'api.c'))
        self.assertEqual(len(routes), text_of('agent', 'control', 'api.c').count('{HTTPD_'))
        said = {f'{method} {"/v1/configs/NAME" + after.strip(chr(34)) if before == "CONFIGS" else before.strip(chr(34))}': (right == 'READ', local == 'false')
                for method, before, after, right, local in routes}
        self.assertEqual(said, {row: (cells['READER'] != 'no', cells['TCP'] != 'no') for row, cells in endpoints().items()})
        for row, cells in endpoints().items():
            self.assertEqual(cells['READER'] == 'no', row.startswith('POST '), row)

    def test_the_commands(self):
        """Each is in the table, or among those of which the page says that they ask no agent."""
        (of_main,) = re.findall(r'^\} commands\[\] = \{\n(.*?)^\};', text_of('agent', 'cli', 'main.c'), re.M | re.S)
        commands = set(re.findall(r'^\t\{"(\w+)", ', of_main, re.M))
        in_table = {row.split()[1] for row in table() if row.startswith('pullet ')}
        behind = section()[section().rindex('.Ed'):]
        elsewhere = {w for w in re.findall(r'^\.Ic (?:pullet )?(\w+)', behind, re.M)}
        self.assertEqual(in_table & elsewhere, set())
        self.assertEqual(in_table | elsewhere, commands)

    def test_openapi(self):
        """Each operation that somebody may not do says so by 403, and each that hides values says whose."""
        spec = yaml.safe_load(text_of('packaging', 'openapi.yaml'))
        operations = {f'{method.upper()} {path.replace("{name}", "NAME")}': operation for path, item in spec['paths'].items()
                      for method, operation in item.items() if method in ('get', 'post')}
        rows = endpoints()
        self.assertEqual(set(operations), set(rows))
        for row, operation in operations.items():
            refused = {'yes': None, 'hidden': None, 'no': 'operators_only'}[rows[row]['READER']] or ('socket_only' if rows[row]['TCP'] == 'no' else None)
            self.assertEqual(operation['responses'].get('403'), refused and {'$ref': '#/components/responses/' + refused}, row)
            self.assertEqual('***' in operation.get('description', ''), 'hidden' in rows[row].values(), row)


@attack.needs_users
class Rights(harness.Case):
    def setUp(self):
        super().setUp()
        with socket.create_server(('127.0.0.1', 0)) as probe:
            self.port = probe.getsockname()[1]
        self.pullet = harness.for_anybody(self, harness.PULLET)
        for directory, mode, group in (('state', 0o700, AGENT), ('run', 0o2750, READERS)):
            os.mkdir(self.path(directory))
            os.chown(self.path(directory), AGENT, group)
            os.chmod(self.path(directory), mode)
        _, url, _ = self.serve()
        self.write('www/web.yaml', f'secret: {VALUE}\n')
        with unittest.mock.patch.object(harness, 'PULLETD', harness.for_anybody(self, harness.PULLETD)):
            self.agent = harness.Agent(self, f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, operators: {OPERATORS}, listen: "127.0.0.1:{self.port}"}}
configs:
  web: {{url: "{url.rstrip("/")}/web.yaml", interval: 1h, history: 100}}
''', valgrind=attack.as_user(AGENT))
        self.agent.log.wait('published config=web generation=1')
        self.write('www/web.yaml', f'secret: {VALUE}2\n')
        self.agent.refresh('web')

    def ask(self, method, path, who=None):
        """(status, body), who: (uid, gid, groups), or None = over TCP; (0, the error) of who does not get there."""
        path = path.replace('NAME', 'web')
        path += next((q for end, q in QUERIES.items() if path.endswith(end)), '')

        def request():
            with contextlib.closing(harness.UnixConnection(self.agent.socket) if who else
                                    http.client.HTTPConnection('127.0.0.1', self.port, timeout=harness.DEADLINE)) as connection:
                connection.request(method, path)
                answer = connection.getresponse()
                return f'{answer.status} {answer.read().decode(errors="replace")}'
        text, error = attack.tried(who[0], request, who[1], who[2]) if who else (request(), None)
        return (int(text[:3]), text[4:]) if error is None else (0, error)

    def command(self, name, who):
        """(exit code, what it prints)."""
        arguments = ('web', '2' if who[0] == AGENT else '1') if name == 'rollback' else ARGUMENTS.get(name, ('web',))  # to another than stands
        code, out, error = attack.run(self.pullet, name, '--socket', self.agent.socket, *arguments, user=who)
        return code, out + error

    def check_endpoint(self, row, column, cell, hides, who):
        status, body = self.ask(*row.split(), who)
        if column == 'OTHER':
            self.assertEqual((status, 'PermissionError' in body, cell), (0, True, 'no'), body)
            return
        self.assertEqual(status == 403, cell == 'no', body)
        if cell == 'no':
            self.assertIn('socket' if column == 'TCP' else 'may only read', body)
        if hides:  # values, or the same without them
            self.assertEqual((VALUE in body, '***' in body), (cell == 'yes', cell == 'hidden'), body)
        elif column in ('READER', 'TCP'):
            self.assertNotIn(VALUE, body)

    def check_command(self, row, column, cell, hides, who):
        code, said = self.command(row.split()[1], who)
        if cell == 'no':
            self.assertNotEqual(code, 0, said)
            self.assertIn('may not be used by this user' if column == 'OTHER' else 'may only read', said)
        else:
            self.assertEqual(code, 0, said)
        if hides and cell != 'no':
            self.assertEqual((VALUE in said, '***' in said), (cell == 'yes', cell == 'hidden'), said)

    def walk(self, rows, check, who):
        """What only looks first: then there are the two versions that it looks at. Then each user does all the rest in turn: what is suspended is resumed."""
        for changes in (False, True):
            for column in COLUMNS:
                for row, cells in rows.items():
                    if (cells['READER'] == 'no') == changes and cells[column] != '-':
                        with self.subTest(row=row, column=column):
                            check(row, column, cells[column], 'hidden' in cells.values(), who[column])

    def test_each_endpoint_is_for_whom_the_page_says(self):
        self.assertGreater(len(endpoints()), 15)
        self.walk(endpoints(), self.check_endpoint, {**WHO, 'TCP': None})
        refused = sum(cells[column] == 'no' for row, cells in endpoints().items() for column in ('READER', 'TCP') if row.startswith('POST '))
        self.assertIn(f'pullet_control_denied_total {refused}\n', self.ask('GET', '/metrics', WHO['ROOT'])[1])

    def test_each_command_is_for_whom_the_page_says(self):
        commands = {row: cells for row, cells in table().items() if row.startswith('pullet ')}
        self.assertGreater(len(commands), 10)
        self.walk(commands, self.check_command, WHO)

    def test_a_program_that_lends_the_group_makes_nobody_an_operator(self):
        for row, cells in endpoints().items():
            with self.subTest(row=row):
                self.check_endpoint(row, 'READER', cells['READER'], 'hidden' in cells.values(), LENT)

    def tearDown(self):
        self.agent.stop()
        super().tearDown()


if __name__ == '__main__':
    harness.main()
