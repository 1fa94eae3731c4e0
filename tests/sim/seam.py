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


def run_nm(path):
    """The lines of nm."""
    return subprocess.run(["nm", path], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True).stdout.splitlines()


def read_members(path):
    """[(member or None, undefined names, names that it defines for others)] of an archive or object."""
    members = [(None, set(), set())]
    for line in run_nm(path):
        words = line.split()
        if len(words) == 1 and line.endswith(":"):
            members.append((line[:-1], set(), set()))
        elif len(words) >= 2 and words[-2] in "Uw":
            members[-1][1].add(words[-1])
        elif len(words) >= 2 and words[-2].isupper():
            members[-1][2].add(words[-1])
    return members


def read_symbols(objects, program):
    """What they leave undefined: {name: object}, and the names that they define. Of two members of one name
    those are in the program whose names are."""
    undefined, defined = {}, set()
    there = {line.split()[-1] for line in run_nm(program)}
    for path in sorted({path for path, _ in objects}):
        for member, misses, has in read_members(path):
            if (path, member) not in objects or not has <= there:
                continue
            defined |= has
            if PRODUCT.search(path):
                undefined.update({name: member or path for name in misses})
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
    undefined, defined = read_symbols(objects, sys.argv[1][:-len(".map")]) if objects else ({}, set())
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
