"""How many tags of generated pages stand in the right place after translation, and how many a report names.

    python benchmarks/markup_places.py --model babel --pages 100
    python benchmarks/markup_places.py --model en-fr --pages 100

For the model babel, pages are made of test sentences of the world babel, of which the links between words are known: a
tag around some words of a sentence belongs around the words that they are linked with. Counted are the sentences that
the model translates as the world does, since for others the right places are not known. For en-fr, they are made of
adjectives and nouns of which every translation is listed: a tag is right if it holds translations of its words, and
none of the others.
"""

import argparse
import html
import random
import re
from dataclasses import dataclass
from itertools import islice

import regard
from regard.systems.translate.markup.html import segments
from regard.worlds.babel import Pair, pairs

ADJECTIVES = {
    "red": ("rouge", "rouges"), "white": ("blanc", "blanche", "blancs"), "black": ("noir", "noire", "noirs"),
    "big": ("grand", "grande", "gros", "grosse"), "small": ("petit", "petite"), "green": ("vert", "verte"),
    "old": ("vieux", "vieil", "vieille", "ancien", "ancienne"), "blue": ("bleu", "bleue"),
    "new": ("nouveau", "nouvel", "nouvelle", "neuf", "neuve"), "beautiful": ("beau", "bel", "belle", "magnifique"),
    "young": ("jeune", "jeunes"), "happy": ("heureux", "heureuse", "content", "contente"),
}  # fmt: skip
NOUNS = {
    "house": ("maison",), "dog": ("chien", "chienne"), "car": ("voiture",), "book": ("livre",), "table": ("table",),
    "garden": ("jardin",), "door": ("porte",), "woman": ("femme",), "man": ("homme",), "cat": ("chat", "chatte"),
    "church": ("église",), "bridge": ("pont",), "tree": ("arbre",), "bed": ("lit",),
}  # fmt: skip
TEMPLATES = (
    "The {} is near the {} and the {}.", "He saw a {}, a {} and a {}.", "The {} and the {} are behind the {}.",
    "She gave the {} and the {} to the {}.",
)  # fmt: skip
_WORD = re.compile("|".join(rf"\b{word}\b" for word in (*ADJECTIVES, *NOUNS)))
TAGS = ("b", "i", "em", "a", "span", "strong")


@dataclass(frozen=True)
class Tagged:
    """A sentence with tags around some of its words, and the words of its translation that belong into each."""

    pair: Pair
    places: dict[str, tuple[int, int]]
    """The words of each tag, which is known by its id."""
    tags: dict[str, str]

    @property
    def paragraph(self) -> str:
        """The sentence as HTML."""
        parts = []
        for index, word in enumerate(self.pair.source):
            opened = [name for name, (first, _) in self.places.items() if first == index]
            opened.sort(key=lambda name: -self.places[name][1])
            closed = [name for name, (_, last) in self.places.items() if last == index + 1]
            closed.sort(key=lambda name: -self.places[name][0])
            before = "".join(f'<{self.tags[name]} id="{name}">' for name in opened)
            parts.append(before + html.escape(word) + "".join(f"</{self.tags[name]}>" for name in closed))
        return f"<p>{' '.join(parts)}</p>"

    def right(self, name: str) -> tuple[set[int], set[int]]:
        """The words of the translation that must be in a tag, and those that must not."""
        first, last = self.places[name]
        inside = {j for i, j in self.pair.sure if first <= i < last}
        return inside, {j for i, j in self.pair.sure if not first <= i < last} - inside


def tagged(pair: Pair, number: int, draw: random.Random) -> Tagged:
    """Put up to three tags into a sentence, around words whose translations stand together."""
    places: dict[str, tuple[int, int]] = {}
    tags = {}
    for _ in range(12):
        first = draw.randrange(len(pair.source))
        last = min(len(pair.source), first + draw.choice((1, 1, 2, 2, 3, 4)))
        inside = {j for i, j in pair.sure if first <= i < last}
        others = {j for i, j in pair.sure if not first <= i < last}
        apart = all(last <= a or b <= first or (a <= first and last <= b) or (first <= a and b <= last)
                    for a, b in places.values())  # fmt: skip
        together = inside and not others & set(range(min(inside), max(inside) + 1))
        if apart and together and (first, last) not in places.values():
            name = f"t{number}-{len(places)}"
            places[name], tags[name] = (first, last), draw.choice(TAGS)
        if len(places) == 3:
            break
    return Tagged(pair, places, tags)


def words_in_tags(paragraph: str) -> tuple[list[str], dict[str, set[int]]]:
    """The words of a translated paragraph, and which of them each tag holds."""
    words: list[str] = []
    found: dict[str, set[int]] = {}
    waiting: list[str] = []
    for segment in segments(paragraph)[0]:
        for piece in segment.pieces:
            if piece.kind == "open":
                waiting.append(piece.content.split('"')[1])
                found[waiting[-1]] = set()
            elif piece.kind == "close":
                waiting.pop()
            for _ in piece.content.split() if piece.kind == "text" else ():
                for name in waiting:
                    found[name].add(len(words))
                words.append(_)
    return words, found


