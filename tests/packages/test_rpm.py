"""The RPM packages, as Debian's rpm builds and installs them: what is in them, scriptlets."""
import glob
import os
import re
import shutil
import tempfile
import unittest

import packages
from packages import PACKAGES, Root, run, timed

DIR = PACKAGES + '/rpm'
# what is not documentation: flags of the file (c: configuration), mode, owner, name
CONTENTS = {
    'pullet': '''
        - 40750 root:pullet-config /etc/pullet
        - 40755 root:root /etc/pullet/changed.d
        - 40755 root:root /etc/pullet/conf.d
        cn 100640 root:pullet-config /etc/pullet/pullet.yaml
        - 100755 root:root /usr/bin/pullet
        - 100644 root:root /usr/lib/systemd/system/pullet-changed@.path
        - 100644 root:root /usr/lib/systemd/system/pullet-changed@.service
        - 100644 root:root /usr/lib/systemd/system/pullet-ready.service
        - 100644 root:root /usr/lib/systemd/system/pullet-relay.service
        - 100644 root:root /usr/lib/systemd/system/pullet.service
        - 100644 root:root /usr/lib/sysusers.d/pullet.conf
        - 100644 root:root /usr/lib/tmpfiles.d/pullet.conf
        - 100755 root:root /usr/sbin/pulletd
        - 100644 root:root /usr/share/bash-completion/completions/pullet
        - 120777 root:root /usr/share/bash-completion/completions/pulletd
        - 100644 root:root /usr/share/fish/vendor_completions.d/pullet.fish
        - 120777 root:root /usr/share/fish/vendor_completions.d/pulletd.fish
        - 100644 root:root /usr/share/zsh/site-functions/_pullet
    ''',
    'libpullet0': '- 100755 root:root /usr/lib64/libpullet.so.0',
    'libpullet-devel': '''
        - 100644 root:root /usr/include/pullet.h
        - 100644 root:root /usr/include/pullet.hpp
        - 40755 root:root /usr/lib64/cmake/pullet
        - 100644 root:root /usr/lib64/cmake/pullet/pulletConfig.cmake
        - 100644 root:root /usr/lib64/cmake/pullet/pulletConfigVersion.cmake
        - 100644 root:root /usr/lib64/libpullet.a
        - 120777 root:root /usr/lib64/libpullet.so
        - 100644 root:root /usr/lib64/pkgconfig/libpullet.pc
    ''',
    'python3-pullet': '''
        - 40755 root:root /usr/lib/python3/dist-packages/pullet
        - 100644 root:root /usr/lib/python3/dist-packages/pullet/__init__.py
        - 100644 root:root /usr/lib/python3/dist-packages/pullet/_ctypes.py
        - 100644 root:root /usr/lib/python3/dist-packages/pullet/_decode.py
        - 100755 root:root /usr/lib/python3/dist-packages/pullet/_native.abi3.so
        - 100644 root:root /usr/lib/python3/dist-packages/pullet/py.typed
        - 100644 root:root /usr/lib/python3/dist-packages/pullet/testing.py
    ''',
}
PAGES = {
    'pullet': 'man1/pullet.1.gz man5/pullet.yaml.5.gz man7/pullet.7.gz man8/pulletd.8.gz',
    'libpullet0': '',
    'libpullet-devel': ' '.join(f'man3/{page}.3.gz' for page in 'libpullet pullet_close pullet_each pullet_fd pullet_get pullet_open pullet_refresh pullet_wait'.split()),
    'python3-pullet': '',
}


MACROS = r'''
%debian 0
%fedora 99
%dist .fc99
%set_build_flags \
  CFLAGS="${CFLAGS:--O2 -flto}" ; export CFLAGS
%_unitdir /usr/lib/systemd/system
%_sysusersdir /usr/lib/sysusers.d
%_tmpfilesdir /usr/lib/tmpfiles.d
%systemd_requires \
Requires(post): systemd \
Requires(preun): systemd \
Requires(postun): systemd \
%{nil}
%systemd_post() \
if [ -x /usr/lib/systemd/systemd-update-helper ]; then \
    /usr/lib/systemd/systemd-update-helper install-system-units %{?*} || : \
fi \
%{nil}
%systemd_preun() \
if [ $1 -eq 0 ] && [ -x /usr/lib/systemd/systemd-update-helper ]; then \
    /usr/lib/systemd/systemd-update-helper remove-system-units %{?*} || : \
fi \
%{nil}
%systemd_postun_with_restart() \
if [ $1 -ge 1 ] && [ -x /usr/lib/systemd/systemd-update-helper ]; then \
    /usr/lib/systemd/systemd-update-helper mark-restart-system-units %{?*} || : \
fi \
%{nil}
%python3_sitearch /usr/lib64/python3.99/site-packages
%pycached() %{lua:
local path = rpm.expand("%1")
print(path .. "\\n" .. path:gsub("/([^/]+)%.py$", "/__pycache__/%1.cpython-399{,.opt-?}.pyc"))
}
'''


