"""How one text becomes another."""

from regard.systems.word_edits import compare_words


def test_edits_say_how_words_become_others():
    edits = compare_words(["the", "agreement", "was", "signed"], ["the", "treaty", "signed", "today"])
    assert [(edit.kind, edit.words) for edit in edits] == [
        ("same", ("the",)),
        ("removed", ("agreement", "was")),
        ("added", ("treaty",)),
        ("same", ("signed",)),
        ("added", ("today",)),
    ]
    assert compare_words([], []) == ()
