#!/bin/sh
# Installs what building, testing and running pullet needs, and does nothing when all is there.
#
#   packaging/deps.sh            to build and run
#   packaging/deps.sh --test     and to test: test servers, linters
#   packaging/deps.sh --all      and for the bindings in other languages
#   packaging/deps.sh --servers  and for make check-servers: servers of others that are no package's dependency
#   packaging/deps.sh --deb      what make deb needs, no test servers
#   packaging/deps.sh --rpm      what make rpm needs, no test servers
#   packaging/deps.sh --packages and for building deb and rpm, and testing what is installed (but not for the bindings)
#   packaging/deps.sh --list     only prints what is missing
#
# Knows apt (Debian, Ubuntu) and dnf (Fedora, RHEL). Needs root, or sudo. Services that come with what it installs, such as nginx, are
# neither started nor enabled: a test starts its own.
set -eu

# A file in the fourth column is what the package is for: where it is, from whatever source, nothing is missing. (NodeSource's
# nodejs brings its own headers, and libnode-dev cannot be installed beside it.)
#
# what it is for      apt                       dnf                       or a file
build='
compiler              gcc                       gcc
libc                  libc6-dev                 glibc-devel
make                  make                      make
pkg-config            pkg-config                pkgconf-pkg-config
http-client           libcurl4-openssl-dev      libcurl-devel
push                  libzmq3-dev               zeromq-devel
yaml                  libyaml-dev               libyaml-devel
loop                  libevent-dev              libevent-devel
json                  libjansson-dev            jansson-devel
digests               libssl-dev                openssl-devel
hash                  libxxhash-dev             xxhash-devel
patterns              libpcre2-dev              pcre2-devel
gzip                  zlib1g-dev                zlib-devel
certificates          ca-certificates           ca-certificates
'
tests='
unit-tests            libcmocka-dev             libcmocka-devel
coverage              gcovr                     gcovr
sanitizers            libasan8                  libasan
sanitizers            libtsan2                  libtsan
sanitizers            libubsan1                 libubsan
web-server            nginx-light               nginx
load-balancer         haproxy                   haproxy
units                 systemd                   systemd
key-value-server      etcd-server               etcd
key-value-server      etcd-client               etcd
test-programs         python3                   python3
python-extension      python3-dev               python3-devel
push-peer             python3-zmq               python3-zmq
yaml-peer             python3-yaml              python3-pyyaml
schema-peer           python3-jsonschema        python3-jsonschema
schema-suite          json-schema-test-suite    -
signature-peer        python3-botocore          python3-botocore
hash-peer             python3-xxhash            python3-xxhash
lookup-peer           liblmdb-dev               lmdb-devel
lookup-peer           libcdb-dev                tinycdb-devel
certificates          openssl                   openssl
signatures            minisign                  minisign
man-pages             mandoc                    mandoc
shell-lint            shellcheck                ShellCheck
format                clang-format              clang-tools-extra
static-analysis       cppcheck                  cppcheck
timer-peer            libev-dev                 libev-devel
timer-peer            libuv1-dev                libuv-devel
model-checker         spin                      spin
model-checker         relacy-dev                relacy-devel
model-checker         g++                       gcc-c++
processes             procps                    procps-ng
network               iproute2                  iproute
trace                 strace                    strace
seeded-bugs           git                       git-core
locale-sources        locales                   glibc-locale-source
file-systems          e2fsprogs                 e2fsprogs
file-systems          xfsprogs                  xfsprogs
file-systems          mount                     util-linux
completions           zsh                       zsh
completions           fish                      fish
'
languages='
go                    golang-go                 golang
go-lint               go-staticcheck            -
java                  default-jdk-headless      java-17-openjdk-devel
java-event-loop       libnetty-java             -
java-package          maven                     maven
java-package          libmaven-compiler-plugin-java -
java-package          libmaven-resources-plugin-java -
java-package          junit5                    -
node                  nodejs                    nodejs
node-headers          libnode-dev               nodejs-devel              /usr/include/node/node_api.h
'
deb='
deb                   debhelper                 debhelper
deb                   build-essential           -
deb                   dpkg-dev                  dpkg-dev
deb                   dh-python                 -
deb                   libcmocka-dev             -
python-extension      python3-dev               python3-devel
'
rpm='
rpm                   rpm                       rpm-build
rpm                   -                         systemd-rpm-macros
python-extension      python3-dev               python3-devel
'
# prometheus is here for promtool
packages='
deb-lint              lintian                   -
deb-install           piuparts                  -
deb-tests             autopkgtest               -
rpm-lint              rpmlint                   rpmlint
roots                 mmdebstrap                -
boot                  systemd                   systemd
boot                  systemd-container         systemd-container
container-images      buildah                   buildah
browser               chromium                  chromium
browser               chromium-driver           chromedriver
browser               python3-selenium          python3-selenium
browser               fonts-dejavu-core         dejavu-sans-fonts
metrics-lint          prometheus                golang-github-prometheus
completions           bash-completion           bash-completion
'
servers='
s3-gateway            radosgw                   ceph-radosgw
s3-store              ceph-mon                  ceph-mon
s3-store              ceph-osd                  ceph-osd
s3-store              ceph-common               ceph-common
node                  nodejs                    nodejs
npm                   npm                       nodejs-npm                /usr/bin/npm
'

