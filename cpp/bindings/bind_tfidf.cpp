#include <nanobind/stl/tuple.h>

#include <algorithm>

#include "bindings/arrays.h"
#include "kernels/text/tfidf.h"
#include "kernels/text/tfidf_shards.h"

namespace lt::bind {

namespace {

// Views of Python strings. `texts` must outlive them; strings that had to be made for it live here.
struct Texts {
  std::vector<TextView> views;
  std::vector<nb::object> made;
};

// Capital sigma is the one character whose lower case depends on its neighbours.
template <class Char>
bool has_sigma(const TextView& text) {
  const Char* data = static_cast<const Char*>(text.data);
  bool found = false;
  for (int64_t i = 0; i < text.length; ++i) found |= data[i] == 0x3A3;
  return found;
}

TextView view_text(PyObject* text, bool lowercase, std::vector<nb::object>& made) {
#if PY_VERSION_HEX < 0x030C0000
  if (PyUnicode_READY(text) != 0) throw nb::python_error();
#endif
  const TextView view{PyUnicode_DATA(text), static_cast<int64_t>(PyUnicode_GET_LENGTH(text)),
                      static_cast<uint8_t>(PyUnicode_KIND(text)), PyUnicode_IS_ASCII(text) != 0};
  if (!lowercase || view.width == 1) return view;
  if (!(view.width == 2 ? has_sigma<uint16_t>(view) : has_sigma<uint32_t>(view))) return view;
  made.push_back(nb::borrow(reinterpret_cast<PyObject*>(&PyUnicode_Type)).attr("lower")(nb::borrow(text)));
  return view_text(made.back().ptr(), false, made);
}

Texts view_texts(const nb::list& texts, bool lowercase) {
  Texts out;
  const int64_t n = static_cast<int64_t>(nb::len(texts));
  out.views.reserve(n);
  for (int64_t i = 0; i < n; ++i) {
    PyObject* text = PyList_GET_ITEM(texts.ptr(), i);
    if (!PyUnicode_Check(text)) {
      const std::string type = nb::cast<std::string>(nb::borrow(text).type().attr("__name__"));
      const char* advice = PyBytes_Check(text)   ? "decode it first, as in text.decode('utf-8')"
                           : text == Py_None     ? "replace missing texts by ''"
                           : PyFloat_Check(text) ? "replace missing texts (NaN) by ''"
                                                 : "texts must be str";
      throw nb::type_error(("text " + std::to_string(i) + " is of type " + type + ": " + advice).c_str());
    }
    out.views.push_back(view_text(text, lowercase, out.made));
  }
  return out;
}

// How texts become tokens, with the list of stop words it needs.
struct TextAnalyzer {
  TextOptions options;
  Array1<uint8_t> stop_bytes;
  Array1<int64_t> stop_offsets;
  TermTree stop_words;
};

TermsView terms_view(const Array1<uint8_t>& bytes, const Array1<int64_t>& offsets) {
  require(offsets.shape(0) >= 1, "offsets need at least one entry");
  const int64_t n = static_cast<int64_t>(offsets.shape(0)) - 1;
  const int64_t* at = offsets.data();
  require(at[0] == 0 && at[n] == static_cast<int64_t>(bytes.shape(0)) && std::is_sorted(at, at + n + 1),
          "offsets must ascend from 0 to the number of bytes");
  return {bytes.data(), at, n};
}

template <class T>
std::vector<T> to_vector(const Array1<T>& array) {
  return {array.data(), array.data() + array.shape(0)};
}

template <class T>
nb::ndarray<nb::numpy, T> owned(std::unique_ptr<T[]>&& values, size_t n) {
  T* data = values.release();
  nb::capsule capsule(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<nb::numpy, T>(data, 1, &n, capsule);
}

nb::object csr_tuple(CsrArrays&& rows) {
  if (!rows.indptr) return nb::none();
  const size_t nnz = static_cast<size_t>(rows.indptr[rows.n_rows]);
  return nb::make_tuple(owned(std::move(rows.indptr), static_cast<size_t>(rows.n_rows) + 1),
                        owned(std::move(rows.indices), nnz), owned(std::move(rows.values), nnz));
}

Norm norm_from(const std::string& name) {
  require(name == "l1" || name == "l2" || name.empty(), "norm must be 'l1', 'l2' or ''");
  return name == "l1" ? Norm::l1 : name == "l2" ? Norm::l2 : Norm::none;
}

// A fitted model over borrowed arrays, with the table that finds its terms.
struct TfidfTransformer {
  nb::object analyzer;
  Array1<uint8_t> term_bytes;
  Array1<int64_t> term_offsets;
  Array1<int32_t> columns;
  Array1<float> weights;
  std::vector<float> dense;  // weights of all hashed columns, where that is no large array
  TermTree terms;
  TfidfModel model;
};

void bind_analyzer(nb::module_& m) {
  nb::class_<TextAnalyzer>(m, "TextAnalyzer")
      .def(
          "__init__",
          [](TextAnalyzer* self, const std::string& analyzer, int64_t min_n, int64_t max_n, bool lowercase,
             int64_t min_word_length, Array1<uint16_t> pages, Array1<uint32_t> entries, Array1<uint32_t> pool,
             Array1<uint8_t> stop_bytes, Array1<int64_t> stop_offsets) {
            require(analyzer == "word" || analyzer == "char" || analyzer == "char_wb", "unknown analyzer");
            require(1 <= min_n && min_n <= max_n, "n-grams need 1 <= min_n <= max_n");
            require(1 <= min_word_length && min_word_length <= INT32_MAX, "words need a length of 1 to 2^31 - 1");
            TextOptions options;
            options.analyzer = analyzer == "word"   ? Analyzer::word
                               : analyzer == "char" ? Analyzer::character
                                                    : Analyzer::char_in_word;
            options.min_n = min_n;
            options.max_n = max_n;
            options.lowercase = lowercase;
            options.min_word_length = min_word_length;
            options.chars = {to_vector(pages), to_vector(entries), to_vector(pool)};
            options.chars.check();
            TermTree stop_words(terms_view(stop_bytes, stop_offsets), 1);
            new (self) TextAnalyzer{std::move(options), stop_bytes, stop_offsets, std::move(stop_words)};
            if (stop_offsets.shape(0) > 1) self->options.stop_words = &self->stop_words;
          },
          nb::arg("analyzer"), nb::arg("min_n"), nb::arg("max_n"), nb::arg("lowercase"), nb::arg("min_word_length"),
          nb::arg("pages"), nb::arg("entries"), nb::arg("pool"), nb::arg("stop_bytes"), nb::arg("stop_offsets"))
      .def("ngrams", [](const TextAnalyzer& self, nb::str text) {
        std::vector<nb::object> made;
        Tokens tokens;
        tokenize(view_text(text.ptr(), self.options.lowercase, made), self.options, tokens);
        nb::list out;
        for_each_ngram(tokens, self.options, [&](int64_t begin, int64_t end) {
          const char* bytes = reinterpret_cast<const char*>(tokens.text.data()) + begin;
          out.append(nb::steal(PyUnicode_DecodeUTF8(bytes, end - begin, "surrogatepass")));
        });
        return out;
      });
}

// Counts the terms of texts, and weighs them, while other Python threads run.
TfidfFit fit_released(const TextAnalyzer& analyzer, const nb::list& texts, const TfidfFitOptions& options,
                      int n_threads, const nb::object& progress) {
  const Texts input = view_texts(texts, analyzer.options.lowercase);
  const Poll poll = poll_python(progress);
  nb::gil_scoped_release nogil;
  return fit_tfidf(input.views, analyzer.options, options, n_threads, poll);
}

void bind_fit(nb::module_& m) {
  m.def(
      "tfidf_fit",
      [](const TextAnalyzer& analyzer, nb::list texts, double min_texts, double max_texts, int64_t max_terms,
         uint32_t n_features, bool binary, bool sublinear, const std::string& norm, bool idf, bool smooth, bool rows,
         int n_threads, nb::object progress) {
        TfidfFitOptions options;
        options.pruning = {min_texts, max_texts, max_terms};
        options.weighting = {binary, sublinear, norm_from(norm), {}};
        options.idf = idf;
        options.smooth = smooth;
        options.n_features = n_features;
        options.rows = rows;
        TfidfFit fit = fit_released(analyzer, texts, options, n_threads, progress);
        return nb::make_tuple(to_numpy(std::move(fit.term_bytes)), to_numpy(std::move(fit.term_offsets)),
                              to_numpy(std::move(fit.columns)), to_numpy(std::move(fit.weights)), fit.others,
                              fit.n_seen, csr_tuple(std::move(fit.rows)));
      },
      nb::arg("analyzer"), nb::arg("texts"), nb::kw_only(), nb::arg("min_texts"), nb::arg("max_texts"),
      nb::arg("max_terms"), nb::arg("n_features"), nb::arg("binary"), nb::arg("sublinear"), nb::arg("norm"),
      nb::arg("idf"), nb::arg("smooth"), nb::arg("rows"), nb::arg("n_threads"), nb::arg("progress") = nb::none());
}

// What a shard counted, as `tfidf_count` returns it.
using Counts = std::tuple<Array1<uint8_t>, Array1<int64_t>, Array1<int32_t>, Array1<uint32_t>, Array1<uint64_t>>;

TermCounts counts_view(const Counts& counts, bool hashing) {
  const auto& [bytes, offsets, columns, n_texts, n_times] = counts;
  TermCounts out;
  out.n = static_cast<int64_t>(n_texts.shape(0));
  out.n_texts = n_texts.data();
  require(n_times.shape(0) == 0 || n_times.shape(0) == n_texts.shape(0), "n_times must be as many as n_texts");
  if (n_times.shape(0)) out.n_times = n_times.data();
  if (hashing) {
    out.columns = columns.data();
    require(columns.shape(0) == n_texts.shape(0), "columns must be as many as n_texts");
  } else {
    out.terms = terms_view(bytes, offsets);
    require(out.terms.n == out.n, "terms must be as many as n_texts");
  }
  return out;
}

void bind_shards(nb::module_& m) {
  m.def(
      "tfidf_count",
      [](const TextAnalyzer& analyzer, nb::list texts, uint32_t n_features, bool times, int n_threads,
         nb::object progress) {
        TfidfFitOptions options;
        options.n_features = n_features;
        options.rows = false;
        options.times = times;
        TfidfFit fit = fit_released(analyzer, texts, options, n_threads, progress);
        return nb::make_tuple(to_numpy(std::move(fit.term_bytes)), to_numpy(std::move(fit.term_offsets)),
                              to_numpy(std::move(fit.columns)), to_numpy(std::move(fit.n_texts)),
                              to_numpy(std::move(fit.n_times)));
      },
      nb::arg("analyzer"), nb::arg("texts"), nb::kw_only(), nb::arg("n_features"), nb::arg("times"),
      nb::arg("n_threads"), nb::arg("progress") = nb::none());
  m.def(
      "tfidf_merge",
      [](const std::vector<Counts>& shards, int64_t n_texts, double min_texts, double max_texts, int64_t max_terms,
         uint32_t n_features, bool binary, bool idf, bool smooth) {
        TfidfFitOptions options;
        options.pruning = {min_texts, max_texts, max_terms};
        options.weighting.binary = binary;
        options.idf = idf;
        options.smooth = smooth;
        options.n_features = n_features;
        std::vector<TermCounts> views;
        for (const Counts& counts : shards) views.push_back(counts_view(counts, n_features > 0));
        const Poll poll = poll_python(nb::none());
        TfidfFit fit;
        {
          nb::gil_scoped_release nogil;
          fit = merge_counts(views, n_texts, options, poll);
        }
        return nb::make_tuple(to_numpy(std::move(fit.term_bytes)), to_numpy(std::move(fit.term_offsets)),
                              to_numpy(std::move(fit.columns)), to_numpy(std::move(fit.weights)), fit.others,
                              fit.n_seen);
      },
      nb::arg("shards"), nb::arg("n_texts"), nb::kw_only(), nb::arg("min_texts"), nb::arg("max_texts"),
      nb::arg("max_terms"), nb::arg("n_features"), nb::arg("binary"), nb::arg("idf"), nb::arg("smooth"));
}

void bind_transformer(nb::module_& m) {
  nb::class_<TfidfTransformer>(m, "TfidfTransformer")
      .def(
          "__init__",
          [](TfidfTransformer* self, nb::object analyzer, Array1<uint8_t> term_bytes, Array1<int64_t> term_offsets,
             Array1<int32_t> columns, Array1<float> weights, float others, int64_t n_features, bool binary,
             bool sublinear, const std::string& norm) {
            const bool hashing = n_features > 0;
            const int64_t n = hashing ? n_features : static_cast<int64_t>(weights.shape(0));
            require(1 <= n && n <= INT32_MAX, "between 1 and 2^31 - 1 columns are needed");
            TfidfModel model;
            model.options = &nb::cast<TextAnalyzer&>(analyzer).options;
            model.n_columns = static_cast<uint32_t>(n);
            model.weighting = {binary, sublinear, norm_from(norm), ColumnWeights(weights.data())};
            TermTree terms;
            std::vector<float> dense;
            if (hashing) {
              const int32_t* first = columns.data();
              const int32_t* last = first + columns.shape(0);
              require(columns.shape(0) == weights.shape(0), "columns and weights differ in number");
              require(std::is_sorted(first, last) && (first == last || (*first >= 0 && last[-1] < n)),
                      "columns must ascend within the hashed ones");
              model.weighting.weights =
                  hashed_weights(first, weights.data(), last - first, others, model.n_columns, dense);
            } else {
              const TermsView view = terms_view(term_bytes, term_offsets);
              require(view.n == int64_t{model.n_columns}, "terms and weights differ in number");
              nb::gil_scoped_release nogil;
              terms = TermTree(view, model.options->gap());
            }
            new (self) TfidfTransformer{analyzer, term_bytes,       term_offsets,     columns,
                                        weights,  std::move(dense), std::move(terms), model};
            if (!hashing) self->model.terms = &self->terms;
          },
          nb::arg("analyzer"), nb::arg("term_bytes"), nb::arg("term_offsets"), nb::arg("columns"), nb::arg("weights"),
          nb::arg("others"), nb::kw_only(), nb::arg("n_features"), nb::arg("binary"), nb::arg("sublinear"),
          nb::arg("norm"))
      .def(
          "transform",
          [](const TfidfTransformer& self, nb::list texts, int n_threads, nb::object progress) {
            const Texts input = view_texts(texts, self.model.options->lowercase);
            const Poll poll = poll_python(progress);
            CsrArrays rows;
            {
              nb::gil_scoped_release nogil;
              rows = transform_tfidf(input.views, self.model, n_threads, poll);
            }
            return csr_tuple(std::move(rows));
          },
          nb::arg("texts"), nb::arg("n_threads"), nb::arg("progress") = nb::none())
      .def(
          "transform_one",
          [](const TfidfTransformer& self, nb::str text) {
            std::vector<nb::object> made;
            const TextView view = view_text(text.ptr(), self.model.options->lowercase, made);
            std::unique_ptr<int32_t[]> columns;
            std::unique_ptr<float[]> values;
            int64_t n = 0;
            const auto work = [&] {
              TextScratch scratch;
              Buffer<Entry> row;
              Buffer<double> spare;
              text_row(view, self.model, scratch, row, n);
              columns.reset(new int32_t[n]);
              values.reset(new float[n]);
              weigh_row(row.data(), n, self.model.weighting, spare, columns.get(), values.get());
            };
            if (view.length < 1 << 16) {
              work();  // shorter than handing over the lock
            } else {
              nb::gil_scoped_release nogil;
              work();
            }
            return nb::make_tuple(owned(std::move(columns), n), owned(std::move(values), n));
          },
          nb::arg("text"));
}

}  // namespace

void bind_tfidf(nb::module_& m) {
  bind_analyzer(m);
  bind_fit(m);
  bind_shards(m);
  bind_transformer(m);
}

}  // namespace lt::bind
