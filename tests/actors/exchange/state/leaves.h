// Changes one value somewhere within a struct that goes over the wire.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/wire/codec.h"

namespace tandem::exchange {

// Calls `change` for every leaf of a wired value, and for the presence of every optional and the
// length of every list. Empty ones are counted, since nothing is known of what they would hold.
class Leaves {
 public:
  // Changes leaf number `target`; -1 changes none and counts.
  explicit Leaves(int target) : target_(target) {}

  template <class T>
  void visit(T& value) {
    if constexpr (wire::Wired<T>) {
      [&]<auto... kMembers>(wire::WireFields<T, kMembers...>) { (visit(value.*kMembers), ...); }
      (wire_fields(&value));
    } else if constexpr (wire::wire_detail::is_a<T, std::optional>) {
      if (!value) return void(++empty_);
      visit(*value);
      if (hit()) value.reset();
    } else if constexpr (wire::wire_detail::is_a<T, std::vector>) {
      if (value.empty()) return void(++empty_);
      for (auto& element : value) visit(element);
      if (hit()) value.pop_back();
    } else if constexpr (wire::wire_detail::is_a<T, std::map>) {
      return;  // figures by name are no facts
    } else if (hit()) {
      change(value);
    }
  }
  int count() const { return next_; }
  int empty() const { return empty_; }

 private:
  bool hit() { return next_++ == target_; }
  template <class T>
  static void change(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = !value;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(static_cast<int>(value) == 0 ? 1 : 0);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value += "x";
    } else if constexpr (wire::wire_detail::is_id<T>) {
      ++value.value;
    } else {
      value += 1;
    }
  }

  const int target_;
  int next_ = 0, empty_ = 0;
};

}  // namespace tandem::exchange
