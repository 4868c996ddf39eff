#include "kernels/decide/block_ascent.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <type_traits>

#include "kernels/base/counter_random.h"
#include "kernels/decide/best_gains.h"
#include "kernels/decide/idle_labels.h"
#include "kernels/decide/label_models.h"

namespace lt {

namespace {

constexpr int64_t kRowsPerPoll = 1 << 14;
enum : uint64_t { kOrderStream = 1, kStartStream = 1u << 20 };  // streams of random numbers; a sweep adds its number

bool smaller_id(const Gain& a, const Gain& b) { return a.id < b.id; }

// One run. `Model` is one of label_models.h.
template <class Model>
class Ascent {
 public:
  Ascent(const CsrView& eta, const AscentSettings& settings, const std::vector<double>& positives, const AscentRun& run,
         AscentResult& result, const std::function<bool(int64_t)>& go_on)
      : eta_(eta),
        set_(settings),
        positives_(positives),
        run_(run),
        out_(result),
        go_on_(go_on),
        n_(static_cast<double>(eta.n_rows)),
        m_(static_cast<double>(eta.n_cols)),
        mix_(mixture(run.precision_weight)),
        states_(eta.n_cols),
        model_(make_model()),
        best_(settings.k) {}

  bool solve() {
    start();
    reset();
    out_.utilities.push_back(objective());
    std::vector<uint32_t> order(eta_.n_rows);
    std::iota(order.begin(), order.end(), 0u);
    const auto n_annealed = static_cast<int64_t>(set_.annealing.size());
    for (int64_t sweep = 0; sweep < set_.max_sweeps; ++sweep) {
      if (sweep > 0) reset();  // sums of many small changes drift
      const bool annealed = sweep < n_annealed;
      const double own = run_.precision_weight;
      model_.mix(mixture(annealed ? std::max(own, set_.annealing[sweep]) : own));
      if (set_.shuffle) {
        RandomStream random(run_.seed, kOrderStream, static_cast<uint64_t>(sweep));
        for (size_t i = order.size(); i > 1; --i)
          std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
      }
      int64_t changed = 0;
      for (size_t i = 0; i < order.size(); ++i) {
        if (i % kRowsPerPoll == 0 && !go_on_(sweep)) return false;
        look_ahead(order, i);
        changed += visit(order[i]);
      }
      const double before = out_.utilities.back();
      out_.utilities.push_back(objective());
      if (annealed) continue;
      out_.converged = changed == 0;
      // The first sweep after an empty or a short start may lower the objective: naming k labels can cost.
      if (out_.converged || (sweep > n_annealed && out_.utilities.back() - before < set_.tol)) break;
    }
    return true;
  }

 private:
  Mixture mixture(double w) const { return {1.0 - w, w * m_ / (n_ * static_cast<double>(set_.k))}; }

  Model make_model() {
    const UtilityParams params{n_, set_.beta * set_.beta, set_.epsilon * n_};
    if constexpr (std::is_same_v<Model, FunctionModel>)
      return Model(states_, params, mix_, set_.function);
    else
      return Model(states_, params, mix_);
  }

  void start() {
    const int64_t k = set_.k;
    out_.ids.assign(eta_.n_rows * k, -1);
    out_.etas.assign(eta_.n_rows * k, 0.0f);
    places_.assign(eta_.n_rows * k, -1);
    std::vector<Gain> row;
    for (int64_t i = 0; i < eta_.n_rows && run_.start != AscentStart::kEmpty; ++i) {
      row.clear();
      if (run_.start == AscentStart::kGiven) {
        for (int64_t s = 0; s < k && run_.given[i * k + s] >= 0; ++s) {
          const int32_t id = run_.given[i * k + s];
          const int64_t at = find(i, id);
          row.push_back({0.0, id, at < eta_.end(i) ? eta_.values[at] : 0.0f});
        }
      } else {  // the first k of a random arrangement of the candidates
        RandomStream random(run_.seed, kStartStream, static_cast<uint64_t>(i));
        for (int64_t p = eta_.begin(i); p < eta_.end(i); ++p) row.push_back({0.0, eta_.indices[p], eta_.values[p]});
        const size_t keep = std::min<size_t>(row.size(), k);
        for (size_t s = 0; s < keep; ++s)
          std::swap(row[s], row[s + random.below(static_cast<uint32_t>(row.size() - s))]);
        row.resize(keep);
      }
      write(i, row);
    }
  }

  // Counts of the current answer, from scratch.
  void reset() {
    for (int64_t j = 0; j < eta_.n_cols; ++j) states_[j] = Model::untouched(positives_[j]);
    for (size_t s = 0; s < out_.ids.size(); ++s)
      if (out_.ids[s] >= 0) model_.add(out_.ids[s], out_.etas[s]);
    model_.refresh();
    idle_.forget();
  }

  double objective() {
    double hits = 0.0;
    for (const float e : out_.etas) hits += static_cast<double>(e);
    return (mix_.utility * model_.total() + mix_.precision * hits) / m_;
  }

