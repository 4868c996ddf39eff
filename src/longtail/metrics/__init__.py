"""Metrics: one function each, all called as ``metric(Y_true, top, ...)``.  (API sketch; code follows on this branch.)

Common arguments
    Y_true   whatever ``as_labels`` takes: CSR/dense indicator (values in (0, 1], graded truth allowed), list of label-id lists
    top      TopK, or a dense / CSR score matrix (ranked by ``TopK.from_scores``), or ``Matches`` from ``match(Y_true, top)``:
             matched once, used by every metric and every k:   m = match(Y, top);  precision_at_k(Y, m, k=1)
    k        int, default 5
    p        propensities: any object with ``.inverse_`` (L,), or an array of propensities in (0, 1]
    compat   None | "napkinxc" | "pyxclib" | "pecos" | "sklearn" | "xcolumns": that evaluator's convention where it differs
    labels   "all" (mean over all L labels) | "present" (over the labels with a positive in Y_true)
All return a float (a fraction).

Row-wise (each also has ``.rows(...)`` with the same arguments -> Rows(numerator (n,), denominator (n,)); value = ratio of sums)
    precision_at_k(Y_true, top, k=5, *, compat=None)
    recall_at_k(Y_true, top, k=5, *, compat=None)
    f1_at_k(Y_true, top, k=5, *, compat=None)                        instance-wise F1
    dcg_at_k(Y_true, top, k=5, *, compat=None)
    ndcg_at_k(Y_true, top, k=5, *, compat=None)
    abandonment_at_k(Y_true, top, k=5, *, compat=None)               fraction of rows with a hit (the field's meaning)
    hamming_loss_at_k(Y_true, top, k=5, *, compat=None)
    ps_precision_at_k(Y_true, top, p, k=5, *, normalize=True, compat=None)
    ps_recall_at_k(Y_true, top, p, k=5, *, normalize=True, compat=None)
    ps_dcg_at_k(Y_true, top, p, k=5, *, normalize=True, compat=None)
    ps_ndcg_at_k(Y_true, top, p, k=5, *, normalize=True, compat=None)
    micro_precision_at_k, micro_recall_at_k, micro_f1_at_k (Y_true, top, k=5, *, compat=None)

From label-wise confusion counts
    confusion_at_k(Y_true, top, k=5, *, compat=None) -> ConfusionCounts(true_positives, predicted, positives, n_rows)
                                                        with .false_positives .false_negatives .true_negatives, all (L,)
    macro_precision_at_k, macro_recall_at_k, macro_f1_at_k, macro_balanced_accuracy_at_k, macro_g_mean_at_k (TPR, TNR),
    macro_fowlkes_mallows_at_k (precision, recall)                   (Y_true, top, k=5, *, labels="all", compat=None)
    micro_balanced_accuracy_at_k, micro_g_mean_at_k, micro_fowlkes_mallows_at_k (Y_true, top, k=5, *, compat=None)
    coverage_at_k(Y_true, top, k=5, *, labels="all", compat=None)

Head to tail
    frequency_bins(train_Y_or_counts, n_bins=5) -> LabelBins(bin_of_label (L,), n_labels (B,), volume (B,), min_count, max_count)
    contribution_by_bin(Y_true, top, bins, k=5, *, p=None) -> BinContribution(contribution (B,), recall (B,), bins)
                                                        contribution sums to P@k (PSP@k normalised when p is given)

Confidence
    bootstrap_interval(metric, Y_true, top, *args, n_resamples=1000, confidence=0.95, random_state=0, n_jobs=None, **options)
        -> Interval(estimate, low, high, confidence, n_resamples)
    bootstrap_intervals({"P@1": partial(precision_at_k, k=1), ...}, Y_true, top, *, n_resamples=..., ...) -> {name: Interval}

Filter pairs
    filter_predictions(top, pairs, k=None) -> TopK      pairs: (m, 2) integer array of (row, label), may be empty
    filter_truth(Y_true, pairs) -> csr_matrix

match(Y_true, top, k=None, *, n_jobs=None) -> Matches
"""
