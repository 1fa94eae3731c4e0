"""Completions in real shells: bash, zsh on a terminal, fish. What they offer is what the programs take: their tables of options (which getopt
names itself when it is asked for an option that begins with nothing), the commands, the configs of an agent, the keys of its snapshots."""
import os
import re
import select
import subprocess
import time

import harness
from harness import BUILD, PULLET, PULLETD, Agent, FaultServer, good
from terminal import Terminal

COMPLETIONS = os.path.join(harness.ROOT, 'packaging', 'completions')
DOCUMENT = b'db: {host: a, port: 1}\ndebug: true\n"odd key": 1\n'


def options_of(*command):
    """The long options that a program knows, those of its own commands among them."""
    if command[1:] == ('fleet',):
        return options_of(PULLET, 'fleet', '') | options_of(PULLET, 'fleet', 'wait') | options_of(PULLET, 'fleet', 'forget')
    said = subprocess.run([*command, '--='], capture_output=True, text=True, check=False).stderr
    several = re.search(r"ambiguous; possibilities: (.*)", said)
    return set(re.findall(r"'(--[a-z0-9-]+)'", several[1] if several else said)) - {'--='}


def commands():
    out = subprocess.run([PULLET, '--help'], capture_output=True, text=True, check=True).stdout
    return re.findall(r'^  ([a-z]+) ', out, re.M)


class Bash:
    """COMP_WORDS as readline would split the line, and what the function makes of them."""

    SCRIPT = '''compopt() { :; }
source "$1"; shift
COMP_CWORD=$(($# - 1)); COMP_WORDS=("$@"); _pullet "$1" "${@: -1}"
printf '%s\\n' "${COMPREPLY[@]}"'''

    def __init__(self, test, env):
        self.test, self.env = test, env

    def ask(self, line):
        words = re.findall(r'=|(?:\\.|[^ =\\])+', line) + ([''] if line[-1] in ' =' else [])
        done = subprocess.run(['bash', '--norc', '-c', self.SCRIPT, 'bash', os.path.join(COMPLETIONS, 'pullet.bash'), *words], env=self.env,
                              capture_output=True, text=True, cwd=self.test.dir, timeout=harness.DEADLINE, check=False)
        self.test.assertEqual(done.stderr, '')
        return {re.sub(r'\\(.)', r'\1', x) for x in done.stdout.splitlines() if x}


class Fish:
    def __init__(self, test, env):
        self.test, self.env = test, dict(env, HOME=test.path('home'), XDG_CONFIG_HOME=test.path('home'), XDG_DATA_HOME=test.path('home'))
        os.makedirs(test.path('home'), exist_ok=True)

    def ask(self, line):
        done = subprocess.run(['fish', '--no-config', '-c', f'source {COMPLETIONS}/pullet.fish; complete -C $argv[1]', line], env=self.env,
                              capture_output=True, text=True, cwd=self.test.dir, timeout=harness.DEADLINE, check=False)
        self.test.assertEqual(done.stderr, '')
        found = {re.sub(r'\\(.)', r'\1', x.split('\t')[0]) for x in done.stdout.splitlines()}
        return {re.sub(r'^--[a-z-]+=', '', x) for x in found}


class Zsh:
    """One shell on a terminal; Tab completes, and what was offered comes through a pipe."""

    RC = '''PS1=; unsetopt beep; stty -echo
fpath=(%(completions)s $fpath)
autoload -Uz compinit; compinit -u -D
compadd() {
	local -a hits
	if (( ${@[1,(i)(-|--)][(I)-[OAD]]} )); then builtin compadd "$@"; return; fi
	builtin compadd -O hits "$@"
	(( $#hits )) || return 1
	print -rl -- $hits >&3
	builtin compadd "$@"
}
say() { zle expand-or-complete; BUFFER=; print -r -- '<end>' >&3 }
zle -N say; bindkey '^I' say
exec 3<>%(pipe)s
print -r -- '<ready>' >&3
'''

    def __init__(self, test, env):
        self.test, self.rest = test, b''
        test.write('zsh/rc', self.RC % {'completions': COMPLETIONS, 'pipe': test.path('pipe')})
        os.mkfifo(test.path('pipe'))
        self.pipe = os.open(test.path('pipe'), os.O_RDWR | os.O_NONBLOCK)
        test.addCleanup(os.close, self.pipe)
        self.terminal = Terminal(test, ['zsh', '-f', '-i'], 200, 50, dict(env, TERM='dumb', HOME=test.path('zsh')))
        self.terminal.press(f'cd {test.dir}; source {test.path("zsh/rc")}\n')
        self.until('<ready>')

    def until(self, mark):
        deadline, lines = time.monotonic() + harness.DEADLINE, []
        while True:
            if select.select([self.terminal.master], [], [], 0)[0]:
                os.read(self.terminal.master, 65536)
            if not select.select([self.pipe], [], [], 0.05)[0]:
                self.test.assertLess(time.monotonic(), deadline, lines)
                continue
            *more, self.rest = (self.rest + os.read(self.pipe, 65536)).split(b'\n')
            lines += [x.decode() for x in more]
            if mark in lines:
                return set(lines) - {mark}

    def ask(self, line):
        self.terminal.press(line + '\t')
        return {re.sub(r'\\(.)', r'\1', x).rstrip('=') for x in self.until('<end>')}


