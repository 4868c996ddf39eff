// Structs that Python makes of named fields: core.LevelParams(threshold=0.1, seed=3).
#pragma once

#include <string>

#include "bindings/arrays.h"

namespace lt::bind {

class Fields {
 public:
  explicit Fields(nb::kwargs given) : given_(std::move(given)) {}

  // Throws TypeError for a field of another kind, ValueError for one that is missing.
  template <class T>
  void read(const char* name, T& to) {
    require(given_.contains(name), std::string("the field ") + name + " is missing");
    to = take<T>(name);
  }

  // The same for a field that keeps its default where it is absent or None.
  template <class T>
  void maybe(const char* name, T& to) {
    if (!given_.contains(name)) return;
    if (nb::borrow<nb::object>(given_[name]).is_none())
      ++n_read_;
    else
      to = take<T>(name);
  }
  template <class T>
  void maybe(const char* name, std::optional<T>& to) {
    T value;
    const bool has = given_.contains(name) && !nb::borrow<nb::object>(given_[name]).is_none();
    maybe(name, value);
    if (has) to = std::move(value);
  }

  // After the last field: refuses names that nobody asked for.
  void done() const { require(n_read_ == given_.size(), "a field has a name that this struct does not have"); }

 private:
  template <class T>
  T take(const char* name) {
    ++n_read_;
    T value;
    if (!nb::try_cast<T>(nb::borrow<nb::object>(given_[name]), value))
      throw nb::type_error((std::string("the field ") + name + " is of another kind").c_str());
    return value;
  }

  nb::kwargs given_;
  size_t n_read_ = 0;
};

}  // namespace lt::bind
