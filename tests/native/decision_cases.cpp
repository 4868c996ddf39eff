// Decision rules, fused answers, metrics, top k, and synthetic data.
#include <memory>

#include "driver.h"
#include "kernels/base/synthetic.h"
#include "kernels/base/topk.h"
#include "kernels/decide/block_ascent.h"
#include "kernels/decide/bootstrap.h"
#include "kernels/decide/linear_decision.h"
#include "kernels/decide/match.h"
#include "kernels/fusion/boosted_trees.h"
#include "kernels/fusion/pairs.h"

namespace lt::driver {

namespace {

const Poll kGoOn = [](int64_t, int64_t) { return true; };

Case ascending() {
  auto eta = std::make_shared<Csr>(random_csr(400, 60, 8, 1));
  return {"block_ascent", [=](int n_threads, Digest& digest) {
            AscentSettings settings;
            settings.k = 3;
            settings.max_sweeps = 4;
            std::vector<AscentRun> runs(5);
            for (uint64_t r = 0; r < runs.size(); ++r) {
              runs[r].seed = r;
              runs[r].start = r % 2 ? AscentStart::kRandom : AscentStart::kEmpty;
            }
            for (const AscentResult& result : block_ascent(eta->view(), settings, runs, n_threads, kGoOn)) {
              digest.add(result.ids);
              digest.add(result.utilities);
            }
          }};
}

Case deciding_linearly() {
  auto eta = std::make_shared<Csr>(random_csr(5000, 60, 8, 2));
  return {"linear_decision, linear_counts", [=](int n_threads, Digest& digest) {
            std::vector<double> a(2 * 60, 1.0), b(2 * 60, 0.0);
            for (size_t j = 0; j < a.size(); ++j) a[j] += static_cast<double>(j % 7);
            std::vector<int32_t> rule_of(5000);
            for (size_t i = 0; i < rule_of.size(); ++i) rule_of[i] = static_cast<int32_t>(i % 2);
            LinearRules rules;
            rules.n_rules = 2;
            rules.a = a.data();
            rules.b = b.data();
            rules.rule_of = rule_of.data();
            rules.k = 3;
            const CsrView truth = eta->view();
            Answers out(5000, 3);
            std::vector<float> hits(5000 * 3);
            linear_decision(eta->view(), rules, &truth, n_threads, {out.ids.data(), out.scores.data(), hits.data()},
                            kGoOn);
            out.digest(digest);
            digest.add(hits);
            std::vector<double> true_sums(60), named(60);
            linear_counts(eta->view(), rules, truth, n_threads, true_sums.data(), named.data(), kGoOn);
            digest.add(true_sums);
            digest.add(named);
          }};
}

Case matching() {
  auto truth = std::make_shared<Csr>(random_csr(40000, 60, 4, 3));
  return {"match_gains, ideal_gains", [=](int n_threads, Digest& digest) {
            std::vector<int32_t> ids(40000 * 3);
            for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(hash64(4, i, 0) % 61) - 1;
            std::vector<float> gains(ids.size());
            match_gains(truth->view(), {40000, 3, ids.data()}, n_threads, gains.data(), kGoOn);
            digest.add(gains);
            std::vector<double> weights(60, 0.5), ideal(40000 * 3);
            ideal_gains(truth->view(), weights.data(), 3, n_threads, ideal.data(), kGoOn);
            digest.add(ideal);
          }};
}

Case resampling() {
  return {"resample_sums", [](int n_threads, Digest& digest) {
            std::vector<double> terms(500 * 4);
            for (size_t i = 0; i < terms.size(); ++i) terms[i] = static_cast<double>(hash64(5, i, 0) % 1000);
            std::vector<double> sums(64 * 4);
            resample_sums({500, 4, terms.data()}, 64, 6, n_threads, sums.data(), kGoOn);
            digest.add(sums);
          }};
}

Case ranking() {
  auto scores = std::make_shared<Csr>(random_csr(3000, 60, 20, 7));
  auto dense = std::make_shared<std::vector<float>>(random_floats(200 * 60, 8));
  return {"topk_csr, topk_dense", [=](int n_threads, Digest& digest) {
            Answers sparse_out(3000, 5), dense_out(200, 5);
            topk_csr(scores->view(), 5, n_threads, sparse_out.ids.data(), sparse_out.scores.data());
            topk_dense({200, 60, dense->data()}, 5, n_threads, dense_out.ids.data(), dense_out.scores.data());
            sparse_out.digest(digest);
            dense_out.digest(digest);
          }};
}

Case synthesizing() {
  return {"synthetic rows", [](int n_threads, Digest& digest) {
            constexpr int64_t kRows = 5000, kLabels = 40;
            std::vector<int64_t> sizes(kRows), label_ptr(kRows + 1, 0), word_ptr(kRows + 1, 0);
            synthetic_sizes({1, RowPurpose::kLabelCount, 0, 1, 5, 2.0, 0.5}, kRows, n_threads, sizes.data());
            std::partial_sum(sizes.begin(), sizes.end(), label_ptr.begin() + 1);
            synthetic_sizes({1, RowPurpose::kFeatureCount, 0, 3, 12, 8.0, 0.5}, kRows, n_threads, sizes.data());
            std::partial_sum(sizes.begin(), sizes.end(), word_ptr.begin() + 1);
            std::vector<int32_t> order(kLabels), row_topic(kRows), label_topic(kLabels),
                topic_rows{kRows / 2, kRows / 2};
            std::iota(order.begin(), order.end(), 0);
            std::vector<double> cumulative(kLabels + 1);
            std::iota(cumulative.begin(), cumulative.end(), 0.0);
            for (int64_t i = 0; i < kRows; ++i) row_topic[i] = static_cast<int32_t>(i % 2);
            for (int64_t l = 0; l < kLabels; ++l) label_topic[l] = l < 20 ? 0 : 1;
            const std::vector<int64_t> topic_begin{0, 20, 40};
            const LabelPlan plan{1,
                                 0,
                                 kLabels,
                                 2,
                                 order.data(),
                                 topic_begin.data(),
                                 cumulative.data(),
                                 row_topic.data(),
                                 nullptr,
                                 topic_rows.data(),
                                 0.0,
                                 0.8};
            std::vector<int32_t> labels(label_ptr.back()), words(word_ptr.back());
            synthetic_labels(plan, kRows, label_ptr.data(), n_threads, labels.data(), kGoOn);
            std::vector<float> values(words.size());
            const FeaturePlan features{1, 0, 500, 50, 8, 0.2, 0.3, row_topic.data(), label_topic.data()};
            synthetic_features(features, {kRows, kLabels, label_ptr.data(), labels.data(), nullptr}, word_ptr.data(),
                               n_threads, words.data(), values.data(), kGoOn);
            const std::vector<float> idf = random_floats(500, 9, 0.5f, 2.0f);
            synthetic_weigh(kRows, word_ptr.data(), words.data(), idf.data(), n_threads, values.data());
            digest.add(labels);
            digest.add(words);
            digest.add(values);
          }};
}

Case fusing() {
  constexpr int64_t kRows = 3000, kLabels = 50, kEach = 6;
  // Two sources that answer a run of labels each, from a random one on; the second leaves its last place empty.
  auto ids = std::make_shared<std::vector<int32_t>>(2 * kRows * kEach);
  for (int64_t i = 0; i < 2 * kRows; ++i)
    for (int64_t j = 0; j < kEach; ++j)
      (*ids)[i * kEach + j] = i >= kRows && j + 1 == kEach
                                  ? -1
                                  : static_cast<int32_t>((hash64(31, i, 1) + static_cast<uint64_t>(j)) % kLabels);
  return {"fused answers", [=](int n_threads, Digest& digest) {
            std::vector<float> values = random_floats(2 * kRows * kEach, 32);
            const std::vector<float> log_counts = random_floats(kLabels, 33, 0.0f, 5.0f);
            const std::vector<lt::Answers> sources{{kEach, ids->data(), values.data()},
                                                   {kEach, ids->data() + kRows * kEach, values.data() + kRows * kEach}};
            const Pairs pairs = collect_pairs(sources, kRows, log_counts.data(), n_threads);
            digest.add(pairs.ids);
            digest.add(pairs.features);
            const int64_t n = static_cast<int64_t>(pairs.ids.size()), d = n_pair_features(2);
            std::vector<float> targets(n), weights(n, 1.0f);
            for (int64_t i = 0; i < n; ++i) targets[i] = pairs.features[i * d] > 0.6f ? 1.0f : 0.0f;
            std::vector<int64_t> offsets(d + 1);
            std::vector<float> edges;
            for (int64_t f = 0; f < d; ++f) {
              for (int e = 1; e < 8; ++e) edges.push_back(static_cast<float>(e) / 8);
              offsets[f + 1] = static_cast<int64_t>(edges.size());
            }
            BoostedTrees trees;
            fit_boosted_trees({n, d, pairs.features.data()}, targets.data(), weights.data(),
                              {offsets.data(), edges.data()}, {5, 8, 20, 0.1, 1.0}, n_threads, kGoOn, &trees);
            digest.add(trees.value);
            const TreeArrays arrays{static_cast<int64_t>(trees.roots.size()),
                                    trees.roots.data(),
                                    trees.feature.data(),
                                    trees.threshold.data(),
                                    trees.child.data(),
                                    trees.value.data(),
                                    trees.base};
            std::vector<double> scores(n);
            boosted_scores({n, d, pairs.features.data()}, arrays, n_threads, scores.data());
            digest.add(scores);
            Answers out(kRows, 3);
            fuse_answers(sources, kRows, log_counts.data(), arrays, 3, n_threads, out.ids.data(), out.scores.data());
            out.digest(digest);
          }};
}

}  // namespace

std::vector<Case> decision_cases() {
  return {ascending(), deciding_linearly(), matching(), resampling(), ranking(), synthesizing(), fusing()};
}

}  // namespace lt::driver
