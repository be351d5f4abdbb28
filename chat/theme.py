"""A site's look: three knobs (accent, corner radius, light or dark), and whether text in its accent can be read. Pure.

`WidgetSite.clean` refuses what is wrong in the admin, `chat.checks` says it at every start, and the pages leave it out.
The contrast rule is that of `frontend/src/shared/contrast.ts`, which fits a host page's accent and makes the dark one.
"""

import re
from dataclasses import asdict, dataclass

MIN_CONTRAST = 4.5  # WCAG, text of ordinary size
GROUNDS = ("#ffffff", "#f6f7f5")  # what the accent stands on, as `frontend/src/shared/base.css` has it
MAX_RADIUS_PX = 32
SCHEMES = ("light", "dark", "auto")
KNOBS = ("accent", "radius", "scheme")
_COLOR = re.compile(r"#[0-9a-f]{6}")


class ThemeInvalid(ValueError):
    """A knob that cannot be used; the sentence names it and what to write instead."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Theme:
    """The knobs; None = the product's own."""

    accent: str | None = None
    radius: int | None = None
    scheme: str | None = None

    def as_json(self) -> dict[str, str | int | None]:
        """As the visitor's page reads it."""
        return asdict(self)


def read_theme(value: object) -> Theme:
    """`{"accent": "#17696a", "radius": 14, "scheme": "auto"}`, each knob optional. Raises ThemeInvalid."""
    if not isinstance(value, dict):
        raise ThemeInvalid("A theme is an object of knobs, such as {}.".format('{"accent": "#17696a"}'))
    unknown = sorted(set(value) - set(KNOBS))
    if unknown:
        raise ThemeInvalid(f"There is no knob {unknown[0]!r}; the knobs are {', '.join(KNOBS)}.")
    return Theme(
        accent=_read_accent(value.get("accent")),
        radius=_read_radius(value.get("radius")),
        scheme=_read_scheme(value.get("scheme")),
    )


def shown_theme(value: object) -> Theme:
    """The theme where it can be used, else the product's own look."""
    try:
        return read_theme(value)
    except ThemeInvalid:
        return Theme()


def contrast(first: str, second: str) -> float:
    """WCAG contrast of two `#rrggbb`: 1 (the same) to 21 (black on white)."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def readable(accent: str) -> str:
    """The accent itself, or the nearest darker one whose text reaches 4.5:1 on every ground."""
    for percent in range(100):
        candidate = _darker(accent, share=percent / 100)
        if all(contrast(candidate, ground) >= MIN_CONTRAST for ground in GROUNDS):
            return candidate
    return "#000000"


def _read_accent(value: object) -> str | None:
    if value is None:
        return None
    accent = value.strip().lower() if isinstance(value, str) else ""
    if not _COLOR.fullmatch(accent):
        raise ThemeInvalid("accent: write a colour as # and six hexadecimal digits, such as #17696a.")
    worst = min(contrast(accent, ground) for ground in GROUNDS)
    if worst < MIN_CONTRAST:
        raise ThemeInvalid(
            f"accent: text in {accent} could not be read: its contrast is {worst:.1f}:1, {MIN_CONTRAST}:1 is needed. "
            f"{readable(accent)} is the nearest that can be."
        )
    return accent


def _read_radius(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_RADIUS_PX:
        raise ThemeInvalid(f"radius: a whole number of pixels from 0 to {MAX_RADIUS_PX}.")
    return value


def _read_scheme(value: object) -> str | None:
    if value is None:
        return None
    if value not in SCHEMES:
        raise ThemeInvalid(f"scheme: one of {', '.join(SCHEMES)}.")
    return str(value)


def _parts(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _luminance(color: str) -> float:
    red, green, blue = (_linear(part / 255) for part in _parts(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def _darker(color: str, *, share: float) -> str:
    return "#" + "".join(f"{round(part * (1 - share)):02x}" for part in _parts(color))
