"""Two hidden Markov models that agree: posteriors by enumeration, and links of the world babel."""

from itertools import islice, product

import pytest
import torch

from regard.errors import DataError
from regard.metrics.alignment import alignment_error_rate
from regard.systems.translate import hidden_markov
from regard.systems.translate.hidden_markov import (
    MAX_JUMP,
    NULL,
    align_by_agreement,
    markov_posteriors,
    word_posteriors,
)
from regard.worlds.babel import pairs


@pytest.mark.parametrize(("n", "m"), [(3, 4), (1, 2), (5, 1)])
def test_posteriors_and_jumps_are_those_of_all_alignments(n, m):
    translations, null = torch.rand(2, n, m), torch.rand(2, m)
    jumps = torch.rand(2 * MAX_JUMP + 3)

    def move(before, after):
        weights = [jumps[index - before + MAX_JUMP + 1] for index in range(n)]
        return weights[after] / sum(weights)

    found, counts = markov_posteriors(translations, null, jumps)
    expected, expected_counts = torch.zeros(2, n, m), torch.zeros_like(jumps)
    for row in range(2):
        chances = {}
        for states in product(range(n), repeat=m):
            chance = torch.tensor(1.0)
            for j, (before, after) in enumerate(zip((-1, *states), states, strict=False)):
                emission = (1 - NULL) * translations[row, after, j] + NULL * null[row, j]
                chance = chance * move(before, after) * emission
            chances[states] = chance
        total = sum(chances.values())
        for states, chance in chances.items():
            for j, (before, after) in enumerate(zip((-1, *states), states, strict=False)):
                linked = (1 - NULL) * translations[row, after, j]
                expected[row, after, j] += chance / total * linked / (linked + NULL * null[row, j])
                expected_counts[after - before + MAX_JUMP + 1] += chance / total
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(counts, expected_counts, rtol=1e-4, atol=1e-6)


def test_without_positions_words_share_by_their_translations():
    found = word_posteriors(torch.tensor([[[0.6], [0.2]]]), torch.tensor([[0.4]]))
    total = (1 - NULL) * 0.8 + NULL * 2 * 0.4
    torch.testing.assert_close(found, torch.tensor([[[0.6], [0.2]]]) * (1 - NULL) / total)


def test_the_links_of_a_world_are_found_from_its_sentences_alone():
    drawn = list(islice(pairs("en", "fr", max_words=10), 400))
    links = align_by_agreement([(pair.source, pair.target) for pair in drawn])
    scores = alignment_error_rate(links, [pair.sure for pair in drawn], [pair.possible for pair in drawn])
    assert scores.error_rate < 0.2
    assert scores.precision > 0.9


def test_pairs_that_cannot_be_aligned_have_no_links(monkeypatch):
    monkeypatch.setattr(hidden_markov, "MAX_WORDS", 5)
    pair = (["the", "dog"], ["le", "chien"])
    found = align_by_agreement([pair, ([], ["a"]), (["a"] * 6, ["a"]), (["The", "dog"], ["Le", "chien"])] * 2)
    assert [bool(links) for links in found] == [True, False, False, True] * 2
    assert found[0] == found[3], "case makes no difference"
    assert align_by_agreement([([], [])]) == [set()]


def test_right_links_of_another_aligner_lower_the_error():
    drawn = list(islice(pairs("en", "fr", max_words=10), 400))
    words = [(pair.source, pair.target) for pair in drawn]
    sure, possible = [pair.sure for pair in drawn], [pair.possible for pair in drawn]
    # Another aligner that finds every other link, and nothing in each third pair.
    given = [set(sorted(links)[::2]) if number % 3 else set() for number, links in enumerate(sure)]
    alone, guided = (
        alignment_error_rate(align_by_agreement(words, links=each), sure, possible) for each in (None, given)
    )
    assert guided.error_rate < alone.error_rate - 0.02
    assert guided.recall > alone.recall


def test_empty_links_change_nothing():
    drawn = [(pair.source, pair.target) for pair in islice(pairs("en", "de", max_words=6), 40)]
    assert align_by_agreement(drawn, links=[()] * 40) == align_by_agreement(drawn)


def test_a_given_link_decides_between_words_that_are_equally_probable():
    drawn = [(["a", "b"], ["x", "y"])] * 3
    assert align_by_agreement(drawn, links=[{(0, 1)}, (), ()])[0] == {(0, 1), (1, 0)}


@pytest.mark.parametrize("link", [(2, 0), (0, 1), (-1, 0)])
def test_links_between_words_that_are_not_there_are_refused(link):
    with pytest.raises(DataError, match=f"Pair 2 has 2 source and 1 target words.*the link {link[0]}-{link[1]}"):
        align_by_agreement([(["a"], ["x"]), (["a", "b"], ["x"])], links=[(), [link]])


def test_groups_may_be_computed_in_parts(monkeypatch):
    drawn = [(pair.source, pair.target) for pair in islice(pairs("en", "de", max_words=6), 40)]
    whole = align_by_agreement(drawn)
    monkeypatch.setattr(hidden_markov, "MAX_CELLS", 50)
    assert align_by_agreement(drawn) == whole
