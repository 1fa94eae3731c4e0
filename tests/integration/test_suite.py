"""The tests' own ground: what tests/run counts, names and ends, and what a machine that lacks something makes of a test."""
import contextlib
import glob
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest.mock

import harness

sys.path.insert(0, os.path.join(harness.ROOT, 'tests'))
import programs  # noqa: E402

RUN = os.path.join(harness.ROOT, 'tests', 'run')
HEAD = f'import sys\nsys.path.insert(0, {os.path.dirname(os.path.abspath(harness.__file__))!r})\nimport harness\n'


class Suite(harness.Case):
    def run_program(self, text, args=(), **env):
        """(status, output) of tests/run with one program in Python."""
        self.write('program.py', text)
        full = {k: v for k, v in os.environ.items() if k not in ('CI', 'PULLET_NO_SKIPS', 'PULLET_NO_AGAIN', 'PULLET_TEST_SUMS')}
        done = subprocess.run(['/usr/bin/python3', RUN, *args, '/usr/bin/python3', self.path('program.py')], capture_output=True, text=True,
                              env={**full, **env}, timeout=harness.DEADLINE * 3, check=False)
        return done.returncode, done.stdout + done.stderr

    def has_ended(self, pid):
        """Or does so now: it was killed."""
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(int(pid))
            self.addCleanup(os.close, fd)
            self.assertTrue(select.select([fd], [], [], harness.DEADLINE)[0], f'{pid} runs')

    def last(self, *args, **kw):
        status, said = self.run_program(*args, **kw)
        return status, said.splitlines()[-1]


class Counting(Suite):
    def test_what_a_program_says(self):
        for text, status, wanted in ((r'print("3 passed, 0 failed")', 0, '3 passed, 0 failed'), (r'print("3 passed, 1 failed")', 1, '3 passed, 1 failed'),
                                     (r'print("3 passed, 0 failed"); raise SystemExit(2)', 1, '3 passed, 1 failed'), ('', 1, '0 passed, 1 failed'),
                                     (r'print("ok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP why")', 1, '1 passed, 1 failed, 1 skipped'),
                                     (r'print("0 passed, 0 failed, 2 skipped")', 0, '0 passed, 0 failed, 2 skipped')):
            with self.subTest(text):
                self.assertEqual(self.last(text), (status, wanted))

    def test_skips_are_named_and_counted(self):
        for text in (r'print("ok 1 - a\nok 2 - b # SKIP no disk")', r'print("ok 1 - a\n# no disk\nnot ok 2 # SKIP b")',
                     r'print("ok - b # SKIP no disk\n1 passed, 0 failed, 1 skipped")'):
            with self.subTest(text):
                status, said = self.run_program(text, PULLET_TEST_SUMS=self.path('sums'))
                self.assertEqual((status, said.splitlines()[-1]), (0, '1 passed, 0 failed, 1 skipped'))
                self.assertIn('skipped: b: no disk\n', said)
                self.assertEqual(self.read('sums').splitlines()[-1], b'1 0 1')

    def test_what_failed_is_run_once_more_alone(self):
        first = f'import os\ntry: os.mkdir({self.path("was")!r})\nexcept OSError: raise SystemExit(print("1 passed, 0 failed"))\n'
        for more, ending in (('', (0, '1 passed, 0 failed')), ('print("ERROR: ThreadSanitizer: data race")\n', (1, '0 passed, 1 failed'))):
            with self.subTest(more):
                status, said = self.run_program(first + more + 'print("0 passed, 1 failed")\nraise SystemExit(1)\n', args=('--again',))
                self.assertEqual((status, said.splitlines()[-1]), ending)
                self.assertIn(f'  {"FAIL " if more else "retry"}    0 passed   1 failed', said)
                self.assertEqual('once more, alone' in said, not more)
                os.rmdir(self.path('was'))
        self.assertEqual(self.last('print("0 passed, 1 failed")\nraise SystemExit(1)\n', args=('--again',)), (1, '0 passed, 1 failed'))

    def test_of_what_failed_only_the_cases_that_did_are_run_once_more(self):
        text = (HEAD + f'import os\nwas = {self.path("was")!r}\nclass C(harness.Case):\n    def test_good(self):\n        self.assertFalse(os.path.exists(was))\n'
                '    def test_late(self):\n        if not os.path.exists(was):\n            os.mkdir(was)\n            self.fail("too slow")\n'
                'class D(harness.Case):\n    def test_late(self):\n        pass\nharness.main()\n')
        status, said = self.run_program(text, args=('--again',))
        self.assertEqual((status, said.splitlines()[-1]), (0, '3 passed, 0 failed'))
        self.assertRegex(said, r'retry    2 passed   1 failed.*(?s:.*)once more, alone:\n  ok       1 passed   0 failed.*program.py C.test_late\n')
        os.rmdir(self.path('was'))
        self.assertEqual(self.last(text.replace('os.mkdir(was)', 'pass'), args=('--again',)), (1, '2 passed, 1 failed'))

    def test_where_nothing_may_be_skipped_it_is_a_failure(self):
        for name, value in (('CI', 'true'), ('PULLET_NO_SKIPS', '1')):
            status, said = self.run_program(r'print("ok 1 - a\nok 2 - b # SKIP no disk")', **{name: value})
            self.assertEqual((status, said.splitlines()[-1]), (1, '1 passed, 1 failed'))
            self.assertIn('FAIL not run: b: no disk\n', said)

    def test_what_is_left_behind_is_ended_and_a_failure(self):
        begin = time.monotonic()
        status, said = self.run_program('import subprocess\nprint(subprocess.Popen(["sleep", "1000"]).pid)\nprint("1 passed, 0 failed")')
        self.assertEqual((status, said.splitlines()[-1]), (1, '1 passed, 1 failed'))
        self.assertIn('left behind: sleep', said)
        pid = next(line.split()[1] for line in said.splitlines() if line.startswith('      | '))
        self.has_ended(pid)
        self.assertLess(time.monotonic() - begin, harness.DEADLINE)

    def test_what_hangs_is_ended_with_all_that_it_started(self):
        status, said = self.run_program('import subprocess\nprint(subprocess.Popen(["sleep", "1000"]).pid, flush=True)\ninput() if 0 else __import__("time").sleep(1000)',
                                        args=('--timeout', '1'))
        self.assertEqual((status, said.splitlines()[-1]), (1, '0 passed, 1 failed'))
        self.assertIn('ended after 1 s: it hung', said)
        pid = next(line.split()[1] for line in said.splitlines() if line.startswith('      | '))
        self.has_ended(pid)

    def test_a_signal_ends_what_runs(self):
        self.write('program.py', 'import os, time\nprint(os.getpid(), flush=True)\n' f'open({self.path("pid")!r}, "w").write(str(os.getpid()))\n'
                   f'open({self.path("fifo")!r}, "w").close()\ntime.sleep(1000)')
        os.mkfifo(self.path('fifo'))
        runner = harness.Program(['/usr/bin/python3', RUN, '/usr/bin/python3', self.path('program.py')])
        self.addCleanup(runner.close)
        with open(self.path('fifo'), 'rb'):
            pass
        runner.process.terminate()
        self.assertEqual(runner.wait(), 128 + 15)
        self.has_ended(self.read('pid'))


