"""The benchmark scripts fit this version of regard, and what they report of memory holds. No test depends on time."""

import json
import runpy
import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.command_line import write_lines

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
MEMORY = BENCHMARKS / "attention_memory.py"
SCRIPTS = sorted(BENCHMARKS.glob("*.py"))
PEERS = sorted((BENCHMARKS / "peers").glob("*.py"))


def load(script: Path) -> dict:
    return runpy.run_path(str(script), run_name=script.stem)


@cache
def measure(name: str, kind: str, step: str) -> float:
    sizes = Namespace(score=name, batch=4, queries=500, keys=500, dim=256)
    return load(MEMORY)["memory_in_fresh_process"](kind, step, sizes)


@pytest.mark.parametrize("script", [*SCRIPTS, *PEERS], ids=lambda script: script.stem)
def test_every_script_can_be_imported(script, monkeypatch):
    monkeypatch.syspath_prepend(str(script.parent))
    assert load(script)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_script_explains_itself(script, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(script.parent))
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    with pytest.raises(SystemExit) as exit_info:
        load(script)["main"]()
    assert not exit_info.value.code
    assert f"python benchmarks/{script.name}" in capsys.readouterr().out


FLOWS = load(BENCHMARKS / "flow_calls.py")["FLOWS"]


@pytest.mark.parametrize("name", FLOWS)
def test_everyday_flows_stay_straight(name):
    flow, calls, files = FLOWS[name]
    found = flow()
    assert len(found.files) <= calls
    assert found.num_files <= files


def test_the_hansards_are_put_into_ordinary_spelling():
    script = load(BENCHMARKS / "hansards_spelling.py")
    ordinary = [
        "J'ai vu l'homme du ministre.",
        "Il vient de le dire aux hommes.",
        "le haut, des pays, au Canada",
        "l'espace",
    ]
    spelling = script["FrenchSpelling"](ordinary)
    for line, restored in {
        "je ai vu le homme de le ministre .": "J'ai vu l'homme du ministre.",
        "il vient de le dire à les pays , ce est vrai .": "Il vient de le dire aux pays, c'est vrai.",
        "la quasi - élimination de le espace à le Canada ?": "La quasi-élimination de l'espace au Canada ?",
        "50p. 100 , aujourd' hui ( 1440 )": "50 %, aujourd'hui (1440)",
    }.items():
        assert spelling.restore(line) == restored
    for line, restored in {
        "i don ' t know , Mr. Speaker .": "I don't know, Mr. Speaker.",
        '" the S é guin bill , " he said : $ 42 billion ?': '"The Séguin bill," he said: $42 billion?',
        "today ' s so - called budget ( 20 % )": "Today's so-called budget (20%)",
    }.items():
        assert script["restore_english"](line) == restored


def test_rare_words_are_shown_once_more_and_some_of_their_pairs_in_quotation_marks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    script = load(BENCHMARKS / "translator_data.py")
    common = [(f"he sees {number}", f"il voit {number}") for number in range(100)]
    rare = [(f"a heron {number}", f"un héron {number}") for number in range(5)]
    chosen = script["_with_rare_words"](common + 2 * rare + [("one gnu", "seul gnou")], "en-fr")
    plain = [english.strip('"') for english, _ in chosen]
    assert len(set(plain)) == len(plain), "no pair is chosen twice"
    assert sum("heron" in english for english in plain) == 5
    assert sum("sees" in english for english in plain) == script["RARE_COUNT"]
    assert "one gnu" not in plain
    assert any(english[0] == '"' and french.startswith("« ") for english, french in chosen)
    quotes = [script["QUOTES"][language] for language in ("en", "de")]
    assert script["_quoted"](("A heron!", "Ein Reiher!"), quotes) == ('"A heron!"', "„Ein Reiher!“")
    assert script["_quoted"](('"A" heron', "Ein Reiher"), quotes) == ('"A" heron', "Ein Reiher")


