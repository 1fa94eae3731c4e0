"""What Debian's tools say of the Debian packages: lintian, autopkgtest, piuparts."""
import glob
import os
import re
import unittest

import packages
from packages import Root, run, timed
from test_deb import DIR, NAMES, deb
from test_deb_life import WITHOUT_SYSTEMD


class Tools(unittest.TestCase):
    def test__lintian_has_nothing_to_say(self):
        with timed('lintian'):
            run('lintian', '--display-info', '--pedantic', '--display-experimental', '--fail-on', 'error,warning,info,pedantic,experimental',
                *glob.glob(DIR + '/*.changes'))

    def test__autopkgtest(self):
        """What debian/tests says, where nothing else is installed."""
        root = Root(*WITHOUT_SYSTEMD, *(deb(name) for name in NAMES))
        self.addCleanup(root.close)
        tree = root.dir + '/tree'
        os.mkdir(tree)
        run('tar', '-C', tree, '--strip-components=1', '-xf', f'{DIR}/pullet_{packages.version()}.orig.tar.gz')
        run('tar', '-C', tree, '-xf', *glob.glob(DIR + '/*.debian.tar.xz'))
        with timed('autopkgtest'):
            said = run('unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-c',
                       'mount -t proc proc "$1/proc"; shift; exec "$@"', 'sh', root.path,
                       'autopkgtest', '--no-built-binaries', *(deb(name) for name in NAMES), tree + '//', '--', 'chroot', root.path)
        self.assertEqual(re.findall(r'^(\w+) +PASS$', said.split(' summary\n')[1], re.M), ['agent', 'completions', 'readers'], said)

    def test__piuparts__what_is_installed_and_purged_leaves_nothing(self):
        """In a root without systemd, which would leave files of its own."""
        root = Root(*WITHOUT_SYSTEMD)
        self.addCleanup(root.close)
        with timed('piuparts'):
            run('piuparts', '--existing-chroot', root.path, '--keep-sources-list', '--distribution', root.release(),
                *(deb(name) for name in NAMES))


if __name__ == '__main__':
    packages.main()
