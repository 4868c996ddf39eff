"""``KeptRay``: Ray's backend of joblib, whose workers stay from one call to the next.

Ray's own starts new processes for every call and ends them after it; each imports everything anew,
and maps the rows anew. Imported by ``engines`` once Ray is asked for.
"""

from __future__ import annotations

from typing import Any

from ray.util.joblib.ray_backend import RayBackend

__all__ = ["KeptRay"]


class KeptRay(RayBackend):  # type: ignore[misc]
    """Workers that live until ``end``, or until one of them is lost."""

    _asked: int | None = None
    _size: int = 0

    def configure(self, n_jobs: int = 1, parallel: Any = None, **options: Any) -> int:
        if self._pool is None or n_jobs != self._asked:
            self.end()
            self._size = super().configure(n_jobs, parallel, **options)
            self._asked = n_jobs
        self.parallel = parallel
        return self._size

    def terminate(self) -> None:
        """Do nothing: the call is over, the workers stay."""
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """End the workers after an error; the next call starts new ones."""
        self.end()
        if ensure_ready:
            self.configure(self.parallel.n_jobs, self.parallel, **self.parallel._backend_kwargs)

    def end(self) -> None:
        """End the workers."""
        super().terminate()
