#!/usr/bin/python3
"""Holds the man pages against the programs: options, commands, exit codes, environment, functions, metrics, references. Both ways: what a page lacks, and
what it has that no program knows. And the commands that they and README.md show. (The keys of the configuration are held against pullet.yaml(5) by tests/unit/settings/test_page.c.)

Usage: tests/man.py [--self-test]    PULLET_BUILD is where the programs are. Ends with "N passed, N failed".
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get('PULLET_BUILD', 'build'))
PAGES = {'pulletd.8': 'agent/pulletd.8', 'pullet.1': 'agent/cli/pullet.1', 'pullet.yaml.5': 'agent/pullet.yaml.5', 'pullet.7': 'agent/pullet.7',
         'libpullet.3': 'lib/libpullet.3'}


# where commands are shown, and at least how many
EXAMPLES = {'README.md': 20, 'pullet.1': 15, 'pulletd.8': 1, 'lib/GUIDE.md': 1}


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        return f.read()


def say(*command):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return done.stdout + done.stderr


def options(*command):
    """The long options of a program as its getopt has them: asked for one that begins with nothing, it names all. --help is everywhere."""
    said = say(*command, '--=')
    several = re.search(r'ambiguous; possibilities: (.*)', said)
    return set(re.findall(r"'(--[a-z0-9-]+)'", several[1] if several else said)) - {'--help'}


class Programs:
    """What the programs say of themselves; asked once."""

    def __init__(self):
        pulletd, pullet = os.path.join(BUILD, 'pulletd'), os.path.join(BUILD, 'pullet')
        usage = say(pullet, '--help')
        self.commands = {name: options(pullet, name) for name in re.findall(r'^  ([a-z]+) ', usage, re.M)}
        for name in ('fleet', 'rollout'):
            for sub in re.findall(rf'^(?:Usage:)? +pullet {name} ([a-z]+) ', say(pullet, name, '--help'), re.M):
                self.commands[f'{name} {sub}'] = options(pullet, name, sub)
        helps = [say(pullet, name, '--help') for name in self.commands] + [say(pulletd, '--help')]
        self.short = {long: short for text in helps for short, long in re.findall(r'^ +(-[a-zA-Z]), (--[a-z0-9-]+)', text, re.M)}
        self.daemon = options(pulletd)
        self.codes = {'pullet.1': codes(usage), 'pulletd.8': codes(say(pulletd, '--help'))}


def codes(text):
    return set(re.findall(r'\b(\d+) [a-z]', re.search(r'Exit codes:((?:.|\n)*?)(?:\.|$)', text)[1]))


def section(page, name):
    """The text of a section of mdoc source."""
    found = re.search(rf'^\.Sh {name}\n(.*?)(?=^\.Sh |\Z)', page, re.M | re.S)
    return found[1] if found else ''


def flags(text):
    """{'--json', '-c', ...}: all that are marked as options."""
    found = set()
    for line in text.split('\n'):
        if line.startswith('.'):
            words = line.split()
            for i, word in enumerate(words):
                if word == 'Fl' or word == '.Fl':
                    for name in words[i + 1:]:
                        if not re.fullmatch(r'[a-zA-Z]|\\-[a-z][a-z0-9-]*|,|\|', name):
                            break
                        found.add('-' + name.replace('\\-', '-'))
    return found - {'-,', '-|'}


def differ(what, page, program):
    return [f'{what}: {x} is not in the page' for x in sorted(program - page)] + [f'{what}: {x} is in the page only' for x in sorted(page - program)]


def long_names(found, short):
    """Options as the page has them, the short ones by their long names."""
    back = {s: long for long, s in short.items()}
    return {back.get(x, x) for x in found}


def check_pullet(page, programs):
    """Each command's synopsis has its options; each option is described; nothing else is."""
    known = set().union(*programs.commands.values()) | {'--version'}
    described = re.findall(r'^\.It .*\bFl .*', section(page, 'DESCRIPTION'), re.M)
    faults = differ('DESCRIPTION', long_names(flags('\n'.join(described)), programs.short), known)
    found = {}
    for block in re.split(r'^\.Nm\n', section(page, 'SYNOPSIS'), flags=re.M)[1:]:
        name = re.match(r'\.Cm (.*)\n', block)
        if name:
            found.setdefault(name[1], set()).update(long_names(flags(block), programs.short))
            if '.Op Ar where\n' in block:
                found[name[1]] |= {'--config', '--server', '--etcd', '--prefix', '--user', '--password-file', '--ca', '--cert', '--key'}
    forms = {name: has for name, has in programs.commands.items() if name != 'rollout'}  # that is nothing without start, pause, ...
    faults += differ('SYNOPSIS', set(found), set(forms) | {'help'})
    for name, has in forms.items():
        faults += differ(f'SYNOPSIS of {name}', found.get(name, set()), has)
    return faults


