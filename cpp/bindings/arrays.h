// Shared vocabulary of the bindings: array argument types, results handed over through a capsule, Ctrl-C polling.
//
// A binding checks shapes, releases the GIL once everything is a pointer, and lets exceptions through:
// std::invalid_argument becomes ValueError, std::out_of_range IndexError, std::bad_alloc MemoryError.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/base/canonical.h"
#include "kernels/base/parallel.h"
#include "kernels/base/views.h"

namespace lt::bind {

namespace nb = nanobind;

template <class T>
using Array1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Mutable1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Mutable2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void require(bool condition, const std::string& message) {
  if (!condition) throw std::invalid_argument(message);
}

// A sparse matrix as it arrives: the tuple of longtail._native.csr_args. Holds the arrays, which may be converted
// copies, as long as a view of them is in use.
struct CsrArgs {
  Array1<int64_t> indptr;
  Array1<int32_t> indices;
  Array1<float> values;
  int64_t n_cols = 0;

  // With sound offsets; whoever reads a row first checks its columns (check_row).
  CsrView rows() const {
    require(indptr.shape(0) >= 1, "indptr needs at least one entry");
    const int64_t n_rows = static_cast<int64_t>(indptr.shape(0)) - 1;
    require(indices.shape(0) == values.shape(0), "indices and values disagree about the number of entries");
    check_offsets(indptr.data(), n_rows, static_cast<int64_t>(indices.shape(0)), "indptr");
    return {n_rows, n_cols, indptr.data(), indices.data(), values.data()};
  }

  // With every row checked: kernels need not doubt an index.
  CsrView view(int n_threads = 1) const {
    const CsrView matrix = rows();
    check_rows(matrix, n_threads);
    return matrix;
  }

  // Columns in any order, as candidates by falling score have them, and within the matrix.
  CsrView candidates() const {
    const CsrView matrix = rows();
    bool within = true;
    for (int64_t p = 0; p < matrix.nnz(); ++p) within &= matrix.indices[p] >= 0 && matrix.indices[p] < n_cols;
    require(within, "columns must lie from 0 on, below " + std::to_string(n_cols));
    return matrix;
  }
};

// Moves a vector into a NumPy array without copying.
template <class T, class Allocator>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T, Allocator>&& values, std::vector<size_t> shape = {}) {
  auto* owner = new std::vector<T, Allocator>(std::move(values));
  if (shape.empty()) shape = {owner->size()};
  nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<std::vector<T, Allocator>*>(p); });
  return nb::ndarray<nb::numpy, T>(owner->data(), shape.size(), shape.data(), capsule);
}

// The same as an array that Python cannot write to.
template <class T, class Allocator>
nb::ndarray<nb::numpy, const T> to_frozen(std::vector<T, Allocator>&& values) {
  auto* owner = new std::vector<T, Allocator>(std::move(values));
  const size_t shape[1] = {owner->size()};
  nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<std::vector<T, Allocator>*>(p); });
  return nb::ndarray<nb::numpy, const T>(owner->data(), 1, shape, capsule);
}

// Checks for Ctrl-C, then reports progress to `progress(done, total)` if it is not None. A Python exception raised by
// either is thrown through the kernel, which stops its workers first. Call with the GIL released.
inline Poll poll_python(const nb::object& progress) {
  PyObject* callback = progress.is_none() ? nullptr : progress.ptr();
  return [callback](int64_t done, int64_t total) {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (callback) nb::borrow<nb::object>(callback)(done, total);
    return true;
  };
}

template <class T>
MatrixView<const T> matrix_view(const Array2<T>& array) {
  return {static_cast<int64_t>(array.shape(0)), static_cast<int64_t>(array.shape(1)), array.data()};
}

// Dense columns of rows that also have sparse ones; a matrix without columns where there are none.
inline MatrixView<const float> dense_view(const std::optional<Array2<float>>& dense, int64_t n_rows) {
  if (!dense) return {n_rows, 0, nullptr};
  require(static_cast<int64_t>(dense->shape(0)) == n_rows, "sparse and dense columns must have the same rows");
  return matrix_view(*dense);
}

// Ids and scores of n rows with k slots, as a kernel fills them.
struct Ranked {
  std::vector<int32_t> ids;
  std::vector<float> scores;
  std::vector<size_t> shape;

  Ranked(int64_t n, int64_t k) : shape{static_cast<size_t>(n), static_cast<size_t>(k)} {
    require(k >= 1, "k must be at least 1");
    ids.resize(shape[0] * shape[1]);
    scores.resize(shape[0] * shape[1]);
  }
  nb::tuple take() { return nb::make_tuple(to_numpy(std::move(ids), shape), to_numpy(std::move(scores), shape)); }
};

}  // namespace lt::bind

template <>
struct nanobind::detail::type_caster<lt::bind::CsrArgs> {
  NB_TYPE_CASTER(lt::bind::CsrArgs, const_name("tuple[indptr, indices, values, n_cols]"))

  bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
    if (!PyTuple_Check(source.ptr()) || PyTuple_GET_SIZE(source.ptr()) != 4) return false;
    const auto part = [&](Py_ssize_t i) { return handle(PyTuple_GET_ITEM(source.ptr(), i)); };
    return read(part(0), flags, cleanup, value.indptr) && read(part(1), flags, cleanup, value.indices) &&
           read(part(2), flags, cleanup, value.values) && read(part(3), flags, cleanup, value.n_cols);
  }

 private:
  template <class T>
  static bool read(handle source, uint8_t flags, cleanup_list* cleanup, T& to) noexcept {
    make_caster<T> caster;
    if (!caster.from_python(source, flags, cleanup)) return false;
    to = caster.operator cast_t<T>();
    return true;
  }
};
