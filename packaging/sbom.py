#!/usr/bin/env python3
"""Writes what built packages are made of, as SPDX 2.3 (JSON): each package, each file with its digests, and which libraries of
the building machine, in which versions, each program is linked with. The same packages give the same bytes.

Usage: packaging/sbom.py VERSION FILE.spdx.json PACKAGE.deb|PACKAGE.rpm...

SOURCE_DATE_EPOCH is the time it says it was made. The libraries' licences are theirs to tell: NOASSERTION.
"""
import functools
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time

LICENCE = 'Apache-2.0'
COMPILED_IN = {'libxxhash': ('/usr/sbin/pulletd', '/usr/bin/pullet')}  # of a header alone: no link shows it


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


class Deb:
    @staticmethod
    def about(path):
        return output('dpkg-deb', '--show', '--showformat=${Package} ${Version}', path).decode().split()

    @staticmethod
    def files(path):
        return output('dpkg-deb', '--fsys-tarfile', path)

    @staticmethod
    @functools.lru_cache(None)
    def owner(library):
        """Name, version and package URL of the installed package that has this library, of this machine's architecture."""
        arch, triplet = (output('dpkg-architecture', '-q' + v).decode().strip() for v in ('DEB_HOST_ARCH', 'DEB_HOST_MULTIARCH'))
        owner = output('dpkg-query', '--search', f'*/{triplet}/{library}').decode().split(': ')[0]
        name, version = output('dpkg-query', '--show', '--showformat=${Package} ${Version}', owner).decode().split()
        return name, version, f'pkg:deb/debian/{name}@{version.replace("+", "%2B").replace(":", "%3A")}?arch={arch}'


class Rpm:
    @staticmethod
    def about(path):
        return output('rpm', '-qp', '--queryformat', '%{NAME} %{VERSION}-%{RELEASE}', path).decode().split()

    @staticmethod
    def files(path):
        return output('sh', '-c', 'rpm2archive -n - <"$1"', 'sh', path)

    @staticmethod
    @functools.lru_cache(None)
    def owner(library):
        if not output('rpm', '-qa'):
            return Deb.owner(library)  # built where packages are Debian's
        path = output('sh', '-c', f'ls -d /usr/lib64/{library} /usr/lib/{library} 2>/dev/null | head -n 1').decode().strip()
        name, version = output('rpm', '-qf', '--queryformat', '%{NAME} %{VERSION}-%{RELEASE}', path).decode().split()
        return name, version, f'pkg:rpm/{name}@{version}'


def identifier(kind, *names):
    return f'SPDXRef-{kind}-' + re.sub(r'[^A-Za-z0-9.]+', '-', '-'.join(names)).strip('-')


def checksums(data, *algorithms):
    return [{'algorithm': a, 'checksumValue': hashlib.new(a.lower(), data).hexdigest()} for a in algorithms]


def linked(data):
    """What the dynamic section of a program or library asks for; nothing for other files."""
    if data[:4] != b'\x7fELF':
        return []
    with tempfile.NamedTemporaryFile() as f:
        f.write(data)
        f.flush()
        return re.findall(r'\(NEEDED\).*\[(.+)\]', output('readelf', '--dynamic', '--wide', f.name).decode())


class Document:
    def __init__(self):
        self.packages, self.files, self.relations, self.libraries, self.own = [], [], [], {}, {}

    def relate(self, what, how, other):
        self.relations.append({'spdxElementId': what, 'relationshipType': how, 'relatedSpdxElement': other})

    def library(self, kind, name):
        name, version, url = kind.owner(name)
        spdxid = identifier('Library', name)
        self.libraries[spdxid] = {
            'SPDXID': spdxid, 'name': name, 'versionInfo': version, 'filesAnalyzed': False, 'downloadLocation': 'NOASSERTION',
            'licenseConcluded': 'NOASSERTION', 'licenseDeclared': 'NOASSERTION', 'copyrightText': 'NOASSERTION',
            'externalRefs': [{'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl', 'referenceLocator': url}]}
        return spdxid

    def file(self, kind, package, name, data):
        spdxid = identifier('File', package, name)
        self.files.append({'SPDXID': spdxid, 'fileName': '.' + name, 'checksums': checksums(data, 'SHA1', 'SHA256'),
                           'licenseConcluded': LICENCE, 'copyrightText': 'NOASSERTION'})
        self.relate(identifier('Package', package), 'CONTAINS', spdxid)
        self.own[os.path.basename(name)] = identifier('Package', package)
        for soname in linked(data):
            self.relate(spdxid, 'DYNAMIC_LINK', self.own.get(soname) or self.library(kind, soname))
        for header, programs in COMPILED_IN.items():
            if name in programs:
                self.relate(spdxid, 'STATIC_LINK', self.library(kind, header + '.so'))
        return hashlib.sha1(data).hexdigest()

    def package(self, path):
        kind = Rpm if path.endswith('.rpm') else Deb
        package, version = kind.about(path)
        spdxid = identifier('Package', package)
        self.relate('SPDXRef-DOCUMENT', 'DESCRIBES', spdxid)
        sums = []
        with tarfile.open(fileobj=io.BytesIO(kind.files(path))) as tar:
            for member in sorted((m for m in tar if m.isreg()), key=lambda m: m.name):
                sums.append(self.file(kind, package, '/' + member.name.lstrip('./'), tar.extractfile(member).read()))
        with open(path, 'rb') as f:
            own = checksums(f.read(), 'SHA256')
        self.packages.append({
            'SPDXID': spdxid, 'name': package, 'versionInfo': version, 'packageFileName': os.path.basename(path), 'checksums': own,
            'downloadLocation': 'NOASSERTION', 'licenseConcluded': LICENCE, 'licenseDeclared': LICENCE, 'copyrightText': 'NOASSERTION',
            'filesAnalyzed': True, 'licenseInfoFromFiles': [LICENCE],
            'packageVerificationCode': {'packageVerificationCodeValue': hashlib.sha1(''.join(sorted(sums)).encode()).hexdigest()}})

    def text(self, version):
        body = {'packages': self.packages + [self.libraries[i] for i in sorted(self.libraries)], 'files': self.files,
                'relationships': self.relations}
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        made = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(int(os.environ['SOURCE_DATE_EPOCH'])))
        return json.dumps({
            'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT', 'name': f'pullet-{version}',
            'documentNamespace': f'https://spdx.org/spdxdocs/pullet-{version}-{digest}',
            'creationInfo': {'created': made, 'creators': [f'Tool: pullet-sbom-{version}']}, **body}, indent=1) + '\n'


def main(version, to, *paths):
    document = Document()
    for path in sorted(paths):
        document.package(path)
    with open(to, 'w', encoding='utf-8') as f:
        f.write(document.text(version))


main(*sys.argv[1:])
