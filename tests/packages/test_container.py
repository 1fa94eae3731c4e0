"""The image of packaging/container and the examples of packaging/kubernetes, run as a kubelet runs them, without one.

The image is built with buildah from the Containerfile, on a base where the Debian packages are installed already, so that nothing is compiled. A
container is then a PID and a mount namespace with the image as its root, read-only, and volumes as Kubernetes makes them.
"""
import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'integration'))
import harness  # noqa: E402
from harness import FaultServer, Program, good  # noqa: E402

PACKAGES = os.path.join(harness.BUILD, 'packages')
GROUP = 65532  # fsGroup of the examples
PROBES = 'startupProbe', 'readinessProbe', 'livenessProbe'
UNKNOWN = 12345  # a user that nobody has heard of, as OpenShift gives out


def sh(*args, **kw):
    done = subprocess.run(args, capture_output=True, text=True, check=False, **kw)
    assert done.returncode == 0, f'{args}: {done.stdout}{done.stderr}'
    return done.stdout.strip()


class Image:
    """Built once; `root` is what is in it, `facts` its configuration."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix='pullet-image-')
        sh('mount', '--bind', self.dir, self.dir)
        sh('mount', '--make-private', self.dir)
        self.root = None
        try:
            self.build()
        except BaseException:
            self.remove()
            raise

    def buildah(self, *args):
        return sh('buildah', '--root', self.dir + '/storage', '--runroot', self.dir + '/run', '--storage-driver', 'vfs', *args,
                  env=dict(os.environ, BUILDAH_ISOLATION='chroot'), cwd=ROOT)

    def build(self):
        debs = [d for d in glob.glob(PACKAGES + '/deb/pullet_*.deb') + glob.glob(PACKAGES + '/deb/libpullet0_*.deb') if 'dbgsym' not in d]
        assert debs, 'make deb first'
        base = self.dir + '/base'
        sh(os.path.join(ROOT, 'tests/packages/root.sh'), base, *debs, 'ca-certificates', env=dict(os.environ, PULLET_BUILD=harness.BUILD))
        for name in ('var/lib/apt', 'var/cache'):
            shutil.rmtree(f'{base}/{name}')
        container = self.buildah('from', 'scratch')
        root = self.buildah('mount', container)
        for name in os.listdir(base):
            os.rename(f'{base}/{name}', f'{root}/{name}')
        self.buildah('commit', '--quiet', '--rm', container, 'localhost/base')
        self.buildah('build', '--quiet', '--format', 'docker', '--timestamp', '1', '--build-arg', 'SOURCE_DATE_EPOCH=1', '--build-arg', 'BASE=localhost/base',
                     '--build-arg', 'REVISION=r1', '-f', 'packaging/container/Containerfile', '-t', 'localhost/pullet', '.')
        self.facts = json.loads(self.buildah('inspect', '--type', 'image', 'localhost/pullet'))['Docker']['config']
        self.root = self.buildah('mount', self.buildah('from', 'localhost/pullet'))

    def remove(self):
        subprocess.run(['umount', '--recursive', self.dir], check=False, capture_output=True)
        shutil.rmtree(self.dir)


def setUpModule():
    global image
    image = Image()


def tearDownModule():
    image.remove()


class Container(harness.Case):
    def setUp(self):
        super().setUp()
        self.mounts = []
        self.addCleanup(self.unmount_all)
        self.root = self.path('root')
        self.make_root()
        self.volumes(('/run/pullet', '/var/lib/pullet', '/etc/pullet', '/run/secrets/pullet'), f'mode=2777,gid={GROUP}')  # as emptyDirs with fsGroup are
        self.server = FaultServer(self)
        self.server.behave = good(b'a: 1\n', 'ETag: "1"\r\n')

    def make_root(self):
        """A layer in which the runtime makes the mount points, on the image; then all of it is read-only."""
        os.mkdir(self.root)
        os.mkdir(self.path('layer'))
        self.mount(self.path('layer'), '-t', 'tmpfs', 'tmpfs')
        for name in ('upper/dev', 'upper/proc', 'upper/run/secrets/pullet', 'work'):
            os.makedirs(self.path('layer/' + name))
        self.mount(self.root, '-t', 'overlay', '-o', f'lowerdir={image.root},upperdir={self.path("layer/upper")},workdir={self.path("layer/work")}', 'overlay')
        sh('mount', '-o', 'remount,ro', self.root)
        self.mount(self.root + '/dev', '--bind', '/dev')

    def volumes(self, names, options):
        for name in names:
            self.mount(self.root + name, '-t', 'tmpfs', '-o', options, 'tmpfs')

    def mount(self, place, *what):
        sh('mount', *what, place)
        self.mounts.append(place)

    def unmount_all(self):
        while self.mounts:
            sh('umount', '--lazy', self.mounts.pop())

    def configure(self, more='', url=None):
        text = f'''configs:
  web:
    url: {url or self.server.url}/web.yaml
    file: /run/pullet/files/web.yaml
    interval: 200ms
{more}'''
        self.write('root/etc/pullet/pullet.yaml', text)

    def enter(self, *command, user=UNKNOWN, group=GROUP):
        """The command as process 1, as that user, without any environment but what a runtime sets."""
        p = Program(['env', '-i', 'PATH=/usr/sbin:/usr/bin', 'unshare', '--mount', '--pid', '--fork', '--kill-child', f'--root={self.root}', '--mount-proc',
                     f'--setgid={group}', f'--setuid={user}', *command], read='both')
        self.addCleanup(self.end, p)
        return p

    @staticmethod
    def end(p):
        """Process 1 and so all that it has; --kill-child does not count for who changed his user."""
        if p.process.poll() is None:
            for one in harness.children(p.pid):
                os.kill(one, signal.SIGKILL)
        p.close()

    def start(self, *args, **kw):
        return self.enter(*image.facts['Entrypoint'], *args, **kw)

    def inside(self, p):
        """The agent, seen from here: what unshare and process 1 started."""
        found = p.pid
        while deeper := harness.children(found):
            found = deeper[0]
        return found

    def exec(self, p, *command, user=UNKNOWN, group=GROUP, timeout=harness.DEADLINE):
        """As a probe: another process in the same namespaces. Its exit code, None when the time is up, and output."""
        enter = ['nsenter', f'--target={harness.children(p.pid)[0]}', '--mount', '--pid', '--root', '--wd', f'--setgid={group}', f'--setuid={user}']
        try:
            done = subprocess.run([*enter, *command], capture_output=True, text=True, timeout=timeout, check=False, env={'PATH': '/usr/sbin:/usr/bin'})
        except subprocess.TimeoutExpired:
            return None, ''
        return done.returncode, done.stdout + done.stderr


def bare(command):
    """Of a health check."""
    assert command[0] == 'CMD', command
    return command[1:]


class Run(Container):
    def test_it_publishes_is_healthy_survives_the_server_and_ends_with_0(self):
        self.configure()
        p = self.start()
        p.log.wait('published config=web')
        self.assertEqual(self.read('root/run/pullet/files/web.yaml'), b'a: 1\n')
        self.assertEqual(self.exec(p, *bare(image.facts['Healthcheck']['Test']))[0], 0)
        self.assertIn('1', self.exec(p, '/usr/bin/pullet', 'get', 'web', 'a')[1])
        self.server.close()
        p.log.wait('refused')
        self.assertEqual(self.exec(p, *bare(image.facts['Healthcheck']['Test']))[0], 0)
        os.kill(harness.children(p.pid)[0], signal.SIGTERM)
        p.log.drain()
        self.assertEqual(p.wait(), 0)
        p = self.start()
        p.log.wait('started from the last known good')
        os.kill(harness.children(p.pid)[0], signal.SIGTERM)
        self.assertEqual(p.wait(), 0)

    def test_it_is_not_healthy_before_something_is_published(self):
        self.configure()
        self.server.behave = good(b'', status='404 Not Found')
        p = self.start()
        p.log.wait('404')
        code, out = self.exec(p, *bare(image.facts['Healthcheck']['Test']))
        self.assertEqual(code, 1, out)
        self.assertIn('web', out)

    def test_a_user_from_the_range_of_the_platform_with_the_group_0_and_the_volumes_of_the_image(self):
        self.unmount_all()
        shutil.rmtree(self.path('layer'))
        os.rmdir(self.root)
        self.make_root()
        for name in ('/run/pullet', '/var/lib/pullet'):
            st = os.stat(image.root + name)
            self.assertEqual((st.st_uid, st.st_gid, st.st_mode & 0o7777), (65532, 0, 0o770))
        self.volumes(('/run/pullet', '/var/lib/pullet'), 'mode=0770,uid=65532,gid=0')  # as a runtime copies them
        self.volumes(('/etc/pullet',), 'mode=0755')
        self.configure()
        p = self.start(user=1000660000, group=0)
        p.log.wait('published config=web')
        self.assertEqual(self.exec(p, *bare(image.facts['Healthcheck']['Test']), user=1000660000, group=0)[0], 0)

    def test_orphans_of_programs_are_reaped(self):
        source, program = self.path('orphan.c'), self.root + '/etc/pullet/check'
        with open(source, 'w', encoding='ascii') as f:  # a session of its own: what the agent kills is the program's group
            f.write('#include <unistd.h>\nint main(void) { if (fork() == 0) { setsid(); usleep(1000); } return 0; }\n')
        sh('gcc', '-static', '-o', program, source)
        self.configure('    check: [/etc/pullet/check, "{path}"]\n')
        p = self.start()
        for n in range(2, 6):
            p.log.wait('published config=web', start=p.log.count)
            self.server.behave = good(f'a: {n}\n'.encode(), f'ETag: "{n}"\r\n')
        self.assertEqual([state for state in self.states(p) if state == 'Z'], [])

    def states(self, p):
        """Of the processes in it, when the orphans that are on their way have ended."""
        out = self.exec(p, '/usr/bin/pullet', 'refresh', 'web', '--wait')
        self.assertEqual(out[0], 0, out)
        first = harness.children(p.pid)[0]
        left, states = [first], []
        while left:
            pid = left.pop()
            left += harness.children(pid)
            with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as f:
                states.append(f.read().rsplit(')', 1)[1].split()[0])
        return states

    def test_once_publishes_and_ends_and_fails_when_it_cannot(self):
        self.configure()
        p = self.start('--once')
        p.log.drain()
        self.assertEqual(p.wait(), 0, p.log.seen)
        self.assertEqual(self.read('root/run/pullet/files/web.yaml'), b'a: 1\n')
        self.server.close()
        p = self.start('--once')
        p.log.drain()
        self.assertEqual(p.wait(), 1, p.log.seen)
        self.assertEqual(self.read('root/run/pullet/files/web.yaml'), b'a: 1\n')

    def test_a_file_right_in_an_empty_dir_is_refused_with_the_remedy(self):
        self.configure()
        self.write('root/etc/pullet/pullet.yaml', self.read('root/etc/pullet/pullet.yaml').replace(b'/files/', b'/'))
        self.start().log.wait(r'will not use the directory /run/pullet: group or others can write in it and could replace the file; chmod go-w')


class Contents(harness.Case):
    def test_facts(self):
        facts = image.facts
        self.assertRegex(facts['User'], r'^[1-9]\d*:\d+$')
        self.assertEqual(facts['Entrypoint'], ['/usr/sbin/pulletd'])
        self.assertEqual(sorted(facts['Volumes']), ['/run/pullet', '/var/lib/pullet'])
        self.assertEqual(facts['Healthcheck']['Test'][0], 'CMD')
        with open(os.path.join(ROOT, 'Makefile'), encoding='utf-8') as f:
            version = re.search(r'^VERSION\s*:= (\S+)', f.read(), re.M)[1]
        labels = {k.removeprefix('org.opencontainers.image.'): v for k, v in facts['Labels'].items()}
        self.assertEqual((labels['title'], labels['version'], labels['revision'], labels['licenses']), ('pullet', version, 'r1', 'Apache-2.0'))

    def test_it_holds_two_programs_their_libraries_and_no_shell(self):
        programs = []
        for place, _, files in os.walk(image.root):
            for name in files:
                path = os.path.join(place, name)
                if os.stat(path).st_mode & 0o111 and '.so' not in name:
                    programs.append(path.removeprefix(image.root))
                self.assertFalse(os.stat(path).st_mode & 0o6022, path)
        self.assertEqual(sorted(programs), ['/usr/bin/pullet', '/usr/sbin/pulletd'])
        self.assertTrue(os.path.getsize(image.root + '/etc/ssl/certs/ca-certificates.crt'))
        for name in ('libc6', 'libcurl4', 'libzmq5', 'libssl3', 'pullet', 'ca-certificates'):
            self.assertTrue(os.path.exists(f'{image.root}/var/lib/dpkg/status.d/{name}'), name)
            self.assertTrue(os.path.exists(f'{image.root}/usr/share/doc/{name}/copyright'), name)


class Examples(Container):
    """Each example's containers are run with what it says: arguments, configuration, volumes, probes."""

    def load(self, name):
        with open(os.path.join(ROOT, 'packaging/kubernetes', name), encoding='utf-8') as f:
            documents = list(yaml.safe_load_all(f))
        self.kinds = {d['kind']: d for d in documents}
        workload = documents[-1]
        self.assertEqual(workload['apiVersion'], {'Deployment': 'apps/v1', 'Job': 'batch/v1'}[workload['kind']])
        self.pod = workload['spec']['template']['spec']
        self.pullet, = self.pod['initContainers']
        self.application, = self.pod['containers']
        if workload['kind'] == 'Deployment':
            self.assertEqual(workload['spec']['selector']['matchLabels'], workload['spec']['template']['metadata']['labels'])

    def check_structure(self):
        volumes = {v['name']: v for v in self.pod['volumes']}
        self.assertTrue(self.pod['securityContext']['runAsNonRoot'])
        self.assertEqual(self.pod['securityContext']['seccompProfile'], {'type': 'RuntimeDefault'})
        for c in (self.pullet, self.application):
            self.assertEqual(c['securityContext'], {'allowPrivilegeEscalation': False, 'readOnlyRootFilesystem': True, 'capabilities': {'drop': ['ALL']}})
            self.assertLessEqual({m['name'] for m in c['volumeMounts']}, set(volumes))
            self.assertFalse([m for m in c['volumeMounts'] if 'subPath' in m])
        self.assertEqual(volumes['config']['configMap']['name'], self.kinds['ConfigMap']['metadata']['name'])
        self.assertEqual(volumes['secrets']['secret']['secretName'], self.kinds['Secret']['metadata']['name'])
        self.assertEqual(volumes['secrets']['secret']['defaultMode'] & 0o007, 0)
        self.assertEqual(volumes['run']['emptyDir']['medium'], 'Memory')
        shared, = self.application['volumeMounts']
        self.assertTrue(shared['readOnly'])
        places = {m['name']: m['mountPath'] for m in self.pullet['volumeMounts']}
        self.assertEqual((places['run'], places['state'], places['config']), ('/run/pullet', '/var/lib/pullet', '/etc/pullet'))
        self.assertEqual(places['secrets'], '/run/secrets/pullet')
        self.assertEqual(shared['mountPath'], places['run'])
        self.assertIn('memory', self.pullet['resources']['limits'])

    def volume_of(self, files, place, mode):
        """As the kubelet lays a ConfigMap or Secret out."""
        data = self.root + place + '/..2026'
        os.mkdir(data)
        for name, text in files.items():
            with open(f'{data}/{name}', 'w', encoding='utf-8') as f:
                f.write(text)
            os.chown(f'{data}/{name}', 0, GROUP)
            os.chmod(f'{data}/{name}', mode)
            os.symlink(f'..data/{name}', f'{self.root}{place}/{name}')
        os.symlink('..2026', f'{self.root}{place}/..data')

    def begin(self):
        """Its pullet with its configuration, but this test's server, and a free port."""
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.port = s.getsockname()[1]
        text = self.kinds['ConfigMap']['data']['pullet.yaml']
        secret = self.kinds['Secret']['stringData']
        mode = next(v for v in self.pod['volumes'] if v['name'] == 'secrets')['secret']['defaultMode']
        text = text.replace('https://config.example', self.server.url).replace('interval: 30s', 'interval: 200ms').replace('0.0.0.0:9377', f'127.0.0.1:{self.port}')
        self.volume_of({'pullet.yaml': text}, '/etc/pullet', 0o644)
        self.volume_of(secret, '/run/secrets/pullet', mode)
        check = self.start('-t')
        self.assertEqual(check.wait(), 0, check.log.drain())
        self.name, self.config = next(iter(yaml.safe_load(text)['configs'].items()))
        self.authorization = []

        def behave(connection, head, stopping):
            self.authorization.append(re.search(r'Authorization: ([^\r\n]*)', head)[1])
            return self.answer(connection, head, stopping)
        self.answer = good(b'', status='404 Not Found')
        self.server.behave = behave

    def test_the_sidecar(self):
        self.load('sidecar.yaml')
        self.check_structure()
        self.begin()
        self.assertEqual(self.pullet['restartPolicy'], 'Always')
        p = self.start(*self.pullet.get('args', []))
        p.log.wait('404')
        self.assertEqual([self.probe(k) for k in PROBES], [503, 200, 200])
        self.answer = good(b'a: 1\n')
        p.log.wait('published config=')
        self.assertEqual([self.probe(k) for k in PROBES], [200, 200, 200])
        self.assertEqual(set(self.authorization), {'Bearer replace-me'})
        self.application_reads()
        os.kill(self.inside(p), signal.SIGSTOP)
        self.addCleanup(os.kill, self.inside(p), signal.SIGCONT)
        self.assertIsNone(self.probe('livenessProbe'))

    def probe(self, kind):
        """As kubelet does: the status, None when the time is up."""
        asked = self.pullet[kind]['httpGet']
        self.assertEqual(asked['port'], 'pullet')
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=1 if kind == 'livenessProbe' else harness.DEADLINE)
        with contextlib.closing(connection), contextlib.suppress(TimeoutError):
            connection.request('GET', asked['path'])
            return connection.getresponse().status
        return None

    def application_reads(self):
        """Another user of the same group, by a read-only mount of the volume."""
        there = self.path('application')
        os.mkdir(there)
        sh('mount', '--bind', self.root + '/run/pullet', there)
        self.mounts.append(there)
        sh('mount', '-o', 'remount,bind,ro', there)
        file = there + self.config['file'].removeprefix('/run/pullet')
        reader = ('setpriv', '--reuid=54321', f'--regid={GROUP}', '--clear-groups')
        os.chmod(self.dir, 0o755)
        self.assertEqual(sh(*reader, 'cat', file), 'a: 1')
        self.assertNotEqual(subprocess.run([*reader, 'sh', '-c', f'echo b > {file}'], capture_output=True, check=False).returncode, 0)
        stranger = subprocess.run(['setpriv', '--reuid=54321', '--regid=54321', '--clear-groups', 'cat', file], capture_output=True, check=False)
        self.assertNotEqual(stranger.returncode, 0)

    def test_the_init_container(self):
        self.load('once.yaml')
        self.check_structure()
        self.begin()
        self.assertNotIn('restartPolicy', self.pullet)
        self.assertIn(self.pod['restartPolicy'], ('OnFailure', 'Always'))
        p = self.start(*self.pullet['args'])
        p.log.drain()
        self.assertEqual(p.wait(), 1)
        self.answer = good(b'a: 1\n')
        p = self.start(*self.pullet['args'])
        p.log.drain()
        self.assertEqual(p.wait(), 0)
        self.application_reads()


if __name__ == '__main__':
    harness.main()
