#!/usr/bin/python3
"""Nothing of the product goes past the simulator's seam: seam.py PROGRAM.map [--self-test]

Reads the linker's map of a simulator (-Wl,-Map=PROGRAM.map) for the product's objects in it, and names
what they leave undefined that is neither wrapped (wrap.txt), nor harmless (seam.txt), nor defined by another
object of the program.
"""
import fnmatch
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PRODUCT = re.compile(r"(^|/)(agent\.a|lib\.a|agent/.*\.o|lib/[^/]*\.o)$")
MEMBER = re.compile(r"^(\S+\.a)\(([^)]+)\)")
LOADED = re.compile(r"^LOAD (\S+\.o)$")


def read_names(name):
    """The words of a list: one a line, "#" begins a comment."""
    with open(os.path.join(HERE, name), encoding="ascii") as lines:
        return [words[0] for words in (line.split("#")[0].split() for line in lines) if words]


def read_map(path):
    """The objects in the program: {(archive or object, member or None)}."""
    found = set()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            for pattern in (MEMBER, LOADED):
                hit = pattern.match(line)
                if hit:
                    found.add((hit.group(1), hit.group(2) if pattern is MEMBER else None))
    return found


def read_symbols(objects):
    """What they leave undefined: {name: object}, and the names that they define."""
    undefined, defined = {}, set()
    files = sorted({file for file, _ in objects})
    out = subprocess.run(["nm", "-A", *files], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         universal_newlines=True).stdout
    for line in out.splitlines():
        place, _, rest = line.rpartition(":")
        file, _, member = place.partition(":")
        kind, name = rest.split()[-2:]
        if (file, member or None) not in objects:
            continue
        if kind not in "Uw":
            defined.add(name)
        elif PRODUCT.search(file):
            undefined.setdefault(name, member or file)
    return undefined, defined


def find_holes(undefined, known):
    """[(name, object)] of names that no list has."""
    globs = [k for k in known if "*" in k]
    return sorted((name, where) for name, where in undefined.items()
                  if name not in known and not any(fnmatch.fnmatchcase(name, g) for g in globs))


def test_itself(undefined, wrapped, harmless, defined):
    """A name taken off a list must be found."""
    for name in ("openat", "malloc", "qsort"):
        for names in (wrapped, harmless):
            if name in names:
                known = (set(wrapped + harmless) | defined) - {name}
                if name not in [hole for hole, _ in find_holes(undefined, known)]:
                    sys.exit(f"seam: {name} is on no list, and nobody notices")
    print("seam: self-test passed")


def main():
    """Fails with the names."""
    objects = read_map(sys.argv[1])
    undefined, defined = read_symbols(objects)
    wrapped, harmless = read_names("wrap.txt"), read_names("seam.txt")
    if not undefined:
        sys.exit("seam: there is nothing of the product in " + sys.argv[1])
    if "--self-test" in sys.argv[2:]:
        test_itself(undefined, wrapped, harmless, defined)
        return
    holes = find_holes(undefined, set(wrapped) | set(harmless) | defined)
    for name, where in holes:
        print(f"seam: {name} of {where} goes past it: wrap it (tests/sim/wrap.txt), or name it harmless "
              "(tests/sim/seam.txt)", file=sys.stderr)
    sys.exit(1 if holes else 0)


if __name__ == "__main__":
    main()
