"""Attention as a database look-up, and the attention of one sentence to itself with every score."""

from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from jaxtyping import Float
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor
from torch.nn import functional

import regard
from regard import viewing
from regard.attention import align, score
from regard.attention.attend import Attended, attend
from regard.attention.score import Score
from regard.trace import Trace
from regard.viewing import matrix

PERSONS = [
    ("005123174812", "Ali", "Ahmadi"),
    ("015843268901", "Mohammad Reza", "Ali Mohammadi"),
    ("005123174823", "Ashkan", "Mohammadi"),
]
# Each word of the sentence, its role, and the word that it refers to, which is what the learned scores are trained on.
WORDS = [
    ("The", "article", "animal"),
    ("animal", "noun", "cross"),
    ("didn't", "negation", "cross"),
    ("cross", "verb", "animal"),
    ("the", "article", "street"),
    ("street", "noun", "cross"),
    ("because", "conjunction", "tired"),
    ("it", "noun", "animal"),
    ("was", "verb", "tired"),
    ("too", "adverb", "tired"),
    ("tired", "adjective", "animal"),
]
SENTENCE = [word for word, _, _ in WORDS]
NUM_SCORES = 11
TAUGHT = ("general", "additive", "concat", "mlp", "location", "context")
"""The scores with parameters, which are trained on the links of WORDS: their maps show what they were taught."""
DIM = 24
"""Features of a word vector."""


def show_look_ups(console: Console) -> None:
    """Show the table PERSONS, and what is read from it with each kind of match."""
    console.rule("[bold]Attention is a look-up")
    console.print(
        "In the table PERSONS each ID is a key and each row a value. A score measures how well each key matches the "
        "query, an alignment turns the scores into weights, and the result is the weighted sum of the rows.\n"
    )
    console.print(_persons_table(), "", _look_ups_table(), "")


def show_scores(console: Console, folder: Path) -> list[Path]:
    """Show the attention of one sentence to itself with every score; returns the files written."""
    console.rule("[bold]One sentence with every score")
    console.print(
        "Each word attends to the words of its own sentence. dot, scaled dot and cosine have no parameters: they show "
        "how similar the word vectors are. equality compares whole words, prefix only their first letters. The other "
        "scores were trained a moment ago to find the word that each word refers to; for 'it', that is 'animal'. "
        "Cells are attention weights in hundredths.\n"
    )
    untracked = traces_of_every_score()
    traces = dict(track(untracked, "Training the scores", total=NUM_SCORES, console=console, transient=True))
    weights_of_it = [trace.weights[SENTENCE.index("it")] for trace in traces.values()]
    trace_of_it = Trace.from_weights(SENTENCE, list(traces), weights_of_it)
    title = "What each word attends to with the additive score, as it was taught"
    console.print(
        matrix.terminal(trace_of_it, title="What 'it' attends to with each score", width=console.width),
        "",
        matrix.terminal(traces["additive"], title=title, width=console.width),
        "",
    )
    title = "One sentence with every score; those marked as taught were trained on the links of this very sentence"
    named = [(f"{name} (taught)" if name in TAUGHT else name, trace) for name, trace in traces.items()]
    taught = "Additive score, taught which word each word of this sentence refers to"
    return [
        regard.view(traces["additive"]).save(folder / "additive.png", title=taught),
        viewing.save(viewing.heads.figure(named, title=title), folder / "scores.png"),
        traces["additive"].save(folder / "additive.json"),
    ]


def look_ups() -> Iterator[tuple[str, str, Attended]]:
    """Each look-up in PERSONS: the query, how rows are combined, and the result, whose context is the weights."""
    ids = [row[0] for row in PERSONS]
    key, rows = score.codes(ids), torch.eye(len(PERSONS))
    whole, start, mistyped = score.codes(["015843268901"]), score.codes(["00512317"]), score.codes(["005123174832"])
    yield "ID = '015843268901'", "sum", attend(whole, key, rows, score=score.equality, align=align.none)
    yield "ID LIKE '00512317%'", "sum", attend(start, key, rows, score=score.prefix, align=align.none)
    yield "ID LIKE '00512317%'", "average", attend(start, key, rows, score=score.prefix, align=align.normalised)
    # The dot product of one-hot digits counts the digits that agree, so a mistyped ID still finds its row.
    yield "about '005123174832'", "soft average", attend(_digits(mistyped), _digits(key), rows, score=score.dot)


def traces_of_every_score() -> Iterator[tuple[str, Trace]]:
    """The attention of the sentence to itself with each score; scores with parameters are trained first."""
    torch.manual_seed(0)
    vectors = _word_vectors(DIM)
    letters = score.codes([word.lower() for word in SENTENCE])
    first_letters = letters[:, :1]

    def look(by: Score) -> Attended:
        return attend(None if isinstance(by, score.Context) else vectors, vectors, score=by, weights=True)

    def compare_letters(query: Tensor, by: Score) -> Attended:
        values = torch.eye(len(SENTENCE))
        return attend(query, letters, values, score=by, align=align.normalised, weights=True)

    yield "dot", _trace(look(score.dot))
    yield "scaled dot", _trace(look(score.scaled_dot))
    yield "cosine", _trace(look(score.Cosine(4.0)))
    yield "general", _trace(_trained(score.General(DIM, DIM), look))
    yield "additive", _trace(_trained(score.Additive(DIM, DIM, 32), look))
    yield "concat", _trace(_trained(score.Concat(DIM, DIM, 32), look))
    yield "mlp", _trace(_trained(score.MLP(DIM, DIM, (32, 16)), look))
    yield "location", _trace(_trained(score.Location(DIM, max_length=len(SENTENCE)), look))
    yield "context", _trace(_trained(score.Context(len(SENTENCE), DIM), look))
    yield "equality", _trace(compare_letters(letters, score.equality))
    yield "prefix", _trace(compare_letters(first_letters, score.prefix))


def _trained(by: Score, look: Callable[[Score], Attended], goal: float = 0.85) -> Attended:
    """Train a score until the mean weight on the right words exceeds `goal`; returns its attention."""
    targets = torch.tensor([[SENTENCE.index(referent)] for _, _, referent in WORDS])
    optimizer = torch.optim.Adam(by.parameters(), lr=0.01)
    for _ in range(1000):
        attended = look(by)
        on_target = _weights(attended).gather(-1, targets)
        if on_target.mean() > goal:
            break
        optimizer.zero_grad()
        torch.autograd.backward(-on_target.log().mean())
        optimizer.step()
    return attended


def _word_vectors(dim: int) -> Float[Tensor, "n d"]:
    """A random vector for each word; words with the same role have similar vectors."""
    of_role = {role: torch.randn(dim) for role in dict.fromkeys(role for _, role, _ in WORDS)}
    return torch.stack([0.6 * of_role[role] + 0.6 * torch.randn(dim) for _, role, _ in WORDS])


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
    table = Table("query", "rows combined by", title="Weight of each row", title_justify="left")
    for _, name, family in PERSONS:
        table.add_column(f"{name}\n{family}", justify="right")
    for query, how, attended in look_ups():
        table.add_row(query, how, *(f"{weight:.2f}" if weight else "·" for weight in attended.context[0].tolist()))
    return table
