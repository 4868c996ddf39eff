#include "kernels/tfidf.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <stdexcept>

namespace lt {

namespace {

constexpr uint32_t kNone = UINT32_MAX;

constexpr int64_t kCharacters = 1 << 17;  // of a block

// Cuts the texts into blocks of about as many characters; the cut depends on the texts alone.
std::vector<int64_t> cut_blocks(const std::vector<TextView>& texts) {
  std::vector<int64_t> ends{0};
  int64_t size = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    size += texts[i].length + 64;  // an empty text is some work, too
    if (size >= kCharacters || i + 1 == texts.size()) {
      ends.push_back(static_cast<int64_t>(i) + 1);
      size = 0;
    }
  }
  return ends;
}

// Runs body(text, block, worker) for every text and notes where each row ends.
template <class Body>
std::vector<RowBlock> each_text(const std::vector<TextView>& texts, int n_threads, const Poll& poll, Body&& body) {
  const std::vector<int64_t> cut = cut_blocks(texts);
  std::vector<RowBlock> blocks(cut.size() - 1);
  const bool done = parallel_for(
      static_cast<int64_t>(blocks.size()), n_threads,
      [&](int64_t b, int worker) {
        blocks[b].worker = worker;
        blocks[b].ends.reserve(cut[b + 1] - cut[b]);
        for (int64_t i = cut[b]; i < cut[b + 1]; ++i) {
          body(texts[i], blocks[b], worker);
          blocks[b].ends.push_back(blocks[b].size);
        }
      },
      poll);
  if (!done) throw std::runtime_error("stopped");
  return blocks;
}

template <class Body>
void each_block(std::vector<RowBlock>& blocks, int n_threads, const Poll& poll, Body&& body) {
  const bool done = parallel_for(
      static_cast<int64_t>(blocks.size()), n_threads, [&](int64_t b, int worker) { body(blocks[b], worker); }, poll);
  if (!done) throw std::runtime_error("stopped");
}

float weight(double n_texts_with_term, double n_texts, const TfidfFitOptions& fit) {
  if (!fit.idf) return 1;
  const double smooth = fit.smooth ? 1 : 0, with = n_texts_with_term + smooth;
  return with > 0 ? static_cast<float>(1 + std::log((n_texts + smooth) / with)) : 0;
}

void fit_vocabulary(const std::vector<TextView>& texts, const TextOptions& options, const TfidfFitOptions& fit,
                    int n_threads, const Poll& poll, TfidfFit& out) {
  const bool count_times = fit.pruning.max_terms >= 0 && !fit.weighting.binary;  // else texts are what is ranked by
  std::vector<std::unique_ptr<NgramCounter>> counters(n_threads);
  std::vector<TextScratch> scratch(n_threads);
  std::vector<RowBlock> blocks = each_text(texts, n_threads, poll, [&](const TextView& text, RowBlock& block, int w) {
    if (!counters[w]) counters[w] = std::make_unique<NgramCounter>(options, count_times);
    tokenize(text, options, scratch[w].tokens);
    counters[w]->add(scratch[w].tokens, block.entries, block.size);
    if (!fit.rows) block.size = 0;
  });

  std::vector<NgramCounter*> counted;
  std::vector<size_t> place(n_threads);  // of a worker's counter among those in use
  for (int w = 0; w < n_threads; ++w) {
    place[w] = counted.size();
    if (!counters[w]) continue;
    counters[w]->finish();
    counted.push_back(counters[w].get());
  }
  std::vector<Renumbering> columns;  // at first nodes
  Vocabulary vocabulary;
  {
    const NgramTree tree = merge(counted, columns, n_threads, poll);
    for (const uint32_t n : tree.n_texts) out.n_seen += n > 0;
    vocabulary = order_terms(tree, options.gap(), fit.pruning, n_threads);
  }
  counters.clear();
  const size_t n_terms = vocabulary.n_texts.size();
  if (n_terms > INT32_MAX) throw std::length_error("more than 2^31 - 1 terms: raise min_df or set max_features");
  out.weights.resize(n_terms);
  for (size_t i = 0; i < n_terms; ++i)
    out.weights[i] = weight(vocabulary.n_texts[i], static_cast<double>(texts.size()), fit);
  out.term_bytes = std::move(vocabulary.bytes);
  out.term_offsets = std::move(vocabulary.offsets);
  if (!fit.rows) return;

  for (Renumbering& renumbering : columns)
    for (std::vector<uint32_t>* numbers : {&renumbering.words, &renumbering.pairs})
      parallel_blocks(static_cast<int64_t>(numbers->size()), 1 << 16, n_threads, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) (*numbers)[i] = vocabulary.column[(*numbers)[i]];
      });
  const int bits = std::bit_width(n_terms);
  each_block(blocks, n_threads, poll, [&](RowBlock& block, int w) {
    const Renumbering& column = columns[place[block.worker]];
    map_rows(block, bits, scratch[w].spare, [&](uint32_t id) { return column[id]; });
  });
  Weighting weighting = fit.weighting;
  weighting.weights = fit.idf ? out.weights.data() : nullptr;
  out.rows = write_csr(blocks, weighting, n_threads, poll);
}

