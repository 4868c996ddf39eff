// How a row's decision changes a label's state, and what naming a label would gain: counts with a named utility,
// coverage, and counts with a utility given as a function.
//
// The three share an interface (untouched, mix, remove, add, restored, gains, idle_gains, refresh, total) that
// block_ascent.cpp is written against. States passed to `gains` have the row's own contribution removed.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/decide/block_ascent.h"
#include "kernels/decide/label_utility.h"

namespace lt {

using States = std::vector<LabelState>;

struct Mixture {
  double utility = 1.0;    // 1 - w
  double precision = 0.0;  // w * m / (n k)
};

template <class U>
class CountModel {
 public:
  CountModel(States& states, const UtilityParams& params, const Mixture& mixture)
      : states_(states), u_(params), mix_(mixture) {}

  static LabelState untouched(double positives) { return {0.0, 0.0, positives, 0.0}; }
  void remove(int32_t j, float eta) {
    LabelState& s = states_[j];
    s.q -= 1.0;
    s.t = s.q > 0.0 ? std::max(0.0, s.t - static_cast<double>(eta)) : 0.0;  // nothing predicted: no rounding left over
    s.value = U::at(s.t, s.q, s.p, u_);
  }
  void add(int32_t j, float eta) {
    LabelState& s = states_[j];
    s.q += 1.0;
    s.t += static_cast<double>(eta);
    s.value = U::at(s.t, s.q, s.p, u_);
  }
  void mix(const Mixture& mixture) { mix_ = mixture; }
  void restored(int32_t) {}
  void gains(int64_t count, const int32_t* ids, const float* etas, double* out) {
    for (int64_t c = 0; c < count; ++c) out[c] = gain(states_[ids[c]], static_cast<double>(etas[c]));
  }
  void idle_gains(int64_t count, const int32_t* ids, double* out) {
    for (int64_t c = 0; c < count; ++c) out[c] = gain(states_[ids[c]], 0.0);
  }
  void refresh() {
    for (LabelState& s : states_) s.value = U::at(s.t, s.q, s.p, u_);
  }
  double total() {
    double sum = 0.0;
    for (const LabelState& s : states_) sum += s.value;
    return sum;
  }

 private:
  double gain(const LabelState& s, double e) const {
    return mix_.utility * (U::at(s.t + e, s.q + 1.0, s.p, u_) - s.value) + mix_.precision * e;
  }

  States& states_;
  UtilityParams u_;
  Mixture mix_;
};

// Coverage, the expected share of labels with a true positive: 1 - F_j, F_j = prod (1 - eta) over the rows that name j.
// F is t * 2^(-512 p), so that it can be divided again after it has become very small; q is the number of rows with
// eta = 1, whose factor is 0 and is left out of t; value is F.
class CoverageModel {
 public:
  CoverageModel(States& states, const UtilityParams&, const Mixture& mixture) : states_(states), mix_(mixture) {}

  static LabelState untouched(double) { return {1.0, 0.0, 0.0, 1.0}; }
  void remove(int32_t j, float eta) {
    LabelState& s = states_[j];
    if (eta >= 1.0f) {
      s.q -= 1.0;
    } else {
      s.t /= 1.0 - static_cast<double>(eta);
      if (s.t > 1.0) {  // back up one step, or rounding above 1
        s.t = s.p > 0.0 ? s.t * kStep : 1.0;
        s.p = std::max(0.0, s.p - 1.0);
      }
    }
    s.value = failure(s);
  }
  void add(int32_t j, float eta) {
    LabelState& s = states_[j];
    if (eta >= 1.0f) {
      s.q += 1.0;
    } else {
      s.t *= 1.0 - static_cast<double>(eta);
      if (s.t < kStep) {
        s.t /= kStep;
        s.p += 1.0;
      }
    }
    s.value = failure(s);
  }
  void mix(const Mixture& mixture) { mix_ = mixture; }
  void restored(int32_t) {}
  void gains(int64_t count, const int32_t* ids, const float* etas, double* out) {
    for (int64_t c = 0; c < count; ++c)
      out[c] = (mix_.utility * states_[ids[c]].value + mix_.precision) * static_cast<double>(etas[c]);
  }
  void idle_gains(int64_t count, const int32_t*, double* out) { std::fill(out, out + count, 0.0); }
  void refresh() {}
  double total() {
    double sum = 0.0;
    for (const LabelState& s : states_) sum += 1.0 - s.value;
    return sum;
  }

