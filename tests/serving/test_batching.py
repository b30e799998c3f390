"""Requests of all clients share batches, and none of them can harm the others."""

import asyncio
import threading
import time
from dataclasses import dataclass
from unittest.mock import patch

import pytest
from helpers.models import TEXTS, small_translator

from regard.errors import OptionError
from regard.serving.batching import STOPPED, Batcher
from regard.serving.errors import RefusedError
from regard.work import proceed


@dataclass(frozen=True)
class Options:
    """Options of a model that is not one."""

    seed: int | None = None
    loud: bool = False


class Model:
    """Answers after `gate` is opened, and records its batches."""

    def __init__(self):
        self.batches = []
        self.is_busy = False
        self.gate = threading.Event()
        self.gate.set()

    def answer(self, inputs, options):
        self.is_busy = True
        self.gate.wait()
        self.batches.append(list(inputs))
        if "bad" in inputs:
            raise OptionError("bad is not good")
        if "broken" in inputs:
            raise RuntimeError("broken")
        return [each.upper() if options.loud else each for each in inputs]


def run(scenario, **settings):
    async def main():
        batcher, model = Batcher(**settings), Model()
        try:
            return await scenario(batcher, model), model.batches
        finally:
            model.gate.set()
            await batcher.close()

    return asyncio.run(main())


async def started(*requests):
    """Requests that have gone as far as they can without an answer."""
    tasks = [asyncio.create_task(each) for each in requests]
    await others()
    return tasks


async def others():
    """Let all other tasks and timers run that can: a few rounds of the loop, however long these take."""
    for _ in range(5):
        await asyncio.sleep(0)


async def busy(batcher, model, inputs=("first",), **client):
    """A request that the model is busy with until its gate is opened."""
    model.gate.clear()
    (first,) = await started(batcher.answer(model, Options(), list(inputs), **client))
    while not model.is_busy:
        await asyncio.sleep(0.001)
    return first


async def pass_deadline():
    """Move the clock of the loop behind every deadline."""
    loop = asyncio.get_running_loop()
    loop.time = lambda: time.monotonic() + 1000
    await others()


async def held(batcher, model, *requests):
    """Start requests while the model is busy with a first one, and then let it go on."""
    first = await busy(batcher, model)
    tasks = await started(*(batcher.answer(model, own, inputs) for own, inputs in requests))
    model.gate.set()
    return await asyncio.gather(first, *tasks, return_exceptions=True)


def test_what_waits_is_answered_together_and_in_order():
    async def scenario(batcher, model):
        return await held(batcher, model, *((Options(), [f"{n}a", f"{n}b"]) for n in range(4)))

    answers, batches = run(scenario, batch=6)
    assert answers == [["first"], *([f"{n}a", f"{n}b"] for n in range(4))]
    assert batches == [["first"], ["0a", "0b", "1a", "1b", "2a", "2b"], ["3a", "3b"]], "as many as fit"


def test_other_options_and_seeds_are_other_batches():
    async def scenario(batcher, model):
        requests = [(Options(), ["a"]), (Options(loud=True), ["b"]), (Options(), ["c"])]
        requests += [(Options(seed=1), ["d"]), (Options(seed=1), ["e"])]
        return await held(batcher, model, *requests)

    answers, batches = run(scenario)
    assert answers == [["first"], ["a"], ["B"], ["c"], ["d"], ["e"]]
    assert sorted(map(sorted, batches[1:])) == [["a", "c"], ["b"], ["d"], ["e"]], "a seed is answered alone"


def test_a_faulty_input_fails_only_its_own_request():
    async def scenario(batcher, model):
        return await held(batcher, model, (Options(), ["a"]), (Options(), ["bad"]), (Options(), ["c"]))

    (first, a, bad, c), _ = run(scenario)
    assert (first, a, c) == (["first"], ["a"], ["c"])
    assert isinstance(bad, OptionError)


def test_after_an_unexpected_error_the_next_request_is_answered():
    async def scenario(batcher, model):
        with pytest.raises(RuntimeError):
            await batcher.answer(model, Options(), ["broken"])
        return await batcher.answer(model, Options(), ["a"])

    assert run(scenario)[0] == ["a"]