def rpm(name):
    (path,) = glob.glob(f'{DIR}/{name}-{packages.version()}-*.rpm')
    return path


class Built(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix='pullet-rpm-')
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        for name in CONTENTS:
            os.mkdir(f'{cls.dir}/{name}')
            run('sh', '-c', 'rpm2archive -n - <"$1" | tar -C "$2" -x', 'sh', rpm(name), f'{cls.dir}/{name}')

    def test__rpmlint_has_nothing_to_say(self):
        with timed('rpmlint'):
            said = run('rpmlint', '--config', packages.ROOT + '/packaging/rpm/rpmlint.toml', packages.ROOT + '/packaging/rpm/pullet.spec',
                       *glob.glob(DIR + '/*.rpm'))
        self.assertIn('4 packages and 1 specfiles checked; 0 errors, 0 warnings', said)

    def test__each_package_has_its_files_and_no_others(self):
        for name, contents in CONTENTS.items():
            listed = run('rpm', '-qp', '--queryformat', '[%{FILEFLAGS:fflags}- %{FILEMODES:octal} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILENAMES}\n]',
                         rpm(name)).splitlines()
            listed = [re.sub('^(.+)- ', r'\1 ', line) for line in listed]
            other = re.compile(r'/usr/share/(doc|licenses|man)/')
            wanted = {' '.join(line.split()) for line in contents.splitlines() if line.strip()}
            self.assertEqual({line for line in listed if not other.search(line)}, wanted, name)
            pages = {line.split('/usr/share/man/')[1] for line in listed if '/usr/share/man/' in line}
            self.assertEqual(pages, set(PAGES[name].split()), name)
            licences = {line.rsplit('/', 1)[1] for line in listed if '/usr/share/licenses/' in line and not line.split(' ')[1].startswith('4')}
            self.assertEqual(licences, {'LICENSE'} if name == 'python3-pullet' else {'LICENSE', 'LICENSE.xxhash'}, name)

    def test__with_the_macros_of_an_rpm_distribution__the_spec_says_what_it_would_say_there(self):
        """rpm's own parser, with stand-ins for what Fedora's systemd-rpm-macros and python3-devel define: same names, arguments and kind of body."""
        own = tempfile.mkdtemp(prefix='pullet-rpm-')
        self.addCleanup(shutil.rmtree, own)
        with open(own + '/macros', 'w', encoding='utf-8') as f:
            f.write(MACROS)
        spec = ['rpmspec', '--load', own + '/macros', packages.ROOT + '/packaging/rpm/pullet.spec']
        parsed = run(*spec, '-P')
        self.assertNotRegex(parsed.split('%changelog')[0], r'%\{|%systemd_|%pycached|%set_build_flags')
        self.assertNotIn('/usr/lib/rpm/brp-compress', parsed)
        self.assertNotIn('strip --', parsed)
        for scriptlet, helper in (('post', 'install-system-units'), ('preun', 'remove-system-units'), ('postun', 'mark-restart-system-units')):
            self.assertRegex(parsed, rf'\n%{scriptlet}\n(?s:[^%])*/systemd-update-helper {helper} pullet\.service')
        for line in ('BuildRequires: systemd-rpm-macros', 'BuildRequires: python3-devel', 'Requires(post): systemd', 'Release: 1.fc99', '  CFLAGS="${CFLAGS:--O2 -flto}"',
                     'License: Apache-2.0 AND BSD-2-Clause', '/usr/lib64/python3.99/site-packages/pullet/__pycache__/__init__.cpython-399{,.opt-?}.pyc', '/usr/lib/systemd/system/pullet*'):
            self.assertIn('\n' + line, parsed)
        requires = run(*spec[:-1], '--query', '--requires', spec[-1])
        self.assertRegex(requires, r'libpullet0\(\S+\) = ' + packages.version())

    def test__it_asks_for_nothing_that_only_Debian_has(self):
        requires = run('rpm', '-qp', '--requires', rpm('pullet'))
        self.assertIn('libcurl.so.4()', requires)
        self.assertNotIn('CURL_OPENSSL', requires)
        libraries = {r.split('(')[0] for r in run('rpm', '-qp', '--requires', rpm('libpullet0')).splitlines() if '.so' in r}
        self.assertEqual(libraries, {'libc.so.6'})

    def test__programs_are_hardened_and_tell_no_path_of_the_builder(self):
        for path in ('pullet/usr/sbin/pulletd', 'pullet/usr/bin/pullet', 'libpullet0/usr/lib64/libpullet.so.0',
                     'python3-pullet/usr/lib/python3/dist-packages/pullet/_native.abi3.so'):
            fortified = [] if 'python' not in path else ['FORTIFY']  # it calls nothing that has such a variant
            self.assertEqual(packages.not_hardened(f'{self.dir}/{path}'), fortified, path)
            with open(f'{self.dir}/{path}', 'rb') as f:
                self.assertNotRegex(f.read(), rb'/pullet-[0-9.]+/|/tmp\.|BUILDROOT')

    def test__the_sbom_names_each_file_and_library(self):
        linked = sbom(self, self.dir)
        self.assertLessEqual({'libcurl4', 'libzmq5', 'libyaml-0-2', 'libc6'}, linked['/usr/sbin/pulletd'])


