"""The Debian packages: what is in them, that they are the same whoever builds them, and their life on a machine."""
import glob
import os
import re
import shlex
import shutil
import tempfile
import unittest

import packages
from packages import PACKAGES, ROOT, Root, run, timed

DIR = PACKAGES + '/deb'
NAMES = ('pullet', 'libpullet0', 'libpullet-dev', 'python3-pullet')
WITHOUT_SYSTEMD = ('systemd-standalone-sysusers', 'systemd-standalone-tmpfiles')
CONFIG = '''servers: {local: {kind: file}}
configs:
  web: {from: [{server: local, path: /srv/web.yaml}], file: /run/pullet/web.yaml}
'''
# mode and name of what is not documentation; LIB is the library directory of the architecture
CONTENTS = {
    'pullet': '''
        -rw-r--r-- etc/pullet/pullet.yaml
        -rw-r--r-- lib/systemd/system/pullet-changed@.path
        -rw-r--r-- lib/systemd/system/pullet-changed@.service
        -rw-r--r-- lib/systemd/system/pullet.service
        -rwxr-xr-x usr/bin/pullet
        -rw-r--r-- usr/lib/sysusers.d/pullet.conf
        -rw-r--r-- usr/lib/tmpfiles.d/pullet.conf
        -rwxr-xr-x usr/sbin/pulletd
        -rw-r--r-- usr/share/bash-completion/completions/pullet
        lrwxrwxrwx usr/share/bash-completion/completions/pulletd
        -rw-r--r-- usr/share/fish/vendor_completions.d/pullet.fish
        lrwxrwxrwx usr/share/fish/vendor_completions.d/pulletd.fish
        -rw-r--r-- usr/share/man/man1/pullet.1.gz
        -rw-r--r-- usr/share/man/man5/pullet.yaml.5.gz
        -rw-r--r-- usr/share/man/man7/pullet.7.gz
        -rw-r--r-- usr/share/man/man8/pulletd.8.gz
        -rw-r--r-- usr/share/zsh/vendor-completions/_pullet
    ''',
    'libpullet0': '-rw-r--r-- LIB/libpullet.so.0',
    'libpullet-dev': '''
        -rw-r--r-- usr/include/pullet.h
        -rw-r--r-- usr/include/pullet.hpp
        -rw-r--r-- LIB/libpullet.a
        lrwxrwxrwx LIB/libpullet.so
        -rw-r--r-- LIB/pkgconfig/libpullet.pc
        -rw-r--r-- usr/share/man/man3/libpullet.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_close.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_each.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_get.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_open.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_refresh.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_wait.3.gz
    ''',
    'python3-pullet': '-rw-r--r-- usr/lib/python3/dist-packages/pullet.py',
}
DOCUMENTS = {  # that a reader is told of
    'pullet': ('README.md.gz', 'NEWS.md.gz', 'examples/pullet.minimal.yaml', 'copyright'),
    'libpullet-dev': ('GUIDE.md.gz', 'FORMAT.md.gz', 'copyright'),
}


def deb(name):
    (path,) = glob.glob(f'{DIR}/{name}_{packages.version()}-*.deb')
    return path


def field(path, name):
    return run('dpkg-deb', '--field', path, name).strip()