 private:
  static constexpr double kStep = 0x1p-512;
  static double failure(const LabelState& s) {
    if (s.q > 0.0 || s.p > 1.0) return 0.0;
    return s.p > 0.0 ? s.t * kStep : s.t;
  }

  States& states_;
  Mixture mix_;
};

// A utility given as a function of fractions. It is called once for all candidates of a row; labels whose counts have
// changed since are evaluated in the same call.
class FunctionModel {
 public:
  FunctionModel(States& states, const UtilityParams& params, const Mixture& mixture, const UtilityFunction& function)
      : states_(states), n_(params.n_rows), mix_(mixture), function_(function) {}

  static LabelState untouched(double positives) { return {0.0, 0.0, positives, 0.0}; }
  void remove(int32_t j, float eta) {
    LabelState& s = states_[j];
    s.q -= 1.0;
    s.t = s.q > 0.0 ? std::max(0.0, s.t - static_cast<double>(eta)) : 0.0;
    stale_.push_back(j);
  }
  void add(int32_t j, float eta) {
    states_[j].q += 1.0;
    states_[j].t += static_cast<double>(eta);
    stale_.push_back(j);
  }
  void mix(const Mixture& mixture) { mix_ = mixture; }
  void restored(int32_t j) { stale_.push_back(j); }  // the copy may have been made before its value was known
  void gains(int64_t count, const int32_t* ids, const float* etas, double* out) {
    begin();
    for (const int32_t j : stale_) push(states_[j], 0.0, 0.0);
    for (int64_t c = 0; c < count; ++c) push(states_[ids[c]], etas[c], 1.0);
    evaluate();
    for (size_t c = 0; c < stale_.size(); ++c) states_[stale_[c]].value = out_[c];
    const double* named = out_.data() + stale_.size();
    for (int64_t c = 0; c < count; ++c)
      out[c] = mix_.utility * (named[c] - states_[ids[c]].value) + mix_.precision * static_cast<double>(etas[c]);
    stale_.clear();
  }
  void idle_gains(int64_t count, const int32_t* ids, double* out) {
    zeros_.assign(count, 0.0f);
    gains(count, ids, zeros_.data(), out);
  }
  void refresh() {
    constexpr size_t kChunk = 1 << 16;
    for (size_t first = 0; first < states_.size(); first += kChunk) {
      const size_t last = std::min(states_.size(), first + kChunk);
      begin();
      for (size_t j = first; j < last; ++j) push(states_[j], 0.0, 0.0);
      evaluate();
      for (size_t j = first; j < last; ++j) states_[j].value = out_[j - first];
    }
    stale_.clear();
  }
  double total() {
    refresh();
    double sum = 0.0;
    for (const LabelState& s : states_) sum += s.value;
    return sum;
  }

 private:
  void begin() {
    for (auto* cells : {&tp_, &fp_, &fn_, &tn_}) cells->clear();
  }
  void push(const LabelState& s, double eta, double named) {
    const double t = s.t + eta, q = s.q + named;
    tp_.push_back(t / n_);
    fp_.push_back(std::max(0.0, q - t) / n_);
    fn_.push_back(std::max(0.0, s.p - t) / n_);
    tn_.push_back(std::max(0.0, n_ - q - s.p + t) / n_);
  }
  void evaluate() {
    out_.resize(tp_.size());
    if (!out_.empty())
      function_(static_cast<int64_t>(tp_.size()), tp_.data(), fp_.data(), fn_.data(), tn_.data(), out_.data());
  }

  States& states_;
  double n_;
  Mixture mix_;
  const UtilityFunction& function_;
  std::vector<int32_t> stale_;
  std::vector<float> zeros_;
  std::vector<double> tp_, fp_, fn_, tn_, out_;
};

}  // namespace lt
