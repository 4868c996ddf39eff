// longtail._core. One bind_* function per kernel file; longtail._native is the only importer.
#include "bindings/arrays.h"
#include "kernels/base/cpu_quota.h"
#include "kernels/base/dispatch.h"

namespace lt::bind {
void bind_codes(nb::module_& m);
void bind_tfidf(nb::module_& m);
void bind_metrics(nb::module_& m);
void bind_synthetic(nb::module_& m);
void bind_neighbors(nb::module_& m);
void bind_topk(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_training(nb::module_& m);
void bind_xc(nb::module_& m);
void bind_tree(nb::module_& m);
void bind_decide(nb::module_& m);
void bind_outputs(nb::module_& m);
void bind_fusion(nb::module_& m);
}  // namespace lt::bind

NB_MODULE(_core, m) {
  using namespace lt;
  namespace nb = nanobind;
  m.def("best_isa", [] { return isa_name(best_isa()); });
  m.def("active_isa", [] { return isa_name(active_isa()); });
  m.def("set_isa", [](const std::string& name) { set_isa(isa_from_name(name.c_str())); });
  m.def("cpu_quota", &cpu_quota, nb::arg("groups"), nb::arg("root"));
  m.def("resolve_threads", &resolve_threads);
  lt::bind::bind_codes(m);
  lt::bind::bind_tfidf(m);
  lt::bind::bind_metrics(m);
  lt::bind::bind_synthetic(m);
  lt::bind::bind_neighbors(m);
  lt::bind::bind_topk(m);
  lt::bind::bind_linear(m);
  lt::bind::bind_training(m);
  lt::bind::bind_xc(m);
  lt::bind::bind_tree(m);
  lt::bind::bind_decide(m);
  lt::bind::bind_outputs(m);
  lt::bind::bind_fusion(m);
}
