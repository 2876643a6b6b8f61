// Fleets of several kinds of devices as users write them. Pure.
//
//   an engine  "step=6.2ms,seq=0.15ms", "B:step=9ms,seq=0.3ms,prompt=20us,context=1ns,install=0.4s"
//   a fleet    "24xA+40xB", or "64" of the one engine that has no name
#pragma once

#include <string>
#include <vector>

#include "actors/forecast/costs.h"
#include "runtime/base/result.h"

namespace tandem::forecast {

inline constexpr std::int64_t kFleetMost = 100'000;  // rollouts

// "150us", "6.2ms", "1.5s", "2m", "3h", "1d"; a plain number is seconds. kInvalid for others, and
// for a time that is negative or not finite.
Result<double> parse_seconds(const std::string& text);

// `given` has what the text leaves out.
Result<EngineCosts> parse_engine(const std::string& text, EngineCosts given = {});
// The engines of the fleet, rollout by rollout. kInvalid for a kind that is not among `engines`.
Result<std::vector<EngineCosts>> parse_fleet(const std::string& text,
                                             const std::vector<EngineCosts>& engines);

}  // namespace tandem::forecast
