"""The probes: what is tried, case by case. A case is a name from which everything follows.

models     damaged models, ``(kind, seed)``; every tenth from files, the others from states
calls      odd arguments of the public functions and methods, ``(name, seed)``
texts      damaged files for the readers, and odd texts, ``seed``
memory     ordinary work in an address space that grows by so many megabytes, ``(work, MB)``
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import inspect
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from saved_models import BLOCKS, ETA, LABELS, MODELS, NAMES, TEXTS, X, Y, exercise
from text_models import import_text_packages
from watched import Outcome, run

import longtail as lt
from longtail import metrics, persist
from longtail._blocks import BlockRows
from mutation import JUNK, copied, mutate, mutate_files

sys.path.append(str(Path(__file__).parents[1] / "data"))

__all__ = ["calls", "corpus", "memory", "models", "texts"]

CORPUS = Path(__file__).with_name("corpus")

_FILES = 10  # every so many-th model is damaged in its files


@functools.cache
def _folder() -> Path:
    """Models of every kind, saved once: by a process of its own, since cases run in forks of this
    one, and the threads that torch starts when it trains would not live on in them.
    """
    home = Path(tempfile.mkdtemp(prefix="longtail-fuzz-"))
    owner = os.getpid()

    def clean() -> None:
        if os.getpid() == owner:
            shutil.rmtree(home, ignore_errors=True)

    atexit.register(clean)
    path = os.pathsep.join(p for p in sys.path if p)
    subprocess.run(
        [sys.executable, Path(__file__).with_name("saved_models.py"), home],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    import_text_packages()  # here, and not in a case that would be taken for one that hangs
    return home


@functools.cache
def _state(kind: str) -> persist.State:
    return persist.load(_folder() / kind, mmap=False)


def models(n: int, seed: int = 0, kinds: list[str] | None = None) -> Outcome:
    """Damaged models are refused with ``ModelFormatError``, or answer something."""
    names = sorted(kinds or MODELS)
    for name in names:
        _state(name)
    return run([(names[i % len(names)], seed + i) for i in range(n)], damaged_model)


def damaged_model(case: tuple[str, int]) -> None:
    kind, seed = case
    rng = random.Random(f"{kind} {seed}")
    if seed % _FILES == 0 and not kind.startswith("v1-"):
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home) / "m"
            shutil.copytree(_folder() / kind, folder)
            mutate_files(folder, rng)
            load_and_use(lambda: lt.load(folder, mmap=rng.random() < 0.5))
    else:
        state = mutate(_state(kind), rng)
        load_and_use(lambda: lt._models.from_state(state))


def changed_model(entry: dict[str, Any]) -> None:
    """A model with other parameters, as ``corpus/models.json`` tells them."""
    state = copied(_state(entry["kind"]))
    node = state
    for name in entry["part"]:
        node = node.parts[name]
    assert set(entry["params"]) <= set(node.params), "the entry names parameters that are no more"
    node.params.update(entry["params"])
    load_and_use(lambda: lt._models.from_state(state))


def load_and_use(load: Callable[[], Any]) -> None:
    try:
        model = load()
    except (lt.exceptions.ModelFormatError, MemoryError):
        return
    except Exception as error:  # a loader may refuse in one way only
        raise AssertionError(f"loading raised {type(error).__name__}: {error}") from error
    exercise(model)


ODD: list[Any] = [
    *JUNK,
    b"bytes",
    object(),
    np.float32(1.5),
    np.int64(3),
    np.array(3),
    np.zeros((0, 0)),
    np.ones((3, 20), np.float32),
    np.full((3, 20), np.nan),
    np.array(["a", "b"]),
    np.array([None, 1], object),
    sp.csr_matrix((3, 20)),
    sp.csr_matrix((0, 20)),
    sp.eye(20, format="coo"),
    X,
    BLOCKS,
    BlockRows(X, np.full((60, 2), np.nan)),
    X.toarray(),
    Y,
    Y.astype(bool),
    ETA,
    TEXTS,
    LABELS,
    [[0], [1, 2], []],
    [[10**9]],
    [[-1]],
    range(5),
    iter([1, 2]),
    lambda *a: None,
    lt.baselines.Popularity,
    lt.OneVsAll(),
    lt.tree.LabelTree(leaf=3),
    lt.JainPropensity(),
    10**9,
    -(10**9),
    1e308,
    complex(1, 2),
    "/dev/null/x",
    "\0",
]


def _lying() -> sp.csr_matrix:
    """Unsorted, with duplicates, and flags that deny it."""
    rows = sp.csr_matrix((3, 20), dtype=np.float32)
    rows.indptr = np.array([0, 2, 4, 4], np.int32)
    rows.indices = np.array([5, 1, 7, 7], np.int32)
    rows.data = np.ones(4, np.float32)
    rows.has_canonical_format = True
    return rows


ODD.append(_lying())
# Some start downloads, processes or servers, or write where they are told.
LEFT_OUT = {"load_dataset", "register_dataset", "native_info", "list_datasets", "make_longtail"}


@functools.cache
def _callables() -> dict[str, Callable[..., Any]]:
    """Public functions, constructors, and methods of fitted models, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for name in lt.__all__:
        value = getattr(lt, name)
        if callable(value) and name not in LEFT_OUT:
            found[name] = value
    for module in (
        metrics,
        lt.losses,
        lt.decide,
        lt.codes,
        lt.calibrate,
        lt.tree,
        lt.propensity,
    ):
        names = [name for name in module.__all__ if callable(getattr(module, name))]
        found |= {f"{module.__name__}.{name}": getattr(module, name) for name in names}
    for kind in sorted(MODELS):
        if not kind.startswith("v"):
            model = lt._models.from_state(_state(kind))
            for name in dir(type(model)):
                if name.startswith("_") or name in ("save", "get_params", "merge"):
                    continue
                with contextlib.suppress(Exception):
                    if callable(value := getattr(model, name)):
                        found[f"{kind}.{name}"] = value
    return found


