#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "bindings/fields.h"
#include "bindings/layer_arrays.h"
#include "kernels/base/numa.h"
#include "kernels/linear/level_training.h"

namespace lt::bind {

namespace {

// LevelData with the arrays that it borrows.
struct LevelArrays {
  CsrArgs X;
  std::optional<Array2<float>> dense;
  Array1<int64_t> parent_ptr, child_ptr, positive_ptr;
  Array1<int32_t> parent_rows, positive_rows;
  Array1<float> positive_cost, negative_cost;
  std::optional<Array1<float>> parent_weight, positive_sign, row_weight;
  std::optional<CsrArgs> start;
  std::optional<Array1<float>> start_bias;
  std::optional<Array1<uint8_t>> known_row, known_positive;

  explicit LevelArrays(nb::kwargs given) {
    Fields fields(std::move(given));
    fields.read("X", X);
    fields.maybe("dense", dense);
    fields.read("parent_ptr", parent_ptr);
    fields.read("parent_rows", parent_rows);
    fields.read("child_ptr", child_ptr);
    fields.read("positive_ptr", positive_ptr);
    fields.read("positive_rows", positive_rows);
    fields.read("positive_cost", positive_cost);
    fields.read("negative_cost", negative_cost);
    fields.maybe("parent_weight", parent_weight);
    fields.maybe("positive_sign", positive_sign);
    fields.maybe("row_weight", row_weight);
    fields.maybe("start", start);
    fields.maybe("start_bias", start_bias);
    fields.maybe("known_row", known_row);
    fields.maybe("known_positive", known_positive);
    fields.done();
  }

  int64_t n_positives() const { return static_cast<int64_t>(positive_rows.shape(0)); }

  // Checked. `start_view`: the starting weights, which the result points to where there are any.
  LevelData view(CsrView& start_view) const {
    LevelData data;
    data.X = X.rows();
    data.dense = dense_view(dense, data.X.n_rows);
    require(data.n_features() <= std::numeric_limits<int32_t>::max(), "too many columns");
    data.n_parents = static_cast<int64_t>(parent_ptr.shape(0)) - 1;
    require(data.n_parents >= 0 && child_ptr.shape(0) == parent_ptr.shape(0), "one range of children per parent");
    const int64_t n_children = child_ptr.data()[data.n_parents];
    require(n_children >= 0 && static_cast<int64_t>(positive_ptr.shape(0)) == n_children + 1,
            "one range of positives per child");
    require(static_cast<int64_t>(negative_cost.shape(0)) == n_children, "one negative cost per child");
    require(positive_rows.shape(0) == positive_cost.shape(0), "one cost per positive");
    data.parent_ptr = parent_ptr.data();
    data.parent_rows = parent_rows.data();
    data.parent_weight = data_of(parent_weight, parent_rows.shape(0), "one weight per row of a parent");
    data.child_ptr = child_ptr.data();
    data.positive_ptr = positive_ptr.data();
    data.positive_rows = positive_rows.data();
    data.positive_sign = data_of(positive_sign, positive_cost.shape(0), "one sign per positive");
    data.positive_cost = positive_cost.data();
    data.negative_cost = negative_cost.data();
    data.row_weight = data_of(row_weight, static_cast<size_t>(data.X.n_rows), "one weight per row");
    check_level(data, static_cast<int64_t>(parent_rows.shape(0)), n_positives());
    if (!start) return data;
    start_view = start->view();
    require(start_view.n_rows == n_children && start_view.n_cols == data.n_features(), "one starting point per child");
    require(start_bias.has_value(), "a start has biases");
    data.start = &start_view;
    data.start_bias = data_of(start_bias, static_cast<size_t>(n_children), "one starting point per child");
    require(known_row.has_value() == known_positive.has_value(), "what is known: rows and positives, or neither");
    data.known_row = data_of(known_row, static_cast<size_t>(data.X.n_rows), "known or not, for every row");
    data.known_positive = data_of(known_positive, positive_rows.shape(0), "known or not, for every positive");
    return data;
  }

 private:
  template <class T>
  static const T* data_of(const std::optional<Array1<T>>& array, size_t size, const char* what) {
    if (!array) return nullptr;
    require(array->shape(0) == size, what);
    return array->data();
  }
};

// LevelParams, the room that they lend, and the seats that they share.
struct LevelSettings {
  LevelParams params;
  std::optional<Mutable1<uint8_t>> room;
  std::shared_ptr<Seats> seats;