  // Fetches what the next rows will read: the labels of a row lie anywhere in memory.
  void look_ahead(const std::vector<uint32_t>& order, size_t i) const {
#if defined(__GNUC__)
    if (i + 8 < order.size()) {
      const int64_t first = eta_.begin(order[i + 8]), last = eta_.end(order[i + 8]);
      for (int64_t p = first; p < last; p += 16) {
        __builtin_prefetch(eta_.indices + p);
        __builtin_prefetch(eta_.values + p);
      }
    }
    if (eta_.n_cols > (1 << 13) && i + 2 < order.size()) {  // a smaller table stays in cache
      const int64_t row = order[i + 2];
      for (int64_t p = eta_.begin(row); p < eta_.end(row); ++p) __builtin_prefetch(&states_[eta_.indices[p]]);
    }
#endif
  }

  int64_t find(int64_t row, int32_t id) const {  // position of the label in its row, or the row's end
    return std::find(eta_.indices + eta_.begin(row), eta_.indices + eta_.end(row), id) - eta_.indices;
  }

  void write(int64_t row, std::vector<Gain>& items) {
    std::sort(items.begin(), items.end(), smaller_id);
    for (int64_t s = 0; s < set_.k; ++s) {
      const bool named = s < static_cast<int64_t>(items.size());
      out_.ids[row * set_.k + s] = named ? items[s].id : -1;
      out_.etas[row * set_.k + s] = named ? items[s].eta : 0.0f;
      const int64_t place = named ? find(row, items[s].id) : eta_.end(row);
      places_[row * set_.k + s] = place < eta_.end(row) ? static_cast<int32_t>(place - eta_.begin(row)) : -1;
    }
  }

  // Decides one row again. Returns whether its answer changed.
  bool visit(int64_t row) {
    const int64_t first = eta_.begin(row), count = eta_.row_nnz(row);
    old_.clear();
    kept_.clear();
    for (int64_t s = row * set_.k; s < (row + 1) * set_.k && out_.ids[s] >= 0; ++s) {
      old_.push_back({0.0, out_.ids[s], out_.etas[s]});
      kept_.push_back(states_[out_.ids[s]]);
      model_.remove(out_.ids[s], out_.etas[s]);
    }
    gains_.resize(count);
    model_.gains(count, eta_.indices + first, eta_.values + first, gains_.data());
    best_.clear();
    double least =
        std::max(set_.exactly ? -BestGains::kInfinity : std::numeric_limits<double>::denorm_min(), least_of_old(row));
    for (int64_t c = 0; c < count; ++c) {
      if (gains_[c] < least) continue;
      best_.offer({gains_[c], eta_.indices[first + c], eta_.values[first + c]});
      least = std::max(least, best_.least());
    }
    best_.finish();
    auto& found = best_.items();
    // No utility here rewards a label for a false positive, so an absent label never gains more than 0.
    if (set_.exactly && !set_.candidates_only && (!best_.full() || found.back().gain < 0.0)) ask_absent_labels(row);
    if (same_labels(found) || !improves(row, found)) {
      for (size_t s = 0; s < old_.size(); ++s) {  // bit for bit as before
        states_[old_[s].id] = kept_[s];
        model_.restored(old_[s].id);
      }
      if (idle_.ready()) update_idle(old_);
      return false;
    }
    for (const Gain& g : found) model_.add(g.id, g.eta);
    if (idle_.ready()) {
      update_idle(old_);
      update_idle(found);
    }
    write(row, found);
    return true;
  }

  // The k labels named so far are candidates too: what gains less than each of them is not among the k best. Most
  // candidates fail here, which spares the sorted list nearly all insertions.
  double least_of_old(int64_t row) const {
    if (static_cast<int64_t>(old_.size()) < set_.k) return -BestGains::kInfinity;
    double least = BestGains::kInfinity;
    for (int64_t s = row * set_.k; s < (row + 1) * set_.k; ++s)
      least = std::min(least, places_[s] < 0 ? -BestGains::kInfinity : gains_[places_[s]]);
    return least;
  }

  bool same_labels(const std::vector<Gain>& found) {
    if (found.size() != old_.size()) return false;
    if (found.size() <= 16) {
      for (const Gain& g : found)
        if (std::none_of(old_.begin(), old_.end(), [&](const Gain& o) { return o.id == g.id; })) return false;
      return true;
    }
    sorted_ = found;
    std::sort(sorted_.begin(), sorted_.end(), smaller_id);
    for (size_t s = 0; s < sorted_.size(); ++s)
      if (sorted_[s].id != old_[s].id) return false;
    return true;
  }

  // Whether the new answer is better than the old one by more than rounding, or the old one is not allowed.
  bool improves(int64_t row, const std::vector<Gain>& found) {
    if (set_.exactly ? old_.size() < found.size() : old_.size() > static_cast<size_t>(set_.k)) return true;
    double before = 0.0, after = 0.0;
    for (const Gain& g : old_) {
      const int64_t at = find(row, g.id);
      double gain = 0.0;
      if (at < eta_.end(row))
        gain = gains_[at - eta_.begin(row)];
      else if (set_.candidates_only || (set_.allowed && !set_.allowed[g.id]))
        return true;
      else
        model_.idle_gains(1, &g.id, &gain);
      if (!set_.exactly && gain <= 0.0) return true;
      before += gain;
    }
    for (const Gain& g : found) after += g.gain;
    return after > before + 1e-15 * static_cast<double>(set_.k) + 1e-12 * std::abs(after);
  }

