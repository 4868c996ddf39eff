// Random numbers by counter: what a stream yields depends on the seed and the numbers that name it (a row, a purpose),
// never on what was drawn before it elsewhere. One stream per row makes results the same for any number of threads.
//
// The generator is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a counter in steps of the golden ratio, mixed.
#pragma once

#include <cmath>
#include <cstdint>

namespace lt {

inline uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// One step of the generator from the state x, as a hash of it.
inline uint64_t split_mix(uint64_t x) { return mix64(x + 0x9E3779B97F4A7C15ull); }

// A hash of three numbers: the stateless form, for what must be found again without being stored.
inline uint64_t hash64(uint64_t seed, uint64_t a, uint64_t b) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15ull;
  return mix64(mix64(mix64(seed + kStep) ^ (a + kStep)) ^ (b + 2 * kStep));
}

// Maps 64 random bits to [0, n), n below 2^32. The bias is below n / 2^32.
inline uint32_t reduce(uint64_t bits, uint32_t n) { return static_cast<uint32_t>(((bits >> 32) * n) >> 32); }

class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t purpose, uint64_t index) : state_(hash64(seed, purpose, index)) {}

  uint64_t bits() { return mix64(state_ += 0x9E3779B97F4A7C15ull); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // in [0, 1)
  uint32_t below(uint32_t n) { return reduce(bits(), n); }
  double normal() {  // Box and Muller, one of the two
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }
  int64_t poisson(double mean) {
    int64_t total = 0;
    for (; mean > 16.0; mean -= 16.0) total += small_poisson(16.0);  // a sum of Poissons is Poisson
    return total + small_poisson(mean);
  }

 private:
  int64_t small_poisson(double mean) {  // counts arrivals until their product of uniforms passes exp(-mean)
    const double stop = std::exp(-mean);
    int64_t k = -1;
    for (double product = 1.0; product > stop || k < 0; ++k) product *= 1.0 - uniform();
    return k;
  }

  uint64_t state_;
};

}  // namespace lt
