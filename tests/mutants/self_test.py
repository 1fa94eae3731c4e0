#!/usr/bin/env python3
"""Checks the mutator on a small file: it makes the mutants that it should, no other ones, and the judge tells their fates apart. Each entry of
equivalent.txt is still a mutant of the tree. Ends with "N passed, N failed".
"""
import collections
import os
import shlex
import subprocess
import sys
import tempfile

import judge
import mutants
import operators

FIXTURE = r'''
#include <stdlib.h>
#if 1 < 2 /* 3 + 4 */
static int limits[2] = {5, 6};
#endif
int count(int n, int *out);
void *keep(void *p);

int count(int n, int *out)
{
	char text[16] = "a < b && 1";
	int size = n + 1; // n - 1
	(void)(n << 1);
	if (n > 3 && !out)
		return 7;
	while (size < 9)
		size++;
	*out = size == 9 ? 'x' : limits[0];
	if (size > 9)
		text[0] = 'z';
	free(keep(malloc(sizeof(text) + 2)));
	return text[0] != 'a';
}

void *keep(void *p)
{
	return p;
}
'''
# (operator, the line in the mutant, without what all have: that is one line of the fixture and unlike it)
EXPECTED = '''
return     { return 0;
arithmetic int size = n - 1; // n - 1
constant   int size = n + (1 + 1); // n - 1
constant   int size = n + (1 - 1); // n - 1
constant   (void)(n << (1 + 1));
constant   (void)(n << (1 - 1));
condition  if (!(n > 3 && !out))
condition  if ((n > 3 && !out, 0))
condition  if ((n > 3 && !out, 1))
compare    if (n >= 3 && !out)
compare    if (n <= 3 && !out)
constant   if (n > (3 + 1) && !out)
constant   if (n > (3 - 1) && !out)
constant   if (n > 0 && !out)
logic      if (n > 3 || !out)
not        if (n > 3 && out)
return     return 0;
constant   return (7 + 1);
constant   return (7 - 1);
constant   return 0;
condition  while (!(size < 9))
condition  while ((size < 9, 0))
compare    while (size <= 9)
compare    while (size >= 9)
constant   while (size < (9 + 1))
constant   while (size < (9 - 1))
constant   while (size < 0)
assignment ;
arithmetic size--;
assignment ;
compare    *out = size != 9 ? 'x' : limits[0];
constant   *out = size == (9 + 1) ? 'x' : limits[0];
constant   *out = size == (9 - 1) ? 'x' : limits[0];
constant   *out = size == 0 ? 'x' : limits[0];
constant   *out = size == 9 ? 'x' : limits[(0 + 1)];
constant   *out = size == 9 ? 'x' : limits[(0 - 1)];
condition  if (!(size > 9))
condition  if ((size > 9, 0))
condition  if ((size > 9, 1))
compare    if (size >= 9)
compare    if (size <= 9)
constant   if (size > (9 + 1))
constant   if (size > (9 - 1))
constant   if (size > 0)
assignment ;
constant   text[(0 + 1)] = 'z';
constant   text[(0 - 1)] = 'z';
call       ;
arithmetic free(keep(malloc(sizeof(text) - 2)));
constant   free(keep(malloc(sizeof(text) + (2 - 1))));
constant   free(keep(malloc(sizeof(text) + 0)));
return     return 0;
compare    return text[0] == 'a';
constant   return text[(0 + 1)] != 'a';
constant   return text[(0 - 1)] != 'a';
return     { return 0;
return     return 0;
'''
TEST = r'''
#include <stdio.h>
int count(int n, int *out);
int main(void)
{
	int out;
	if (count(1, &out) != 0 || out != 'x' || count(2, &out) != 0)
		puts("[  FAILED  ] count");
	return 0;
}
'''
MORE = {
    'swap': ('void f(int a, int b)\n{\n\tf(a, b);\n\tf(a, 1);\n}\n', ['f(b, a);']),
    'jump': ('void f(int a)\n{\n\tfor (;;) {\n\t\tif (a)\n\t\t\tbreak;\n\t\tgoto out;\n\t}\nout:\n\treturn;\n}\n', [';', ';', ';']),
    'arithmetic': ('int f(int a)\n{\n\treturn (int)-a - -1;\n}\n', ['return (int)-a + -1;']),
    'constant': ('int f(struct s *s)\n{\n\tstruct s t = {0};\n\tassert(s == 1);\n\tstatic const int x = 2;\n\tswitch (x) {\n\tcase 5:\n\t\treturn true;\n\t}\n}\n',
                 ['return false;']),
}
ROOM = {  # a call: the numbers in it of which one more is a mutant
    'calloc(1, sizeof(int))': '', 'malloc(2 * n + 3)': '', 'realloc(p, (n + 4) * size)': '', 'calloc(n ? n : 5, size)': '',
    'malloc(n - 6)': '6', 'malloc(n / 7)': '7', 'malloc(n << 8)': '8', 'calloc(n > 9, size)': '9', 'malloc(f(10))': '10', 'fill(11, size)': '11', 'malloc(list[12])': '12',
}
FATES = {  # the line in the mutant: what becomes of it
    '{ return 0;': judge.KILLED, 'if (n >= 3 && !out)': judge.SURVIVED, 'if (size >= 9)': judge.KILLED, 'while (!(size < 9))': judge.KILLED,
    'while (size >= 9)': judge.KILLED, '(void)(n << (1 + 1));': judge.EQUIVALENT, 'return text[(0 + 1)] != \'a\';': judge.KILLED,
}
bad, checks = [], 0


