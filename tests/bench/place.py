"""Where a benchmark starts real programs: the integration tests' helpers (harness, etcd) without a test around them."""
import contextlib
import os
import signal
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))  # before this directory, which has an etcd.py of its own
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # in order: nothing stays behind


class Place(contextlib.ExitStack):
    """A directory in memory, with what is started in it; stands for the test that the helpers want. Ends all of it, and is gone."""

    def __init__(self, directory=None):
        super().__init__()
        self.dir = directory or self.enter_context(tempfile.TemporaryDirectory(prefix='pullet-bench-', dir='/dev/shm'))
        self.addCleanup = self.callback

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as f:
            f.write(text)

    def below(self, name):
        """A place in a directory of this one."""
        os.makedirs(self.path(name))
        return self.enter_context(Place(self.path(name)))


def quantile(values, share):
    """The value at this share of the way from the least to the greatest."""
    return sorted(values)[int((len(values) - 1) * share)]


def target(what, figure, limit, unit='x'):
    """One line for a target: at most `limit`. run.py reads these lines."""
    print(f'{"PASS" if figure <= limit else "MISS"}  {what}: {figure:.2f} {unit} (target: at most {limit:.2f})', flush=True)
