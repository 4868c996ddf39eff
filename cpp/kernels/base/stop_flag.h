// How the caller of a long task asks it to end early: set by one thread, read by others between steps of their work.
// Plain enough for *.simd.cpp files.
#pragma once

#include <cstdint>

namespace lt {

class StopFlag {
 public:
  void ask() { __atomic_store_n(&asked_, 1, __ATOMIC_RELAXED); }
  void clear() { __atomic_store_n(&asked_, 0, __ATOMIC_RELAXED); }
  bool asked() const { return __atomic_load_n(&asked_, __ATOMIC_RELAXED) != 0; }

 private:
  int32_t asked_ = 0;
};

}  // namespace lt
