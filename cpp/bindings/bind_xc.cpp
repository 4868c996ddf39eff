// The text formats. Errors in a text come back as (line, column, message), since only the caller knows the file.
#include "bindings/arrays.h"
#include "kernels/text/pair_lines.h"
#include "kernels/text/xc_parse.h"
#include "kernels/text/xc_write.h"

namespace lt::bind {

namespace {

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(GrowingArray<T>&& values, std::vector<size_t> shape = {}) {
  values.shrink();
  auto* owner = new GrowingArray<T>(std::move(values));
  if (shape.empty()) shape = {static_cast<size_t>(owner->size)};
  nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<GrowingArray<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(owner->data(), shape.size(), shape.data(), capsule);
}

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Lines [begin, end) of a buffer, checked for what the kernels rely on.
std::pair<const char*, const char*> lines_of(const Bytes& buffer, int64_t begin, int64_t end) {
  const char* data = reinterpret_cast<const char*>(buffer.data());
  require(0 <= begin && begin <= end && end + kTextPadding <= static_cast<int64_t>(buffer.shape(0)),
          "the text must lie within the buffer and leave room for padding");
  require(begin == end || data[end - 1] == '\n', "the text must end with a line end");
  return {data + begin, data + end};
}

nb::object error_or_none(const std::optional<TextError>& error) {
  if (!error) return nb::none();
  return nb::make_tuple(error->line, error->column, error->message);
}

// Lines of rows as texts to be joined in order.
nb::list write_rows(const CsrView* labels, const CsrView& entries, int64_t begin, int64_t end, int n_threads) {
  require(0 <= begin && begin <= end && end <= entries.n_rows && (!labels || labels->n_rows == entries.n_rows),
          "rows out of range, or matrices of different height");
  std::vector<GrowingArray<char>> texts;
  {
    nb::gil_scoped_release nogil;
    texts = xc_write_parts(labels, entries, begin, end, n_threads);
  }
  nb::list out;
  for (auto& text : texts) {
    out.append(nb::bytes(text.data(), text.size));
    text = {};
  }
  return out;
}

}  // namespace

void bind_xc(nb::module_& m) {
  m.attr("TEXT_PADDING") = kTextPadding;
  m.attr("MAX_COLUMNS") = kMaxColumns;

  nb::class_<XcParser>(m, "XcParser")
      .def(
          "__init__",
          [](XcParser* self, bool labelled, bool unit_values, std::string noun, int64_t n_rows, int64_t n_columns,
             int64_t n_labels, int64_t line) {
            require(0 <= n_columns && n_columns <= kMaxColumns && 0 <= n_labels && n_labels <= kMaxColumns,
                    "widths must lie between 0 and 2^31 - 1");
            new (self) XcParser{{labelled, unit_values, std::move(noun), n_rows, n_columns, n_labels}, {}, line, {}};
          },
          nb::arg("labelled"), nb::arg("unit_values"), nb::arg("noun"), nb::arg("n_rows"), nb::arg("n_columns"),
          nb::arg("n_labels"), nb::arg("line"))
      .def(
          "feed",
          [](XcParser& self, Bytes buffer, int64_t begin, int64_t end, int n_threads, int64_t chunk_bytes) {
            const auto [first, last] = lines_of(buffer, begin, end);
            std::optional<TextError> error;
            {
              nb::gil_scoped_release nogil;
              error = xc_parse(self, first, last, n_threads, chunk_bytes);
            }
            return error_or_none(error);
          },
          nb::arg("buffer"), nb::arg("begin"), nb::arg("end"), nb::arg("n_threads"), nb::arg("chunk_bytes"))
      .def("expect", &xc_expect, nb::arg("bytes_read"), nb::arg("bytes_in_all"))
      .def("drop_blank_end", [](XcParser& self) { xc_drop_empty_end(self.rows); })
      .def_ro("line", &XcParser::line)
      .def_prop_ro("n_rows", [](const XcParser& self) { return self.rows.n_rows(); })
      .def_prop_ro("width", [](const XcParser& self) { return self.rows.width; })
      .def_prop_ro("label_width", [](const XcParser& self) { return self.rows.label_width; })
      .def("take_entries",
           [](XcParser& self) {
             return nb::make_tuple(to_numpy(std::move(self.rows.column_end)), to_numpy(std::move(self.rows.columns)),
                                   to_numpy(std::move(self.rows.values)));
           })
      .def("take_labels", [](XcParser& self) {
        return nb::make_tuple(to_numpy(std::move(self.rows.label_end)), to_numpy(std::move(self.rows.labels)));
      });

  nb::class_<PairLines>(m, "PairLines")
      .def(
          "__init__",
          [](PairLines* self, int64_t n_rows, int64_t n_labels) { new (self) PairLines{n_rows, n_labels, 1, {}}; },
          nb::arg("n_rows"), nb::arg("n_labels"))
      .def(
          "feed",
          [](PairLines& self, Bytes buffer, int64_t begin, int64_t end) {
            const auto [first, last] = lines_of(buffer, begin, end);
            std::optional<TextError> error;
            {
              nb::gil_scoped_release nogil;
              error = parse_pair_lines(self, first, last);
            }
            return error_or_none(error);
          },
          nb::arg("buffer"), nb::arg("begin"), nb::arg("end"))
      .def_ro("line", &PairLines::line)
      .def("take", [](PairLines& self) {
        const size_t n = static_cast<size_t>(self.pairs.size / 2);
        return to_numpy(std::move(self.pairs), {n, 2});
      });

  m.def("xc_write", [](const CsrArgs& csr, const CsrArgs& label_csr, int64_t begin, int64_t end, int n_threads) {
    const CsrView entries = csr.view();
    const CsrView labels = label_csr.view();
    return write_rows(&labels, entries, begin, end, n_threads);
  });
  m.def("xc_write_matrix", [](const CsrArgs& csr, int64_t begin, int64_t end, int n_threads) {
    return write_rows(nullptr, csr.view(), begin, end, n_threads);
  });
}

}  // namespace lt::bind
