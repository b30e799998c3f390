"""`regard serve` as a process: it starts, answers many clients at once, and ends as it should."""

import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection

import pytest
from helpers import command_line

SECONDS = float(os.environ.get("REGARD_SOAK_SECONDS", "15"))
CLIENTS = 64
REQUESTS = [
    ("/v1/translate", {"input": "He is happy.", "options": {"beam": 1, "max_length": 8}}),
    ("/v1/translate", {"input": ["A dog runs.", "The man reads."], "options": {"beam": 1, "max_length": 8}}),
    ("/v1/tape", {"input": "01100101 10010110"}),
    ("/v1/classify", {"input": "I loved this film. It was wonderful."}),
    ("/v1/faithfulness", {"verb": "tape", "input": "01100101 10010110"}),
    ("/v1/classify/without", {"input": "I loved this film. It was wonderful.", "removed": [1]}),
    ("/v1/translate", {"input": 3}),
]
WRONG = len(REQUESTS) - 1
"""The request that is refused."""
MAX_GROWTH = 40
"""Mebibytes by which a server may grow between the middle and the end of the load."""


@pytest.fixture(scope="module")
def server():
    """The process and its port."""
    command = [sys.executable, "-m", "regard", "serve", "--port", "0", "--queue", "48", "--per-client", "1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        found = re.search(r"models at http://127\.0\.0\.1:(\d+)/", line)
        assert found, line + process.stderr.read()
        yield process, int(found[1])
        process.kill()


def ask(port, path, body=None):
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    content = None if body is None else json.dumps(body)
    headers = {"content-type": "application/json"}
    connection.request("GET" if body is None else "POST", path, content, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if path != "/metrics" else text.decode()


def resident(process):
    """Memory of a process in MiB."""
    with open(f"/proc/{process.pid}/status") as status:  # noqa: PTH123
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024


def test_many_clients_at_once_get_answers_or_are_told_to_wait(server, capsys):
    process, port = server
    for number, (path, body) in enumerate(REQUESTS):
        assert ask(port, path, body)[0] == (422 if number == WRONG else 200)
    statuses, times = [], []
    lock = threading.Lock()
    end = time.monotonic() + SECONDS
    sizes = []

    def watch():
        """Memory from the middle on, when every kind of request has been answered many times."""
        time.sleep(SECONDS / 2)
        while time.monotonic() < end:
            sizes.append(resident(process))
            time.sleep(0.2)

    def client(number):
        turn = number
        while time.monotonic() < end or turn < number + len(REQUESTS):
            path, body = REQUESTS[turn % len(REQUESTS)]
            start = time.monotonic()
            status, answer = ask(port, path, body)
            with lock:
                statuses.append((turn % len(REQUESTS), status))
                times.append(time.monotonic() - start)
            if status in (429, 503):
                assert "Try again later" in answer["error"]["message"]
                time.sleep(0.2)
            turn += 1

    with ThreadPoolExecutor(CLIENTS + 1) as clients:
        watching = clients.submit(watch)
        list(clients.map(client, range(CLIENTS)))
        watching.result()
    expected = {(WRONG, 422)} | {(turn, status) for turn in range(WRONG) for status in (200, 429, 503)}
    assert set(statuses) <= expected
    assert {(turn, 200) for turn in range(WRONG)} <= set(statuses)
    count = max(1, len(sizes) // 4)
    growth = statistics.median(sizes[-count:]) - statistics.median(sizes[:count])
    assert growth < MAX_GROWTH, "memory does not grow with the requests"
    buckets = re.findall(
        r'regard_batch_inputs_bucket\{le="1\.0"\} (\S+)|regard_batch_inputs_count (\S+)', ask(port, "/metrics")[1]
    )
    single, batches = float(buckets[0][0]), float(buckets[1][1])
    assert single < batches, "some batches had inputs of several clients"
    slowest = sorted(times)[int(0.99 * len(times))]
    answered = sum(status == 200 for _, status in statuses)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(times)} requests, {answered / SECONDS:.0f} answers a second, p99 {slowest:.2f} s, "
            f"memory {growth:+.0f} MiB\n"
        )


def test_it_ends_on_a_signal_after_what_it_is_doing(server):
    process, port = server
    # Each has a seed, so that none shares a batch: most still wait when the signal comes.
    texts = ["The man in the red jacket is reading an old book about the history of the railways."] * 4
    bodies = [{"input": texts, "options": {"beam": 16, "seed": seed}} for seed in range(10)]
    with ThreadPoolExecutor(len(bodies)) as clients:
        waiting = [clients.submit(ask, port, "/v1/translate", each) for each in bodies]
        while "regard_waiting_inputs 0.0" in ask(port, "/metrics")[1]:
            assert not all(each.done() for each in waiting), "none had to wait"
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        answers = [each.result() for each in waiting]
    refused = [answer["error"]["message"] for status, answer in answers if status == 503]
    assert {status for status, _ in answers} == {200, 503}
    assert "The server shuts down. Try again later." in refused
    process.wait(600)
    assert "Traceback" not in process.stderr.read()


def test_what_cannot_be_served_is_explained():
    assert "set --token" in command_line.refused("serve", "--host", "0.0.0.0")  # noqa: S104
    assert "no folder and no shipped model" in command_line.refused("serve", "nowhere")
    assert "port must be" in command_line.refused("serve", "--port", "99999")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}: Address already in use" in command_line.refused("serve", "--port", str(port))


@pytest.mark.parametrize("has_browser", [True, False])
def test_the_workbench_is_opened_in_the_browser_where_there_is_one(monkeypatch, has_browser):
    addresses = []

    def run_server(*_, **__):
        for thread in threading.enumerate():
            if thread.name == "open browser":
                thread.join()

    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or has_browser)
    # The browser is opened while the server runs.
    monkeypatch.setattr("uvicorn.Server.run", run_server)
    done = command_line.regard("serve", "--open", "--port", "0", check=True)
    assert f"models at {addresses[0]} " in done.stdout
    assert ("there is no browser to open here" in done.stderr) == (not has_browser)