def test_a_full_queue_and_a_greedy_client_are_refused():
    async def scenario(batcher, model):
        first = await busy(batcher, model, client="x")
        waiting = await started(batcher.answer(model, Options(), ["a"] * 3, client="y"))
        with pytest.raises(
            RefusedError, match=r"You already have 3 queued inputs \(at most 4: --per-client\)"
        ) as greedy:
            await batcher.answer(model, Options(), ["b"] * 2, client="y")
        with pytest.raises(RefusedError, match="Inputs that wait: 3") as full:
            await batcher.answer(model, Options(), ["c"] * 3, client="z")
        model.gate.set()
        await asyncio.gather(first, *waiting)
        return greedy.value.status, full.value.status, full.value.retry_after, batcher.waiting

    assert run(scenario, queue=5, per_client=4)[0] == (429, 503, 1, 0)


@pytest.mark.parametrize(("queue", "per_client"), [(9, 4), (4, 9)])
def test_more_inputs_than_can_ever_wait_are_too_large(queue, per_client):
    async def scenario(batcher, model):
        with pytest.raises(
            RefusedError,
            match=r"At most 4 inputs of a client can wait at a time \(the server's --(queue|per-client)\); got 5",
        ) as refused:
            await batcher.answer(model, Options(), ["a"] * 5)
        return refused.value.status, refused.value.retry_after, await batcher.answer(model, Options(), ["a"] * 4)

    assert run(scenario, queue=queue, per_client=per_client)[0] == (413, None, ["a"] * 4)


def test_many_inputs_are_divided_into_batches_in_turn_with_other_requests():
    async def scenario(batcher, model):
        return await held(batcher, model, (Options(), list("abcdefg")), (Options(loud=True), ["x"]), (Options(), ["y"]))

    answers, batches = run(scenario, batch=3)
    assert answers == [["first"], list("abcdefg"), ["X"], ["y"]]
    assert batches == [["first"], ["a", "b", "c"], ["x"], ["y", "d", "e"], ["f", "g"]]


def test_without_batching_every_input_is_answered_by_itself():
    async def scenario(batcher, model):
        return await batcher.answer(model, Options(), list("abc"))

    assert run(scenario, batch=1) == (list("abc"), [["a"], ["b"], ["c"]])


def test_inputs_with_a_seed_are_not_divided():
    async def scenario(batcher, model):
        return await batcher.answer(model, Options(seed=1), list("abc"))

    assert run(scenario, batch=2) == (list("abc"), [["a", "b", "c"]])


def test_a_faulty_input_ends_the_rest_of_its_own_request():
    async def scenario(batcher, model):
        return *await held(batcher, model, (Options(), ["a", "bad", "b", "c"]), (Options(), ["d"])), batcher.waiting

    (first, bad, d, waiting), batches = run(scenario, batch=2)
    assert (first, d, waiting) == (["first"], ["d"], 0)
    assert isinstance(bad, OptionError)
    assert batches == [["first"], ["a", "bad"], ["d"]]


def test_the_deadline_holds_while_a_request_is_being_answered():
    async def scenario(batcher, model):
        answer = await busy(batcher, model, "ab")
        await pass_deadline()
        found = answer.exception().status, str(answer.exception()), batcher.waiting
        model.gate.set()
        return found

    status, message, waiting = run(scenario, batch=1)[0]
    assert (status, waiting) == (503, 0), "and the rest of it waits no longer"
    assert "took longer than 30 seconds" in message


class Endless:
    """A model that computes until nobody waits for it."""

    def __init__(self):
        self.steps = 0

    def answer(self, inputs, options):
        while True:
            proceed()
            self.steps += 1


@pytest.mark.parametrize("reason", ["they left", "their deadline passed"])
def test_a_running_batch_ends_when_nobody_waits_for_it(reason):
    async def scenario(batcher, model):
        endless = Endless()
        tasks = await started(*(batcher.answer(endless, Options(), [each]) for each in "ab"))
        while not endless.steps:
            await asyncio.sleep(0.001)
        if reason == "they left":
            tasks[0].cancel()
            before = endless.steps
            while endless.steps == before:  # the other one still waits
                await asyncio.sleep(0.001)
            tasks[1].cancel()
        else:
            await pass_deadline()
        await asyncio.gather(*tasks, return_exceptions=True)
        loop = asyncio.get_running_loop()
        loop.__dict__.pop("time", None)
        return await batcher.answer(model, Options(), ["next"]), batcher.waiting

    assert run(scenario)[0] == (["next"], 0)


def test_a_request_is_refused_when_its_deadline_passes():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        (late,) = await started(batcher.answer(model, Options(), ["late"]))
        assert not late.done()
        await pass_deadline()
        found = late.exception().status, first.done(), batcher.waiting
        model.gate.set()
        return found, first.exception()

    (found, first), batches = run(scenario)
    assert found == (503, True, 0)
    assert first.status == 503, "its deadline has passed too"
    assert batches == [["first"]]


