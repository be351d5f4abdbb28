"""A small conversation that is good, for tests that spoil one thing in it."""

from __future__ import annotations

import copy
from typing import Any, TypeAlias

from rubric.corpus.records import Conversation, MatrixRow

Line: TypeAlias = dict[str, Any]
CRITERIA: Line = {"c-001": [1, 0.25], "c-002": [0.75, 0], "a-001": [1, 0], "a-002": [0, 1], "p-001": [0.5, 0.5]}
BANK_IDS = frozenset(CRITERIA) | {"p-002"}


def turn(number: int) -> Line:
    """One turn with a worse reply; no text is another's."""
    return copy.deepcopy(
        {
            "visitor": f"Kettle number {number} broke and I cried over it.",
            "emotion": "sadness",
            "intensity": 0.6,
            "stage": "exploration",
            "need": "heard",
            "unstated": None,
            "openness": 1,
            "reply": f"That was more than kettle {number}, I think.",
            "strategies": ["reflection"],
            "levels": [1, 2, 0],
            "points": [30, 60, 10],
            "criteria": CRITERIA,
            "own": [["proactive", "avoid", "Tells the person to buy a new kettle.", 0, 1]],
            "worse": {
                "text": f"Number {number} is cheap, buy another one today and be done with it.",
                "fault": "early_advice",
                "reason": "The kettle was never the point.",
                "levels": [0, 0, 0],
            },
        }
    )


def fields(**changed: object) -> Line:
    """A line of six turns as a dictionary."""
    line: Line = {
        "id": "a-001",
        "author": "A",
        "split": "train",
        "profile": {"id": "p-a-001", "age": 40, "life": "postwoman", "note": "Lost her sister in May."},
        "emotion": "sadness",
        "area": "low_mood",
        "manner": "plain",
        "turns": [turn(number) for number in range(6)],
    }
    return line | changed


def conversation(**changed: object) -> Conversation:
    """The same as a record."""
    return Conversation.model_validate(fields(**changed))


def row(**changed: object) -> MatrixRow:
    """Its row in the plan."""
    planned = {
        "id": "a-001",
        "author": "A",
        "split": "train",
        "emotion": "sadness",
        "area": "low_mood",
        "age": 40,
        "life": "postwoman",
        "manner": "plain",
        "turns": 6,
        "has_repair": False,
    }
    return MatrixRow.model_validate(planned | changed)
