"""Lexical entries in four languages, with all their inflected forms, parsed from the lines of the tables."""

# Persian letters are intended, not mistyped Latin ones.
# ruff: noqa: RUF001

from dataclasses import dataclass

# Nominative, accusative, dative, genitive.
CASES = ("nom", "acc", "dat", "gen")
ZWNJ = "\u200c"
# Letters that do not join the next one, so that no non-joiner is needed after them.
_UNJOINED = "اآدذرزژو"


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun: singular and plural in English and French, by case (four singular, four plural) in German."""

    name: str
    kind: str
    english: tuple[str, str]
    french: tuple[str, str]
    french_feminine: bool
    german: tuple[str, ...]
    german_gender: str
    persian: tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective: masculine, feminine and their plurals in French, a stem for the endings in German."""

    name: str
    english: str
    french: tuple[str, str, str, str]
    french_before: bool
    french_before_vowel: str
    german: str
    german_stem: str
    persian: str


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb; its present forms are those of I, he, we and they."""

    name: str
    english: tuple[str, str, str]
    english_particle: str
    french: tuple[str, str, str, str]
    french_infinitive: str
    french_participle: str
    french_future: str
    french_etre: bool
    german: tuple[str, str, str, str]
    german_prefix: str
    german_infinitive: str
    german_participle: str
    german_sein: bool
    persian_word: str
    persian_past: str
    persian_present: str
    persian_bare: bool


@dataclass(frozen=True, slots=True, eq=False)
class Adverb:
    """An adverb: its words in each language, each with the part that it expresses (0 if it only supports another)."""

    name: str
    words: dict[str, tuple[tuple[str, int], ...]]


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split(" | ")]


def noun(kind: str, line: str) -> Noun:
    """Parse a line of the table of nouns."""
    english, french, german, persian = _fields(line)
    singular, _, plural = english.partition("/")
    gender, _, word = french.partition(" ")
    french_singular, _, french_plural = word.partition("/")
    german_gender, _, forms = german.partition(" ")
    return Noun(
        name=singular,
        kind=kind,
        english=(singular, plural or _english_s(singular)),
        french=(french_singular, french_plural or french_plural_of(french_singular)),
        french_feminine=gender == "f",
        german=_german_cases(german_gender, *forms.split("/")),
        german_gender="m" if german_gender == "w" else german_gender,
        persian=(persian, join_persian(persian, "ها")),
    )


def adjective(line: str) -> tuple[Adjective, list[str]]:
    """Parse a line of a table of adjectives; return the adjective and the kinds of nouns that it can modify."""
    english, french, german, persian, kinds = _fields(line)
    before = french.startswith("+")
    forms = french.lstrip("+ ").split("/")
    masculine = forms[0]
    feminine = forms[1] if len(forms) > 1 else masculine if masculine.endswith("e") else masculine + "e"
    basic, _, stem = german.partition("/")
    word = Adjective(
        name=f"{english} {persian}",
        english=english,
        french=(masculine, feminine, french_plural_of(masculine), feminine + "s"),
        french_before=before,
        french_before_vowel=forms[2] if len(forms) > 2 else masculine,
        german=basic,
        german_stem=stem or basic,
        persian=persian,
    )
    return word, kinds.split()


def adverb(line: str) -> Adverb:
    """Parse a line of a table of adverbs."""
    words = {}
    for language, field in zip(("en", "fr", "de", "fa"), _fields(line), strict=True):
        parts = (part.partition("/") for part in field.split())
        words[language] = tuple(
            (form.removeprefix("@"), 0 if form.startswith("@") else int(part or 1)) for form, _, part in parts
        )
    return Adverb(" ".join(form for form, _ in words["en"]), words)


def verb(line: str) -> tuple[Verb, tuple[str, ...]]:
    """Parse a line of a table of verbs; return the verb and the kinds of objects (or subjects) that it takes."""
    english, french, german, persian, takes = _fields(line)
    base, _, past = english.partition("/")
    base, _, particle = base.partition("_")
    past = past.partition("_")[0] or _english_past(base)
    etre, sein = french.startswith("+"), german.startswith("+")
    conjugated = french.lstrip("+ ").split("/")
    infinitive, je, il, nous, ils, participle, future = conjugated if len(conjugated) == 7 else _first_group(french)
    prefix, finite, full, german_participle = _german_verb(german.lstrip("+ "))
    stems, _, present = persian.lstrip("+ ").partition("/")
    word, _, persian_past = stems.rpartition(" ")
    entry = Verb(
        name=english.replace("_", " ") + " " + persian,
        english=(base, _english_s(base), past),
        english_particle=particle,
        french=(je, il, nous, ils),
        french_infinitive=infinitive,
        french_participle=participle,
        french_future=future,
        french_etre=etre,
        german=finite,
        german_prefix=prefix,
        german_infinitive=full,
        german_participle=german_participle,
        german_sein=sein,
        persian_word=word,
        persian_past=persian_past,
        persian_present=present,
        persian_bare=persian.startswith("+"),
    )
    return entry, tuple(takes.split())


def join_persian(word: str, ending: str) -> str:
    """Append an ending to a word, with a zero-width non-joiner between letters that would otherwise join."""
    return word + ending if word[-1] in _UNJOINED else word + ZWNJ + ending


def french_plural_of(word: str) -> str:
    """Return the regular plural of a French noun or masculine adjective."""
    if word[-1] in "sxz":
        return word
    if word.endswith(("eau", "eu")) and word != "bleu":
        return word + "x"
    return word[:-1] + "ux" if word.endswith("al") else word + "s"


def _english_s(word: str) -> str:
    if word.endswith(("s", "x", "sh", "ch", "o")) and word not in ("radio", "piano"):
        return word + "es"
    return word[:-1] + "ies" if word[-1] == "y" and word[-2] not in "aeou" else word + "s"


def _english_past(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if word[-1] == "y" and word[-2] not in "aeou" else word + "ed"


def _first_group(french: str) -> list[str]:
    infinitive = french.lstrip("+ ")
    stem = infinitive[:-2]
    nous = stem + "eons" if stem.endswith("g") else stem[:-1] + "çons" if stem.endswith("c") else stem + "ons"
    return [infinitive, stem + "e", stem + "e", nous, stem + "ent", stem + "é", infinitive]


def _german_cases(gender: str, singular: str, plural: str, genitive: str = "") -> tuple[str, ...]:
    many = (plural, plural, plural if plural[-1] in "ns" else plural + "n", plural)
    if gender == "w":
        return (singular, plural, plural, plural, *many)
    if gender == "f":
        return (singular,) * 4 + many
    genitive = genitive or singular + ("es" if singular[-1] in "sßzx" else "s")
    return (singular, singular, singular, genitive, *many)


def _german_verb(field: str) -> tuple[str, tuple[str, str, str, str], str, str]:
    """Return the separable prefix, the present forms, the infinitive and the participle."""
    forms = field.split("/")
    prefix, _, infinitive = forms[0].rpartition("|")
    stem = infinitive[:-1] if infinitive.endswith(("ern", "eln")) else infinitive[:-2]
    t = "et" if stem[-1] in "td" else "t"
    he = forms[1] if len(forms) > 1 else stem + t
    own = "" if infinitive.startswith(("be", "er", "ver", "ent", "zer", "unter")) or stem.endswith("ier") else "ge"
    participle = forms[2] if len(forms) > 2 else own + stem + t
    i = stem[:-2] + "le" if infinitive.endswith("eln") else stem + "e"
    i = he if he == "weiß" else i
    return prefix, (i, he, infinitive, infinitive), prefix + infinitive, prefix + participle
