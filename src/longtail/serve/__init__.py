"""A model over HTTP, with a page: the extra "serve".

    protocol   connections: time and size of a request's head, silent and stalled clients
    guard      what every request passes first: host, rate, token, body limit, time-out, errors
    app        the endpoints, thin, over an OpenAPI contract (schemas)
    shard_app  those of a shard, for a model whose labels are on several servers
    bodies     what a body may hold, and where it is parsed
    batching   requests that arrive together are answered together; a full queue refuses
    copying    a copy of the model that nobody else writes to
    holder     the model in use, and the watch for a new one that takes over without a pause
    counters   Prometheus numbers, summed over worker processes
    running    the server process, or several under a supervisor

The web framework is imported by ``app``, ``protocol`` and ``server`` only, when they are used.
"""

from longtail.serve.running import run
from longtail.serve.settings import Settings

__all__ = ["Settings", "run"]
