"""The command of every verb: what it reads, prints, draws and refuses; and what is special about one of them."""

import json
import subprocess
import sys

import pytest
from helpers.command_line import refused, regard, write_lines
from helpers.models import READ_PAIRS, READ_TEXTS, small_reader
from PIL import Image

from regard import load
from regard.trace import Trace

BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".html": b"<!DOCTYPE html>", ".gif": b"GIF8"}
SHOWN = {
    "translate": " dog ",
    "caption": "",
    "classify": "▓",
    "read": "[sat]",
    "tape": "where write head 1 is",
    "glimpse": " 1 at  50%, 50%",
}
"""What the drawing of the first input shows in the terminal; recognizers attend to nothing."""


def test_arguments_files_and_outputs_say_the_same(case, tmp_path):
    first, second = regard(*case.command, "-i", write_lines(tmp_path / "a", case.lines), check=True).stdout.splitlines()
    model = load(case.models / case.verb, device="cpu")
    options = model.options({"max_length": int(case.command[-1])} if "--max-length" in case.command else {})
    assert [first, second] == [
        model.as_text(result, options)
        for result in model.predict([model.parse(line, options) for line in case.lines], options)
    ]
    alone = regard(*case.command, *case.one, check=True).stdout
    assert first in alone
    if case.verb not in ("tape", "classify"):  # which say more of a single input
        assert alone == f"{first}\n"
        named = regard(*case.command, *case.lines, check=True).stdout.splitlines()
        both = [f"{path}: " if path.endswith(".png") else "" for path in case.lines]
        assert named == [before + line for before, line in zip(both, (first, second), strict=True)]
    done = regard(*case.command, *case.one, "--output", tmp_path / "new" / "out.txt", check=True)
    assert done.stdout == ""
    assert (tmp_path / "new" / "out.txt").read_text(encoding="utf-8") == alone


def test_a_blank_line_is_answered_by_one_line(case, tmp_path):
    path = write_lines(tmp_path / "a", [case.lines[0], "", case.lines[1]])
    first, blank, last = regard(*case.command, "-i", path, check=True).stdout.split("\n")[:-1]
    assert first
    assert last
    assert blank == ""


def test_json_holds_the_whole_result_and_can_be_viewed(case, tmp_path):
    (line,) = regard(*case.command, *case.one, "--json", check=True).stdout.splitlines()
    result = json.loads(line)
    assert list(result)[-1] == "trace"
    assert result.get("image", case.lines[0]) == case.lines[0]
    if case.verb == "recognize":
        assert result["trace"] is None
        return
    Trace.from_dict(result["trace"])
    (tmp_path / "a.json").write_text(line, encoding="utf-8")
    shown = regard("view", tmp_path / "a.json", check=True).stdout
    assert SHOWN[case.verb] in shown
    assert regard(*case.command, *case.one, "--show", "-", check=True).stdout.endswith(shown)
    none = regard(*case.command, *case.one, "--json", "--traces", "none", check=True).stdout
    assert json.loads(none)["trace"] is None


@pytest.mark.parametrize("show", [["--show", "-"], ["--show=-"]])
def test_show_draws_in_the_terminal(case, show):
    if case.verb == "recognize":
        assert "has no attention to show" in refused(*case.command, *case.one, *show)
        return
    text = regard(*case.command, *case.one, check=True).stdout.splitlines()[0]
    lines = regard(*case.command, *case.one, *show, check=True).stdout.splitlines()
    assert len(lines) >= 3
    assert max(map(len, lines)) <= 80
    assert sum(text in line for line in lines) == 1, "said once, by the view or by the command"


@pytest.mark.parametrize("suffix", BEGINNINGS)
def test_show_saves_a_figure_or_a_page(case, suffix, tmp_path):
    path = tmp_path / f"words{suffix}"
    if case.verb == "recognize" or (suffix == ".gif" and case.verb != "caption"):
        refused(*case.command, *case.one, "--show", path)
        assert not path.exists()
        return
    done = regard(*case.command, *case.one, "--show", path, check=True)
    assert path.read_bytes().startswith(BEGINNINGS[suffix])
    assert done.stderr == f"Wrote {path}\n"
    assert done.stdout == regard(*case.command, *case.one, check=True).stdout, "the answer alone"


