#!/bin/sh
# Wheel and sdist of the Python module, made by its own backend; see common.sh.
. "$(dirname "$0")/common.sh"
cat >"$tmp/use.py" <<'END'
import sys

import pullet
from pullet.testing import Fake

wanted, path = sys.argv[1:]
with pullet.open(path) as config, Fake({"a": "1s"}) as fake:
    assert config["db.port"] == 5432 and fake.get_duration("a").seconds == 1
    assert pullet.implementation == wanted, pullet.implementation
END
make() {
	rm -f "$out"/pullet-*.whl "$out"/pullet-*.tar.gz
	/usr/bin/python3 -B "$root/lib/python/backend.py" "$out"
}
use() { # a venv that has what $1 is
	[ -e "$tmp/venv" ] || /usr/bin/python3 -m venv "$tmp/venv" || return 1
	alone "$tmp/venv/bin/pip" install -q --disable-pip-version-check --force-reinstall "$1" &&
		env -u PYTHONPATH -u PULLET_LIBRARY "$tmp/venv/bin/python" -W error "$tmp/use.py" native "$tmp/web.snap" &&
		rm "$tmp"/venv/lib/python3*/site-packages/pullet/_native.abi3.so &&
		env -u PYTHONPATH -u PULLET_LIBRARY "$tmp/venv/bin/python" -W error "$tmp/use.py" ctypes "$tmp/web.snap" &&
		[ -e "$tmp"/venv/lib/python3*/site-packages/pullet/py.typed ]
}
try "make wheel and sdist" make
try "the wheel, in a venv without a network" use "$out"/pullet-*.whl
try "the sdist, in a venv without a network" use "$out"/pullet-*.tar.gz
end
