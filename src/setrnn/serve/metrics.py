"""What Prometheus can ask for: counts and times, never a word of a text."""

from __future__ import annotations

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
DOCUMENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters of one service, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "setrnn_requests", "Requests answered.", ("route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "setrnn_request_seconds",
            "From the request's head to the end of its answer.",
            ("route",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.documents = Counter(
            "setrnn_documents", "Documents worked on.", ("model",), registry=self.registry
        )
        self.batches = Histogram(
            "setrnn_batch_documents",
            "Documents a batch.",
            ("model",),
            buckets=DOCUMENTS,
            registry=self.registry,
        )
        self.waiting = Gauge(
            "setrnn_queue_documents", "Documents that wait.", ("model",), registry=self.registry
        )
        self.refused = Counter(
            "setrnn_queue_refused",
            "Requests refused because too much was waiting.",
            ("model",),
            registry=self.registry,
        )

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self.requests.labels(route, str(status)).inc()
        self.seconds.labels(route).observe(seconds)

    def count_batch(self, model: str, n_documents: int) -> None:
        """Count a batch that has ended."""
        self.documents.labels(model).inc(n_documents)
        self.batches.labels(model).observe(n_documents)

    def page(self) -> bytes:
        """Write all of it in Prometheus's text format."""
        return generate_latest(self.registry)
