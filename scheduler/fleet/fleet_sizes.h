// The fleets that are worth a look beside each other, and a verdict on the present one. First-order
// figures (sizing.h), compared with what a run has measured. Pure; check_model() has passed each
// model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/enum_names.h"
#include "scheduler/fleet/sizing.h"

namespace tandem::scheduler {

// The present fleet, the matched one and those around them, ascending. Each has at least one
// rollout.
std::vector<SteadyState> fleets_around(const FleetModel& model, std::optional<std::int64_t> present,
                                       std::int64_t matched);

enum class FleetVerdict {
  kUndersized,   // the trainer waits, or has less headroom than was asked for
  kMatched,      //
  kOversized,    // rollouts wait, or generate what nobody trains
  kUnexplained,  // enough rollouts by their rates, and yet the trainer waits
  kUncertain,    // too few steps were measured
};
constexpr auto enum_names(FleetVerdict) {
  using enum FleetVerdict;
  return enum_name_rows<FleetVerdict>({{kUndersized, "undersized"},
                                       {kMatched, "matched"},
                                       {kOversized, "oversized"},
                                       {kUnexplained, "unexplained"},
                                       {kUncertain, "uncertain"}});
}

struct FleetQuestion {
  std::int64_t present = 0, matched = 0;
  // Of the present fleet, in a run; nullopt: nothing was measured.
  std::optional<double> measured_trainer_idle;
  std::optional<std::int64_t> steps;  // over which the rates were measured; nullopt: they are given
  double trainer_idle_target = kTrainerIdleTarget;
  bool overlaps = true;  // FleetModel::overlaps
};
// A measured trainer that waits less than the target has rollouts enough, whatever the headroom.
FleetVerdict verdict_on(const FleetQuestion& question);

}  // namespace tandem::scheduler