def sbom(case, extracted):
    return packages.check_sbom(case, f'{DIR}/pullet-{packages.version()}.spdx.json',
                               {name: packages.files_below(f'{extracted}/{name}') for name in CONTENTS})


class Life(unittest.TestCase):
    """In a root of its own, which is Debian's: so dependencies are not looked at, scriptlets run."""

    @classmethod
    def setUpClass(cls):
        cls.root = Root('libcurl4', 'libevent-core-2.1-7', 'libevent-extra-2.1-7', 'libjansson4', 'libpcre2-8-0', 'libyaml-0-2', 'libzmq5')
        cls.addClassCleanup(cls.root.close)

    def rpm(self, *options, **kw):
        return run('rpm', '--root', self.root.path, *options, **kw)

    def install(self, how):
        self.rpm(how, '--force-debian', '--nodeps', *(rpm(name) for name in CONTENTS))

    def test__installed_verified_updated_erased(self):
        with timed('rpm, their life'):
            self.install('--install')
            user = self.root.run('getent', 'passwd', 'pullet').strip().split(':')
            self.assertEqual(user[5:], ['/var/lib/pullet', '/sbin/nologin'])
            self.assertEqual(self.root.modes('/etc/pullet', '/etc/pullet/pullet.yaml'),
                             {'/etc/pullet': '750:root:pullet-config', '/etc/pullet/pullet.yaml': '640:root:pullet-config'})
            self.assertEqual(self.root.run('id', '-nG', 'pullet').split(), ['pullet', 'pullet-config'])
            self.assertEqual(self.rpm('--verify', '--nodeps', *CONTENTS), '')
            self.assertIn(packages.version(), self.root.run('pulletd', '--version'))
            self.assertIn('nothing is configured in /etc/pullet', self.root.run('pulletd', '--test', status=78))

            edited = '# mine\n' + self.root.read('/etc/pullet/pullet.yaml')
            self.root.write('/etc/pullet/pullet.yaml', edited)
            os.makedirs(self.root.path + '/var/lib/pullet/web')
            self.root.write('/var/lib/pullet/web/state', 'the last known good')
            self.assertRegex(self.rpm('--verify', '--nodeps', 'pullet', status=1), r'^S\.5\S+ +c /etc/pullet/pullet\.yaml$')
            # as an older version had it: the file is the operator's and stays, the directory is the package's
            self.root.run('sh', '-c', 'chgrp pullet /etc/pullet/pullet.yaml && chmod 755 /etc/pullet && chgrp root /etc/pullet && gpasswd -d pullet pullet-config')
            self.install('--reinstall')
            self.assertEqual(self.root.read('/etc/pullet/pullet.yaml'), edited)
            self.assertEqual(self.root.modes('/etc/pullet', '/etc/pullet/pullet.yaml'),
                             {'/etc/pullet': '750:root:pullet-config', '/etc/pullet/pullet.yaml': '640:root:pullet'})
            self.assertEqual(self.root.run('id', '-nG', 'pullet').split(), ['pullet', 'pullet-config'])

            self.rpm('--erase', *CONTENTS)
            self.assertEqual(self.root.read('/etc/pullet/pullet.yaml.rpmsave'), edited)
            self.assertEqual(self.root.read('/var/lib/pullet/web/state'), 'the last known good')
            for gone in ('/usr/sbin/pulletd', '/usr/lib64/libpullet.so.0', '/usr/include/pullet.h', '/etc/pullet/conf.d'):
                self.assertFalse(os.path.lexists(self.root.path + gone), gone)


if __name__ == '__main__':
    packages.main()
