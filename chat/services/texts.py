"""The one way a text gets its hash: SHA-256 of its UTF-8 bytes, as a page computes it too."""

import hashlib


def sha256_of(text: str) -> str:
    """Hexadecimal SHA-256 of the text's UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()
