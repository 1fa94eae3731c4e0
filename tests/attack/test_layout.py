#!/usr/bin/env python3
"""What the packages' sysusers and tmpfiles make of a host: readers of the group `pullet` get neither at the configuration nor at the flags that
start root's programs, on a new host and on one that has the directories of an older version; the agent's user does."""
import os
import re
import shlex
import stat

import attack
import harness

SYSTEMD = os.path.join(harness.ROOT, 'packaging', 'systemd')
READER = 64102
FILES = {'pullet.yaml': 0o640, 'conf.d/web.yaml': 0o644, 'token': 0o640, 'changed.d/web': 0o755}  # as operators of an older version have them


def lines(name):
    with open(os.path.join(SYSTEMD, name), encoding='utf-8') as f:
        return [shlex.split(line) for line in f if line.strip() and not line.startswith('#')]


@attack.needs_users
class Layout(harness.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        for directory in ('root', 'root/etc', 'root/etc/pullet', 'root/etc/pullet/conf.d', 'root/etc/pullet/changed.d', 'root/run'):
            os.makedirs(self.path(directory), exist_ok=True)
            os.chmod(self.path(directory), 0o755)
        self.write('root/etc/passwd', 'root:x:0:0:root:/root:/bin/sh\n')
        self.write('root/etc/group', 'root:x:0:\n')
        for name in FILES:
            self.write('root/etc/pullet/' + name, 'secret')

    def apply(self):
        """What systemd-sysusers and systemd-tmpfiles make of the packages' lines, at the installation and at each upgrade. They themselves: tests/packages."""
        for kind, name, *more in lines('pullet.sysusers'):
            groups = self.groups()
            if kind in 'gu' and name not in groups:
                groups[name] = [name, 'x', str(64320 + len(groups)), '']
            if kind == 'u' and not re.search(f'^{name}:', self.read('root/etc/passwd').decode(), re.M):
                self.write('root/etc/passwd', self.read('root/etc/passwd') + f'{name}:x:{groups[name][2]}:{groups[name][2]}::/:/sbin/nologin\n'.encode())
            if kind == 'm' and name not in groups[more[0]][3].split(','):
                groups[more[0]][3] = ','.join(filter(None, [groups[more[0]][3], name]))
            self.assertIn(kind, 'gum')
            self.write('root/etc/group', ''.join(':'.join(g) + '\n' for g in groups.values()))
        for kind, path, mode, user, group, _ in lines('pullet.tmpfiles'):
            self.assertIn(kind, 'zd')
            if kind == 'd':
                os.makedirs(self.path('root' + path), exist_ok=True)
            if os.path.exists(self.path('root' + path)):
                os.chown(self.path('root' + path), {'root': 0, 'pullet': self.agent()[0]}[user], int(self.groups()[group][2]))
                os.chmod(self.path('root' + path), int(mode, 8))

    def groups(self):
        return {line.split(':')[0]: line.strip().split(':') for line in self.read('root/etc/group').decode().splitlines()}

    def agent(self):
        """(uid, gid, groups) that a login of the user gets, and the unit."""
        user = next(line.split(':') for line in self.read('root/etc/passwd').decode().splitlines() if line.startswith('pullet:'))
        return int(user[2]), int(user[3]), [int(g[2]) for g in self.groups().values() if 'pullet' in g[3].split(',')]

    def opens(self, path, who, flags=os.O_RDONLY):
        text, error = attack.tried(who[0], lambda: os.close(os.open(self.path('root' + path), flags | os.O_CLOEXEC, 0o644)), who[1], who[2])
        self.assertTrue(error is None or 'PermissionError' in error, error)
        return text is not None

    def check(self):
        agent, group = self.agent(), int(self.groups()['pullet'][2])
        for reader in ((READER, READER, [group]), (READER, group, []), (READER, READER, [])):
            for name in FILES:
                self.assertFalse(self.opens('/etc/pullet/' + name, reader), (name, reader))
            self.assertFalse(self.opens('/run/pullet-changed/web', reader, os.O_WRONLY | os.O_CREAT), reader)
        for name in FILES:
            self.assertTrue(self.opens('/etc/pullet/' + name, agent), (name, agent))
            self.assertFalse(self.opens('/etc/pullet/' + name, agent, os.O_WRONLY), (name, agent))
        self.assertTrue(self.opens('/run/pullet-changed/web', agent, os.O_WRONLY | os.O_CREAT))
        self.assertFalse(self.opens('/etc/pullet/conf.d/mine.yaml', agent, os.O_WRONLY | os.O_CREAT))

    def test_a_new_host(self):
        for name, mode in FILES.items():  # as dpkg unpacks them
            os.chmod(self.path('root/etc/pullet/' + name), mode | 0o044)
        self.apply()
        self.check()
        self.assertEqual(self.groups()['pullet-config'][3], 'pullet')
        self.assertEqual(self.groups()['pullet'][3], '')

    def test_a_host_with_the_directories_of_an_older_version(self):
        """There the group had the files and the flags. What operators chose for single files stays as it is."""
        self.write('root/etc/group', 'root:x:0:\npullet:x:64300:\n')
        self.write('root/etc/passwd', 'root:x:0:0:root:/root:/bin/sh\npullet:x:64300:64300::/var/lib/pullet:/sbin/nologin\n')
        for name, mode in FILES.items():
            os.chown(self.path('root/etc/pullet/' + name), 0, 64300)
            os.chmod(self.path('root/etc/pullet/' + name), mode)
        os.chown(self.path('root/etc/pullet/conf.d'), 0, 64300)
        os.chmod(self.path('root/etc/pullet/conf.d'), 0o750)
        os.chmod(self.path('root/etc/pullet'), 0o755)
        os.mkdir(self.path('root/run/pullet-changed'))
        os.chown(self.path('root/run/pullet-changed'), 0, 64300)
        os.chmod(self.path('root/run/pullet-changed'), 0o770)
        reader = (READER, READER, [64300])
        self.assertTrue(self.opens('/etc/pullet/token', reader))  # what is to be mended
        self.assertTrue(self.opens('/run/pullet-changed/hole', reader, os.O_WRONLY | os.O_CREAT))
        for _ in range(2):
            self.apply()
            self.check()
            for name, mode in FILES.items():
                st = os.stat(self.path('root/etc/pullet/' + name))
                self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid), (mode, 0, 64300), name)


if __name__ == '__main__':
    harness.main()
