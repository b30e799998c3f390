"""The contract of every system: one input or many, in order, from any thread, and changing nothing."""

import copy
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import escape
from typing import Any

import pytest
import torch
from helpers.models import small_translator
from helpers.systems import KINDS, Case, close, shipped_case, small_case

import regard
from regard.config import Checked, fields_of
from regard.errors import OptionError
from regard.systems.predictor import MAX_BATCH_COST, Result, batches_by_cost, in_groups
from regard.systems.system import choose_device
from regard.trace import Trace
from regard.viewing.view import view


# A system is held to the contract here as soon as it has a shipped model.
@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest) -> Case:
    return small_case(request.param)


def searches(case: Case) -> bool:
    """Whether the system searches for outputs, of which several can be asked for."""
    return "nbest" in {field.name for field in fields_of(case.model.Options)}


def test_one_input_gives_one_result_and_a_list_gives_a_list(case):
    single = case.ask(case.inputs[0], **case.option)
    assert isinstance(single, Result)
    several = case.ask(case.inputs, **case.option)
    assert isinstance(several, list)
    assert close(several[0], single)
    (only,) = case.ask(case.inputs[:1], **case.option)
    assert close(only, single)
    assert case.ask([], **case.option) == []
    for one, given in zip(several, case.inputs, strict=True):
        assert close(one, case.ask(given, **case.option)), "a batch equals its inputs one by one"


def test_options_are_keywords_or_an_instance_which_is_not_checked_again(case, monkeypatch, as_a_user):
    expected, chosen = case.ask(case.inputs, **case.option), case.model.Options(**case.option)
    monkeypatch.setattr(Checked, "__post_init__", lambda self: pytest.fail("checked again"))
    assert all(map(close, getattr(case.model, case.verb)(case.inputs, chosen), expected))
    assert all(map(close, case.model.stream(case.inputs, chosen), expected))
    monkeypatch.undo()
    for wrong, more in ((chosen, case.option), (case.inputs[0], {}), (case.option, {})):
        with pytest.raises(OptionError, match=r"takes options as keywords or as one \w+Options; got"):
            getattr(case.model, case.verb)(case.inputs[0], wrong, **more)


def test_without_traces_results_are_the_same_but_for_the_trace(case):
    for one, full in zip(case.ask(case.inputs, traces="none"), case.ask(case.inputs), strict=True):
        assert one.trace is None
        assert getattr(one, "text", None) == getattr(full, "text", None)
        assert getattr(one, "label", None) == getattr(full, "label", None)


def test_the_class_of_a_result_is_declared(case):
    assert type(case.ask(case.inputs[0])) is type(case.model).Answer


def test_a_stream_keeps_the_order_over_its_groups(case):
    inputs = case.inputs
    expected = case.ask(inputs, **case.option)
    for read_ahead in (2, 100):
        found = case.model.stream(iter(inputs), read_ahead=read_ahead, **case.option)
        assert isinstance(found, Iterator)
        assert all(close(one, other) for one, other in zip(found, expected, strict=True))
    with pytest.raises(OptionError, match="read_ahead must be a whole number, 1 or more; got 0"):
        next(case.model.stream(inputs, read_ahead=0))


def test_a_stream_reads_no_further_ahead_than_asked(case):
    taken = []
    inputs = (taken.append(n) or one for n, one in enumerate(case.inputs))
    stream = case.model.stream(inputs, read_ahead=2, **case.option)
    assert taken == []
    next(stream)
    assert taken == [0, 1]


def test_a_model_in_training_mode_does_not_predict(case):
    model = copy.deepcopy(case.model).train()
    for ask in (getattr(model, case.verb), lambda inputs: list(model.stream(inputs))):
        with pytest.raises(OptionError, match=r"training mode.*model\.eval\(\)"):
            ask(case.inputs)
    assert model.training