@pytest.mark.parametrize("verb", ["translate", "read", "classify"])
def test_show_saves_the_one_input_of_a_pipe(verb, models, tmp_path):
    path = tmp_path / "y.html"
    piped = [verb, "-m", models / verb, "--show", path, *(["--lines"] if verb == "classify" else [])]
    assert regard(*piped, input="a dog .\n\n", check=True).stderr == f"Wrote {path}\n"
    said = refused(*piped, "--overwrite", input="a dog .\ntwo dogs\n\n")
    assert f"--show {path} needs exactly one input (got 2). To draw several in the terminal, use --show -." in said
    assert "needs exactly one input (got 0)" in refused(*piped, "--overwrite")


@pytest.mark.parametrize(
    ("verb", "options", "suffix"),
    [
        ("caption", ["--overlay", "colour", "--columns", 1], ".svg"),
        ("caption", ["--cells", "--side", 90, "--seconds", 0.1], ".gif"),
        ("classify", ["--raw", "--title", "Why"], ".html"),
        ("translate", ["--style", "lines", "--pieces"], ".png"),
        ("read", ["--style", "heat_map"], ".png"),
        ("translate", ["--width", 3.3, "--height", 3, "--font-size", 7, "--dpi", 300], ".png"),
        ("caption", ["--width", 5], ".pdf"),
    ],
)
def test_show_takes_the_options_of_the_view(verb, options, suffix, models, tmp_path):
    one = [verb, "-m", models / verb, models / "red.png" if verb == "caption" else "two dogs run ."]
    plain, chosen = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    regard(*one, "--show", plain, check=True)
    regard(*one, "--show", chosen, *options, check=True)
    assert plain.read_bytes() != chosen.read_bytes()
    assert "is for --show: add --show - or --show FILE" in refused(*one, *options)


@pytest.mark.parametrize(
    ("verb", "arguments", "says"),
    [
        ("translate", ["--cells", "--show", "x.png"], "--cells is not for this trace of kind 'translation'"),
        ("translate", ["--style", "lines", "--show", "-"], "--style is for figures and pages"),
        ("translate", ["--font-size", "7", "--show", "-"], "--font-size is for figures: save one as FILE.pdf"),
        ("translate", ["--font-size", "7", "--show", "x.html"], "--font-size is not for this trace"),
        ("caption", ["--overlay", "red", "--show", "x.png"], "overlay"),
        ("glimpse", ["--policy", "left"], 'Invalid value "left" for --policy'),
        ("recognize", ["--top", "0"], "1 or more; got 0"),
        ("translate", ["--beam", "0"], "from 1 to 1000; got 0"),
        ("translate", ["--nbest", "9"], "nbest must not exceed beam, 5"),
        ("translate", ["--temperature", "nan", "--sample"], "temperature"),
        ("translate", ["--traces", "every"], "traces"),
        ("translate", ["--bem", "3"], "--bem"),
    ],
)
def test_wrong_options_are_explained(verb, arguments, says, models, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = models / "red.png" if verb in ("caption", "glimpse", "recognize") else "a dog ."
    assert says in refused(verb, "-m", models / verb, one, *arguments)
    assert not (tmp_path / "x.png").exists()


def test_what_is_wrong_with_any_verb_is_explained(case, tmp_path):
    other = "digits" if case.verb != "recognize" else "en-fr"
    kind = "recognize" if case.verb != "recognize" else "translate"
    one = case.one
    for arguments, says in (
        ([*one, "-i", tmp_path / "f"], "Give the inputs themselves, or files of inputs with --input, not both"),
        (["-i", tmp_path / "no.txt"], "no.txt"),
        ([*one, "--device", "gpu"], "device must be such as 'cpu'"),
        ([*one, "--workers", 2], "are for an output folder, such as --output out/"),
        ([*one, "--output", f"{tmp_path}/"], "is a folder: name the files to read with --input"),
        ([*one, "--show", "-", "--traces", "none"], "--show needs what was attended to"),
    ):
        message = refused(*case.command, *arguments)
        assert says in message, message
    assert f"{other} holds a {kind} model, not a {case.verb} model" in refused(case.verb, "-m", other, *one)
    assert "no shipped model named 'phot'" in refused(case.verb, "-m", "phot", *one)
    if case.verb != "tape":
        several = refused(*case.command, *case.lines, "--show", tmp_path / "x.png")
        assert "x.png needs exactly one input (got 2)" in several
    if case.verb != "recognize":
        assert ".png, .svg, .pdf, .html" in refused(*case.command, *one, "--show", tmp_path / "x.bmp")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["caption", "recognize", "glimpse"])
