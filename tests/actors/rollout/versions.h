// The policy versions that tests of rollouts name.
#pragma once

#include "runtime/base/ids.h"

namespace tandem::rollout {

inline constexpr PolicyVersion kV0{0}, kV1{1}, kV2{2};

}  // namespace tandem::rollout
