"""Thirteen words in a row are found in whatever case and punctuation, twelve are not."""

from training.data.overlap import known_runs, overlaps

SENTENCE = "The kettle was cold again and nobody in the whole house had noticed it but me"


def test_thirteen_words_are_found_and_twelve_are_not() -> None:
    known = known_runs([SENTENCE])
    words = SENTENCE.split()
    assert [hit.first_word for hit in overlaps("a", "So: " + " ".join(words[1:14]).upper(), known=known)] == [1]
    assert overlaps("a", " ".join(words[:12]), known=known) == []


def test_a_hit_names_the_file_and_repeats_no_word() -> None:
    (first, *_) = overlaps("docs/a.md", SENTENCE, known=known_runs([SENTENCE]))
    assert (first.file, first.first_word) == ("docs/a.md", 0)
    assert "kettle" not in repr(first)
