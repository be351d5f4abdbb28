"""Fields that take what the schema says and nothing near it: a text is a text, a number a number, a flag a flag.

DRF's own fields turn `"3"` into 3 and 5 into `"5"`; a schema that is kept only by halves helps nobody.
"""

from typing import Any

from rest_framework import serializers


class StrictText(serializers.CharField):
    """A JSON text. NUL and lone surrogates were refused by the parser already."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictInteger(serializers.IntegerField):
    """A JSON number without a fraction; not a text, not a flag."""

    def to_internal_value(self, data: Any) -> int:
        is_whole = isinstance(data, int) and not isinstance(data, bool)
        if not is_whole and not (isinstance(data, float) and data.is_integer()):
            self.fail("invalid")
        return super().to_internal_value(int(data))


class StrictFlag(serializers.BooleanField):
    """`true` or `false`."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=type(data).__name__)
        return data