def test_other_work_waits_its_turn_has_a_deadline_and_is_dropped_when_nobody_wants_it():
    async def scenario(batcher, model):
        done = []
        assert await batcher.run(lambda: done.append("alone") or 3) == 3
        first = await busy(batcher, model)
        late, gone = await started(*(batcher.run(lambda name=name: done.append(name)) for name in ("late", "gone")))
        assert batcher.waiting == 2
        gone.cancel()
        await others()
        assert batcher.waiting == 1
        await pass_deadline()
        model.gate.set()
        refused = await asyncio.gather(first, late, return_exceptions=True)
        with pytest.raises(OptionError, match="no number"):
            await batcher.run(lambda: (_ for _ in ()).throw(OptionError("no number")))
        return refused[1].status, done, batcher.waiting

    found, batches = run(scenario)
    assert found == (503, ["alone"], 0)
    assert batches == [["first"]], "and it is no batch"


def test_a_client_that_leaves_is_neither_counted_nor_answered():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        (gone,) = await started(batcher.answer(model, Options(), ["gone"] * 4, client="x"))
        gone.cancel()
        await others()
        waiting = batcher.waiting
        (again,) = await started(batcher.answer(model, Options(), ["again"], client="x"))
        model.gate.set()
        return waiting, await first, await again

    found, batches = run(scenario, per_client=4)
    assert found == (0, ["first"], ["again"])
    assert batches == [["first"], ["again"]]


def test_the_rest_of_a_divided_request_whose_client_leaves_is_not_answered():
    async def scenario(batcher, model):
        gone = await busy(batcher, model, "abcd")
        gone.cancel()
        await others()
        waiting = batcher.waiting
        model.gate.set()
        return waiting, await batcher.answer(model, Options(), ["e"])

    found, batches = run(scenario, batch=2)
    assert found == (0, ["e"])
    assert batches == [["a", "b"], ["e"]]


def test_a_server_that_shuts_down_refuses_what_waits():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        (waiting,) = await started(batcher.answer(model, Options(), ["waiting"]))
        batcher.stop()
        (later,) = await started(batcher.answer(model, Options(), ["later"]))
        assert waiting.done(), "at once, while the first is still being answered"
        assert later.done()
        model.gate.set()
        return await asyncio.gather(first, waiting, later, return_exceptions=True)

    (first, waiting, later), batches = run(scenario)
    assert first == ["first"]
    assert (waiting.status, later.status) == (503, 503)
    assert batches == [["first"]]


def test_a_function_past_its_deadline_is_refused_and_not_run():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        (late,) = await started(batcher.run(lambda: model.batches.append("too late")))
        waiting = batcher.waiting
        await pass_deadline()
        model.gate.set()
        return await asyncio.gather(first, late, return_exceptions=True), waiting

    ((first, late), waiting), batches = run(scenario, deadline=30.5)
    assert (waiting, batches) == (1, [["first"]])
    assert (first.status, late.status) == (503, 503)
    assert "waited longer than 30.5 seconds" in late.message


def test_a_server_that_shuts_down_runs_no_further_function():
    async def scenario(batcher, model):
        first = await busy(batcher, model)
        tasks = await started(batcher.run(lambda: model.batches.append("too late")), batcher.close())
        model.gate.set()
        return (await asyncio.gather(first, *tasks, return_exceptions=True))[:2]

    (first, refused), batches = run(scenario)
    assert (first, refused.message, batches) == (["first"], STOPPED, [["first"]])


def test_nothing_is_kept_of_clients_that_have_been_answered():
    async def scenario(batcher, model):
        for number in range(3):
            await batcher.answer(model, Options(), ["a"], client=f"answer {number}")
            await batcher.run(lambda: None, client=f"run {number}")
        return dict(batcher._waiting)

    assert run(scenario)[0] == {}


def test_batches_take_fewer_steps_of_the_decoder():
    model = small_translator()
    options, texts = model.options({"traces": "none", "max_length": 5, "beam": 1}), TEXTS * 8

    async def steps(batch):
        batcher = Batcher(batch=batch, queue=1000, per_client=1000, deadline=600.0)
        with patch.object(type(model.decoder), "step", autospec=True, side_effect=type(model.decoder).step) as step:
            await asyncio.gather(*(batcher.answer(model, options, [text]) for text in texts))
        await batcher.close()
        return step.call_count

    alone, together = (asyncio.run(steps(batch)) for batch in (1, 32))
    assert alone >= len(texts)
    assert together < alone / 3
