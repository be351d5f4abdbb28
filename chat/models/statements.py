"""SQL that is written once and run many times: the statements of a turn, without the ORM's work for each.

The ORM builds and compiles a query anew each time, which costs 10 to 20 times as much CPU as running it. A `Select` is
a queryset whose SQL is kept; `insert` and `update` write a row's columns. Values are adapted and read back as the ORM
does it, on both databases; what is written here is read by the ORM and the other way round. Signals are not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

Row = TypeVar("Row")
Instance = TypeVar("Instance", bound=models.Model)
Kind = type[UUID] | type[int] | type[str] | type[datetime]


class Select(Generic[Row]):
    """A queryset with named parameters, compiled at its first use on each kind of database.

    `build` gets one value for each parameter and must use it as it is, once or more; what it decides by the value is
    decided once. Rows are what the queryset gives: instances, or tuples of `values_list`.
    """

    def __init__(self, build: Callable[..., models.QuerySet[Any, Row]], **kinds: Kind) -> None:
        self._build = build
        self._kinds = kinds
        self._compiled: dict[str, _Compiled] = {}

    def all(self, **values: object) -> list[Row]:
        """Every row."""
        connection = _connection()
        compiled = self._compiled.get(connection.vendor)
        if compiled is None:
            compiled = self._compiled[connection.vendor] = self._compile(connection)
        return cast("list[Row]", compiled.run(connection, values))

    def first(self, **values: object) -> Row | None:
        """The first row, or None. The queryset should stop there by itself (`[:1]`)."""
        rows = self.all(**values)
        return rows[0] if rows else None

    def _compile(self, connection: BaseDatabaseWrapper) -> _Compiled:
        marks = {name: _mark(kind, number) for number, (name, kind) in enumerate(self._kinds.items(), start=1)}
        queryset = self._build(**marks)
        compiler = queryset.query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        names = {_adapted(mark, connection): name for name, mark in marks.items()}
        places = tuple((names.get(_hashable(value)), value) for value in parameters)
        missing = set(marks) - {name for name, _ in places}
        if missing:
            raise ValueError(f"The SQL does not hold the parameters {sorted(missing)}.")
        columns = [column for column, _, _ in compiler.select]
        is_rows = issubclass(queryset._iterable_class, models.query.ModelIterable)
        return _Compiled(
            sql=sql,
            places=places,
            converters=compiler.get_converters(columns),
            model=queryset.model if is_rows else None,
            names=[column.target.attname for column in columns] if is_rows else [],
        )


class _Compiled:
    """The SQL with the places of its parameters, and how rows are read."""

    def __init__(
        self,
        *,
        sql: str,
        places: Sequence[tuple[str | None, object]],
        converters: Mapping[int, Any],
        model: type[models.Model] | None,
        names: list[str],
    ) -> None:
        self._sql, self._places, self._model, self._names = sql, places, model, names
        self._converters = [(place, convert, column) for place, (convert, column) in converters.items()]

    def run(self, connection: BaseDatabaseWrapper, values: Mapping[str, object]) -> list[object]:
        adapted = {name: _adapted(value, connection) for name, value in values.items()}
        parameters: list[Any] = [fixed if name is None else adapted[name] for name, fixed in self._places]
        with connection.cursor() as cursor:
            cursor.execute(self._sql, parameters)
            found = cursor.fetchall()
        return [self._read(row, connection) for row in found]

    def _read(self, row: Sequence[Any], connection: BaseDatabaseWrapper) -> object:
        values = list(row)
        for place, converters, column in self._converters:
            for convert in converters:
                values[place] = convert(values[place], column, connection)
        if self._model is None:
            return tuple(values)
        return self._model.from_db(connection.alias, self._names, values)


def insert(row: Instance) -> Instance:
    """Write a new row; an automatic key is set on it."""
    connection = _connection()
    fields, sql = _insert_of(type(row), connection)
    parameters = [field.get_db_prep_save(field.pre_save(row, True), connection) for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        if isinstance(row._meta.pk, models.AutoField):
            (row.pk,) = cursor.fetchone()
    row._state.adding, row._state.db = False, connection.alias
    return row


def update(row: models.Model, *names: str) -> None:
    """Write these fields of a row, by its key."""
    connection = _connection()
    sql = _update_of(type(row), names, connection)
    fields = [row._meta.get_field(name) for name in names]
    parameters = [
        field.get_db_prep_save(field.pre_save(row, False), connection)  # type: ignore[union-attr]
        for field in (*fields, row._meta.pk)
    ]
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)


_inserts: dict[tuple[type[models.Model], str], tuple[list[models.Field[Any, Any]], str]] = {}
_updates: dict[tuple[type[models.Model], tuple[str, ...], str], str] = {}


def _insert_of(model: type[models.Model], connection: BaseDatabaseWrapper) -> tuple[list[models.Field[Any, Any]], str]:
    key = (model, connection.vendor)
    if key not in _inserts:
        fields = [field for field in model._meta.local_concrete_fields if not isinstance(field, models.AutoField)]
        quote = connection.ops.quote_name
        columns = ", ".join(quote(str(field.column)) for field in fields)
        marks = ", ".join(["%s"] * len(fields))
        sql = f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES ({marks})"  # noqa: S608 - names are ours
        if isinstance(model._meta.pk, models.AutoField):
            sql += f" RETURNING {quote(str(model._meta.pk.column))}"
        _inserts[key] = (fields, sql)
    return _inserts[key]


def _update_of(model: type[models.Model], names: tuple[str, ...], connection: BaseDatabaseWrapper) -> str:
    key = (model, names, connection.vendor)
    if key not in _updates:
        quote = connection.ops.quote_name
        columns = [str(model._meta.get_field(name).column) for name in names]  # type: ignore[union-attr]
        changes = ", ".join(f"{quote(column)} = %s" for column in columns)
        table, pk = quote(model._meta.db_table), quote(str(model._meta.pk.column))
        _updates[key] = f"UPDATE {table} SET {changes} WHERE {pk} = %s"  # noqa: S608 - names are ours
    return _updates[key]


def _connection() -> BaseDatabaseWrapper:
    return connections[DEFAULT_DB_ALIAS]


def _mark(kind: Kind, number: int) -> object:
    """A value that no queryset holds by itself, to be found again among the parameters of its SQL."""
    if kind is UUID:
        return UUID(int=(0xB0A7 << 112) + number)
    if kind is int:
        return 1_913_000_000 + number
    if kind is datetime:
        return datetime(1913, 1, number, 1, 2, 3, tzinfo=UTC)
    return f"\x02parameter {number}\x03"


def _adapted(value: object, connection: BaseDatabaseWrapper) -> Any:
    """A parameter as the database driver takes it."""
    if isinstance(value, UUID) and not connection.features.has_native_uuid_field:
        return value.hex
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return value


def _hashable(value: object) -> Any:
    return value if isinstance(value, (str, int, UUID, datetime)) else None
