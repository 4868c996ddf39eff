"""The extreme-classification text formats: features with label lists, and sparse matrices.

The text format (``read_xc``, ``write_xc``) has one row per line, labels first::

    file     = header , { row , end } , [ row ] , { blank , end } ;
    header   = [ space ] , N , space , D , space , L , [ space ] , end ;
    row      = [ labels ] , { space , entry } , [ space ]     (* no labels: a space comes first *)
             | entry , { space , entry } , [ space ] ;        (* or an entry does *)
    labels   = index , { "," , index } ;
    entry    = index , ":" , number ;
    number   = [ "+" | "-" ] , ( digits , [ "." , [ digits ] ] | "." , digits ) ,
               [ ( "e" | "E" ) , [ "+" | "-" ] , digits ] ;
    index    = digits ;                   (* from 0 *)
    N, D, L  = digits ;                   (* numbers of rows, features and labels *)
    space    = ( " " | tab ) , { " " | tab } ;
    blank    = [ space ] ;
    end      = [ carriage return ] , line feed ;

A matrix file (``read_label_matrix``, ``read_feature_matrix``) has the header ``N L`` (or ``N D``)
and rows of entries alone; for labels, values lie in [0, 1].

What the grammar leaves open:

- A blank line is a row without labels and features; only behind the N-th row it is nothing. The
  last line need not end. Files may be gzip (told from their first bytes) and start with a UTF-8
  byte-order mark.
- Values are rounded to the nearest float32. ``nan``, ``inf`` and what float32 cannot hold are
  refused; what is too small for it is 0. Zeros among features are kept, those among labels dropped.
- Entries may come in any order. A label listed twice in a row counts once; the values of a feature,
  or of a label in a matrix file, that is listed twice are added, and refused if a label's sum is
  above 1.
- Without a header a file is refused, unless ``header="infer"``: then N is the number of lines (less
  blank ones at the end), and D and L are the largest indices plus one.

Everything else is a ``DataFormatError`` with file, line and column (in bytes, from 1).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail._csr import csr
from longtail._lines import FilePath, open_for_writing
from longtail._native import core, csr_args, n_threads
from longtail._validation import as_features, as_labels, check_same_rows
from longtail.data.xc_text import Layout, parse_file

__all__ = [
    "read_feature_matrix",
    "read_label_matrix",
    "read_xc",
    "write_feature_matrix",
    "write_label_matrix",
    "write_xc",
]

_TEXT = Layout(("N", "D", "L"), labelled=True)
_LABELS = Layout(("N", "L"), noun="label", unit_values=True)
_FEATURES = Layout(("N", "D"))

_ENTRIES = 1 << 21  # entries turned into text at a time


def read_xc(
    path: FilePath,
    *,
    header: bool | str = True,
    n_features: int | None = None,
    n_labels: int | None = None,
    n_jobs: int | None = None,
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Read features X (N, D) and labels Y (N, L), both CSR float32, from the text format.

    The file is read in blocks and parsed by ``n_jobs`` threads (None: all cores); memory is that of
    the result and a few blocks.

    Parameters
    ----------
    path : str or path
        Plain or gzip file.
    header : bool or str
        True if the first line must be ``N D L``; ``"infer"`` to do without where there is none.
    n_features, n_labels : int or None
        Widths of X and Y, at least those of the file (a test file may know fewer features than the
        training file).
    n_jobs : int or None
        Number of threads; the result does not depend on it.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "train.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write("2 4 3\\n0,2 1:0.5 3:2\\n 0:1\\n")
    >>> X, Y = read_xc(path)
    >>> X.toarray()
    array([[0. , 0.5, 0. , 2. ],
           [1. , 0. , 0. , 0. ]], dtype=float32)
    >>> Y.toarray()
    array([[1., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    parser, shape = parse_file(path, _TEXT, header, (n_features, n_labels), n_jobs)
    ends, labels = parser.take_labels()
    Y = _csr((ends, labels, np.ones(len(labels), np.float32)), (shape[0], shape[2]))
    return _csr(parser.take_entries(), shape[:2]), Y


def read_label_matrix(
    path: FilePath,
    *,
    header: bool | str = True,
    n_labels: int | None = None,
    n_jobs: int | None = None,
) -> sp.csr_matrix:
    """Read labels Y (N, L), CSR float32 with values in (0, 1], from a matrix file.

    Parameters as for ``read_xc``.

    Parameters
    ----------
    path : str or path
        Where the file is.
    header : bool or str, default=True
        As for ``read_xc``.
    n_labels : int, default=None
        Width, where the file does not say.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.
    """
    parser, shape = parse_file(path, _LABELS, header, (n_labels,), n_jobs)
    Y = _csr(parser.take_entries(), shape)
    if not Y.data.all():
        Y.eliminate_zeros()
    return Y


def read_feature_matrix(
    path: FilePath,
    *,
    header: bool | str = True,
    n_features: int | None = None,
    n_jobs: int | None = None,
) -> sp.csr_matrix:
    """Read features X (N, D), CSR float32, from a matrix file. Parameters as for ``read_xc``.

    Parameters
    ----------
    path : str or path
        Where the file is.
    header : bool or str, default=True
        As for ``read_xc``.
    n_features : int, default=None
        Width, where the file does not say.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.
    """
    parser, shape = parse_file(path, _FEATURES, header, (n_features,), n_jobs)
    return _csr(parser.take_entries(), shape)


def write_xc(path: FilePath, X: Any, Y: Any, *, n_jobs: int | None = None) -> None:
    """Write features X (N, D) and labels Y (N, L) in the text format.

    The file is gzip if its name ends in .gz, and appears whole or not at all. Values are written
    with as few digits as read back to the same float32, so that ``read_xc`` returns the same bits.
    Refuses labels with a value below 1: the format has no place for it (``write_label_matrix``
    has).

    Parameters
    ----------
    path : str or path
        The file; ``.gz`` is packed.
    X : matrix of shape (n, d)
        Rows of features.
    Y : matrix of shape (n, L), or list of lists of int
        Labels of the rows.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "copy.txt")
    >>> write_xc(path, [[0, 0.1], [3, 0]], [[2, 0], []])
    >>> print(open(path).read(), end="")
    2 2 3
    0,2 1:0.1
     0:3
    """
    X = sp.csr_matrix(as_features(X))
    Y = as_labels(Y)
    check_same_rows(X.shape[0], Y.shape[0])
    if Y.nnz and Y.data.min() < 1:
        raise ValueError(
            f"Y holds the value {Y.data.min():g}: the text format has plain labels only, "
            "keep soft ones in a file of their own with write_label_matrix"
        )
    x, y, threads = csr_args(X), csr_args(Y), n_threads(n_jobs)
    with open_for_writing(path) as file:
        file.write(b"%d %d %d\n" % (*X.shape, Y.shape[1]))
        for begin, end in _portions(X.indptr, Y.indptr):
            file.writelines(core.xc_write(x, y, begin, end, threads))


def write_label_matrix(path: FilePath, Y: Any, *, n_jobs: int | None = None) -> None:
    """Write labels Y (N, L) as a matrix file, soft values included. Otherwise as ``write_xc``.

    Parameters
    ----------
    path : str or path
        Where the file is.
    Y : matrix of shape (n, L), or list of lists of int
        Labels of the rows.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.
    """
    _write_matrix(path, as_labels(Y), n_jobs)


def write_feature_matrix(path: FilePath, X: Any, *, n_jobs: int | None = None) -> None:
    """Write features X (N, D) as a matrix file. Otherwise as ``write_xc``.

    Parameters
    ----------
    path : str or path
        Where the file is.
    X : matrix of shape (n, d)
        Rows of features.
    n_jobs : int, default=None
        Number of threads; None is all cores. Results do not depend on it.
    """
    _write_matrix(path, sp.csr_matrix(as_features(X)), n_jobs)


def _write_matrix(path: FilePath, matrix: sp.csr_matrix, n_jobs: int | None) -> None:
    args, threads = csr_args(matrix), n_threads(n_jobs)
    with open_for_writing(path) as file:
        file.write(b"%d %d\n" % matrix.shape)
        for begin, end in _portions(matrix.indptr):
            file.writelines(core.xc_write_matrix(args, begin, end, threads))


def _portions(*indptrs: np.ndarray) -> Iterator[tuple[int, int]]:
    """Cut rows into ranges of about ``_ENTRIES`` rows and entries together."""
    ends = np.arange(len(indptrs[0]), dtype=np.int64)
    for indptr in indptrs:
        ends += indptr
    cuts = np.searchsorted(ends, np.arange(_ENTRIES, ends[-1], _ENTRIES))
    bounds = np.unique(np.concatenate([[0], cuts, [len(ends) - 1]])).tolist()
    return itertools.pairwise(bounds)


def _csr(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray], shape: tuple[int, ...]
) -> sp.csr_matrix:
    """Return row ends, indices and values as a CSR matrix of this shape."""
    ends, indices, values = entries
    return csr(np.concatenate([[0], ends]), indices, values, shape[1])