class Needs(Suite):
    CASES = HEAD + '''
harness.PROBES['wings'] = lambda: 'this one was not made for it'

class Bird(harness.Case):
    @harness.needs('wings')
    def test_flies(self):
        raise AssertionError

    def test_lays_eggs_of_its_own(self):
        for _ in range(2):
            with self.subTest():
                harness.need('wings')

    def test_walks(self):
        pass

@harness.needs('wings')
class Bat(harness.Case):
    def test_flies_by_night(self):
        raise AssertionError

if __name__ == '__main__':
    harness.main()
'''

    def test_what_is_lacked_is_told_and_what_needs_it_is_not_run(self):
        status, said = self.run_program(self.CASES)
        self.assertEqual((status, said.splitlines()[-1]), (0, '1 passed, 0 failed, 3 skipped'))
        for name in ('Bird.test_flies', 'Bird.test_lays_eggs_of_its_own', 'Bat.test_flies_by_night'):
            self.assertIn(f'skipped: {name}: it needs wings: this one was not made for it\n', said)

    def test_each_thing_is_tried_once_and_has_a_reason(self):
        with unittest.mock.patch.dict(harness.PROBES, {'wings': unittest.mock.Mock(return_value='none')}):
            for _ in range(2):
                self.assertEqual(harness.lacks('wings'), 'it needs wings: none')
            harness.PROBES['wings'].assert_called_once()
        for name in harness.PROBES:
            self.assertIn(type(harness.lacks(name)), (type(None), str))

    def test_a_thing_that_is_not_in_the_table_is_a_mistake(self):
        with self.assertRaises(AssertionError):
            harness.needs('a name that is not in the table')

    def test_an_interrupted_program_leaves_nothing_behind(self):
        """Told to end in the middle of a test, as by `timeout`: nothing of it is closed but by the harness."""
        self.write('program.py', HEAD + '''
class Left(harness.Case):
    def test_it(self):
        p = harness.Program(['sh', '-c', 'sleep 1000 & echo $!; wait'], read='stdout')
        print(p.pid, p.log.wait('.'), flush=True)
        p.wait(1000)

harness.main()
''')
        program = harness.Program(['/usr/bin/python3', self.path('program.py')], read='stdout')
        self.addCleanup(program.close)
        pids = program.log.wait(r'^\d+ \d+$').split()
        program.process.terminate()
        program.wait()
        for pid in pids:
            self.has_ended(pid)


