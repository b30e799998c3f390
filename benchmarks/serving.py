"""What batches across clients are worth: answers a second of `regard serve`, one at a time and together.

python benchmarks/serving.py [--seconds 15] [--clients 64] [--model en-fr]

Starts the server twice on this machine, with --batch 1 and with its default, and lets clients ask for translations
without a pause. Prints answers a second, the median and the 99th percentile of the waiting time, and the ratio.
"""

import argparse
import http.client
import json
import re
import statistics
import subprocess
import sys
import threading
import time

TEXTS = [
    "He is happy.",
    "The man in the red jacket is reading an old book.",
    "Would you like a cup of coffee?",
    "I have never seen such a beautiful garden.",
]


def ask(connection: http.client.HTTPConnection, model: str, text: str) -> int:
    body = json.dumps({"model": model, "input": text, "options": {"beam": 3}})
    connection.request("POST", "/v1/translate", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def measure(batch: int, *, clients: int, seconds: float, model: str) -> tuple[float, float, float]:
    """Answers a second, and the median and the 99th percentile of the seconds that one takes."""
    command = [sys.executable, "-m", "regard", "serve", "--port", "0", "--batch", str(batch), "--deadline", "600"]
    command += ["--queue", "10000", "--per-client", "10000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        port = int(re.search(r":(\d+)/", process.stdout.readline())[1])
        ask(http.client.HTTPConnection("127.0.0.1", port), model, TEXTS[0])
        times: list[float] = []
        end = time.monotonic() + seconds

        def client(number: int) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            while (start := time.monotonic()) < end:
                status = ask(connection, model, TEXTS[number % len(TEXTS)])
                if status != 200:
                    raise SystemExit(f"The server answered with status {status}.")
                times.append(time.monotonic() - start)
                number += 1

        threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken = time.monotonic() - started
        process.terminate()
    return len(times) / taken, statistics.median(times), statistics.quantiles(times, n=100)[98]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--model", default="en-fr")
    given = parser.parse_args()
    rates = []
    for batch in (1, 32):
        rate, median, late = measure(batch, clients=given.clients, seconds=given.seconds, model=given.model)
        rates.append(rate)
        print(f"batch {batch:3}: {rate:7.1f} answers a second, median {median:.2f} s, p99 {late:.2f} s", flush=True)
    print(f"together / one at a time: {rates[1] / rates[0]:.1f}")


if __name__ == "__main__":
    main()
