// The kinds of verifier (make_verifier.h says what each does). The order is that of the spellings
// of reward.type in actors/job/job_values.cc.
#pragma once

#include <cstdint>

namespace tandem::actors {

enum class VerifierType : std::uint8_t { kExact, kMath, kRegex, kCommand };

}  // namespace tandem::actors
