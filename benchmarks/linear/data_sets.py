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

import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt

__all__ = ["prepare"]


def prepare(source: Path, folder: Path) -> dict[str, Any]:
    """Writes the forms of the data set in ``source`` to ``folder``; returns its facts."""
    receipt = folder / "facts.json"
    origin = {"source": _fingerprint(source), "vectorizer": _vectorizer_name()}
    if receipt.exists():
        facts: dict[str, Any] = json.loads(receipt.read_text())
        if facts["origin"] == origin:
            return facts
    folder.mkdir(parents=True, exist_ok=True)
    receipt.unlink(missing_ok=True)

    data = lt.load_dataset(source)
    features = "as given"
    if data.train.X is None:
        features = f"TF-IDF of words by {origin['vectorizer']}"
        vectorizer = _vectorizer()
        X, X_test = (
            vectorizer.fit_transform(data.train.texts),
            vectorizer.transform(data.test.texts),
        )
    else:
        X, X_test = data.train.X, data.test.X
    X, X_test = _unit_rows(X), _unit_rows(X_test)
    Y, Y_test = data.train.Y, data.test.Y

    for name, matrix in {"train_X": X, "train_Y": Y, "test_X": X_test, "test_Y": Y_test}.items():
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(matrix), compressed=False)
    lt.write_xc(folder / "train.txt", X, Y)
    _write_words(folder / "train_words.txt", X, Y)
    facts = {
        "origin": origin,
        "features": f"{features}, unit rows",
        "rows": X.shape[0],
        "test_rows": X_test.shape[0],
        "n_features": X.shape[1],
        "n_labels": Y.shape[1],
        "features_per_row": X.nnz / X.shape[0],
        "labels_per_row": Y.nnz / X.shape[0],
    }
    receipt.write_text(json.dumps(facts, indent=1))
    return facts


def _vectorizer() -> Any:
    if "Tfidf" in lt.__all__:
        return lt.Tfidf()
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)


def _vectorizer_name() -> str:
    return "lt.Tfidf()" if "Tfidf" in lt.__all__ else "TfidfVectorizer(sublinear_tf=True, min_df=2)"


def _fingerprint(source: Path) -> list[list[Any]]:
    files = sorted(path for path in source.iterdir() if path.is_file())
    return [[path.name, path.stat().st_size] for path in files]


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