def calls(n: int, seed: int = 0) -> Outcome:
    """Whatever a public function is given, it returns or says what is wrong."""
    names = sorted(_callables())
    return run([(names[i % len(names)], seed + i) for i in range(n)], odd_call)


def odd_call(case: tuple[str, int]) -> None:
    name, seed = case
    rng = random.Random(f"{name} {seed}")
    function = _callables()[name]
    with _quiet():
        function(*_arguments(function, rng), **_keywords(function, rng))


def told_call(entry: dict[str, Any]) -> None:
    """A call with the arguments that ``corpus/calls.json`` tells."""
    function = _callables()[entry["call"]]
    with _quiet():
        function(*map(_told, entry["arguments"]), **entry["keywords"])


def _told(value: Any) -> Any:
    """A JSON value as it is, or the value that has a name here."""
    if isinstance(value, dict):
        return _lying() if value["name"] == "lying" else USUAL[value["name"]][0]
    return value


def corpus() -> Outcome:
    """What was found before, once more."""
    _callables()
    seeds = _read("seeds")
    known = [tuple(case) for case in seeds["models"] if case[0] in MODELS]
    out = run(known, damaged_model)
    for cases, case in [
        (seeds["texts"], odd_text),
        (_read("models"), changed_model),
        (_read("calls"), told_call),
    ]:
        out += run(cases, case)
    return out


def _read(name: str) -> Any:
    """Entries of the corpus; those of models that cannot be had here are left out."""
    found = json.loads((CORPUS / f"{name}.json").read_text())
    if name == "calls":
        return [entry for entry in found if entry["call"] in _callables()]
    return found


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def _arguments(function: Callable[..., Any], rng: random.Random) -> list[Any]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [p for p in _parameters(function) if p.kind in kinds]
    return [
        _value(p, rng) for p in named if p.default is inspect.Parameter.empty or rng.random() < 0.2
    ]


def _keywords(function: Callable[..., Any], rng: random.Random) -> dict[str, Any]:
    return {
        p.name: _value(p, rng)
        for p in _parameters(function)
        if p.kind is inspect.Parameter.KEYWORD_ONLY
        and (
            p.default is inspect.Parameter.empty
            or p.name in AMOUNTS_OF_WORK  # the usual thousands take seconds
            or rng.random() < 0.3
        )
    }


USUAL = {
    "X": [X, X.toarray()],
    "Y": [Y],
    "Y_true": [Y],
    "top": [ETA],
    "eta": [ETA],
    "k": [3, 10**9],
}
USUAL |= {"texts": [TEXTS], "labels": [LABELS], "text": [TEXTS[0]], "label": [0, "jam", "l1"]}
USUAL |= {"p": [np.linspace(0.1, 1, 12)], "label_names": [NAMES], "n_jobs": [1, 1000]}


