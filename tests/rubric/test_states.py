"""The words for a visitor's state."""

from rubric.states import CORE_AREAS, CORE_EMOTIONS, Area, Emotion


def test_coverage_is_planned_by_eleven_emotions_and_twelve_areas() -> None:
    assert len(set(CORE_EMOTIONS)) == 11
    assert len(set(CORE_AREAS)) == 12
    assert set(Area) - set(CORE_AREAS) == {Area.CUSTOMER_SUPPORT, Area.GOOD_NEWS}
    assert {Emotion.FRUSTRATION, Emotion.JOY, Emotion.PRIDE}.isdisjoint(CORE_EMOTIONS)
