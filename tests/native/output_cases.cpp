// Stored output layers: rows of few bits, and few weights per label.
#include <memory>

#include "driver.h"
#include "kernels/outputs/fan_in.h"
#include "kernels/outputs/short_rows.h"

namespace lt::driver {

namespace {

constexpr int64_t kLabels = 300, kInputs = 24, kAsked = 150, kFew = 5;

struct Stored {
  std::vector<uint16_t> sixteen;
  std::vector<uint8_t> eight;
  std::vector<float> queries = random_floats(kAsked * kInputs, 71, -1.0f, 1.0f);
  std::vector<float> bias = random_floats(kLabels, 72, -1.0f, 1.0f);
  std::vector<float> values = random_floats(kFew * kLabels, 73, -1.0f, 1.0f);
  std::vector<float> gradients = random_floats(kAsked * kLabels, 74, -1.0f, 1.0f);
  std::vector<uint16_t> index16;
  std::vector<int32_t> index32;

  Stored() {
    for (int64_t i = 0; i < kLabels * kInputs; ++i) {
      sixteen.push_back(static_cast<uint16_t>(0x3C00 | (hash64(75, i, 1) & 0x83FF)));  // below 2 in size
      eight.push_back(static_cast<uint8_t>(hash64(76, i, 1) & 0xB7));                  // below 1
    }
    for (int64_t i = 0; i < kFew * kLabels; ++i) {
      index32.push_back(static_cast<int32_t>(hash64(77, i, 1) % kInputs));
      index16.push_back(static_cast<uint16_t>(index32.back()));
    }
    for (int64_t i = 0; i < kAsked * kLabels; ++i)
      if (hash64(78, i, 1) % 3) gradients[i] = 0;
  }
  MatrixView<const float> rows() const { return {kAsked, kInputs, queries.data()}; }
};

Case few_bits() {
  auto stored = std::make_shared<Stored>();
  return {"top_short_rows, short_products", [=](int n_threads, Digest& digest) {
            for (const ShortRows& rows : {ShortRows{kLabels, kInputs, stored->sixteen.data(), nullptr},
                                          ShortRows{kLabels, kInputs, nullptr, stored->eight.data()}}) {
              Answers top(kAsked, 7);
              top_short_rows(rows, stored->bias.data(), stored->rows(), 7, n_threads, top.ids.data(),
                             top.scores.data());
              top.digest(digest);
              std::vector<float> all(kAsked * kLabels);
              short_products(rows, nullptr, stored->rows(), n_threads, all.data());
              digest.add(all);
            }
          }};
}

Case few_weights() {
  auto stored = std::make_shared<Stored>();
  return {"fan_in, scores, gradients and top", [=](int n_threads, Digest& digest) {
            for (const bool wide : {false, true}) {
              const FanIn layer{kLabels,
                                kInputs,
                                kFew,
                                stored->values.data(),
                                wide ? nullptr : stored->index16.data(),
                                wide ? stored->index32.data() : nullptr};
              Answers top(kAsked, 7);
              fan_in_top(layer, stored->bias.data(), stored->rows(), 7, n_threads, top.ids.data(), top.scores.data());
              top.digest(digest);
              std::vector<float> scores(kAsked * 200), dx(kAsked * kInputs), dw(kFew * kLabels);
              fan_in_scores(layer, nullptr, stored->rows(), 100, 300, n_threads, scores.data());
              digest.add(scores);
              fan_in_gradients(layer, stored->rows(), {kAsked, kLabels, stored->gradients.data()}, 0, kLabels,
                               n_threads, dx.data(), dw.data());
              digest.add(dx);
              digest.add(dw);
            }
          }};
}

}  // namespace

std::vector<Case> output_cases() { return {few_bits(), few_weights()}; }

}  // namespace lt::driver