class Reliability(unittest.TestCase):
    """The table of tests/RELIABILITY.md names what there is."""

    KINDS = ('integration', 'attack', 'packages', 'stress')

    @classmethod
    def setUpClass(cls):
        cls.sources = '\n'.join(cls.text(p) for pattern in ('unit/**/*.[ch]', 'integration/*.py', 'attack/*.py', 'packages/*.py', 'stress/*.py')
                                for p in glob.glob(os.path.join(harness.ROOT, 'tests', pattern), recursive=True))
        cls.makefile = cls.text(os.path.join(harness.ROOT, 'Makefile'))

    @staticmethod
    def text(path):
        with open(path, encoding='utf-8') as f:
            return f.read()

    def rows(self, text):
        return [[cell.strip() for cell in line.strip().strip('|').split('|')] for line in text.splitlines() if re.match(r'\| A\d+ \|', line)]

    def is_there(self, name):
        """A file, a program, a target of make, a case, or a seed."""
        first, *rest = name.split()
        if first == 'make':
            return re.search(f'^{rest[0]}:', self.makefile, re.M)
        if '.py' in first or first.startswith('tests/') or first.startswith('.ci/'):
            return all(map(self.is_there, rest)) and any(os.path.exists(os.path.join(harness.ROOT, folder, first))
                                                         for folder in ('', *(f'tests/{kind}' for kind in self.KINDS)))
        if first.startswith('build/unit/'):
            return os.path.exists(os.path.join(harness.ROOT, 'tests', first[len('build/'):] + '.c'))
        if '__' in first or first.startswith('test_'):
            return first.rstrip('.') in self.sources
        if re.match(r'[A-Z][A-Za-z]+(\.test_\w+)?$', first):
            return f'class {first.split(".")[0]}(' in self.sources and first.split('.')[-1] in self.sources
        if '-' in first and not rest and '=' not in first:
            return glob.glob(os.path.join(harness.ROOT, 'tests/attack/seeds', first + '.patch'))
        return True

    def lacking(self, rows):
        """Names of rows that are there already; what is being written may not be."""
        return [(row[0], name) for row in rows for name in re.findall('`([^`]+)`', ' '.join(row[1:6]))
                if not row[6].startswith('being written') and not self.is_there(name)]

    def test_each_line_has_its_state_and_names_what_there_is(self):
        rows = self.rows(self.text(os.path.join(harness.ROOT, 'tests', 'RELIABILITY.md')))
        self.assertEqual([row[0] for row in rows], [f'A{n}' for n in range(1, 41)])
        for row in rows:
            self.assertEqual(len(row), 7, row)
            self.assertRegex(row[6], '^(reached|partly: |being written|not reached: )', row[0])
        self.assertEqual(self.lacking(rows), [])

    def test_a_name_of_nothing_is_found(self):
        names = ('make nothing', 'tests/attack/test_none.py', 'test_suite.py Reliability.test_none' + 'thing', 'build/unit/none', 'none__of' + '__it', 'A0-none')
        rows = self.rows('| A1 | x | ' + ' '.join(f'`{name}`' for name in names) + ' | x | x | x | reached |')
        self.assertEqual([name for _, name in self.lacking(rows)], list(names))


@unittest.skipUnless(shutil.which('dpkg-query'), 'which package a file is of is asked on Debian only')
class Packages(unittest.TestCase):
    """What the suites use comes with a minimal Debian, or with what packaging/deps.sh installs for them."""

    @classmethod
    def setUpClass(cls):
        cls.files = [p for kind in ('integration/*.py', 'integration/servers/*.py', 'attack/*.py', 'golden/*.py', 'layers/*.py', '*.py')
                     for p in glob.glob(os.path.join(harness.ROOT, 'tests', kind))]

    def not_installed(self, packages):
        return programs.not_installed(packages, 'build', 'tests')

    def test_programs_that_were_executed(self):
        listed = programs.read_list()
        self.assertGreater(sum(map(len, listed.values())), 50)
        self.assertEqual(self.not_installed(listed), [], 'add them to packaging/deps.sh, or do without')

    def test_programs_that_tests_name(self):
        """Those of a test that was written after the list was made."""
        found = {name: programs.package_of_program(name) for name in programs.named(self.files)}
        self.assertGreater(len(found), 10)
        lacking = self.not_installed(found.values())
        self.assertEqual([(name, programs.named(self.files)[name], p) for name, p in found.items() if p in lacking], [])

    def test_modules_of_python(self):
        found = programs.modules([*self.files, os.path.join(harness.ROOT, 'lib/python/test_pullet.py')])
        self.assertGreater(len(found), 3)
        packages = {name: programs.package_of_module(name) for name in found}
        self.assertEqual(self.not_installed(packages.values()), [], (packages, found))

    def test_a_minimal_debian_has_little(self):
        self.assertEqual(self.not_installed(['curl', 'snapd', 'coreutils', 'gcc', 'no-such-package']), ['curl', 'no-such-package', 'snapd'])

    def test_what_a_test_names_and_imports_is_found(self):
        with tempfile.NamedTemporaryFile('w', suffix='.py') as f:
            f.write("import selenium.webdriver, os\nfrom numpy import array\nsubprocess.run(['curl', '-s'])\nTerminal(self, ('/usr/bin/vi',))\nrun(PULLET, 'x')\n")
            f.flush()
            self.assertEqual(set(programs.modules([f.name])), {'selenium', 'numpy'})
            self.assertEqual(set(programs.named([f.name])), {'curl', '/usr/bin/vi'})


if __name__ == '__main__':
    harness.main()
