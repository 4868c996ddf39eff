// What the cases of the threaded kernels share: random inputs, a digest of results, and the list of cases.
//
// A case is made once and then run many times, with 1 and with 4 threads, alone and from several threads at once, on
// the same inputs. Every run must give the same digest.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/base/counter_random.h"
#include "kernels/base/views.h"

namespace lt::driver {

// FNV-1a over the bytes of whatever a kernel returned, and the sum of the absolute values of its floats: bits agree for
// any number of threads, sums up to rounding on any machine.
class Digest {
 public:
  template <class T>
  void add(const T* values, size_t n) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values);
    for (size_t i = 0; i < n * sizeof(T); ++i) state_ = (state_ ^ bytes[i]) * 0x100000001B3ull;
    if constexpr (std::is_floating_point_v<T>)
      for (size_t i = 0; i < n; ++i)
        if (std::isfinite(values[i])) magnitude_ += std::fabs(static_cast<double>(values[i]));
  }
  template <class T, class Allocator>
  void add(const std::vector<T, Allocator>& values) {
    add(values.data(), values.size());
  }
  uint64_t value() const { return state_; }
  double magnitude() const { return magnitude_; }

 private:
  uint64_t state_ = 0xCBF29CE484222325ull;
  double magnitude_ = 0;
};

using Run = std::function<void(int n_threads, Digest&)>;

struct Case {
  std::string name;
  Run run;
};

struct Csr {
  int64_t n_cols = 0;
  std::vector<int64_t> indptr{0};
  std::vector<int32_t> indices;
  std::vector<float> values;

  CsrView view() const {
    return {static_cast<int64_t>(indptr.size()) - 1, n_cols, indptr.data(), indices.data(), values.data()};
  }
};

inline std::vector<float> random_floats(int64_t n, uint64_t seed, float low = 0.0f, float high = 1.0f) {
  std::vector<float> out(n);
  for (int64_t i = 0; i < n; ++i)
    out[i] = low + (high - low) * static_cast<float>(hash64(seed, i, 7) >> 40) / static_cast<float>(1 << 24);
  return out;
}

// Up to `per_row` different columns a row, some rows empty.
inline Csr random_csr(int64_t n_rows, int64_t n_cols, int64_t per_row, uint64_t seed, float high = 1.0f) {
  Csr out;
  out.n_cols = n_cols;
  for (int64_t i = 0; i < n_rows; ++i) {
    const int64_t size = static_cast<int64_t>(hash64(seed, i, 1) % static_cast<uint64_t>(per_row + 1));
    int64_t column = -1;
    for (int64_t j = 0; j < size; ++j) {
      column += 1 + static_cast<int64_t>(hash64(seed, i, 2 + j) % static_cast<uint64_t>(2 * n_cols / per_row));
      if (column >= n_cols) break;
      out.indices.push_back(static_cast<int32_t>(column));
    }
    out.indptr.push_back(static_cast<int64_t>(out.indices.size()));
  }
  out.values = random_floats(static_cast<int64_t>(out.indices.size()), seed + 1, 0.05f, high);
  return out;
}

inline Csr transposed(const Csr& matrix) {
  const CsrView from = matrix.view();
  Csr out;
  out.n_cols = from.n_rows;
  out.indptr.assign(from.n_cols + 1, 0);
  for (int32_t column : matrix.indices) ++out.indptr[column + 1];
  std::partial_sum(out.indptr.begin(), out.indptr.end(), out.indptr.begin());
  out.indices.resize(matrix.indices.size());
  out.values.resize(matrix.values.size());
  std::vector<int64_t> next(out.indptr.begin(), out.indptr.end() - 1);
  for (int64_t i = 0; i < from.n_rows; ++i)
    for (int64_t p = from.begin(i); p < from.end(i); ++p) {
      const int64_t at = next[from.indices[p]]++;
      out.indices[at] = static_cast<int32_t>(i);
      out.values[at] = from.values[p];
    }
  return out;
}

// Ids and scores of n rows with k slots.
struct Answers {
  std::vector<int32_t> ids;
  std::vector<float> scores;

  Answers(int64_t n, int64_t k) : ids(n * k), scores(n * k) {}
  void digest(Digest& to) const {
    to.add(ids);
    to.add(scores);
  }
};

std::vector<Case> linear_cases();
std::vector<Case> text_cases();
std::vector<Case> decision_cases();
std::vector<Case> search_cases();
std::vector<Case> output_cases();

}  // namespace lt::driver
