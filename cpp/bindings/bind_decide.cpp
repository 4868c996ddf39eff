#include <optional>

#include "bindings/arrays.h"
#include "kernels/decide/block_ascent.h"
#include "kernels/decide/linear_decision.h"
#include "kernels/decide/online_decision.h"
#include "kernels/decide/utility_line.h"

namespace lt::bind {

namespace {

using Ids = Array2<int32_t>;

Utility utility_from_name(const std::string& name) {
  static const std::pair<const char*, Utility> kNames[] = {
      {"none", Utility::kNone},
      {"precision", Utility::kPrecision},
      {"recall", Utility::kRecall},
      {"f_beta", Utility::kFBeta},
      {"jaccard", Utility::kJaccard},
      {"balanced_accuracy", Utility::kBalancedAccuracy},
      {"g_mean", Utility::kGMean},
      {"h_mean", Utility::kHMean},
      {"fowlkes_mallows", Utility::kFowlkesMallows},
      {"coverage", Utility::kCoverage},
      {"function", Utility::kFunction},
  };
  for (const auto& [known, utility] : kNames)
    if (name == known) return utility;
  throw std::invalid_argument("unknown utility " + name);
}

bool all_within(const int32_t* values, int64_t count, int32_t low, int64_t high) {
  bool inside = true;
  for (int64_t p = 0; p < count; ++p) inside &= values[p] >= low && values[p] < high;
  return inside;
}

void check_labels(const CsrView& matrix) {  // kernels index arrays of n_cols entries by these
  require(all_within(matrix.indices, matrix.nnz(), 0, matrix.n_cols), "a label id is out of range");
}

const uint8_t* allowed_labels(const std::optional<Array1<uint8_t>>& allowed, int64_t n_labels) {
  if (!allowed) return nullptr;
  require(static_cast<int64_t>(allowed->shape(0)) == n_labels, "allowed must have one entry per label");
  return allowed->data();
}

// Wraps a Python function of four float64 arrays as a kernel calls it. The arrays are fresh: the function may keep
// them.
UtilityFunction python_utility(const nb::object& function) {
  if (function.is_none()) return {};
  PyObject* callable = function.ptr();
  return
      [callable](int64_t count, const double* tp, const double* fp, const double* fn, const double* tn, double* out) {
        nb::gil_scoped_acquire gil;
        auto cells = [count](const double* values) { return to_numpy(std::vector<double>(values, values + count)); };
        nb::object result = nb::borrow<nb::object>(callable)(cells(tp), cells(fp), cells(fn), cells(tn));
        const auto values = nb::cast<Array1<double>>(result);
        require(static_cast<int64_t>(values.shape(0)) == count, "the utility must return one value per label");
        std::copy(values.data(), values.data() + count, out);
      };
}

// What the functions of linear rules share: their arguments, checked.
struct LinearArgs {
  CsrView eta, truth;
  LinearRules rules;

