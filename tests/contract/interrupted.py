"""Started by test_contract_interrupt.py: works on a large problem until interrupted, twice."""

import sys
import time

import numpy as np
import scipy.sparse as sp
from contract_cases import CASES, params_of

make = next(case.make for case in CASES if case.name == sys.argv[1])
params = {"n_jobs": 1} if "n_jobs" in params_of(make) else {}  # as slow on every machine
rng = np.random.default_rng(0)
n, d, per_row = 20_000, 200, 100
columns = (rng.integers(0, d, (n, 1)) + np.arange(per_row)) % d
values = rng.random(n * per_row, np.float32)
X = sp.csr_matrix((values, columns.ravel(), np.arange(n + 1) * per_row))
Y = sp.csr_matrix((np.ones(n, np.float32), rng.integers(0, 1000, n), np.arange(n + 1)))
fitted = make(**params).fit(X, Y)

for work in (lambda: make(**params).fit(X, Y), lambda: fitted.predict_topk(X)):
    print("working", flush=True)
    try:
        while True:
            work()
    except KeyboardInterrupt:
        print("interrupted", time.time(), flush=True)
print("still sane", fitted.predict_topk(X[:3]).k, flush=True)
