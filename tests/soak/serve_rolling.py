"""Restart two servers behind one address, one after the other, while many clients ask for everything at once.

    python tests/soak/serve_rolling.py                        # 1,000 clients, each until it has an answer
    python tests/soak/serve_rolling.py --clients 50           # a quick try

Prints requests, failures, and the median and 99th percentile of the waiting time. The exit status is 1 if a request
ended in anything but an answer, or 429 or 503 with Retry-After.
"""

import argparse
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers.balancer import Balancer
from helpers.served import Load, Server, mixed_requests

OPTIONS = ("--drain", "2", "--queue", "200", "--per-client", "200")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=20.0, help="the most that it may take")
    given = parser.parse_args()
    restarted: list[float] = []
    with Server(*OPTIONS) as first, Server(*OPTIONS) as second, Balancer([first.port, second.port]) as balancer:
        load = Load([balancer.port], mixed_requests(), clients=given.clients)

        def roll() -> None:
            for server in (first, second):
                server.restart()
                while not balancer.is_well(server.port):
                    time.sleep(0.05)
                restarted.append(time.monotonic())

        rolling = threading.Thread(target=roll)
        rolling.start()
        load.run(60 * given.minutes, each=1)
        rolling.join()
    answered = load.statuses[200] == given.clients
    print(load.report())  # noqa: T201
    print(f"{len(restarted)} servers restarted; {'every' if answered else 'NOT EVERY'} client has its answer")  # noqa: T201
    sys.exit(0 if answered and not load.failed and len(restarted) == 2 else 1)


if __name__ == "__main__":
    main()
