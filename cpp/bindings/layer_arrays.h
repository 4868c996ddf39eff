// A layer that a kernel has made, as arrays by name.
#pragma once

#include "bindings/arrays.h"
#include "kernels/linear/chunk_layer.h"

namespace lt::bind {

// Read-only arrays: a searcher checks them once, and views them from then on.
inline nb::dict layer_dict(ChunkLayer&& layer) {
  nb::dict out;
  out["parent_chunks"] = to_frozen(std::move(layer.parent_chunks));
  out["chunk_children"] = to_frozen(std::move(layer.chunk_children));
  out["feature_ptr"] = to_frozen(std::move(layer.feature_ptr));
  out["entry_base"] = to_frozen(std::move(layer.entry_base));
  out["bucket_ptr"] = to_frozen(std::move(layer.bucket_ptr));
  out["bucket_shift"] = to_frozen(std::move(layer.bucket_shift));
  out["buckets"] = to_frozen(std::move(layer.buckets));
  out["features"] = to_frozen(std::move(layer.features));
  out["entry_ptr"] = to_frozen(std::move(layer.entry_ptr));
  out["child"] = to_frozen(std::move(layer.child));
  out["value"] = to_frozen(std::move(layer.value));
  out["bias"] = to_frozen(std::move(layer.bias));
  return out;
}

}  // namespace lt::bind
