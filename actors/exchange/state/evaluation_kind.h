// When in a run an evaluation happens.
#pragma once

#include <cstdint>

#include "runtime/wire/fields.h"

namespace tandem::exchange {

enum class EvaluationKind : std::uint8_t { kBefore, kAfterWarmStart, kPeriodic, kFinal };
TANDEM_WIRE_ENUM(EvaluationKind, kBefore, kAfterWarmStart, kPeriodic, kFinal)
const char* name(EvaluationKind kind);  // snake_case: "after_warm_start"

}  // namespace tandem::exchange