  void ask_absent_labels(int64_t row) {
    if (!idle_.ready())
      build_idle();
    else
      update_idle(old_);  // taken out of the counts just now
    idle_.visit([&](int32_t label) { return find(row, label) < eta_.end(row); },
                [&](int32_t label, double gain) { return best_.insert({gain, label, 0.0f}); });
  }

  void build_idle() {
    std::vector<double> gains(eta_.n_cols);
    std::vector<int32_t> ids(eta_.n_cols);
    std::iota(ids.begin(), ids.end(), 0);
    model_.idle_gains(eta_.n_cols, ids.data(), gains.data());
    if (set_.allowed)
      for (int64_t j = 0; j < eta_.n_cols; ++j)
        if (!set_.allowed[j]) gains[j] = IdleLabels::kNever;
    idle_.build(std::move(gains));
  }

  void update_idle(const std::vector<Gain>& labels) {
    ids_.clear();
    for (const Gain& g : labels)
      if (idle_.allowed(g.id)) ids_.push_back(g.id);
    idle_gains_.resize(ids_.size());
    model_.idle_gains(static_cast<int64_t>(ids_.size()), ids_.data(), idle_gains_.data());
    for (size_t s = 0; s < ids_.size(); ++s) idle_.set(ids_[s], idle_gains_[s]);
  }

  const CsrView& eta_;
  const AscentSettings& set_;
  const std::vector<double>& positives_;
  const AscentRun& run_;
  AscentResult& out_;
  const std::function<bool(int64_t)>& go_on_;
  double n_, m_;
  Mixture mix_;
  States states_;
  Model model_;
  IdleLabels idle_;
  BestGains best_;
  std::vector<Gain> old_, sorted_;
  std::vector<LabelState> kept_;
  std::vector<double> gains_, idle_gains_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> places_;  // (n_rows, k): where a named label stands among the row's candidates, -1 if nowhere
};

template <class Model>
bool run_one(const CsrView& eta, const AscentSettings& settings, const std::vector<double>& positives,
             const AscentRun& run, AscentResult& result, const std::function<bool(int64_t)>& go_on) {
  return Ascent<Model>(eta, settings, positives, run, result, go_on).solve();
}

auto runner(Utility utility) {
  switch (utility) {
    case Utility::kNone:
      return run_one<CountModel<NoUtility>>;
    case Utility::kPrecision:
      return run_one<CountModel<Precision>>;
    case Utility::kRecall:
      return run_one<CountModel<Recall>>;
    case Utility::kFBeta:
      return run_one<CountModel<FBeta>>;
    case Utility::kJaccard:
      return run_one<CountModel<Jaccard>>;
    case Utility::kBalancedAccuracy:
      return run_one<CountModel<BalancedAccuracy>>;
    case Utility::kGMean:
      return run_one<CountModel<GMean>>;
    case Utility::kHMean:
      return run_one<CountModel<HMean>>;
    case Utility::kFowlkesMallows:
      return run_one<CountModel<FowlkesMallows>>;
    case Utility::kCoverage:
      return run_one<CoverageModel>;
    case Utility::kFunction:
      break;
  }
  return run_one<FunctionModel>;
}

}  // namespace

std::vector<AscentResult> block_ascent(const CsrView& eta, const AscentSettings& settings,
                                       const std::vector<AscentRun>& runs, int n_threads, const Poll& poll) {
  std::vector<double> positives(eta.n_cols, 0.0);
  for (int64_t p = 0; p < eta.nnz(); ++p) positives[eta.indices[p]] += static_cast<double>(eta.values[p]);
  std::vector<AscentResult> results(runs.size());
  const auto run = runner(settings.utility);
  if (runs.size() == 1 || settings.function) {  // on the calling thread, which polls between rows
    for (size_t r = 0; r < runs.size(); ++r) {
      auto go_on = [&](int64_t sweep) { return !poll || poll(sweep, settings.max_sweeps); };
      if (!run(eta, settings, positives, runs[r], results[r], go_on)) return {};
    }
    return results;
  }
  std::atomic<bool> stop{false};
  Poll watch;
  if (poll)
    watch = [&](int64_t done, int64_t total) {
      try {
        if (poll(done, total)) return true;
      } catch (...) {
        stop = true;
        throw;
      }
      stop = true;
      return false;
    };
  const bool finished = parallel_for(
      static_cast<int64_t>(runs.size()), n_threads,
      [&](int64_t r, int) { run(eta, settings, positives, runs[r], results[r], [&](int64_t) { return !stop; }); },
      watch);
  return finished && !stop ? results : std::vector<AscentResult>{};
}

}  // namespace lt
