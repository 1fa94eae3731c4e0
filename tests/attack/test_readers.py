#!/usr/bin/env python3
"""A reader of the published files, in their group, tries every act that would change what others read: none succeeds, on the text file, the
snapshot, its page, and a set of files; and of the state directory nothing is seen. The same acts succeed as the agent's user, so they are some."""
import ctypes
import mmap
import os

import attack
import harness
from attack import AGENT, LIBC, READER, READERS

# 9 acts; each gets the path of a file, and a directory on the same file system in which everybody may write


def open_to_write(path, _open):
    os.close(os.open(path, os.O_RDWR))


def create(path, _open):
    os.close(os.open(path + '.new', os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def remove(path, _open):
    os.unlink(path)


def rename(path, _open):
    os.rename(path, path + '.old')


def truncate(path, _open):
    os.truncate(path, 0)


def map_to_write(path, _open):
    """A mapping of a descriptor for reading, made writable afterwards."""
    fd = os.open(path, os.O_RDONLY)
    LIBC.mmap.restype = ctypes.c_void_p
    address = LIBC.mmap(None, mmap.PAGESIZE, 1, mmap.MAP_SHARED, fd, 0)
    os.close(fd)
    if LIBC.mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, 3) != 0:
        raise OSError(ctypes.get_errno(), 'mprotect')


def change_mode(path, _open):
    os.chmod(path, 0o666)


def hard_link(path, everybodys):
    os.link(path, os.path.join(everybodys, f'link-{os.path.basename(path)}-{os.getpid()}'))


def replace(path, everybodys):
    """By a file of the reader's own."""
    own = os.path.join(everybodys, f'own-{os.getpid()}')
    os.close(os.open(own, os.O_WRONLY | os.O_CREAT))
    os.rename(own, path)


ACTS = (open_to_write, map_to_write, hard_link, change_mode, create, truncate, replace, rename, remove)
NEEDS_WRITING = {map_to_write}  # nor can the agent's user, with a descriptor that is for reading


@attack.needs_users
class Readers(harness.Case):
    def setUp(self):
        super().setUp()
        self.server = harness.FaultServer(self)
        self.server.behave = harness.good(b'a: 1\n', 'ETag: "1"\r\n')
        os.chmod(self.dir, 0o755)
        for name, mode in (('out', 0o750), ('run', 0o750), ('state', 0o700), ('open', 0o1777)):
            os.mkdir(self.path(name))
            os.chown(self.path(name), AGENT, READERS)
            os.chmod(self.path(name), mode)
        self.prefix = attack.as_user(AGENT, READERS)
        harness.for_anybody(self, harness.PULLETD)
        self.agent = harness.Agent(self, f"""agent: {{state_dir: {self.path('state')}, runtime_dir: {self.path('run')}}}
servers: {{main: {{urls: ["{self.server.url}"]}}}}
configs:
  web: {{from: [{{server: main, path: /web.yaml}}], file: {self.path('out/web.yaml')}, mode: "0640", interval: 1h}}
  set: {{from: [{{server: main, path: /web.yaml, as: one.yaml}}], dir: {self.path('out/set')}, mode: "0640", interval: 1h}}
""")
        for name in ('web', 'set'):
            self.agent.refresh(name)

    def attempt(self, act, path, uid):
        """What another user's try ends with: None when it succeeds."""
        return attack.tried(uid, lambda: act(path, self.path('open')), READERS)[1]

    def published(self):
        snapshots = sorted(os.path.join(self.path('run'), name) for name in os.listdir(self.path('run')) if name.startswith('web.'))
        self.assertEqual(len(snapshots), 2, snapshots)  # the image and its page
        return [self.path('out/web.yaml'), self.path('out/set/one.yaml'), self.path('out/set/..data/one.yaml'), *snapshots]

    def test_none_of_nine_acts_changes_what_others_read(self):
        before = {path: self.bytes_of(path) for path in self.published()}
        done = [(act.__name__, path) for path in before for act in ACTS if self.attempt(act, path, READER) is None]
        self.assertEqual(done, [])
        self.assertEqual({path: self.bytes_of(path) for path in before}, before)
        for path in before:
            self.assertEqual(attack.tried(READER, lambda path=path: len(self.bytes_of(path)), READERS), (str(len(before[path])), None))
        for name in ('state', 'state/web'):
            self.assertIn('PermissionError', attack.tried(READER, lambda name=name: os.listdir(self.path(name)), READERS)[1])
        self.agent.stop()

    def test_each_of_them_is_one(self):
        """As the agent's user, on files of the same rights."""
        self.agent.stop()
        for act in ACTS:
            self.write('out/tried', 'x' * 4096)
            os.chown(self.path('out/tried'), AGENT, READERS)
            os.chmod(self.path('out/tried'), 0o640)
            failed = self.attempt(act, self.path('out/tried'), AGENT)
            self.assertEqual(failed is None, act not in NEEDS_WRITING, (act.__name__, failed))

    @staticmethod
    def bytes_of(path):
        with open(path, 'rb') as f:
            return f.read()


if __name__ == '__main__':
    harness.main()