def check_options(page, programs):
    described = re.findall(r'^\.It .*\bFl .*', section(page, 'DESCRIPTION'), re.M)
    return differ('DESCRIPTION', long_names(flags('\n'.join(described)), programs.short), programs.daemon | {'--help'}) + \
        [f'SYNOPSIS: {x} is not in the page' for x in sorted(programs.daemon - long_names(flags(section(page, 'SYNOPSIS')), programs.short) - {'--version'})]


def check_codes(page, expected):
    return differ('EXIT STATUS', set(re.findall(r'^\.It (\d+)', section(page, 'EXIT STATUS'), re.M)), expected)


def check_environment(page, sources):
    """What the sources read is named in the page, and what its section lists is read."""
    text = ''.join(read(path) for path in sources)
    reads = set(re.findall(r'\b(?:secure_)?getenv\("([A-Z_]+)"\)', text))
    listed = set(re.findall(r'^\.It Ev ([A-Z_]+)', section(page, 'ENVIRONMENT'), re.M))
    named = set(re.findall(r'\bEv ([A-Z_]+)', page))
    return [f'ENVIRONMENT: {x} is not in the page' for x in sorted(reads - named)] + [f'ENVIRONMENT: {x} is in the page only' for x in sorted(listed - reads)]


def check_functions(page):
    header = set(re.findall(r'\b(pullet_[a-z_]+)\(', re.sub(r'/\*.*?\*/', '', read('lib/pullet.h'), flags=re.S)))
    named = set(re.findall(r'\b(?:Fn|Fo) (pullet_[a-z_]+)', page))
    return differ('functions', named, header) + differ('types', types(page), types(read('lib/pullet.h')))


def types(text):
    """Definitions in C, without comments and layout."""
    flat = re.sub(r'\s+', ' ', re.sub(r'/\*.*?\*/', '', text, flags=re.S))
    return set(re.findall(r'(?:enum|struct) pullet_\w+ \{.*?\};(?= [^}]|$)', flat))


def check_examples(text, programs):
    """Commands that are shown, as a line or between backticks: such a command, and such options of it, there are."""
    faults = []
    if text.startswith('.Dd'):
        text = '\n'.join('    ' + line for block in re.findall(r'^\.Bd -literal.*?\n(.*?)^\.Ed', text.replace('\\e\n', ' '), re.M | re.S) for line in block.split('\n'))
    shown = re.findall(r'^    (?:\$ )?(pulletd? (?![a-z]+:)[^#\n]*)', text, re.M) + re.findall(r'`(pulletd? [^`\n]*)`', text)
    for line in shown:
        words = re.sub(r' -- .*', '', line).split()
        if words[0] == 'pulletd':
            known = programs.daemon
        elif ' '.join(words[1:3]) in programs.commands:
            known = programs.commands[' '.join(words[1:3])]
        elif words[1] in programs.commands:
            known = programs.commands[words[1]]
        else:
            known = set()
            if words[1] not in ('help', '--help', '--version', 'COMMAND'):
                faults.append(f'example: there is no command {words[1]!r} in {line!r}')
        faults += [f'example: there is no option {x} in {line!r}' for x in re.findall(r'(?<= )--[a-z-]+', ' '.join(words)) if x not in known | {'--help', '--version'}]
    return faults, len(shown)


def check_metrics(page, source):
    """Each row of the table of metrics has its item, which begins with the row's help; no other item is there."""
    table = {m[1]: ''.join(re.findall(r'"([^"]*)"', m[2]))
             for m in re.finditer(r'\{"(\w+)", (?:GAUGE|COUNTER|HISTOGRAM|METRIC_INFO), \w+,((?:\s*"[^"]*")+)', read(source))}
    items = {m[1]: m[2] for m in re.finditer(r'^\.It Cm (\w+)(?: Pq \w+)?\n(.*?)(?=^\.It |^\.El)', page, re.M | re.S)}
    faults = differ('metrics', set(items), set(table)) if table else [f'no metric is found in {source}, which cannot be']
    for name in sorted(set(items) & set(table)):
        said = ' '.join(re.sub(r'^\.(Cm|Ql|Dv|Pa|Pq|Ic|Xr) ', '', line) for line in items[name].splitlines()).replace('\\-', '-')
        if not re.sub(r' +(?=[,.;:)])', '', said).startswith(table[name]):
            faults.append(f'metrics: the paragraph of {name} begins otherwise than its help in {source}: {table[name]!r}')
    return faults


