// The kinds of verifier (make_verifier.h says what each does).
#pragma once

#include <cstdint>

#include "runtime/base/enum_names.h"

namespace tandem::reward {

enum class VerifierType : std::uint8_t {
  kExact,
  kMath,
  kRegex,
  kCommand,
  kPython,
  kHttp,
  kCode,
  kJudge
};
constexpr auto enum_names(VerifierType) {
  using enum VerifierType;
  return enum_name_rows<VerifierType>({{kExact, "exact"},
                                       {kMath, "math"},
                                       {kRegex, "regex"},
                                       {kCommand, "command"},
                                       {kPython, "python"},
                                       {kHttp, "http"},
                                       {kCode, "code"},
                                       {kJudge, "judge"}});
}

}  // namespace tandem::reward
