"""Translating a document: its segments are translated, and everything else stays as it is, byte for byte."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from regard.data.text import well_formed
from regard.errors import counted
from regard.systems.translate.config import TranslationOptions
from regard.systems.translate.markup.pieces import Piece, marked
from regard.systems.translate.markup.placing import Placement
from regard.systems.translate.texts import Decode, joined, translate_in_parts, with_traces, without_traces
from regard.systems.translate.translation import Translating, Translation

MAX_NAMED = 5
"""Maximum number of doubtful places that a report names."""


@dataclass(frozen=True)
class Segment:
    """A run of text and inline tags in a document, in which every element is closed, and which has letters."""

    start: int
    """Where it begins in the document; its translation takes its place."""
    end: int
    pieces: Sequence[Piece]
    opening: str = ""
    """What is written before its translation, such as a tag that the document does not have yet."""
    closing: str = ""


class Format(Protocol):
    """A kind of document: a module with these functions."""

    def segments(self, document: str) -> tuple[list[Segment], str]:
        """The segments of a document, in order, and what cannot be translated; a DataError where it is none."""

    def escape(self, text: str) -> str:
        """Text as the document writes it between tags."""

    def finished(self, segment: Segment, text: str) -> str | None:
        """A translated segment as it is written; None where the document would read it otherwise."""


def translate_documents(
    model: Translating, decode: Decode, documents: Sequence[str], options: TranslationOptions
) -> list[Translation]:
    """The translation of each document; its note says which tags had no clear place."""
    asked = with_traces(model, options, "The places of tags")
    form: Format = import_module(f"regard.systems.translate.markup.{options.markup}")
    documents = [well_formed(document) for document in documents]
    segments = [form.segments(document) for document in documents]
    given = [[(each, marked(each.pieces)) for each in of_document] for of_document, _ in segments]
    texts = [each.text for of_document in given for _, each in of_document]
    found = iter(translate_in_parts(model, decode, texts, asked))
    results = []
    for document, of_document, (_, left_out) in zip(documents, given, segments, strict=True):
        parts, place = [], 0
        unsure: list[str] = []
        translations = []
        for segment, read in of_document:
            translation, blocks = next(found)
            translations.append(translation)
            placed = Placement(read, translation.text, blocks()).place(form.escape)
            unsure += placed.unsure
            written = form.finished(segment, f"{read.before}{placed.text}{read.after}")
            if written is None:
                unsure.append(f"left as it is: {read.text}")
                continue
            parts += [document[place : segment.start], segment.opening, written, segment.closing]
            place = segment.end
        result = Translation(
            document,
            "".join([*parts, document[place:]]),
            sum(each.score for each in translations) / max(1, len(translations)),
            all(each.finished for each in translations),
            trace=joined([each.trace for each in translations if each.trace]) if translations else None,
            note=f"{left_out} {_report(unsure, sum(len(read.marks) for _, read in of_document))}".strip(),
        )
        results.append(without_traces(result, options))
    return results


def _report(unsure: Sequence[str], tags: int) -> str:
    """Which tags had no clear place."""
    if not unsure:
        return ""
    named = ", ".join(" ".join(each.split())[:60] for each in unsure[:MAX_NAMED])
    more = f" and {len(unsure) - MAX_NAMED} more" if len(unsure) > MAX_NAMED else ""
    return f"Check the places of {len(unsure)} of {counted(tags, 'tag')}: {named}{more}."
