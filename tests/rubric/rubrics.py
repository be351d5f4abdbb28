"""Rubrics, drafts and hypothesis strategies that the tests of `rubric` share."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from rubric.criteria import Criterion, Dimension, Polarity, Rubric, Weights
from rubric.score import Judgement, Score

TEXTS = {
    "C1": "Names the link between the unanswered text and the fear of being replaced",
    "C2": "Does not invent motives for the sister",
    "A1": "Reflects embarrassment in plain words before anything else",
    "A2": "Uses stock comfort that would fit any user",
    "P1": "Offers at most one small next step and asks whether it is wanted",
    "P2": "Leaves the decision with the user",
}
DIMENSIONS = {"C": Dimension.COGNITIVE, "A": Dimension.AFFECTIVE, "P": Dimension.PROACTIVE}


def golden_rubric() -> Rubric:
    """The rubric of golden vector 11.6: weights (.25, .55, .20), A2 is to be avoided."""
    return Rubric(
        weights=Weights(cognitive=0.25, affective=0.55, proactive=0.20),
        criteria=tuple(
            Criterion(
                id=name,
                text=text,
                dimension=DIMENSIONS[name[0]],
                polarity=Polarity.AVOID if name == "A2" else Polarity.WANT,
            )
            for name, text in TEXTS.items()
        ),
    )


def stored_form() -> dict[str, Any]:
    """The example of the stored form, as text from elsewhere may hold it, extra keys included."""
    rubric: dict[str, Any] = dict(golden_rubric().to_json())
    for key in ("fallback", "fallback_reason", "repairs"):
        del rubric[key]
    rubric["state"] = {
        "stage": "opening",
        "emotion_label": "ashamed",
        "emotion_intensity": 0.7,
        "need_summary": "wants someone to grasp why the silence at dinner hurt",
    }
    return rubric | {"dialogue_id": "demo-0007", "turn": 3, "rationale": "early", "provenance": {"seed": 0}}


def draft_form() -> dict[str, Any]:
    """The same content as the compact draft that generators are asked for."""
    draft: dict[str, Any] = {
        "state": {"stage": "opening", "feeling": "ashamed", "strength": 7, "need": "to be understood"},
        "points": {"cognitive": 25, "affective": 55, "proactive": 20},
    }
    for letter, dimension in DIMENSIONS.items():
        draft[dimension.value] = [
            {("avoid" if name == "A2" else "want"): text} for name, text in TEXTS.items() if name.startswith(letter)
        ]
    return draft


def draft_text() -> str:
    return json.dumps(draft_form())


def score_of(levels: dict[str, float | None]) -> Score:
    """A score with these levels; None stands for an abstention."""
    return Score(
        judgements=tuple(
            Judgement(criterion_id=name, level=level, none_reason="abstained" if level is None else None)
            for name, level in levels.items()
        ),
        judge="tests",
        prompt_sha256="0" * 64,
        attempts=1,
        latency_ms=1.0,
    )


points = st.tuples(*[st.integers(0, 1000)] * 3).filter(any)
weights = points.map(lambda three: Weights.from_points(dict(zip(Dimension, three, strict=True))))
criterion_weights = st.floats(0.01, 10, allow_nan=False)


@st.composite
def rubrics(draw: st.DrawFn) -> Rubric:
    """Rubrics of 2 to 4 criteria per dimension, any weights and polarities."""
    criteria = []
    for letter, dimension in DIMENSIONS.items():
        for number in range(1, draw(st.integers(2, 4)) + 1):
            criteria.append(
                Criterion(
                    id=f"{letter}{number}",
                    text=f"Says what {letter} number {number} asks of it",
                    dimension=dimension,
                    weight=draw(criterion_weights),
                    polarity=draw(st.sampled_from(Polarity)),
                )
            )
    return Rubric(weights=draw(weights), criteria=tuple(criteria))


levels = st.floats(0, 1, allow_nan=False)


@st.composite
def graded(draw: st.DrawFn, *, may_miss: bool = True) -> tuple[Rubric, dict[str, float | None]]:
    """A rubric and a level, perhaps None, for each of its criteria."""
    rubric = draw(rubrics())
    choice = st.one_of(st.none(), levels) if may_miss else levels
    return rubric, {criterion.id: draw(choice) for criterion in rubric}
