// What a run's rates would be with cores for all of its threads: a run whose actors share cores has
// measured costs in which they wait for each other. Pure.
#pragma once

#include "scheduler/fleet/fleet_rates.h"

namespace tandem::forecast {

struct SharedHost {
  double cores = 0;                                 // 0: none were shared
  double learner_threads = 1, rollout_threads = 1;  // of the learner, and of each rollout
  bool overlaps = true;  // false: strictly on-policy, training and generation take turns
};

// The costs of the learner's steps and of the rollouts' are shorter by the mean rate
// (processor_sharing.h) of the window. A window has no record of who worked beside whom: rollouts
// and learner are taken to be at work independently of each other, each for its measured share of
// the time. That is exact for one rollout where it or the learner is always at work. Times of the
// exchange and of the reward stay as they are: a group's score was also queued and sent, so how
// much of its time was work on the cores is not known. A forecast that takes it gives its reward no
// threads (RewardCosts), or it would wait for the same cores twice; what the reward took of them
// stays in the costs of the others.
scheduler::FleetRates rates_alone(scheduler::FleetRates rates, const SharedHost& host);

}  // namespace tandem::forecast
