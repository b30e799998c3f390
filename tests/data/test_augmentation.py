"""Pairs in another form: names and numbers that are replaced on both sides, capitals and lower case."""

import numpy as np
import pytest

from regard.data.alignments import parse_links
from regard.data.augmentation import in_other_forms
from regard.data.corpus import checked_links
from regard.data.tokenizer import split_words

PAIR = ("Tom met Marie in 1984.", "Tom a rencontré Marie en 1984.")
LINKS = parse_links("0-0 1-1 1-2 2-3 3-4 4-5 5-6")


def forms(pair, count=200, **shares):
    shares = {"copied": 0.0, "cased": 0.0} | shares
    return list(in_other_forms([pair] * count, seed=3, split=True, **shares))


def test_names_and_numbers_are_the_same_on_both_sides_and_of_the_same_shape():
    for source, target in forms(PAIR, copied=1.0):
        before, after = split_words(source), split_words(target)
        assert [before[0], before[2], before[4]] == [after[0], after[3], after[5]]
        assert before[4].isdecimal()
        assert len(before[4]) == 4
        if before[0].isascii():
            assert (len(before[0]), before[0].istitle()) == (3, True)
        assert (before[1], before[3]) == ("met", "in")
    assert len({source for source, _ in forms(PAIR, copied=1.0)}) == 200


def test_some_names_become_signs_and_some_pairs_end_in_one():
    sources = [source for source, _ in forms(PAIR, copied=1.0)]
    assert 30 < sum(not source.isascii() for source in sources) < 150
    assert any(not source.endswith(".") for source in sources)


@pytest.mark.parametrize("split", [False, True])
def test_links_are_those_of_the_words_and_a_sign_is_linked_with_itself(split):
    links = LINKS if split else parse_links("0-0 4-5")
    for source, target, changed in in_other_forms([(*PAIR, links)] * 99, copied=1.0, cased=0.0, seed=1, split=split):
        checked_links(source, target, changed, split=split)
        count = len(split_words(source) if split else source.split())
        assert changed[: len(links)].tolist() == links.tolist()
        if len(changed) > len(links):
            assert changed[-1].tolist() == [count - 1, len(split_words(target) if split else target.split()) - 1]
    without = next(in_other_forms([(*PAIR, np.zeros((0, 2), np.int64))], copied=1.0, cased=0.0, seed=1))
    assert len(without[2]) == 0


def test_numbers_keep_the_digits_of_their_script():
    for source, target in forms(("سال ۱۹۸۴", "The year 1984"), count=20, copied=1.0):
        old, new = source.split()[1], target.split()[2]
        assert [int(digit) for digit in old] == [int(digit) for digit in new]
        assert old[0] in "۰۱۲۳۴۵۶۷۸۹"


def test_words_that_occur_twice_or_on_one_side_alone_stay(monkeypatch):
    monkeypatch.setattr("regard.data.augmentation.SIGN_AFTER", 0.0)
    for pair in [("Tom and Tom", "Tom et Tom"), ("Germany", "Allemagne"), ("1 dog", "1 chien")]:
        assert forms(pair, count=9, copied=1.0) == [pair] * 9


def test_capitals_are_answered_in_capitals_and_lower_case_in_the_usual_case():
    found = dict(forms(PAIR, cased=1.0))
    assert found == {
        PAIR[0].upper(): PAIR[1].upper(),
        PAIR[0].lower(): PAIR[1],
    }
    persian = ("سال", "Year")
    assert set(forms(persian, cased=1.0)) == {persian}


def test_the_shares_are_kept_and_the_seed_decides():
    pairs = [PAIR] * 4000
    found = list(in_other_forms(pairs, copied=0.2, cased=0.1, seed=5))
    assert found == list(in_other_forms(iter(pairs), copied=0.2, cased=0.1, seed=5))
    assert found != list(in_other_forms(pairs, copied=0.2, cased=0.1, seed=6))
    assert sum(pair != PAIR for pair in found) == pytest.approx(1200, abs=120)
    assert sum(pair[0] == PAIR[0].upper() for pair in found) == pytest.approx(200, abs=60)
