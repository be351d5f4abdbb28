"""The door of every make target: `python3.11 -m deploy.local COMMAND`. Standard library only.

Parses on older Pythons too, so that a wrong one is told so instead of failing on syntax.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this is the check that says so
    print("`make` cannot start yet; nothing was changed.\n")
    print("  - Python 3.11 is needed, this is Python %d.%d." % sys.version_info[:2])  # noqa: UP031
    print("    Install python3.11, or name one: make run PYTHON=/path/to/python3.11")
    sys.exit(1)

import os
import signal

from deploy.local import checks, launch, parts
from deploy.local.place import Place, SettingInvalid, read_place

COMMANDS = (
    *("run", "test", "test-fast", "fmt", "bench-safety", "bench-judge", "bench-chat"),
    *("install", "python", "clean-cache"),
)


def stop_at_once(_number: int, _frame: object) -> None:
    """SIGTERM and a hang-up end the set-up as Ctrl-C does: the command under way is ended, nothing is half made."""
    raise KeyboardInterrupt


def carry_out(command: str, place: Place) -> int:
    """Hands the command to its room."""
    if command == "run":
        return launch.run(place)
    if command == "install":
        return launch.install_only(place)
    if command == "python":
        print(parts.python_of(launch.expected_installation(place).main))
        return 0
    if command == "clean-cache":
        for folder in parts.clean_cache(place, keep=checks.parts_of_tests(place, with_vllm=True)):
            print(f"deleted {folder}")
        return 0
    return checks.run(place, command=command)


def main(arguments: list[str]) -> int:
    """Returns the exit status of the named command."""
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print(f"usage: python3.11 -m deploy.local {{{','.join(COMMANDS)}}}")
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop_at_once)
    try:
        place = read_place(os.environ)
        return carry_out(arguments[0], place)
    except SettingInvalid as error:
        print(f"{error}\nNothing was changed.")
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The parts that were finished stay; the next start goes on from there.")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