class Built(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix='pullet-deb-')
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        for name in NAMES:
            run('dpkg-deb', '--extract', deb(name), f'{cls.dir}/{name}')
        cls.lib = 'usr/lib/' + run('dpkg-architecture', '-qDEB_HOST_MULTIARCH').strip()

    def test__built_again_from_their_source_elsewhere__are_the_same_bytes(self):
        tree = self.dir + '/a/longer/path'
        os.makedirs(tree)
        run('tar', '-C', tree, '--strip-components=1', '-xf', f'{DIR}/pullet_{packages.version()}.orig.tar.gz')
        with timed('deb, built again'):
            run('sh', '-c', 'umask 077 && cd "$1" && make deb BUILD="$2"', 'sh', tree, self.dir + '/again',
                env=dict(os.environ, TZ='XXX-14', LC_ALL='C', TMPDIR=self.dir))
        ours, theirs = (packages.digests(d) for d in (DIR, self.dir + '/again/packages/deb'))
        self.assertEqual(set(ours), set(theirs))
        for name in ours:
            if not re.search(r'\.(log|changes|buildinfo)$', name):  # these tell how and where it was built
                self.assertEqual(ours[name], theirs[name], name)

    def test__lintian_has_nothing_to_say(self):
        with timed('lintian'):
            run('lintian', '--pedantic', '--display-experimental', '--fail-on', 'error,warning,info,pedantic,experimental',
                *glob.glob(DIR + '/*.changes'))

    def test__each_package_has_its_files_and_no_others(self):
        for name in NAMES:
            listed = [re.match(r'(\S+) \S+ +\d+ \S+ \S+ \./(\S+)', line) for line in run('dpkg-deb', '--contents', deb(name)).splitlines()]
            files = {f'{m[1]} {m[2]}' for m in listed if m and not m[1].startswith('d') and not m[2].startswith('usr/share/doc/')}
            wanted = {' '.join(line.split()) for line in CONTENTS[name].replace('LIB', self.lib).splitlines() if line.strip()}
            self.assertEqual(files, wanted, name)
        for name, documents in DOCUMENTS.items():
            for document in documents:
                self.assertTrue(os.path.exists(f'{self.dir}/{name}/usr/share/doc/{name}/{document}'), f'{name}: {document}')

    def test__what_they_say_of_themselves(self):
        conffiles = run('dpkg-deb', '--info', deb('pullet'), 'conffiles').split()
        self.assertEqual(conffiles, ['/etc/pullet/pullet.yaml'])
        self.assertEqual([field(deb(n), 'Multi-Arch') for n in NAMES], ['no', 'same', 'same', 'no'])
        self.assertEqual(field(deb('python3-pullet'), 'Architecture'), 'all')
        with open(ROOT + '/lib/libpullet.map', encoding='utf-8') as f:
            exported = set(re.findall(r'^\t(pullet_\w+);', f.read(), re.M))
        symbols = run('dpkg-deb', '--info', deb('libpullet0'), 'symbols')
        self.assertEqual(set(re.findall(r'^ (pullet_\w+)@PULLET_0 ', symbols, re.M)), exported)
        code = run('dpkg-deb', '--info', deb('pullet'), 'postinst')
        for what in ('systemd-sysusers', 'systemd-tmpfiles', "enable 'pullet.service'", "deb-systemd-invoke $_dh_action 'pullet.service'"):
            self.assertIn(what, code)

    def test__programs_are_hardened_and_tell_no_path_of_the_builder(self):
        for path in ('pullet/usr/sbin/pulletd', 'pullet/usr/bin/pullet', f'libpullet0/{self.lib}/libpullet.so.0'):
            self.assertEqual(packages.not_hardened(f'{self.dir}/{path}'), [], path)
            with open(f'{self.dir}/{path}', 'rb') as f:
                self.assertNotRegex(f.read(), rb'/pullet-[0-9.]+/|/tmp\.')

    def test__a_program_that_is_not_hardened_is_found(self):
        with open(self.dir + '/soft.c', 'w', encoding='utf-8') as f:
            f.write('int main(void) { return 0; }\n')
        run('gcc', '-no-pie', '-fno-stack-protector', '-fcf-protection=none', '-Wl,-z,norelro,-z,lazy,-z,execstack', '-o',
            self.dir + '/soft', self.dir + '/soft.c')
        self.assertEqual(packages.not_hardened(self.dir + '/soft'), ['PIE', 'RELRO', 'BIND_NOW', 'NX', 'canary', 'FORTIFY', 'CET'])

    def test__the_sbom_names_each_file_and_the_libraries_that_the_package_depends_on(self):
        linked = packages.check_sbom(self, f'{DIR}/pullet_{packages.version()}.spdx.json',
                                     {name: packages.files_below(f'{self.dir}/{name}') for name in NAMES})
        depends = {d.split()[0] for d in field(deb('pullet'), 'Depends').split(', ') if '|' not in d}
        self.assertEqual(linked['/usr/sbin/pulletd'] | linked['/usr/bin/pullet'], depends | {'libxxhash-dev'})
        self.assertEqual(linked[f'/{self.lib}/libpullet.so.0'], {'libc6'})


