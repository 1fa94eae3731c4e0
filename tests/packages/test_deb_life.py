"""The life of the Debian packages on a machine: installed, used, upgraded, downgraded, removed, purged."""
import os
import re
import shlex
import unittest

import packages
from packages import LAYOUT_BEFORE, Root, run, timed
from test_deb import NAMES, deb, field

WITHOUT_SYSTEMD = ('systemd-standalone-sysusers', 'systemd-standalone-tmpfiles')
CONFIG = '''servers: {local: {kind: file}}
configs:
  web: {from: [{server: local, path: /srv/web.yaml}], file: /run/pullet/web.yaml}
'''


class Life(unittest.TestCase):
    """In a root of its own, with maintainer scripts, and nothing in it but what the packages depend on; without systemd, as in a
    container. With it: test_systemd.py."""

    @classmethod
    def setUpClass(cls):
        with timed('deb, installed with all they need into a fresh root'):
            cls.root = Root(*WITHOUT_SYSTEMD, *(deb(name) for name in NAMES))
        cls.addClassCleanup(cls.root.close)

    def dpkg(self, *options):
        self.root.run('dpkg', '--force-confold', *options, env=dict(os.environ, DEBIAN_FRONTEND='noninteractive'))

    def changed(self, version):
        """The package as it is in another version, with another configuration file."""
        path = f'{self.root.path}/root/changed'
        run('dpkg-deb', '--raw-extract', deb('pullet'), path)
        run('sed', '-i', f's/^Version: .*/Version: {version}/', path + '/DEBIAN/control')
        with open(path + '/etc/pullet/pullet.yaml', 'a', encoding='utf-8') as f:
            f.write('# newer\n')
        run('dpkg-deb', '--root-owner-group', '--build', path, self.root.path + '/root/changed.deb')
        return '/root/changed.deb'

    def pull(self):
        self.root.run('setpriv', '--reuid=pullet', '--regid=pullet', '--init-groups', 'pulletd', '--once')

    def state(self):
        return packages.digests(self.root.path + '/var/lib/pullet')

    def test__installed_used_upgraded_downgraded_removed_purged(self):
        with timed('deb, their life'):
            self.installed()
            self.used()
            self.upgraded_and_downgraded()
            self.removed_and_purged()

    def installed(self):
        user = self.root.run('getent', 'passwd', 'pullet').strip().split(':')
        self.assertEqual(user[5:], ['/var/lib/pullet', '/usr/sbin/nologin'])
        self.assertLess(int(user[2]), 1000)
        self.assertEqual(self.root.modes('/etc/pullet', '/run/pullet-changed'), {
            '/etc/pullet': '750:root:pullet-config', '/run/pullet-changed': '700:pullet:pullet'})
        self.assertEqual(self.root.run('id', '-nG', 'pullet').split(), ['pullet', 'pullet-config'])
        enabled = self.root.path + '/etc/systemd/system/multi-user.target.wants/pullet.service'
        self.assertEqual(os.readlink(enabled), '/lib/systemd/system/pullet.service')
        self.assertIn('nothing is configured in /etc/pullet', self.root.run('pulletd', '--test', status=78))
        self.assertIn(packages.version(), self.root.run('pulletd', '--version'))

    def used(self):
        condition = shlex.split(re.search('^ExecCondition=[+]?(.*)$', self.root.read('/lib/systemd/system/pullet.service'), re.M)[1])
        self.root.run(*condition, status=1)  # as installed: not started
        self.root.write('/etc/pullet/conf.d/web.yaml', CONFIG.replace('\n', '\n#').replace('servers', '#servers'))
        self.root.run(*condition, status=1)
        self.root.write('/etc/pullet/conf.d/web.yaml', CONFIG)
        self.root.run(*condition)
        self.root.write('/srv/web.yaml', 'db: {host: one}\n')
        self.root.run('install', '-d', '-o', 'pullet', '-g', 'pullet', '/var/lib/pullet', '/run/pullet')  # the unit's, otherwise
        self.pull()
        self.assertEqual(self.root.run('pullet', 'get', 'web', 'db.host'), 'one\n')
        self.assertTrue(self.state())

    def upgraded_and_downgraded(self):
        edited = '# mine\n' + self.root.read('/etc/pullet/pullet.yaml')
        self.root.write('/etc/pullet/pullet.yaml', edited)
        newer, state = self.changed('99-1'), self.state()
        for package, version in ((newer, '99-1'), (self.root.copy(deb('pullet')), field(deb('pullet'), 'Version'))):
            self.root.run('sh', '-c', LAYOUT_BEFORE)
            self.dpkg('--install', package)
            self.assertEqual(self.root.modes('/etc/pullet', '/etc/pullet/pullet.yaml', '/run/pullet-changed'), {
                '/etc/pullet': '750:root:pullet-config', '/etc/pullet/pullet.yaml': '640:root:pullet', '/run/pullet-changed': '700:pullet:pullet'})
            for refused in ('cat /etc/pullet/pullet.yaml', 'touch /run/pullet-changed/web'):  # a reader
                self.assertIn('Permission denied', self.root.run('setpriv', '--reuid=nobody', '--regid=nogroup', '--groups=pullet', *refused.split(), status=1))
            self.assertEqual(self.root.run('dpkg-query', '--show', '--showformat=${Version} ${db:Status-Status}', 'pullet'), version + ' installed')
            self.assertEqual(self.state(), state)
            self.assertEqual(self.root.read('/etc/pullet/pullet.yaml'), edited)
            self.assertTrue(os.path.lexists(self.root.path + '/etc/systemd/system/multi-user.target.wants/pullet.service'))
            self.pull()
            self.assertEqual(self.root.run('pullet', 'get', 'web', 'db.host'), 'one\n')

    def removed_and_purged(self):
        state = self.state()
        self.dpkg('--remove', *NAMES)
        self.assertEqual(self.state(), state)
        self.assertIn('# mine', self.root.read('/etc/pullet/pullet.yaml'))
        self.dpkg('--purge', *NAMES)
        for gone in ('/var/lib/pullet', '/run/pullet', '/run/pullet-changed', '/etc/pullet/pullet.yaml', '/usr/sbin/pulletd',
                     '/etc/systemd/system/multi-user.target.wants/pullet.service'):
            self.assertFalse(os.path.lexists(self.root.path + gone), gone)
        self.assertEqual(self.root.read('/etc/pullet/conf.d/web.yaml'), CONFIG)  # the operator's own


if __name__ == '__main__':
    packages.main()