def check_references(name, page, pages):
    """Each of our pages that is named exists, and SEE ALSO leads to all the others."""
    refers = {f'{a}.{b}' for a, b in re.findall(r'\bXr ((?:lib)?pullet[a-z.]*) (\d)', page)}
    also = {f'{a}.{b}' for a, b in re.findall(r'\bXr (\S+) (\d)', section(page, 'SEE ALSO'))}
    return [f'{x} is named, and no page' for x in sorted(refers - set(pages))] + [f'SEE ALSO: {x} is missing' for x in sorted(set(pages) - also - {name})]


def glob_sources(*patterns):
    return sorted(os.path.relpath(path, ROOT) for pattern in patterns for path in glob.glob(os.path.join(ROOT, pattern), recursive=True))


def check(pages, programs):
    """All complaints, each with its page before it; and how many checks there were."""
    daemon = [path for path in glob_sources('agent/**/*.c') if not path.startswith('agent/cli/')]
    results = [('pullet.1', check_pullet(pages['pullet.1'], programs)), ('pulletd.8', check_options(pages['pulletd.8'], programs)),
               ('pullet.1', check_environment(pages['pullet.1'], glob_sources('agent/cli/**/*.c', 'lib/*.c', 'agent/settings/places.c'))),
               ('pulletd.8', check_environment(pages['pulletd.8'], daemon)),
               ('libpullet.3', check_environment(pages['libpullet.3'], glob_sources('lib/*.c'))), ('libpullet.3', check_functions(pages['libpullet.3'])),
               ('pulletd.8', check_metrics(section(pages['pulletd.8'], 'METRICS'), 'agent/control/metrics_table.c')),
               ('pullet.1', check_metrics(pages['pullet.1'].partition('.Ss Metrics of a relay\n')[2].partition('\n.Ss ')[0], 'agent/cli/relay/relay_metrics.c'))]
    results += [(name, check_codes(pages[name], programs.codes[name])) for name in ('pullet.1', 'pulletd.8')]
    results += [(name, check_references(name, pages[name], pages)) for name in pages]
    for name, least in EXAMPLES.items():
        faults, shown = check_examples(pages[name] if name in pages else read(name), programs)
        results.append((name, faults or ([] if shown >= least else [f'{shown} examples are found, which cannot be'])))
    return [f'{name}: {fault}' for name, faults in results for fault in faults], len(results)


def self_test(pages, programs):
    """Each of these mistakes must be found; the number of those that are not."""
    seeds = (('pullet.1', '.It Fl \\-check\n', ''), ('pullet.1', '.It Fl \\-check\n', '.It Fl \\-chuck\n'), ('pullet.1', '.Op Fl \\-interval Ar duration\n', ''),
             ('pullet.1', '.Cm unpin\n', '.Cm inpin\n'), ('pullet.1', '.It 78\n', '.It 79\n'), ('pullet.1', 'pullet pin web --for', 'pullet pin web --fir'), ('pullet.1', '.It Ev PULLET_CONFIG\n', '.It Ev PULLET_CONFUG\n'),
             ('pullet.1', '.It Ev NO_COLOR', '.It Ev NO_COLOUR'), ('pulletd.8', 'Fl \\-dry-run', 'Fl \\-dry-ran'), ('pulletd.8', '.It 64\n', '.It 65\n'),
             ('pulletd.8', 'SSL_CERT_FILE', 'SSL_CART_FILE'), ('libpullet.3', 'Fn pullet_age_ms', 'Fn pullet_age_mm'),
             ('libpullet.3', '\tint64_t integer;', '\tint32_t integer;'), ('libpullet.3', 'PULLET_STRING, PULLET_LIST,', 'PULLET_LIST, PULLET_STRING,'), ('pullet.7', '.Xr pulletd 8', '.Xr pulletd 9'),
             ('pullet.1', 'pullet diff web', 'pullet dif web'), ('pulletd.8', '.It Cm pullet_config_ready\n', '.It Cm pullet_config_red\n'),
             ('pulletd.8', 'Queued pulls.', 'Pulls in the queue.'), ('pullet.1', '.It Cm pullet_relay_topics\n', '.It Cm pullet_relay_topic\n'))
    missed = 0
    for name, old, new in seeds:
        found, _ = check({**pages, name: pages[name].replace(old, new)}, programs)
        if old not in pages[name] or not any(fault.startswith(name) for fault in found):
            print(f'not found: {name} with {new!r} instead of {old!r}')
            missed += 1
    return len(seeds) - missed, missed


def main():
    pages, programs = {name: read(path) for name, path in PAGES.items()}, Programs()
    if sys.argv[1:] == ['--self-test']:
        passed, failed = self_test(pages, programs)
    else:
        faults, count = check(pages, programs)
        print('\n'.join(faults))
        failed = len(faults)
        passed = max(0, count - failed)
    print(f'{passed} passed, {failed} failed')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
