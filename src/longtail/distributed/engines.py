"""``engine``: joblib's configuration for an engine, with the backend registered."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from longtail.exceptions import MissingDependencyError

__all__ = ["ENGINES", "engine"]


def _ray() -> str:
    from joblib import register_parallel_backend

    kept = import_module("longtail.distributed.kept_ray").KeptRay
    register_parallel_backend("longtail-ray", kept)  # "ray" stays Ray's own
    return "longtail-ray"


def _dask() -> str:
    import_module("distributed.client")  # joblib knows this one by itself
    return "dask"


def _spark() -> str:
    import_module("pyspark")
    import_module("joblibspark").register_spark()
    return "spark"


# Engine → what registers joblib's backend for it, and returns its name.
ENGINES: dict[str, Callable[[], str]] = {
    "loky": lambda: "loky",
    "ray": _ray,
    "dask": _dask,
    "spark": _spark,
}


def engine(name: str, *, n_jobs: int = -1, **options: Any) -> Any:
    """Return ``joblib.parallel_config`` for an engine, to be used as a context.

    Training with ``checkpoint=`` inside it runs on the engine's workers; the folder of the
    checkpoint must be on a disk that all of them see, under the same path.

    Parameters
    ----------
    name : str
        "ray" (a cluster that ``ray.init`` has joined, or one of this machine), "dask" (that of the
        current ``distributed.Client``), "spark" (that of the current session), or "loky": processes
        of this machine. Ray's workers, once started, stay until the end of the context.
    n_jobs : int
        Number of tasks at a time; -1 for as many as the engine has cores.
    **options : object
        Further arguments of ``joblib.parallel_config``.

    Raises ValueError for another name, and MissingDependencyError where the engine is not
    installed: it says which extra brings it.

    >>> import tempfile, longtail as lt
    >>> data = lt.data.make_longtail(n=200, d=50, L=20, random_state=0).train
    >>> with lt.distributed.engine("loky", n_jobs=2):
    ...     model = lt.XRLinear().fit(data.X, data.Y, checkpoint=tempfile.mkdtemp())
    >>> here = lt.XRLinear().fit(data.X, data.Y)
    >>> model.predict_topk(data.X, k=3) == here.predict_topk(data.X, k=3)
    True
    """
    from joblib import parallel_config

    if name not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {name!r}")
    try:
        backend = ENGINES[name]()
    except ImportError as error:
        raise MissingDependencyError(
            (error.name or name).partition(".")[0], name, f"the engine {name!r}"
        ) from error

    class Engine(parallel_config):  # type: ignore[misc]
        def __exit__(self, *error: object) -> Any:
            out = super().__exit__(*error)
            if name == "ray":
                self.parallel_config["backend"].end()
            return out

    return Engine(backend=backend, n_jobs=n_jobs, **options)