def check(name, good, said=''):
    global checks
    checks += 1
    if not good:
        bad.append(name)
    print(f'{"ok" if good else "not ok"} - {name}{said and ": "}{said}')


def check_operators():
    found = collections.Counter((m.operator, m.after) for m in operators.find_mutants('lib/fixture.c', FIXTURE))
    wanted = collections.Counter(tuple(line.split(None, 1)) for line in EXPECTED.strip().splitlines())
    check('all mutants that are expected', not wanted - found, ' '.join(map(str, wanted - found)))
    check('no other ones', not found - wanted, ' '.join(map(str, found - wanted)))
    for operator, (text, lines) in MORE.items():
        made = [m.after for m in operators.find_mutants('lib/more.c', text) if m.operator == operator]
        check(f'{operator}: only what is one', made == lines, '' if made == lines else str(made))
    for call, numbers in ROOM.items():
        made = [m.text for m in operators.find_mutants('lib/room.c', f'void *f(int n)\n{{\n\treturn {call};\n}}\n') if '+ 1)' in m.text]
        check(f'{call}: one more where that is not only more room', made == [f'({n} + 1)' for n in numbers.split()], str(made))


def build_fixture():
    """A tree with one file and one test, as the Makefile builds them."""
    os.makedirs('lib')
    os.makedirs('tests/unit/lib')
    os.makedirs('build/lib')
    os.makedirs('build/unit/lib')
    for path, text in (('lib/fixture.c', FIXTURE), ('tests/unit/lib/test_fixture.c', TEST), ('build/commands', 'cc -O2\ncc\n\n')):
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
    for command in ('cc -O2 -c -o build/lib/fixture.o lib/fixture.c', 'cc -O2 -MMD -c -o build/test_fixture.o tests/unit/lib/test_fixture.c',
                    'ar rcD build/lib.a build/lib/fixture.o',
                    'cc -Wl,-Map=build/unit/lib/test_fixture.map -o build/unit/lib/test_fixture build/test_fixture.o build/lib.a'):
        subprocess.run(shlex.split(command), check=True)


def check_judge():
    build_fixture()
    bench = judge.Bench('build', confined=False)
    bench.tests.programs[0].seconds = 0
    decider = judge.Judge([bench])
    try:
        for mutant in operators.find_mutants('lib/fixture.c', FIXTURE):
            if mutant.function == 'count' and mutant.after in FATES:
                fate, _ = decider.decide(mutant, FIXTURE)
                check(f'{mutant.after} {FATES[mutant.after]}', fate == FATES[mutant.after], fate)
    finally:
        decider.close()


def check_equivalents(root):
    """Whose place is gone is no equivalent mutant any more."""
    os.chdir(root)
    named = mutants.read_keys(mutants.EQUIVALENTS)
    made = {m.key() for path, text in mutants.read_sources({key[0] for key in named}).items() for m in operators.find_mutants(path, text)} if named else set()
    for key in set(named) - made:
        check(' '.join(key), False, 'equivalent.txt names it, but the tree has it no more')
    check('equivalent.txt names mutants of the tree, each with a reason', all(named.values()))


def main():
    root = os.getcwd()
    check_operators()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_judge()
    check_equivalents(root)
    print(f'{checks - len(bad)} passed, {len(bad)} failed')
    return bool(bad)


if __name__ == '__main__':
    sys.exit(main())
