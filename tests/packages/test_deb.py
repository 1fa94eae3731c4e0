"""The Debian packages: what is in them."""
import glob
import os
import re
import shutil
import tempfile
import unittest

import packages
from packages import PACKAGES, ROOT, run

DIR = PACKAGES + '/deb'
NAMES = ('pullet', 'libpullet0', 'libpullet-dev', 'python3-pullet')
# mode and name of what is not documentation; LIB is the library directory of the architecture
CONTENTS = {
    'pullet': '''
        -rw-r--r-- etc/pullet/pullet.yaml
        -rw-r--r-- lib/systemd/system/pullet-changed@.path
        -rw-r--r-- lib/systemd/system/pullet-changed@.service
        -rw-r--r-- lib/systemd/system/pullet-ready.service
        -rw-r--r-- lib/systemd/system/pullet-relay.service
        -rw-r--r-- lib/systemd/system/pullet.service
        -rwxr-xr-x usr/bin/pullet
        -rw-r--r-- usr/lib/sysusers.d/pullet.conf
        -rw-r--r-- usr/lib/tmpfiles.d/pullet.conf
        -rwxr-xr-x usr/sbin/pulletd
        -rw-r--r-- usr/share/bash-completion/completions/pullet
        lrwxrwxrwx usr/share/bash-completion/completions/pulletd
        -rw-r--r-- usr/share/fish/vendor_completions.d/pullet.fish
        lrwxrwxrwx usr/share/fish/vendor_completions.d/pulletd.fish
        -rw-r--r-- usr/share/lintian/overrides/pullet
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
        -rw-r--r-- LIB/cmake/pullet/pulletConfig.cmake
        -rw-r--r-- LIB/cmake/pullet/pulletConfigVersion.cmake
        -rw-r--r-- LIB/libpullet.a
        lrwxrwxrwx LIB/libpullet.so
        -rw-r--r-- LIB/pkgconfig/libpullet.pc
        -rw-r--r-- usr/share/man/man3/libpullet.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_close.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_each.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_fd.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_get.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_open.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_refresh.3.gz
        lrwxrwxrwx usr/share/man/man3/pullet_wait.3.gz
    ''',
    'python3-pullet': '''
        -rw-r--r-- usr/lib/python3/dist-packages/pullet/__init__.py
        -rw-r--r-- usr/lib/python3/dist-packages/pullet/_ctypes.py
        -rw-r--r-- usr/lib/python3/dist-packages/pullet/_decode.py
        -rw-r--r-- usr/lib/python3/dist-packages/pullet/_native.abi3.so
        -rw-r--r-- usr/lib/python3/dist-packages/pullet/py.typed
        -rw-r--r-- usr/lib/python3/dist-packages/pullet/testing.py
    ''',
}
NATIVE = '/usr/lib/python3/dist-packages/pullet/_native.abi3.so'
DOCUMENTS = {  # that a reader is told of
    'pullet': ('README.md.gz', 'NEWS.md.gz', 'examples/pullet.minimal.yaml', 'lib/GUIDE.md.gz', 'packaging/README.md', 'packaging/container/README.md',
               'examples/kubernetes/sidecar.yaml', 'copyright'),
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

    def test__each_package_has_its_files_and_no_others(self):
        for name in NAMES:
            listed = [re.match(r'(\S+) \S+ +\d+ \S+ \S+ \./(\S+)', line) for line in run('dpkg-deb', '--contents', deb(name)).splitlines()]
            files = {f'{m[1]} {m[2]}' for m in listed if m and not m[1].startswith('d') and not m[2].startswith('usr/share/doc/')}
            wanted = {' '.join(line.split()) for line in CONTENTS[name].replace('LIB', self.lib).splitlines() if line.strip()}
            self.assertEqual(files, wanted, name)
        for name, documents in DOCUMENTS.items():
            for document in documents:
                self.assertTrue(os.path.exists(f'{self.dir}/{name}/usr/share/doc/{name}/{document}'), f'{name}: {document}')
        self.assertEqual(packages.broken_links(self.dir + '/pullet/usr/share/doc/pullet'), [])
        self.assertEqual(packages.broken_links(self.dir + '/libpullet-dev/usr/share/doc/libpullet-dev'), [])

    def test__what_they_say_of_themselves(self):
        conffiles = run('dpkg-deb', '--info', deb('pullet'), 'conffiles').split()
        self.assertEqual(conffiles, ['/etc/pullet/pullet.yaml'])
        self.assertEqual([field(deb(n), 'Multi-Arch') for n in NAMES], ['no', 'same', 'same', 'no'])
        with open(ROOT + '/lib/libpullet.map', encoding='utf-8') as f:
            exported = set(re.findall(r'^\t(pullet_\w+);', f.read(), re.M))
        symbols = run('dpkg-deb', '--info', deb('libpullet0'), 'symbols')
        self.assertEqual(set(re.findall(r'^ (pullet_\w+)@PULLET_0 ', symbols, re.M)), exported)
        code = run('dpkg-deb', '--info', deb('pullet'), 'postinst')
        for what in ('systemd-sysusers', 'systemd-tmpfiles', "enable 'pullet.service'", "deb-systemd-invoke $_dh_action 'pullet.service'"):
            self.assertIn(what, code)

    def test__programs_are_hardened_and_tell_no_path_of_the_builder(self):
        for path in ('pullet/usr/sbin/pulletd', 'pullet/usr/bin/pullet', f'libpullet0/{self.lib}/libpullet.so.0', 'python3-pullet' + NATIVE):
            fortified = [] if 'python' not in path else ['FORTIFY']  # it calls nothing that has such a variant
            self.assertEqual(packages.not_hardened(f'{self.dir}/{path}'), fortified, path)
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
        self.assertEqual(linked[NATIVE], {'libc6', 'libpullet0'})


if __name__ == '__main__':
    packages.main()