def measure(model: regard.systems.translate.model.Translator, direction: str, count: int, seed: int) -> dict[str, int]:
    """Translate pages of three sentences, and count what stands where it belongs."""
    source, _, target = direction.partition("-")
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    drawn = islice(pairs(source, target, split="test", seed=seed, max_words=14), 3 * count)
    sentences = [tagged(pair, number, draw) for number, pair in enumerate(drawn)]
    pages = [
        "<!doctype html>\n<body>\n" + "\n".join(each.paragraph for each in sentences[start : start + 3]) + "\n</body>\n"
        for start in range(0, len(sentences), 3)
    ]
    results = model.translate(pages, markup="html", traces="none")
    counts = {"pages": len(pages), "sentences": len(sentences), "known": 0, "tags": 0, "right": 0, "lost": 0}
    for page, result in zip(pages, results, strict=True):
        paragraphs = [line for line in result.text.split("\n") if line.startswith("<p>")]
        mine = sentences[3 * pages.index(page) :][:3]
        for sentence, paragraph in zip(mine, paragraphs, strict=True):
            words, found = words_in_tags(paragraph)
            counts["lost"] += len(set(sentence.places) - set(found))
            if tuple(words) != sentence.pair.target:
                continue
            counts["known"] += 1
            for name in sentence.places:
                inside, outside = sentence.right(name)
                counts["tags"] += 1
                is_right = inside <= found[name] and not outside & found[name]
                counts["right"] += is_right
                if not is_right:
                    print(sentence.paragraph, "->", paragraph, name in result.note)
    return counts


def measure_everyday(model: regard.systems.translate.model.Translator, count: int, seed: int) -> dict[str, int]:
    """Translate pages of three sentences of listed words, and count what stands where it belongs."""
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    sentences = [everyday(number, draw) for number in range(3 * count)]
    pages = ["<body>\n" + "\n".join(text for text, _ in sentences[at : at + 3]) for at in range(0, len(sentences), 3)]
    results = model.translate(pages, markup="html", traces="none")
    paragraphs = [line for result in results for line in result.text.split("\n") if line.startswith("<p>")]
    counts = {"pages": len(pages), "sentences": len(sentences), "known": 0, "tags": 0, "right": 0, "lost": 0}
    for (given, wanted), paragraph in zip(sentences, paragraphs, strict=True):
        words, found = words_in_tags(paragraph)
        named = [_listed(word) for word in words]
        counts["lost"] += len(set(wanted) - set(found))
        # A sentence of which a word was translated in another way, or twice, is not counted.
        if sorted(filter(None, named)) != sorted(_WORD.findall(given)):
            continue
        counts["known"] += 1
        for name, right in wanted.items():
            counts["tags"] += 1
            inside = {named[place] for place in found[name]} - {""}
            counts["right"] += inside == right
            if inside != right:
                print(given, "->", paragraph)
    return counts


def everyday(number: int, draw: random.Random) -> tuple[str, dict[str, set[str]]]:
    """A sentence with three tags, and the words of each."""
    adjectives, nouns = draw.sample(list(ADJECTIVES), 3), draw.sample(list(NOUNS), 3)
    names = [f"t{number}-{place}" for place in range(3)]
    tags = draw.sample(TAGS, 3)
    phrases, wanted = [], {}
    for name, tag, adjective, noun in zip(names, tags, adjectives, nouns, strict=True):
        kind = draw.randrange(3)
        opened, closed = f'<{tag} id="{name}">', f"</{tag}>"
        phrases.append((
            f"{opened}{adjective}{closed} {noun}", f"{adjective} {opened}{noun}{closed}",
            f"{opened}{adjective} {noun}{closed}",
        )[kind])  # fmt: skip
        wanted[name] = ({adjective}, {noun}, {adjective, noun})[kind]
    return f"<p>{draw.choice(TEMPLATES).format(*phrases)}</p>", wanted


def _listed(word: str) -> str:
    """The English word that a French one translates; "" for others."""
    plain = word.strip(".,!?").lower().rpartition("'")[2]
    return next((english for english, words in (ADJECTIVES | NOUNS).items() if plain in words), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="babel")
    parser.add_argument("--direction", default="en-fr")
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    model = regard.load(given.model, device="cpu")
    if given.model == "babel":
        counts = measure(model, given.direction, given.pages, given.seed)
    else:
        counts = measure_everyday(model, given.pages, given.seed)
    print(counts)
    print(f"{100 * counts['right'] / max(1, counts['tags']):.1f} % of the tags stand where they belong")


if __name__ == "__main__":
    main()