void fit_hashed(const std::vector<TextView>& texts, const TextOptions& options, const TfidfFitOptions& fit,
                int n_threads, const Poll& poll, TfidfFit& out) {
  const uint32_t n = fit.n_features;
  const TfidfModel model{&options, nullptr, n, {}};
  std::vector<TextScratch> scratch(n_threads);
  std::vector<std::atomic<uint32_t>> n_texts(n);
  std::vector<RowBlock> blocks = each_text(texts, n_threads, poll, [&](const TextView& text, RowBlock& block, int w) {
    const int64_t begin = block.size;
    text_row(text, model, scratch[w], block.entries, block.size);
    for (int64_t i = begin; i < block.size; ++i)
      n_texts[entry_id(block.entries[i])].fetch_add(1, std::memory_order_relaxed);
    if (!fit.rows) block.size = 0;
  });
  out.weights.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    const double with = n_texts[i].load(std::memory_order_relaxed);
    out.n_seen += with > 0;
    const bool stays = with >= fit.pruning.min_texts && with <= fit.pruning.max_texts;
    out.weights[i] = stays ? weight(with, static_cast<double>(texts.size()), fit) : 0;
  }
  if (!fit.rows) return;
  each_block(blocks, n_threads, poll, [&](RowBlock& block, int w) {
    map_rows(block, std::bit_width(n), scratch[w].spare,
             [&](uint32_t id) { return out.weights[id] == 0 ? kNone : id; });
  });
  Weighting weighting = fit.weighting;
  weighting.weights = out.weights.data();
  out.rows = write_csr(blocks, weighting, n_threads, poll);
}

}  // namespace

TfidfFit fit_tfidf(const std::vector<TextView>& texts, const TextOptions& options, const TfidfFitOptions& fit,
                   int n_threads, const Poll& poll) {
  if (texts.size() >= UINT32_MAX) throw std::length_error("more than 2^32 - 2 texts");
  int64_t size = 0;
  for (const TextView& text : texts) size += text.length;
  if (size < kCharacters) n_threads = 1;  // done before the threads would have started
  TfidfFit out;
  (fit.n_features ? fit_hashed : fit_vocabulary)(texts, options, fit, n_threads, size < kCharacters ? Poll() : poll,
                                                 out);
  return out;
}

void text_row(const TextView& text, const TfidfModel& model, TextScratch& scratch, Buffer<Entry>& rows, int64_t& size) {
  tokenize(text, *model.options, scratch.tokens);
  const int64_t begin = size;
  const auto push = [&](uint32_t column) {
    rows.reserve(size + 1);
    rows[size++] = make_entry(column, 1);
  };
  if (model.terms) {
    model.terms->find_all(scratch.tokens, *model.options, scratch.walk, push);
  } else {
    const uint8_t* bytes = scratch.tokens.text.data();
    for_each_ngram(scratch.tokens, *model.options, [&](int64_t first, int64_t last) {
      const uint32_t column = hashed_column(bytes + first, last - first, model.n_columns);
      if (!model.weighting.weights || model.weighting.weights[column] != 0) push(column);
    });
  }
  size = begin + sort_row(rows.data() + begin, size - begin, std::bit_width(model.n_columns), scratch.spare);
}

CsrArrays transform_tfidf(const std::vector<TextView>& texts, const TfidfModel& model, int n_threads,
                          const Poll& poll) {
  std::vector<TextScratch> scratch(n_threads);
  std::vector<RowBlock> blocks = each_text(texts, n_threads, poll, [&](const TextView& text, RowBlock& block, int w) {
    text_row(text, model, scratch[w], block.entries, block.size);
  });
  return write_csr(blocks, model.weighting, n_threads, poll);
}

}  // namespace lt