def test_what_is_no_image_is_explained(verb, models, tmp_path):
    command = [verb, "-m", models / verb]
    assert f"No images given. Usage: regard {verb} IMAGE ..." in refused(*command)
    assert "Expected the name of an image; got ''" in refused(*command, "")
    assert "There is no image" in refused(*command, tmp_path / "none.png")
    assert "text.png is not an image" in refused(*command, write_lines(tmp_path / "text.png", "ab"))


def test_custom_code_runs_only_with_trust(models, tmp_path):
    folder = tmp_path / "own"
    load(models / "translate").save(folder)
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"score": "additive"', '"score": "regard.attention.score:MLP"'))
    assert "loading it runs that code" in refused("translate", "-m", folder, "a")
    assert "do not fit its config" in refused("translate", "-m", folder, "a", "--trust"), "of another score"


def test_long_work_has_a_progress_bar_on_a_terminal(case, tmp_path, monkeypatch):
    command = [*case.command, "-i", write_lines(tmp_path / "t.txt", case.lines), "--overwrite", "-o", tmp_path / "out"]
    assert regard(*command, check=True).stderr == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if stderr were a terminal
    done = regard(*command, check=True)
    assert case.verb.capitalize() in done.stderr
    assert "2 " in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("verb", ["translate", "caption"])