  LinearArgs(const CsrView& view, const Array2<double>& a, const Array2<double>& b,
             const std::optional<Array1<uint8_t>>& allowed, int64_t k, bool exactly, bool candidates_only)
      : eta(view) {
    check_labels(eta);
    rules.n_rules = static_cast<int64_t>(a.shape(0));
    require(rules.n_rules >= 1 && a.shape(0) == b.shape(0) && static_cast<int64_t>(a.shape(1)) == eta.n_cols &&
                static_cast<int64_t>(b.shape(1)) == eta.n_cols,
            "a and b must have the shape (rules, labels)");
    require(k >= 1, "k must be positive");
    rules.a = a.data();
    rules.b = b.data();
    rules.allowed = allowed_labels(allowed, eta.n_cols);
    rules.k = k;
    rules.exactly = exactly;
    rules.candidates_only = candidates_only;
  }
  void set_truth(const CsrArgs& given) {
    truth = given.view();
    require(truth.n_rows == eta.n_rows, "truth and probabilities must have the same rows");
  }
  bool is_small() const { return eta.nnz() < (1 << 18); }  // done before a thread would have started
};

nb::tuple decide_linear(const CsrArgs& csr, Array2<double> a, Array2<double> b, std::optional<Array1<int32_t>> rule_of,
                        std::optional<Array1<uint8_t>> allowed, int64_t k, bool exactly, bool candidates_only,
                        bool by_probability, int n_threads, nb::object progress) {
  LinearArgs args(csr.candidates(), a, b, allowed, k, exactly, candidates_only);
  const CsrView& eta = args.eta;
  if (rule_of) {
    require(static_cast<int64_t>(rule_of->shape(0)) == eta.n_rows, "rule_of must have one entry per row");
    require(all_within(rule_of->data(), eta.n_rows, 0, args.rules.n_rules), "rule_of names a rule that is not there");
    args.rules.rule_of = rule_of->data();
  }
  args.rules.by_probability = by_probability;
  const size_t size = static_cast<size_t>(eta.n_rows * k);
  std::vector<int32_t> ids(size);
  std::vector<float> scores(size);
  {
    const Poll poll = args.is_small() ? Poll{} : poll_python(progress);
    nb::gil_scoped_release nogil;
    linear_decision(eta, args.rules, nullptr, args.is_small() ? 1 : n_threads, {ids.data(), scores.data()}, poll);
  }
  const std::vector<size_t> shape{static_cast<size_t>(eta.n_rows), static_cast<size_t>(k)};
  return nb::make_tuple(to_numpy(std::move(ids), shape), to_numpy(std::move(scores), shape));
}

nb::tuple count_linear(const CsrArgs& csr, Array2<double> a, Array2<double> b, std::optional<Array1<uint8_t>> allowed,
                       int64_t k, bool exactly, bool candidates_only, const CsrArgs& truth, int n_threads,
                       nb::object progress) {
  LinearArgs args(csr.candidates(), a, b, allowed, k, exactly, candidates_only);
  args.set_truth(truth);
  std::vector<double> t(static_cast<size_t>(csr.n_cols)), q(static_cast<size_t>(csr.n_cols));
  {
    const Poll poll = args.is_small() ? Poll{} : poll_python(progress);
    nb::gil_scoped_release nogil;
    linear_counts(args.eta, args.rules, args.truth, args.is_small() ? 1 : n_threads, t.data(), q.data(), poll);
  }
  return nb::make_tuple(to_numpy(std::move(t)), to_numpy(std::move(q)));
}

nb::list ascend(const CsrArgs& csr, const std::string& utility, nb::object function, double beta, double epsilon,
                int64_t k, bool exactly, bool candidates_only, std::optional<Array1<uint8_t>> allowed, double tol,
                int64_t max_sweeps, std::vector<double> annealing, bool shuffle, nb::list runs, int n_threads,
                nb::object progress) {
  const CsrView eta = csr.candidates();
  check_labels(eta);
  require(k >= 1 && max_sweeps >= 0, "k must be positive, max_sweeps not negative");
  require(eta.n_rows < (int64_t{1} << 32), "at most 2^32 rows can be decided together");
  AscentSettings settings;
  settings.utility = utility_from_name(utility);
  settings.function = python_utility(function);
  require((settings.utility == Utility::kFunction) == !!settings.function, "a function goes with utility 'function'");
  settings.beta = beta;
  settings.epsilon = epsilon;
  settings.k = k;
  settings.exactly = exactly;
  settings.candidates_only = candidates_only;
  settings.allowed = allowed_labels(allowed, eta.n_cols);
  settings.tol = tol;
  settings.max_sweeps = max_sweeps;
  settings.annealing = std::move(annealing);
  settings.shuffle = shuffle;
  std::vector<AscentRun> todo;
  for (nb::handle item : runs) {  // (seed, precision weight, "empty" or "random" or ids)
    const auto run = nb::cast<nb::tuple>(item);
    AscentRun next;
    next.seed = nb::cast<uint64_t>(run[0]);
    next.precision_weight = nb::cast<double>(run[1]);
    if (nb::isinstance<nb::str>(run[2])) {
      next.start = nb::cast<std::string>(run[2]) == "empty" ? AscentStart::kEmpty : AscentStart::kRandom;
    } else {
      const auto ids = nb::cast<Ids>(run[2]);  // borrowed: the list keeps the array alive
      require(static_cast<int64_t>(ids.shape(0)) == eta.n_rows && static_cast<int64_t>(ids.shape(1)) == k,
              "a start must have the shape (rows, k)");
      require(all_within(ids.data(), eta.n_rows * k, -1, eta.n_cols), "a start names a label that is out of range");
      next.start = AscentStart::kGiven;
      next.given = ids.data();
    }
    todo.push_back(next);
  }
  std::vector<AscentResult> results;
  {
    const Poll poll = poll_python(progress);
    nb::gil_scoped_release nogil;
    results = block_ascent(eta, settings, todo, n_threads, poll);
  }
  const std::vector<size_t> shape{static_cast<size_t>(eta.n_rows), static_cast<size_t>(k)};
  nb::list out;
  for (AscentResult& r : results)
    out.append(nb::make_tuple(to_numpy(std::move(r.ids), shape), to_numpy(std::move(r.etas), shape),
                              to_numpy(std::move(r.utilities)), r.converged));
  return out;
}

nb::tuple decide_online(const CsrArgs& csr, const std::string& utility, double beta, double epsilon, int64_t k,
                        bool exactly, double precision_weight, double weight, double growth, Mutable1<double> t,
                        Mutable1<double> q, Mutable1<double> p, double n_rows) {
  const CsrView eta = csr.candidates();
  check_labels(eta);
  require(k >= 1, "k must be positive");
  for (const auto& cells : {t, q, p})
    require(static_cast<int64_t>(cells.shape(0)) == eta.n_cols, "counts must have one entry per label");
  AscentSettings settings;
  settings.utility = utility_from_name(utility);
  settings.beta = beta;
  settings.epsilon = epsilon;
  settings.k = k;
  settings.exactly = exactly;
  std::vector<int32_t> ids(static_cast<size_t>(eta.n_rows * k));
  std::vector<float> etas(ids.size());
  const OnlineState state{t.data(), q.data(), p.data(), n_rows};
  {
    nb::gil_scoped_release nogil;
    n_rows = online_decision(eta, settings, precision_weight, weight, growth, state, ids.data(), etas.data());
  }
  const std::vector<size_t> shape{static_cast<size_t>(eta.n_rows), static_cast<size_t>(k)};
  return nb::make_tuple(to_numpy(std::move(ids), shape), to_numpy(std::move(etas), shape), n_rows);
}

nb::tuple line_step(const std::string& utility, double beta2, double epsilon, Array1<double> t, Array1<double> q,
                    Array1<double> t_end, Array1<double> q_end, Array1<double> p, double scale, double per_hit,
                    bool concave) {
  const size_t n = t.shape(0);
  require(q.shape(0) == n && p.shape(0) == n && t_end.shape(0) == n && q_end.shape(0) == n, "counts differ in length");
  const CountLine line{static_cast<int64_t>(n), t.data(), q.data(), t_end.data(), q_end.data(), p.data()};
  LineStep found;
  {
    nb::gil_scoped_release nogil;
    found = best_step(line, utility_from_name(utility), beta2, epsilon, scale, per_hit, concave);
  }
  return nb::make_tuple(found.step, found.gain);
}

}  // namespace

void bind_decide(nb::module_& m) {
  m.def("decide_linear", &decide_linear, nb::arg("csr"), nb::arg("a"), nb::arg("b"), nb::arg("rule_of").none(),
        nb::arg("allowed").none(), nb::arg("k"), nb::arg("exactly"), nb::arg("candidates_only"),
        nb::arg("by_probability"), nb::arg("n_threads"), nb::arg("progress").none());
  m.def("count_linear", &count_linear, nb::arg("csr"), nb::arg("a"), nb::arg("b"), nb::arg("allowed").none(),
        nb::arg("k"), nb::arg("exactly"), nb::arg("candidates_only"), nb::arg("truth"), nb::arg("n_threads"),
        nb::arg("progress").none());
  m.def("block_ascent", &ascend, nb::arg("csr"), nb::arg("utility"), nb::arg("function").none(), nb::arg("beta"),
        nb::arg("epsilon"), nb::arg("k"), nb::arg("exactly"), nb::arg("candidates_only"), nb::arg("allowed").none(),
        nb::arg("tol"), nb::arg("max_sweeps"), nb::arg("annealing"), nb::arg("shuffle"), nb::arg("runs"),
        nb::arg("n_threads"), nb::arg("progress").none());
  m.def("decide_online", &decide_online, nb::arg("csr"), nb::arg("utility"), nb::arg("beta"), nb::arg("epsilon"),
        nb::arg("k"), nb::arg("exactly"), nb::arg("precision_weight"), nb::arg("weight"), nb::arg("growth"),
        nb::arg("t"), nb::arg("q"), nb::arg("p"), nb::arg("n_rows"));
  m.def("line_step", &line_step, nb::arg("utility"), nb::arg("beta2"), nb::arg("epsilon"), nb::arg("t"), nb::arg("q"),
        nb::arg("t_end"), nb::arg("q_end"), nb::arg("p"), nb::arg("scale"), nb::arg("per_hit"), nb::arg("concave"));
}

}  // namespace lt::bind