def switches() -> dict[str, Any]:
    """The global switches of torch."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    return {
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "matmul": torch.get_float32_matmul_precision(),
        "cudnn": (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32),
        "mkldnn": torch.backends.mkldnn.enabled,
        "tf32": cuda.matmul.allow_tf32,
        "sdp": (
            cuda.flash_sdp_enabled(),
            cuda.mem_efficient_sdp_enabled(),
            cuda.math_sdp_enabled(),
            cuda.cudnn_sdp_enabled(),
        ),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "threads": torch.get_num_threads(),
        "dtype": torch.get_default_dtype(),
        "autocast": torch.is_autocast_enabled("cpu"),
    }


def test_prediction_changes_nothing(case, monkeypatch):
    """Nothing is set and restored either: another thread would see it in between.

    The number of CPU threads is restored (tests/kernels/test_threads.py); with one thread it is never set.
    """
    flips = []
    monkeypatch.setattr(torch.nn.Module, "train", lambda self, mode=True: flips.append(mode))
    for name in ("set_float32_matmul_precision", "set_num_threads", "use_deterministic_algorithms", "manual_seed"):
        monkeypatch.setattr(torch, name, lambda *values, name=name: flips.append(name))
    modes = {name: module.training for name, module in case.model.named_modules()}
    state = {name: tensor.clone() for name, tensor in case.model.state_dict().items()}
    random, before = torch.get_rng_state(), switches()
    case.ask(case.inputs, **case.option)
    case.ask(case.inputs[0], **case.option)
    list(case.model.stream(case.inputs, **case.option))
    assert switches() == before
    assert flips == []
    assert {name: module.training for name, module in case.model.named_modules()} == modes
    assert torch.equal(torch.get_rng_state(), random)
    for name, tensor in case.model.state_dict().items():
        assert torch.equal(tensor, state[name]), name
    assert all(parameter.grad is None for parameter in case.model.parameters())


def test_eight_threads_get_what_one_gets(case):
    shipped = shipped_case(case.kind)
    drawing = {"sample": True, "seed": 7} if searches(case) else {}
    jobs = [(shipped.inputs, {}), *((one, {}) for one in shipped.inputs), (shipped.inputs, drawing)]
    expected = [shipped.ask(inputs, **options) for inputs, options in jobs]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda job: shipped.ask(job[0], **job[1]), jobs * 3))
    for index, one in enumerate(found):
        assert one == expected[index % len(expected)], "exactly, not to rounding"


def test_an_unknown_option_is_named_with_the_nearest(case):
    (name,) = case.option
    for ask in (case.ask, lambda inputs, **options: list(case.model.stream(inputs, **options))):
        with pytest.raises(OptionError, match=f"no field '{name}x'. Did you mean '{name}'"):
            ask(case.inputs, **{f"{name}x": 2})
        with pytest.raises(OptionError, match=f"{name} must be (a whole number|one of).*; got 'many'"):
            ask(case.inputs, **{name: "many"})


def test_a_result_is_plain_values_and_its_trace_reads_back(case):
    options = case.option | ({"nbest": 3} if searches(case) else {})
    for result in case.ask(case.inputs, **options):
        plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert list(plain)[-1] == "trace"
        if result.trace is None:
            assert case.verb == "recognize"
            continue
        if not searches(case):
            assert Trace.from_dict(plain["trace"]) == result.trace
            continue
        assert Trace.from_dict(plain["trace"]) == result.trace
        assert Trace.from_dict(plain) == result.trace, "the dict of a result stands for its trace"
        assert [one["text"] for one in plain["alternatives"]] == [one.text for one in result.alternatives]
        for one, other in zip(plain["alternatives"], result.alternatives, strict=True):
            assert Trace.from_dict(one["trace"]) == other.trace


def test_the_repr_of_a_result_is_short(case):
    options = {"nbest": 5} if searches(case) else case.option
    shipped = shipped_case(case.kind)
    for given in shipped.inputs[:3]:
        for chosen in ({}, options):
            result = shipped.ask(given, **chosen)
            assert len(repr(result)) < 500, repr(result)
            assert getattr(result, "text", None) in (None, *repr(result).split("'"))
            assert getattr(result, "label", None) in (None, *repr(result).split("'"))


def test_a_notebook_displays_a_result(case):
    result = case.ask(case.inputs[0], **case.option)
    html = result._repr_html_()
    assert html.startswith(f"<p><code>{escape(repr(result))}</code></p>")
    if result.trace is not None:
        assert html.endswith(view(result)._repr_html_())


def test_one_long_text_among_short_ones_is_decoded_in_a_small_batch(monkeypatch):
    model = small_translator()
    texts = [f"{'two dogs run ' * (n % 3 + 1)}." for n in range(64)]
    texts[20] = "a dog is running ." + " a dog is running ." * 349
    sizes = []
    predict = type(model).predict_batch

    def spy(self, inputs, options):
        sizes.append((len(inputs), max(map(len, inputs))))
        return predict(self, inputs, options)

    monkeypatch.setattr(type(model), "predict_batch", spy)
    found = model.translate(texts, beam=2, max_length=4)
    costs = model.costs(texts)
    assert costs[20] > 2000
    assert sizes[0] == (max(1, MAX_BATCH_COST // costs[20]), len(texts[20]))
    assert sizes[0][0] <= 4
    assert sum(rows for rows, _ in sizes) == 64
    assert len(sizes) == 2, "the short ones go together"
    for index in (*range(0, 64, 9), 20):
        assert close(found[index], model.translate(texts[index], beam=2, max_length=4))


def test_batches_hold_inputs_of_like_cost_up_to_the_limit():
    costs = [3, 50, 7, 7, 1000, 2, 0, 50]
    batches = list(batches_by_cost(costs, max_batch=3, max_cost=100))
    assert batches == [[4], [1, 7], [2, 3, 0], [5, 6]]
    assert list(batches_by_cost([], max_batch=3)) == []
    assert [list(group) for group in in_groups(range(5), 2)] == [[0, 1], [2, 3], [4]]


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
def test_a_device_that_is_not_there_is_explained(case):
    assert choose_device() == torch.device("cpu")
    for device in ("cuda", "cuda:1", torch.device("cuda")):
        with pytest.raises(OptionError, match=r"needs a CUDA GPU.*Use device='cpu'"):
            regard.load(case.name, device=device)
    for device in ("gpu", "", "cuda:x"):
        with pytest.raises(OptionError, match="device must be such as 'cpu'"):
            regard.load(case.name, device=device)
    with pytest.raises(OptionError, match="mps") as raised:
        regard.load(case.name, device="mps")
    assert len(str(raised.value)) < 200


def test_traces_carry_how_right_the_attention_of_their_model_is():
    model = small_translator()
    assert "attention_measured" not in model.translate("two dogs").trace.extras
    model.metrics = {"attention_measured": "Error rate 0.1 on 7 sentences."}
    assert model.translate("two dogs").trace.extras["attention_measured"] == "Error rate 0.1 on 7 sentences."
    assert model.translate("two dogs", traces="none").trace is None
