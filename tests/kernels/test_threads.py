"""Small work is computed on one CPU thread, whatever torch was told."""

import os
import subprocess
import sys
import threading

import pytest
import torch
from helpers.decoders import END, PAD, START, make, sources

from regard.kernels.threads import SMALL, threads_for
from regard.search.hypothesis import Rules
from regard.search.options import Search
from regard.search.search import search
from regard.systems.config import Options
from regard.systems.system import System
from regard.systems.translate.config import TranslationOptions


@pytest.fixture(autouse=True)
def _three_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(3)
    yield
    assert torch.get_num_threads() == 3
    torch.set_num_threads(1)


def test_small_work_takes_one_thread_and_large_work_takes_all():
    with threads_for(SMALL - 1):
        assert torch.get_num_threads() == 1
        with threads_for(SMALL):
            assert torch.get_num_threads() == 1
    with threads_for(SMALL):
        assert torch.get_num_threads() == 3


def test_the_number_is_restored_after_an_error():
    with pytest.raises(KeyError), threads_for(0):
        raise KeyError


def test_the_number_that_the_user_set_wins(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with threads_for(0):
        assert torch.get_num_threads() == 3


def test_other_threads_keep_their_number():
    found, begun, done = [], threading.Event(), threading.Event()

    def other():
        found.append(torch.get_num_threads())
        begun.set()
        done.wait()
        found.append(torch.get_num_threads())

    thread = threading.Thread(target=other)
    thread.start()
    begun.wait()
    with threads_for(0):
        done.set()
        thread.join()
    assert found == [3, 3]


@pytest.mark.parametrize("options", [Search(beam=1), Search(beam=2), Search(sample=True, nbest=2)])
def test_a_search_counts_its_hypotheses_and_the_parameters_of_its_decoder(options, monkeypatch):
    encoder, decoder = make("bahdanau")
    encoded, found, step = encoder(*sources(5)), set(), decoder.step
    monkeypatch.setattr(decoder, "step", lambda *inputs: found.add(torch.get_num_threads()) or step(*inputs))
    state, rules = decoder.start(encoded), Rules(START, END, (PAD,), max_length=3)
    work = 5 * options.num_hypotheses * sum(parameter.numel() for parameter in decoder.parameters())
    for small, expected in ((work + 1, {1}), (work, {3})):
        found.clear()
        monkeypatch.setattr("regard.kernels.threads.SMALL", small)
        search(decoder, state, rules, options, num_inputs=5, device="cpu")
        assert found == expected


def test_a_system_counts_the_parameters_for_each_input(monkeypatch):
    class Counting(System):
        parameter_uses = 2

        def predict_batch(self, inputs, options):
            return [torch.get_num_threads() for _ in inputs]

    model = Counting(Search()).eval()
    model.layer = torch.nn.Linear(6, 1)  # 7 parameters
    monkeypatch.setattr("regard.kernels.threads.SMALL", 5 * 2 * 7 * 4)
    assert model.answer(range(4), TranslationOptions(beam=5)) == [3] * 4
    assert model.answer(range(3), TranslationOptions(beam=5)) == [1] * 3
    assert model.answer(range(64), Options()) == [3] * 64


@pytest.mark.parametrize(("own", "expected"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_threads_of_the_command_wait_passively_unless_the_user_says_otherwise(own, expected):
    code = (
        "import atexit, os, regard.cli\n"
        "atexit.register(lambda: print(os.environ['OMP_WAIT_POLICY']))\n"
        "regard.cli.main(['--version'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | own
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split()[-1] == expected
