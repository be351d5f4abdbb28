"""What stands on a site's page before the first message: a greeting and a few beginnings to choose from. Pure.

`WidgetSite.clean` refuses what would not fit a phone; without texts of its own a site shows the product's.
"""

from dataclasses import dataclass

MAX_GREETING_CHARS = 200
MAX_SUGGESTIONS = 4
MAX_SUGGESTION_CHARS = 80


class GreetingInvalid(ValueError):
    """A text that cannot be shown; the sentence names it and its limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Greeting:
    """ "" and () = the product's own."""

    greeting: str = ""
    suggestions: tuple[str, ...] = ()


def read_greeting(value: object) -> Greeting:
    """`{"greeting": "Hello.", "suggestions": ["I had a hard day"]}`, each optional. Raises GreetingInvalid."""
    if not isinstance(value, dict) or set(value) - {"greeting", "suggestions"}:
        raise GreetingInvalid('Texts are an object with "greeting" and "suggestions" and nothing else.')
    greeting, suggestions = value.get("greeting", ""), value.get("suggestions", [])
    if not isinstance(greeting, str) or len(greeting) > MAX_GREETING_CHARS:
        raise GreetingInvalid(f"greeting: a text of at most {MAX_GREETING_CHARS} characters.")
    if not isinstance(suggestions, list) or len(suggestions) > MAX_SUGGESTIONS:
        raise GreetingInvalid(f"suggestions: a list of at most {MAX_SUGGESTIONS} texts.")
    for suggestion in suggestions:
        if not isinstance(suggestion, str) or not 0 < len(suggestion.strip()) <= MAX_SUGGESTION_CHARS:
            raise GreetingInvalid(f"suggestions: each has 1 to {MAX_SUGGESTION_CHARS} characters.")
    return Greeting(greeting=greeting.strip(), suggestions=tuple(one.strip() for one in suggestions))


def shown_greeting(value: object) -> Greeting:
    """The texts where they can be shown, else the product's own."""
    try:
        return read_greeting(value)
    except GreetingInvalid:
        return Greeting()
