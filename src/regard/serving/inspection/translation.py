"""The routes of the Translate page: /v1/translate/inspect, and below it beam, compare and gold."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter, Request

from regard.errors import counted
from regard.serving.errors import RefusedError, documented
from regard.serving.inspection import translation_schemas as schemas
from regard.serving.verbs import REFUSALS, Backend
from regard.trace import Axis

Value = TypeVar("Value")
SMALLEST = -3e38
"""Log-probabilities below it are reported as it, since JSON has no infinity."""


def routes(backend: Backend) -> APIRouter:
    """The routes of the page."""
    router = APIRouter(prefix="/v1/translate/inspect", tags=["workbench"], responses=documented(*REFUSALS))

    async def run(function: Callable[..., Value], request: Request, *names: str) -> Value:
        models = [await backend.models.get(backend.models.find(name, "translate")) for name in names]
        return await backend.run(lambda: function(*models), request)

    @router.post("", operation_id="inspect_translation")
    async def inspect(body: schemas.InspectRequest, request: Request) -> schemas.InspectAnswer:
        """Look into a translation: words that could have stood in its place, and what a change makes of it."""
        return await run(lambda model: _inspected(model, body), request, body.model)

    @router.post("/beam", operation_id="inspect_translation_beam")
    async def beam(body: schemas.SentenceRequest, request: Request) -> schemas.TreeAnswer:
        """The beam search as a tree: hypotheses that were extended, pruned or finished, and their attention."""
        return await run(lambda model: _tree(model, body), request, body.model)

    @router.post("/compare", operation_id="compare_translations")
    async def compare(body: schemas.CompareRequest, request: Request) -> schemas.CompareAnswer:
        """Two models beside each other, or one with another alignment, with the difference of their attention."""
        return await run(lambda one, other: _compared(one, other, body), request, body.model, body.second.model)

    @router.post("/gold", operation_id="gold_translation")
    async def gold(body: schemas.GoldRequest, request: Request) -> schemas.GoldAnswer:
        """A sentence pair of the world babel, whose right word links are known, beside the attention of a model."""
        return await run(lambda model: _gold(model, body), request, body.model)

    return router


def _inspected(model: Any, body: schemas.InspectRequest) -> schemas.InspectAnswer:
    from regard.systems.translate.changes import ALIGNMENTS, head_names
    from regard.systems.translate.inspection import decode_again, inspect

    sentences, sentence = _sentence(model, body.input, body.sentence)
    change, search = _change(model, body.change), body.search.model_dump()
    difference = None
    if change.is_empty:
        before = inspect(model, sentence, count=body.words, **search)
    else:
        again = decode_again(model, sentence, change, count=body.words, **search)
        before = again.before
        difference = schemas.Difference(
            after=_view(model, again.after),
            edits=_edits(again.edits),
            before_under_change=_number(again.before_under_change),
            after_unchanged=_number(again.after_unchanged),
        )
    has_alignment = getattr(model.decoder, "attention", None) is not None
    return schemas.InspectAnswer(
        model=body.model,
        architecture=model.config.architecture,
        sentences=sentences,
        sentence=body.sentence,
        heads=head_names(model),
        alignments=list(ALIGNMENTS) if has_alignment else [],
        alignment=model.config.align,
        before=_view(model, before),
        difference=difference,
    )


def _tree(model: Any, body: schemas.SentenceRequest) -> schemas.TreeAnswer:
    from regard.systems.translate.forced import search_tree

    sentence = _sentence(model, body.input, body.sentence)[1]
    found = search_tree(model, sentence, _change(model, body.change), **body.search.model_dump())
    nodes = [
        schemas.TreeNode(
            parent=node.parent,
            depth=node.depth,
            token=node.token,
            label=found.label(place),
            begins=node.token is not None and model.target_tokenizer.begins_word(node.token),
            log_prob=_number(node.log_prob),
            total=_number(node.total),
            fate=node.fate,
            rank=node.rank,
            score=None if node.score is None else _number(node.score),
            attention=node.attention,
        )
        for place, node in enumerate(found.nodes)
    ]
    weights = [] if found.tree.weights is None else found.tree.weights.tolist()
    pieces = model.source_tokenizer.pieces(found.decoder.ids[:-1])
    return schemas.TreeAnswer(
        model=body.model,
        sentence=sentence,
        source=Axis("source", "tokens", (*pieces, "</s>"), text=sentence).to_dict(),
        nodes=nodes,
        weights=[[round(weight, 5) for weight in row] for row in weights],
        shifted=model.config.alignment_step == "input",
    )


def _compared(first: Any, second: Any, body: schemas.CompareRequest) -> schemas.CompareAnswer:
    from regard.systems.translate.changes import Change
    from regard.systems.translate.comparison import compare_models

    sentence = _sentence(first, body.input, body.sentence)[1]
    change = Change(heads=tuple(body.second.heads), align=body.second.align)
    found = compare_models(first, second, sentence, second_change=change, **body.search.model_dump())
    return schemas.CompareAnswer(
        first=_view(first, found.first),
        second=_view(second, found.second),
        edits=_edits(found.edits),
        log_prob_by_second=_number(found.log_prob_by_second),
        trace=None if found.trace is None else found.trace.to_dict(),
    )


def _gold(model: Any, body: schemas.GoldRequest) -> schemas.GoldAnswer:
    from regard.systems.translate.comparison import babel_example, compare_with_gold

    found = compare_with_gold(model, babel_example(body.direction, body.number))
    return schemas.GoldAnswer(
        model=body.model,
        source=list(found.gold.source),
        target=list(found.gold.target),
        sure=_pairs(found.gold.sure),
        possible=_pairs(found.gold.possible),
        links=_pairs(found.links),
        error_rate=found.scores.error_rate,
        precision=found.scores.precision,
        recall=found.scores.recall,
        trace=found.trace.to_dict(),
    )


def _sentence(model: Any, text: str, number: int) -> tuple[list[str], str]:
    from regard.systems.translate.inspection import sentences

    found = sentences(model, text)
    if not found:
        raise RefusedError(422, "There is nothing to translate: the text has no words.")
    if number >= len(found):
        raise RefusedError(
            422, f"The text has {counted(len(found), 'sentence')}, counted from 0; got sentence {number}."
        )
    return found, found[number]


def _change(model: Any, body: schemas.ChangeBody) -> Any:
    from regard.systems.translate.changes import Change
    from regard.systems.translate.inspection import encode_after

    attention = {each.step: each.weights for each in body.attention}
    word = encode_after(model, body.prefix, body.word) if body.word.strip() else ()
    return Change((*body.prefix, *word), attention, tuple(body.heads), body.align)


def _view(model: Any, found: Any) -> schemas.TranslationView:
    from regard.systems.translate.inspection import shown_step

    texts, owners = found.source.split(), model.source_tokenizer.word_index(found.source_tokens)
    words = [
        schemas.SourceWord(text=text, places=[place for place, owner in enumerate(owners) if owner == number])
        for number, text in enumerate(texts)
    ]
    return schemas.TranslationView(
        source_words=[word for word in words if word.places],
        text=found.text,
        tokens=list(found.tokens),
        log_prob=_number(found.log_prob),
        score=_number(found.score),
        finished=found.finished,
        unknown=found.unknown,
        words=[
            schemas.WordView(
                text=word.text,
                tokens=list(word.tokens),
                first=word.first,
                step=shown_step(model, word.first, len(found.tokens)),
                begins=model.target_tokenizer.begins_word(word.tokens[0]),
                probability=word.probability,
                likeliest=[schemas.NextWordView(**_plain(each)) for each in word.likeliest],
            )
            for word in found.words
        ],
        trace=None if found.trace is None else found.trace.to_dict(),
    )


def _plain(word: Any) -> dict[str, Any]:
    return {
        "text": word.text,
        "tokens": list(word.tokens),
        "probability": word.probability,
        "begins": word.begins,
    }


def _edits(edits: Sequence[Any]) -> list[schemas.Edit]:
    return [schemas.Edit(kind=each.kind, words=list(each.words)) for each in edits]


def _pairs(links: Any) -> list[list[int]]:
    return sorted([int(source), int(target)] for source, target in links)


def _number(value: float) -> float:
    return max(float(value), SMALLEST)
