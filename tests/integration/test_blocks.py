"""Every block of README.md and lib/GUIDE.md is run as it stands, in a root and a network of its own: commands in a shell, one terminal after the other; programs compiled and run;
configurations checked by `pulletd -t`. What cannot be run here stands in LEFT_OUT, with the reason.

A terminal: the commands that stay in the foreground (FOREGROUND) are waited for until they have said what they say when they work, and go on beside; behind a block that ends
with one there is another terminal. A block of YAML that begins with `# NAME.yaml` is written to that file; one without configs is added to the one before. A block of C without a
main() is a piece of a program. A section is left out from the block on whose tool this machine does not have: that is printed, it is in nobody's way.
"""
import contextlib
import os
import re
import shutil

import harness
from harness import BUILD, PULLETD, ROOT, Program

# (file, what the block begins with, why it is not run here)
LEFT_OUT = [
    ('README.md', ' interval timer', 'a picture'),
    ('README.md', 'serving /tmp/', 'what `pullet dev` prints: test_dev.py compares it'),
    ('README.md', 'packaging/deps.sh && make', 'builds and installs: this is what all tests begin with; tests/clean_root.sh, tests/packages'),
    ('README.md', 'make demo', 'runs this test, too; in clean roots: tests/clean_root.sh'),
    ('README.md', 'pullet rollout start', 'needs a fleet in etcd: test_rollout.py'),
    ('README.md', 'pullet fleet web', 'needs a fleet in etcd, on hosts named so: test_fleet.py, test_relay.py'),
    ('lib/GUIDE.md', 'upstream app {', 'a part of a template'),
    ('lib/GUIDE.md', 'configs:\n  nginx:', 'needs its template where it is installed: test_template.py runs that of etc/templates with nginx'),
    ('README.md', 'packaging/deps.sh --deb', 'installs packages: tests/packages/test_deb.py, test_deb_life.py'),
]
# a command that stays in the foreground: what it prints when it works; '' = nothing
FOREGROUND = [(r'pullet dev\b', 'Ctrl-C ends it'), (r'pulletd(?! .*-t\b)', 'published'), (r'pullet serve\b', 'publishing on'), (r'pullet watch\b', ''), (r'pullet run\b', ''), (r'\./app$', '.')]
TOOLS = {'go', 'gofmt', 'java', 'javac', 'jar', 'node', 'npm', 'c++', 'g++', 'cc', 'gcc', 'python3', 'pip', 'etcd'}
# what pieces of programs use, which are the application's
C_FRAME = '''#include <pullet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
static int loop;
struct request { int id; };
static struct request request;
static struct pullet *p;
static int64_t used;
int next_request(struct request *r);
void rebuild(struct pullet *handle), serve(struct pullet *handle, struct request *r), reject(struct request *r);
'''
STUBS = {'systemctl': 'exit 0', 'myapp': 'exec sleep 600'}
ROOM = '''set -e
ip link set lo up
mount -t tmpfs none /run
mkdir /run/test /run/tree
mount --bind "$1" /run/test
mount --bind "$2" /run/tree
mount -t tmpfs none /var/lib
mount -t tmpfs none /tmp
chmod 1777 /tmp
case $2 in /tmp/*) mkdir -p "$2"; mount --bind /run/tree "$2" ;; esac
mkdir -p /tmp/home
echo ready
exec sleep 600
'''


class Block:
    def __init__(self, name, section, language, text):
        self.name, self.section, self.language, self.text = name, section, language, text

    def __str__(self):
        return f'{self.name}, "{self.section}", the block that begins with {self.text.splitlines()[0].strip()!r}'

    def reason(self):
        return next((why for name, begin, why in LEFT_OUT if name == self.name and self.text.startswith(begin)), None)


def read_blocks(name):
    """The fenced and the indented ones, in their order; an indented one is of the shell."""
    with open(os.path.join(ROOT, name), encoding='utf-8') as f:
        lines = f.read().split('\n')
    found, section, i = [], '', 0
    while i < len(lines):
        line, begin = lines[i], i + 1
        i += 1
        if line.startswith('#'):
            section = line.strip('# ')
        elif line.startswith('```'):
            while lines[i] != '```':
                i += 1
            found.append(Block(name, section, line[3:].strip() or 'text', '\n'.join(lines[begin:i]) + '\n'))
            i += 1
        elif line.startswith('    ') and not lines[begin - 2].strip():
            while i < len(lines) and (lines[i].startswith('    ') or not lines[i].strip()):
                i += 1
            found.append(Block(name, section, 'sh', '\n'.join(text[4:] for text in lines[begin - 1:i]).strip('\n') + '\n'))
    return found


def foreground(line):
    return next((said for pattern, said in FOREGROUND if re.match(pattern, line)), None)


