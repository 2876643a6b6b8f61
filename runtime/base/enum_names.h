// The names of an enum's values, as people write and read them. They stand beside the enum:
//
//   enum class Schedule { kBudget, kFixedLag };
//   constexpr auto enum_names(Schedule) {
//     using enum Schedule;
//     return enum_name_rows<Schedule>({{kBudget, "budget"}, {kFixedLag, "fixed_lag"}});
//   }
//
// The functions below find them by argument-dependent lookup. A value without a row has no name and
// cannot be written; a further row of a value is a second name, which is read and never printed.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/base/check.h"

namespace tandem {

template <class Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};

template <class Enum, std::size_t kCount>
constexpr std::array<EnumName<Enum>, kCount> enum_name_rows(EnumName<Enum> (&&rows)[kCount]) {
  return std::to_array(std::move(rows));
}

template <class Enum>
inline constexpr auto kEnumNameRows = enum_names(Enum{});

template <class Enum>
inline constexpr auto kSpellings = [] {
  std::array<std::string_view, kEnumNameRows<Enum>.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kEnumNameRows<Enum>[i].name;
  return names;
}();

// All names, in the order of their rows.
template <class Enum>
constexpr std::span<const std::string_view> spellings() {
  return kSpellings<Enum>;
}

// "fixed_lag". CHECKs that the value has a name.
template <class Enum>
constexpr std::string_view spelling(Enum value) {
  for (const auto& row : kEnumNameRows<Enum>)
    if (row.value == value) return row.name;
  CHECK(false);
}

// The value that has the name, if one has.
template <class Enum>
constexpr std::optional<Enum> spelt(std::string_view name) {
  for (const auto& row : kEnumNameRows<Enum>)
    if (row.name == name) return row.value;
  return std::nullopt;
}

}  // namespace tandem
