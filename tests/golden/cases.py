#!/usr/bin/python3
"""Makes the images of cases.json (which says what they are for) in a directory, with `pullet build`.

    cases.py DIR       builds them with $PULLET_BUILD/pullet (build/pullet); they appear in DIR all at once
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PULLET = os.path.join(os.path.abspath(os.environ.get("PULLET_BUILD", "build")), "pullet")


def build(case, to):
    document, image = os.path.join(to, "document.yaml"), os.path.join(to, "image.snap")
    for number, text in enumerate(case["documents"], 1):
        with open(document, "w", encoding="utf-8") as f:
            f.write(text)
        version = case.get("versions", [""] * number)[number - 1]
        subprocess.run([PULLET, "build", document, "-o", image, "--version", version], check=True)
        shutil.copy(image, os.path.join(to, "%s-%d.snap" % (case["name"], number)))
    os.remove(image)
    os.remove(document)


def main(to):
    with open(os.path.join(HERE, "cases.json"), encoding="utf-8") as f:
        cases = json.load(f)["cases"]
    assert len({case["name"] for case in cases}) == len(cases), "two cases of one name"
    os.makedirs(os.path.dirname(os.path.abspath(to)), exist_ok=True)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(to))) as made:
        for case in cases:
            build(case, made)
        shutil.rmtree(to, ignore_errors=True)
        os.rename(made, to)
        os.mkdir(made)  # for its cleanup
    os.chmod(to, 0o755)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
