"""The soak's reader of files: PATH... of files and directories of sets, which does what reader.c does, without libpullet."""
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import documents  # noqa: E402


def read(name, dir_fd=None):
    with open(os.open(name, os.O_RDONLY, dir_fd=dir_fd), encoding='utf-8') as f:
        return f.read()


class Reader:
    versions = 0

    def __init__(self, path):
        self.path, self.known, self.generation, self.numbers, self.ended = path, None, 0, {}, False

    def mark(self):
        """What changes with each version: the file's identity, or the set's link."""
        if os.path.isdir(self.path):
            return os.readlink(self.path + '/..data')
        st = os.stat(self.path)
        return st.st_ino, st.st_mtime_ns, st.st_ctime_ns

    def texts(self):
        """{name: text} of one version."""
        if not os.path.isdir(self.path):
            return {'': read(self.path)}
        fd = os.open(self.path + '/' + self.known, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return {name: read(name, fd) for name in os.listdir(fd)}
        finally:
            os.close(fd)

    def move_on(self):
        try:
            mark = self.mark()
            if mark == self.known:
                return
            self.known = mark
            texts = self.texts()
        except FileNotFoundError as e:
            self.check_absence(e)
            return
        self.check_generation(mark)
        versions = {name: documents.parse(text) for name, text in texts.items()}
        for name, values in versions.items():
            self.check_version(name, values)
        self.ended = all(values.get('end') == 'yes' for values in versions.values())
        Reader.versions += 1

    def check_absence(self, error):
        """Nothing may be missing, but before the first version, or in a set that was replaced meanwhile."""
        if self.numbers and (not os.path.isdir(self.path) or self.mark() == self.known):
            print(f'wrong: {error}', flush=True)

    def check_generation(self, mark):
        generation = int(re.match(r'\.\.(\d+)-', mark)[1]) if isinstance(mark, str) else 0
        if generation < self.generation:
            print(f'wrong: {self.path} went back from generation {self.generation} to {generation}', flush=True)
        self.generation = generation

    def check_version(self, name, values):
        flaw, n = documents.flaw_of(values), int(values.get('n', -1))
        if flaw:
            print(f'wrong: {self.path} {name}, version {n}: {flaw}', flush=True)
        if n < self.numbers.get(name, 0):
            print(f'wrong: {self.path} {name} went back from version {self.numbers[name]} to {n}', flush=True)
        self.numbers[name] = n


def main():
    readers = [Reader(path) for path in sys.argv[1:]]
    while not all(reader.ended for reader in readers):
        for reader in readers:
            reader.move_on()
        time.sleep(0.003)  # the pace of the look
    print(f'files: {Reader.versions} versions')


main()
