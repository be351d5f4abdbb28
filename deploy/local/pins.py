"""The pinned packages: reads the sections of a requirements file and rewrites what the direct ones bring along.

`parts` installs from the sections; `make pins` (`python -m deploy.local.pins` inside an environment that holds the
wanted versions) refreshes the second section of both files from what is installed. Standard library only.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from importlib import metadata

from deploy.local.place import ROOT

MAIN_FILE = ROOT / "requirements.txt"
TEST_FILE = ROOT / "tests" / "requirements.txt"
ALONG = "# --- brought along by the above (written by `make pins`) ---"
ALONE = "# --- installed with --no-deps ---"
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[(?P<extras>[^\]]*)\])?(?P<rest>.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The three sections of a requirements file, as lines; comments and blank lines are left out."""

    direct: tuple[str, ...]
    along: tuple[str, ...]
    alone: tuple[str, ...]

    @property
    def every(self) -> tuple[str, ...]:
        """All pins, in the file's order."""
        return (*self.direct, *self.along, *self.alone)

    def find(self, name: str) -> str:
        """The pin of one package, such as `torch==2.13.0`; raises LookupError."""
        for line in self.every:
            if normalise(_split(line)[0]) == normalise(name):
                return line
        raise LookupError(f"{name} is not pinned")


def normalise(name: str) -> str:
    """Package names compare without case and with one kind of separator."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_pins(text: str) -> Pins:
    """Splits a requirements file at its section lines."""
    head, _, rest = text.partition(ALONG)
    along, _, alone = rest.partition(ALONE)
    return Pins(direct=_lines(head), along=_lines(along), alone=_lines(alone))


def _lines(text: str) -> tuple[str, ...]:
    stripped = (line.partition("#")[0].strip() for line in text.splitlines())
    return tuple(line for line in stripped if line)


def _split(requirement: str) -> tuple[str, set[str], str]:
    match = _REQUIREMENT.match(requirement)
    if match is None:
        raise LookupError(f"not a requirement: {requirement!r}")
    extras = {extra.strip() for extra in (match["extras"] or "").split(",") if extra.strip()}
    return match["name"], extras, match["rest"]


def installed_closure(requirements: tuple[str, ...]) -> dict[str, str]:
    """Everything these packages need, itself included: normalised name -> pin, as installed in this environment."""
    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    asked: set[tuple[str, str]] = set()
    waiting = [(name, extra) for line in requirements for name, extras, _ in [_split(line)] for extra in {"", *extras}]
    while waiting:
        name, extra = waiting.pop()
        if (normalise(name), extra) in asked:
            continue
        asked.add((normalise(name), extra))
        distribution = metadata.distribution(name)
        # A local version (`+cpu`) names a build of one machine; the pin must hold on all.
        found[normalise(name)] = f"{distribution.metadata['Name']}=={distribution.version.partition('+')[0]}"
        for needed in map(Requirement, distribution.requires or ()):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(needed.name, wanted) for wanted in {"", *needed.extras}]
    return found


def rewrite(text: str, *, leave_out: set[str]) -> tuple[str, set[str]]:
    """Returns the file with a fresh second section, and the names it now holds; `leave_out` are pinned elsewhere."""
    pins = read_pins(text)
    closure = installed_closure(pins.direct)
    direct = {normalise(_split(line)[0]) for line in pins.direct}
    along = sorted(pin for name, pin in closure.items() if name not in direct | leave_out)
    head = text.partition(ALONG)[0]
    tail = text.partition(ALONE)
    section = "\n".join([ALONG, *along]) + "\n"
    return head + section + ("\n" + tail[1] + tail[2] if tail[1] else ""), set(closure)


def main() -> int:
    """Rewrites both files in place."""
    main_text, main_names = rewrite(MAIN_FILE.read_text(), leave_out=set())
    test_text, _ = rewrite(TEST_FILE.read_text(), leave_out=main_names)
    MAIN_FILE.write_text(main_text)
    TEST_FILE.write_text(test_text)
    print(f"{MAIN_FILE.name}: {len(main_names)} packages; tests/{TEST_FILE.name} rewritten.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
