#include "bindings/arrays.h"
#include "kernels/base/combine.h"
#include "kernels/base/topk.h"

namespace lt::bind {

namespace {

struct TopkOut {
  std::vector<int32_t> ids;
  std::vector<float> scores;
  int64_t n, k;

  TopkOut(int64_t n, int64_t k) : ids(n * k), scores(n * k), n(n), k(k) {}
  nb::tuple take() {
    const std::vector<size_t> shape{static_cast<size_t>(n), static_cast<size_t>(k)};
    return nb::make_tuple(to_numpy(std::move(ids), shape), to_numpy(std::move(scores), shape));
  }
};

}  // namespace

void bind_topk(nb::module_& m) {
  m.def(
      "topk_csr",
      [](const CsrArgs& csr, int64_t k, int n_threads) {
        const CsrView matrix = csr.view();
        TopkOut out(matrix.n_rows, k);
        {
          nb::gil_scoped_release nogil;
          topk_csr(matrix, k, n_threads, out.ids.data(), out.scores.data());
        }
        return out.take();
      },
      nb::arg("csr"), nb::arg("k"), nb::arg("n_threads"));
  m.def(
      "topk_dense",
      [](Array2<float> matrix, int64_t k, int n_threads) {
        const MatrixView<const float> view{static_cast<int64_t>(matrix.shape(0)), static_cast<int64_t>(matrix.shape(1)),
                                           matrix.data()};
        TopkOut out(view.n_rows, k);
        {
          nb::gil_scoped_release nogil;
          topk_dense(view, k, n_threads, out.ids.data(), out.scores.data());
        }
        return out.take();
      },
      nb::arg("matrix"), nb::arg("k"), nb::arg("n_threads"));
  m.def(
      "combine_topk",
      [](const std::vector<Array2<int32_t>>& ids, const std::vector<Array2<float>>& scores, int rule, int64_t k,
         int n_threads) {
        require(!ids.empty() && ids.size() == scores.size(), "there must be as many scores as ids, and some");
        require(rule >= 0 && rule <= static_cast<int>(CombineRule::kSigmoid), "no such rule");
        std::vector<Answers> members;
        for (size_t i = 0; i < ids.size(); ++i) {
          require(ids[i].shape(0) == ids[0].shape(0), "rankings must be of the same rows");
          require(ids[i].shape(0) == scores[i].shape(0) && ids[i].shape(1) == scores[i].shape(1),
                  "ids and scores must have the same shape");
          members.push_back({static_cast<int64_t>(ids[i].shape(1)), ids[i].data(), scores[i].data()});
        }
        TopkOut out(static_cast<int64_t>(ids[0].shape(0)), k);
        {
          nb::gil_scoped_release nogil;
          combine_answers(members, out.n, static_cast<CombineRule>(rule), k, n_threads, out.ids.data(),
                          out.scores.data());
        }
        return out.take();
      },
      nb::arg("ids"), nb::arg("scores"), nb::arg("rule"), nb::arg("k"), nb::arg("n_threads"));
}

}  // namespace lt::bind
