"""What the product says instead of a reply at level high; operators edit it per site (`safety_message`)."""

from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "data" / "safety_message.md"


@cache
def safety_text() -> str:
    """The product's own text; it promises no person and no time."""
    return _FILE.read_text().strip()
