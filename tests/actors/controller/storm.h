// One run of a random job in a simulated cluster under a plan of faults: the main test of the
// control plane. A seed decides the job, the conditions, the plan and every order of events, and so
// the whole trace.
//
// While it runs: LG-1 … LG-5, SB-1, DU-1 and DU-2 at each flush of the journal, CC-1 for the
// processes that physically live whenever one begins, LK-2 at each link. Once the faults are over:
// the job ends (LG-6) with all steps trained, within the staleness bound, nothing is left running
// (CC-4), and every question to a user's actor has had one answer, of an addition that was done at
// most once. The number of rollouts stays within the limits of the job's autoscale, and is the one
// that a user was promised last (AS-2, CC-6). Under `fixed_lag` each step has left the weights that
// it leaves in a run which nothing disturbs (FL-2).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tests/actors/controller/fault.h"
#include "tests/actors/controller/scenario.h"

namespace tandem::controller {

struct StormOutcome {
  std::uint64_t trace_hash = 0;
  std::uint64_t steps = 0;                             // of the executor
  std::uint64_t effects = 0;                           // of the controllers' processes
  std::array<std::uint64_t, kFaultKinds> struck = {};  // faults by kind that met a target
  std::int64_t asked = 0, answered = 0;                // questions; answers that are no errors
  std::int64_t trainings_compared = 0;                 // of steps, under fixed_lag (FL-2)
  std::int64_t rollout_numbers = 0;                    // that were wanted in turn; 0: no autoscale
  std::string state;                                   // of the job in the end
};

// Runs one storm to its end. If something is wrong, it reports a failure to googletest, or a CHECK
// ends the process. With `trace` it prints every event.
StormOutcome run_storm(std::uint64_t seed, const FaultPlan& plan, bool trace = false);

SimulatedJob storm_job(std::uint64_t seed);
ClusterConditions storm_conditions(std::uint64_t seed);

}  // namespace tandem::controller
