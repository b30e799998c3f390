"""Sentences with labels: trees, pairs, tagged words, lines."""

import pytest

from regard.data.labelled_sentences import Labelled, read_inference, read_labelled, read_tagged, read_trees
from regard.errors import DataError


def test_trees_have_words_labels_and_phrases(tmp_path):
    path = tmp_path / "trees.txt"
    path.write_text("(3 (2 It) (4 (2 -LRB-) (4 8\u00a01/2)))\n")
    (tree,) = read_trees(path)
    assert (tree.label, tree.words) == ("3", ("It", "(", "8\u00a01/2"))
    assert [(node.label, node.words) for node in tree.phrases()] == [
        ("3", ("It", "(", "8\u00a01/2")),
        ("2", ("It",)),
        ("4", ("(", "8\u00a01/2")),
        ("2", ("(",)),
        ("4", ("8\u00a01/2",)),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("It works", r"line 1 .*\(it does not begin with a bracket\)"),
        ("(3 (2 It) (4 works)", r"line 1 .*\(it has a bracket that is not closed\)"),
        ("(3 (2 It) extra word)", "line 1 should be a labelled tree.*a node has a label, and one word"),
        ("(3)", "line 1 should be a labelled tree.*a node has a label, and one word"),
    ],
)
def test_broken_trees_are_named_by_their_line(tmp_path, line, message):
    path = tmp_path / "trees.txt"
    path.write_text(line + "\n")
    with pytest.raises(DataError, match=message):
        list(read_trees(path))


def test_a_deep_tree_does_not_exhaust_the_stack(tmp_path):
    path = tmp_path / "trees.txt"
    path.write_text("(1 " * 5000 + "(2 a)" + ")" * 5000)
    (tree,) = read_trees(path)
    assert tree.words == ("a",)


def test_inference_pairs_come_from_tables_and_from_json_lines(tmp_path):
    pair = Labelled(("A man sleeps.", "He rests."), "entailment")
    (tmp_path / "a.tsv").write_text("entailment\tA man sleeps.\tHe rests.\n\n-\tx\ty\n")
    (tmp_path / "a.jsonl").write_text(
        '{"gold_label": "entailment", "sentence1": "A man sleeps.", "sentence2": "He rests."}\n'
        '{"gold_label": "-", "sentence1": "x", "sentence2": "y"}\n'
    )
    assert list(read_inference(tmp_path / "a.tsv")) == list(read_inference(tmp_path / "a.jsonl")) == [pair]
    (tmp_path / "b.tsv").write_text("entailment\tA man sleeps.\n")
    with pytest.raises(DataError, match=r"line 1 should be label<TAB>premise<TAB>hypothesis \(it has 2 columns\)"):
        list(read_inference(tmp_path / "b.tsv"))
    (tmp_path / "b.jsonl").write_text("[1]\n")
    with pytest.raises(DataError, match="line 1 should be a JSON object with sentence1"):
        list(read_inference(tmp_path / "b.jsonl"))


def test_tagged_words_and_labelled_lines(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("the\tDET\ncat\tNOUN\n\n\nit\tPRON\n")
    assert list(read_tagged(path)) == [(("the", "cat"), ("DET", "NOUN")), (("it",), ("PRON",))]
    path.write_text("the\tDET\ncat\n")
    with pytest.raises(DataError, match=r"line 2 should be word<TAB>tag; got 'cat'"):
        list(read_tagged(path))
    path.write_text("good\ta fine film\n")
    assert list(read_labelled(path)) == [Labelled(("a fine film",), "good")]
    path.write_text("good\n")
    with pytest.raises(DataError, match=r"line 1 should be label<TAB>text \(it has 1 column\)"):
        list(read_labelled(path))
