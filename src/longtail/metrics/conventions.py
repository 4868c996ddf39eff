"""``compat=``: the conventions of other evaluators, where their numbers differ from ours.

The metrics of this library follow the papers. Where an evaluator decides otherwise,
``compat="name"`` follows it:

===================  =========================  ==================================================
quantity             here                       elsewhere
===================  =========================  ==================================================
graded truth         the value is the gain      ``napkinxc``, ``pecos``: any value counts as 1
P@k of a short row   divided by k               ``sklearn``: divided by the labels predicted
DCG, nDCG of ties    the smaller id first       ``sklearn``: tied labels share their mean gain
PSDCG unnormalised   no prefactor               ``napkinxc``: divided by k
macro means          over all L labels          ``napkinxc``: over labels 0 to the largest id that
                                                occurs in truth or predictions
label measures       0/0 is 0                   ``xcolumns``: 1e-6 n is added to denominators
coverage             out of all L labels        ``napkinxc``: out of the labels of the truth
Hamming loss         fraction of n L entries    ``napkinxc``: wrong labels per row
===================  =========================  ==================================================

``"sklearn"`` stands for ``precision_score(average="samples")`` and ``ndcg_score``; its F1, macro
and micro means and Hamming loss agree with ours. The epsilon of ``"xcolumns"`` is felt for rare
labels in large test sets: a label predicted once, rightly, among a million rows has a precision of
0.5. ``"pyxclib"`` is accepted and changes nothing: on plain labels it agrees with us.

Not imitated: NaN for 0/0 in normalised metrics (napkinxc, pyxclib); the arbitrary order of ties
where others sort without stability; pyxclib's graded nDCG, which truncates the sum of a row's
values to a whole number. Evaluators that leave out rows without labels (``remove_invalid`` and
``fast_recall`` in pyxclib) are imitated by leaving them out: ``rows = Y.getnnz(axis=1) > 0;
recall_at_k(Y[rows], top[rows])``.

Compared with napkinxc 0.7.2, xcolumns 0.0.2, scikit-learn 1.4 and later, and the sources of pyxclib
and PECOS.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Convention", "convention"]


@dataclass(frozen=True)
class Convention:
    """How one evaluator decides what the papers leave open. The defaults are ours."""

    graded: bool = True  # a truth value is a gain; False: any stored value counts as 1
    precision_over_predicted: bool = False  # P@k divides by the labels a row predicts, not by k
    average_ties: bool = False  # DCG gives tied labels the mean of their gains
    ps_dcg_over_k: bool = False  # unnormalised PSDCG@k has the prefactor 1/k
    macro_up_to_largest_id: bool = False  # macro means leave out ids above the largest that occurs
    coverage_of_present: bool = False  # coverage is out of the labels of the truth, not of all L
    hamming_per_row: bool = False  # Hamming loss is a number of labels per row, not a fraction
    epsilon: float = 0.0  # added to the denominators of label metrics, times the number of rows


_CONVENTIONS = {
    "napkinxc": Convention(
        graded=False,
        ps_dcg_over_k=True,
        macro_up_to_largest_id=True,
        coverage_of_present=True,
        hamming_per_row=True,
    ),
    "pecos": Convention(graded=False),
    "pyxclib": Convention(),
    "sklearn": Convention(precision_over_predicted=True, average_ties=True),
    "xcolumns": Convention(epsilon=1e-6),
}
_OURS = Convention()


def convention(compat: str | None) -> Convention:
    """Return the convention named by ``compat``; None is ours.

    >>> convention("napkinxc").coverage_of_present
    True
    """
    if compat is None:
        return _OURS
    if compat not in _CONVENTIONS:
        known = ", ".join(sorted(_CONVENTIONS))
        raise ValueError(f"unknown compat {compat!r}: choose one of {known}, or None")
    return _CONVENTIONS[compat]
