"""What the tests of packages share: where they are, fresh roots to install them into, and what holds for those of both kinds."""
import contextlib
import functools
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
import test_tls  # noqa: E402
from harness import BUILD, PULLET, Nginx, main  # noqa: E402,F401

PACKAGES = os.path.join(BUILD, 'packages')
# what an older version's sysusers and tmpfiles made
LAYOUT_BEFORE = 'chown root:root /etc/pullet && chmod 755 /etc/pullet && chgrp pullet /etc/pullet/pullet.yaml && chmod 640 /etc/pullet/pullet.yaml && ' \
                'chown root:pullet /run/pullet-changed && chmod 770 /run/pullet-changed && gpasswd -d pullet pullet-config && groupdel pullet-config'


def run(*command, status=0, **kw):
    """What a command prints, both streams; AssertionError if it ends with another status."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, check=False,
                          errors='replace', **kw)
    if done.returncode != status:
        raise AssertionError(f'{" ".join(command)}: status {done.returncode}\n{done.stdout}')
    return done.stdout


def took(seconds, step):
    """Prints how long a step took, and adds it to packages/times, which `make check-packages` prints."""
    line = f'{seconds:7.2f} s  {step}'
    print(line, flush=True)
    with open(PACKAGES + '/times', 'a', encoding='utf-8') as f:
        f.write(line + '\n')


@contextlib.contextmanager
def timed(step, limit=None):
    """A step; AssertionError when it took longer than the limit, in seconds."""
    begin = time.monotonic()
    yield
    seconds = time.monotonic() - begin
    took(seconds, step)
    assert limit is None or seconds < limit, f'{step}: {seconds:.2f} s'


@functools.lru_cache(None)
def version():
    with open(ROOT + '/Makefile', encoding='utf-8') as f:
        return re.search(r'^VERSION\s*:= (\S+)$', f.read(), re.M)[1]


class Root:
    """A fresh Debian, with packages and .deb files installed; removed by close()."""

    def __init__(self, *packages):
        self.dir = tempfile.mkdtemp(prefix='pullet-root-')
        self.path = self.dir + '/root'
        try:
            run(ROOT + '/tests/packages/root.sh', self.path, *packages, env=dict(os.environ, PULLET_BUILD=BUILD))
        except BaseException:
            self.close()
            raise

    def run(self, *command, **kw):
        """Runs a command in it, with a /proc of its own; what it started ends with it."""
        return run('unshare', '--mount', '--pid', '--fork', '--kill-child', '--root=' + self.path, '--mount-proc', *command, **kw)

    def copy(self, path, to='/root/'):
        shutil.copy(path, self.path + to)
        return to + os.path.basename(path)

    def write(self, name, text):
        with open(self.path + name, 'w', encoding='utf-8') as f:
            f.write(text)

    def read(self, name):
        with open(self.path + name, encoding='utf-8') as f:
            return f.read()

    def release(self):
        return re.search('^VERSION_CODENAME=(.*)$', self.read('/etc/os-release'), re.M)[1]

    def modes(self, *names):
        return {line.split(' ', 1)[1]: line.split(' ', 1)[0]
                for line in self.run('stat', '-c', '%a:%U:%G %n', *names).splitlines()}

    def close(self):
        shutil.rmtree(self.dir)


def secure_servers(case):
    """For a harness.Case: nginx behind TLS, which wants the token s3cret, and `serve`, whose messages are encrypted. Both have what lies in www."""
    authorities = test_tls.Authorities()
    case.addCleanup(shutil.rmtree, authorities.dir)
    authorities.sign('server', end=test_tls.FAR_FUTURE)  # else it ends in two days, which the doctor would tell
    nginx = Nginx(case, server='if ($http_authorization != "Bearer s3cret") { return 403; }',
                  ssl=(authorities.path('server.pem'), authorities.path('server.key')))
    public = subprocess.check_output([PULLET, 'keygen', case.path('push.key')], stderr=subprocess.DEVNULL, text=True).strip()
    serve, url, endpoint = case.serve('--curve-secret-key', case.path('push.key'), '--heartbeat', '1s')
    return types.SimpleNamespace(nginx=nginx, ca=authorities.path('ca.pem'), serve=serve, url=url, endpoint=endpoint, public=public)


def files_below(directory):
    """{name from the root: path} of each file, links left out."""
    return {'/' + os.path.relpath(os.path.join(at, name), directory): os.path.join(at, name)
            for at, _, names in os.walk(directory) for name in names if not os.path.islink(os.path.join(at, name))}


def broken_links(directory):
    """The links of the documents there, compressed ones too, that lead nowhere: (document, target)."""
    broken = []
    for path in files_below(directory).values():
        if path.endswith(('.md', '.md.gz')):
            with (gzip.open if path.endswith('.gz') else open)(path, 'rt', encoding='utf-8') as f:
                targets = re.findall(r'\]\(([^)#:\s]+)\)', f.read())
            for target in targets:
                to = os.path.join(os.path.dirname(path), target)
                if not os.path.exists(to) and not os.path.exists(to + '.gz'):
                    broken.append((os.path.relpath(path, directory), target))
    return broken


def digests(directory):
    found = {}
    for name, path in files_below(directory).items():
        with open(path, 'rb') as f:
            found[name] = hashlib.sha256(f.read()).hexdigest()
    return found


def check_rebuilt(case, kind, source, directory, changing):
    """What `make KIND` makes of the source in another path, time zone and umask is what lies in the directory, but for names that `changing` finds."""
    with tempfile.TemporaryDirectory() as own:
        tree = own + '/a/longer/path'
        os.makedirs(tree)
        run('tar', '-C', tree, '--strip-components=1', '-xf', source)
        with timed(kind + ', built again'):
            run('sh', '-c', 'umask 077 && cd "$1" && make "$3" BUILD="$2"', 'sh', tree, own + '/again', kind,
                env=dict(os.environ, TZ='UTC-14', LC_ALL='C', TMPDIR=own, DEB_BUILD_OPTIONS='nocheck'))  # the first build ran those tests
        ours, theirs = digests(directory), digests(f'{own}/again/packages/{kind}')
    case.assertEqual(set(ours), set(theirs))
    for name in ours:
        if not re.search(changing, name):
            case.assertEqual(ours[name], theirs[name], name)


def not_hardened(path):
    """What a program or shared library lacks of position independence, full RELRO, NX, canaries, FORTIFY and CET: a list of words."""
    def readelf(*options):
        return run('readelf', '--wide', *options, path)
    header, program, dynamic = readelf('--file-header'), readelf('--program-headers'), readelf('--dynamic')
    symbols = readelf('--dyn-syms')
    with open(path, 'rb') as f:
        landing_pads = f.read().count(b'\xf3\x0f\x1e\xfa')  # endbr64; the mark for the loader needs start files that have it too
    stack = re.search(r'GNU_STACK.*', program)
    wanted = {
        'PIE': re.search(r'Type:\s+DYN', header),
        'RELRO': 'GNU_RELRO' in program,
        'BIND_NOW': re.search(r'BIND_NOW|FLAGS.*\bNOW\b', dynamic),
        'NX': stack and 'RWE' not in stack[0],
        'canary': '__stack_chk_fail' in symbols,
        'FORTIFY': re.search(r'__\w+_chk@', symbols),
        'CET': 'X86-64' not in header or landing_pads > 20,
    }
    return [what for what, there in wanted.items() if not there]


def check_sbom(case, path, files):
    """An SPDX 2.3 document whose identifiers, relations and sums hold, and which names each of `files` ({package: {name: its
    path}}). Returns the names of the libraries that each file is linked with."""
    with open(path, encoding='utf-8') as f:
        sbom = json.load(f)
    case.assertEqual((sbom['spdxVersion'], sbom['dataLicense'], sbom['SPDXID']), ('SPDX-2.3', 'CC0-1.0', 'SPDXRef-DOCUMENT'))
    case.assertRegex(sbom['creationInfo']['created'], r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$')
    case.assertTrue(sbom['creationInfo']['creators'])
    case.assertRegex(sbom['documentNamespace'], r'^https://\S+$')
    things = sbom['packages'] + sbom['files']
    names = [t['SPDXID'] for t in things]
    case.assertEqual(len(names), len(set(names)))
    for name in names:
        case.assertRegex(name, r'^SPDXRef-[A-Za-z0-9.-]+$')
    for package in sbom['packages']:
        case.assertTrue(package['name'] and package['versionInfo'] and package['downloadLocation'], package)
    related = set()
    for r in sbom['relationships']:
        case.assertIn(r['spdxElementId'], names + ['SPDXRef-DOCUMENT'])
        case.assertIn(r['relatedSpdxElement'], names)
        related.add((r['spdxElementId'], r['relationshipType'], r['relatedSpdxElement']))
    by_id = {t['SPDXID']: t for t in things}
    for package, inside in files.items():
        (this,) = [p for p in sbom['packages'] if p['name'] == package]
        case.assertIn(('SPDXRef-DOCUMENT', 'DESCRIBES', this['SPDXID']), related)
        contained = {by_id[to]['fileName'][1:]: by_id[to] for at, how, to in related if (at, how) == (this['SPDXID'], 'CONTAINS')}
        case.assertEqual(set(contained), set(inside))
        sha1s = []
        for name, real in inside.items():
            with open(real, 'rb') as f:
                data = f.read()
            sums = {c['algorithm']: c['checksumValue'] for c in contained[name]['checksums']}
            case.assertEqual(sums, {'SHA1': hashlib.sha1(data).hexdigest(), 'SHA256': hashlib.sha256(data).hexdigest()}, name)
            sha1s.append(sums['SHA1'])
        case.assertEqual(this['packageVerificationCode']['packageVerificationCodeValue'],
                         hashlib.sha1(''.join(sorted(sha1s)).encode()).hexdigest())
    return {f['fileName'][1:]: {by_id[to]['name'] for at, how, to in related if at == f['SPDXID'] and how.endswith('_LINK')}
            for f in sbom['files']}
