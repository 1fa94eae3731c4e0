"""The packages are the same bytes whoever builds them, elsewhere and at another time."""
import unittest

import packages
import test_deb
import test_rpm


class Rebuilt(unittest.TestCase):
    def test__deb(self):
        # the logs and lists tell how and where it was built
        packages.check_rebuilt(self, 'deb', f'{test_deb.DIR}/pullet_{packages.version()}.orig.tar.gz', test_deb.DIR, r'\.(log|changes|buildinfo)$')

    def test__rpm(self):
        packages.check_rebuilt(self, 'rpm', f'{test_rpm.DIR}/pullet-{packages.version()}.tar.gz', test_rpm.DIR, r'\.log$')


if __name__ == '__main__':
    packages.main()
