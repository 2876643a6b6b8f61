// Lines of a run's metrics.jsonl, for tests of what other programs are given of them.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/json.h"

namespace tandem::runs {

inline constexpr std::int64_t kNow = 1'800'000'000;  // seconds; ten digits

// A line of a step that is trained for the `nth` time: no two are alike.
inline std::string line_of(std::int64_t step, int nth = 1) {
  const double seconds = static_cast<double>(step) * 2 + nth * 1000.0;
  return dump_json({{"step", step},
                    {"critic/rewards/mean", 0.1 * static_cast<double>(step)},
                    {"actor/loss", nullptr},
                    {"tandem/ledger/issued", 16 * step},
                    {"tandem/wall_seconds", seconds}});
}

}  // namespace tandem::runs
