"""Two directions that teach each other to align a corpus."""

import pytest
from command_line import refused, regard, write_lines

from regard.data.word_links import read_links
from regard.errors import OptionError
from regard.metrics.alignment import GoldAlignment
from regard.systems.translation.corpus_alignment import align_corpus
from regard.systems.translation.data import world_pairs
from regard.systems.translation.model import Translator

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning", "ignore:.*isinstance.treespec.*")
RECIPE = """
[data]
tokens = "word"
held_out = 5
[model]
architecture = "transformer"
embedding = 16
layers = 2
heads = 2
feedforward_dim = 16
[train]
epochs = 2
max_output_length = 4
"""


@pytest.mark.usefixtures("as_a_user")
def test_each_round_leaves_models_and_links_and_is_not_repeated(tmp_path):
    pairs = world_pairs("babel:en-fr", "train", 60)
    files = [write_lines(tmp_path / name, [pair[side] for pair in pairs]) for side, name in enumerate(("en", "fr"))]
    recipe = tmp_path / "small.toml"
    recipe.write_text(RECIPE)
    reports = []
    gold = [GoldAlignment(("the", "dog"), ("le", "chien"), frozenset({(0, 0)}), frozenset({(0, 0)}))]

    def run(rounds):
        return align_corpus(
            *files, tmp_path / "out", recipe=recipe, rounds=rounds, gold=gold, progress=False, report=reports.append
        )

    (first,) = run(1)
    written = first.links.stat().st_mtime_ns
    before, last = run(2)
    assert before == first
    assert first.links.stat().st_mtime_ns == written
    assert [report.split()[2] for report in reports] == ["layers", "AER", "AER", "AER"]
    forward, backward = Translator.load(last.forward), Translator.load(last.backward)
    for model, earlier in ((forward, first.forward), (backward, first.backward)):
        config = Translator.load(earlier).config
        assert (config.alignment_step, config.alignment_head) == ("input", 0)
        assert (model.config.alignment_layer, model.config.alignment_head) == (config.alignment_layer, 1)
        assert model.metrics["guidance"] > 0
    links, turned = list(read_links(last.links)), list(read_links(last.backward_links))
    assert len(links) == 60
    assert all(
        sorted(one[:, ::-1].tolist()) == sorted(other.tolist()) for one, other in zip(links, turned, strict=True)
    )
    assert "0-0" in regard("align", last.forward, *files, "--reverse", last.backward, check=True).stdout
    assert "give --reverse" in refused("align", last.forward, *files, "--symmetrize", "union")
    with pytest.raises(OptionError, match="rounds must be 1 or more; got 0"):
        run(0)
