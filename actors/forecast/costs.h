// What the actors of a simulated fleet cost in time. Plain values in seconds, from flags or from
// what a run has measured.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::forecast {

// An engine's decode step gives each running sequence a token. It takes
//   step + sequence · (sequences that run) + context · (tokens of their contexts),
// and a prompt that begins with it adds prompt_token · tokens.
struct EngineCosts {
  std::string name;  // of the kind of device; may be empty
  double step_s = 0, sequence_s = 0, context_token_s = 0;
  double prompt_token_s = 0;
  double install_s = 0;  // for which decoding pauses when a version is installed
  double fetch_s = 0;    // from a version's announcement until it may be installed
};

// A step takes  step + token · (its completion tokens); the weights are published within it. The
// exchange of a run also needs some time to write files between two steps.
struct LearnerCosts {
  double step_s = 0, token_s = 0;
  double turnaround_s = 0;  // from a commit until the exchange has the next batch ready
  double save_s = 0;        // a checkpoint
};

struct RewardCosts {
  double score_s = 0;  // from a group's lease to its scores
  // Of the host, while any group is scored. 0: it waits for something else, and a score takes its
  // time whatever works on the host's cores.
  double threads = 0;
  double zero_variance = 0;   // the share of groups whose completions all score the same
  std::int32_t capacity = 0;  // groups at a time; 0: without bound
};

// Actors that die, each after an exponentially distributed time.
struct FailureCosts {
  double rollout_mtbf_s = 0;  // mean time between the failures of one rollout; 0: none fails
  double restart_s = 10;      // until the actor is up again
};

}  // namespace tandem::forecast