AMOUNTS_OF_WORK = {"n_resamples", "n_repeats", "n_draws", "max_iter", "max_sweeps", "n_bins"}


def _value(parameter: inspect.Parameter, rng: random.Random) -> Any:
    """The usual, or something odd. Most calls should get past the first check."""
    usual = USUAL.get(parameter.name)
    if usual and rng.random() < 0.6:
        return rng.choice(usual)
    if parameter.name in AMOUNTS_OF_WORK:  # as much as is asked for, and no hang
        return rng.choice([0, 1, 3, -1, True, None, "x", 1.5])
    if parameter.name in ("path", "checkpoint", "file"):
        return rng.choice(["", "\0", "/dev/null/x", "/proc/nothing", 3, None, str(_folder() / "x")])
    if parameter.default is not inspect.Parameter.empty and rng.random() < 0.3:
        return parameter.default
    return rng.choice(ODD)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def texts(n: int, seed: int = 0) -> Outcome:
    """Damaged files are read or refused with ``DataFormatError``; any text gives a row."""
    return run(range(seed, seed + n), odd_text)


def odd_text(seed: int) -> None:
    from test_hostile_files import READERS, read_or_refuse

    rng = random.Random(seed)
    if seed % 2:
        name = rng.choice(sorted(READERS))
        content = bytearray(READERS[name][0])
        for _ in range(rng.randint(1, 5)):
            at = rng.randrange(len(content) + 1)
            pieces = [b"[", b'"', b"{", b"-1", b"\n", b"1e999", b"\xff", b"\0", b",,", b"0" * 40]
            content[at : at + rng.randrange(9)] = rng.choice([*pieces, rng.randbytes(4)])
        read_or_refuse(name, bytes(content))
        return
    alphabet = [
        "a",
        "B",
        "é",
        "ß",
        "İ",
        "ﬁ",
        "東",
        "\u0301",
        "😀",
        "\ud800",
        " ",
        "\n",
        "_",
        "1",
        "-",
    ]
    made = ["".join(rng.choices(alphabet, k=rng.randrange(40))) for _ in range(rng.randint(1, 6))]
    how = {
        "analyzer": rng.choice(["word", "char", "char_wb"]),
        "ngram_range": rng.choice([(1, 1), (1, 3), (2, 5), (1, 10**9)]),
        "strip_accents": rng.choice([None, "unicode", "ascii"]),
        "lowercase": rng.random() < 0.5,
        "n_features": rng.choice([None, None, 7, 2**31 - 1]),
        "min_df": rng.choice([1, 2, 0.0]),
    }
    vectorizer = lt.Tfidf(**how).fit(made)
    rows = vectorizer.transform(made)
    for i, text in enumerate(made):
        columns, values = vectorizer.transform_one(text)
        assert (columns == rows[i].indices).all() and (values == rows[i].data).all()


WORK: dict[str, Callable[[], Any]] = {
    "fit a tree": lambda: lt.XRLinear(n_jobs=8).fit(X, Y).predict_topk(X, k=3),
    "fit one-vs-all": lambda: lt.OneVsAll(n_jobs=1000).fit(X, Y).predict_topk(X, k=3),
    "vectorize": lambda: lt.Tfidf(min_df=1, n_jobs=8).fit_transform(TEXTS * 2000),
    "vectorize wide": lambda: lt.Tfidf(n_features=2**31 - 1).fit_transform(TEXTS),
    "neighbours": lambda: lt.baselines.NearestNeighbors(n_jobs=8).fit(X, Y).predict_topk(X, k=3),
    "code": lambda: lt.MACH(n_buckets=5, estimator="linear").fit(X, Y).predict_topk(X, k=3),
    "decide": lambda: lt.FrankWolfe("macro_f1", k=3, n_jobs=8).fit(ETA, Y).select(ETA),
    "load": lambda: [exercise(lt.load(_folder() / kind)) for kind in ("tagger", "mach")],
    "a large matrix": lambda: lt.OneVsAll().fit(sp.eye(20_000, format="csr"), Y[[0] * 20_000]),
}


def memory(rooms: list[int]) -> Outcome:
    """With little memory left: done, or a ``MemoryError``; never an end of the process."""
    _folder()
    for work in WORK.values():  # imports are not what is measured
        work()
    out = Outcome()
    for room in rooms:
        out += run([(name, room) for name in WORK], short_of_memory, room=room << 20)
    return out


def short_of_memory(case: tuple[str, int]) -> None:
    WORK[case[0]]()
