"""`regard serve` as a process, and clients that ask it for everything at once."""

import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from http.client import HTTPConnection
from typing import Any

Request = tuple[str, dict[str, Any]]
REFUSALS = (429, 503)


class Server:
    """A server process on this machine; leaving the block ends it."""

    def __init__(self, *options: str, port: int = 0) -> None:
        self.options, self.port = options, port

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def start(self) -> None:
        """Start, on the port of the last time, and wait until it listens."""
        command = [sys.executable, "-m", "regard", "serve", "--port", str(self.port), *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        found = re.search(r"models at http://127\.0\.0\.1:(\d+)/", line)
        if found is None:
            raise RuntimeError(f"The server did not start: {line}{self.process.communicate()[1]}")
        self.port = int(found[1])

    def restart(self) -> None:
        """End it as a service manager does, and start it again."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=300)
        if self.process.returncode not in (0, -signal.SIGTERM) or "Traceback" in said:
            raise RuntimeError(f"The server ended with status {self.process.returncode}: {said}")
        self.start()

    @property
    def resident(self) -> float:
        """Its memory in MiB."""
        with open(f"/proc/{self.process.pid}/status") as status:  # noqa: PTH123
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024  # type: ignore[index]


def mixed_requests() -> list[Request]:
    """A request for each shipped model that needs no image, and for other routes."""
    short = {"beam": 1, "max_length": 8}
    translations = [
        ("en-fr", "He is happy."), ("en-de", "A dog runs."), ("fa-en", "این کتاب است."), ("babel", "the man reads ."),
    ]  # fmt: skip
    return [
        *(("/v1/translate", {"model": name, "input": text, "options": short}) for name, text in translations),
        ("/v1/classify", {"input": "I loved this film. It was wonderful."}),
        ("/v1/read", {"input": "The animal was too tired."}),
        ("/v1/tape", {"model": "tape-copy", "input": "01100101 10010110"}),
        ("/v1/tape", {"model": "tape-recall", "input": "011001 100101 010101 110000 011001 100101"}),
        ("/v1/faithfulness", {"verb": "tape", "input": "01100101 10010110"}),
        ("/v1/classify/without", {"input": "I loved this film. It was wonderful.", "removed": [1]}),
    ]


Answer = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


def ask(port: int, path: str, body: dict[str, Any] | None = None, timeout: float = 600) -> Answer:
    """The answer to a request, over a connection of its own."""
    connection = HTTPConnection("127.0.0.1", port, timeout=timeout)
    content = None if body is None else json.dumps(body)
    try:
        connection.request("GET" if body is None else "POST", path, content, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


class Load:
    """Clients that ask one request after the other; what they were answered, and after how long."""

    def __init__(self, ports: Sequence[int], requests: Sequence[Request], *, clients: int, seed: int = 1) -> None:
        self.ports, self.requests, self.clients, self.seed = ports, requests, clients, seed
        self.seconds: list[float] = []
        self.statuses: Counter[int] = Counter()
        self.wrong: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def failed(self) -> int:
        """Requests that ended in neither an answer nor a refusal with a time after which to try again."""
        return self.wrong.total()

    def run(self, seconds: float, *, each: int | None = None) -> None:
        """Ask for so long; or every client exactly so many times, each until it has its answer."""
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=self._client, args=(number, end, each)) for number in range(self.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _client(self, number: int, end: float, each: int | None) -> None:
        draw = random.Random(self.seed * 1000 + number)  # noqa: S311 - not for secrets
        answered = 0
        while time.monotonic() < end and (each is None or answered < each):
            path, body = draw.choice(self.requests)
            answered += self._ask_until_answered(path, body, draw, end)

    def _ask_until_answered(self, path: str, body: dict[str, Any], draw: random.Random, end: float) -> bool:
        while True:
            began = time.monotonic()
            try:
                status, headers, content = ask(draw.choice(self.ports), path, body)
                wrong = self._fault(status, headers, content)
            except (OSError, ValueError) as error:
                status, headers, wrong = 0, {}, f"{type(error).__name__}: {error}"
            with self._lock:
                self.statuses[status] += 1
                self.seconds.append(time.monotonic() - began)
                if wrong:
                    self.wrong[wrong] += 1
            if status not in REFUSALS or wrong or time.monotonic() > end:
                return status == 200
            time.sleep(float(headers["retry-after"]) * draw.uniform(0.5, 1.5))

    @staticmethod
    def _fault(status: int, headers: dict[str, str], content: bytes) -> str:
        if status == 200:
            json.loads(content)
            return ""
        if status in REFUSALS and "retry-after" in headers:
            return ""
        return f"status {status}: {content[:200]!r}"

    def report(self) -> str:
        """One line for people, and a line for each kind of failure."""
        ordered = sorted(self.seconds)
        half, late = ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]
        refused = sum(self.statuses[status] for status in REFUSALS)
        counts = f"{len(ordered)} requests, {self.statuses[200]} answered, {refused} refused with Retry-After"
        failures = (f"{count} x {what}" for what, count in self.wrong.most_common())
        return "\n".join([f"{counts}, {self.failed} failed; p50 {half:.2f} s, p99 {late:.2f} s", *failures])
