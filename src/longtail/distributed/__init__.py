"""Work on more than one machine: finished parts in a shared folder, by tasks of an engine.

There is no scheduler here, and no second implementation of a model. Models cut their training into
parts that do not wait for one another, and keep finished ones in the folder of a checkpoint. Inside
``joblib.parallel_config`` (or ``engine``, which also registers the backend) the parts that are
missing become tasks of joblib, and so of Ray, Dask, Spark or processes of this machine::

    fit(X, Y, checkpoint=folder)            folder, on a disk that all machines see
    ────────────────────────────            ───────────────────────────────────────
    cut into parts                          problem.json     fingerprint: data, parameters, version
    save what tasks read        ───►        rows             features, written once, mapped by all
                                            level1-problem   who trains on what, mapped as well
    one task per missing part               running-4f1c…    the lease: go on while it is there
         │                                       │ │
         └──► worker: map rows and problem ◄─────┘ │
              train the part                       │
              save it           ───►        level1-0, …      finished parts, whole or absent
    read all parts, join them   ◄───              ▲│
    remove rows, problems                         └┘ or the next call, if this one ends early

A task is a name and a call (``Task``): a few hundred bytes, however large the data. It returns no
weights; what it has learned is the part it leaves in the folder, in the format of checkpoints.
From this follows the rest:

same bits     Seeds belong to blocks of labels, parts to the data; neither knows who did the work. A
              worker with another version or other instructions than the caller's is refused.
lost worker   When an engine reports a failure, parts that are not in the folder are tasks again.
slow worker   Workers take one part at a time; a slow one does fewer.
Ctrl-C        The caller removes the lease, and tasks end within a second, on any engine, also those
              an engine cannot reach. A task that fails removes it too: the others need not go on.
resuming      The same call again does what is missing, there or here, with any number of workers.

``tasks`` runs them, ``shared`` are the files they read, ``lease`` is the one that ends them,
``engines`` names the engines, ``kept_ray`` lets workers of Ray stay between calls. What is a part,
and what a task reads, is told by the room that trains (``longtail.linear.train.elsewhere``).
"""

from longtail.distributed.engines import engine

__all__ = ["engine"]
