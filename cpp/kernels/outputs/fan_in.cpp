#include "kernels/outputs/fan_in.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/base/best_k.h"
#include "kernels/outputs/output_kernels.h"

namespace lt {

namespace {

constexpr int64_t kFanRows = 16;     // of a batch, side by side
constexpr int64_t kFanLabels = 256;  // whose gradients one task sums

struct alignas(64) Sixteen {
  float at[16];
};
using Turned = std::vector<Sixteen>;

// out[c].at[r] = x[begin + r, c]; lanes without a row are zero.
void turn(const MatrixView<const float>& x, int64_t begin, Turned& out) {
  const int64_t width = std::min(kFanRows, x.n_rows - begin);
  out.assign(x.n_cols, Sixteen{});
  for (int64_t r = 0; r < width; ++r)
    for (int64_t c = 0; c < x.n_cols; ++c) out[c].at[r] = x.row(begin + r)[c];
}

const uint16_t* at16(const FanIn& layer, int64_t label) { return layer.index16 ? layer.index16 + label : nullptr; }
const int32_t* at32(const FanIn& layer, int64_t label) { return layer.index32 ? layer.index32 + label : nullptr; }

// Calls each(first, width, scores) for every 16 labels of begin .. end: scores[j][r] of 16 rows that were turned.
template <class Each>
void over_labels(const FanIn& layer, const Turned& x, int64_t begin, int64_t end, const Each& each) {
  const OutputKernels& kernels = LT_DISPATCH(output_kernels);
  Sixteen found[16];
  for (int64_t first = begin; first < end; first += 16) {
    const int64_t width = std::min<int64_t>(16, end - first);
    kernels.fan_scores(x.data()->at, layer.values + first, at16(layer, first), at32(layer, first), layer.n_labels,
                       layer.f, width, found[0].at);
    each(first, width, found);
  }
}

}  // namespace

bool fan_in_scores(const FanIn& layer, const float* bias, const MatrixView<const float>& x, int64_t begin, int64_t end,
                   int n_threads, float* out, const Poll& poll) {
  auto score = [&](int64_t row, int64_t last, int) {
    Turned turned;
    turn(x, row, turned);
    over_labels(layer, turned, begin, end, [&](int64_t first, int64_t width, const Sixteen* found) {
      for (int64_t r = 0; r < last - row; ++r)
        for (int64_t j = 0; j < width; ++j)
          out[(row + r) * (end - begin) + first - begin + j] = found[j].at[r] + (bias ? bias[first + j] : 0.0f);
    });
  };
  return parallel_blocks(x.n_rows, kFanRows, n_threads, score, poll);
}

bool fan_in_gradients(const FanIn& layer, const MatrixView<const float>& x, const MatrixView<const float>& g,
                      int64_t begin, int64_t end, int n_threads, float* dx, float* dw, const Poll& poll) {
  const OutputKernels& kernels = LT_DISPATCH(output_kernels);
  const int64_t width = end - begin, h = layer.n_inputs;
  // Gradients by the scores of 16 labels, turned as rows are: slope[j][r].
  auto slopes = [&](int64_t row, int64_t last, int64_t first, int64_t count, Sixteen* slope) {
    for (int64_t j = 0; j < count; ++j) slope[j] = Sixteen{};
    for (int64_t r = row; r < last; ++r)
      for (int64_t j = 0; j < count; ++j) slope[j].at[r - row] = g.row(r)[first + j];
  };
  auto inputs = [&](int64_t row, int64_t last, int) {
    Turned total(h, Sixteen{});
    Sixteen slope[16];
    for (int64_t first = 0; first < width; first += 16) {
      const int64_t count = std::min<int64_t>(16, width - first);
      slopes(row, last, first, count, slope);
      kernels.fan_inputs(total.data()->at, slope[0].at, layer.values + begin + first, at16(layer, begin + first),
                         at32(layer, begin + first), layer.n_labels, layer.f, count);
    }
    for (int64_t r = row; r < last; ++r)
      for (int64_t c = 0; c < h; ++c) dx[r * h + c] += total[c].at[r - row];
  };
  if (!parallel_blocks(x.n_rows, kFanRows, n_threads, inputs, poll)) return false;

  const int64_t n_blocks = (x.n_rows + kFanRows - 1) / kFanRows;
  std::vector<Turned> turned(n_blocks);
  auto prepare = [&](int64_t block, int64_t last, int) {
    for (; block < last; ++block) turn(x, block * kFanRows, turned[block]);
  };
  if (!parallel_blocks(n_blocks, 1, n_threads, prepare, poll)) return false;
  auto weights = [&](int64_t from, int64_t to, int) {
    std::vector<Sixteen> sums(layer.f * 16);
    Sixteen slope[16];
    for (int64_t first = from; first < to; first += 16) {
      const int64_t count = std::min<int64_t>(16, to - first);
      std::fill(sums.begin(), sums.end(), Sixteen{});
      for (int64_t block = 0; block < n_blocks; ++block) {
        const int64_t row = block * kFanRows;
        slopes(row, std::min(row + kFanRows, x.n_rows), first, count, slope);
        kernels.fan_weights(turned[block].data()->at, slope[0].at, at16(layer, begin + first),
                            at32(layer, begin + first), layer.n_labels, layer.f, count, sums.data()->at);
      }
      for (int64_t s = 0; s < layer.f; ++s)
        for (int64_t j = 0; j < count; ++j) {
          float total = 0;
          for (float part : sums[s * 16 + j].at) total += part;
          dw[s * width + first + j] = total;
        }
    }
  };
  return parallel_blocks(width, kFanLabels, n_threads, weights, poll);
}

bool fan_in_top(const FanIn& layer, const float* bias, const MatrixView<const float>& x, int64_t k, int n_threads,
                int32_t* ids, float* scores, const Poll& poll) {
  auto search = [&](int64_t row, int64_t last, int) {
    Turned turned;
    turn(x, row, turned);
    std::vector<BestK> best(last - row);
    for (BestK& each : best) each.reset(k);
    over_labels(layer, turned, 0, layer.n_labels, [&](int64_t first, int64_t width, const Sixteen* found) {
      for (int64_t r = 0; r < last - row; ++r)
        for (int64_t j = 0; j < width; ++j)
          best[r].push(found[j].at[r] + (bias ? bias[first + j] : 0.0f), static_cast<int32_t>(first + j));
    });
    for (int64_t r = row; r < last; ++r) best[r - row].write(ids + r * k, scores + r * k);
  };
  return parallel_blocks(x.n_rows, kFanRows, n_threads, search, poll);
}

}  // namespace lt
