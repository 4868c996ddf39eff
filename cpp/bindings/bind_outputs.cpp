#include "bindings/arrays.h"
#include "kernels/outputs/fan_in.h"
#include "kernels/outputs/short_rows.h"

namespace lt::bind {

namespace {

using AnyArray2 = nb::ndarray<nb::ndim<2>, nb::c_contig, nb::device::cpu, nb::ro>;
using Bias = std::optional<Array1<float>>;

ShortRows short_rows(const AnyArray2& raw, const Bias& bias, const Array2<float>& queries) {
  ShortRows out{static_cast<int64_t>(raw.shape(0)), static_cast<int64_t>(raw.shape(1))};
  if (raw.dtype() == nb::dtype<uint16_t>())
    out.sixteen = static_cast<const uint16_t*>(raw.data());
  else if (raw.dtype() == nb::dtype<uint8_t>())
    out.eight = static_cast<const uint8_t*>(raw.data());
  require(out.sixteen || out.eight, "rows must have 16 or 8 bits: uint16 or uint8");
  require(raw.shape(1) == queries.shape(1), "rows and queries differ in their width");
  require(!bias || bias->shape(0) == raw.shape(0), "one bias per row is needed");
  return out;
}

const float* pointer(const Bias& bias) { return bias ? bias->data() : nullptr; }

// A fixed fan-in layer with the arrays it borrows; every index is checked once, so that kernels need not doubt it.
class FanInLayer {
 public:
  FanInLayer(Array2<float> values, AnyArray2 index, int64_t n_inputs)
      : values_(nb::cast(values)), index_(nb::cast(index)) {
    layer_ = {static_cast<int64_t>(values.shape(1)), n_inputs, static_cast<int64_t>(values.shape(0)), values.data()};
    require(index.shape(0) == values.shape(0) && index.shape(1) == values.shape(1),
            "values and index must have the same shape");
    bool within = true;
    if (index.dtype() == nb::dtype<uint16_t>()) {
      layer_.index16 = static_cast<const uint16_t*>(index.data());
      for (size_t i = 0; i < index.size(); ++i) within &= layer_.index16[i] < n_inputs;
    } else if (index.dtype() == nb::dtype<int32_t>()) {
      layer_.index32 = static_cast<const int32_t*>(index.data());
      for (size_t i = 0; i < index.size(); ++i) within &= layer_.index32[i] >= 0 && layer_.index32[i] < n_inputs;
    }
    require(layer_.index16 || layer_.index32, "index must be uint16 or int32");
    require(within, "index must lie from 0 on, below " + std::to_string(n_inputs));
  }

  nb::tuple top(Bias bias, Array2<float> x, int64_t k, int n_threads) const {
    const auto view = inputs(bias, x);
    Ranked out(view.n_rows, k);
    const Poll poll = poll_python(nb::none());
    {
      nb::gil_scoped_release nogil;
      fan_in_top(layer_, pointer(bias), view, k, n_threads, out.ids.data(), out.scores.data(), poll);
    }
    return out.take();
  }

  nb::ndarray<nb::numpy, float> scores(Bias bias, Array2<float> x, int64_t begin, int64_t end, int n_threads) const {
    const auto view = inputs(bias, x);
    check_labels(begin, end);
    std::vector<float> out(view.n_rows * (end - begin));
    const Poll poll = poll_python(nb::none());
    {
      nb::gil_scoped_release nogil;
      fan_in_scores(layer_, pointer(bias), view, begin, end, n_threads, out.data(), poll);
    }
    return to_numpy(std::move(out), {x.shape(0), static_cast<size_t>(end - begin)});
  }

  nb::ndarray<nb::numpy, float> gradients(Array2<float> x, Array2<float> g, int64_t begin, int64_t end,
                                          Mutable2<float> dx, int n_threads) const {
    const auto view = inputs({}, x);
    check_labels(begin, end);
    require(g.shape(0) == x.shape(0) && static_cast<int64_t>(g.shape(1)) == end - begin,
            "gradients must have the shape (rows, labels)");
    require(dx.shape(0) == x.shape(0) && dx.shape(1) == x.shape(1), "dx must have the shape of x");
    std::vector<float> dw(layer_.f * (end - begin));
    const Poll poll = poll_python(nb::none());
    {
      nb::gil_scoped_release nogil;
      fan_in_gradients(layer_, view, matrix_view(g), begin, end, n_threads, dx.data(), dw.data(), poll);
    }
    return to_numpy(std::move(dw), {static_cast<size_t>(layer_.f), static_cast<size_t>(end - begin)});
  }

 private:
  MatrixView<const float> inputs(const Bias& bias, const Array2<float>& x) const {
    require(static_cast<int64_t>(x.shape(1)) == layer_.n_inputs, "rows must have one number per input");
    require(!bias || static_cast<int64_t>(bias->shape(0)) == layer_.n_labels, "one bias per label is needed");
    return matrix_view(x);
  }
  void check_labels(int64_t begin, int64_t end) const {
    require(0 <= begin && begin <= end && end <= layer_.n_labels, "labels must lie within the layer");
  }

  nb::object values_, index_;
  FanIn layer_;
};

}  // namespace

void bind_outputs(nb::module_& m) {
  m.def(
      "top_short_rows",
      [](AnyArray2 raw, Bias bias, Array2<float> queries, int64_t k, int n_threads) {
        const ShortRows rows = short_rows(raw, bias, queries);
        const auto view = matrix_view(queries);
        Ranked out(view.n_rows, k);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          top_short_rows(rows, pointer(bias), view, k, n_threads, out.ids.data(), out.scores.data(), poll);
        }
        return out.take();
      },
      nb::arg("raw"), nb::arg("bias").none(), nb::arg("queries"), nb::arg("k"), nb::arg("n_threads"));
  m.def(
      "short_products",
      [](AnyArray2 raw, Bias bias, Array2<float> queries, int n_threads) {
        const ShortRows rows = short_rows(raw, bias, queries);
        const auto view = matrix_view(queries);
        std::vector<float> out(view.n_rows * rows.n_rows);
        const Poll poll = poll_python(nb::none());
        {
          nb::gil_scoped_release nogil;
          short_products(rows, pointer(bias), view, n_threads, out.data(), poll);
        }
        return to_numpy(std::move(out), {queries.shape(0), static_cast<size_t>(rows.n_rows)});
      },
      nb::arg("raw"), nb::arg("bias").none(), nb::arg("queries"), nb::arg("n_threads"));
  nb::class_<FanInLayer>(m, "FanInLayer")
      .def(nb::init<Array2<float>, AnyArray2, int64_t>(), nb::arg("values"), nb::arg("index"), nb::arg("n_inputs"))
      .def("top", &FanInLayer::top, nb::arg("bias").none(), nb::arg("x"), nb::arg("k"), nb::arg("n_threads"))
      .def("scores", &FanInLayer::scores, nb::arg("bias").none(), nb::arg("x"), nb::arg("begin"), nb::arg("end"),
           nb::arg("n_threads"))
      .def("gradients", &FanInLayer::gradients, nb::arg("x"), nb::arg("g"), nb::arg("begin"), nb::arg("end"),
           nb::arg("dx"), nb::arg("n_threads"));
}

}  // namespace lt::bind