def test_links_of_a_pair_are_those_of_its_repetitions_and_of_its_quotation(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    script = load(BENCHMARKS / "translator_data.py")
    pairs = [("a heron!", "un héron !"), ("yes", "oui"), ("a heron!", "un héron !"), ('"a heron!"', "« un héron ! »")]
    for side, language in enumerate(("en", "fr")):
        write_lines(tmp_path / f"train.{language}", [pair[side] for pair in pairs])
    (tmp_path / "aligned/round-0").mkdir(parents=True)
    write_lines(tmp_path / "aligned/round-0/forward.links", ["0-0 1-1"])
    script["write_links"](Namespace(recipe="en-fr", out=tmp_path))
    links = (tmp_path / "train.links").read_text().split("\n")
    assert links == ["0-0 1-1", "", "0-0 1-1", "0-0 1-1 2-2 4-4", ""]


def test_sentences_of_the_tests_are_kept_away_whatever_their_punctuation(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    script = load(BENCHMARKS / "translator_data.py")
    known = script["_letters_of"](["The cat sat down.", "Thank you."])
    assert script["_is_known"](("the cat sat down!", "Le chat s'est assis."), known)
    assert not script["_is_known"](("Thank you!", "Merci !"), known)
    assert set(script["MIXTURES"]) == set(script["HELD_OUT"])
    assert all(name in script["SETS"] for mixture in script["MIXTURES"].values() for name in mixture)


def test_the_recipes_of_the_benchmarks_are_valid():
    gates = load(BENCHMARKS / "babel_gates.py")
    assert all(gates["recipe"](row).train.epochs == gate.epochs for row, gate in gates["GATES"].items())
    glimpses = load(BENCHMARKS / "glimpse_gates.py")
    assert {glimpses["recipe"](row, "mnist").train.epochs for row in glimpses["ROWS"]} == {60}
    variants = load(BENCHMARKS / "luong_variants.py")
    assert len([variants["recipe"](row, "multi30k") for row in variants["ROWS"]]) == 23
    context = load(BENCHMARKS / "context_vector.py")
    assert [context["recipe"]("pairs.tsv", size).model.encoder_hidden for size in context["SIZES"]] == [
        16,
        64,
        256,
        1024,
    ]


@pytest.mark.parametrize("name", ["additive", "concat", "mlp"])
def test_network_scores_stay_under_64_mib_where_the_plain_formula_takes_a_gibibyte(name):
    """b=4, q=k=500, d=256, forward and backward, in a fresh process."""
    assert measure(name, "lean", "both") < 64


def test_the_plain_formula_takes_ten_times_as_much():
    assert measure("additive", "plain", "forward") > 10 * measure("additive", "lean", "both")


@pytest.mark.usefixtures("unchecked")
def test_the_memory_benchmark_prints_its_table_and_writes_its_numbers(tmp_path, monkeypatch, capsys):
    """Memory is not measured again, which takes four processes: the tests above do that."""
    script, out = load(MEMORY), tmp_path / "numbers.json"
    memory = {("plain", "forward"): 8.0, ("lean", "forward"): 2.0, ("plain", "both"): 9.0, ("lean", "both"): 3.0}
    monkeypatch.setitem(
        script["main"].__globals__, "memory_in_fresh_process", lambda kind, step, sizes: memory[kind, step]
    )
    sizes = ["--batch=1", "--queries=5", "--keys=7", "--dim=11", "--repeats=2"]
    monkeypatch.setattr(sys, "argv", [str(MEMORY), *sizes, "--json", str(out)])
    script["main"]()
    table = capsys.readouterr().out
    assert "additive attention" in table
    assert all(saving in table for saving in ("1.0x", "4.0x", "3.0x"))
    rows = json.loads(out.read_text())["rows"]
    assert {(row["kind"], row["pass"]): row["memory_mib"] for row in rows} == memory
    assert all(len(row["times_ms"]) == 2 for row in rows)


@pytest.mark.usefixtures("unchecked")
def test_translators_decode_and_train(monkeypatch):
    script = load(BENCHMARKS / "translators.py")
    recurrent = {"embedding": 8, "hidden": 8, "encoder_hidden": 4}
    transformer = {"embedding": 8, "heads": 2, "feedforward_dim": 8}
    small = {
        name: replace(config, **(transformer if config.architecture == "transformer" else recurrent))
        for name, config in script["CONFIGS"].items()
    }
    for name, value in (("CONFIGS", small), ("VOCABULARY", 50), ("SENTENCE_WORDS", 3)):
        monkeypatch.setitem(script["decoding"].__globals__, name, value)
    for each in [*script["decoding"](), *script["training"]()]:
        for run in each.rivals.values():
            run()
        assert each.items > 0


def test_decoders_compute_what_the_written_loop_computes(monkeypatch):
    script = load(BENCHMARKS / "decoders.py")
    for name in ("CPU_SIZE", "GPU_SIZE"):
        monkeypatch.setitem(script["contests"].__globals__, name, script["Size"](3, 4, 6, 5, 8))
    for each in script["contests"](compiled=False):
        first, *others = (run() for name, run in each.rivals.items() if "no attention" not in name)
        for other in others:
            for actual, expected in zip(other, first, strict=True):
                assert (actual is None) == (expected is None)
                if actual is not None:
                    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_two_source_trees_alternate_and_their_ratios_are_of_neighbouring_runs(monkeypatch):
    script = load(BENCHMARKS / "side_by_side.py")
    order = []

    def fake(name, tree, arguments):
        order.append(str(tree))
        seconds = {"a": [9.0, 1.0, 4.0], "b": [9.0, 2.0, 2.0]}[str(tree)][order.count(str(tree)) - 1]
        return {"times": {"row": {"wall": seconds, "cpu": seconds}}}

    monkeypatch.setitem(script["measure_all"].__globals__, "measure", fake)
    arguments = type("Arguments", (), {"only": ["decode"], "repeats": 2})
    measured = script["measure_all"]({"old": Path("a"), "new": Path("b")}, arguments)
    assert order == ["b", "a", "a", "b", "b", "a"]
    table = script["ratio_table"](measured, "wall")
    cells = [next(iter(column.cells)) for column in table.columns]
    assert cells == ["decode: row", "2,500.0", "2,000.0", "1.25", "0.50 - 2.00"]


def test_two_source_trees_are_compared_in_fresh_processes(tmp_path):
    tree, out = BENCHMARKS.parent / "src", tmp_path / "times.json"
    options = ["--only", "decode", "--repeats", "1", "--lines", "2", "--json", str(out)]
    command = [sys.executable, str(BENCHMARKS / "side_by_side.py"), str(tree), str(tree), *options]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "The translations of both trees are the same." in table
    (pair,) = json.loads(out.read_text())["decode"]
    assert set(pair["old"]["times"]) == {"greedy", "beam 5"}


def test_a_folder_that_is_no_source_tree_is_refused(tmp_path):
    command = [sys.executable, str(BENCHMARKS / "side_by_side.py"), str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "is not a source tree of regard" in done.stderr


STORY = """1 Mary went to the kitchen.
2 John is in the garden.
3 Where is Mary?\tkitchen\t1
4 Mary moved to the garden.
5 Where is Mary?\tgarden\t4
1 John went to the hall.
2 Where is John?\thall\t1
"""


def test_questions_about_stories_are_read_with_their_supporting_facts_and_learned(tmp_path):
    script = load(BENCHMARKS / "story_questions.py")
    questions = list(script["read_questions"](STORY.splitlines()))
    assert [(each.answer, each.support, each.story) for each in questions] == [
        ("kitchen", (0,), 0), ("garden", (2,), 0), ("hall", (0,), 1)
    ]  # fmt: skip
    assert questions[1].facts[2] == ("mary", "moved", "to", "the", "garden"), "a question is no fact"
    names = script["vocabulary"](questions)
    words = {word: number for number, word in enumerate(names, 1)}
    answers = {"garden": 0, "hall": 1, "kitchen": 2}
    batch = script["encode"](questions, words, answers)
    assert batch.present.tolist() == [[False, True, True], [True, True, True], [False, False, True]]
    assert batch.support.nonzero().tolist() == [[0, 1], [1, 2], [2, 2]]
    torch.manual_seed(0)
    model = script["MemoryNetwork"](len(names) + 1, 3, 5, hidden=16, hops=2, dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        logits, weights = model(batch)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, batch.answer).backward()
        optimizer.step()
    assert weights[~batch.present[:, None].expand_as(weights)].eq(0).all()
    assert script["measure"](model, batch)["accuracy"] == 100
    alone = model(script["encode"](questions[:1], words, answers))[0]
    torch.testing.assert_close(alone, model(batch)[0][:1])
