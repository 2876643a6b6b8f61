// How the comparison of two answers reads a percentage, such as 50%, beside an answer without the
// sign. Two percentages are equal if their numbers are. No percentage equals a number with a unit.
#pragma once

#include <cstdint>

#include "runtime/base/enum_names.h"

namespace tandem::grade {

enum class PercentReading : std::uint8_t {
  kWhole,   // 50% is 0.5, and 50 as well since 50 is whole; 0.5% is 0.005 alone
  kBoth,    // 50% is 0.5 and 50; 0.5% is 0.005 and 0.5
  kValue,   // 50% is 0.5
  kNumber,  // 50% is 50
};
constexpr auto enum_names(PercentReading) {
  using enum PercentReading;
  return enum_name_rows<PercentReading>(
      {{kWhole, "whole"}, {kBoth, "both"}, {kValue, "value"}, {kNumber, "number"}});
}

}  // namespace tandem::grade
