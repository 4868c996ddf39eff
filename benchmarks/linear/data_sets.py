"""The same rows for every system: unit-length sparse features and labels, on disk.

A data set with features is taken as it is; raw texts become TF-IDF of words (sublinear term
frequency, words of at least two documents). Then every row is scaled to unit length. Written once,
in each form that some system reads:

    train_X.npz, train_Y.npz, test_X.npz, test_Y.npz    CSR float32
    train.txt                                           the text format, for omikuji
    train_words.txt                                     "__label__3 17 204 …", for fastText
    facts.json                                          sizes, and how the features were made
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt

__all__ = ["prepare"]


def prepare(source: Path, root: Path) -> Path:
    """Writes the forms of the data set in ``source`` below ``root``, once; returns their folder.

    The folder's name tells the content of ``source`` and the vectorizer apart, so that two runs
    with different versions never share one.
    """
    origin = {"files": _fingerprint(source), "vectorizer": _vectorizer_name()}
    digest = hashlib.sha256(json.dumps(origin).encode()).hexdigest()[:12]
    folder = root / f"{source.name}-{digest}"
    if not folder.exists():
        root.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=root, prefix="unfinished-"))
        try:
            _write(source, unfinished)
            unfinished.rename(folder)
        except BaseException:
            shutil.rmtree(unfinished)
            if not folder.exists():  # else another run was faster
                raise
    return folder


def _write(source: Path, folder: Path) -> None:
    data = lt.load_dataset(source)
    X, X_test, features = data.train.X, data.test.X, "as given"
    if X is None:
        vectorizer = _vectorizer()
        X = vectorizer.fit_transform(data.train.texts)
        X_test = vectorizer.transform(data.test.texts)
        features = f"TF-IDF of words by {_vectorizer_name()}"
    X, X_test = _unit_rows(X), _unit_rows(X_test)
    Y, Y_test = data.train.Y, data.test.Y

    for name, matrix in {"train_X": X, "train_Y": Y, "test_X": X_test, "test_Y": Y_test}.items():
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(matrix), compressed=False)
    lt.write_xc(folder / "train.txt", X, Y)
    _write_words(folder / "train_words.txt", X, Y)
    facts = {
        "features": f"{features}, unit rows",
        "rows": X.shape[0],
        "test_rows": X_test.shape[0],
        "n_features": X.shape[1],
        "n_labels": Y.shape[1],
        "features_per_row": X.nnz / X.shape[0],
        "labels_per_row": Y.nnz / X.shape[0],
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=1))


def _vectorizer() -> Any:
    if "Tfidf" in lt.__all__:
        return lt.Tfidf()
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)


def _vectorizer_name() -> str:
    return "lt.Tfidf()" if "Tfidf" in lt.__all__ else "TfidfVectorizer(sublinear_tf=True, min_df=2)"


def _fingerprint(source: Path) -> list[list[Any]]:
    files = sorted(path for path in source.iterdir() if path.is_file())
    return [[path.name, hashlib.sha256(path.read_bytes()).hexdigest()] for path in files]


def _unit_rows(X: Any) -> sp.csr_matrix:
    X = sp.csr_matrix(X, dtype=np.float32, copy=True)
    X.sort_indices()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel())
    lengths[lengths == 0] = 1
    X.data /= np.repeat(lengths, np.diff(X.indptr)).astype(np.float32)
    return X


def _write_words(path: Path, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
    with open(path, "w") as file:
        for i in range(X.shape[0]):
            labels = Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()
            words = X.indices[X.indptr[i] : X.indptr[i + 1]].tolist()
            file.write(" ".join([f"__label__{label}" for label in labels] + list(map(str, words))))
            file.write("\n")
