"""Makes wheel and sdist with the standard library alone, so that pip needs no network (PEP 517).

The wheel has the library in it, twice: inside the extension, and as a file for ctypes. So it needs
no libpullet.so.0 on the host. Where there is no C compiler it is the Python files alone, which use
the libpullet.so.0 of the system.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from typing import Optional

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLED = os.path.join(HERE, "libpullet")  # in an sdist
LIB = BUNDLED if os.path.isdir(BUNDLED) else os.path.dirname(HERE)
SOURCES = ["decode.c", "explain.c", "path_watch.c", "reader.c", "snapshot.c", "writer.c"]
HEADERS = ["explain.h", "page.h", "path_watch.h", "pullet.h", "snapshot.h"]
XXHASH = ["/usr/include/xxhash.h", "/usr/local/include/xxhash.h"]
WHEN = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))  # the first that a zip can say


def read(path: str) -> bytes:
    with open(os.path.join(HERE, path), "rb") as f:
        return f.read()


def project(key: str) -> str:
    found = re.search(rf'^{key} = "(.*)"$', read("pyproject.toml").decode(), re.MULTILINE)
    assert found, key
    return found[1]


def metadata() -> bytes:
    head = f"""Metadata-Version: 2.1
Name: pullet
Version: {project("version")}
Summary: {project("description")}
License: Apache-2.0
Requires-Python: {project("requires-python")}
Description-Content-Type: text/markdown

"""
    return head.encode() + read("README.md")


def modules() -> list[str]:
    names = sorted(os.listdir(os.path.join(HERE, "pullet")))
    return ["pullet/" + n for n in names if n.endswith(".py") or n in ("py.typed", "_native.c")]


# Compiling


def compile_to(to: str, sources: list[str], flags: list[str]) -> bool:
    compiler = shlex.split(os.environ.get("CC") or "cc")
    more = shlex.split(os.environ.get("CFLAGS", "-O2")), shlex.split(os.environ.get("LDFLAGS", ""))
    command = [*compiler, "-std=c11", "-D_GNU_SOURCE", "-fPIC", "-shared", *more[0], "-I" + LIB,
               *flags, *sources, *more[1], "-o", to]
    try:
        return subprocess.run(command, check=False).returncode == 0
    except FileNotFoundError:
        return False


def compiled(directory: str) -> tuple[dict[str, bytes], str]:
    """The binaries, and the wheel's tag."""
    library = [os.path.join(LIB, name) for name in SOURCES]
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    made, tag = {}, "py3-none-any"
    for name, sources, flags, its_tag in (
        ("_library.so", library, [], f"py3-none-{platform}"),
        ("_native.abi3.so", [os.path.join(HERE, "pullet", "_native.c"), *library],
         ["-fvisibility=hidden", "-I" + sysconfig.get_path("include")], f"cp310-abi3-{platform}"),
    ):
        path = os.path.join(directory, name)
        if name.startswith("_native") and sys.version_info < (3, 10):
            continue
        if compile_to(path, sources, flags):
            with open(path, "rb") as f:
                made["pullet/" + name] = f.read()
            tag = its_tag
        else:
            print(f"pullet: {name} was not built: " + (
                "this needs a C compiler and xxhash.h (libxxhash-dev)" if name == "_library.so"
                else "this needs Python's headers (python3-dev); ctypes does its work"), file=sys.stderr)
    return made, tag


# What pip calls


def build_wheel(wheel_directory: str, config_settings: Optional[dict] = None,
                metadata_directory: Optional[str] = None) -> str:
    """Make the wheel; return its name."""
    with tempfile.TemporaryDirectory() as directory:
        files, tag = compiled(directory)
    files.update((name, read(name)) for name in modules() if not name.endswith(".c"))
    info = f"pullet-{project('version')}.dist-info"
    pure = "true" if tag.endswith("any") else "false"
    files[info + "/METADATA"] = metadata()
    files[info + "/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: pullet\nRoot-Is-Purelib: {pure}\n"
                              f"Tag: {tag}\n").encode()
    record = ""
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
    wheel = f"pullet-{project('version')}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(entry, data)
    return wheel


def build_sdist(sdist_directory: str, config_settings: Optional[dict] = None) -> str:
    """Make the sdist, with the library's sources in it; return its name."""
    top = f"pullet-{project('version')}"
    files = {name: read(name) for name in [*modules(), "backend.py", "pyproject.toml", "README.md", "example.py"]}
    files["PKG-INFO"] = metadata()
    for name in SOURCES + HEADERS:
        files["libpullet/" + name] = read(os.path.join(LIB, name))
    xxhash = next(p for p in [os.path.join(LIB, "xxhash.h"), *XXHASH] if os.path.exists(p))
    files["libpullet/xxhash.h"] = read(xxhash)
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mtime, entry.mode = len(content), WHEN, 0o644
            tar.addfile(entry, io.BytesIO(content))
    with open(os.path.join(sdist_directory, top + ".tar.gz"), "wb") as f:
        f.write(gzip.compress(data.getvalue(), mtime=0))
    return top + ".tar.gz"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: backend.py DIR: makes wheel and sdist there")
    print(build_wheel(sys.argv[1]), build_sdist(sys.argv[1]))
