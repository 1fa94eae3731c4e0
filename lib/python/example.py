"""Print a configuration, then each change to it, until Ctrl-C.

    python3 example.py [--once] NAME_OR_PATH
"""

import argparse
import sys

import pullet


def show(config: pullet.Config) -> None:
    """Print every scalar of the version that is open."""
    age = "not confirmed yet" if config.age is None else f"confirmed {config.age} ago"
    print(f"# generation {config.generation}, version {config.version!r}, {age}")
    for key, value in config.items():
        if not isinstance(value, (list, dict)):
            print(f"{key} = {value!r}")
    sys.stdout.flush()


def main() -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description="Print a configuration and each change to it.")
    parser.add_argument("--once", action="store_true", help="do not wait for changes")
    parser.add_argument("config", help="a name, or the path of a snapshot with a / in it")
    arguments = parser.parse_args()
    try:
        with pullet.open(arguments.config, wait_first=not arguments.once) as config:
            if config.generation:
                show(config)
            if not arguments.once:
                for newer in config.watch():
                    show(newer)
    except pullet.Error as e:
        print(f"example.py: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
