"""The mutator: all mutants of a C file, each one change of one place.

    compare   < <= == != > >= becomes a neighbour or the opposite
    condition that of `if` is negated, always true, always false; that of a loop negated or false
    logic     && becomes ||, || becomes &&
    call      a call that is a statement is dropped
    constant  a number +1, -1, or 0, but none +1 that only makes an allocation larger; true and false
    return    a function returns at once; a return gives 0 instead of its value
    jump      break, continue, goto, return without a value: dropped
    arithmetic + becomes -, += becomes -=, ++ becomes --, and the reverse
    assignment dropped
    not       ! removed
    swap      two neighbouring arguments that are names or members change places
"""
import dataclasses

from c_source import ASSERTS, ASSIGN, KEYWORDS, Source, Unreadable

COMPARE = {'<': ('<=', '>='), '<=': ('<', '>'), '>': ('>=', '<='), '>=': ('>', '<'), '==': ('!=',), '!=': ('==',)}
LOGIC = {'&&': '||', '||': '&&'}
ARITHMETIC = {'+': '-', '-': '+', '+=': '-=', '-=': '+=', '++': '--', '--': '++'}
TRUTH = {'true': 'false', 'false': 'true'}
NOTHING = {'0', 'NULL', 'false'}
ALLOCATORS = {'malloc', 'calloc', 'realloc', 'reallocarray'}


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: str
    function: str
    operator: str
    start: int  # these characters of the file
    end: int
    text: str  # are replaced by this
    line: int
    before: str  # the line, without its indentation
    after: str  # the same in the mutant

    def key(self):
        """What names it for longer than a line's number."""
        return self.path, self.function, self.operator, self.before, self.after

    def apply_to(self, source):
        return source[:self.start] + self.text + source[self.end:]


class Mutator:
    """Collects the mutants of one file."""

    def __init__(self, path, text):
        self.path, self.source, self.function, self.found = path, Source(text), None, []
        self.tokens = self.source.tokens

    def add(self, operator, first, last, text):
        """Replaces the tokens first..last (not included)."""
        start = self.tokens[first].start
        self.add_at(operator, start, self.tokens[last - 1].end, text)

    def add_at(self, operator, start, end, text):
        number, line = self.source.line_of(start)
        column = start - (self.source.text.rfind('\n', 0, start) + 1)
        rest = self.source.text[end:].split('\n', 1)[0]
        self.found.append(Mutant(self.path, self.function.name, operator, start, end, text, number, line.strip(), (line[:column] + text + rest).strip()))

    def mutate_all(self):
        for function in self.source.find_functions():
            self.function = function
            self.return_at_once()
            for statement in self.source.read_statements(function):
                if statement.kind == 'simple':
                    self.mutate_statement(statement)
                else:
                    self.mutate_condition(statement)
                for first, last in self.source.find_expressions(statement):
                    self.mutate_tokens(first, last)
        return self.found

    def return_at_once(self):
        brace = self.tokens[self.function.body]
        self.add_at('return', brace.start, brace.end, '{ return;' if self.function.is_void else '{ return 0;')

    def mutate_condition(self, statement):
        first, last = statement.first, statement.last
        if first >= last:
            return
        text = self.source.text[self.tokens[first].start:self.tokens[last - 1].end]
        forms = ['!({})', '({}, 0)'] + (['({}, 1)'] if statement.kind == 'if' else [])
        for form in forms:
            if not (statement.kind == 'while' and text in ('0', '1', 'true', 'false')):
                self.add('condition', first, last, form.format(text))

    def mutate_statement(self, statement):
        first, last = statement.first, statement.last
        if first >= last or self.source.is_declaration(first, last):
            return
        word = self.tokens[first].text
        if word in ('break', 'continue', 'goto') or word == 'return' and last == first + 1:
            self.add('jump', first, last, '')
        elif word == 'return':
            if self.tokens[last - 1].text not in NOTHING or last > first + 2:
                self.add('return', first + 1, last, '0')
        elif self.source.find_outside(first, last, ASSIGN | {'++', '--'}) is not None:
            self.add('assignment', first, last, '')
        elif self.source.is_at(last - 1, ')') and word not in ASSERTS and self.tokens[self.source.match[last - 1] - 1].kind == 'name':
            self.add('call', first, last, '')

    def mutate_tokens(self, first, last):
        i = first
        while i < last:
            if self.source.is_at(i, 'sizeof') and self.source.is_at(i + 1, '('):
                i = self.source.match[i + 1]
            elif self.tokens[i].kind == 'number':
                self.change_number(i)
            elif self.tokens[i].text in TRUTH:
                self.add('constant', i, i + 1, TRUTH[self.tokens[i].text])
            elif self.tokens[i].kind == 'op':
                self.change_operator(i)
            elif self.tokens[i].kind == 'name' and self.source.is_at(i + 1, '(') and self.tokens[i].text not in KEYWORDS:
                self.swap_arguments(i + 1)
            i += 1

    def change_number(self, i):
        text = self.tokens[i].text
        if text == '0' and self.source.is_at(i - 1, '{') and self.source.is_at(i + 1, '}'):
            return  # an initializer for all
        for form in ('({} - 1)',) if self.is_room(i) else ('({} + 1)', '({} - 1)'):
            self.add('constant', i, i + 1, form.format(text))
        if text.rstrip('uUlL') not in ('0', '1'):
            self.add('constant', i, i + 1, '0')

    def is_room(self, i):
        """Whether more than this number is only more memory, which nobody uses."""
        if not self.source.is_at(i - 1, *'(,+*?:') or not self.source.is_at(i + 1, *'),+-*:'):
            return False
        opened = self.source.find_opened(i)
        while opened is not None and self.source.is_at(opened, '(') and self.tokens[opened - 1].kind != 'name':
            opened = self.source.find_opened(opened)
        return opened is not None and self.tokens[opened - 1].text in ALLOCATORS

    def change_operator(self, i):
        text = self.tokens[i].text
        for other in COMPARE.get(text, ()):
            self.add('compare', i, i + 1, other)
        if text in LOGIC:
            self.add('logic', i, i + 1, LOGIC[text])
        if text in ARITHMETIC and (text not in '+-' or self.source.is_binary(i)):
            self.add('arithmetic', i, i + 1, ARITHMETIC[text])
        if text == '!':
            self.add('not', i, i + 1, '')

    def is_simple(self, first, last):
        """A name, a member, an address: nothing that does anything."""
        return first < last and self.tokens[last - 1].kind == 'name' and all(
            t.kind == 'name' or t.text in ('->', '.', '&', '*') for t in self.tokens[first:last])

    def swap_arguments(self, opened):
        parts = self.source.split_arguments(opened)
        for (a, b), (c, d) in zip(parts, parts[1:]):
            if self.is_simple(a, b) and self.is_simple(c, d):
                text = self.source.text
                one, other = text[self.tokens[a].start:self.tokens[b - 1].end], text[self.tokens[c].start:self.tokens[d - 1].end]
                between = text[self.tokens[b - 1].end:self.tokens[c].start]
                if one != other:
                    self.add('swap', a, d, other + between + one)


def find_mutants(path, text):
    """All mutants of a file. Raises Unreadable."""
    try:
        return Mutator(path, text).mutate_all()
    except Unreadable as e:
        raise Unreadable(f'{path}: {e}') from e
