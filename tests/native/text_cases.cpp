// Tf-idf, and the text format of sparse rows.
#include <memory>

#include "driver.h"
#include "kernels/text/tfidf.h"
#include "kernels/text/xc_parse.h"
#include "kernels/text/xc_write.h"

namespace lt::driver {

namespace {

const Poll kGoOn = [](int64_t, int64_t) { return true; };

// What ASCII needs of the character table: letters and digits make words, blanks are spaces.
CharTable ascii_table() {
  CharTable out;
  out.pages.assign(4352, 1);
  out.pages[0] = 0;
  out.entries.assign(512, 0);
  out.pool = {0};
  for (uint32_t c = 0; c < 128; ++c) {
    const bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z', digit = c >= '0' && c <= '9';
    if (upper) out.entries[c] = 32;  // the distance to the lower case
    if (upper || lower || digit || c == '_') out.entries[c] |= CharTable::kWord;
    if (c == ' ' || (c >= 9 && c <= 13)) out.entries[c] |= CharTable::kSpace;
  }
  return out;
}

struct Corpus {
  std::vector<std::string> texts;
  std::vector<TextView> views;
  TextOptions options;

  // Enough characters for several blocks of the kernel.
  Corpus() {
    for (uint64_t i = 0; i < 3000; ++i) {
      std::string text;
      for (uint64_t j = 0; j < 20; ++j) text += "Word" + std::to_string(hash64(3, i, j) % (20 + 97 * j)) + " ";
      texts.push_back(text);
    }
    for (const std::string& text : texts) views.push_back({text.data(), static_cast<int64_t>(text.size()), 1, true});
    options.max_n = 2;
    options.chars = ascii_table();
    options.chars.check();
  }
};

void add_rows(const CsrArrays& rows, Digest& digest) {
  const auto nnz = static_cast<size_t>(rows.indptr[rows.n_rows]);
  digest.add(rows.indptr.get(), static_cast<size_t>(rows.n_rows) + 1);
  digest.add(rows.indices.get(), nnz);
  digest.add(rows.values.get(), nnz);
}

Case fitting(const std::string& name, uint32_t hashed, int64_t min_texts = 2) {
  auto corpus = std::make_shared<Corpus>();
  return {name, [=](int n_threads, Digest& digest) {
            TfidfFitOptions options;
            options.n_features = hashed;
            options.pruning.min_texts = min_texts;
            const TfidfFit fit = fit_tfidf(corpus->views, corpus->options, options, n_threads, kGoOn);
            digest.add(fit.term_bytes);
            digest.add(fit.term_offsets);
            digest.add(fit.weights);
            add_rows(fit.rows, digest);
          }};
}

Case transforming() {
  struct Fitted {
    Corpus corpus;
    TfidfFit fit;
    TermTree terms;
  };
  auto fitted = std::make_shared<Fitted>();
  fitted->fit = fit_tfidf(fitted->corpus.views, fitted->corpus.options, {}, 1, kGoOn);
  const auto n_terms = static_cast<int64_t>(fitted->fit.term_offsets.size()) - 1;
  fitted->terms = TermTree({fitted->fit.term_bytes.data(), fitted->fit.term_offsets.data(), n_terms}, 1);
  return {"transform_tfidf", [=](int n_threads, Digest& digest) {
            TfidfModel model;
            model.options = &fitted->corpus.options;
            model.terms = &fitted->terms;
            model.n_columns = static_cast<uint32_t>(n_terms);
            model.weighting.weights = ColumnWeights(fitted->fit.weights.data());
            add_rows(transform_tfidf(fitted->corpus.views, model, n_threads, kGoOn), digest);
          }};
}

Case reading_and_writing() {
  auto labels = std::make_shared<Csr>(random_csr(400, 50, 3, 11));
  auto entries = std::make_shared<Csr>(random_csr(400, 200, 9, 12));
  return {"xc_write, xc_parse", [=](int n_threads, Digest& digest) {
            const CsrView label_view = labels->view();
            std::string padded;
            for (const GrowingArray<char>& part : xc_write_parts(&label_view, entries->view(), 0, 400, n_threads))
              padded.append(part.data(), static_cast<size_t>(part.size));
            const size_t size = padded.size();
            padded.append(kTextPadding, '\0');
            XcParser parser;
            parser.spec.n_columns = 200;
            parser.spec.n_labels = 50;
            const auto error = xc_parse(parser, padded.data(), padded.data() + size, n_threads, 512);
            const bool failed = error.has_value();
            digest.add(&failed, 1);
            digest.add(parser.rows.columns.data(), static_cast<size_t>(parser.rows.columns.size));
            digest.add(parser.rows.values.data(), static_cast<size_t>(parser.rows.values.size));
            digest.add(parser.rows.labels.data(), static_cast<size_t>(parser.rows.labels.size));
            digest.add(parser.rows.column_end.data(), static_cast<size_t>(parser.rows.column_end.size));
          }};
}

}  // namespace

std::vector<Case> text_cases() {
  return {fitting("fit_tfidf", 0), fitting("fit_tfidf, every term", 0, 1), fitting("fit_tfidf, hashed", 1 << 12),
          transforming(), reading_and_writing()};
}

}  // namespace lt::driver
