// The weights of dense columns, child by child: what search multiplies with the dense block of a query.
//
// A layer holds all weights feature by feature (chunk_layer.h). For queries with a dense block its last columns are
// laid out once more, twice. As rows of `stride` floats, zero beyond the columns, for exact products:
//
//   child 0    w_0 w_1 ... w_e-1 0 ..
//   child 1    ...
//
// And rounded to 8 bits, 16 children of a chunk side by side, for estimates of all of them: w is within step / 2 of
// step * code, and four columns of a child make 32 bits.
//
//   columns 0-3    child 0  0  0  0 │ child 1 ...  │ child 15       64 bytes
//   columns 4-7    ...
//
// A query is rounded likewise, to x_step * code with codes from -63 to 63. With u = code + 64 (unsigned),
//
//   w.x  =  step x_step (sum u code - 64 sum code)  +-  (step |x|_1 + x_step |w|_1) / 2
//
// so that only the few children whose score may still be among the best need an exact product.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/linear/chunk_layer.h"

namespace lt {

// Borrowed view, for kernels.
struct DenseTable {
  int64_t n_columns = 0;
  int64_t stride = 0;                    // columns, rounded up to a multiple of 16
  const float* weights = nullptr;        // (n_children, stride)
  const int64_t* first_group = nullptr;  // (n_chunks): groups of 16 children before those of a chunk
  const int8_t* codes = nullptr;         // (groups, stride / 4, 16, 4)
  const float* step = nullptr;           // (groups, 16); 0 beyond the children of a chunk
  const int32_t* code_sum = nullptr;     // (groups, 16)
  const float* l1 = nullptr;             // (groups, 16): sum of |step * code|

  const float* row(int64_t child) const { return weights + child * stride; }
};

// The same arrays, owned.
class OwnedDenseTable {
 public:
  // The last `n_columns` features of a layer that has been checked.
  OwnedDenseTable(const ChunkLayerView& layer, int64_t n_columns, int n_threads);
  DenseTable view() const;

 private:
  int64_t n_columns_, stride_;
  std::vector<float> weights_;
  std::vector<int64_t> first_group_;
  std::vector<int8_t> codes_;
  std::vector<float> step_;
  std::vector<int32_t> code_sum_;
  std::vector<float> l1_;
};

// The dense block of a query, `stride` numbers each: x itself, and u.
struct DenseQuery {
  const float* x = nullptr;
  const uint8_t* u = nullptr;
  float step = 0, l1 = 0;
};

class OwnedDenseQuery {
 public:
  // values times `scale`, rounded to float.
  void take(const float* values, int64_t n, double scale, int64_t stride);
  DenseQuery view() const { return {x_.data(), u_.data(), step_, l1_}; }

 private:
  std::vector<float> x_;
  std::vector<uint8_t> u_;
  float step_ = 0, l1_ = 0;
};

}  // namespace lt
