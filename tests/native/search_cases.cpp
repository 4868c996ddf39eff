// Products, nearest rows and their votes, and the decoder of hashed label codes.
#include <memory>

#include "driver.h"
#include "kernels/base/combine.h"
#include "kernels/codes/bucket_decode.h"
#include "kernels/codes/neighbors.h"
#include "kernels/codes/pattern_product.h"
#include "kernels/codes/recovery.h"
#include "kernels/codes/sparse_product.h"

namespace lt::driver {

namespace {

const Poll kGoOn = [](int64_t, int64_t) { return true; };
constexpr int64_t kWidth = 24;

Case multiplying() {
  auto rows = std::make_shared<Csr>(random_csr(500, kWidth, 6, 1));
  auto dense = std::make_shared<std::vector<float>>(random_floats(kWidth * 20, 2, -1.0f, 1.0f));
  auto full = std::make_shared<std::vector<float>>(random_floats(500 * kWidth, 3, -1.0f, 1.0f));
  auto pattern = std::make_shared<Csr>(random_csr(500, 400, 9, 4));
  return {"sparse_product, dense_product, pattern_product", [=](int n_threads, Digest& digest) {
            std::vector<float> out(500 * 20);
            const MatrixView<const float> table{kWidth, 20, dense->data()};
            sparse_product(rows->view(), table, dense->data(), true, n_threads, out.data(), kGoOn);
            digest.add(out);
            dense_product({500, kWidth, full->data()}, table, nullptr, false, n_threads, out.data(), kGoOn);
            digest.add(out);
            std::vector<float> products(pattern->view().nnz());
            pattern_product(pattern->view(), {500, kWidth, full->data()}, {400, kWidth, full->data()}, n_threads,
                            products.data(), kGoOn);
            digest.add(products);
          }};
}

// 160 dense rows in blocks of 16, queries, labels of the rows.
struct Rows {
  static constexpr int64_t kRows = 160, kQueries = 300;
  std::vector<float> blocks = random_floats(kRows * kWidth, 11, -1.0f, 1.0f);
  std::vector<float> queries = random_floats(kQueries * kWidth, 12, -1.0f, 1.0f);
  std::vector<double> weights = std::vector<double>(kRows, 1.0);
  Csr sparse = random_csr(kRows, kWidth, 6, 13), asked = random_csr(kQueries, kWidth, 6, 14);
  Csr labels = random_csr(kRows, 50, 4, 15);

  MatrixView<const float> query_view() const { return {kQueries, kWidth, queries.data()}; }
};

Case nearest_rows() {
  auto rows = std::make_shared<Rows>();
  auto postings = std::make_shared<Csr>(transposed(rows->sparse));
  return {"neighbors, vote", [=](int n_threads, Digest& digest) {
            Answers near(Rows::kQueries, 8), votes(Rows::kQueries, 5);
            sparse_neighbors(postings->view(), rows->weights.data(), Rows::kRows, rows->asked.view(), 8, n_threads,
                             near.ids.data(), near.scores.data(), kGoOn);
            near.digest(digest);
            dense_neighbors(rows->blocks.data(), rows->weights.data(), Rows::kRows, rows->query_view(), 8, n_threads,
                            near.ids.data(), near.scores.data(), kGoOn);
            near.digest(digest);
            vote({Rows::kQueries, 8, near.ids.data()}, {Rows::kQueries, 8, near.scores.data()}, rows->labels.view(), 5,
                 n_threads, votes.ids.data(), votes.scores.data(), kGoOn);
            votes.digest(digest);
          }};
}

Case recovering() {
  auto rows = std::make_shared<Rows>();
  return {"inner products, probes, sum_votes", [=](int n_threads, Digest& digest) {
            Answers near(Rows::kQueries, 8), votes(Rows::kQueries, 5);
            top_inner_products(rows->blocks.data(), Rows::kRows, nullptr, rows->query_view(), 8, n_threads,
                               near.ids.data(), near.scores.data(), kGoOn);
            near.digest(digest);
            std::vector<float> all(Rows::kQueries * Rows::kRows);
            inner_products(rows->blocks.data(), Rows::kRows, nullptr, rows->query_view(), n_threads, all.data(), kGoOn);
            digest.add(all);
            std::vector<int64_t> list_ptr;
            for (int64_t list = 0; list <= 10; ++list) list_ptr.push_back(16 * list);
            std::vector<int32_t> row_of(Rows::kRows), probes(Rows::kQueries * 3);
            std::iota(row_of.begin(), row_of.end(), 0);
            for (size_t i = 0; i < probes.size(); ++i) probes[i] = static_cast<int32_t>(i % 10);
            probe_lists({10, list_ptr.data(), row_of.data(), rows->blocks.data()}, {Rows::kQueries, 3, probes.data()},
                        rows->query_view(), 8, n_threads, near.ids.data(), near.scores.data(), kGoOn);
            near.digest(digest);
            sum_votes({Rows::kQueries, 8, near.ids.data()}, {Rows::kQueries, 8, near.scores.data()},
                      rows->labels.view(), 5, n_threads, votes.ids.data(), votes.scores.data(), kGoOn);
            votes.digest(digest);
          }};
}

Case combining() {
  auto rows = std::make_shared<Rows>();
  return {"combine_answers", [=](int n_threads, Digest& digest) {
            Answers near(Rows::kQueries, 8), votes(Rows::kQueries, 5), out(Rows::kQueries, 6);
            dense_neighbors(rows->blocks.data(), rows->weights.data(), Rows::kRows, rows->query_view(), 8, n_threads,
                            near.ids.data(), near.scores.data(), kGoOn);
            vote({Rows::kQueries, 8, near.ids.data()}, {Rows::kQueries, 8, near.scores.data()}, rows->labels.view(), 5,
                 n_threads, votes.ids.data(), votes.scores.data(), kGoOn);
            for (CombineRule rule : {CombineRule::kMean, CombineRule::kRank, CombineRule::kSoftmax}) {
              combine_answers({{8, near.ids.data(), near.scores.data()}, {5, votes.ids.data(), votes.scores.data()}},
                              Rows::kQueries, rule, 6, n_threads, out.ids.data(), out.scores.data());
              out.digest(digest);
            }
          }};
}

Case decoding(const std::string& name, bool exact, bool pruned) {
  auto scores = std::make_shared<std::vector<float>>(random_floats(260 * 4 * 32, 21, -2.0f, 2.0f));
  return {name, [=](int n_threads, Digest& digest) {
            const std::vector<uint32_t> seeds{1, 2, 3, 4};
            std::vector<int32_t> table(40000 * 4);
            hash_labels(0, 40000, seeds.data(), 4, 32, n_threads, table.data());
            const BucketCode code{2000, 4, 32, table.data()};
            const BucketMembers members = bucket_members(code, n_threads);
            DecodeParams params;
            params.link = Link::sigmoid;
            params.exact = exact;
            params.allow_pruning = pruned;
            params.top_buckets = 5;
            Answers out(260, 5);
            decode_buckets(code, members, {260, 4 * 32, scores->data()}, params, 5, n_threads, out.ids.data(),
                           out.scores.data(), kGoOn);
            digest.add(table);
            digest.add(members.labels);
            out.digest(digest);
          }};
}

}  // namespace

std::vector<Case> search_cases() {
  return {multiplying(),
          nearest_rows(),
          recovering(),
          combining(),
          decoding("decode_buckets, pruned", true, true),
          decoding("decode_buckets, scan", true, false),
          decoding("decode_buckets, candidates", false, false)};
}

}  // namespace lt::driver
