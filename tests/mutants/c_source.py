"""Reads C as far as the mutator needs it: tokens, functions, statements. No compiler: what it does not understand it leaves alone.

Comments, strings, characters, preprocessor lines and all that is outside of functions are never changed. Of a declaration only its
initializers are; of `assert` nothing is.
"""
import dataclasses
import re

TOKEN = re.compile(r'''
    (?P<preprocessor>^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<space>[ \t]+|\n|\\\n)
  | (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<string>(?:u8|[LuU])?"(?:\\.|[^"\\])*")
  | (?P<char>[LuU]?'(?:\\.|[^'\\])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.])*)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<op><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
''', re.X | re.M | re.S)
CLOSERS = {'(': ')', '[': ']', '{': '}'}
TYPES = set('''const static extern register volatile struct enum union unsigned signed int char bool long short float double void
    size_t ssize_t va_list FILE DIR'''.split())
KEYWORDS = set('if else for while do switch case default return goto break continue sizeof'.split())
ASSIGN = set('= += -= *= /= %= &= |= ^= <<= >>='.split())
ASSERTS = {'assert', 'static_assert', '_Static_assert'}


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int


@dataclasses.dataclass
class Statement:
    """kind is simple, if, while or for; tokens first..last (not included) are its text, or that of its condition."""
    kind: str
    first: int
    last: int


@dataclasses.dataclass
class Function:
    name: str
    is_void: bool
    body: int  # its tokens first..last: the braces
    end: int


class Unreadable(Exception):
    """Something that this reader does not know."""


def read_tokens(text):
    """What counts of a text: neither space, nor comments, nor preprocessor lines."""
    return [Token(m.lastgroup, m.group(), m.start(), m.end()) for m in TOKEN.finditer(text) if m.lastgroup not in ('space', 'comment', 'preprocessor')]


def match_brackets(tokens):
    """{index of an opening bracket: index of its closing one}, and the reverse"""
    found, opened = {}, []
    for i, token in enumerate(tokens):
        if token.kind != 'op':
            continue
        if token.text in CLOSERS:
            opened.append(i)
        elif token.text in CLOSERS.values():
            if not opened or CLOSERS[tokens[opened[-1]].text] != token.text:
                raise Unreadable(f'brackets at {token.start}')
            found[opened[-1]] = i
            found[i] = opened.pop()
    return found


