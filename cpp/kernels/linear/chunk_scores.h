// Scores of one chunk for one query, per instruction set.
//
// A non-zero of the query costs a walk through memory: directory, features, entry offsets, entries. Each step depends
// on the one before, and none of it is near. So all non-zeros take each step together: by the time the last one has
// asked for its line, that of the first has come.
//
//   1  directory   buckets[f >> shift]          ask for the lines of all non-zeros (for the next chunk: meanwhile)
//   2  features    of every bucket              ask
//   3  compare     8 or 16 ids at a time        the non-zeros that the chunk has; ask for their offsets
//   4  offsets     of every hit                 ask for its entries
//   5  sums        z[child] += x * weight
//
// Products and sums are rounded one by one on every machine, and in the same order: search gives the same bits with any
// instruction set.
#pragma once

#include <cstdint>

#include "kernels/base/dispatch.h"
#include "kernels/linear/chunk_layer.h"
#include "kernels/linear/dense_table.h"

namespace lt {

// A sparse query.
struct QueryRow {
  const int32_t* indices = nullptr;
  const float* values = nullptr;
  int64_t n = 0;
  double scale = 1;  // values count times this
};

// A non-zero on its way: bucket, then position in the features, then entries.
struct Lookup {
  int64_t begin, end;
  float x;
};

struct ChunkKernels {
  // Step 1 for a chunk that will be scored soon.
  void (*approach)(const ChunkLayerView& layer, int64_t chunk, const QueryRow& query);
  // z[j] += w_j . x * scale for the children of a chunk; weights of int8 count in steps. `lookups`: room for all
  // non-zeros. `next` (or null): the chunk that `next_query` will ask for after this one. Returns the number of entries
  // that were added.
  int64_t (*add_products)(const ChunkLayerView& layer, int64_t chunk, const QueryRow& query, const int64_t* next,
                          const QueryRow& next_query, Lookup* lookups, float* z);
  // most[j] >= z[j] + <w_j, x> for the children of a chunk, by the estimates of dense_table.h. most: as long as a
  // multiple of 16.
  void (*dense_bounds)(const DenseTable& table, int64_t chunk, int64_t width, const DenseQuery& query, const float* z,
                       float* most);
  // out[j] = <row j of a dense table, x> for the listed rows: lane l of 16 sums up the columns l, l + 16, ... in two
  // parts, and the lanes are added in pairs 8, 4, 2 and 1 apart. x: (stride), as long as a row.
  void (*dense_products)(const float* table, int64_t stride, const float* x, const int32_t* rows, int64_t n,
                         float* out);
  // Bit j % 16 of masks[j / 16] tells whether z[j] >= cut, which NaN never is. z: aligned to 64 bytes, and as long as a
  // multiple of 16; what lies beyond n is not counted.
  void (*reaching)(const float* z, int64_t n, float cut, uint16_t* masks);
};

LT_DECLARE(ChunkKernels, chunk_kernels)

}  // namespace lt
