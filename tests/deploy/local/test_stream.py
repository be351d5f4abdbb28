"""Lines of many processes stay whole in one log, whatever pieces they arrive in."""

import io

from hypothesis import given
from hypothesis import strategies as st

from deploy.local.stream import LINES_KEPT, MAX_LINE_BYTES, PrefixStream


def feed(stream: PrefixStream, *pieces: bytes, pid: int = 1, name: str = "stdout") -> None:
    for piece in pieces:
        stream({"data": piece, "pid": pid, "name": name})


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")), st.data())
def test_a_line_is_whole_wherever_it_was_cut(text: str, data: st.DataObject) -> None:
    raw = f"{text}\n".encode()
    cut = data.draw(st.integers(0, len(raw)))
    out = io.BytesIO()
    stream = PrefixStream(name="web", out=out, is_coloured=False)
    feed(stream, raw[:cut], raw[cut:])
    assert out.getvalue().decode() == f"web          | {text}\n"


def test_two_processes_never_share_a_line() -> None:
    out = io.BytesIO()
    stream = PrefixStream(name="worker", out=out, is_coloured=False)
    feed(stream, b"one ", pid=1)
    feed(stream, b"two ", pid=2)
    feed(stream, b"errors\n", pid=1, name="stderr")
    feed(stream, b"end\n", pid=1)
    feed(stream, b"end\n", pid=2)
    assert [line.partition("| ")[2] for line in out.getvalue().decode().splitlines()] == [
        "errors",
        "one end",
        "two end",
    ]


def test_what_came_without_a_line_end_is_written_at_the_end() -> None:
    out = io.BytesIO()
    stream = PrefixStream(name="web", out=out, is_coloured=False)
    feed(stream, b"no line end", pid=7)
    assert out.getvalue() == b""
    stream.end_of(7)
    assert out.getvalue() == b"web          | no line end\n"
    feed(stream, b"again", pid=8)
    stream.close()
    assert out.getvalue().endswith(b"| again\n")


def test_an_endless_line_is_cut_instead_of_kept_in_memory() -> None:
    out = io.BytesIO()
    stream = PrefixStream(name="web", out=out, is_coloured=False)
    feed(stream, b"x" * (MAX_LINE_BYTES + 1))
    assert out.getvalue() == b"web          | " + b"x" * MAX_LINE_BYTES + b"\n"


def test_the_newest_lines_are_kept_for_a_report() -> None:
    stream = PrefixStream(name="web", out=io.BytesIO(), is_coloured=False)
    feed(stream, b"".join(b"line %d\n" % number for number in range(100)))
    assert stream.last_lines == tuple(f"line {number}" for number in range(100 - LINES_KEPT, 100))


def test_a_long_name_keeps_its_kind_and_its_end_in_the_same_width() -> None:
    out = io.BytesIO()
    feed(PrefixStream(name="engine-policy-0123456789ab", out=out, is_coloured=False), b"a\n")
    assert out.getvalue() == b"engine-789ab | a\n"


def test_a_terminal_gets_colours_and_a_file_gets_none() -> None:
    plain, coloured = io.BytesIO(), io.BytesIO()
    feed(PrefixStream(name="web", out=plain), b"a\n")
    feed(PrefixStream(name="web", out=coloured, is_coloured=True), b"a\n")
    assert b"\033[" not in plain.getvalue()
    assert coloured.getvalue().startswith(b"\033[")


def test_a_terminal_that_hung_up_does_not_end_the_supervision() -> None:
    out = io.BytesIO()
    stream = PrefixStream(name="web", out=out, is_coloured=False)
    out.close()
    feed(stream, b"a\n")
    assert stream.last_lines == ("a",)
