"""Reads data files row by row into typed records: all of a file or none of it, with one named error.

Every loader of this folder is a function from one row to one record; `load_file`, `stream_file` and `load_files` do the
rest. Files may be gzipped. An error names file, row and field and repeats nothing of the text.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Generic, Protocol, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from rubric import JsonRefused, RubricError, has_surrogate, read_object
from rubric.corpus.records import reason_of

MAX_FIELD_CHARS = 1_000_000
MAX_LINE_CHARS = 16_777_216
SPLIT_BUCKETS = 100


class DataFileInvalid(RubricError):
    """A data file cannot be used: which, at which row (0 = the file itself), why; nothing of the text."""

    def __init__(self, *, path: Path, row: int, reason: str) -> None:
        super().__init__(f"{path.name}, row {row}: {reason}." if row else f"{path.name}: {reason}.")
        self.path = path
        self.row = row
        self.reason = reason


def _checked_text(value: str) -> str:
    if not value.strip():
        raise ValueError("a text is empty")
    if "\0" in value or has_surrogate(value):
        raise ValueError("a text holds a NUL or half a character")
    return value


DataText = Annotated[str, AfterValidator(_checked_text)]


class Record(BaseModel):
    """A frozen row of a data set; fields that we do not read are ignored, missing ones are errors."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Keyed(Protocol):
    """A record that says who it is, and what a split must keep together."""

    @property
    def id(self) -> str:
        """Unique in its file."""

    @property
    def group(self) -> str:
        """The conversation, question, seeker or profile it belongs to."""


Row = Mapping[str, object]
R = TypeVar("R", bound=Keyed)
Rows = Callable[[Path], Iterator[Row]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Loader(Generic[R]):
    """How one data set is read: `rows` takes a file apart, `record` makes a row into a record.

    `record` gets the row's number, from 1, for data sets whose rows have no id of their own.
    """

    rows: Rows
    record: Callable[[Row, int], R]


def load_file(path: Path, loader: Loader[R]) -> tuple[R, ...]:
    """Every record of a file. Raises DataFileInvalid; a file never loads by half."""
    return tuple(_records(path, loader))


def stream_file(path: Path, loader: Loader[R]) -> Iterator[R]:
    """The records one by one, after the whole file was read once and found good. Raises DataFileInvalid at once."""
    for _ in _records(path, loader):
        pass
    return _records(path, loader)


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded(Generic[R]):
    """What became of several files: records by file, and why the others were refused."""

    records: Mapping[Path, tuple[R, ...]]
    refused: tuple[DataFileInvalid, ...]


def load_files(paths: Sequence[Path], loader: Loader[R]) -> Loaded[R]:
    """Load each file by itself: a bad one is refused whole and named, its neighbours load."""
    records: dict[Path, tuple[R, ...]] = {}
    refused = []
    for path in paths:
        try:
            records[path] = load_file(path, loader)
        except DataFileInvalid as error:
            refused.append(error)
    return Loaded(records=records, refused=tuple(refused))


def _records(path: Path, loader: Loader[R]) -> Iterator[R]:
    seen: set[str] = set()
    number = 0
    try:
        for number, row in enumerate(loader.rows(path), start=1):
            record = loader.record(row, number)
            if record.id in seen:
                raise DataFileInvalid(path=path, row=number, reason="its id stands further up already")
            seen.add(record.id)
            yield record
    except ValidationError as error:
        raise DataFileInvalid(path=path, row=number, reason=reason_of(error)) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFileInvalid(path=path, row=number + 1, reason="the gzip file is cut or damaged") from error
    except UnicodeDecodeError as error:
        raise DataFileInvalid(path=path, row=number + 1, reason="it is not UTF-8") from error
    except OSError as error:
        raise DataFileInvalid(path=path, row=0, reason=f"it cannot be read ({type(error).__name__})") from error


def open_text(path: Path) -> IO[str]:
    """A text file of UTF-8, gzipped or not; line ends stay as they are."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def jsonl_rows(path: Path) -> Iterator[Row]:
    """One JSON object a line; blank lines are passed over."""
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield _object(line, path=path, row=number)


def json_list_rows(path: Path) -> Iterator[Row]:
    """One JSON list of objects that fills the file."""
    with open_text(path) as stream:
        text = stream.read()
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataFileInvalid(path=path, row=0, reason="it is no JSON") from error
    if not isinstance(rows, list):
        raise DataFileInvalid(path=path, row=0, reason="it is no JSON list")
    for number, row in enumerate(rows, start=1):
        yield _object(json.dumps(row), path=path, row=number)


def _object(text: str, *, path: Path, row: int) -> Row:
    try:
        return read_object(text, max_chars=MAX_LINE_CHARS)
    except JsonRefused as error:
        raise DataFileInvalid(path=path, row=row, reason=f"JSON: {error}") from error


def csv_rows(path: Path) -> Iterator[Row]:
    """Comma-separated rows under a header. A row that is longer or shorter than the header is an error."""
    csv.field_size_limit(MAX_FIELD_CHARS)
    with open_text(path) as stream:
        rows = csv.DictReader(stream, restkey="", restval=None, strict=True)
        try:
            for number, row in enumerate(rows, start=1):
                if "" in row or None in row.values():
                    raise DataFileInvalid(path=path, row=number, reason="it has not as many fields as the header")
                yield row
        except csv.Error as error:
            raise DataFileInvalid(path=path, row=rows.line_num, reason="it is no CSV") from error


def tsv_rows(names: Sequence[str]) -> Rows:
    """Rows of tab-separated fields without a header and without quoting, under the given names."""

    def rows(path: Path) -> Iterator[Row]:
        with open_text(path) as stream:
            for number, line in enumerate(stream, start=1):
                fields = line.rstrip("\r\n").split("\t")
                if len(fields) != len(names):
                    reason = f"it has {len(fields)} fields, not {len(names)}"
                    raise DataFileInvalid(path=path, row=number, reason=reason)
                yield dict(zip(names, fields, strict=True))

    return rows


def bucket_of(group: str, *, salt: str) -> int:
    """0-99, the same for everything of one group: what splits go by where a data set brings none."""
    digest = hashlib.sha256(f"{salt}\n{group}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % SPLIT_BUCKETS