  explicit LevelSettings(nb::kwargs given) {
    Fields fields(std::move(given));
    int loss = 0, start = static_cast<int>(params.solver.start);
    std::optional<float> prune_budget;
    fields.read("loss", loss);
    fields.read("dual", params.dual);
    fields.read("tolerance", params.solver.tolerance);
    fields.read("max_iter", params.solver.max_iter);
    fields.read("bias", params.solver.bias);
    fields.read("threshold", params.threshold);
    fields.maybe("regularize_bias", params.solver.regularize_bias);
    fields.maybe("l2", params.solver.l2);
    fields.maybe("l1", params.solver.l1);
    fields.maybe("smoothing", params.solver.smoothing);
    fields.maybe("start", start);
    fields.maybe("prune_budget", prune_budget);
    fields.maybe("seed", params.seed);
    fields.maybe("first_child", params.first_child);
    fields.maybe("batch_bytes", params.batch_bytes);
    fields.maybe("scratch_bytes", params.scratch_bytes);
    fields.maybe("most_entries", params.most_entries);
    fields.maybe("room", room);
    fields.maybe("seats", seats);
    fields.maybe("rank", params.rank);
    fields.done();
    params.seats = seats.get();
    require(!seats || (params.rank >= 0 && params.rank < seats->n_ranks()), "the seats know no such rank");
    require(loss >= 0 && loss <= 3, "loss must be 0 (squared hinge), 1 (hinge), 2 (logistic) or 3 (Huber hinge)");
    require(start >= 0 && start <= 3, "start must be 0 (zero), 1 (mean-separating), 2 (bias -1) or 3 (minus the mean)");
    params.solver.loss = static_cast<Loss>(loss);
    params.solver.start = static_cast<Start>(start);
    if (prune_budget) {
      require(*prune_budget >= 0 && *prune_budget < 1e6f, "prune_budget must be a number from 0 on");
      params.prune_budget = *prune_budget;
    }
    params.scratch_bytes = std::max<int64_t>(params.scratch_bytes, 0);
    params.most_entries = std::clamp<int64_t>(params.most_entries, 0, kMostEntries);
    if (!room) return;
    params.room = reinterpret_cast<char*>(room->data());
    params.room_bytes = static_cast<int64_t>(room->shape(0));
    require(reinterpret_cast<uintptr_t>(params.room) % alignof(float) == 0, "the room must be aligned");
  }
};

// What each solver can do, and nothing else under its name.
void check_solver(const LevelData& data, const LevelParams& params, int64_t n_positives) {
  const SolverParams& solver = params.solver;
  require(solver.max_iter >= 0 && solver.tolerance >= 0, "max_iter and tolerance cannot be negative");
  if (params.dual) {
    require(solver.loss == Loss::squared_hinge || solver.loss == Loss::hinge,
            "dual coordinate descent solves the squared hinge and the hinge only");
    require(solver.l2 == 1 && solver.l1 == 0, "dual coordinate descent has l2 = 1 and l1 = 0: scale the costs instead");
    require(solver.regularize_bias, "dual coordinate descent always regularises the bias");
  } else {
    require(solver.loss != Loss::hinge, "Newton needs a smooth loss: take the Huber hinge instead of the hinge");
    require(solver.l2 >= 0 && solver.l1 >= 0 && solver.l2 + solver.l1 > 0 && solver.l2 + solver.l1 < 1e30f,
            "l2 and l1 cannot be negative, and one of them must be positive");
    require(solver.smoothing > 0 && solver.smoothing < 1e30f, "smoothing must be positive");
  }
  require(params.dual || !data.start, "only the dual solver begins with given weights");
  if (data.positive_sign)
    for (int64_t p = 0; p < n_positives; ++p) {
      const float sign = data.positive_sign[p];
      require(sign >= -1 && sign < 1e30f, "targets are finite and at least -1");
      require(solver.loss == Loss::logistic || sign == 1 || sign == -1, "soft targets need the logistic loss");
    }
}

nb::tuple train_level_py(const LevelArrays& level, const LevelSettings& settings, int n_threads, nb::object progress) {
  CsrView start;
  const LevelData data = level.view(start);
  check_solver(data, settings.params, level.n_positives());
  ChunkLayer layer;
  LevelReport report;
  const Poll poll = poll_python(progress);
  {
    nb::gil_scoped_release nogil;
    train_level(data, settings.params, n_threads, layer, report, poll);
  }
  nb::dict about;
  about["unconverged"] = report.unconverged;
  about["iterations"] = report.iterations;
  about["copies"] = report.copies;
  about["threads"] = report.threads;
  return nb::make_tuple(layer_dict(std::move(layer)), about);
}

template <class T>
void bind_struct(nb::module_& m, const char* name) {
  nb::class_<T>(m, name).def("__init__", [](T* self, nb::kwargs fields) { new (self) T(std::move(fields)); });
}

}  // namespace

void bind_training(nb::module_& m) {
  nb::class_<Seats>(m, "Seats").def(nb::init<int, int>(), nb::arg("n_seats"), nb::arg("n_ranks"));
  bind_struct<LevelArrays>(m, "Level");
  bind_struct<LevelSettings>(m, "LevelParams");
  m.def("train_level", &train_level_py, nb::arg("level"), nb::arg("params"), nb::arg("n_threads"),
        nb::arg("progress").none() = nb::none());
  m.def("gathered_bytes", &gathered_bytes, nb::arg("n_rows"), nb::arg("nnz"));
  m.def("worker_bytes", &worker_bytes, nb::arg("n_rows"), nb::arg("nnz"), nb::arg("n_cols"), nb::arg("n_dense"),
        nb::arg("dual"));
  m.def("numa_cpus", [](int n_threads) { return numa_nodes(n_threads).cpus(); }, nb::arg("n_threads"));
}

}  // namespace lt::bind