def test_nbest_prints_scores_and_samples_follow_their_seed(verb, models):
    command = [verb, "-m", models / verb, "--max-length", 4, "a dog" if verb == "translate" else models / "red.png"]
    lines = regard(*command, "--nbest", 3, check=True).stdout.splitlines()
    scores = [float(line.split("\t")[0]) for line in lines]
    assert len(lines) == 3
    assert scores == sorted(scores, reverse=True)
    drawn = [regard(*command, "--sample", "--nbest", 4, "--seed", 3, check=True).stdout for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(drawn[0].splitlines()) == 4


def test_json_of_translations_carries_alternatives_and_every_head(models, tmp_path):
    done = regard("translate", "-m", models / "translate", "--nbest", 2, "--json", "a dog", "two dogs", check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["source"] for line in lines] == ["a dog", "two dogs"]
    for line in lines:
        assert line["score"] >= line["alternatives"][0]["score"]
        for result in (line, *line["alternatives"]):
            axes = {axis["name"]: axis["labels"] for axis in result["trace"]["axes"]}
            assert len(result["trace"]["maps"][0]["weights"]) == len(axes["target"])
    plain = regard("translate", "-m", models / "plain", "--json", "a", check=True).stdout
    assert json.loads(plain)["trace"] is None
    assert "has no attention to show" in refused("translate", "-m", models / "plain", "a", "--show", "-")
    command = ["translate", "-m", models / "transformer", "--json", "--traces", "all", "--max-length", 5]
    every = regard(*command, "a dog", "two dogs", check=True).stdout
    assert len(json.loads(every.splitlines()[0])["trace"]["maps"]) == 1 + 3 * 2 * 2
    (tmp_path / "t.json").write_text(every, encoding="utf-8")
    assert "two" in regard("view", tmp_path / "t.json", "--line", 2, check=True).stdout
    regard("view", tmp_path / "t.json", "--layer", 2, "--head", 1, "-o", tmp_path / "t.png", check=True)
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    assert "--line must be from 1 to 2" in refused("view", tmp_path / "t.json", "--line", 3)
    assert "no map with layer=9" in refused("view", tmp_path / "t.json", "--layer", 9)


def test_the_shipped_translator_is_the_default():
    piped = regard("translate", input="A dog is running.\nGood night.\n", check=True).stdout
    assert piped == regard("translate", "A dog is running.", "Good night.", check=True).stdout
    assert piped.splitlines()[0] == "Un chien court."


@pytest.mark.parametrize("name", ["silent", "show_and_tell"])
def test_a_caption_without_words_or_attention_is_not_shown(name, models, tmp_path):
    image = models / "red.png"
    said = refused("caption", image, "--model", models / name, "--show", tmp_path / "words.png")
    assert ("The answer is empty" if name == "silent" else "has no attention to show") in said
    assert not (tmp_path / "words.png").exists()


def test_a_document_is_classified_with_what_carried_it(models):
    model, text = load(models / "classify", device="cpu"), "The film was fine. I loved it!"
    first, others, *carriers = regard("classify", "-m", models / "classify", text, check=True).stdout.splitlines()
    result = model.classify(text)
    (other,) = [label for label in result.probabilities if label != result.label]
    assert first == f"{result.label} {result.probability:.3f}"
    assert others == f"  other classes: {other} {result.probabilities[other]:.3f}"
    assert len(carriers) == 2
    strongest = max(result.sentences, key=lambda each: each.weight)
    assert strongest.text in carriers[0]


def test_documents_are_texts_files_lines_or_the_whole_pipe(models, tmp_path):
    command, text = ["classify", "-m", models / "classify"], "The film was fine. I loved it!"
    (tmp_path / "a.txt").write_text(f"{text}\n\nMore of it.\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("one\n", encoding="utf-8")
    assert len(regard(*command, "--file", tmp_path / "a.txt", tmp_path / "b.txt", check=True).stdout.splitlines()) == 2
    said = regard(*command, "--input", tmp_path / "a.txt", check=True).stdout
    alone = regard(*command, text, check=True).stdout
    assert said.splitlines()[0] == alone.splitlines()[0]
    assert said == regard(*command, "--lines", input=f"{text}\n\nMore of it.\n", check=True).stdout
    assert regard(*command, input=text, check=True).stdout == alone
    assert "needs at least one word" in refused(*command, " ")
    assert "not both" in refused(*command, text, "--file", tmp_path / "a.txt")
    assert "There is no file" in refused(*command, "--file", tmp_path / "none.txt")


def test_lines_are_answered_as_they_arrive(models):
    """An endless pipe gives results before its end."""
    command = ["classify", "-m", str(models / "classify"), "--lines", "--json", "--traces", "none"]
    lines = "".join(f"a fine room {number}\n" for number in range(600))
    program = [sys.executable, "-m", "regard", *command]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        running.stdin.write(lines)
        running.stdin.flush()
        assert json.loads(running.stdout.readline())["label"]
        running.kill()


def test_a_language_model_prints_perplexity_and_bits(models):
    done = regard("read", "--model", models / "read", "The cat sat.", check=True)
    perplexity, words = done.stdout.strip().split("\t")
    reading = small_reader("lstmn_model").read("The cat sat.")
    assert float(perplexity) == pytest.approx(reading.perplexity, abs=0.1)
    assert [each.split("/")[0] for each in words.split()] == ["The", "cat", "sat", "."]
    done = regard("read", "--model", models / "read", "the zebra sat", check=True)
    assert [each.split("/")[0] for each in done.stdout.split()[1:]] == ["the", "zebra(unknown)", "sat"]


def test_readers_label_tag_and_compare_lines_in_order(models, tmp_path):
    done = regard("read", "--model", models / "lstmn_classifier", input="\n\n".join(READ_TEXTS), check=True)
    lines = done.stdout.splitlines()
    assert lines[1::2] == [""] * (len(READ_TEXTS) - 1), "a blank line stays blank"
    rows = [line.split("\t") for line in lines[::2]]
    assert [row[2] for row in rows] == READ_TEXTS
    assert {row[0] for row in rows} <= {"bad", "good"}
    tagged = regard("read", "--model", models / "tagger", "the cat", check=True).stdout.split()
    assert [each.partition("/")[0] for each in tagged] == ["the", "cat"]
    pairs = ["read", "--model", models / "pairs"]
    one = regard(*pairs, *READ_PAIRS[0], check=True).stdout
    (tmp_path / "pairs.tsv").write_text("".join(f"{premise}\t{text}\n\n" for premise, text in READ_PAIRS))
    many = regard(*pairs, "--input", tmp_path / "pairs.tsv", check=True).stdout
    assert many.splitlines()[0] == one.strip()
    assert [bool(line) for line in many.splitlines()] == [True, False] * len(READ_PAIRS)
    assert "PREMISE HYPOTHESIS; got 1" in refused(*pairs, "one")
    assert "A line should be premise<TAB>hypothesis; got 'one'" in refused(*pairs, input="one\n")


def test_text_is_generated(models):
    words = regard("read", "--model", models / "read", "--generate", "the cat", "--max-length", "3", check=True)
    assert words.stdout.split()[:2] == ["the", "cat"]
    several = ["--sample", "--nbest", "3", "--seed", "1", "--max-length", "4"]
    drawn = regard("read", "--model", models / "read", "--generate", *several, check=True).stdout
    assert len(drawn.splitlines()) == 3
    assert "only for language models" in refused("read", "--model", models / "tagger", "--generate", "the")


def test_a_tape_is_answered_and_random_ones_follow_length_and_seed(models, tmp_path):
    command = ["tape", "-m", models / "tape"]
    before, answer, *rest = regard(*command, "101", "001", check=True).stdout.splitlines()
    assert before == "in    101 001"
    assert answer.startswith("out   ")
    assert "of 6 bits right" in rest[-1]
    lines = regard(*command, "-i", write_lines(tmp_path / "rows", ["101 001"]), check=True).stdout
    assert answer == f"out   {lines.strip()}"
    assert len(regard(*command, "--length", 7, check=True).stdout.splitlines()[0].split()) == 8
    longest = regard(*command, check=True).stdout.splitlines()[0]
    assert len(longest.split()) == 6, "as long as the longest of the training"
    drawn = [regard(*command, "--seed", seed, check=True).stdout for seed in (3, 3, 4)]
    assert drawn[0] == drawn[1] != drawn[2]
    regard(*command, "--length", 12, "--slots", 15, check=True)


@pytest.mark.parametrize(
    ("model", "arguments", "says"),
    [
        ("tape", ["--length", "10"], "copy of 10 vectors needs a memory of 10 slots or more; this one has 9"),
        ("tape", ["101", "--length", "3"], "Give rows, or --length for random ones, not both"),
        ("tape", ["10"], "rows of 3 numbers, bits; got 1 x 2"),
        ("sort", ["10"], "Rows of priority-sort have priorities"),
        ("tape", ["--length", "-1"], "0"),
        ("tape", ["tape-copy", "101"], "Rows are bits, such as 01101001; got 'tape-copy'. A model is named with -m."),
    ],
)
def test_wrong_tapes_are_explained(model, arguments, says, models):
    assert says in refused("tape", "-m", models / model, *arguments)


def test_what_glimpses_attended_to_is_cropped(models, tmp_path):
    command, image = ["glimpse", "-m", models / "glimpse"], models / "red.png"
    (line,) = regard(*command, image, check=True).stdout.splitlines()
    assert "looked at (30,20) (" in line
    crop = tmp_path / "part.png"
    said = regard(*command, image, "--crop", crop, "--json", "--num-glimpses", 2, check=True)
    result = json.loads(said.stdout)
    assert len(result["beliefs"]) == 2
    left, top, right, bottom = result["crop_box"]
    with Image.open(crop) as part:
        assert part.size == (right - left, bottom - top)
    assert said.stderr == f"Wrote {crop}\n"
    message = refused(*command, image, image, "--crop", tmp_path / "b.png")
    assert f"--crop {tmp_path / 'b.png'} needs exactly one input (got 2)." in message
    assert "--crop saves an image, such as FILE.png" in refused(*command, image, "--crop", tmp_path / "a.txt")