mode="build"
for arg; do
	case $arg in
	--test) mode="test" ;;
	--all) mode="all" ;;
	--servers) mode="servers" ;;
	--deb) mode="deb" ;;
	--rpm) mode="rpm" ;;
	--packages) mode="packages" ;;
	--list) list=1 ;;
	*)
		echo "usage: packaging/deps.sh [--test | --all | --servers | --deb | --rpm | --packages] [--list]" >&2
		exit 64
		;;
	esac
done

if command -v apt-get >/dev/null 2>&1; then
	column=2
	there() { dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }
	install() {
		# somebody else who is at it is waited for by the second one only
		run apt-get update -q || echo "packaging/deps.sh: going on with the package lists that are there" >&2
		run sh -c "$without_services" sh env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
	}
	# Debian starts and enables each service that is installed; who has a policy of his own keeps it
	# shellcheck disable=SC2016 # expanded by that shell
	without_services='
policy=/usr/sbin/policy-rc.d
enabled() {
	find /etc/systemd/system/multi-user.target.wants -name "*.service" 2>/dev/null
}
before=$(enabled)
if ! [ -e "$policy" ]; then
	trap "rm -f $policy" EXIT
	trap "exit 130" HUP INT TERM
	printf "#!/bin/sh\nexit 101\n" >"$policy" && chmod 755 "$policy" || exit
fi
"$@" || exit
command -v systemctl >/dev/null || exit 0
enabled | while read -r link; do
	unit=${link##*/}
	case $before in
	*"/$unit"*) ;;
	*) systemctl --quiet disable "$unit" ;;
	esac
done
'
elif command -v dnf >/dev/null 2>&1; then
	column=3
	there() { rpm -q --quiet "$1"; }
	install() { run dnf install -y --setopt=install_weak_deps=False "$@"; }
else
	echo "packaging/deps.sh: neither apt-get nor dnf is here; install these by hand:$build" >&2
	exit 1
fi

run() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		echo "packaging/deps.sh: installing packages needs root or sudo" >&2
		exit 1
	fi
}

wanted=$build
case $mode in
build) ;;
deb) wanted="$build$deb" ;;
rpm) wanted="$build$rpm" ;;
*) wanted="$build$tests" ;;
esac
[ "$mode" != all ] || wanted="$wanted$languages"
[ "$mode" != servers ] || wanted="$wanted$servers"
[ "$mode" != packages ] || wanted="$wanted$deb$rpm$packages"
missing() { # TABLE: the packages that are not there
	printf '%s' "$1" | awk -v c=$column 'NF && $c != "-" { print $c, $4 }' | while read -r name file; do
		if [ -z "$file" ] || ! [ -e "$file" ]; then
			there "$name" || printf ' %s' "$name"
		fi
	done
}
all=$(missing "$wanted")

if [ -z "$all" ]; then
	echo "dependencies: all there"
	exit 0
fi
echo "dependencies missing:$all"
[ -z "${list:-}" ] || exit 0
echo "installing them"
# a package that is installed here may bring the file for which another one would be, so those come last
for table in "$(printf '%s' "$wanted" | awk 'NF < 4')" "$wanted"; do
	names=$(missing "$table")
	# shellcheck disable=SC2086 # a list of words
	[ -z "$names" ] || install $names
done
echo "dependencies: installed"