class Life(unittest.TestCase):
    """In a root of its own, with maintainer scripts, and nothing in it but what the packages depend on; without systemd, as in a
    container. With it: test_systemd.py."""

    @classmethod
    def setUpClass(cls):
        with timed('deb, installed with all they need into a fresh root'):
            cls.root = Root(*WITHOUT_SYSTEMD, *(deb(name) for name in NAMES))
        cls.addClassCleanup(cls.root.close)

    def dpkg(self, *options):
        self.root.run('dpkg', '--force-confold', '--force-unsafe-io', *options, env=dict(os.environ, DEBIAN_FRONTEND='noninteractive'))

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
        self.root.run('setpriv', '--reuid=pullet', '--regid=pullet', '--clear-groups', 'pulletd', '--once')

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
        self.assertEqual(self.root.modes('/etc/pullet/pullet.yaml', '/etc/pullet/conf.d', '/run/pullet-changed'), {
            '/etc/pullet/pullet.yaml': '640:root:pullet', '/etc/pullet/conf.d': '750:root:pullet', '/run/pullet-changed': '770:root:pullet'})
        enabled = self.root.path + '/etc/systemd/system/multi-user.target.wants/pullet.service'
        self.assertEqual(os.readlink(enabled), '/lib/systemd/system/pullet.service')
        self.assertIn('no config is set', self.root.run('pulletd', '--test', status=78))
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
        newer, state, link = self.changed('99-1'), self.state(), os.lstat(self.root.path + '/etc/pullet/pullet.yaml').st_mode
        for package, version in ((newer, '99-1'), (self.root.copy(deb('pullet')), field(deb('pullet'), 'Version'))):
            self.dpkg('--install', package)
            self.assertEqual(self.root.run('dpkg-query', '--show', '--showformat=${Version} ${db:Status-Status}', 'pullet'), version + ' installed')
            self.assertEqual(self.state(), state)
            self.assertEqual(self.root.read('/etc/pullet/pullet.yaml'), edited)
            self.assertEqual(os.lstat(self.root.path + '/etc/pullet/pullet.yaml').st_mode, link)
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

    def test__autopkgtest(self):
        """What debian/tests says, in that root."""
        tree = self.root.dir + '/tree'
        os.mkdir(tree)
        run('tar', '-C', tree, '--strip-components=1', '-xf', f'{DIR}/pullet_{packages.version()}.orig.tar.gz')
        run('tar', '-C', tree, '-xf', *glob.glob(DIR + '/*.debian.tar.xz'))
        with timed('autopkgtest'):
            said = run('unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-c',
                       'mount -t proc proc "$1/proc"; shift; exec "$@"', 'sh', self.root.path,
                       'autopkgtest', '--no-built-binaries', *(deb(name) for name in NAMES), tree + '//', '--', 'chroot', self.root.path)
        self.assertEqual(re.findall(r'^(\w+) +PASS$', said.split(' summary\n')[1], re.M), ['agent', 'readers'], said)


class Piuparts(unittest.TestCase):
    def test__what_is_installed_and_purged_leaves_nothing(self):
        """In a root without systemd, which would leave files of its own."""
        root = Root(*WITHOUT_SYSTEMD)
        self.addCleanup(root.close)
        with timed('piuparts'):
            run('piuparts', '--existing-chroot', root.path, '--keep-sources-list', '--distribution', root.release(),
                *(deb(name) for name in NAMES))


if __name__ == '__main__':
    packages.main()
