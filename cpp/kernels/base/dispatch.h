// Which instruction set to run: the best the machine has, or the one that was forced.
//
// A kernel with a SIMD inner loop lives in `name.simd.cpp`, is compiled once per instruction set with LT_ISA set to
// portable, avx2 or avx512, and exports a table of function pointers from its namespace. `pick` chooses a table.
#pragma once

namespace lt {

enum class Isa { portable = 0, avx2 = 1, avx512 = 2 };

Isa best_isa();         // what this machine supports
Isa active_isa();       // what runs: LONGTAIL_SIMD=portable|avx2|avx512 at first use, or set_isa, else the best
void set_isa(Isa isa);  // throws std::invalid_argument if the machine lacks it
const char* isa_name(Isa isa);
Isa isa_from_name(const char* name);  // throws std::invalid_argument

}  // namespace lt

// LT_DISPATCH(table): the table named `table` of the active instruction set. Declare it with LT_DECLARE(Type, table) in
// namespace lt, and define it as lt::LT_ISA::table in the *.simd.cpp file.
#ifdef LT_X86
#define LT_DECLARE(Type, table) \
  namespace portable {          \
  extern const Type table;      \
  }                             \
  namespace avx2 {              \
  extern const Type table;      \
  }                             \
  namespace avx512 {            \
  extern const Type table;      \
  }
#define LT_DISPATCH(table)                                       \
  (::lt::active_isa() == ::lt::Isa::avx512 ? ::lt::avx512::table \
   : ::lt::active_isa() == ::lt::Isa::avx2 ? ::lt::avx2::table   \
                                           : ::lt::portable::table)
#else
#define LT_DECLARE(Type, table) \
  namespace portable {          \
  extern const Type table;      \
  }
#define LT_DISPATCH(table) (::lt::portable::table)
#endif
