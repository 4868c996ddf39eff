#include "kernels/base/dispatch.h"

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace lt {

namespace {
std::atomic<int> active{-1};
}

Isa best_isa() {
#ifdef LT_X86
  static const Isa best = [] {
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512cd");
    return avx2 && avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::portable;
  }();
  return best;
#else
  return Isa::portable;
#endif
}

void set_isa(Isa isa) {
  if (static_cast<int>(isa) > static_cast<int>(best_isa()))
    throw std::invalid_argument(std::string("this machine has no ") + isa_name(isa) + ", its best is " +
                                isa_name(best_isa()));
  active = static_cast<int>(isa);
}

Isa active_isa() {
  if (active < 0) {
    const char* wanted = std::getenv("LONGTAIL_SIMD");
    set_isa(wanted && *wanted ? isa_from_name(wanted) : best_isa());
  }
  return static_cast<Isa>(active.load());
}

const char* isa_name(Isa isa) {
  static const char* names[] = {"portable", "avx2", "avx512"};
  return names[static_cast<int>(isa)];
}

Isa isa_from_name(const char* name) {
  for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512})
    if (std::string(name) == isa_name(isa)) return isa;
  throw std::invalid_argument("instruction set '" + std::string(name) + "' is not one of portable, avx2, avx512");
}

}  // namespace lt
