// Shortens a prompt that has more tokens than an engine takes, by data.truncation. `left`, `right`
// and `middle` are verl's: the side that they name is cut off. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/enum_names.h"

namespace tandem::rollout {

enum class Truncation : std::uint8_t {
  kDiscard,  // it is not generated
  kError,    // it is not generated; a job with such a prompt is refused before it starts
  kLeft,     // the last tokens stay
  kRight,    // the first tokens stay
  kMiddle,   // the first half of the limit, rounded down, and the rest of it from the end
};
constexpr auto enum_names(Truncation) {
  using enum Truncation;
  return enum_name_rows<Truncation>({{kDiscard, "discard"},
                                     {kError, "error"},
                                     {kLeft, "left"},
                                     {kRight, "right"},
                                     {kMiddle, "middle"}});
}

constexpr bool truncates(Truncation truncation) { return truncation >= Truncation::kLeft; }

// Shortens `tokens` to `tokens_max`, which is positive, if `truncation` shortens at all; else the
// caller has to refuse tokens that are too many.
void truncate(std::vector<std::int32_t>& tokens, std::int64_t tokens_max, Truncation truncation);

}  // namespace tandem::rollout
