// A label filter as it arrives from Python: None, or (include, exclude), each None or (ptr, ids, open), where `open` is
// None or one flag per list. See longtail.answers.label_filter.
#pragma once

#include "bindings/arrays.h"
#include "kernels/base/label_filter.h"

namespace lt::bind {

class FilterArrays {
 public:
  FilterArrays(nb::object filter, int64_t n_rows, int64_t n_labels) {
    if (filter.is_none()) return;
    auto sides = nb::cast<nb::tuple>(filter);
    require(sides.size() == 2, "a filter is a pair: what to include, what to exclude");
    view_.include = read(sides[0], n_rows, n_labels);
    view_.exclude = read(sides[1], n_rows, n_labels);
  }
  const LabelFilter& view() const { return view_; }

 private:
  LabelLists read(nb::object side, int64_t n_rows, int64_t n_labels) {
    LabelLists lists;
    if (side.is_none()) return lists;
    auto parts = nb::cast<nb::tuple>(side);
    require(parts.size() == 3, "lists of a filter are offsets, ids and flags");
    auto ptr = nb::cast<Array1<int64_t>>(parts[0]);
    auto ids = nb::cast<Array1<int32_t>>(parts[1]);
    require(ptr.shape(0) >= 1, "offsets of a filter need at least one entry");
    const int64_t n_lists = static_cast<int64_t>(ptr.shape(0)) - 1;
    lists.ptr = ptr.data();
    lists.ids = ids.data();
    lists.shared = n_lists == 1;
    if (!parts[2].is_none()) {
      auto open = nb::cast<Array1<uint8_t>>(parts[2]);
      require(static_cast<int64_t>(open.shape(0)) == n_lists, "one flag per list of a filter");
      lists.open = open.data();
      kept_.push_back(nb::cast(open));
    }
    kept_.push_back(nb::cast(ptr));
    kept_.push_back(nb::cast(ids));
    check_lists(lists, n_lists, static_cast<int64_t>(ids.shape(0)), n_rows, n_labels);
    return lists;
  }

  LabelFilter view_;
  std::vector<nb::object> kept_;
};

}  // namespace lt::bind
