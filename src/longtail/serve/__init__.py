"""A model over HTTP, with a page: the extra "serve".

    app        the endpoints, thin, over an OpenAPI contract (schemas)
    guard      what every request passes first: token, body limit, time-out, error format
    batching   requests that arrive together are answered together; a full queue refuses
    holder     the model in use, and the watch for a new one that takes over without a pause
    counters   Prometheus numbers, summed over worker processes
    run        the server process, or several

The web framework is imported by ``app`` and ``run`` only, when they are used.
"""

from longtail.serve.run import run
from longtail.serve.settings import Settings

__all__ = ["Settings", "run"]
