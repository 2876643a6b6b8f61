// The choices of the reward `code` that have names in a job file (code_judge.h says what they
// mean).
#pragma once

#include <cstdint>

#include "runtime/base/enum_names.h"

namespace tandem::reward {

enum class CodeLanguage : std::uint8_t { kAuto, kPython, kCpp };
constexpr auto enum_names(CodeLanguage) {
  using enum CodeLanguage;
  return enum_name_rows<CodeLanguage>({{kAuto, "auto"}, {kPython, "python"}, {kCpp, "cpp"}});
}

enum class CodeScore : std::uint8_t { kAll, kFraction };
constexpr auto enum_names(CodeScore) {
  using enum CodeScore;
  return enum_name_rows<CodeScore>({{kAll, "all"}, {kFraction, "fraction"}});
}

}  // namespace tandem::reward
