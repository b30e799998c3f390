"""The metrics of a server, for Prometheus."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from regard.serving.batching import Batcher
from regard.serving.errors import RefusedError
from regard.serving.models import Models

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class ServerMetrics:
    """Requests, batches, what waits, and the models in memory."""

    def __init__(self, batcher: Batcher, models: Models) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("regard_requests", "Requests", ["verb", "status"], registry=self.registry)
        self.seconds = Histogram(
            "regard_request_seconds", "Seconds of a request", ["verb"], buckets=_SECONDS, registry=self.registry
        )
        batches = Histogram("regard_batch_inputs", "Inputs of a batch", buckets=_SIZES, registry=self.registry)
        batcher.on_batch = batches.observe
        waiting = Gauge("regard_waiting_inputs", "Inputs that wait", registry=self.registry)
        waiting.set_function(lambda: batcher.waiting)
        memory = Gauge("regard_model_bytes", "Bytes of the parameters of loaded models", registry=self.registry)
        memory.set_function(lambda: sum(models.loaded.values()))

    @contextmanager
    def request(self, name: str) -> Iterator[None]:
        """Count a request of this name, with its time and how it ended."""
        started, status = time.monotonic(), "ok"
        try:
            yield
        except BaseException as error:
            status = str(error.status) if isinstance(error, RefusedError) else type(error).__name__
            raise
        finally:
            self.requests.labels(name, status).inc()
            self.seconds.labels(name).observe(time.monotonic() - started)

    def text(self) -> bytes:
        """All of it in the text format of Prometheus."""
        return generate_latest(self.registry)
