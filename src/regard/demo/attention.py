"""Attention as a database look-up, and one sentence under every score."""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from jaxtyping import Float
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor
from torch.nn import functional

from regard import viewing
from regard.attention import align, score
from regard.attention.attend import Attended, attend
from regard.attention.interfaces import Score
from regard.trace import Trace
from regard.viewing import terminal

PERSONS = [
    ("005123174812", "Ali", "Ahmadi"),
    ("015843268901", "Mohammad Reza", "Ali Mohammadi"),
    ("005123174823", "Ashkan", "Mohammadi"),
]
# Each word of the sentence, the part it plays, and the word that it leans on, which the learned scores are taught.
WORDS = [
    ("The", "article", "animal"),
    ("animal", "thing", "cross"),
    ("didn't", "negation", "cross"),
    ("cross", "verb", "animal"),
    ("the", "article", "street"),
    ("street", "thing", "cross"),
    ("because", "link", "tired"),
    ("it", "thing", "animal"),
    ("was", "verb", "tired"),
    ("too", "degree", "tired"),
    ("tired", "state", "animal"),
]
SENTENCE = [word for word, _, _ in WORDS]


def show_look_ups(console: Console) -> None:
    """The table PERSONS, and what is read from it under each kind of match."""
    console.rule("[bold]Attention is a look-up")
    console.print(
        "In the table PERSONS each ID is a key and each row a value. A score says how well each key matches the "
        "query, an alignment turns that into weights, and the rows are read with these weights.\n"
    )
    console.print(_persons_table(), "", _look_ups_table(), "")


def show_scores(console: Console, folder: Path) -> list[Path]:
    """One sentence attended to by itself under every score; gives the pictures that it drew."""
    console.rule("[bold]One sentence under every score")
    console.print(
        "Each word looks at the whole sentence. dot, scaled dot and cosine learn nothing: they show how alike the "
        "vectors of the words are. equality and prefix compare letters (prefix the first one). The others have just "
        "been taught which word each one leans on ('it' on 'animal', say). Cells are weights in hundredths.\n"
    )
    traces = dict(track(traces_of_every_score(), "Teaching the scores", total=11, console=console, transient=True))
    looks_of_it = [trace.weights[SENTENCE.index("it")] for trace in traces.values()]
    of_it = Trace.from_weights(SENTENCE, list(traces), looks_of_it)
    title = "Where does each word look, with the additive score?"
    console.print(
        terminal.heat_map(of_it, title="Where does 'it' look?", width=console.width),
        "",
        terminal.heat_map(traces["additive"], title=title, width=console.width),
        "",
    )
    title = "One sentence under every score: the words down the side look at the words along the top"
    return [
        viewing.save(viewing.heat_map(traces["additive"], title="additive score"), folder / "additive.png"),
        viewing.save(viewing.heat_maps(list(traces.items()), title=title), folder / "scores.png"),
        traces["additive"].save(folder / "additive.json"),
    ]


def look_ups() -> Iterator[tuple[str, str, Attended]]:
    """Each look-up into PERSONS: its query, the alignment, and the result, whose context counts the rows read."""
    ids = [row[0] for row in PERSONS]
    key, rows = score.codes(ids), torch.eye(len(PERSONS))
    whole, start, mistyped = score.codes(["015843268901"]), score.codes(["00512317"]), score.codes(["005123174832"])
    yield "ID = '015843268901'", "sum", attend(whole, key, rows, score=score.equality, align=align.none)
    yield "ID LIKE '00512317%'", "sum", attend(start, key, rows, score=score.prefix, align=align.none)
    yield "ID LIKE '00512317%'", "average", attend(start, key, rows, score=score.prefix, align=align.normalised)
    # One-hot digits: the dot product counts the digits that agree, so a near miss still finds its row.
    yield "about '005123174832'", "soft average", attend(_digits(mistyped), _digits(key), rows, score=score.dot)


def traces_of_every_score() -> Iterator[tuple[str, Trace]]:
    """The sentence attended to by itself, under each score; learned scores are taught first."""
    torch.manual_seed(0)
    vectors = _word_vectors(24)
    letters = score.codes([word.lower() for word in SENTENCE])
    first_letters = letters[:, :1]

    def look(made: Score) -> Attended:
        return attend(None if isinstance(made, score.Context) else vectors, vectors, score=made, weights=True)

    def compare_letters(query: Tensor, made: Score) -> Attended:
        values = torch.eye(len(SENTENCE))
        return attend(query, letters, values, score=made, align=align.normalised, weights=True)

    yield "dot", _trace(look(score.dot))
    yield "scaled dot", _trace(look(score.scaled_dot))
    yield "cosine", _trace(look(score.Cosine(4.0)))
    yield "general", _trace(_taught(score.General(24, 24), look))
    yield "additive", _trace(_taught(score.Additive(24, 24, 32), look))
    yield "concat", _trace(_taught(score.Concat(24, 24, 32), look))
    yield "mlp", _trace(_taught(score.MLP(24, 24, (32, 16)), look))
    yield "location", _trace(_taught(score.Location(24, max_length=len(SENTENCE)), look))
    yield "context", _trace(_taught(score.Context(len(SENTENCE), 24), look))
    yield "equality", _trace(compare_letters(letters, score.equality))
    yield "prefix", _trace(compare_letters(first_letters, score.prefix))


def _taught(made: Score, look: Callable[[Score], Attended], enough: float = 0.85) -> Attended:
    """What the score looks at once it puts `enough` of its weight, on average, where it should."""
    wanted = torch.tensor([[SENTENCE.index(leans_on)] for _, _, leans_on in WORDS])
    optimizer = torch.optim.Adam(made.parameters(), lr=0.01)
    for _ in range(1000):
        attended = look(made)
        on_target = _weights(attended).gather(-1, wanted)
        if on_target.mean() > enough:
            break
        optimizer.zero_grad()
        torch.autograd.backward(-on_target.log().mean())
        optimizer.step()
    return attended


def _word_vectors(dim: int) -> Float[Tensor, "n d"]:
    """A vector for each word: random, but alike for words that play the same part."""
    of_part = {part: torch.randn(dim) for part in dict.fromkeys(part for _, part, _ in WORDS)}
    return torch.stack([0.6 * of_part[part] + 0.6 * torch.randn(dim) for _, part, _ in WORDS])


def _trace(attended: Attended) -> Trace:
    return Trace.from_weights(SENTENCE, SENTENCE, _weights(attended).detach())


def _weights(attended: Attended) -> Tensor:
    assert attended.weights is not None  # noqa: S101 - they were asked for
    return attended.weights


def _digits(codes: Tensor) -> Float[Tensor, "n d"]:
    return functional.one_hot(codes - ord("0"), 10).flatten(-2).float()


def _persons_table() -> Table:
    table = Table("ID", "Name", "Family", title="PERSONS", title_justify="left")
    for row in PERSONS:
        table.add_row(*row)
    return table


def _look_ups_table() -> Table:
    table = Table("query", "rows read as", title="Weight of each row", title_justify="left")
    for _, name, family in PERSONS:
        table.add_column(f"{name}\n{family}", justify="right")
    for query, how, attended in look_ups():
        table.add_row(query, how, *(f"{weight:.2f}" if weight else "·" for weight in attended.context[0].tolist()))
    return table