class Completions(harness.Case):
    def setUp(self):
        super().setUp()
        self.env = {'PATH': BUILD + ':/usr/bin:/bin:/usr/sbin', 'PULLET_RUNTIME_DIR': self.path('run'), 'HOME': self.dir, 'LC_ALL': 'C.UTF-8',
                    'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '')}
        os.makedirs(self.path('folder'))
        self.write('file', '')

    def agent(self):
        server = FaultServer(self)
        server.behave = good(DOCUMENT, 'ETag: "v1"\r\n')
        two = self.config(server.url + '/web.yaml') + f'''  other:
    url: {server.url}/other.yaml
    file: {self.path("out/other.yaml")}
'''
        agent = Agent(self, two)
        agent.refresh()
        agent.refresh('other')
        server.behave = good(DOCUMENT + b'n: 2\n', 'ETag: "v2"\r\n')
        agent.refresh()
        return agent

    def shell_offers(self, shell, key_end=''):
        keys = {'db.host', 'db.port', 'debug', 'odd key', 'n'}
        configs = {'web', 'other'}
        for line, want in (
                ('pullet st', {'status'}), ('pullet get ', configs), ('pullet get w', {'web'}), ('pullet get web ', keys), ('pullet get web db.', {'db.host', 'db.port'}),
                ('pullet list web d', {'db.host', 'db.port', 'debug'}), ('pullet explain web deb', {'debug'}), ('pullet status o', {'other'}),
                ('pullet override web db.h', {'db.host' + key_end}), ('pullet rollback web ', {'1', '2'}), ('pullet diff web 1 ', {'1', '2'}),
                ('pullet export web --format ', {'sh', 'env', 'properties', 'json', 'yaml'}), ('pullet export web --format=pro', {'properties'}),
                ('pullet get web debug --type b', {'bool'}), ('pullet get --type bool we', {'web'}), ('pullet watch web --signal US', {'USR1', 'USR2'}), ('pullet run web --on-change re', {'restart'}),
                ('pullet fleet ', configs | {'wait', 'forget'}), ('pullet fleet wait o', {'other'}), ('pullet get web debug ', set()),
                ('pullet status --na', {'--names'}), ('pullet status --socket fi', {'file'}), ('pullet publish ', set()), ('pullet none ', set()),
                ('pulletd --dry', {'--dry-run'}), ('pulletd --log-level ', {'err', 'warn', 'info', 'debug'}), ('pulletd -c fi', {'file'}),
                ('pullet help top', {'top'})):
            with self.subTest(line=line):
                got = shell.ask(line)
                self.assertEqual({x for x in got if not x.startswith('--')} if not want else got, want, 'options are always possible')
        self.assertEqual({x.rstrip('/') for x in shell.ask('pullet serve fo')}, {'folder'})
        self.assertIn('nice', shell.ask('pullet watch web -- nic'))
        self.assertEqual(shell.ask('pullet ') - {'--help', '--version'}, {*commands(), 'help'})
        for command in commands():
            with self.subTest(command=command):
                self.assertEqual(shell.ask(f'pullet {command} --'), options_of(PULLET, command))
        self.assertEqual(shell.ask('pulletd --'), options_of(PULLETD))

    def without_an_agent(self, shell):
        begin = time.monotonic()
        for line in ('pullet get ', 'pullet get web ', 'pullet rollback web ', 'pullet override web '):
            self.assertEqual(shell.ask(line), set())
        if not harness.SANITIZED:
            self.assertLess(time.monotonic() - begin, 4)

    def both(self, shell, key_end=''):
        self.without_an_agent(shell)
        agent = self.agent()
        self.shell_offers(shell, key_end)
        agent.stop()
        self.write('run/.hidden.snap', '')
        self.write('run/other.snap.new', '')
        self.assertEqual(shell.ask('pullet get '), {'web', 'other'}, 'they have a snapshot, and that is enough')
        self.assertEqual(shell.ask('pullet get web deb'), {'debug'})

    def test_bash(self):
        self.both(Bash(self, self.env), '=')

    def test_fish(self):
        self.both(Fish(self, self.env), '=')

    def test_zsh(self):
        self.both(Zsh(self, self.env))

    def test_bash_on_a_terminal(self):
        """What readline makes of it: the word is completed, a directory gets a slash, KEY= no blank."""
        agent = self.agent()
        self.write('rc', f'PS1="\\$ "; cd {self.dir}; bind "set enable-bracketed-paste off"; bind "set bell-style none"; source {COMPLETIONS}/pullet.bash\n')
        t = Terminal(self, ['bash', '--rcfile', self.path('rc'), '-i'], 120, 40, dict(self.env, TERM='dumb'))
        t.until(r'^\$$')
        for typed, shown in (('pullet stat\tx', 'pullet status x'), ('pullet override web db.h\tx', 'pullet override web db.host=x'),
                             ('pullet serve fol\tx', 'pullet serve folder/x'), ('pullet get web od\tx', 'pullet get web odd\\ key x')):
            t.press(typed)
            t.until('^' + re.escape(f'$ {shown}') + '$')
            t.press('\x15')
        agent.stop()

    def test_every_option_is_in_the_help(self):
        """Completions and people read the help: it has what the programs take, and nothing else."""
        for command in ([PULLET, c] for c in commands()):
            self.help_is_whole(command)
        self.help_is_whole([PULLETD])

    def help_is_whole(self, command):
        out = subprocess.run([*command, '--help'], capture_output=True, text=True, check=True).stdout
        shown = set(re.findall(r'^ +(?:-[a-zA-Z], )?(--[a-z0-9-]+)', out, re.M))
        self.assertEqual(shown | {'--help'}, options_of(*command), command)


if __name__ == '__main__':
    harness.main()