def statements(text):
    """[(commands, None) or (a command in the foreground, what it prints)], here-documents with their command."""
    parts, rest, end = [], [], None
    for line in text.splitlines():
        said = None if end else foreground(re.sub(r'\s+#.*', '', line))
        if said is not None:
            parts += [('\n'.join(rest), None)] if rest else []
            parts.append((re.sub(r'\s+#.*', '', line), said))
            rest = []
            continue
        rest.append(line)
        here = re.search(r"<<'?(\w+)'?", line)
        if end:
            end = None if line == end else end
        elif here:
            end = here[1]
    return parts + ([('\n'.join(rest), None)] if rest else [])


class Room:
    """A root and a network of its own, in which terminals are opened. Its directory is /run/test there."""

    def __init__(self, test):
        mount, why = harness.unshare('mount')
        net, why_net = harness.unshare('net')
        if why or why_net:
            test.skipTest(why or why_net)
        test.write('room.sh', ROOM)
        flags = sorted({*mount[1:], *net[1:]})
        self.test = test
        self.holder = Program(['unshare', *flags, 'sh', test.path('room.sh'), test.dir, ROOT], read='both')
        test.addCleanup(self.holder.close)
        self.holder.log.wait('^ready$')
        user = ['--user', '--preserve-credentials'] if '--map-root-user' in flags else []
        self.enter = ['nsenter', '--target', str(self.holder.pid), *user, '--mount', '--net']
        os.mkdir(test.path('stubs'))
        for name, text in STUBS.items():
            test.write(f'stubs/{name}', f'#!/bin/sh\n{text}\n')
            os.chmod(test.path(f'stubs/{name}'), 0o755)

    def env(self):
        kept = {name: value for name, value in os.environ.items() if name not in ('TMPDIR', 'PULLET_CONFIG', 'PULLET_RUNTIME_DIR') and not name.startswith('XDG_')}
        return dict(kept, HOME='/tmp/home', PATH=f'/run/test/stubs:{BUILD}:{kept["PATH"]}', LC_ALL='C.UTF-8')


class Terminal:
    """A shell, that ends with the first command that fails."""

    def __init__(self, room, where):
        self.room, self.test, self.count = room, room.test, 0
        self.shell = Program([*room.enter, 'sh', '-c', 'cd "$1" && exec bash --norc -e', 'sh', where], env=room.env(), read='both', keyboard=True)
        self.test.addCleanup(self.shell.close)
        self.type("exec 2>&1; trap 'echo \"failed: $BASH_COMMAND\"' ERR")

    def type(self, text):
        with contextlib.suppress(BrokenPipeError):  # it has ended: its lines say why
            self.shell.process.stdin.write(f'{text}\n'.encode())

    def run(self, commands, block):
        """To their end; what they printed."""
        self.count += 1
        start, end = self.shell.log.count, f'ended {self.count}'
        self.type(f'{commands}\necho {end}')
        try:
            self.shell.log.wait(f'^{end}$', start, timeout=harness.DEADLINE * 4)
        except AssertionError as e:
            self.test.fail(f'{block}: {e}')
        return '\n'.join(self.shell.log.seen[start:-1])

    def leave_running(self, command, said, block):
        """One that stays in the foreground, until it has said that."""
        self.count += 1
        name = f'log.{id(self)}.{self.count}'
        log, end = self.test.path(name), self.test.path(name + '.end')
        self.type(f'{{ {command} >/run/test/{name} 2>&1 || :; echo >/run/test/{name}.end; }} &')

        def read():
            with contextlib.suppress(FileNotFoundError), open(log, encoding='utf-8', errors='replace') as f:
                return f.read()
            return None

        self.test.until(lambda: os.path.exists(end) or re.search(said, read() or '') and read() is not None, lambda: f'{block}: {command!r} does not say {said!r}:\n{read()}')
        if os.path.exists(end):
            self.test.fail(f'{block}: {command!r} ends:\n{read()}')


