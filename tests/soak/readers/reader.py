"""The soak's reader in Python, which does what reader.c does."""
import sys

import pullet

KEYS = ['n', *(f'k{i}' for i in range(12)), 'pad', 'end']


class Reader:
    versions = 0

    def __init__(self, name):
        self.name, self.generation, self.n, self.ended = name, 0, 0, False
        self.config = pullet.open(name, wait_first=True)
        if self.config.generation:
            self.check_version()

    def check_version(self):
        total, n, generation = 2166136261, self.config.get_int('n', -1), self.config.generation
        for byte in ''.join(self.config.get_str(key, '') + '\n' for key in KEYS).encode():
            total = (total ^ byte) * 16777619 & 0xffffffff
        if self.config.get_int('sum') != total:
            print(f'wrong: {self.name}, version {n}: the sum is {self.config.get_str("sum")}, of what is there {total}', flush=True)
        if generation < self.generation or n < self.n:
            print(f'wrong: {self.name} went back from version {self.n} of generation {self.generation} to {n} of {generation}', flush=True)
        self.generation, self.n, self.ended = generation, n, self.config.get_str('end') == 'yes'
        Reader.versions += 1

    def move_on(self, wait=False):
        try:
            if self.config.wait(0.02) if wait else self.config.refresh():
                self.check_version()
        except pullet.Error as e:
            print(f'wrong: {self.name}: {e}', flush=True)


def main():
    readers, turn = [Reader(name) for name in sys.argv[1:]], 0
    while not all(reader.ended for reader in readers):
        readers[turn % len(readers)].move_on(wait=True)
        for reader in readers:
            reader.move_on()
        turn += 1
    print(f'Python: {Reader.versions} versions')


main()