class Source:
    """The tokens of a file, and which of them are whose."""

    def __init__(self, text):
        self.text = text
        self.tokens = read_tokens(text)
        self.match = match_brackets(self.tokens)

    def is_at(self, i, *texts):
        return 0 <= i < len(self.tokens) and self.tokens[i].text in texts

    def find_opened(self, i):
        """The bracket that is open at i, or None."""
        i -= 1
        while i >= 0 and not self.is_at(i, *CLOSERS):
            i = self.match[i] - 1 if i in self.match else i - 1
        return i if i >= 0 else None

    def find_functions(self):
        """Yields each function that has a body."""
        i = begin = 0
        while i < len(self.tokens):
            if self.is_at(i, '{'):
                if self.is_at(i - 1, ')'):
                    name = self.match[i - 1] - 1
                    kinds = [t.text for t in self.tokens[begin:name]]
                    yield Function(self.tokens[name].text, 'void' in kinds and '*' not in kinds, i, self.match[i])
                i = self.match[i]
            elif self.is_at(i, '(', '['):
                i = self.match[i]
            if self.is_at(i, ';', '}'):
                begin = i + 1
            i += 1

    def read_statements(self, function):
        """All statements of a function, and the conditions of its branches and loops."""
        found = []
        i = function.body + 1
        while i < function.end:
            i = self._read_statement(i, found)
        return found

    def _read_statement(self, i, found):
        """Reads one; where the next one begins."""
        text = self.tokens[i].text
        if text == '{':
            end = self.match[i]
            i += 1
            while i < end:
                i = self._read_statement(i, found)
            return end + 1
        if text in ('else', 'do', ';'):
            return i + 1
        if text in ('if', 'while', 'for', 'switch'):
            return self._read_header(i, found)
        if text in ('case', 'default') or self.tokens[i].kind == 'name' and self.is_at(i + 1, ':'):
            return self._skip_label(i)
        if self.tokens[i].kind == 'name' and text not in KEYWORDS and self.is_at(i + 1, '(') and not self._ends_expression(self.match[i + 1] + 1):
            return self.match[i + 1] + 1  # a macro that is a loop
        return self._read_simple(i, found)

    def _ends_expression(self, i):
        """Whether what follows a bracket goes on with the statement."""
        return i < len(self.tokens) and self.tokens[i].kind == 'op' and not self.is_at(i, '{')

    def _read_header(self, i, found):
        opened, kind = i + 1, self.tokens[i].text
        closed = self.match[opened]
        if kind == 'for':
            parts = self._split(opened + 1, closed, ';')
            if len(parts) != 3:
                raise Unreadable(f'for at {self.tokens[i].start}')
            found += [Statement('simple', *parts[0]), Statement('for', *parts[1]), Statement('simple', *parts[2])]
        else:
            found.append(Statement('simple' if kind == 'switch' else kind, opened + 1, closed))
        return closed + 1

    def _skip_label(self, i):
        while not self.is_at(i, ':'):
            i = self.match[i] + 1 if self.is_at(i, *CLOSERS) else i + 1
        return i + 1

    def _read_simple(self, i, found):
        first = i
        while not self.is_at(i, ';'):
            i = self.match[i] + 1 if self.is_at(i, *CLOSERS) else i + 1
            if i >= len(self.tokens) or self.is_at(i, '}'):
                raise Unreadable(f'statement at {self.tokens[first].start}')
        found.append(Statement('simple', first, i))
        return i + 1

    def _split(self, first, last, separator):
        """[(first, last)] of what is between separators outside of brackets"""
        parts, i, begin = [], first, first
        while i < last:
            if self.is_at(i, separator):
                parts.append((begin, i))
                begin = i + 1
            i = self.match[i] + 1 if self.is_at(i, *CLOSERS) else i + 1
        return parts + [(begin, last)]

    def split_arguments(self, opened):
        """[(first, last)] of the arguments of a call"""
        return self._split(opened + 1, self.match[opened], ',')

    def find_outside(self, first, last, texts):
        """The first token outside of brackets that is one of these, or None."""
        i = first
        while i < last:
            if self.is_at(i, *texts):
                return i
            i = self.match[i] + 1 if self.is_at(i, *CLOSERS) else i + 1
        return None

    def is_declaration(self, first, last):
        a = self.tokens[first]
        if a.text in TYPES:
            return True
        if a.kind != 'name' or a.text in KEYWORDS or first + 1 >= last:
            return False
        i = first + 1
        while i < last and self.is_at(i, '*'):
            i += 1
        return i < last and self.tokens[i].kind == 'name' and (i == first + 1 or self.is_at(i + 1, '=', ';', ',', '['))

    def find_expressions(self, statement):
        """[(first, last)]: what of a statement may be changed, token by token."""
        first, last = statement.first, statement.last
        if first >= last or self.is_at(first, *ASSERTS):
            return []
        if statement.kind != 'simple' or not self.is_declaration(first, last):
            return [(first, last)]
        if self.is_at(first, 'static', 'extern', 'typedef'):
            return []
        return [(i + 1, end) for begin, end in self._split(first, last, ',') if (i := self.find_outside(begin, end, ('=',))) is not None]

    def is_cast(self, closed):
        """Whether a closing bracket is that of a type in front of a value."""
        inside = self.tokens[self.match[closed] + 1:closed]
        return bool(inside) and all(t.kind == 'name' or t.text == '*' for t in inside) and (
            inside[0].text in TYPES or inside[-1].text == '*' or len(inside) == 1 and inside[0].text.endswith('_t'))

    def is_binary(self, i):
        """Whether the operator at i has a value in front of it."""
        before = self.tokens[i - 1]
        if before.text == ')':
            return not self.is_cast(i - 1)
        return before.text == ']' or before.kind == 'number' or before.kind == 'name' and before.text not in KEYWORDS

    def line_of(self, start):
        """(number, text) of the line of a place"""
        begin = self.text.rfind('\n', 0, start) + 1
        end = self.text.find('\n', start)
        return self.text.count('\n', 0, start) + 1, self.text[begin:end if end >= 0 else None]