class Session:
    """A reader who goes through one document, from its first block to the last."""

    def __init__(self, test, name, where):
        self.test, self.name, self.where, self.room = test, name, where, Room(test)
        self.terminal, self.yaml, self.left, self.ran = Terminal(self.room, where), '', None, 0

    def walk(self):
        for block in read_blocks(self.name):
            why = block.reason() or self.lacks(block)
            if why:
                print(f'# left out: {block}: {why}')
                continue
            runs = getattr(self, f'run_{re.sub("[^a-z]", "", block.language)}', None)
            self.test.assertIsNotNone(runs, f'{block}: say here how {block.language!r} is run, or in LEFT_OUT why it is not')
            runs(block)
            self.ran += 1

    def lacks(self, block):
        """A tool that is not here; the rest of the section needs what the block would have done."""
        words = {block.language} if block.language in TOOLS else set(re.findall(r'^(?:\s*)([a-z+0-9]+)\b', block.text, re.M)) if block.language == 'sh' else set()
        missing = sorted(word for word in words & TOOLS if not shutil.which(word))
        if missing:
            self.left = block.section
        return f'no {", ".join(missing)} here' if missing else 'what is above it was left out' if self.left == block.section else None

    def run_sh(self, block):
        if not self.terminal:
            self.terminal = Terminal(self.room, self.where)
        parts = statements(block.text)
        for commands, said in parts:
            if said is None:
                self.terminal.run(commands, block)
            else:
                self.terminal.leave_running(commands, said, block)
        if parts[-1][1] is not None:
            self.terminal = None

    def run_yaml(self, block):
        text = block.text if 'configs:' in block.text else block.text + self.yaml
        named = re.match(r'# (\w+\.yaml)\n', text)
        self.test.write('checked.yaml', text)
        self.yaml = self.yaml if text is not block.text else text
        terminal = Terminal(self.room, '/run/test')
        terminal.run(f'{PULLETD} -t -c checked.yaml || [ $? = 1 ]', block)  # 1: files that it names are not on this host
        if named:
            terminal.run(f'cp checked.yaml {self.where}/{named[1]}', block)

    def run_c(self, block):
        flags = f'-std=c11 -D_GNU_SOURCE -Wall -Wno-unused -I{ROOT}/lib'
        terminal = Terminal(self.room, '/run/test')
        if 'int main(' in block.text:
            self.test.write('app.c', block.text)
            terminal.run(f'cc {flags} -o app app.c -L{BUILD} -lpullet -Wl,-rpath,{BUILD}', block)
            terminal.leave_running('stdbuf -oL ./app', '.', block)
            return
        self.test.write('whole.c', C_FRAME + block.text)
        self.test.write('piece.c', f'{C_FRAME}void piece(void)\n{{\n{block.text}}}\n')
        terminal.run(f'cc {flags} -Werror -fsyntax-only whole.c 2>/dev/null || cc {flags} -Werror -fsyntax-only piece.c', block)

    def run_cpp(self, block):
        self.test.write('app.cpp', block.text)
        terminal = Terminal(self.room, '/run/test')
        terminal.run(f'g++ -std=c++17 -I{ROOT}/lib -I{ROOT}/lib/cpp -o app app.cpp -L{BUILD} -lpullet -Wl,-rpath,{BUILD}', block)
        terminal.leave_running('stdbuf -oL ./app', '.', block)

    def run_python(self, block):
        self.test.write('app.py', block.text)
        terminal = Terminal(self.room, '/run/test')
        terminal.run(f'export PYTHONPATH={ROOT}/lib/python PULLET_LIBRARY={BUILD}/libpullet.so', block)
        terminal.leave_running('python3 -u app.py', '.', block)


class Blocks(harness.Case):
    def test_readme(self):
        session = Session(self, 'README.md', '/tmp/home')
        session.walk()
        self.assertGreaterEqual(session.ran, 8)

    def test_guide(self):
        session = Session(self, 'lib/GUIDE.md', ROOT)
        session.walk()
        self.assertGreaterEqual(session.ran, 3)

    def test_reasons__are_of_blocks_that_there_are(self):
        blocks = read_blocks('README.md') + read_blocks('lib/GUIDE.md')
        for name, begin, _ in LEFT_OUT:
            self.assertEqual(sum(b.name == name and b.text.startswith(begin) for b in blocks), 1, begin)


class Runner(harness.Case):
    """What is wrong in a block is found."""

    def walk(self, text):
        self.write('README.md', text)
        session = Session(self, self.path('README.md'), '/tmp/home')
        session.walk()
        return session.ran

    def found(self, text, said):
        with self.assertRaises(AssertionError) as failed:
            self.walk(text)
        self.assertIn(said, str(failed.exception))

    def test_good_ones__are_run(self):
        self.assertEqual(self.walk("# A\n\n    cat >a <<'END'\n    pullet dev\n    END\n    test -s a\n\n```sh\npullet dev   # serves\n```\n\n```sh\n"
                                   'PULLET_RUNTIME_DIR=$(ls -d /tmp/pullet-dev-*/run) pullet get web db.port\n```\n\n```c\nreturn;\n```\n'), 4)

    def test_command_that_fails__is_found(self):
        self.found('# A\n\n    true\n    false\n    true\n', 'failed: false')

    def test_configuration_with_a_wrong_key__is_found(self):
        self.found('```yaml\nconfigs: {web: {urll: http://a/}}\n```\n', 'urll')

    def test_piece_of_c_that_does_not_compile__is_found(self):
        self.found('```c\npullet_nothing(p);\n```\n', 'pullet_nothing')

    def test_language_that_nothing_runs__is_found(self):
        self.found('```cobol\nx\n```\n', "say here how 'cobol' is run")

    def test_foreground_that_ends__is_found(self):
        self.found('```sh\npulletd -c nothing.yaml\n```\n', "ends:")


if __name__ == '__main__':
    harness.main()
