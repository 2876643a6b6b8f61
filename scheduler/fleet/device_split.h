// How a budget of devices is best divided between rollouts and the learner's ranks. A rollout takes
// one device, and so does a rank. Pure.
//
//   DV-1  Every division with at least one of each is there once, by ascending rollouts.
//   DV-2  No division takes more steps per hour than the best one; of equal ones the best is the
//         one with the fewest rollouts.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/fleet/sizing.h"

namespace tandem::scheduler {

inline constexpr std::int64_t kDevicesMost = 4096;

struct SplitRequest {
  FleetModel model;          // check_model() has passed it
  std::int64_t ranks = 1;    // with which model.step_seconds was measured
  std::int64_t devices = 2;  // 2 to kDevicesMost
  // The learner's speed as its ranks double, as a share of twice the speed: 1 is linear, and at 0.5
  // more ranks are no faster. In [0.5, 1].
  double learner_efficiency = 1;
  double headroom = kSizingHeadroom;  // by which each rollout's rate is lowered
};

struct Split {
  std::int64_t ranks = 0;
  double step_seconds = 0;  // the learner's, with these ranks
  SteadyState fleet;
  double steps_per_hour = 0;
};
struct Splits {
  std::vector<Split> all;
  std::size_t best = 0;  // index
};
Splits splits_of(const SplitRequest& request);

// The seconds of a step with `ranks`, where it takes `seconds` with `measured_ranks`.
struct StepScaling {
  double seconds;
  std::int64_t measured_ranks, ranks;
  double efficiency;
};
double scaled_step_seconds(const StepScaling& step);

}  // namespace tandem::scheduler
