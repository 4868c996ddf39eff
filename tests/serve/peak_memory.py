"""Print by how many bytes hostile bodies raise the peak of memory; a script.

    python tests/serve/peak_memory.py FOLDER SIZE

FOLDER has a model and a shard. The folder of ``hostile_bodies`` is on the path.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from pathlib import Path

from hostile_bodies import hostile_bodies, hostile_rows
from serve_cases import call

import longtail as lt
from longtail.linear.remote_shard import MODEL_HEADER
from longtail.serve.app import create_app
from longtail.serve.settings import Settings
from longtail.tagger.sharding import shard_mark


def peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


async def main() -> None:
    folder, size = Path(sys.argv[1]), int(sys.argv[2])
    shard = lt.load(folder / "shard")
    rank = {MODEL_HEADER: shard_mark(shard).model}
    model, ranking = (create_app(Settings(str(folder / name))) for name in ("model", "shard"))
    requests = [(model, path, body, {}) for path, body in hostile_bodies(size).values()]
    rows = hostile_rows(size, shard.n_features_in_).values()
    requests += [(ranking, "/rank", body, rank) for body in rows]
    await call(model, "/predict", {"text": "paper"})
    before = peak()
    for app, path, body, headers in requests:
        await call(app, path, body, headers=headers)
    print(peak() - before)


asyncio.run(main())
