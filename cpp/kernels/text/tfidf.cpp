#include "kernels/text/tfidf.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <stdexcept>

namespace lt {

namespace {

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

// Runs body(text, entries, size, worker) for every text, which appends the text's row to entries[0 .. size). The rows
// are returned if they are to be kept.
template <class Body>
std::vector<RowBlock> each_text(const std::vector<TextView>& texts, bool keep, std::vector<TextScratch>& scratch,
                                const Poll& poll, Body&& body) {
  const std::vector<int64_t> cut = cut_blocks(texts);
  std::vector<RowBlock> blocks(keep ? cut.size() - 1 : 0);
  const auto read = [&](int64_t b, int worker) {
    if (!keep) {
      for (int64_t i = cut[b]; i < cut[b + 1]; ++i) {
        int64_t size = 0;
        body(texts[i], scratch[worker].row, size, worker);
      }
      return;
    }
    RowBlock& block = blocks[b];
    block.worker = worker;
    block.ends.reserve(cut[b + 1] - cut[b]);
    int64_t characters = 0;
    for (int64_t i = cut[b]; i < cut[b + 1]; ++i) characters += texts[i].length;
    block.entries.reserve(std::min(characters, kCharacters) / 4);  // enough for most texts of words
    for (int64_t i = cut[b]; i < cut[b + 1]; ++i) {
      body(texts[i], block.entries, block.size, worker);
      block.ends.push_back(block.size);
    }
  };
  if (!parallel_for(static_cast<int64_t>(cut.size()) - 1, static_cast<int>(scratch.size()), read, poll))
    throw std::runtime_error("stopped");
  return blocks;
}

template <class Body>
void each_block(std::vector<RowBlock>& blocks, int n_threads, const Poll& poll, Body&& body) {
  const bool done = parallel_for(
      static_cast<int64_t>(blocks.size()), n_threads, [&](int64_t b, int worker) { body(blocks[b], worker); }, poll);
  if (!done) throw std::runtime_error("stopped");
}

// Whether an array over all columns is small, or not much larger than what it holds.
bool is_dense(int64_t n_columns, int64_t n_used) { return n_columns <= std::max<int64_t>(1 << 16, 8 * n_used); }

void fit_vocabulary(const std::vector<TextView>& texts, const TextOptions& options, const TfidfFitOptions& fit,
                    int n_threads, const Poll& poll, TfidfFit& out) {
  const bool ranked = fit.pruning.max_terms >= 0 && !fit.weighting.binary;  // else texts are what is ranked by
  std::vector<std::unique_ptr<NgramCounter>> counters(n_threads);
  std::vector<TextScratch> scratch(n_threads);
  const auto count = [&](const TextView& text, Buffer<Entry>& entries, int64_t& size, int w) {
    if (!counters[w]) counters[w] = std::make_unique<NgramCounter>(options, ranked || fit.times);
    tokenize(text, options, scratch[w].tokens);
    counters[w]->add(scratch[w].tokens, entries, size);
  };
  std::vector<RowBlock> blocks = each_text(texts, fit.rows, scratch, poll, count);

  std::vector<NgramCounter*> counted;
  std::vector<size_t> place(n_threads);  // of a worker's counter among those in use
  for (int w = 0; w < n_threads; ++w) {
    place[w] = counted.size();
    if (counters[w]) counted.push_back(counters[w].get());
  }
  parallel_for(static_cast<int64_t>(counted.size()), n_threads, [&](int64_t c, int) { counted[c]->finish(); });
  std::vector<Renumbering> columns;  // at first nodes
  Vocabulary vocabulary;
  {
    const NgramTree tree = merge(counted, fit.pruning, columns, n_threads, poll);
    out.n_seen = tree.n_seen;
    vocabulary = order_terms(tree, options.gap(), fit.pruning, n_threads);
  }
  counters.clear();
  const size_t n_terms = vocabulary.n_texts.size();
  if (n_terms > INT32_MAX) throw std::length_error("more than 2^31 - 1 terms: raise min_df or set max_features");
  out.weights.resize(n_terms);
  for (size_t i = 0; i < n_terms; ++i)
    out.weights[i] = fit.weight(vocabulary.n_texts[i], static_cast<double>(texts.size()));
  out.term_bytes = std::move(vocabulary.bytes);
  out.term_offsets = std::move(vocabulary.offsets);
  out.n_texts = std::move(vocabulary.n_texts);
  out.n_times = std::move(vocabulary.n_times);
  if (!fit.rows) return;

  const auto to_columns = [&](std::vector<uint32_t>& nodes) {
    for (uint32_t& node : nodes) node = node == kNone ? kNone : vocabulary.column[node];
  };
  for (Renumbering& own : columns) {
    to_columns(own.words);
    parallel_for(kParts, n_threads, [&](int64_t p, int) { to_columns(own.pairs[p]); });
  }
  const int bits = std::bit_width(n_terms);
  each_block(blocks, n_threads, poll, [&](RowBlock& block, int w) {
    const Renumbering& column = columns[place[block.worker]];
    map_rows(block, bits, scratch[w].spare, [&](uint32_t id) { return column[id]; });
  });
  Weighting weighting = fit.weighting;
  if (fit.idf) weighting.weights = ColumnWeights(out.weights.data());
  out.rows = write_csr(blocks, weighting, n_threads, poll);
}

void fit_hashed(const std::vector<TextView>& texts, const TextOptions& options, const TfidfFitOptions& fit,
                int n_threads, const Poll& poll, TfidfFit& out) {
  const uint32_t n = fit.n_features;
  const TfidfModel model{&options, nullptr, n, {}};
  std::vector<TextScratch> scratch(n_threads);
  int64_t n_characters = 0;
  for (const TextView& text : texts) n_characters += text.length;
  // A counter per column, or a list of those that occur: memory follows the texts, whatever n_features is.
  const bool dense = is_dense(n, n_characters);
  std::vector<std::atomic<uint32_t>> n_texts(dense ? n : 0);
  std::vector<std::vector<uint32_t>> listed(dense ? 0 : n_threads);
  const auto count = [&](const TextView& text, Buffer<Entry>& entries, int64_t& size, int w) {
    const int64_t begin = size;
    text_row(text, model, scratch[w], entries, size);
    for (int64_t i = begin; i < size; ++i) {
      if (dense) {
        n_texts[entry_id(entries[i])].fetch_add(1, std::memory_order_relaxed);
      } else {
        listed[w].push_back(entry_id(entries[i]));
      }
    }
  };
  std::vector<RowBlock> blocks = each_text(texts, fit.rows, scratch, poll, count);
  const auto weigh = [&](double with) {
    const bool stays = with >= fit.pruning.min_texts && with <= fit.pruning.max_texts;
    return stays ? fit.weight(with, static_cast<double>(texts.size())) : 0;
  };
  out.others = weigh(0);
  const auto add = [&](uint32_t column, int64_t with) {
    ++out.n_seen;
    const float own = weigh(static_cast<double>(with));
    if (own == out.others) return;
    out.columns.push_back(static_cast<int32_t>(column));
    out.weights.push_back(own);
    out.n_texts.push_back(static_cast<uint32_t>(with));
  };
  if (dense) {
    for (uint32_t i = 0; i < n; ++i) {
      if (const uint32_t with = n_texts[i].load(std::memory_order_relaxed)) add(i, with);
    }
  } else {
    std::vector<uint32_t> all;
    for (std::vector<uint32_t>& own : listed) {
      all.insert(all.end(), own.begin(), own.end());
      own = {};
    }
    std::sort(all.begin(), all.end());
    for (auto first = all.begin(); first != all.end();) {
      const auto last = std::upper_bound(first, all.end(), *first);
      add(*first, last - first);
      first = last;
    }
  }
  if (!fit.rows) return;
  std::vector<float> table;
  Weighting weighting = fit.weighting;
  weighting.weights = hashed_weights(out.columns.data(), out.weights.data(), static_cast<int64_t>(out.columns.size()),
                                     out.others, n, table);
  each_block(blocks, n_threads, poll, [&](RowBlock& block, int w) {
    map_rows(block, std::bit_width(n), scratch[w].spare,
             [&](uint32_t id) { return weighting.weights[id] == 0 ? kNone : id; });
  });
  out.rows = write_csr(blocks, weighting, n_threads, poll);
}

}  // namespace

float TfidfFitOptions::weight(double with, double n_texts) const {
  if (!idf) return 1;
  const double s = smooth ? 1 : 0;
  return with + s > 0 ? static_cast<float>(1 + std::log((n_texts + s) / (with + s))) : 0;
}

ColumnWeights hashed_weights(const int32_t* columns, const float* weights, int64_t n, float others, uint32_t n_columns,
                             std::vector<float>& dense) {
  if (!is_dense(n_columns, n)) return {columns, weights, n, others};
  dense.assign(n_columns, others);
  for (int64_t i = 0; i < n; ++i) dense[columns[i]] = weights[i];
  return ColumnWeights(dense.data());
}

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
  const auto look_up = [&](const TextView& text, Buffer<Entry>& entries, int64_t& size, int w) {
    text_row(text, model, scratch[w], entries, size);
  };
  std::vector<RowBlock> blocks = each_text(texts, true, scratch, poll, look_up);
  return write_csr(blocks, model.weighting, n_threads, poll);
}

}  // namespace lt
