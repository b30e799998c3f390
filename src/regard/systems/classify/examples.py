"""Film reviews to classify."""

from regard.systems.config import ExampleText


def examples() -> tuple[ExampleText, ...]:
    """Reviews of which some parts praise and others blame, or do not mean what they say."""
    return (
        ExampleText(
            "A mixed review",
            "I went in with low hopes. The first half hour is slow, and the dialogue feels forced in places. But then "
            "the film finds its feet! The lead actress is wonderful, funny and moving. The music is gorgeous. Some "
            "scenes are too long. Still, I would recommend it to anyone who likes a good story well told.",
        ),
        ExampleText(
            "Praise and blame",
            "The acting is superb and the photography is beautiful. The script is the worst I have seen in years.",
        ),
        ExampleText("Irony", "Oh great, another sequel that nobody asked for. I laughed twice, once at the credits."),
    )
