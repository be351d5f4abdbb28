"""Small files in the shapes of the public data sets, for tests that spoil one thing in them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Fields = dict[str, Any]


def write(path: Path, text: str) -> Path:
    """A file of UTF-8, gzipped where its name says so."""
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_jsonl(path: Path, rows: Iterable[object]) -> Path:
    """One JSON object a line."""
    return write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_csv(path: Path, rows: Sequence[Fields]) -> Path:
    """A header and its rows."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return write(path, stream.getvalue())


def esconv(**changed: object) -> Fields:
    """A conversation as the released splits have it."""
    return {
        "experience_type": "Current Experience",
        "emotion_type": "anxiety",
        "problem_type": "Job Crisis",
        "situation": "The rota came out and my name is not on it.",
        "survey_score": {"seeker": {"initial_emotion_intensity": "4", "final_emotion_intensity": "2"}, "supporter": {}},
        "dialog": [
            {"text": "Evening.", "speaker": "sys", "strategy": "Others"},
            {"text": "They left me off the rota.", "speaker": "usr"},
            {"text": "Since when?", "speaker": "sys", "strategy": "Question"},
            {"text": "Monday.", "speaker": "usr"},
            {"text": "And nobody said why.", "speaker": "usr"},
            {"text": "Not to be told is hard.", "speaker": "sys", "strategy": "Reflection of feelings"},
            {"text": "You could ask her tomorrow.", "speaker": "sys", "strategy": "Providing Suggestions"},
            {"text": "I could.", "speaker": "usr"},
            {"text": "Good night.", "speaker": "sys", "strategy": "Others"},
        ],
    } | changed


def failed_esconv() -> Fields:
    """A conversation as the failed ones have it."""
    return esconv(
        dialog=[
            {"speaker": "speaker", "annotation": {"feedback": "2"}, "content": "They left me off the rota.\n"},
            {"speaker": "listener", "annotation": {"strategy": "Questions"}, "content": "hello"},
            {"speaker": "listener", "annotation": {"strategy": "Other"}, "content": "hello"},
        ]
    )


def dialogue(**changed: object) -> Fields:
    """One of EmpatheticDialogues."""
    said = [{"actor": "speaker", "text": "My dog came home."}, {"actor": "listener", "text": "By himself?"}]
    return {"conv_id": "hit:0", "emotion": "joyful", "situation": "The dog was back.", "utterances": said} | changed


def empathy(**changed: object) -> Fields:
    """A row of an EPITOME file."""
    row = {"sp_id": "s1", "rp_id": "r1", "seeker_post": "I failed.", "response_post": "That hurts.", "level": "2"}
    return row | {"rationales": "That hurts.|"} | changed


def answer(**changed: object) -> Fields:
    """A row of CounselChat."""
    row = {"questionID": "7", "questionTitle": "Sleep", "questionText": "I lie awake.", "topic": "sleep"}
    return row | {"answerText": "Since when?", "upvotes": "1", "views": "20", "split": "train"} | changed


def reaction(**changed: object) -> Fields:
    """A row of Empathic Reactions."""
    row = {"message_id": "m1", "response_id": "r1", "article_id": "9", "empathy": "5.667", "distress": "1.0"}
    return row | {"empathy_bin": "1", "distress_bin": "0", "essay": "I kept thinking of the boy."} | changed


def profile(**changed: object) -> Fields:
    """A profile of RLVER in English with ASCII punctuation."""
    row = {"id": "p1", "player": "* name: Ann\n* job: archivist\n  nights\n", "scene": "A quarrel.", "task": "advice"}
    return row | {"main_cha": "被动型", "cha_group": ["modest"]} | changed


def change(**changed: object) -> Fields:
    """A row of SAGE's turn-level changes."""
    return {"id": "p1", "model": "m", "turn": 1, "emotion_before": 40, "change": -50, "emotion_after": 0} | changed
